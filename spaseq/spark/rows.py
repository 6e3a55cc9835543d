"""Matches → rows of a DataFrame, and what the columns are.

`id`, `query`, `start`, `end`, a column of text for each projected variable, then whatever the
queries' forms need of `bindings`, `graph` and `boolean`, and `events`, the provenance. A row
says the same whichever task makes it, so that it can be told from others: blank nodes are
named by their event, those of CONSTRUCT by the match, and `id` is a digest of what the match
is made of. Cost: constant per term of a match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any, TypeAlias

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
_NONE: Mapping[Term, Term] = {}
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
            columns = self._columns(some)
            arrays = [
                columns[field.name]
                if isinstance(columns[field.name], pa.Array)
                else pa.array(columns[field.name], field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _columns(self, matches: Sequence[Match]) -> dict[str, Any]:
        """The values of columns by name, as lists or as arrays."""
        known: dict[int, _Shown] = {}
        found: dict[str, list[Any]] = {name: [] for name in self.schema().names}
        bindings, events = _Maps(), _Events(self.kind)
        for match in matches:
            shown = []
            for witness in match.events:
                one = known.get(id(witness))
                if one is None:  # `matches` keeps the witnesses, so none has the place of another
                    one = known[id(witness)] = _shown(witness)
                shown.append(one)
            match = settled(match, shown)
            texts = list(map(str, match.bindings.values()))
            found["id"].append(_digest(match, shown, texts))
            found["query"].append(match.query)
            found["end"].append(moments.written(match.end, self.kind))
            if match.boolean is None:
                found["start"].append(moments.written(match.start, self.kind))
                events.add(shown)
            else:
                found["start"].append(None)  # whichever match it is, the answer is the same
                events.add(None)
            if "ask" in self.forms:
                found["boolean"].append(match.boolean)
            if "construct" in self.forms:
                found["graph"].append(None if match.graph is None else triples_text(match.graph))
            is_solution = match.boolean is None and match.graph is None
            solution = match.bindings if is_solution else None
            if "select" in self.forms:
                bindings.add(solution, texts)
            for name, column in self.variables.items():
                term = None if solution is None else solution.get(name)
                found[column].append(None if term is None else plain(term))
        arrays = {"bindings": bindings.array(), "events": events.array()}
        return found | {name: array for name, array in arrays.items() if name in found}


class _Maps:
    """Mappings of texts, one behind the other."""

    def __init__(self) -> None:
        self._ends: list[int | None] = []
        self._keys: list[str] = []
        self._items: list[str] = []

    def add(self, keys: Iterable[str] | None, items: Iterable[str]) -> None:
        """One more; None for a null."""
        if keys is None:
            self._ends.append(None)
        else:
            self._ends.append(len(self._keys))
            self._keys += keys
            self._items += items

    def array(self) -> pa.Array:
        """All of them."""
        return pa.MapArray.from_arrays(
            pa.array([*self._ends, len(self._keys)], pa.int32()),
            pa.array(self._keys, pa.string()),
            pa.array(self._items, pa.string()),
        )


class _Events:
    """The events of matches, one behind the other."""

    def __init__(self, kind: TimeKind) -> None:
        self._ends: list[int | None] = []
        self._shown: list[_Shown] = []
        self._kind = kind

    def add(self, some: Sequence[_Shown] | None) -> None:
        """Those of one more match; None for a null."""
        self._ends.append(None if some is None else len(self._shown))
        self._shown += some or ()

    def array(self) -> pa.Array:
        """All of them."""
        witnesses = [shown[0] for shown in self._shown]
        bindings = _Maps()
        for witness, texts, *_ in self._shown:
            bindings.add(witness.bindings, texts)
        times = [moments.written(witness.time, self._kind) for witness in witnesses]
        names = [None if w.graph is None else _name(w) for w in witnesses]
        events = pa.StructArray.from_arrays(
            [
                pa.array([witness.gpm for witness in witnesses], pa.string()),
                pa.array([witness.stream for witness in witnesses], pa.string()),
                pa.array(times, moments.arrow_type(self._kind)),
                pa.array([witness.ordinal for witness in witnesses], pa.int64()),
                pa.array(names, pa.string()),
                bindings.array(),
            ],
            names=["gpm", "stream", "time", "ordinal", "name", "bindings"],
        )
        ends = pa.array([*self._ends, len(self._shown)], pa.int32())
        return pa.ListArray.from_arrays(ends, events)


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


# ------------------------------------------------------------------ what stays the same


_Shown: TypeAlias = tuple[Witness, Sequence[str], str, Mapping[Term, Term]]
"""A witness as rows have it, worked out once for all matches it is part of.

With it go the texts of its bindings, blank nodes named by the event; what a digest is made of;
and the names of its blank nodes by those that its task made up.
"""


def _shown(witness: Witness) -> _Shown:
    bound, nodes = witness.bindings, _nodes(witness)
    if nodes:
        bound = _renamed(bound, nodes)
    texts = list(map(str, bound.values()))
    pairs = "".join([f" {name} {text}" for name, text in sorted(zip(bound, texts, strict=True))])
    place = f"\n{witness.gpm} {witness.stream} {witness.time.micros} {witness.ordinal}{pairs}"
    return witness, texts, place, nodes


def _nodes(witness: Witness) -> Mapping[Term, Term]:
    for term in witness.bindings.values():
        if isinstance(term, ox.BlankNode):
            break
    else:
        return _NONE
    names: dict[Term, Term] = {}
    event = event_digest(witness.stream, witness.time.micros, witness.ordinal)
    for term in witness.bindings.values():
        found = _MINTED.fullmatch(term.value) if isinstance(term, ox.BlankNode) else None
        if found is not None:
            names[term] = ox.BlankNode(f"e{event}b{found[1]}")
    return names


def _name(witness: Witness) -> str:
    """The name of an event; a blank node is named by the event, wherever it was read."""
    assert witness.graph is not None
    name = plain(witness.graph)
    if isinstance(witness.graph, ox.BlankNode) and _MINTED.fullmatch(witness.graph.value):
        return f"_:e{event_digest(witness.stream, witness.time.micros, witness.ordinal)}"
    return name


def settled(match: Match, shown: Sequence[_Shown]) -> Match:
    """The match with blank nodes that are named by what they belong to."""
    names: dict[Term, Term] = {}
    for *_, nodes in shown:
        if nodes:
            names |= nodes
    if names:
        match = replace(match, bindings=_renamed(match.bindings, names))
    if match.graph is not None:
        match = replace(match, graph=_settled_graph(match, shown, names))
    return match


def _settled_graph(
    match: Match, shown: Sequence[_Shown], names: Mapping[Term, Term]
) -> tuple[Fact, ...]:
    own = f"m{_digest(match, shown, list(map(str, match.bindings.values())))}n"

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


def _digest(match: Match, shown: Sequence[_Shown], texts: Sequence[str]) -> str:
    """What tells a match from all others: its query, its end, and what it is made of.

    `texts` are the values of its solution.
    """
    parts = [f"{match.query} {match.end.micros}"]
    if match.boolean is None:
        parts += [place for _, _, place, _ in shown]
        parts += [f"\n{name} {text}" for name, text in zip(match.bindings, texts, strict=True)]
    return blake2b("".join(parts).encode(), digest_size=12).hexdigest()
