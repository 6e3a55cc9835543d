"""Counters of one automaton, per place and in total; for diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from spaseq.nfa.automaton import Place
from spaseq.rdf.error_count import ErrorCount
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class PlaceCounters:
    """One place. Its counters run since the run was started or resumed."""

    number: int
    place: Place
    groups: int
    """Waiting groups."""
    reached: int
    """Nodes that entered the place."""
    unkeyed: int
    """Rows that leave a partition variable unbound."""
    early: int
    """Events that arrived while no group was waiting."""
    unjoined: int
    """Rows that agree with no waiting group on the index."""
    visited: int
    """Groups that rows were compared with."""
    joined: int
    """Candidates that were joined."""
    passed_over: int
    """Candidates that the operator rejected for every partial match."""
    forbidden: int
    """Candidates that a guard rejected for every partial match."""
    outside: int
    """Candidates that arrived after the window had closed."""
    expired: int
    """Groups that expired."""
    ended: int
    """Groups that a guard decided on sight removed."""
    shed: int
    """Groups that were shed under a limit."""


@dataclass(frozen=True, slots=True)
class CoreCounts:
    """What a core counts that is no part of its state: another core that replaces it adds this."""

    places: Sequence[Mapping[str, int]]
    """Per place, the fields of `PlaceCounters` but for those of its state."""
    disagreed: Sequence[int]
    """Rows of each occurrence that disagreed with the bindings of a partial match."""
    untrue: Sequence[Sequence[int]]
    """Per occurrence and filter over partial matches: how often the filter was not true."""
    errors: Sequence[Sequence[ErrorCount]]
    """Per occurrence: the errors of its BINDs and then its filters over partial matches."""
    switches: int
    """How often it has begun or ceased to join rows lazily."""
    searched: int
    """Rows that lazy joins have examined."""
    sampled: int
    """Rows that trials of lazy joins have examined."""


@dataclass(frozen=True, slots=True)
class AutomatonCounters:
    """One automaton."""

    places: Sequence[PlaceCounters]
    waiting: int
    """Matches that wait for their windows to close."""
    waited: int
    """Matches that ever waited for their windows to close."""
    forbidden: int
    """Waiting matches that a guard removed."""
    disagreed: Sequence[int]
    """As in `CoreCounts`, and the following."""
    untrue: Sequence[Sequence[int]]
    errors: Sequence[Sequence[ErrorCount]]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the partial matches of one automaton."""

    nodes: int
    """tECS nodes: an event counts once per step that it ends."""
    rows: int
    """Rows stored for guards and conjunctions."""
    bytes: int
    """An estimate."""


@dataclass(frozen=True, slots=True)
class StateCounters:
    """What the statistics say of one state, and of several ones: a state that queries share, once.

    `MEANINGS` has the meaning of each.
    """

    groups: int = 0
    nodes: int = 0
    buffered_rows: int = 0
    bytes: int = 0
    shed_groups: int = 0

    @classmethod
    def of(cls, counters: AutomatonCounters, memory: MemoryUse, shed: int) -> StateCounters:
        """The counters of one state, of which `shed` groups were dropped."""
        groups = sum(place.groups for place in counters.places)
        return cls(groups, memory.nodes, memory.rows, memory.bytes, shed)

    def __add__(self, other: StateCounters) -> StateCounters:
        names = MEANINGS.keys()
        return StateCounters(*(getattr(self, name) + getattr(other, name) for name in names))

    def as_data(self) -> dict[str, int]:
        """The counters by name."""
        return {name: getattr(self, name) for name in MEANINGS}


MEANINGS = {
    "groups": "groups of partial matches that wait at the end",
    "nodes": "nodes of the shared structure that stores their events",
    "buffered_rows": "solutions kept for negations and conjunctions",
    "bytes": "estimated memory of all these",
    "shed_groups": "groups dropped by --on-limit shed",
}
"""Field of `StateCounters` → its meaning."""
assert list(MEANINGS) == [field.name for field in fields(StateCounters)]
