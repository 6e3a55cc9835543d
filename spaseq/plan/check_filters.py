"""Filters and stateful BINDs of the places → warnings where they read unbound variables.

A variable is unbound at a place if no step at or before the place and no sibling operand can
bind it. If the filter then always errs, the warning says that it is never true. A filter that
guards the variable (`BOUND`, `COALESCE`, `||`) may be intended, and the warning says only that
the variable is unbound. SPARQL's logic of errors: SPARQL 1.1 section 17.2. Cost: expressions
times the places of their GPM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spaseq.errors import Diagnostic, Span
from spaseq.parser import ast
from spaseq.plan.check_variables import Context
from spaseq.plan.places import Occurrence
from spaseq.plan.scope import bare_variables, state_calls, subexpressions
from spaseq.plan.visibility import Sight, Visibility
from spaseq.plan.wording import did_you_mean, quoted, variable
from spaseq.sparql.builtins import AGGREGATES

Reference = ast.Var | ast.Prev | ast.Aggregate
Unbound = Callable[[Reference], bool]


def check_filters(context: Context, visible: Visibility) -> Iterator[Diagnostic]:
    """The warnings about the GPMs' filters and stateful BINDs, each once."""
    if context.incomplete:
        return
    seen: set[tuple[Span, str]] = set()
    for place in context.places.occurrences:
        scope = context.scopes[place.name]
        conditions = [(f.condition, True) for f in scope.filters]
        conditions += [(b.expression, False) for b in scope.stateful]
        for expression, is_filter in conditions:
            for finding, name in _at(context, place, visible, expression, is_filter):
                if (finding.span, name) not in seen:
                    seen.add((finding.span, name))
                    yield finding
    for define in context.query.defines:
        yield from _nested(define, context)


def _at(
    context: Context,
    place: Occurrence,
    visible: Visibility,
    expression: ast.Expr,
    is_filter: bool,
) -> Iterator[tuple[Diagnostic, str]]:
    """The warnings about one expression at one place, each with its variable."""
    sight = visible.sights[place.index]

    def never(reference: Reference) -> bool:
        name = _name(reference)
        return name not in _reach(context, place, sight, reference) | sight.again

    def not_at_first(reference: Reference) -> bool:
        return _name(reference) not in _reach(context, place, sight, reference) or (
            isinstance(reference, ast.Prev) and _begins(context, place, reference)
        )

    references = [*bare_variables(expression, within_exists=False), *state_calls(expression)]
    unbound = {_name(r): r for r in reversed(references) if never(r)}
    for name, reference in unbound.items():
        dead = never_true(expression, never) if is_filter else errs(expression, never)
        consequence = ""
        if dead:
            consequence = (
                ", so this filter is never true"
                if is_filter
                else (", so this BIND never binds its variable")
            )
        yield _unseen(context, place, reference, name, consequence), name
    if unbound or not (is_filter and never_true(expression, not_at_first)):
        return
    for name, reference in {_name(r): r for r in references if not_at_first(r)}.items():
        if isinstance(reference, ast.Prev):
            message = f"in the first iteration `PREV(?{name})` is unbound"
            hint = f"write a value for the first iteration, as in `PREV(?{name}, 0)`"
        else:
            message = (
                f"in the first iteration {variable(name)} is not bound yet at {quoted(place.name)}"
            )
            hint = f"guard it: `!BOUND(?{name}) || …`, or use the variable only in a later step"
        finding = Diagnostic(
            f"{message}, so this filter rejects every first iteration",
            reference.span,
            hint,
            place.reference.span,
            "its place in SEQ",
            "warning",
        )
        yield finding, name


def _begins(context: Context, place: Occurrence, previous: ast.Prev) -> bool:
    """Whether the first iteration of the unit of `PREV` always passes the place.

    Elsewhere an earlier iteration can do without the place and give `PREV` a value.
    """
    unit = context.group_variables.get(previous.variable.name)
    if previous.default is not None or unit is None or unit not in place.units:
        return False
    return _is_mandatory(context.places.iterated_steps[unit].unit, place.reference)


def _is_mandatory(unit: ast.Unit, reference: ast.GpmRef) -> bool:
    """Whether every way through a unit takes the step of a reference."""
    match unit:
        case ast.GpmRef():
            return unit is reference
        case ast.Sequence():
            return any(
                not step.negated
                and (step.quantifier is None or step.quantifier.least > 0)
                and _is_mandatory(step.unit, reference)
                for step in unit.steps
            )
        case ast.Conjunction() | ast.AnyOrder():
            return any(_is_mandatory(operand, reference) for operand in unit.operands)
    return False


def _name(reference: Reference) -> str:
    match reference:
        case ast.Var():
            return reference.name
        case ast.Prev():
            return reference.variable.name
        case ast.Aggregate(argument=ast.Var() as argument):
            return argument.name
        case _:
            return ""


def _reach(
    context: Context, place: Occurrence, sight: Sight, reference: Reference
) -> frozenset[str]:
    """The variables for which the reference may have a value at the place.

    Inside an iterated unit, `PREV` and aggregates see the unit's earlier iterations.
    """
    name = _name(reference)
    inside = context.group_variables.get(name) in place.units
    if not name or (inside and not isinstance(reference, ast.Var)):
        return sight.bound | {name}
    return sight.bound


def _unseen(
    context: Context, place: Occurrence, reference: Reference, name: str, consequence: str
) -> Diagnostic:
    if name not in context.known:
        message = f"no GPM binds {variable(name)}{consequence}"
        hint = did_you_mean(name, context.known, "?") or "bind it, or remove it from the expression"
    elif context.group_variables.get(name) in place.units and isinstance(reference, ast.Var):
        message = f"in each iteration {variable(name)} is bound only after this place{consequence}"
        hint = f"`PREV(?{name})` is the value of the iteration before"
    else:
        message = f"no earlier step and no sibling operand binds {variable(name)}{consequence}"
        hint = f"move the filter to the GPM that binds ?{name}, or to one after it"
    return Diagnostic(
        message, reference.span, hint, place.reference.span, "its place in SEQ", "warning"
    )


