"""Strict contiguity: which instants have events, of all partitions or of one.

Instants are numbered densely, so without `PARTITION BY` two instants are next to each
other iff their numbers are. With it, an event belongs to a partition iff some GPM that
reads its stream has a row with that key (LANGUAGE section 4, docs/language.md).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise

from model.candidates import Candidate
from model.group import Group, PlaceState
from model.registers import Registers
from spaseq.nfa.match_path import Key


class Contiguity:
    """The instants of each partition that are still inside the window."""

    def __init__(self, registers: Registers):
        self._registers = registers
        self._partitioned = bool(registers.partition)
        self.instants: dict[Key, list[int]] = {}

    def add(self, instant: int, keys: Iterable[Key]) -> None:
        for key in keys:
            known = self.instants.setdefault(key, [])
            if not known or known[-1] != instant:
                known.append(instant)

    def before(self, key: Key, instant: int) -> int:
        """The latest instant before `instant` with an event (of the partition); -1: none."""
        if not self._partitioned:
            return instant - 1
        known = self.instants.get(key, [])
        position = bisect_left(known, instant)
        return known[position - 1] if position else -1

    def threshold(self, candidate: Candidate) -> int:
        """The minimum last instant of a partial match that the candidate follows strictly."""
        return self.before(self._registers.key(candidate.env), candidate.first)

    def still_followed(
        self, state: PlaceState, groups: Iterable[Group], instant: int
    ) -> list[Group]:
        """Drop the groups of a `,` place that an event of their partition has passed over."""
        alive = []
        for group in list(groups):
            newest = -1 if group.chain is None else group.chain.node.last
            if newest < self.before(self._registers.key(group.env), instant):
                state.drop(group)
            else:
                alive.append(group)
        return alive

    def contiguous(self, key: Key, instants: list[int]) -> bool:
        """Whether no other instant with an event lies between successive ones of these."""
        if not self._partitioned:
            return all(b - a <= 1 for a, b in pairwise(instants))
        known = self.instants.get(key, [])
        return all(
            bisect_left(known, b) - bisect_right(known, a) <= 0 for a, b in pairwise(instants)
        )

    def evict(self, bound: int) -> None:
        """Remove instants before `bound`, which no partial match reaches."""
        for key in list(self.instants):
            known = self.instants[key]
            position = bisect_left(known, bound)
            if position == len(known):
                del self.instants[key]
            elif position > 0:
                del known[:position]
