"""`GROUP BY … OVER … LET … HAVING` → the plan of the groups of results.

The expressions of a grouped query are of two sorts. Keys, and the arguments of aggregates, are
evaluated over each result: the resolver rewrites them to registers, like the columns of a plain
SELECT. All others are evaluated over a group: each aggregate becomes a variable, whose name is the
text of the aggregate.
"""

from __future__ import annotations

from typing import Any

from spaseq.parser import ast
from spaseq.parser.format import expression_line
from spaseq.plan.logical import (
    Condition,
    Grouping,
    Output,
    Projected,
    ResultAggregate,
)
from spaseq.plan.references import Resolver


def grouped_output(query: ast.Query, resolver: Resolver) -> Output:
    """The output of a query with a `GROUP` clause, without its order and limit."""
    assert query.groups is not None
    return _Planner(query, query.groups, resolver).output()


def group_size(query: ast.Query) -> tuple[int, bool]:
    """The length of `OVER` in microseconds, and whether it tumbles; by default those of WITHIN."""
    assert query.groups is not None
    assert query.within is not None
    if query.groups.over is not None:
        return query.groups.over.microseconds, query.groups.over.tumbling
    return query.within.microseconds, query.within.kind.tumbles


class _Planner:
    def __init__(self, query: ast.Query, groups: ast.GroupResults, resolver: Resolver):
        self._query = query
        self._groups = groups
        self._resolver = resolver
        self._arguments: dict[ast.Expr, Condition] = {}
        self._places: dict[ast.Expr, int] = {}
        self._aggregates: dict[str, ResultAggregate] = {}

    def output(self) -> Output:
        groups, form = self._groups, self._query.form
        keys = tuple(
            Projected(_name(key), self._over_result(key.expression)) for key in groups.keys
        )
        lets = tuple(
            Projected(_name(item), self._over_group(item.expression)) for item in groups.lets
        )
        columns: tuple[Projected, ...] = ()
        if isinstance(form, ast.Select):
            columns = tuple(
                Projected(_name(item), self._over_group(item.expression))
                for item in form.items or ()
            )
        having = tuple(self._over_group(each).expression for each in groups.having)
        size, tumbling = group_size(self._query)
        grouping = Grouping(
            keys,
            tuple(self._arguments.values()),
            tuple(self._aggregates.values()),
            lets,
            having,
            size,
            tumbling,
        )
        if isinstance(form, ast.Select):
            return Output("select", columns, distinct=form.distinct, grouping=grouping)
        if isinstance(form, ast.Ask):
            return Output("ask", grouping=grouping)
        names = dict.fromkeys(n.name for n in ast.walk(form.template) if isinstance(n, ast.Var))
        return Output(
            "construct",
            template=form.template,
            template_registers=tuple((name, name) for name in names),
            grouping=grouping,
        )

    def _over_result(self, expression: ast.Expr) -> Condition:
        return self._resolver.condition(expression, ())

    def _over_group(self, expression: ast.Expr) -> Condition:
        def change(part: Any) -> Any:
            return self._aggregate(part) if isinstance(part, ast.Aggregate) else None

        rewritten: ast.Expr = ast.rebuilt(expression, change)
        return Condition(rewritten, frozenset())

    def _aggregate(self, call: ast.Aggregate) -> ast.Var:
        name = expression_line(call)
        if name not in self._aggregates:
            argument = None
            if call.argument is not None:
                assert not isinstance(call.argument, ast.GpmName)
                if call.argument not in self._arguments:
                    self._places[call.argument] = len(self._arguments)
                    self._arguments[call.argument] = self._over_result(call.argument)
                argument = self._places[call.argument]
            self._aggregates[name] = ResultAggregate(
                name, call.name, argument, call.distinct, call.separator
            )
        return ast.Var(name, call.span)


def _name(item: ast.Projection) -> str:
    if item.alias is not None:
        return item.alias.name
    assert isinstance(item.expression, ast.Var)
    return item.expression.name
