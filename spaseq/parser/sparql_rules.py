"""SPARQL 1.1's rules that a context-free grammar cannot express, checked on the finished tree.

- A blank node label belongs to one basic graph pattern (section 19.6): the triples of one group
  with nothing but filters between them.
- `BIND`, `SELECT (… AS ?v)` and `GROUP BY (… AS ?v)` introduce variables that are not yet in
  scope (section 18.2.1).
- A grouped sub-query projects group keys and aggregates only (section 11.4). Aggregates do not
  nest, and occur in a sub-query only in SELECT, HAVING and ORDER BY (production [127]).

`plan` checks aggregates and `PREV` at the top level of a GPM. Cost: linear in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spaseq.errors import Span
from spaseq.parser import ast
from spaseq.parser.source import Source
from spaseq.sparql.builtins import AGGREGATES

_Scope = dict[str, Span]
"""The variables in scope, each with the span that first binds it."""

_WHERE = "a sub-query's pattern is matched before its rows are grouped: aggregate in its SELECT"


def check(node: object, source: Source) -> None:
    """Report every violation in a query, a mapping, a group or an expression to `source`."""
    rules = _Rules(source)
    if isinstance(node, ast.Query):
        if isinstance(node.form, ast.Select) and node.form.items is not None:
            rules.projection(node.form.items, {})
        if node.groups is not None:
            items = (*node.groups.keys, *node.groups.lets)
            for expression in (*(item.expression for item in items), *node.groups.having):
                rules.expression(expression)
        for define in node.defines:
            rules.group(define.pattern)
    elif isinstance(node, ast.Mapping):
        rules.group(node.where)
    elif isinstance(node, ast.GroupGraphPattern):
        rules.group(node)
    else:
        rules.expression(node)


class _Rules:
    def __init__(self, source: Source):
        self._report = source.report
        self._labels: dict[str, tuple[int, Span]] = {}  # label → its pattern, its first span
        self._patterns = 0  # number of basic graph patterns begun so far
        self._sub_queries = 0  # nesting depth of sub-queries

    # -------------------------------------------------------------- groups

    def group(self, group: ast.GroupGraphPattern) -> _Scope:
        """Check a group and return the variables in scope at its end."""
        scope: _Scope = {}
        current = self._begin()
        for element in group.elements:
            if isinstance(element, ast.Triple):
                self._triple(element, scope, current)
            elif isinstance(element, ast.Filter):
                self.expression(element.condition)
            else:
                self._element(element, scope)
                current = self._begin()
        return scope

    def _begin(self) -> int:
        self._patterns += 1
        return self._patterns

    def _triple(self, triple: ast.Triple, scope: _Scope, current: int) -> None:
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, ast.Var):
                scope.setdefault(term.name, term.span)
            elif isinstance(term, ast.BlankNode):
                pattern, place = self._labels.setdefault(term.label, (current, term.span))
                if pattern != current:
                    self._report(
                        f"the blank node _:{term.label} is already used in another graph pattern",
                        term.span,
                        "the scope of a label is one pattern; use another label, or a variable "
                        "such as ?x to refer to the same node in both",
                        place,
                        "used first",
                    )
                    self._labels[term.label] = (current, place)

    def _element(self, element: ast.Element, scope: _Scope) -> None:
        match element:
            case ast.Bind(expression, variable):
                self.expression(expression)
                self._introduce(variable, scope, "BIND")
            case ast.Values(variables):
                self._add(scope, ((each.name, each.span) for each in variables))
            case ast.Minus(group):
                self.group(group)
            case ast.Union(alternatives):
                for alternative in alternatives:
                    self._add(scope, self.group(alternative).items())
            case ast.SubSelect():
                self._add(scope, self.sub_select(element).items())
            case ast.Graph(name, group) | ast.Service(name, _, group):
                if isinstance(name, ast.Var):
                    scope.setdefault(name.name, name.span)
                self._add(scope, self.group(group).items())
            case ast.Optional(group) | ast.SubGroup(group):
                self._add(scope, self.group(group).items())

    def _add(self, scope: _Scope, variables: Iterable[tuple[str, Span]]) -> None:
        for name, place in variables:
            scope.setdefault(name, place)

    def _introduce(self, variable: ast.Var, scope: _Scope, words: str) -> None:
        place = scope.get(variable.name)
        if place is not None:
            compare = "; to compare two values write FILTER(… = …)" if words == "BIND" else ""
            self._report(
                f"{words} assigns ?{variable.name}, which is already bound here",
                variable.span,
                f"use a new name after AS{compare}",
                place,
                "bound first",
            )
        scope.setdefault(variable.name, variable.span)

    # -------------------------------------------------------------- sub-queries

    def sub_select(self, select: ast.SubSelect) -> _Scope:
        """Check a sub-query and return the variables it binds in the enclosing group."""
        self._sub_queries += 1
        inner = self.group(select.where)
        for key in select.group_by:
            self.expression(key.expression, "GROUP BY")
            if key.alias is not None:
                self._introduce(key.alias, inner, "GROUP BY")
        for expression in (*select.having, *(key.expression for key in select.order_by)):
            self.expression(expression, None)
        outer: _Scope = {}
        if select.items is None:
            self._add(outer, inner.items())
            if select.group_by:
                self._report(
                    "SELECT * in a grouped sub-query",
                    select.span,
                    "name the group keys and aggregates you want, one by one",
                    select.group_by[0].span,
                    "grouped here",
                )
        else:
            outer = self.projection(select.items, inner)
            if select.group_by or _aggregates(select):
                self._check_grouped(select)
        if select.values is not None:
            self._add(outer, ((each.name, each.span) for each in select.values.variables))
        self._sub_queries -= 1
        return outer

    def projection(self, items: tuple[ast.Projection, ...], scope: _Scope) -> _Scope:
        """Check the items of a SELECT over a pattern with `scope`; return the result variables."""
        out: _Scope = {}
        for item in items:
            if item.alias is None:
                assert isinstance(item.expression, ast.Var)
                out.setdefault(item.expression.name, item.span)
                continue
            self.expression(item.expression, None)
            self._introduce(item.alias, scope | out, "SELECT")
            out.setdefault(item.alias.name, item.alias.span)
        return out

    def _check_grouped(self, select: ast.SubSelect) -> None:
        keys = (key.alias or key.expression for key in select.group_by)
        known = {key.name for key in keys if isinstance(key, ast.Var)}
        for item in select.items or ():
            for variable in _ungrouped(item.expression):
                if variable.name not in known:
                    self._report(
                        f"?{variable.name} is neither a group key nor inside an aggregate",
                        variable.span,
                        f"a group can hold several values of it: add GROUP BY ?{variable.name}, "
                        f"or choose one with SAMPLE(?{variable.name})",
                    )
            if item.alias is not None:
                known.add(item.alias.name)

    # -------------------------------------------------------------- expressions

    def expression(self, expression: object, forbidden: str | None = "") -> None:
        """Check an expression and the patterns inside it.

        `forbidden` applies to aggregates in sub-queries: None where they are allowed, else the
        clause that forbids them; empty for a filter or a `BIND`.
        """
        for node in _expressions(expression):
            if isinstance(node, ast.Exists):
                self.group(node.group)
            elif isinstance(node, ast.Aggregate):
                self._aggregate(node, forbidden)
            elif isinstance(node, ast.Prev) and self._sub_queries:
                self._report("PREV inside a sub-query", node.span, _TOP_LEVEL)

    def _aggregate(self, node: ast.Aggregate, forbidden: str | None) -> None:
        if self._sub_queries:
            if AGGREGATES[node.name].of_sequence or isinstance(node.argument, ast.GpmName):
                self._report(
                    f"{node.name} over iterations inside a sub-query", node.span, _TOP_LEVEL
                )
            elif forbidden is not None:
                where = f" in {forbidden}" if forbidden else " in the pattern of a sub-query"
                self._report(f"{node.name}{where}", node.span, _WHERE)
        for inner in _expressions(node.argument):
            if isinstance(inner, ast.Exists):
                self.group(inner.group)
            elif isinstance(inner, ast.Aggregate):
                self._report(
                    f"{inner.name} inside {node.name}",
                    inner.span,
                    "aggregates cannot be nested; a sub-query can compute the inner one",
                    node.span,
                    "the outer one",
                )


_TOP_LEVEL = "iterations are visible only at the top level of a GPM, in SELECT and in a template"


def _expressions(node: object) -> Iterator[object]:
    """The nodes of one expression, without patterns of `EXISTS` and arguments of aggregates."""
    yield node
    match node:
        case ast.Unary(_, operand):
            yield from _expressions(operand)
        case ast.Binary(_, left, right):
            yield from _expressions(left)
            yield from _expressions(right)
        case ast.In(operand, choices):
            for each in (operand, *choices):
                yield from _expressions(each)
        case ast.Call(_, arguments) | ast.FunctionCall(_, arguments):
            for each in arguments:
                yield from _expressions(each)
        case ast.Prev(_, default) if default is not None:
            yield from _expressions(default)


def _ungrouped(expression: ast.Expr) -> Iterator[ast.Var]:
    for node in _expressions(expression):
        if isinstance(node, ast.Var):
            yield node


def _aggregates(select: ast.SubSelect) -> bool:
    expressions = [item.expression for item in select.items or ()]
    expressions += [*select.having, *(key.expression for key in select.order_by)]
    return any(
        isinstance(node, ast.Aggregate) for each in expressions for node in _expressions(each)
    )
