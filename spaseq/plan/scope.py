"""A GPM's definition → the variables it can bind, and the parts that read the partial match.

A top-level `FILTER` of a GPM reads the bindings of the partial match, and so does a
**stateful** `BIND`: one whose expression names a variable that its own pattern cannot
bind, or uses `PREV` or an aggregate (docs/language.md, section 3). The remaining pattern is
plain SPARQL 1.1 over one event and is evaluated once per event.

Invariants: `certain <= possible <= binds`; a solution of the pattern binds every
variable of `certain` and none outside `possible`. Scoping is SPARQL 1.1's, section
18.2.1 ("Variable Scope"). Cost: one walk over the pattern per round, with at most one more
round than there are top-level `BIND`s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from spaseq.parser import ast
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class GpmScope:
    """The parts of one GPM."""

    name: str
    streams: tuple[str, ...]
    """The names of its streams, as written."""
    pattern: ast.GroupGraphPattern
    """Without top-level filters and stateful BINDs; the other elements in text order."""
    filters: tuple[ast.Filter, ...]
    """The top-level filters."""
    stateful: tuple[ast.Bind, ...]
    """The stateful BINDs, in evaluation order."""
    at: str | None
    possible: frozenset[str]
    """The variables that `pattern` can bind, and the variable of `AT`."""
    certain: frozenset[str]
    """The variables that every solution of `pattern` binds, and the variable of `AT`."""
    binds: frozenset[str]
    """`possible`, and the variables of the stateful BINDs."""


def gpm_scope(define: ast.Define) -> GpmScope:
    """Split a definition into its pattern, its filters and its stateful BINDs."""
    elements = define.pattern.elements
    filters = tuple(e for e in elements if isinstance(e, ast.Filter))
    stateful = _stateful_binds(elements)
    kept = tuple(
        e
        for place, e in enumerate(elements)
        if not isinstance(e, ast.Filter) and place not in stateful
    )
    pattern = ast.GroupGraphPattern(kept, span=define.pattern.span)
    binds = tuple(e for place, e in enumerate(elements) if place in stateful)
    at = define.at.name if define.at is not None else None
    timestamp = frozenset() if at is None else frozenset((at,))
    possible = possible_variables(pattern) | timestamp
    stateful_binds = tuple(e for e in binds if isinstance(e, ast.Bind))
    return GpmScope(
        name=define.name,
        streams=define.streams,
        pattern=pattern,
        filters=filters,
        stateful=stateful_binds,
        at=at,
        possible=possible,
        certain=certain_variables(pattern) | timestamp,
        binds=possible | {bind.variable.name for bind in stateful_binds},
    )


def gpm_scopes(query: ast.Query) -> dict[str, GpmScope]:
    """The scopes of a query's GPMs by name; the first definition of a name counts."""
    scopes: dict[str, GpmScope] = {}
    for define in query.defines:
        if define.name not in scopes:
            scopes[define.name] = gpm_scope(define)
    return scopes


def _stateful_binds(elements: tuple[ast.Element, ...]) -> frozenset[int]:
    """The positions of the stateful BINDs.

    Removing one from the pattern can make another stateful, so the search repeats until the set
    is a fixpoint; it is the least one. A BIND is examined again only when a variable that it names
    has lost its last binding.
    """
    bound = Counter(name for e in elements for name in element_variables(e))
    named: dict[str, list[int]] = {}
    waiting = []
    for place, e in enumerate(elements):
        if isinstance(e, ast.Bind):
            names = expression_variables(e.expression)
            for name in names:
                named.setdefault(name, []).append(place)
            if not names <= bound.keys() or next(state_calls(e.expression), None) is not None:
                waiting.append(place)
    stateful: set[int] = set()
    while waiting:
        place = waiting.pop()
        if place in stateful:
            continue
        stateful.add(place)
        for name in element_variables(elements[place]):
            bound[name] -= 1
            if not bound[name]:
                waiting += named.get(name, ())
    return frozenset(stateful)


# ------------------------------------------------------------------ variables of patterns


