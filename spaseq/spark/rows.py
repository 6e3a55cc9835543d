"""Matches → rows of a DataFrame, and what the columns are.

`id`, `query`, `start`, `end`, a column of text for each projected variable, then whatever the
queries' forms need of `bindings`, `graph` and `boolean`, and `events`, the provenance. A row
says the same whichever task makes it, so that it can be told from others: blank nodes are
named by their event, those of CONSTRUCT by the match, and `id` is a digest of what the match
is made of. Cost: constant per term of a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any

import pyarrow as pa
import pyoxigraph as ox

from spaseq.engine.compiled import CompiledQueries
from spaseq.rdf.event import Fact, Term
from spaseq.results import Match, Witness, triples_text
from spaseq.spark import moments
from spaseq.spark.moments import TimeKind

_MINTED = re.compile(r"s[0-9]+e[0-9]+b([0-9]+)")
_MADE = re.compile(r"m[0-9]+n([0-9]+)")
_FIXED = ("id", "query", "start", "end", "bindings", "graph", "boolean", "events")
_AT_ONCE = 1024
_TERMS = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of the matches of some queries.

    `variables` gives each projected variable its column: its own name, or that with
    underscores behind where another column has it (Spark tells no case apart).
    """

    variables: Mapping[str, str]
    forms: frozenset[str]
    kind: TimeKind

    def schema(self) -> pa.Schema:
        """For Arrow."""
        time = moments.arrow_type(self.kind)
        event = pa.struct(
            [
                ("gpm", pa.string()),
                ("stream", pa.string()),
                ("time", time),
                ("ordinal", pa.int64()),
                ("name", pa.string()),
                ("bindings", _TERMS),
            ]
        )
        fields = [("id", pa.string()), ("query", pa.string()), ("start", time), ("end", time)]
        fields += [(column, pa.string()) for column in self.variables.values()]
        if "select" in self.forms:
            fields.append(("bindings", _TERMS))
        if "construct" in self.forms:
            fields.append(("graph", pa.string()))
        if "ask" in self.forms:
            fields.append(("boolean", pa.bool_()))
        return pa.schema([*fields, ("events", pa.list_(event))])

    def batches(self, matches: Iterable[Match]) -> Iterator[pa.RecordBatch]:
        """The rows of matches."""
        schema, iterator = self.schema(), iter(matches)
        while some := list(islice(iterator, _AT_ONCE)):
            yield pa.RecordBatch.from_pylist([self._row(match) for match in some], schema=schema)

    def _row(self, match: Match) -> dict[str, Any]:
        match = settled(match)
        row: dict[str, Any] = {
            "id": digest(match),
            "query": match.query,
            "start": moments.written(match.start, self.kind),
            "end": moments.written(match.end, self.kind),
            "events": [self._event(witness) for witness in match.events],
        }
        if match.boolean is not None:
            row["boolean"] = match.boolean
            row["events"] = None  # whichever match it is, the answer is the same
            row["start"] = None
        elif match.graph is not None:
            row["graph"] = triples_text(match.graph)
        else:
            row["bindings"] = _terms(match.bindings)
            for name, term in match.bindings.items():
                row[self.variables[name]] = plain(term)
        return row

    def _event(self, witness: Witness) -> dict[str, Any]:
        return {
            "gpm": witness.gpm,
            "stream": witness.stream,
            "time": moments.written(witness.time, self.kind),
            "ordinal": witness.ordinal,
            "name": None if witness.graph is None else plain(witness.graph),
            "bindings": _terms(witness.bindings),
        }


def columns_of(program: CompiledQueries, kind: TimeKind) -> Columns:
    """The columns of a program's matches."""
    taken = set(_FIXED)
    names: dict[str, str] = {}
    outputs = [query.plan.output for query in program.queries]
    for name in dict.fromkeys(c.name for output in outputs for c in output.columns):
        column = name
        while column.lower() in taken:
            column += "_"
        taken.add(column.lower())
        names[name] = column
    return Columns(names, frozenset(output.form for output in outputs), kind)


def plain(term: Term) -> str:
    """A term as people read it: an IRI or a lexical form alone, `_:label`."""
    return str(term) if isinstance(term, ox.BlankNode) else term.value


def _terms(bindings: Mapping[str, Term]) -> list[tuple[str, str]]:
    return [(name, str(term)) for name, term in bindings.items()]


# ------------------------------------------------------------------ what stays the same


def settled(match: Match) -> Match:
    """The match with blank nodes that are named by what they belong to."""
    names: dict[Term, Term] = {}
    for witness in match.events:
        for term in witness.bindings.values():
            if isinstance(term, ox.BlankNode) and term not in names:
                found = _MINTED.fullmatch(term.value)
                if found is not None:
                    event = event_digest(witness.stream, witness.time.micros, witness.ordinal)
                    names[term] = ox.BlankNode(f"e{event}b{found[1]}")
    if names:
        match = match.__replace__(
            bindings=_renamed(match.bindings, names),
            events=tuple(replace(w, bindings=_renamed(w.bindings, names)) for w in match.events),
        )
    if match.graph is not None:
        match = match.__replace__(graph=_settled_graph(match, names))
    return match


def _settled_graph(match: Match, names: Mapping[Term, Term]) -> tuple[Fact, ...]:
    own = f"m{digest(match)}n"

    def name(term: Term) -> Term:
        made = _MADE.fullmatch(term.value) if isinstance(term, ox.BlankNode) else None
        return names.get(term, term) if made is None else ox.BlankNode(own + made[1])

    assert match.graph is not None
    return tuple((name(s), p, name(o)) for s, p, o in match.graph)


def _renamed(bindings: Mapping[str, Term], names: Mapping[Term, Term]) -> dict[str, Term]:
    return {variable: names.get(term, term) for variable, term in bindings.items()}


def event_digest(stream: str, micros: int, ordinal: int) -> str:
    """What tells an event from all others: its place in its stream."""
    return blake2b(f"{stream} {micros} {ordinal}".encode(), digest_size=8).hexdigest()


def digest(match: Match) -> str:
    """What tells a match from all others: its query, its end, and what it is made of."""
    hashed = blake2b(f"{match.query} {match.end.micros}".encode(), digest_size=12)
    if match.boolean is None:
        for witness in match.events:
            place = f"\n{witness.gpm} {witness.stream} {witness.time.micros} {witness.ordinal}"
            hashed.update(place.encode())
            for name in sorted(witness.bindings):
                hashed.update(f" {name} {witness.bindings[name]}".encode())
        for name, term in match.bindings.items():
            hashed.update(f"\n{name} {term}".encode())
    return hashed.hexdigest()
