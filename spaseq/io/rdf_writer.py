"""Matches as RDF: each a named graph with its time, so that the output is a stream again.

Each graph follows `<graph> prov:generatedAtTime <end>` in the default graph, as the `graph` framing
of the readers requires. Numeric times are written in seconds.

* A CONSTRUCT's graph contains the constructed triples only.
* A SELECT's or ASK's graph describes the match in the vocabulary of
  `http://w3id.org/spaseq/ontology#`: a `Match` with `query`, `start`, `end`, one `binding`
  (`variable`, `value`) per bound variable or `boolean`, and one `hasEvent` per witness, an
  `EventMatch` with `position` (from 0, in sequence order), `gpm`, `stream`, `time`,
  `ordinal`, `graph` if the event has a name, and `binding`s of its own.

A graph is named after its query and the number of the match in that query: `urn:spaseq:NAME:7`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TextIO
from urllib.parse import quote

import pyoxigraph as ox

from spaseq.rdf.event import Fact, Term, Timestamp, fact_of
from spaseq.rdf.time import canonical_literal
from spaseq.results import Match, triples_text

VOCABULARY = "http://w3id.org/spaseq/ontology#"
_PROV = "http://www.w3.org/ns/prov#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_GENERATED_AT = ox.NamedNode(_PROV + "generatedAtTime")
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_INTEGER = ox.NamedNode(_XSD + "integer")
_BOOLEAN = ox.NamedNode(_XSD + "boolean")


def _term(name: str) -> ox.NamedNode:
    return ox.NamedNode(VOCABULARY + name)


_MATCH, _EVENT_MATCH = _term("Match"), _term("EventMatch")
_QUERY, _START, _END, _ASKED = _term("query"), _term("start"), _term("end"), _term("boolean")
_HAS_EVENT, _POSITION, _GPM = _term("hasEvent"), _term("position"), _term("gpm")
_STREAM, _TIME, _ORDINAL, _GRAPH = _term("stream"), _term("time"), _term("ordinal"), _term("graph")
_BINDING, _VARIABLE, _VALUE = _term("binding"), _term("variable"), _term("value")


class _Names:
    """Mints the names of graphs and blank nodes."""

    def __init__(self) -> None:
        self._matches: dict[str, int] = {}
        self._blanks = 0

    def graph(self, match: Match) -> ox.NamedNode:
        number = self._matches[match.query] = self._matches.get(match.query, 0) + 1
        return ox.NamedNode(f"urn:spaseq:{quote(match.query, safe='')}:{number}")

    def blank(self) -> ox.BlankNode:
        self._blanks += 1
        return ox.BlankNode(f"spaseq{self._blanks}")


class NQuads:
    """One line per quad."""

    def __init__(self, out: TextIO):
        self._out = out
        self._names = _Names()

    def write(self, match: Match) -> None:
        graph = self._names.graph(match)
        stamp = triples_text([(graph, _GENERATED_AT, _time(match.end))])
        self._out.write(stamp + triples_text(_facts(match, graph, self._names), graph))

    def close(self) -> None:
        """Nothing follows the last quad."""


class TriG:
    """One block per match."""

    def __init__(self, out: TextIO):
        self._out = out
        self._names = _Names()
        out.write(
            f"@prefix prov: <{_PROV}> .\n@prefix spaseq: <{VOCABULARY}> .\n"
            f"@prefix xsd: <{_XSD}> .\n"
        )

    def write(self, match: Match) -> None:
        graph = self._names.graph(match)
        lines = [f"\n{graph} prov:generatedAtTime {_short(_time(match.end))} .\n{graph} {{\n"]
        subject: Term | None = None
        for fact in _facts(match, graph, self._names):
            if fact[0] == subject:
                lines.append(f" ;\n        {_short(fact[1])} {_short(fact[2])}")
            else:
                end = "" if subject is None else " .\n"
                lines.append(f"{end}    {_short(fact[0])} {_short(fact[1])} {_short(fact[2])}")
            subject = fact[0]
        lines.append("}\n" if subject is None else " .\n}\n")
        self._out.write("".join(lines))

    def close(self) -> None:
        """Nothing follows the last block."""


def _short(term: Term) -> str:
    """A term in TriG with `a`, and prefixes for the spaseq vocabulary and XSD datatypes."""
    if isinstance(term, ox.NamedNode):
        if term == _TYPE:
            return "a"
        name = term.value.removeprefix(VOCABULARY)
        return f"spaseq:{name}" if name.isalpha() and name != term.value else str(term)
    if isinstance(term, ox.Literal) and not term.language:
        name = term.datatype.value.removeprefix(_XSD)
        if name.isalpha() and name not in ("string", term.datatype.value):
            return f"{ox.Literal(term.value)}^^xsd:{name}"
    return str(term)


def _facts(match: Match, graph: ox.NamedNode, names: _Names) -> Iterator[Fact]:
    if match.graph is not None:
        yield from map(fact_of, match.graph)
        return
    blanks: list[Fact] = []
    yield graph, _TYPE, _MATCH
    yield graph, _QUERY, ox.Literal(match.query)
    yield graph, _START, _time(match.start)
    yield graph, _END, _time(match.end)
    if match.boolean is not None:
        text = "true" if match.boolean else "false"
        yield graph, _ASKED, ox.Literal(text, datatype=_BOOLEAN)
    yield from _bindings(graph, match.bindings, names, blanks)
    witnesses = [names.blank() for _ in match.events]
    for node in witnesses:
        yield graph, _HAS_EVENT, node
    yield from blanks
    for position, (node, witness) in enumerate(zip(witnesses, match.events, strict=True)):
        yield node, _TYPE, _EVENT_MATCH
        yield node, _POSITION, _number(position)
        yield node, _GPM, ox.Literal(witness.gpm)
        yield node, _STREAM, ox.NamedNode(witness.stream)
        yield node, _TIME, _time(witness.time)
        yield node, _ORDINAL, _number(witness.ordinal)
        if witness.graph is not None:
            yield node, _GRAPH, witness.graph
        blanks.clear()
        yield from _bindings(node, witness.bindings, names, blanks)
        yield from blanks


def _bindings(
    subject: Term, bindings: Mapping[str, Term], names: _Names, rest: list[Fact]
) -> Iterator[Fact]:
    """The links to the bindings; the triples about the bindings are appended to `rest`."""
    for variable, value in bindings.items():
        node = names.blank()
        yield subject, _BINDING, node
        rest += ((node, _VARIABLE, ox.Literal(variable)), (node, _VALUE, value))


def _time(time: Timestamp) -> ox.Literal:
    return canonical_literal(time)


def _number(value: int) -> ox.Literal:
    return ox.Literal(str(value), datatype=_INTEGER)
