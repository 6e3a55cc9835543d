"""The rows of recent events, per GPM, which guards, `&` and `AND` search.

Invariant: entries are in the order of their instant numbers. `evict` removes the entries before the
window's first instant, in amortised constant time per entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.nfa.match_path import Row
from spaseq.rdf.event import Event


@dataclass(frozen=True, slots=True)
class Entry:
    """An event in which a GPM has rows."""

    instant: int
    event: Event
    rows: tuple[Row, ...]


class Buffer:
    """The entries of one GPM, oldest first."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._instants: list[int] = []
        self._gone = 0

    def append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self._instants.append(entry.instant)

    def between(self, low: int, high: int) -> Iterator[Entry]:
        """Entries with low < instant < high, newest first."""
        first = bisect_right(self._instants, low, self._gone)
        for position in range(bisect_left(self._instants, high, first) - 1, first - 1, -1):
            yield self.entries[position]

    def evict(self, bound: int) -> None:
        """Remove the entries before instant number `bound`."""
        self._gone = bisect_left(self._instants, bound, self._gone)
        if self._gone > 64 and self._gone * 2 > len(self.entries):
            del self.entries[: self._gone]
            del self._instants[: self._gone]
            self._gone = 0

    def kept(self) -> list[Entry]:
        """The entries not evicted, oldest first."""
        return self.entries[self._gone :]
