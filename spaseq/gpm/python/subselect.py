"""Sub-queries: `SELECT … WHERE … GROUP BY … HAVING … ORDER BY … LIMIT …` → an operator.

The steps of SPARQL 1.1 section 18.2.4: group and aggregate, filter by HAVING, extend by the select
expressions, order, project, remove duplicates, slice. Aggregates are computed into columns of their
own, which expressions over them read. Cost: linear, except for sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

from spaseq.gpm.program import constant
from spaseq.gpm.python.aggregates import aggregate, order_key
from spaseq.gpm.python.expression import ExpressionCompiler
from spaseq.gpm.python.functions import volatile
from spaseq.gpm.python.row_operators import (
    Node,
    Row,
    Rows,
    align,
    extend,
    indent,
    join,
    remembered,
    select,
    values_node,
)
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast
from spaseq.plan.scope import possible_variables
from spaseq.rdf.event import Term

GroupCompiler: TypeAlias = Callable[[ast.GroupGraphPattern], Node]
ExpressionsOver: TypeAlias = Callable[[Sequence[str], int | None], ExpressionCompiler]
"""(columns, the number of columns that are the solution itself; None: all) → a compiler."""
TermOf: TypeAlias = Callable[[Row, Scope], Term | None]


def subselect_node(
    query: ast.SubSelect, compile_group: GroupCompiler, expressions: ExpressionsOver
) -> Node:
    """The operator of a sub-query."""
    node = compile_group(query.where)
    if query.values is not None:
        node = join(node, values_node(query.values))
    lines = node.lines
    static = node.static and not volatile(query)
    names = select_names(query)
    query, aggregates = lift_aggregates(query)
    if aggregates or query.group_by:
        node = _grouped(node, query.group_by, aggregates, expressions)
    width = len(node.schema)
    for condition in query.having:
        node = select(node, expressions(node.schema, width).truth(condition), "having")
    for item in query.items or ():
        if item.alias is not None:
            term = expressions(node.schema, width).term(item.expression)
            node = extend(node, item.alias.name, term, "bind")
    if query.order_by:
        node = _sorted(node, query.order_by, expressions)
    node = align(node, names)
    if query.distinct or query.reduced:
        node = _distinct(node)
    if query.limit is not None or query.offset:
        node = _sliced(node, query.offset or 0, query.limit)
    title = f"sub-query of {' '.join('?' + name for name in names)}"
    run = remembered(node.run) if static else node.run
    return Node(names, node.certain, run, (title, *indent(lines)), static)


# ------------------------------------------------------------------ aggregates


def lift_aggregates(query: ast.SubSelect) -> tuple[ast.SubSelect, list[ast.Aggregate]]:
    """The query with a variable in place of each aggregate, and the distinct aggregates."""
    found: list[ast.Aggregate] = []

    def lift(node: Any) -> Any:
        if isinstance(node, ast.Aggregate):
            if node not in found:
                found.append(node)
            return ast.Var(aggregate_column(found.index(node)))
        if isinstance(node, tuple):
            return tuple(map(lift, node))
        if is_dataclass(node) and not isinstance(node, type | ast.Exists):
            changes = {field.name: lift(getattr(node, field.name)) for field in fields(node)}
            return replace(node, **changes)
        return node

    return (
        replace(
            query,
            items=None if query.items is None else lift(query.items),
            having=lift(query.having),
            order_by=lift(query.order_by),
        ),
        found,
    )


def aggregate_column(index: int) -> str:
    """The column of an aggregate; no variable of a query has such a name."""
    return f"aggregate {index}"


def _grouped(
    node: Node,
    keys: Sequence[ast.Projection],
    aggregates: Sequence[ast.Aggregate],
    expressions: ExpressionsOver,
) -> Node:
    columns = []
    for index, key in enumerate(keys):
        name = f"key {index}"
        if key.alias is not None:
            name = key.alias.name
        elif isinstance(key.expression, ast.Var):
            columns.append(key.expression.name)
            continue
        node = extend(node, name, expressions(node.schema, None).term(key.expression), "key")
        columns.append(name)
    compiled = expressions(node.schema, None)
    key_terms = [compiled.term(ast.Var(name)) for name in columns]
    visible = [i for i, name in enumerate(node.schema) if not name.startswith("_:")]
    computers = [_computer(each, compiled, visible) for each in aggregates]
    inner = node.run

    def run(scope: Scope) -> Rows:
        groups: dict[Row, list[Row]] = {}
        if not keys:
            groups[()] = []
        for row in inner(scope):
            groups.setdefault(tuple(term(row, scope) for term in key_terms), []).append(row)
        return [
            (*key, *(compute(rows, scope) for compute in computers)) for key, rows in groups.items()
        ]

    names = (*columns, *map(aggregate_column, range(len(aggregates))))
    return Node(names, node.certain & frozenset(columns), run)


def _computer(
    call: ast.Aggregate, compiled: ExpressionCompiler, visible: Sequence[int]
) -> Callable[[Sequence[Row], Scope], Term | None]:
    argument = call.argument
    if argument is None:

        def count(rows: Sequence[Row], scope: Scope) -> Term | None:
            if call.distinct:
                rows = list({tuple(row[column] for column in visible): row for row in rows})
            return aggregate("COUNT", [_SOMETHING] * len(rows))

        return count
    if isinstance(argument, ast.GpmName):
        raise TypeError("the name of a GPM cannot be an argument of a SPARQL aggregate")
    term: TermOf = compiled.term(argument)

    def compute(rows: Sequence[Row], scope: Scope) -> Term | None:
        found = [term(row, scope) for row in rows]
        values = [value for value in found if value is not None]
        if len(values) < len(found) and call.name in _STRICT:
            return None
        return aggregate(call.name, values, call.separator, call.distinct)

    return compute


_SOMETHING = constant(ast.Literal(""))
_STRICT = frozenset(("SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT"))
"""The aggregates for which an error in one row is an error; the others skip such rows."""


# ------------------------------------------------------------------ order, duplicates, slices


def _sorted(node: Node, keys: Sequence[ast.OrderKey], expressions: ExpressionsOver) -> Node:
    compiled = expressions(node.schema, None)
    terms = [(compiled.term(key.expression), key.descending) for key in keys]
    inner = node.run

    def run(scope: Scope) -> Rows:
        rows = list(inner(scope))
        # The last key first: sorting is stable.
        for term, descending in reversed(terms):
            keyed = [(order_key(term(row, scope)), row) for row in rows]
            keyed.sort(key=lambda pair: pair[0], reverse=descending)
            rows = [row for _, row in keyed]
        return rows

    return Node(node.schema, node.certain, run)


def _distinct(node: Node) -> Node:
    inner = node.run
    return Node(
        node.schema, node.certain, lambda scope: list(dict.fromkeys(inner(scope))), distinct=True
    )


def _sliced(node: Node, offset: int, limit: int | None) -> Node:
    inner = node.run
    stop = None if limit is None else offset + limit
    return Node(node.schema, node.certain, lambda scope: inner(scope)[offset:stop])


def select_names(select: ast.SubSelect) -> tuple[str, ...]:
    """The columns of a sub-query, `SELECT *` in alphabetical order."""
    if select.items is None:
        extra = (
            frozenset(v.name for v in select.values.variables)
            if select.values
            else frozenset[str]()
        )
        return tuple(sorted(possible_variables(select.where) | extra))
    return tuple(_column(item) for item in select.items)


def _column(item: ast.Projection) -> str:
    if item.alias is not None:
        return item.alias.name
    if isinstance(item.expression, ast.Var):
        return item.expression.name
    raise TypeError("a projected expression needs a name")