def possible_variables(group: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables that some solution of the group may bind."""
    return _possible(group.elements)


def certain_variables(group: ast.GroupGraphPattern) -> frozenset[str]:
    """The variables that every solution of the group binds."""
    return _certain(group.elements)


def _possible(elements: Iterable[ast.Element]) -> frozenset[str]:
    return frozenset().union(*(element_variables(e) for e in elements))


def element_variables(element: ast.Element) -> frozenset[str]:
    """The variables that one element of a group may bind."""
    match element:
        case ast.Triple():
            return _names(element.subject, element.predicate, element.object)
        case ast.Bind():
            return frozenset((element.variable.name,))
        case ast.Values():
            return frozenset(
                v.name
                for column, v in enumerate(element.variables)
                if any(row[column] is not None for row in element.rows)
            )
        case ast.Optional() | ast.SubGroup():
            return possible_variables(element.group)
        case ast.Graph() | ast.Service():
            return _names(element.name) | possible_variables(element.group)
        case ast.Union():
            return frozenset().union(*map(possible_variables, element.alternatives))
        case ast.SubSelect():
            return _possible_of_select(element)
        case ast.Filter() | ast.Minus():
            return frozenset()


def _possible_of_select(select: ast.SubSelect) -> frozenset[str]:
    inner = possible_variables(select.where)
    if select.values is not None:
        inner |= element_variables(select.values)
    if select.items is None:
        return inner
    inner |= {key.alias.name for key in select.group_by if key.alias is not None}
    shown: set[str] = set()
    for item in select.items:
        if item.alias is not None:
            shown.add(item.alias.name)
        elif isinstance(item.expression, ast.Var) and item.expression.name in inner:
            shown.add(item.expression.name)
    return frozenset(shown)


def _certain(elements: Iterable[ast.Element]) -> frozenset[str]:
    bound: frozenset[str] = frozenset()
    # In text order: a BIND is evaluated over the elements before it.
    for element in elements:
        bound |= _certain_of(element, bound)
    return bound


def _certain_of(element: ast.Element, before: frozenset[str]) -> frozenset[str]:
    match element:
        case ast.Triple():
            return _names(element.subject, element.predicate, element.object)
        case ast.Bind():
            sure = _never_errs(element.expression, before)
            return frozenset((element.variable.name,)) if sure else frozenset()
        case ast.Values():
            return frozenset(
                v.name
                for column, v in enumerate(element.variables)
                if element.rows and all(row[column] is not None for row in element.rows)
            )
        case ast.SubGroup():
            return certain_variables(element.group)
        case ast.Graph():
            return _names(element.name) | certain_variables(element.group)
        case ast.Service():
            # A silent service that fails returns one empty solution.
            return frozenset() if element.silent else certain_variables(element.group)
        case ast.Union():
            sides = [certain_variables(side) for side in element.alternatives]
            return frozenset.intersection(*sides)
        case ast.SubSelect():
            return _certain_of_select(element)
        case ast.Filter() | ast.Minus() | ast.Optional():
            return frozenset()


def _certain_of_select(select: ast.SubSelect) -> frozenset[str]:
    inner = certain_variables(select.where)
    if select.values is not None:
        inner |= _certain_of(select.values, frozenset())
    if select.items is None:
        return inner
    for key in select.group_by:
        if key.alias is not None and _never_errs(key.expression, inner):
            inner |= {key.alias.name}
    shown: set[str] = set()
    for item in select.items:
        if item.alias is not None:
            if _never_errs(item.expression, inner):
                shown.add(item.alias.name)
        elif isinstance(item.expression, ast.Var) and item.expression.name in inner:
            shown.add(item.expression.name)
    return frozenset(shown)


def _never_errs(expression: ast.Expr, bound: frozenset[str]) -> bool:
    """Whether the expression always has a value, by a conservative test."""
    match expression:
        case ast.Var():
            return expression.name in bound
        case ast.Iri() | ast.Literal() | ast.TripleTerm() | ast.Exists():
            return True
        case ast.Aggregate():
            return expression.name == "COUNT"
        case ast.Call():
            if expression.name == "COALESCE":
                return any(_never_errs(a, bound) for a in expression.arguments)
            total = expression.name in ("BOUND", "ISIRI", "ISBLANK", "ISLITERAL", "ISTRIPLE", "STR")
            return expression.name == "BOUND" or (
                total and all(_never_errs(a, bound) for a in expression.arguments)
            )
        case _:
            return False


def _names(*terms: ast.Term | ast.Path) -> frozenset[str]:
    return frozenset(term.name for term in terms if isinstance(term, ast.Var))


def commutes(group: ast.GroupGraphPattern) -> bool:
    """Whether a group consists of triples, and filters that read only the triples' variables.

    Substituting values for its variables is then equivalent to joining with the values.
    """
    certain = certain_variables(group)
    return all(
        isinstance(element, ast.Triple)
        or (
            isinstance(element, ast.Filter)
            and expression_variables(element.condition) <= certain
            and not any(isinstance(node, ast.Exists) for node in ast.walk(element.condition))
        )
        for element in group.elements
    )


# ------------------------------------------------------------------ variables of expressions


def expression_variables(expression: ast.Expr) -> frozenset[str]:
    """The free variables of an expression.

    Variables in groups of `EXISTS` and in the default of a `PREV` are included; variables that
    `PREV` and aggregates range over are not (see `ranged_variables`).
    """
    return frozenset(v.name for v in bare_variables(expression, within_exists=True))


def ranged_variables(expression: ast.Expr) -> frozenset[str]:
    """The variables that `PREV` and the aggregates of an expression range over."""
    names: set[str] = set()
    for call in state_calls(expression):
        if isinstance(call, ast.Prev):
            names.add(call.variable.name)
        elif call.argument is not None and not isinstance(call.argument, ast.GpmName):
            names |= expression_variables(call.argument)
    return frozenset(names)


def state_calls(expression: ast.Expr) -> Iterator[ast.Prev | ast.Aggregate]:
    """Every `PREV` and aggregate of an expression, groups of `EXISTS` excluded."""
    if isinstance(expression, ast.Prev | ast.Aggregate):
        yield expression
    for part in subexpressions(expression):
        yield from state_calls(part)


def bare_variables(expression: ast.Expr, *, within_exists: bool) -> Iterator[ast.Var]:
    """The occurrences of free variables, in groups of `EXISTS` only on request."""
    match expression:
        case ast.Var():
            yield expression
        case ast.Exists():
            if within_exists:
                yield from group_mentions(expression.group)
        case ast.Aggregate():
            return
        case _:
            for part in subexpressions(expression):
                yield from bare_variables(part, within_exists=within_exists)


def subexpressions(expression: ast.Expr) -> tuple[ast.Expr, ...]:
    """The direct operands; for a `PREV` its default, for an aggregate its expression."""
    match expression:
        case ast.Unary():
            return (expression.operand,)
        case ast.Binary():
            return (expression.left, expression.right)
        case ast.In():
            return (expression.operand, *expression.choices)
        case ast.Call() | ast.FunctionCall():
            return expression.arguments
        case ast.Prev():
            return () if expression.default is None else (expression.default,)
        case ast.Aggregate():
            argument = expression.argument
            return () if argument is None or isinstance(argument, ast.GpmName) else (argument,)
        case ast.Var() | ast.Iri() | ast.Literal() | ast.TripleTerm() | ast.Exists():
            return ()


def group_mentions(group: ast.GroupGraphPattern) -> Iterator[ast.Var]:
    """Every variable that a group names, in patterns and expressions.

    A sub-select contributes the variables it projects; its other variables are local to it.
    """
    for element in group.elements:
        match element:
            case ast.Triple():
                for term in (element.subject, element.predicate, element.object):
                    if isinstance(term, ast.Var):
                        yield term
            case ast.Filter():
                yield from bare_variables(element.condition, within_exists=True)
            case ast.Bind():
                yield from bare_variables(element.expression, within_exists=True)
                yield element.variable
            case ast.Values():
                yield from element.variables
            case ast.Union():
                for side in element.alternatives:
                    yield from group_mentions(side)
            case ast.Graph() | ast.Service():
                if isinstance(element.name, ast.Var):
                    yield element.name
                yield from group_mentions(element.group)
            case ast.Optional() | ast.SubGroup() | ast.Minus():
                yield from group_mentions(element.group)
            case ast.SubSelect():
                for name in sorted(element_variables(element)):
                    yield ast.Var(name, span=element.span)