# ------------------------------------------------------------------ the logic of errors


def errs(expression: ast.Expr, unbound: Unbound) -> bool:
    """Whether the expression always errs if the given references have no value."""
    match expression:
        case ast.Var() | ast.Prev():
            default = expression.default if isinstance(expression, ast.Prev) else None
            return default is None and unbound(expression)
        case ast.Aggregate():
            return not AGGREGATES[expression.name].value_of_nothing and unbound(expression)
        case ast.Unary(operator="!"):
            return errs(expression.operand, unbound)
        case ast.Binary(operator="&&"):
            return _and_errs(expression, unbound)
        case ast.Binary(operator="||"):
            return _or_errs(expression, unbound)
        case ast.In():
            return errs(expression.operand, unbound)
        case ast.Call(name="BOUND"):
            return False
        case ast.Call(name="COALESCE"):
            return all(errs(argument, unbound) for argument in expression.arguments)
        case ast.Call(name="IF"):
            test, *sides = expression.arguments
            return errs(test, unbound) or all(errs(side, unbound) for side in sides)
        case _:
            return any(errs(part, unbound) for part in subexpressions(expression))


def _and_errs(expression: ast.Binary, unbound: Unbound) -> bool:
    left, right = expression.left, expression.right
    return (errs(left, unbound) and never_false(right, unbound)) or (
        errs(right, unbound) and never_false(left, unbound)
    )


def _or_errs(expression: ast.Binary, unbound: Unbound) -> bool:
    left, right = expression.left, expression.right
    return (errs(left, unbound) and never_true(right, unbound)) or (
        errs(right, unbound) and never_true(left, unbound)
    )


def never_true(expression: ast.Expr, unbound: Unbound) -> bool:
    """Whether the expression errs or is false if the given references have no value."""
    match expression:
        case ast.Binary(operator="&&"):
            return never_true(expression.left, unbound) or never_true(expression.right, unbound)
        case ast.Binary(operator="||"):
            return never_true(expression.left, unbound) and never_true(expression.right, unbound)
        case ast.Unary(operator="!"):
            return never_false(expression.operand, unbound)
        case ast.Call(name="BOUND", arguments=(argument,)):
            return errs(argument, unbound)
        case _:
            return errs(expression, unbound)


def never_false(expression: ast.Expr, unbound: Unbound) -> bool:
    """Whether the expression errs or is true if the given references have no value."""
    match expression:
        case ast.Binary(operator="&&"):
            return never_false(expression.left, unbound) and never_false(expression.right, unbound)
        case ast.Binary(operator="||"):
            return never_false(expression.left, unbound) or never_false(expression.right, unbound)
        case ast.Unary(operator="!"):
            return never_true(expression.operand, unbound)
        case ast.Call(name="BOUND"):
            return False
        case _:
            return errs(expression, unbound)


# ------------------------------------------------------------------ filters in nested groups


def _nested(define: ast.Define, context: Context) -> Iterator[Diagnostic]:
    """Filters in inner braces that read a variable of another step, which is unbound there."""
    own = frozenset(_patterned(define.pattern))
    seen: set[tuple[Span, str]] = set()
    for element in define.pattern.elements:
        for condition in _inner_filters(element):
            for name in bare_variables(condition, within_exists=False):
                mark = (name.span, name.name)
                if name.name not in own and mark not in seen and _needs(condition, name.name):
                    seen.add(mark)
                    yield _not_in_group(name, context)


def _needs(condition: ast.Expr, name: str) -> bool:
    """Whether the condition can be true only if the variable has a value."""
    return never_true(condition, lambda r: isinstance(r, ast.Var) and r.name == name)


def _patterned(node: ast.Node) -> Iterator[str]:
    """The variables that any part of a pattern binds, projected or not."""
    for part in ast.walk(node):
        match part:
            case ast.Triple():
                terms: tuple[object, ...] = (part.subject, part.predicate, part.object)
            case ast.Bind():
                terms = (part.variable,)
            case ast.Values():
                terms = part.variables
            case ast.Graph() | ast.Service():
                terms = (part.name,)
            case ast.Projection():
                terms = (part.alias,)
            case _:
                continue
        yield from (term.name for term in terms if isinstance(term, ast.Var))


def _inner_filters(element: ast.Element) -> Iterator[ast.Expr]:
    """The conditions of filters in the groups inside an element, groups of EXISTS excluded."""
    match element:
        case ast.Union():
            groups = element.alternatives
        case ast.Optional() | ast.SubGroup() | ast.Minus() | ast.Graph() | ast.Service():
            groups = (element.group,)
        case ast.SubSelect():
            groups = (element.where,)
        case _:
            return
    for group in groups:
        for inner in group.elements:
            if isinstance(inner, ast.Filter):
                yield inner.condition
            else:
                yield from _inner_filters(inner)


def _not_in_group(name: ast.Var, context: Context) -> Diagnostic:
    if name.name in context.known:
        hint = (
            "move the filter to the top level of its GPM, where it can read the variables of "
            "other steps"
        )
    else:
        hint = did_you_mean(name.name, context.known, "?") or "bind it in this GPM"
    return Diagnostic(
        f"a filter in inner braces reads only its own group, where nothing binds "
        f"{variable(name.name)}: it is never true",
        name.span,
        hint,
        severity="warning",
    )
