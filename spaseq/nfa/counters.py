"""How one automaton is doing: what happened in its places, and what it holds. For people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaseq.nfa.automaton import Place


@dataclass(frozen=True, slots=True)
class PlaceStanding:
    """One place; what happened there is counted since the run was started or resumed."""

    number: int
    place: Place
    groups: int
    """Those that wait."""
    reached: int
    """Nodes that came to wait."""
    unkeyed: int
    """Rows that leave a partition variable unbound."""
    early: int
    """Events that found nobody waiting."""
    unjoined: int
    """Rows that no waiting group agrees with on the index."""
    visited: int
    """Groups that rows were compared with."""
    joined: int
    """Candidates that were taken."""
    passed_over: int
    """Candidates that the operator kept from every partial match."""
    forbidden: int
    """Candidates that a guard kept from every partial match."""
    outside: int
    """Candidates that came when the window had closed."""
    expired: int
    """Groups that the window passed over."""
    ended: int
    """Groups that a guard decided on sight has ended."""
    shed: int
    """Groups that went because there was too much."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One automaton."""

    places: Sequence[PlaceStanding]
    waiting: int
    """Matches that wait for their windows to close."""
    waited: int
    """Matches that ever did."""
    forbidden: int
    """Those of them that a guard has ended."""
    disagreed: Sequence[int]
    """Rows of each occurrence that did not agree with the bindings of a partial match."""
    untrue: Sequence[Sequence[int]]
    """For each occurrence, and each filter over partial matches: how often it was not true."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What the partial matches of one automaton take."""

    nodes: int
    """Events, each as often as it is on top of other partial matches."""
    rows: int
    """Those that guards and conjunctions look back at."""
    bytes: int
    """An estimate."""
