"""How a job is divided: its tasks, which of them an event goes to, which owns a match.

A task is a part of the keys and a slice of time. An event goes to the tasks of its parts
whose slice it lies in, or less than `lookback` in front of; a match belongs to the task of its
key in whose slice it ends. So each match is found once, by a task that has all it depends on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from spaseq.results import Match
from spaseq.spark.chunks import Numbers
from spaseq.spark.keys import EVERYWHERE, part_of_match

_BEGINNING, _END = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Division:
    """`cuts` has, for each part, the times between its slices; tasks count slice after slice."""

    variables: tuple[str, ...]
    cuts: tuple[tuple[int, ...], ...]
    lookback: int = 0

    @property
    def parts(self) -> int:
        """How many parts the keys are divided into."""
        return len(self.cuts)

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return self.parts + sum(map(len, self.cuts))

    def firsts(self) -> Sequence[int]:
        """The first task of each part."""
        return list(accumulate((len(some) + 1 for some in self.cuts[:-1]), initial=0))

    def router(self) -> Router:
        """Sends events where they belong."""
        return Router(self)

    def own(self, task: int) -> Own:
        """Which matches are a task's to give."""
        firsts = self.firsts()
        part = bisect_right(firsts, task) - 1
        bounds = (_BEGINNING, *self.cuts[part], _END)
        place = task - firsts[part]
        return Own(bounds[place], bounds[place + 1], self.variables, part, self.parts)

    def owned(self, matches: Iterable[Match], task: int) -> Iterator[Match]:
        """The matches that are the task's to give."""
        return filter(self.own(task).has, matches)


@dataclass(frozen=True, slots=True)
class Own:
    """The matches that end from `first` on and before `behind`, with a key of one part."""

    first: int
    behind: int
    variables: tuple[str, ...] = ()
    part: int = 0
    parts: int = 1

    def has(self, match: Match) -> bool:
        """Whether a match is one of them."""
        return self.first <= match.end.micros < self.behind and (
            not self.variables or part_of_match(match, self.variables, self.parts) == self.part
        )


class Router:
    """Tasks by part and time."""

    def __init__(self, division: Division):
        self._firsts = np.array(division.firsts(), np.int64)
        self._cuts = [np.array(cuts, np.int64) for cuts in division.cuts]
        self._sliced = [part for part, cuts in enumerate(division.cuts) if cuts]
        self._back = division.lookback

    def tasks(self, parts: Numbers, micros: Numbers) -> tuple[Numbers, Numbers]:
        """The tasks that need events of some parts at some times: pairs (place, task).

        The i-th event is of part `parts[i]`, or of all of them.
        """
        places = np.arange(len(parts))
        everywhere = parts == EVERYWHERE
        if everywhere.any():
            count = len(self._firsts)
            spread = np.flatnonzero(everywhere)
            kept = np.flatnonzero(~everywhere)
            places = np.concatenate([kept, np.repeat(spread, count)])
            parts = np.concatenate([parts[kept], np.tile(np.arange(count), len(spread))])
            micros = micros[places]
        own = np.zeros(len(parts), np.int64)
        last = own.copy()
        for part in self._sliced:
            some = np.flatnonzero(parts == part)
            cuts = self._cuts[part]
            own[some] = np.searchsorted(cuts, micros[some], "right")
            last[some] = np.searchsorted(cuts, micros[some] + self._back, "right")
        times = last - own + 1
        first = np.repeat(np.cumsum(times) - times, times)
        within = np.arange(len(first)) - first
        return np.repeat(places, times), np.repeat(self._firsts[parts] + own, times) + within


def spaced(cuts: Iterable[int], apart: int) -> tuple[int, ...]:
    """Rising cuts, those left out that are not `apart` from the one before."""
    kept: list[int] = []
    for cut in sorted(set(cuts)):
        if not kept or cut - kept[-1] >= apart:
            kept.append(cut)
    return tuple(kept)
