"""Which groups of results the compiled core keeps, and which conditions of HAVING it tests.

The core (`spaseq.engine.native._result_groups`) groups results of single events by variables. It
computes COUNT, SUM, AVG, MIN and MAX of variables. It tests the conditions of HAVING that compare
such an aggregate with a number, so that events whose group has no solution make no Python objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from spaseq.engine.native._group_matches import GroupColumns
from spaseq.engine.native._result_groups import NativeGroups
from spaseq.gpm.program import constant
from spaseq.nfa.automaton import ACCEPT, Automaton
from spaseq.nfa.native.register_tables import bound_by
from spaseq.parser import ast
from spaseq.plan.logical import Condition, Grouping, Output, QueryPlan
from spaseq.rdf._values import DOUBLE, FLOAT, INTEGER, decode, exact_of

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_NATIVE = frozenset(("COUNT", "SUM", "AVG", "MIN", "MAX"))


def left_to_python(plan: QueryPlan, automaton: Automaton) -> str | None:
    """Why Python keeps the groups of a query; None if the core does."""
    grouping = plan.output.grouping
    assert grouping is not None
    if grouping.tumbling:
        return "the windows of its groups tumble"
    if plan.emit != "ALL" or plan.skip_past_last:
        return "EMIT or AFTER MATCH selects among the results"
    if automaton.waits or automaton.ambiguous or not _is_one_event(automaton):
        return "a result may have several events"
    for key in grouping.keys:
        if _variable(plan, key.value) is None:
            return f"the key {key.value.text or '?' + key.name} is an expression"
    for aggregate in grouping.aggregates:
        if aggregate.distinct or aggregate.function not in _NATIVE:
            return f"{aggregate.name} has no native form"
        if aggregate.argument is not None:
            argument = grouping.arguments[aggregate.argument]
            if _variable(plan, argument) is None:
                return f"{aggregate.name} is over an expression"
    return None


def native_groups(plan: QueryPlan, automaton: Automaton) -> NativeGroups | None:
    """The groups of a query in the core; None if Python keeps them."""
    grouping = plan.output.grouping
    if grouping is None or left_to_python(plan, automaton) is not None:
        return None
    asked = [_variable(plan, key.value) for key in grouping.keys]
    asked += [_variable(plan, argument) for argument in grouping.arguments]
    edges = sum(len(place.edges) for place in automaton.places)
    places = [_places(plan, automaton, name) for name in asked]
    columns = [[place[edge] for place in places] for edge in range(edges)]
    bests = [
        (aggregate.argument, aggregate.function == "MAX")
        for aggregate in grouping.aggregates
        if aggregate.argument is not None and aggregate.function in ("MIN", "MAX")
    ]
    return NativeGroups(
        grouping.size,
        len(grouping.keys),
        len(grouping.arguments),
        columns,
        bests,
        list(_conditions(plan.output, grouping)),
    )


def match_columns(plan: QueryPlan, automaton: Automaton) -> GroupColumns | None:
    """The columns of the matches that the core makes of all solutions; None if Python makes them.

    It does if a HAVING, DISTINCT or LIMIT drops solutions, and if a column is computed.
    """
    output, grouping = plan.output, plan.output.grouping
    if grouping is None or left_to_python(plan, automaton) is not None:
        return None
    if output.form != "select" or output.distinct or output.limit is not None or grouping.having:
        return None
    named = {let.name: let.value.expression for let in grouping.lets}
    aggregates = [aggregate.name for aggregate in grouping.aggregates]
    keys = {key.name: _variable(plan, key.value) for key in grouping.keys}
    columns: list[tuple[str, int | None, list[int]]] = []
    for column in output.columns:
        expression = column.value.expression
        while isinstance(expression, ast.Var) and expression.name in named:
            expression = named[expression.name]
        if not isinstance(expression, ast.Var):
            return None
        if expression.name in aggregates:
            columns.append((column.name, aggregates.index(expression.name), []))
        elif expression.name in keys:
            columns.append((column.name, None, _places(plan, automaton, keys[expression.name])))
        else:
            return None
    names = [column.name for column in output.columns]
    return GroupColumns(plan.shown, names, columns, grouping.aggregates)


def _places(plan: QueryPlan, automaton: Automaton, variable: str | None) -> list[int]:
    """Per edge: the column of a variable in the rows of its pattern; -1 if there is none."""
    found = []
    for place in automaton.places:
        for edge in place.edges:
            (occurrence,) = automaton.atoms[edge.atom].occurrences
            bound = bound_by(plan, plan.occurrences[occurrence])
            found.append(bound.index(variable) if variable in bound else -1)
    return found


def _is_one_event(automaton: Automaton) -> bool:
    return all(atom.kind == "single" for atom in automaton.atoms) and all(
        link.target == ACCEPT for atom in automaton.atoms for link in atom.links
    )


def _variable(plan: QueryPlan, condition: Condition) -> str | None:
    """The variable of a pattern that an expression is; None if it is another expression."""
    expression = condition.expression
    if not isinstance(expression, ast.Var):
        return None
    for register in plan.registers:
        if register.name == expression.name:
            plain = register.kind == "value" and register.unit is None
            return register.variable if plain else None
    return None


def _conditions(
    output: Output, grouping: Grouping
) -> Iterator[tuple[str, int | None, str, float, bool]]:
    """The comparisons of an aggregate with a number, as `NativeGroups` takes them."""
    named = {
        item.name: item.value.expression
        for item in (*output.columns, *grouping.lets)
        if item.value.expression != ast.Var(item.name)  # a key
    }
    aggregates = {aggregate.name: aggregate for aggregate in grouping.aggregates}
    bests = [a.name for a in grouping.aggregates if a.function in ("MIN", "MAX")]
    for condition in grouping.having:
        for part in _conjuncts(condition):
            if not isinstance(part, ast.Binary) or part.operator not in _MIRRORED:
                continue
            left, right = part.left, part.right
            operator: str = part.operator
            if isinstance(left, ast.Literal):
                left, right, operator = right, left, _MIRRORED[operator]
            while isinstance(left, ast.Var) and left.name in named:
                left = named[left.name]
            if not (isinstance(left, ast.Var) and isinstance(right, ast.Literal)):
                continue
            aggregate, number = aggregates.get(left.name), _number(right)
            if aggregate is None or number is None:
                continue
            place = aggregate.argument
            if aggregate.function in ("MIN", "MAX"):
                place = bests.index(aggregate.name)
            yield aggregate.function, place, operator, *number


def _number(literal: ast.Literal) -> tuple[float, bool] | None:
    """The double nearest to a number, and whether it is the same number, and an integer."""
    value = decode(constant(literal))
    if not INTEGER <= value.kind <= DOUBLE:
        return None
    if value.kind in (FLOAT, DOUBLE):
        return (value.real, False) if isfinite(value.real) else None
    number = exact_of(value)
    if abs(number) > 2**53:
        return None
    return float(number), number == int(number)


def _conjuncts(expression: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(expression, ast.Binary) and expression.operator == "&&":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression
