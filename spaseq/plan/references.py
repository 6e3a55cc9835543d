"""References across iterations → registers.

The meaning of a name depends on the place (docs/language.md, "Iteration"): inside its iterated
unit a group variable is the current iteration's value, outside it is the last iteration's, and
aggregates range over the iterations visible at the place. A `Resolver` rewrites an expression of
one place so that every such reference becomes a plain variable that names a register, and
collects the registers that the query needs.

Invariant: a rewritten expression contains no `Prev` and no `Aggregate`. Every variable in it
names a register; a variable without a register is unbound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaseq.parser import ast
from spaseq.plan.logical import Condition, IteratedUnit, Register
from spaseq.sparql.builtins import XSD

IS_FIRST = "first iteration of "
"""Prefix of the boolean variable that is true in the first iteration of its unit."""


def iteration_register(unit: int) -> str:
    return f"iteration of unit {unit}"


def mark_registers(bounded: int) -> tuple[str, str]:
    """The high and the low half of the time from which the bound of a unit counts."""
    return f"high mark of bound {bounded}", f"low mark of bound {bounded}"


def identified(expression: ast.Expr) -> set[str]:
    """The variables whose terms may affect an expression, beyond their numeric values.

    The other variables are only operands of order comparisons or arithmetic, for which equal
    values are interchangeable.
    """
    if isinstance(expression, ast.Binary):
        by_value = expression.operator in ("<", "<=", ">", ">=", "+", "-", "*", "/")
        return set[str]().union(
            *(
                identified(side)
                for side in (expression.left, expression.right)
                if not (by_value and isinstance(side, ast.Var))
            )
        )
    return {node.name for node in ast.walk(expression) if isinstance(node, ast.Var)}


class Resolver:
    """Rewrites the expressions of one query and collects the registers they need."""

    def __init__(
        self,
        units: Sequence[IteratedUnit],
        group_variables: Mapping[str, int],
        gpm_units: Mapping[str, tuple[int, ...]],
    ):
        self._units = units
        self._group = group_variables
        self._gpm_units = gpm_units
        self.registers: dict[str, Register] = {}

    def value(self, variable: str) -> str:
        """The register of a variable's own value (current iteration, or join variable)."""
        unit = self._group.get(variable)
        return self._need(Register(variable, "value", variable, unit, None))

    def bare(self, variable: str, place: tuple[int, ...]) -> str:
        """The register of `?v` at a place inside the iterated units `place`."""
        unit = self._group.get(variable)
        if unit is None or unit in place:
            return self.value(variable)
        return self._ranged("last", variable, unit, place)

    def condition(self, expression: ast.Expr, place: tuple[int, ...], text: str = "") -> Condition:
        """The expression over registers, for a place inside the iterated units `place`."""
        rewritten: ast.Expr = self._rewrite(expression, place)
        named = {node.name for node in ast.walk(rewritten) if isinstance(node, ast.Var)}
        reads = named & self.registers.keys()
        reads |= {
            iteration_register(int(name.removeprefix(IS_FIRST)))
            for name in named
            if name.startswith(IS_FIRST)
        }
        return Condition(rewritten, frozenset(reads), text)

    def iterations(self, unit: int, limit: int) -> str:
        """The register that numbers the iterations of a unit, exactly up to `limit`."""
        name = iteration_register(unit)
        known = self.registers.get(name)
        top = max(limit, known.limit if known else 0)
        self.registers[name] = Register(name, "iterations", unit=unit, limit=top)
        return name

    def mark(self, bounded: int) -> None:
        """Add the registers of the time from which the bound of a unit counts, side by side."""
        for name in mark_registers(bounded):
            self._need(Register(name, "mark"))

    def _need(self, register: Register) -> str:
        self.registers.setdefault(register.name, register)
        return register.name

    def _scope(self, unit: int | None, place: tuple[int, ...]) -> int | None:
        """The innermost unit strictly around `unit` that also contains the place."""
        parent = self._units[unit].parent if unit is not None else None
        while parent is not None and parent not in place:
            parent = self._units[parent].parent
        return parent

    def _ranged(
        self,
        kind: Any,
        variable: str,
        unit: int,
        place: tuple[int, ...],
        aggregate: ast.Aggregate | None = None,
    ) -> str:
        scope = self._scope(unit, place)
        seen = "the match" if scope is None else f"unit {scope}"
        self.value(variable)
        if aggregate is None:
            name = f"{kind.upper()}(?{variable}) in {seen}"
            return self._need(Register(name, kind, variable, unit, scope))
        distinct = "DISTINCT " if aggregate.distinct else ""
        name = f"{aggregate.name}({distinct}?{variable}) in {seen}"
        if aggregate.separator is not None:
            name += f" by {aggregate.separator!r}"
        return self._need(
            Register(
                name,
                "aggregate",
                variable,
                unit,
                scope,
                aggregate.name,
                aggregate.distinct,
                aggregate.separator,
            )
        )

    def _aggregate(self, node: ast.Aggregate, place: tuple[int, ...]) -> ast.Var:
        argument = node.argument
        if isinstance(argument, ast.GpmName):
            unit = self._common_unit(argument.name)
            scope = self._scope(unit, place)
            seen = "the match" if scope is None else f"unit {scope}"
            name = f"COUNT({argument.name}) in {seen}"
            return ast.Var(
                self._need(Register(name, "count", argument.name, unit, scope)), node.span
            )
        assert isinstance(argument, ast.Var)
        unit = self._group[argument.name]
        if node.name == "LAST":
            return ast.Var(self.bare(argument.name, place), node.span)
        if node.name == "FIRST":
            return ast.Var(self._ranged("first", argument.name, unit, place), node.span)
        return ast.Var(
            self._ranged("aggregate", argument.name, unit, place, aggregate=node), node.span
        )

    def _common_unit(self, gpm: str) -> int | None:
        """The smallest iterated unit that contains every place of the GPM."""
        shared = self._gpm_units[gpm]
        return shared[-1] if shared else None

    def _prev(self, node: ast.Prev, place: tuple[int, ...]) -> ast.Expr:
        variable = node.variable.name
        unit = self._group[variable]
        self.value(variable)
        name = f"PREV(?{variable})"
        previous = ast.Var(self._need(Register(name, "previous", variable, unit)), node.span)
        if node.default is None:
            return previous
        self.iterations(unit, 2)
        first = ast.Var(IS_FIRST + str(unit), node.span)
        default: ast.Expr = self._rewrite(node.default, place)
        return ast.Call("IF", (first, default, previous), node.span)

    def _bound(self, call: ast.Call, place: tuple[int, ...]) -> ast.Expr:
        """`BOUND` of a variable, or of a reference rewritten to a variable or an expression."""
        (argument,) = call.arguments
        rewritten: ast.Expr = self._rewrite(argument, place)
        if isinstance(rewritten, ast.Var):
            return ast.Call("BOUND", (rewritten,), call.span)
        has_value = ast.Call("SAMETERM", (rewritten, rewritten), call.span)
        absent = ast.Literal("false", XSD + "boolean", span=call.span)
        return ast.Call("COALESCE", (has_value, absent), call.span)

    def _rewrite(self, node: Any, place: tuple[int, ...]) -> Any:
        def change(part: Any) -> Any:
            if isinstance(part, ast.Var):
                known = part.name in self._group or part.name in self.registers
                return ast.Var(self.bare(part.name, place), part.span) if known else part
            if isinstance(part, ast.SubSelect):
                return part
            if isinstance(part, ast.Aggregate):
                return self._aggregate(part, place)
            if isinstance(part, ast.Prev):
                return self._prev(part, place)
            if isinstance(part, ast.Call) and part.name == "BOUND":
                return self._bound(part, place)
            return None

        return ast.rebuilt(node, change)
