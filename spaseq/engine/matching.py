"""The rows of events per task: each GPM is evaluated once per event, whoever asks."""

from __future__ import annotations

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.entailing import Entailed
from spaseq.engine.fitness import counts_events
from spaseq.gpm.match import Matchers
from spaseq.kb.snapshot import Kb
from spaseq.nfa.tecs import Row
from spaseq.plan.logical import QueryPlan
from spaseq.rdf.event import Event


class EventRows:
    """Evaluates tasks, and remembers the rows of the last event only."""

    def __init__(self, program: CompiledQueries, kb: Kb, entailed: Entailed):
        plans = [query.plan for query in program.queries]
        conditions = [
            condition.expression
            for plan in plans
            for occurrence in plan.occurrences
            for condition in occurrence.conditions
        ]
        counted = counts_events(program)
        horizon = _horizon(plans, counted)
        self.matchers = Matchers(program.tasks, kb, conditions, horizon, counted, entailed)
        self._event: Event | None = None
        self._known: dict[int, tuple[list[Row], list[Row]]] = {}

    def of(self, event: Event, task: int) -> tuple[list[Row], list[Row]]:
        """The rows of a task over an event: all of them, and those that pass its filters."""
        if event is not self._event:
            self._event = event
            self._known = {}
        known = self._known.get(task)
        if known is None:
            known = self._known[task] = self.matchers.rows(event, task)
        return known

    def evaluated(self) -> int:
        """Evaluations of a GPM over an event so far."""
        return sum(map(self.matchers.tried, range(len(self.matchers.patterns))))


def _horizon(plans: list[QueryPlan], counted: bool) -> int:
    """How far back, in microseconds or events, an event of a match may lie."""
    kinds = ("events",) if counted else ("span", "tumbling")
    return max((plan.window.size for plan in plans if plan.window.kind in kinds), default=0)
