"""The state of one automaton as plain data, to be saved and loaded into another core.

Shared data is written once: labels, nodes and unions are in lists, and references are positions in
them. `spaseq/nfa/native/_tecs.pxd` and `spaseq/nfa/native/_tecs.pxd` define their meaning.

Invariants: a reference points backwards, so reading needs no recursion; expired data is omitted; no
number depends on the run that wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spaseq.rdf.checked import (
    GREATEST,
    LEAST,
    MOST,
    listed,
    record,
    refuse,
    text,
    whole,
    wholes,
)
from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.event import Event, Term

Number = int
"""A term as its position among the terms plus 1, 0 for none, negative for special values."""
Cell = int | list[Any]
"""The content of a register: a number, a count, or the cells of an aggregate that has several."""
NOTHING = -1
"""Marks an absent position."""

Dates = tuple[int, int, int, int, Sequence[Sequence[int]]]
"""The members of a group by last instant; see `CoreParts.groups`."""


class ClockState(NamedTuple):
    """Instants and the window over them; see `CoreParts.clock`."""

    now: int
    bound: int
    start: int
    micros: int
    times: Sequence[Sequence[int]]
    bounds: Sequence[Sequence[int]]
    clock: Sequence[Sequence[int]]


class LabelState(NamedTuple):
    """An event that matched a place of the sequence, with one of its rows."""

    place: int
    position: int
    instant: int
    micros: int
    dated: int
    line: int
    stream: int
    file: int
    ordinal: int
    name: Number
    stamp: Number
    part: int
    parts: int
    row: Sequence[Number]


class NodeState(NamedTuple):
    """All partial matches that end with a label."""

    label: int
    before: int
    start: int


class UnionState(NamedTuple):
    """A union of nodes: its own node and two sides."""

    latest: int
    node: int
    left: int
    right: int


class GroupState(NamedTuple):
    """The partial matches that wait in a place with equal registers."""

    place: int
    values: Sequence[Cell]
    members: int
    taken: bool
    dates: Dates | None
    floor: Number = 0
    """The floor that the group has after the open instant; 0: the group goes on as it is."""


class NodeAt(NamedTuple):
    """A node that enters a place, or begins a match there, when the instant closes."""

    place: int
    values: Sequence[Cell]
    node: int


class AwaitedState(NamedTuple):
    """A match that waits for its window to close."""

    place: int
    values: Sequence[Cell]
    start: int
    labels: Sequence[int]


class BufferedRow(NamedTuple):
    """A buffered row; `keyed`: it binds all partition variables."""

    gpm: int
    keyed: bool
    label: int


class PartitionState(NamedTuple):
    """The instants of a partition, and the least start of a match there."""

    key: Sequence[Number]
    instants: Sequence[int]
    skipped: int


class EndedState(NamedTuple):
    """Starts of a partition that `AFTER MATCH SKIP TO` has ended: `first` to before `end`."""

    key: Sequence[Number]
    first: int
    end: int


@dataclass(slots=True)
class AutomatonState:
    """The state of one automaton."""

    clock: ClockState
    skipped: int
    """No match may start before this instant."""
    waited: int
    """Matches that ever waited for their windows to close."""
    forbidden: int
    """Waiting matches that a guard removed."""
    terms: list[Term] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    labels: list[LabelState] = field(default_factory=list)
    graph: list[NodeState | UnionState] = field(default_factory=list)
    groups: list[GroupState] = field(default_factory=list)
    pending: list[NodeAt] = field(default_factory=list)
    begun: list[NodeAt] = field(default_factory=list)
    awaited: list[AwaitedState] = field(default_factory=list)
    complete: list[int] = field(default_factory=list)
    """Nodes that end matches not yet delivered."""
    kept: list[BufferedRow] = field(default_factory=list)
    """Buffered rows, the oldest of each graph pattern first."""
    recalled: list[tuple[int, int, Event]] = field(default_factory=list)
    """(instant, stream, event) of the events that filters may read."""
    partitions: list[PartitionState] = field(default_factory=list)
    ended: list[EndedState] = field(default_factory=list)
    chained: list[float] | None = None
    """The strategy of a lazy join; see `CoreParts.strategy`."""
    last_start: tuple[int, int] | None = None
    """(instant, microseconds) after which no match may start; None: there is no such bound."""

    @property
    def bytes(self) -> int:
        """Estimated bytes in a core, including indexes, excluding terms."""
        cells = sum(len(label.row) for label in self.labels)
        registers = sum(len(group.values) for group in self.groups)
        waiting = sum(len(match.labels) for match in self.awaited)
        return (
            sum(_BYTES[type(item)] for item in self.graph)
            + len(self.labels) * _BYTES[LabelState]
            + len(self.groups) * _BYTES[GroupState]
            + len(self.awaited) * _BYTES[AwaitedState]
            + len(self.kept) * _BYTES[BufferedRow]
            + 4 * (cells + registers)
            + 8 * waiting
        )

    def written(self, writer: Writer) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            **{name: getattr(self, name) for name in ("skipped", "waited", "forbidden", "files")},
            # Tuples become lists in JSON.
            **{name: getattr(self, name) for name in ("graph", *_ROWS)},
            "clock": self.clock,
            "terms": list(map(writer.term, self.terms)),
            "complete": self.complete,
            "chained": self.chained,
            "last start": self.last_start,
            "recalled": [
                [instant, stream, writer.event(event)] for instant, stream, event in self.recalled
            ],
        }


_BYTES = {
    NodeState: 32,
    UnionState: 48,
    LabelState: 80,
    GroupState: 80,
    AwaitedState: 40,
    BufferedRow: 24,
}
"""Bytes of each record without its variable part; see _tecs.pxd and _tecs.pxd."""
_ROWS: dict[str, type[Any]] = {
    "labels": LabelState,
    "groups": GroupState,
    "pending": NodeAt,
    "begun": NodeAt,
    "awaited": AwaitedState,
    "kept": BufferedRow,
    "partitions": PartitionState,
    "ended": EndedState,
}
_TYPES: dict[str, list[list[type]]] = {
    "labels": [[int] * 13 + [list]],
    "groups": [
        [int, list, int, bool, dates, *floor]
        for dates in (type(None), list)
        for floor in ([], [int])
    ],
    "pending": [[int, list, int]],
    "begun": [[int, list, int]],
    "awaited": [[int, list, int, list]],
    "kept": [[int, bool, int]],
    "partitions": [[list, list, int]],
    "ended": [[list, int, int]],
}
"""The types of the fields of each record. A reader that knows the automaton checks list items."""
_GRAPH: dict[int, type[NodeState | UnionState]] = {3: NodeState, 4: UnionState}
"""Node or union, by the number of fields."""
_FIELDS = ("skipped", "waited", "forbidden", "files", "graph", "clock", "terms", "complete")


def read(data: Any, reader: Reader) -> AutomatonState:
    """Read the output of `AutomatonState.written`.

    Checks the shape. The core that loads the state checks that it fits the automaton.

    Raises:
        StateError: for any other data.
    """
    record(data, "automaton", (*_FIELDS, *_ROWS, "chained", "last start", "recalled"))
    now, bound, start, micros, times, bounds, clock = listed(data["clock"], "clock", 7)
    return AutomatonState(
        clock=ClockState(
            whole(now, "clock", -1),
            whole(bound, "clock"),
            whole(start, "clock"),
            whole(micros, "clock", LEAST, GREATEST),
            [wholes(pair, "clock", LEAST, GREATEST, 2) for pair in listed(times, "clock")],
            [wholes(pair, "clock", 0, MOST, 2) for pair in listed(bounds, "clock")],
            [wholes(pair, "clock", LEAST, GREATEST, 2) for pair in listed(clock, "clock")],
        ),
        skipped=whole(data["skipped"], "skipped"),
        waited=whole(data["waited"], "waited"),
        forbidden=whole(data["forbidden"], "forbidden"),
        terms=[reader.term(number, "terms") for number in listed(data["terms"], "terms")],
        files=[text(name, "files") for name in listed(data["files"], "files")],
        graph=[_graph_item(row) for row in listed(data["graph"], "graph")],
        complete=wholes(data["complete"], "complete"),
        chained=None if data["chained"] is None else _numbers(data["chained"], "chained"),
        last_start=None if data["last start"] is None else _last_start(data["last start"]),
        recalled=[
            (instant, stream, reader.event(number, "recalled"))
            for instant, stream, number in (
                wholes(row, "recalled", length=3) for row in listed(data["recalled"], "recalled")
            )
        ],
        **{name: _rows(data[name], name) for name in _ROWS},
    )


def _last_start(data: Any) -> tuple[int, int]:
    instant, micros = listed(data, "last start", 2)
    return whole(instant, "last start", -1), whole(micros, "last start", LEAST, GREATEST)


def _graph_item(row: Any) -> NodeState | UnionState:
    numbers = wholes(row, "graph", NOTHING)
    if len(numbers) not in _GRAPH:
        refuse("graph", "there is an item that is neither a node nor a union")
    return _GRAPH[len(numbers)](*numbers)


def _rows(data: Any, name: str) -> list[Any]:
    """Rows of one kind, whose fields are integers, flags, and lists of these."""
    kind = _ROWS[name]
    types = _TYPES[name]
    found = []
    for row in listed(data, name):
        if type(row) is not list or list(map(type, row)) not in types:
            refuse(name, f"there is an item that is not a {kind.__name__}")
        found.append(kind(*row))
    return found


def _numbers(data: Any, where: str) -> list[float]:
    for item in listed(data, where):
        if type(item) not in (bool, int, float):
            refuse(where, "an item is not a number")
    found: list[float] = data
    return found
