"""The division of a job into tasks: the tasks that need an event, and the task that owns a match.

A task is a pair of a part of the keys and a slice of time. A task needs the events of its part in
its slice and in the `lookback` before it. It owns the matches of its part that end in its slice.
So exactly one task reports each match, and that task has all events that the match depends on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.spark.chunks import Numbers
from spaseq.spark.keys import EVERYWHERE, part_of_match

_BEGINNING, _END = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Division:
    """A division.

    `cuts` holds, for each part, the times that separate its slices, in microseconds. Tasks are
    numbered part by part, and within a part slice by slice.
    """

    variables: tuple[str, ...]
    cuts: tuple[tuple[int, ...], ...]
    lookback: int = 0

    @property
    def parts(self) -> int:
        """The number of parts of the keys."""
        return len(self.cuts)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self.parts + sum(map(len, self.cuts))

    def firsts(self) -> Sequence[int]:
        """The first task of each part."""
        return list(accumulate((len(some) + 1 for some in self.cuts[:-1]), initial=0))

    def router(self) -> Router:
        """A router of this division."""
        return Router(self)

    def own(self, task: int) -> Own:
        """The description of the matches that a task owns."""
        firsts = self.firsts()
        part = bisect_right(firsts, task) - 1
        bounds = (_BEGINNING, *self.cuts[part], _END)
        place = task - firsts[part]
        return Own(bounds[place], bounds[place + 1], self.variables, part, self.parts)

    def owned(self, matches: Iterable[Match], task: int) -> Iterator[Match]:
        """The matches that a task owns."""
        return filter(self.own(task).has, matches)


@dataclass(frozen=True, slots=True)
class Own:
    """The matches of one part whose end is at least `first` and less than `behind`."""

    first: int
    behind: int
    variables: tuple[str, ...] = ()
    part: int = 0
    parts: int = 1

    def has(self, match: Match) -> bool:
        """Whether a match is among them."""
        return self.first <= match.end.micros < self.behind and (
            not self.variables or part_of_match(match, self.variables, self.parts) == self.part
        )


class Router:
    """Assigns events to tasks by part and time."""

    def __init__(self, division: Division):
        self._firsts = np.array(division.firsts(), np.int64)
        self._cuts = [np.array(cuts, np.int64) for cuts in division.cuts]
        self._sliced = [part for part, cuts in enumerate(division.cuts) if cuts]
        self._back = division.lookback

    def tasks(self, parts: Numbers, micros: Numbers) -> tuple[Numbers, Numbers]:
        """The tasks that need each event, as two columns: the index of an event, and a task.

        Event i belongs to part `parts[i]`, or to all parts if that is `EVERYWHERE`.
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
    """The cuts in ascending order, without cuts less than `apart` after the last retained one."""
    kept: list[int] = []
    for cut in sorted(set(cuts)):
        if not kept or cut - kept[-1] >= apart:
            kept.append(cut)
    return tuple(kept)
