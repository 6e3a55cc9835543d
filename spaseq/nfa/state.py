"""What one automaton remembers, as plain data: to be saved, and to be put into another core.

What is shared is written once: labels, nodes and unions stand in lists, and others refer to them by
their positions. See `spaseq/nfa/_tecs.pxd` and `spaseq/nfa/_groups.pxd` for what they mean.

Invariants: a reference points backwards, so reading needs no recursion; of what the window has
passed over nothing is there; no number depends on the run it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.event import Event, Term

Number = int
"""A term as its position among the terms plus 1, 0 for none, or less for what is no term."""
Cell = int | list[Any]
"""What a register holds: a number, a count, or the cells of an aggregate that has several."""
NOTHING = -1
"""In place of a position."""

Dates = tuple[int, int, int, int, Sequence[Sequence[int]]]
"""The members of a group by their last instants; see `CoreParts.groups`."""


class ClockState(NamedTuple):
    """Instants, and the window over them; see `CoreParts.clock`."""

    now: int
    bound: int
    start: int
    micros: int
    times: Sequence[Sequence[int]]
    bounds: Sequence[Sequence[int]]


class LabelState(NamedTuple):
    """An event that met a place of the sequence, with one of its rows."""

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
    """A union of nodes: one of its own, and two sides."""

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


class NodeAt(NamedTuple):
    """A node that comes to wait, or to begin, in a place when the instant closes."""

    place: int
    values: Sequence[Cell]
    node: int


class AwaitedState(NamedTuple):
    """A match that waits for its window to close."""

    place: int
    values: Sequence[Cell]
    start: int
    labels: Sequence[int]


class KeptRow(NamedTuple):
    """A row that is looked back at; `keyed`: it binds all partition variables."""

    gpm: int
    keyed: bool
    label: int


class PartitionState(NamedTuple):
    """The instants of a partition, and the least start of a match there."""

    key: Sequence[Number]
    instants: Sequence[int]
    skipped: int


@dataclass(slots=True)
class AutomatonState:
    """The state of one automaton."""

    clock: ClockState
    skipped: int
    """No match may start before that instant."""
    waited: int
    """Matches that ever waited for their windows to close."""
    forbidden: int
    """Those of them that a guard has ended."""
    terms: list[Term] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    labels: list[LabelState] = field(default_factory=list)
    graph: list[NodeState | UnionState] = field(default_factory=list)
    groups: list[GroupState] = field(default_factory=list)
    pending: list[NodeAt] = field(default_factory=list)
    begun: list[NodeAt] = field(default_factory=list)
    awaited: list[AwaitedState] = field(default_factory=list)
    complete: list[int] = field(default_factory=list)
    """Nodes that end matches nobody has taken yet."""
    kept: list[KeptRow] = field(default_factory=list)
    """The oldest of each graph pattern first."""
    recalled: list[tuple[int, int, Event]] = field(default_factory=list)
    """(instant, stream, event) of those that filters may look at."""
    partitions: list[PartitionState] = field(default_factory=list)
    chained: list[float] | None = None
    """How a chain is joined; see `CoreParts.chained`."""

    @property
    def bytes(self) -> int:
        """About what it takes in a core, indexes included, terms not."""
        cells = sum(len(label.row) for label in self.labels)
        registers = sum(len(group.values) for group in self.groups)
        waiting = sum(len(match.labels) for match in self.awaited)
        return (
            sum(_BYTES[type(item)] for item in self.graph)
            + len(self.labels) * _BYTES[LabelState]
            + len(self.groups) * _BYTES[GroupState]
            + len(self.awaited) * _BYTES[AwaitedState]
            + len(self.kept) * _BYTES[KeptRow]
            + 4 * (cells + registers)
            + 8 * waiting
        )

    def written(self, writer: Writer) -> dict[str, Any]:
        """As JSON-able data."""
        return {
            **{name: getattr(self, name) for name in ("skipped", "waited", "forbidden", "files")},
            **{name: list(map(list, getattr(self, name))) for name in ("graph", *_ROWS)},
            "clock": list(self.clock),
            "terms": list(map(writer.term, self.terms)),
            "complete": self.complete,
            "chained": self.chained,
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
    KeptRow: 24,
}
"""Of each, the terms and labels of variable number left out; see _tecs.pxd and _groups.pxd."""
_ROWS: dict[str, type[Any]] = {
    "labels": LabelState,
    "groups": GroupState,
    "pending": NodeAt,
    "begun": NodeAt,
    "awaited": AwaitedState,
    "kept": KeptRow,
    "partitions": PartitionState,
}
_GRAPH: dict[int, type[NodeState | UnionState]] = {3: NodeState, 4: UnionState}
"""By how many fields there are."""


def read(data: dict[str, Any], reader: Reader) -> AutomatonState:
    """What `AutomatonState.written` wrote."""
    return AutomatonState(
        clock=ClockState(*data["clock"]),
        skipped=data["skipped"],
        waited=data["waited"],
        forbidden=data["forbidden"],
        terms=list(map(reader.term, data["terms"])),
        files=data["files"],
        graph=[_GRAPH[len(row)](*row) for row in data["graph"]],
        complete=data["complete"],
        chained=data["chained"],
        recalled=[
            (instant, stream, reader.event(number)) for instant, stream, number in data["recalled"]
        ],
        **{name: [kind(*row) for row in data[name]] for name, kind in _ROWS.items()},
    )
