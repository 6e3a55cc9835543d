"""The register file: how iterations and bindings change the registers of a partial match.

An environment is a list: one cell per register of the plan, then one cell per *view*, a register as
expressions see it (the value of an aggregate, not its state). Cells hold terms, None for unbound,
integers for `iterations` and `count`, opaque states for aggregates.

Invariant: only `refresh` fills in views, just before an expression reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import pyoxigraph as ox

from spaseq.plan.logical import QueryPlan, Register
from spaseq.plan.references import IS_FIRST
from spaseq.rdf.event import Term

XSD: Final = "http://www.w3.org/2001/XMLSchema#"
INTEGER: Final = ox.NamedNode(XSD + "integer")
TRUE: Final = ox.Literal("true", datatype=ox.NamedNode(XSD + "boolean"))
FALSE: Final = ox.Literal("false", datatype=ox.NamedNode(XSD + "boolean"))

# States of a `first` register besides a term. OPEN: its first iteration is running and has not
# bound the variable. VOID: its first iteration ended without binding it.
OPEN: Final = "open"
VOID: Final = "void"

Environment = list[Any]


class Aggregates(Protocol):
    """Running aggregates over terms: immutable, hashable states."""

    def start(self, name: str, separator: str | None, distinct: bool) -> Any: ...
    def add(self, state: Any, term: Term) -> Any: ...
    def finish(self, state: Any) -> Term | None: ...


class RegisterFile:
    """The registers of one plan, and the effect of each kind of event on them."""

    def __init__(self, plan: QueryPlan, aggregates: Aggregates):
        self.registers = plan.registers
        self.number = {register.name: n for n, register in enumerate(plan.registers)}
        self.partition = tuple(self.number[name] for name in plan.partition)
        self._aggregates = aggregates
        self._blank = [self._initial(register) for register in plan.registers]
        self.views: dict[str, int] = {}
        self._viewed: list[tuple[int, str]] = []
        for register in plan.registers:
            if register.kind in ("first", "aggregate", "count"):
                self._view(register.name, self.number[register.name], register.kind)
            elif register.kind == "iterations":
                self._view(f"{IS_FIRST}{register.unit}", self.number[register.name], "is first")
        self.scoped: list[list[tuple[int, Register]]] = [[] for _ in plan.units]
        self.following: list[list[tuple[int, Register]]] = [[] for _ in plan.units]
        dependents: dict[str, list[tuple[int, Register]]] = {}
        for n, register in enumerate(plan.registers):
            if register.scope is not None:
                self.scoped[register.scope].append((n, register))
            if register.unit is not None:
                self.following[register.unit].append((n, register))
            if register.kind in ("last", "first", "aggregate"):
                dependents.setdefault(register.variable, []).append((n, register))
        self._dependents = {
            n: dependents.get(register.variable, [])
            for n, register in enumerate(plan.registers)
            if register.kind == "value"
        }

    def slots(self) -> Mapping[str, int]:
        """The cell that an expression reads for each register: its own cell or its view's."""
        return {**self.number, **self.views}

    def cell_names(self) -> Sequence[str]:
        """The name by which expressions read each cell; that of its register if none does."""
        names = [register.name for register in self.registers]
        viewed = sorted((cell, name) for name, cell in self.views.items())
        return names + [name for _, name in viewed]

    def needed_views(self, reads: frozenset[str]) -> tuple[tuple[int, int, str], ...]:
        """The views to refresh before evaluating: (register, cell, kind)."""
        out = []
        for offset, (number, kind) in enumerate(self._viewed):
            if self.registers[number].name in reads:
                out.append((number, len(self.registers) + offset, kind))
        return tuple(out)

    def blank(self) -> Environment:
        return self._blank + [None] * len(self._viewed)

    def refresh(self, env: Environment, views: tuple[tuple[int, int, str], ...]) -> None:
        for number, cell, kind in views:
            value = env[number]
            if kind == "aggregate":
                env[cell] = self._aggregates.finish(value)
            elif kind == "count":
                env[cell] = ox.Literal(str(value), datatype=INTEGER)
            elif kind == "is first":
                env[cell] = TRUE if value == 1 else FALSE
            else:
                env[cell] = None if value is OPEN or value is VOID else value

    def enter(self, env: Environment, unit: int, again: bool) -> None:
        """Begin a run of the unit, or its next iteration."""
        for number, _ in self.scoped[unit]:
            env[number] = self._blank[number]
        for number, register in self.following[unit]:
            if register.kind == "previous":
                value = self.number[register.variable]
                env[number] = env[value] if again else None
            elif register.kind == "iterations":
                env[number] = _next(register, env[number]) if again else 1
        for number, register in self.following[unit]:
            if register.kind in ("value", "last"):
                env[number] = None
            elif register.kind == "first":
                env[number] = (
                    OPEN if env[number] is None else VOID if env[number] is OPEN else env[number]
                )

    def bind(self, env: Environment, number: int, value: Term) -> bool:
        """Bind a value register; False if it holds another value."""
        known = env[number]
        if known is not None:
            return bool(known == value)
        env[number] = value
        for other, register in self._dependents[number]:
            if register.kind == "last":
                env[other] = value
            elif register.kind == "aggregate":
                env[other] = self._aggregates.add(env[other], value)
            elif env[other] is OPEN:
                env[other] = value
        return True

    def _initial(self, register: Register) -> Any:
        if register.is_number:
            return 0
        if register.kind == "aggregate":
            return self._aggregates.start(register.function, register.separator, register.distinct)
        return None

    def _view(self, name: str, number: int, kind: str) -> None:
        self.views[name] = len(self.registers) + len(self._viewed)
        self._viewed.append((number, kind))


def _next(register: Register, number: int) -> int:
    """The next iteration's number, limited to the numbers that partial matches distinguish."""
    return min(number + 1, register.limit) if register.again is None else register.again
