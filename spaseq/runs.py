"""`Run`: one evaluation of a program, whose state can be saved and inspected."""

from __future__ import annotations

from typing import Any

from spaseq.engine._alone import alone
from spaseq.engine.checkpoint import save
from spaseq.engine.entailment import widened_patterns
from spaseq.engine.pushes import Pushes
from spaseq.explain import report as explanation
from spaseq.explain import why_not
from spaseq.explain.joining import joined_so_far


class Run(Pushes):
    """One evaluation of a `Program`; made by `Program.start`."""

    @alone
    def save(self) -> bytes:
        """The whole state as a versioned blob, from which `Program.resume` continues.

        Cost: linear in the state.
        """
        self.settle()
        return save(self)

    @property
    @alone
    def stats(self) -> dict[str, Any]:
        """The counters of the run: events, triples, matches, groups, per stream and place.

        `spaseq.explain.why_not.statistics` describes the keys. Cost: linear in the state.
        """
        self.settle()
        return why_not.statistics(self)

    @alone
    def explain(self) -> str:
        """The plan as text, with the observed cost and results of each graph pattern so far."""
        matchers = self.rows.matchers
        tasks = range(len(self.program.tasks))
        return explanation.explain(
            self.program,
            [matchers.observed(task) for task in tasks],
            widened_patterns(
                self.program, {seen: graphs.rules for seen, graphs in self.entailed.items()}
            ),
            [joined_so_far(query.native) for query in self.queries],
        )

    @alone
    def why_not(self, query: str | None = None) -> str:
        """How far each pattern got, and why places did not advance.

        Args:
            query: The name of a query; None for all.

        Raises:
            ValueError: if no query has the name.
        """
        self.settle()
        return why_not.why_not(self, query)
