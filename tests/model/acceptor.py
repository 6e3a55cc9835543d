"""Whether an occurrence accepts a row in the context of a partial match.

LANGUAGE section 3 (docs/language.md): the row's mapping must be compatible with the
bindings, then stateful BINDs run in order, then every filter must be true. In `&` and
`AND` groups the rows of all operands are joined first, so that filters of either may name
the other's variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spaseq.nfa.match_path import Row
from spaseq.nfa.registers import Environment, RegisterFile
from spaseq.nfa.replay import Compiled, Evaluate, LinkedOccurrence, Test
from spaseq.plan.logical import Occurrence, QueryPlan
from spaseq.rdf.event import Event, Term

Views = tuple[tuple[int, int, str], ...]


class Acceptor(LinkedOccurrence):
    """One occurrence, linked to the register file of its plan."""

    def __init__(
        self,
        plan: QueryPlan,
        occurrence: Occurrence,
        registers: RegisterFile,
        compiled: Compiled,
        scope_of: Callable[[Event], Any],
    ):
        super().__init__(plan, occurrence, registers, compiled, scope_of)
        self._columns = tuple(enumerate(self.numbers[: len(plan.gpms[self.gpm].variables)]))
        self._assignments: Sequence[tuple[Evaluate, Views, int]] = tuple(
            (
                evaluate,
                registers.needed_views(assignment.value.reads),
                registers.number[assignment.variable],
            )
            for evaluate, assignment in zip(
                compiled.assignments, occurrence.assignments, strict=True
            )
        )
        self._residual: Sequence[tuple[Test, Views]] = tuple(
            (test, registers.needed_views(condition.reads))
            for test, condition in zip(compiled.residual, occurrence.residual, strict=True)
        )
        # Why rows were rejected since the run started or resumed; only for reports.
        self.disagreed = 0
        """Rows that did not agree with the bindings of a partial match."""
        self.untrue = [0] * len(self._residual)
        """Per residual filter: how often it was not true."""

    def join(self, env: Environment, row: Row) -> bool:
        """Bind the row's variables; False if one disagrees (env is then unusable)."""
        bind = self._registers.bind
        for column, number in self._columns:
            value = row[column]
            if value is not None and not bind(env, number, value):
                self.disagreed += 1
                return False
        for number in self._counts:
            env[number] += 1
        return True

    def assign(self, env: Environment, row: Row, event: Event) -> Row | None:
        """Run the stateful BINDs: the row with their values, or None if one does not join."""
        if not self._assignments:
            return row
        scope = self._scope_of(event)
        values: list[Term | None] = []
        for evaluate, views, number in self._assignments:
            self._registers.refresh(env, views)
            value = evaluate(env, scope)
            if value is not None and not self._registers.bind(env, number, value):
                return None
            values.append(value)
        return (*row, *values)

    def test(self, env: Environment, event: Event) -> bool:
        """Whether every residual filter is true."""
        if not self._residual:
            return True
        scope = self._scope_of(event)
        for number, (test, views) in enumerate(self._residual):
            if views:
                self._registers.refresh(env, views)
            if not test(env, scope):
                self.untrue[number] += 1
                return False
        return True

    def accept(self, env: Environment, row: Row, event: Event) -> Row | None:
        """Join, assign and test at once; the extended row, or None."""
        if not self.join(env, row):
            return None
        extended = self.assign(env, row, event)
        if extended is None or not self.test(env, event):
            return None
        return extended
