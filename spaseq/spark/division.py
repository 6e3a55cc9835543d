"""How a job is divided: its tasks, which of them an event goes to, which owns a match.

A task is a part of the keys and a slice of time. An event goes to the tasks of its parts
whose slice it lies in, or less than `lookback` in front of; a match belongs to the task of its
key in whose slice it ends. So each match is found once, by a task that has all it depends on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from spaseq.results import Match
from spaseq.spark.keys import EVERYWHERE, part_of_match

_BEGINNING, _END = -(2**63), 2**63


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

    def slice_of(self, task: int) -> tuple[int, int, int]:
        """(part, first time, time behind) of a task."""
        firsts = self.firsts()
        part = bisect_right(firsts, task) - 1
        bounds = (_BEGINNING, *self.cuts[part], _END)
        place = task - firsts[part]
        return part, bounds[place], bounds[place + 1]

    def owned(self, matches: Iterable[Match], task: int) -> Iterator[Match]:
        """The matches that are the task's to give."""
        part, first, behind = self.slice_of(task)
        for match in matches:
            if first <= match.end.micros < behind and (
                not self.variables or part_of_match(match, self.variables, self.parts) == part
            ):
                yield match


class Router:
    """Tasks by part and time."""

    def __init__(self, division: Division):
        self._division = division
        self._firsts = division.firsts()

    def tasks(self, parts: Collection[int], micros: int) -> list[int]:
        """The tasks that need an event of some parts at a time."""
        if EVERYWHERE in parts:
            parts = range(len(self._firsts))
        cuts, back = self._division.cuts, self._division.lookback
        found: list[int] = []
        for part in parts:
            if not cuts[part]:
                found.append(self._firsts[part])
                continue
            own = bisect_right(cuts[part], micros)
            last = bisect_right(cuts[part], micros + back)
            found.extend(range(self._firsts[part] + own, self._firsts[part] + last + 1))
        return found


def spaced(cuts: Iterable[int], apart: int) -> tuple[int, ...]:
    """Rising cuts, those left out that are not `apart` from the one before."""
    kept: list[int] = []
    for cut in sorted(set(cuts)):
        if not kept or cut - kept[-1] >= apart:
            kept.append(cut)
    return tuple(kept)
