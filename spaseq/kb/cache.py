"""A bounded LRU cache of solutions by key, with expiry; it also caches absences.

Cost: constant per look-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from spaseq.kb.answer import Row
from spaseq.rdf.event import Term

Key: TypeAlias = "tuple[Term, ...]"


class KeyCache:
    """Solutions by the values they were requested for.

    Args:
        room: The maximum number of keys.
        keep: Seconds until solutions expire.
        keep_absent: Seconds until the absence of solutions expires.
        clock: Returns the current time in seconds.
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
        """The prefetched keys that no event has needed yet."""
        self.used = 0
        """The number of prefetched keys that an event has needed since."""

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: Key) -> Sequence[Row] | None:
        """The solutions, which may be empty; None if they are not cached or have expired."""
        entry = self._known.pop(key, None)
        ahead = key in self._ahead
        self._ahead.discard(key)
        if entry is None or entry[0] < self._clock():
            return None
        self.used += ahead
        self._known[key] = entry  # now the most recently used
        return entry[1]

    def has(self, key: Key) -> bool:
        """Whether the solutions are cached; does not count as a use."""
        entry = self._known.get(key)
        return entry is not None and entry[0] >= self._clock()

    def put(self, key: Key, rows: Sequence[Row], ahead: bool = False) -> None:
        """Cache the solutions of a key; `ahead` marks them as prefetched."""
        self._known.pop(key, None)
        self._known[key] = self._clock() + (self._keep if rows else self._keep_absent), rows
        if ahead:
            self._ahead.add(key)
        if len(self._known) > self._room:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._ahead.discard(oldest)
