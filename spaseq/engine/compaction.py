"""Compaction of runs without a window: frees the memory of partial matches that have ended.

With a window, the core frees a part of the stream when the window has passed it. Without a window
it never does. When the steps and terms of such a run have doubled since the last compaction, the
run saves its live state and restores it into fresh structures.

Invariant: matches and counters do not change. Cost: linear in the live state per doubling;
otherwise one comparison per call.
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.engine.instants import QueryRun
from spaseq.engine.pattern_rows import EventRows

COMPACTION_MIN_BYTES = 1 << 22
"""Below this size, compaction costs more than it frees."""
CHECK_INTERVAL_EVENTS = 256
"""The number of events between two checks of the size."""


class Compaction:
    """Compacts the queries of one run."""

    def __init__(self, queries: Sequence[QueryRun], rows: EventRows):
        self._queries = dict.fromkeys(queries)
        self._rows = rows
        self._endless = sum(map(_is_endless, queries))
        self._next_check = 0
        self._threshold = 0

    def add(self, query: QueryRun) -> None:
        """Also compact a query that is added."""
        self._queries[query] = None
        self._endless += _is_endless(query)

    def remove(self, query: QueryRun) -> None:
        """Compact a query no longer, and free what it leaves at the next check."""
        del self._queries[query]
        self._endless -= _is_endless(query)
        self._next_check = self._threshold = 0

    def is_due(self, events: int) -> bool:
        """Whether the state has doubled.

        Args:
            events: The number of events so far.
        """
        if not self._endless or events < self._next_check:
            return False
        self._next_check = events + CHECK_INTERVAL_EVENTS
        return self._bytes() > max(self._threshold, COMPACTION_MIN_BYTES)

    def compact(self) -> None:
        """Compact; call it between two events, while no iterator over matches is open."""
        self._rows.matchers.forget_terms()
        for query in self._queries:
            query.renew(self._rows.matchers)
        self._threshold = 2 * self._bytes()

    def _bytes(self) -> int:
        steps = sum(query.native.core.tecs.bytes for query in self._queries)
        return steps + self._rows.matchers.window.bytes


def _is_endless(query: QueryRun) -> bool:
    return query.plan.window.is_endless
