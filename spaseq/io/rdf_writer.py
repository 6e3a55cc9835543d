"""Matches as RDF: each a named graph with its time, so that the output is a stream again.

Each graph follows `<graph> prov:generatedAtTime <end>` in the default graph, as the `graph` framing
of the readers requires. Numeric times are written in seconds. Turtle has no named graphs, so it
contains only the triples of the matches.

* A CONSTRUCT's graph contains the constructed triples only.
* A SELECT's or ASK's graph describes the match in the vocabulary of
  `http://w3id.org/spaseq/ontology#`: a `Match` with `query`, `start`, `end`, one `binding`
  (`variable`, `value`) per bound variable or `boolean`, and one `hasEvent` per witness, an
  `EventMatch` with `position` (from 0, in sequence order), `gpm`, `stream`, `time`,
  `ordinal`, `graph` if the event has a name, and `binding`s of its own.

A graph is named after its query and the number of the match in that query: `urn:spaseq:NAME:7`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

import pyoxigraph as ox

from spaseq.errors import SpaseqError
from spaseq.io.native._match_blocks import MessagesMaker, Names, NQuadsMaker, TriGMaker
from spaseq.rdf.event import Fact, Term, Timestamp, fact_of, n_triples
from spaseq.rdf.time import canonical_literal
from spaseq.results import Match, triples_text
from spaseq.results.data import XSD_STRING

VOCABULARY = "http://w3id.org/spaseq/ontology#"
_PROV = "http://www.w3.org/ns/prov#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
GENERATED_AT = ox.NamedNode(_PROV + "generatedAtTime")
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
PREFIXES = f"@prefix prov: <{_PROV}> .\n@prefix spaseq: <{VOCABULARY}> .\n@prefix xsd: <{_XSD}> .\n"
"""The prefixes that `short` uses, and the prefix of the time of a graph."""
_INTEGER = ox.NamedNode(_XSD + "integer")
_BOOLEAN = ox.NamedNode(_XSD + "boolean")


def _term(name: str) -> ox.NamedNode:
    return ox.NamedNode(VOCABULARY + name)


_MATCH, _EVENT_MATCH = _term("Match"), _term("EventMatch")
_QUERY, _START, _END, _ASKED = _term("query"), _term("start"), _term("end"), _term("boolean")
_HAS_EVENT, _POSITION, _GPM = _term("hasEvent"), _term("position"), _term("gpm")
_STREAM, _TIME, _ORDINAL, _GRAPH = _term("stream"), _term("time"), _term("ordinal"), _term("graph")
_BINDING, _VARIABLE, _VALUE = _term("binding"), _term("variable"), _term("value")


class NQuads:
    """One line per quad."""

    maker = NQuadsMaker

    def __init__(self, out: TextIO):
        self._out = out
        self.names = Names()

    def write(self, match: Match) -> None:
        graph = self.names.graph(match.query)
        stamp = triples_text([(graph, GENERATED_AT, _time(match.end))])
        self._out.write(stamp + triples_text(_facts(match, graph, self.names), graph))

    def close(self) -> None:
        """Nothing follows the last quad."""


class TriG:
    """One block per match."""

    maker = TriGMaker

    def __init__(self, out: TextIO):
        self._out = out
        self.names = Names()
        out.write(PREFIXES)

    def write(self, match: Match) -> None:
        graph = self.names.graph(match.query)
        stamp = f"\n{graph} prov:generatedAtTime {short(_time(match.end))} .\n"
        lines = statements(_facts(match, graph, self.names), "    ")
        self._out.write(
            f"{stamp}{graph} {{\n{lines} .\n}}\n" if lines else f"{stamp}{graph} {{\n}}\n"
        )

    def close(self) -> None:
        """Nothing follows the last block."""


class Messages(NQuads):
    """One RDF Message per match, in N-Quads with delimiters."""

    maker = MessagesMaker

    def __init__(self, out: TextIO):
        super().__init__(out)
        out.write('VERSION "1.1-messages"\n')

    def write(self, match: Match) -> None:
        super().write(match)
        self._out.write("MESSAGE\n")


class Turtle:
    """The triples of all matches in one graph."""

    def __init__(self, out: TextIO):
        self._out = out
        self.names = Names()
        out.write(f"@prefix spaseq: <{VOCABULARY}> .\n@prefix xsd: <{_XSD}> .\n")

    def write(self, match: Match) -> None:
        facts = _facts(match, self.names.graph(match.query), self.names)
        if lines := statements(facts, ""):
            self._out.write(f"\n{lines} .\n")

    def close(self) -> None:
        """Nothing follows the last triple."""


class JsonLd:
    """One array of named graphs, in expanded form."""

    def __init__(self, out: TextIO):
        self._out = out
        self._names = Names()
        self._matches = 0
        out.write("[")

    def write(self, match: Match) -> None:
        graph = self._names.graph(match.query)
        named = json_ld_graph(graph, _time(match.end), _facts(match, graph, self._names))
        self._out.write(",\n" if self._matches else "\n")
        self._out.write(json.dumps(named, ensure_ascii=False))
        self._matches += 1

    def close(self) -> None:
        """End the array."""
        self._out.write("\n]\n")


def json_ld_graph(name: Term, time: ox.Literal, facts: Iterable[Fact]) -> dict[str, Any]:
    """A named graph with its time, as an object of JSON-LD."""
    return {
        "@id": _json_ld_id(name),
        GENERATED_AT.value: [_json_ld_value(time)],
        "@graph": _nodes(facts),
    }


def _nodes(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    """Triples as node objects of JSON-LD, in the order of their subjects."""
    nodes: dict[Term, dict[str, Any]] = {}
    for subject, predicate, value in facts:
        node = nodes.setdefault(subject, {"@id": _json_ld_id(subject)})
        if predicate == TYPE and not isinstance(value, ox.Literal | ox.Triple):
            node.setdefault("@type", []).append(_json_ld_id(value))
        else:
            assert isinstance(predicate, ox.NamedNode)
            node.setdefault(predicate.value, []).append(_json_ld_value(value))
    return list(nodes.values())


def _json_ld_id(term: Term) -> str:
    if isinstance(term, ox.Triple):
        raise SpaseqError(
            f"JSON-LD cannot express the triple term {n_triples(term)}; "
            "use TriG, N-Quads or messages"
        )
    return str(term) if isinstance(term, ox.BlankNode) else term.value


def _json_ld_value(term: Term) -> dict[str, str]:
    if not isinstance(term, ox.Literal):
        return {"@id": _json_ld_id(term)}
    value = {"@value": term.value}
    if term.language:
        value["@language"] = term.language
        if term.direction is not None:
            value["@direction"] = term.direction.value
    elif term.datatype.value != XSD_STRING:
        value["@type"] = term.datatype.value
    return value


def statements(facts: Iterable[Fact], indent: str) -> str:
    """Triples in Turtle, grouped by subject, without the last dot; empty if there are none."""
    lines: list[str] = []
    subject: Term | None = None
    for fact in facts:
        pair = f"{short_predicate(fact[1])} {short(fact[2])}"
        if fact[0] == subject:
            lines.append(f" ;\n{indent}    {pair}")
        else:
            end = "" if subject is None else " .\n"
            lines.append(f"{end}{indent}{short(fact[0])} {pair}")
        subject = fact[0]
    return "".join(lines)


def short_predicate(term: Term) -> str:
    """A predicate in TriG, shortened by `short`, or `a`."""
    return "a" if term == TYPE else short(term)


def short(term: Term) -> str:
    """A term in TriG with prefixes for the spaseq vocabulary and XSD datatypes."""
    if isinstance(term, ox.NamedNode):
        name = term.value.removeprefix(VOCABULARY)
        return f"spaseq:{name}" if _is_local(name) and name != term.value else str(term)
    if isinstance(term, ox.Literal) and not term.language:
        name = term.datatype.value.removeprefix(_XSD)
        if _is_local(name) and name not in ("string", term.datatype.value):
            return f"{ox.Literal(term.value)}^^xsd:{name}"
    return n_triples(term)


def _is_local(name: str) -> bool:
    return name.isascii() and name.isalpha()


def dataset(match: Match, names: Names) -> Iterator[ox.Quad]:
    """The quads of a match: the time of its graph, then the graph."""
    graph = names.graph(match.query)
    yield ox.Quad(graph, GENERATED_AT, _time(match.end))
    for fact in _facts(match, graph, names):
        yield ox.Quad(*fact, graph)  # type: ignore[arg-type]


def _facts(match: Match, graph: ox.NamedNode, names: Names) -> Iterator[Fact]:
    if match.graph is not None:
        yield from map(fact_of, match.graph)
        return
    blanks: list[Fact] = []
    yield graph, TYPE, _MATCH
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
        yield node, TYPE, _EVENT_MATCH
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
    subject: Term, bindings: Mapping[str, Term], names: Names, rest: list[Fact]
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
