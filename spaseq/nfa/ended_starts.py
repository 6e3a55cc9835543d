"""`AFTER MATCH SKIP TO`: the first instants of which there may be no further match.

A match drops the partial matches that begin at its own first instant and, with `FIRST X` or
`LAST X`, those that begin before the event that it took for X. The core shares partial matches of
different starts, so it still finds the matches of a start that has ended; the output drops them.
Intervals of starts are kept apart for each partition, disjoint and in order.

Cost: logarithmic in the intervals of a partition for each match found; memory: the starts that have
ended inside the window.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from spaseq.nfa.match_path import Key, Path
from spaseq.plan.logical import SkipTo

EXPIRE_MIN_INTERVALS = 256

Interval = tuple[tuple[Any, ...], int, int]
"""(partition, first start that has ended, first one after it that has not)."""


class EndedStarts:
    """The starts that have ended, of one run."""

    def __init__(self, skip: SkipTo):
        self.skip = skip
        self._starts: dict[Key, list[int]] = {}
        self._ends: dict[Key, list[int]] = {}
        self.watched = False
        """Whether `fresh` has a reader."""
        self.fresh: list[Interval] = []
        """The intervals since the reader took the last ones."""
        self._open: list[Interval] = []
        """Ended by the matches of the current instant, which do not affect each other."""
        self._count = 0
        self._expire_at = EXPIRE_MIN_INTERVALS

    def has(self, key: Key, start: int) -> bool:
        """Whether a start of a partition has ended at an earlier instant."""
        starts = self._starts.get(key)
        if not starts:
            return False
        at = bisect_right(starts, start) - 1
        return at >= 0 and start < self._ends[key][at]

    def later(self, key: Key, start: int, until: int) -> None:
        """End the starts from `start` to before `until`, and `start` itself, after this instant."""
        self._open.append((key, start, max(until, start + 1)))

    def settle(self, bound: int) -> None:
        """Begin another instant; matches can no longer start before `bound`."""
        for key, start, until in self._open:
            self._add(key, start, until)
        if self.watched:
            self.fresh += self._open
        self._open.clear()
        if self._count > self._expire_at:
            self._expire(bound)
            self._expire_at = 2 * self._count + EXPIRE_MIN_INTERVALS

    def until(self, path: Path) -> int:
        """The first start after that of a match which the match does not end."""
        if self.skip.target == "next":
            return path.start + 1
        taken = [
            witness.instant
            for step in path.steps
            for witness in step.witnesses
            if witness.occurrence in self.skip.occurrences
        ]
        if not taken:
            return path.start + 1
        return min(taken) if self.skip.target == "first" else max(taken)

    def left(self, paths: Iterable[Path]) -> list[Path]:
        """The matches whose starts have not ended."""
        return [path for path in paths if not self.has(path.key, path.start)]

    def dump(self, bound: int) -> Iterator[Interval]:
        """The intervals that may still matter; settles the current instant."""
        self.settle(bound)
        for key, starts in self._starts.items():
            for start, end in zip(starts, self._ends[key], strict=True):
                if end > bound:
                    yield key, start, end

    def load(self, intervals: Iterable[Interval]) -> None:
        """Restore what `dump` listed."""
        for key, start, end in intervals:
            self._add(key, start, end)
            if self.watched:
                self.fresh.append((key, start, end))

    def _add(self, key: Key, start: int, until: int) -> None:
        starts, ends = self._starts.setdefault(key, []), self._ends.setdefault(key, [])
        first = bisect_left(ends, start)
        last = bisect_right(starts, until)
        if first < last:
            start, until = min(start, starts[first]), max(until, ends[last - 1])
        self._count += 1 - (last - first)
        starts[first:last], ends[first:last] = [start], [until]

    def _expire(self, bound: int) -> None:
        for key in list(self._starts):
            gone = bisect_right(self._ends[key], bound)
            del self._starts[key][:gone], self._ends[key][:gone]
            if not self._starts[key]:
                del self._starts[key], self._ends[key]
        self._count = sum(map(len, self._starts.values()))
