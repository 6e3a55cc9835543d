"""The queries of a run that drain: they continue their partial matches and begin no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spaseq.engine.instants import QueryRun
    from spaseq.engine.run_query import RunQuery


class Draining:
    """The states that drain, and when they were last checked."""

    def __init__(self) -> None:
        self.states: set[QueryRun] = set()
        """Those that drain."""
        self._checked_at: int | None = None

    def update(self, states: Iterable[QueryRun]) -> None:
        """Find the states that drain among those of the run."""
        self.states = {state for state in states if state.drains}

    def add(self, state: QueryRun) -> None:
        """Add a state, if it drains."""
        if state.drains:
            self.states.add(state)

    def is_due(self, closed: int) -> bool:
        """Whether a query may have drained since the last check, which now takes place.

        Args:
            closed: The time before which all timestamps are closed.
        """
        if closed == self._checked_at:
            return False
        self._checked_at = closed
        return True

    def over(self, queries: Iterable[RunQuery], closed: int) -> list[str]:
        """The names of the queries that have drained."""
        over = {state for state in self.states if state.has_drained(closed)}
        return [query.plan.name for query in queries if query.state in over]

    def shown(self, queries: Iterable[RunQuery]) -> dict[str, str]:
        """The name in the run of each query that drains, and its name in matches."""
        plans = [query.plan for query in queries if query.state in self.states]
        return {plan.name: plan.shown for plan in plans}
