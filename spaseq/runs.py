"""A `Run`: one evaluation of a program, with its state to save and to look into."""

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
        """The whole state as a versioned blob; `Program.resume` goes on from it."""
        self.settle()
        return save(self)

    @property
    @alone
    def stats(self) -> dict[str, Any]:
        """Counters: events, triples, matches, groups of partial matches, per stream and place."""
        self.settle()
        return why_not.statistics(self)

    @alone
    def explain(self) -> str:
        """The plan as text, with what each graph pattern has cost and found so far."""
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
        """How far each pattern got: which places hold partial matches, which saw none."""
        self.settle()
        return why_not.why_not(self, query)
