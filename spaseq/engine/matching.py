"""The rows of events per task: each GPM is evaluated once per event, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.engine.compiled import GpmTask
from spaseq.gpm.expression import Scope, compile_filter
from spaseq.gpm.match import Matcher
from spaseq.kb.snapshot import Kb
from spaseq.nfa.tecs import Row
from spaseq.rdf.event import Event


class EventRows:
    """Evaluates tasks, and remembers the rows of the last event only."""

    def __init__(self, tasks: Sequence[GpmTask], kb: Kb):
        self._kb = kb
        self.matchers = [Matcher(task.program, kb) for task in tasks]
        self._filters = [
            [
                compile_filter(
                    condition.expression,
                    {name: column for column, name in enumerate(task.program.variables)},
                )
                for condition in task.local
            ]
            for task in tasks
        ]
        self._event: Event | None = None
        self._known: dict[int, tuple[list[Row], list[Row]]] = {}
        self.evaluated = 0
        """Evaluations of a GPM over an event so far."""
        self.tried = [0] * len(tasks)
        """Per task: evaluations so far."""
        self.found = [0] * len(tasks)
        """Per task: rows of its pattern so far."""
        self.untrue = [[0] * len(task.local) for task in tasks]
        """Per task and local filter: rows for which it was not true."""

    def of(self, event: Event, task: int) -> tuple[list[Row], list[Row]]:
        """The rows of a task over an event: all of them, and those that pass its filters."""
        if event is not self._event:
            self._event = event
            self._known = {}
        known = self._known.get(task)
        if known is None:
            self.evaluated += 1
            self.tried[task] += 1
            rows = self.matchers[task].rows(event)
            scope = Scope(event, self._kb, self.matchers[task].program.kb_graphs)
            kept = rows
            self.found[task] += len(rows)
            for number, test in enumerate(self._filters[task]):
                passed = [row for row in kept if test(row, scope)]
                self.untrue[task][number] += len(kept) - len(passed)
                kept = passed
            known = self._known[task] = (rows, kept)
        return known
