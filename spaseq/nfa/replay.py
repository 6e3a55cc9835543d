"""Replay of matches: an occurrence linked to the register file of its plan.

The core accepts rows. This module recomputes the registers of its matches, and evaluates the
expressions that have no native form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spaseq.nfa.match_path import Row
from spaseq.nfa.registers import Environment, RegisterFile
from spaseq.plan.logical import Occurrence, QueryPlan
from spaseq.rdf.event import Event, Term
from spaseq.records import dataclass

Evaluate = Callable[[Environment, Any], Term | None]
Test = Callable[[Environment, Any], bool | None]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The expressions of one occurrence as functions of (environment, scope of the event)."""

    assignments: tuple[Evaluate, ...]
    residual: tuple[Test, ...]


class LinkedOccurrence:
    """One occurrence, linked to the register file of its plan."""

    def __init__(
        self,
        plan: QueryPlan,
        occurrence: Occurrence,
        registers: RegisterFile,
        compiled: Compiled,
        scope_of: Callable[[Event], Any],
    ):
        gpm = plan.gpms[occurrence.gpm]
        self.gpm = occurrence.gpm
        self.name = gpm.name
        self.index = occurrence.index
        self.assigned = occurrence.assignments
        self.residual = occurrence.residual
        self.variables = (*gpm.variables, *(a.variable for a in occurrence.assignments))
        self.numbers = tuple(registers.number[name] for name in self.variables)
        """The registers of the variables."""
        self._registers = registers
        self._counts = tuple(registers.number[name] for name in occurrence.counts)
        self._compiled = compiled
        self._scope_of = scope_of

    def replay(self, env: Environment, row: Row) -> None:
        """Bind an accepted row again, including its stateful BINDs."""
        own = len(self.numbers) - len(self.assigned)
        self._bind(env, self.numbers[:own], row[:own])
        for number in self._counts:
            env[number] += 1
        self._bind(env, self.numbers[own:], row[own:])

    def _bind(self, env: Environment, numbers: tuple[int, ...], row: Row) -> None:
        for number, value in zip(numbers, row, strict=True):
            if value is not None:
                self._registers.bind(env, number, value)

    def valuation(self, number: int) -> Callable[[Environment, Any], Term | None]:
        """One stateful BIND, for environments whose views the caller refreshes."""
        evaluate, scope_of = self._compiled.assignments[number], self._scope_of
        return lambda env, event: evaluate(env, scope_of(event))

    def question(self, number: int) -> Test:
        """One residual filter, None where it errs; the caller refreshes the views."""
        test, scope_of = self._compiled.residual[number], self._scope_of
        return lambda env, event: test(env, scope_of(event))
