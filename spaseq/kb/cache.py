"""What has been asked for, by key: bounded, for a time, absences too.

The least recently used go first. Cost: constant per look-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from spaseq.kb.answer import Row
from spaseq.rdf.event import Term

Key: TypeAlias = "tuple[Term, ...]"


class KeyCache:
    """Solutions by the values they were asked for with.

    Args:
        room: how many keys there may be.
        keep: seconds that solutions are good for, `keep_absent` that the lack of any is.
        clock: tells seconds.
    """

    def __init__(
        self,
        room: int,
        keep: float,
        keep_absent: float,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._room = room
        self._keep = keep
        self._keep_absent = keep_absent
        self._clock = clock
        self._known: dict[Key, tuple[float, Sequence[Row]]] = {}
        self._ahead: set[Key] = set()
        """Of the known keys, those that were asked for before anybody needed them."""
        self.used = 0
        """How many of these have been needed since."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Key) -> Sequence[Row] | None:
        """The solutions, none of them maybe; None if they are not known, or too old."""
        found = self._known.pop(key, None)
        ahead = key in self._ahead
        self._ahead.discard(key)
        if found is None or found[0] < self._clock():
            return None
        self.used += ahead
        self._known[key] = found  # the last in the order of use
        return found[1]

    def has(self, key: Key) -> bool:
        """Whether the solutions are known, as long as nobody needs them."""
        found = self._known.get(key)
        return found is not None and found[0] >= self._clock()

    def put(self, key: Key, rows: Sequence[Row], ahead: bool = False) -> None:
        """Keep the solutions of a key; `ahead`: nobody needs them yet."""
        self._known.pop(key, None)
        self._known[key] = self._clock() + (self._keep if rows else self._keep_absent), rows
        if ahead:
            self._ahead.add(key)
        if len(self._known) > self._room:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._ahead.discard(oldest)
