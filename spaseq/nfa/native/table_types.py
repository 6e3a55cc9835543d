"""The types of the tables that the compiled core runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from spaseq.nfa.automaton import Link, Relation
from spaseq.nfa.native.conjunction_tables import SearchTables
from spaseq.nfa.native.lazy_join_tables import ChainTables
from spaseq.nfa.native.register_tables import Effect, Follower
from spaseq.nfa.native.straight_edges import StraightTables

Range = tuple[int, int]
Index = tuple[list[int], int]
"""(Positions of the live registers that an index reads, position of the register it orders by or
-1)."""

RELATIONS: tuple[Relation, ...] = ("less", "equal", "greater")
DEADLINE = "d"  # operator of the places that wait for a deadline
CLOSING = "w"  # operator of the places where matches wait for their windows to close


class EdgeRow(NamedTuple):
    """An edge of a place, as `Edge` in _tecs.pxd; ranges refer to the lists beside it."""

    occurrence: int
    effects: int
    effects_end: int
    links: int
    links_end: int
    lookup: int
    keys: int
    keys_end: int
    compared: int
    relation: int
    whole: bool
    decided: bool
    strict: bool
    within: int
    marks: int
    marks_end: int
    limits: int
    limits_end: int


@dataclass(slots=True)
class CoreTables:
    """An automaton as rows of numbers; ranges are (first, end) of the named list."""

    size: int
    tumbling: bool
    counted: bool
    endless: bool
    """Whether the query has no window."""
    windows: int
    """How many windows back a search may reach."""
    lookback: int
    """Microseconds before the window that a search may begin; -1: none."""
    clocked: bool
    """Whether guards read times in a window that does not hold them."""
    cells: int
    """Cells of an environment: registers, then views of some of them."""
    kept: frozenset[int]
    """The registers that the core stores."""
    places: list[tuple[str | None, int, int, list[Index], int]] = field(default_factory=list)
    """(operator, live registers as a range of `numbers`, indexes, first edge)."""
    floors: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Place whose groups have floors → (position of the floor among the live registers, column with
    the rank of a row, greatest rank)."""
    edges: list[EdgeRow] = field(default_factory=list)
    """(occurrence or, over several graph patterns, the greatest number; effects; links; index or 0;
    key columns; column that a range index compares; its position in `RELATIONS`; `joins_whole`;
    whether there is a `deciding_operator`; whether it excludes equality; bound, or time to a
    deadline, in microseconds or -1; marks; limits)."""
    links: list[tuple[int, int, int]] = field(default_factory=list)
    bounds: list[tuple[int, int, int]] = field(default_factory=list)
    limits: list[tuple[int, int]] = field(default_factory=list)
    """(first register of the mark, microseconds) of bounded units."""
    effects: list[Effect] = field(default_factory=list)
    bindings: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(column of a row, register, its followers as a range of `followers`)."""
    followers: list[Follower] = field(default_factory=list)
    occurrences: list[tuple[int, int, int, int, int, bool, bool]] = field(default_factory=list)
    """(bindings of its columns as a range, end of the bindings of its BINDs, which come next,
    counting registers as a range of `numbers`, whether its terms enter the window before the row is
    bound, whether it has residual filters)."""
    numbers: list[int] = field(default_factory=list)
    ways: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(place, edge, index of a conjunction and its columns as a range) by GPM."""
    way_first: list[int] = field(default_factory=list)
    required: list[int] = field(default_factory=list)
    """Columns that a row must bind, by GPM."""
    required_first: list[int] = field(default_factory=list)
    compared: list[int] = field(default_factory=list)
    """Columns that are compared with registers, by GPM."""
    compared_first: list[int] = field(default_factory=list)
    eager_guards: list[tuple[int, int, int, int, int, bool]] = field(default_factory=list)
    """(place, occurrence, index or 0, key columns, whether negated) of guards decided on sight, by
    GPM."""
    eager_first: list[int] = field(default_factory=list)
    deadlines: list[tuple[int, bool, bool]] = field(default_factory=list)
    """(place that waits for a deadline, whether the deadline may end a match, whether it begins an
    iteration)."""
    behind: list[int] = field(default_factory=list)
    """By GPM, places that wait for a deadline after which rows of the GPM are read."""
    behind_first: list[int] = field(default_factory=list)
    partition: list[list[int]] = field(default_factory=list)
    """Per GPM the columns of a partition key; empty if the GPM lacks one of its variables."""
    partition_registers: list[int] = field(default_factory=list)
    """The registers that hold a partition key."""
    edge_gpms: list[list[int]] = field(default_factory=list)
    """Per edge the GPMs of its step."""
    width: int = 0
    """Number of columns of a partition key."""
    tracked: bool = False
    """Whether strict contiguity needs the events of each partition."""
    adjacent: bool = False
    """Whether any operator is strict, so that events without matches count."""
    recorded: bool = False
    """Whether strict contiguity also needs the instants of these events."""
    apart: bool = False
    """Whether each partition skips past its own matches."""
    closing: list[Link] = field(default_factory=list)
    """The links to the places after the automaton's own, where matches wait."""
    firsts: list[Range] = field(default_factory=list)
    """(iteration register, cell that holds whether it is the first iteration)."""
    straight: StraightTables = field(default_factory=StraightTables)
    search: SearchTables = field(default_factory=SearchTables)
    chain: ChainTables = field(default_factory=ChainTables)
