"""References across iterations → registers.

LANGUAGE (docs/language.md, "Iteration") lets one name mean different things at different
places: inside its iterated unit a group variable is the current iteration's value, outside
it is the last one's, and aggregates range over the iterations that the place can see. A
`Resolver` rewrites an expression of one place so that every such reference becomes a plain
variable naming a register, and collects the registers the query needs.

Invariant: after rewriting, an expression holds no `Prev` and no `Aggregate`, and every
variable in it names a register (or nothing, and is then unbound).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spaseq.parser import ast
from spaseq.plan.logical import Condition, IteratedUnit, Register
from spaseq.sparql.builtins import XSD

IS_FIRST = "first iteration of "
"""Prefix of the variable that says whether its unit is in its first iteration."""


def iteration_register(unit: int) -> str:
    return f"iteration of unit {unit}"


def identified(expression: ast.Expr) -> set[str]:
    """The variables that an expression may tell by their terms.

    The others it only puts in order, or reckons with: what counts there is their values.
    """
    if isinstance(expression, ast.Binary):
        reckons = expression.operator in ("<", "<=", ">", ">=", "+", "-", "*", "/")
        return set[str]().union(
            *(
                identified(side)
                for side in (expression.left, expression.right)
                if not (reckons and isinstance(side, ast.Var))
            )
        )
    return {node.name for node in ast.walk(expression) if isinstance(node, ast.Var)}


class Resolver:
    """Collects the registers of one query while its expressions are rewritten."""

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
        """What `?v` means at a place inside the iterated units `place`."""
        unit = self._group.get(variable)
        if unit is None or unit in place:
            return self.value(variable)
        return self._ranged("last", variable, unit, place)

    def condition(self, expression: ast.Expr, place: tuple[int, ...], text: str = "") -> Condition:
        """The expression as the place means it."""
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
        """The register that numbers the iterations of a unit, told apart up to `limit`."""
        name = iteration_register(unit)
        known = self.registers.get(name)
        top = max(limit, known.limit if known else 0)
        self.registers[name] = Register(name, "iterations", unit=unit, limit=top)
        return name

    def _need(self, register: Register) -> str:
        self.registers.setdefault(register.name, register)
        return register.name

    def _scope(self, unit: int | None, place: tuple[int, ...]) -> int | None:
        """The innermost unit strictly around `unit` that also holds the place."""
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
        """The smallest iterated unit that holds every place of the GPM."""
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
        """`BOUND` of a variable, or of a reference that a variable or an expression replaces."""
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
