"""Effects of rows on registers → tables for the compiled core.

A row binds registers; other registers follow them: the last and the first value over iterations,
and aggregates. A register that no partial match stores and no expression reads is needed only in
the output, which computes it from the match. Such registers are not followers here.

Invariant: the effects equal those of `RegisterFile` on an environment, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from spaseq.nfa.automaton import Action, Automaton
from spaseq.nfa.registers import RegisterFile
from spaseq.plan.logical import Occurrence, QueryPlan, Register
from spaseq.plan.references import identified

FORGET, COPY, NUMBER, AGAIN, OPEN = range(5)
"""The effect of an edge on a register, as `Change` in _tecs.pxd."""
LAST_VALUE, FIRST_VALUE, STATE = range(3)
"""How a register follows a value, as `Following` in _tecs.pxd."""
OPENED, NEVER_BOUND, FAILED = 2**32 - 1, 2**32 - 2, 2**32 - 3
"""Register contents that are not terms; see _tecs.pxd."""
ALWAYS_STORED = frozenset(("value", "previous", "last", "iterations", "mark"))

Effect = tuple[int, int, int]
Follower = tuple[int, int]
"""(how it follows, register)."""


class NativeRegisters:
    """The registers of one plan, as the core stores them."""

    def __init__(self, plan: QueryPlan, automaton: Automaton, registers: RegisterFile):
        self._plan = plan
        self._automaton = automaton
        self._registers = registers

    @cached_property
    def kept(self) -> frozenset[int]:
        """The registers that the core stores: those of partial matches and of expressions."""
        read = frozenset[str]().union(
            *(condition.reads for o in self._plan.occurrences for condition in o.conditions)
        )
        return frozenset(
            number
            for number, register in self._numbered()
            if register.kind in ALWAYS_STORED or number in self._live or register.name in read
        )

    @cached_property
    def _live(self) -> frozenset[int]:
        live = {register for place in self._automaton.places for register in place.live}
        live.update(register for guard in self._automaton.guards for register in guard.reads)
        return frozenset(live)

    def followers(self, name: str) -> Iterator[Follower]:
        """The registers that change when a variable is bound."""
        kinds = {"last": LAST_VALUE, "first": FIRST_VALUE, "aggregate": STATE}
        for number in self._followers.get(name, ()):
            kind = self._plan.registers[number].kind
            if kind in kinds and number in self.kept:
                yield kinds[kind], number

    def counts(self, occurrence: Occurrence) -> list[int]:
        """The registers that count the rows of an occurrence."""
        numbers = map(self._registers.number.__getitem__, occurrence.counts)
        return [number for number in numbers if number in self.kept]

    def keeps_rows(self, occurrence: Occurrence) -> bool:
        """Whether the terms of a row enter the window before the row is bound.

        A BIND or an aggregate computes terms from them, which must outlive the event.
        """
        variables = self._plan.gpms[occurrence.gpm].variables
        return bool(occurrence.assignments) or any(
            how != LAST_VALUE for name in variables for how, _ in self.followers(name)
        )

    def effects(self, action: Action) -> Iterator[Effect]:
        """The effects of `RegisterFile.enter`, register by register."""
        following = self._registers.following[action.unit]
        for number, _ in self._registers.scoped[action.unit]:
            yield FORGET, number, 0
        for number, register in following:
            if register.kind == "previous":
                value = self._registers.number[register.variable]
                yield (COPY, number, value) if action.again else (FORGET, number, 0)
            elif register.kind == "iterations":
                known = register.again if action.again else 1
                yield (AGAIN, number, register.limit) if known is None else (NUMBER, number, known)
        for number, register in following:
            if register.kind in ("value", "last"):
                yield FORGET, number, 0
            elif register.kind == "first":
                yield OPEN, number, 0

    def compared(self, gpm: int) -> Iterator[int]:
        """The columns whose term, not only its value, is compared with a register.

        A variable that a single step binds is exempt, as long as expressions read only its value.
        """
        read = self._identified.get(gpm, ())
        for column, name in enumerate(self._plan.gpms[gpm].variables):
            followers = {*self._followers.get(name, ()), self._registers.number[name]}
            joins = followers & self._live and not self._bound_once(name)
            if joins or any(self._plan.registers[n].name in read for n in followers):
                yield column

    @cached_property
    def _identified(self) -> Mapping[int, set[str]]:
        """Per GPM: the variables whose terms the conditions of its steps identify."""
        found: dict[int, set[str]] = {}
        for occurrence in self._plan.occurrences:
            for condition in occurrence.conditions:
                found.setdefault(occurrence.gpm, set()).update(identified(condition.expression))
        return found

    @cached_property
    def _followers(self) -> Mapping[str, list[int]]:
        """Variable → its registers."""
        found: dict[str, list[int]] = {}
        for number, register in self._numbered():
            found.setdefault(register.variable, []).append(number)
        return found

    @cached_property
    def _binding(self) -> Mapping[str, list[Occurrence]]:
        """Variable → the steps that bind it."""
        found: dict[str, list[Occurrence]] = {}
        for occurrence in self._plan.occurrences:
            for name in dict.fromkeys(bound_by(self._plan, occurrence)):
                found.setdefault(name, []).append(occurrence)
        return found

    def _bound_once(self, name: str) -> bool:
        """Whether a single step that does not iterate binds a variable."""
        binding = self._binding.get(name, ())
        return len(binding) == 1 and not binding[0].units

    def _numbered(self) -> Iterator[tuple[int, Register]]:
        return iter(enumerate(self._plan.registers))


def bound_by(plan: QueryPlan, occurrence: Occurrence) -> tuple[str, ...]:
    """The variables that a row of an occurrence binds: those of its pattern, then its BINDs."""
    assigned = (assignment.variable for assignment in occurrence.assignments)
    return (*plan.gpms[occurrence.gpm].variables, *assigned)
