"""Counters of one automaton, per place and in total; for diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Rows of each occurrence that disagreed with the bindings of a partial match."""
    untrue: Sequence[Sequence[int]]
    """Per occurrence and filter over partial matches: how often the filter was not true."""
    errors: Sequence[Sequence[ErrorCount]]
    """Per occurrence: the errors of its BINDs and then its filters over partial matches."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory of the partial matches of one automaton."""

    nodes: int
    """tECS nodes: an event counts once per step that it ends."""
    rows: int
    """Rows stored for guards and conjunctions."""
    bytes: int
    """An estimate."""
