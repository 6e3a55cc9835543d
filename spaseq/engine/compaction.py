"""Runs without a window: what partial matches that have ended leave behind → given back.

The core frees the memory of a stretch of the stream when the window has passed over it; without
a window that is never. So when its steps and terms take twice what they took the last time, the
state is taken out and put back: only what may still match comes along.

Invariant: what a run finds and counts is the same. Cost: linear in the living state, each time
that as much again has come; between that, a comparison for each call.
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.engine.instants import QueryRun
from spaseq.engine.pattern_rows import EventRows

LEAST = 1 << 22
"""Bytes that are not worth it."""
EVERY = 256
"""Events between two looks."""


class Condensing:
    """Looks after the queries of one run."""

    def __init__(self, queries: Sequence[QueryRun], rows: EventRows):
        self._queries = queries
        self._rows = rows
        self._endless = any(query.plan.window.kind == "unbounded" for query in queries)
        self._next = 0
        self._most = 0

    def look(self, events: int) -> None:
        """A call begins, after so many events, and nobody is taking matches."""
        if not self._endless or events < self._next:
            return
        self._next = events + EVERY
        if self._held() <= max(self._most, LEAST):
            return
        self._rows.matchers.forget_terms()
        for query in self._queries:
            query.renew(self._rows.matchers)
        self._most = 2 * self._held()

    def _held(self) -> int:
        held = sum(query.native.core.tecs.bytes for query in self._queries)
        return held + self._rows.matchers.window.bytes
