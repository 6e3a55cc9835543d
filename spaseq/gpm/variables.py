"""Which variables a graph pattern can bind, and which it binds in every solution.

SPARQL 1.1 section 18.2.1 (variable scope). `in_scope` is exact; `certain` is a sound
under-estimate: a variable in it is bound in each solution, one outside it may be unbound.
Blank nodes of the pattern are no variables here. Cost: linear in the pattern.
"""

from __future__ import annotations

from spaseq.parser import ast

Names = frozenset[str]
NONE: Names = frozenset()


def in_scope(group: ast.GroupGraphPattern) -> Names:
    """The variables a solution of the group may bind."""
    return NONE.union(*(_element_scope(element) for element in group.elements))


def _element_scope(element: ast.Element) -> Names:
    match element:
        case ast.Triple(subject, predicate, object):
            return _names(subject, predicate, object)
        case ast.Bind(_, variable):
            return frozenset((variable.name,))
        case ast.Optional(group) | ast.SubGroup(group):
            return in_scope(group)
        case ast.Union(alternatives):
            return NONE.union(*map(in_scope, alternatives))
        case ast.Graph(name, group) | ast.Service(name, _, group):
            return in_scope(group) | _names(name)
        case ast.Values(variables):
            return frozenset(variable.name for variable in variables)
        case ast.SubSelect():
            return frozenset(select_names(element))
        case ast.Filter() | ast.Minus():
            return NONE


def select_names(select: ast.SubSelect) -> tuple[str, ...]:
    """The columns of a sub-query, `SELECT *` in alphabetical order."""
    if select.items is None:
        extra = frozenset(v.name for v in select.values.variables) if select.values else NONE
        return tuple(sorted(in_scope(select.where) | extra))
    return tuple(_column(item) for item in select.items)


def _column(item: ast.Projection) -> str:
    if item.alias is not None:
        return item.alias.name
    if isinstance(item.expression, ast.Var):
        return item.expression.name
    raise TypeError("a projected expression needs a name")


def certain(group: ast.GroupGraphPattern) -> Names:
    """Variables that every solution of the group binds."""
    return NONE.union(*(_element_certain(element) for element in group.elements))


def _element_certain(element: ast.Element) -> Names:
    match element:
        case ast.Triple(subject, predicate, object):
            return _names(subject, predicate, object)
        case ast.SubGroup(group):
            return certain(group)
        case ast.Union(alternatives):
            return frozenset.intersection(*map(certain, alternatives))
        case ast.Graph(name, group):
            return certain(group) | _names(name)
        case ast.Service(name, silent, group):
            return NONE if silent else certain(group) | _names(name)
        case ast.Values():
            return _certain_columns(element)
        case ast.SubSelect():
            return _certain_select(element)
        case ast.Bind() | ast.Optional() | ast.Filter() | ast.Minus():
            return NONE


def _certain_columns(values: ast.Values) -> Names:
    return frozenset(
        variable.name
        for column, variable in enumerate(values.variables)
        if all(row[column] is not None for row in values.rows)
    )


def _certain_select(select: ast.SubSelect) -> Names:
    inside = certain(select.where)
    if select.group_by:
        inside &= frozenset(
            key.expression.name
            for key in select.group_by
            if key.alias is None and isinstance(key.expression, ast.Var)
        )
    if select.values is not None:
        inside |= _certain_columns(select.values)
    names = (
        NONE
        if select.items is None
        else frozenset(
            item.expression.name
            for item in select.items
            if item.alias is None and isinstance(item.expression, ast.Var)
        )
    )
    return inside if select.items is None else inside & names


def _names(*terms: ast.Var | ast.Path | ast.Term) -> Names:
    return frozenset(term.name for term in terms if isinstance(term, ast.Var))
