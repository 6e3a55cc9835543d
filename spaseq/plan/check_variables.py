"""SELECT, template, PARTITION BY, aggregates and `PREV` → variables that are invalid there.

Aggregates and `PREV` range over group variables only, and a group variable belongs to one
iterated unit (docs/language.md, section 4, "Iteration"). SELECT and the template may name only
variables that some GPM binds. Cost: expressions times the places of their GPM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from spaseq.errors import Diagnostic, Span
from spaseq.parser import ast
from spaseq.plan.places import Occurrence, SequencePlaces
from spaseq.plan.scope import GpmScope, bare_variables, state_calls, subexpressions
from spaseq.plan.wording import did_you_mean, listing, question_or, quoted, variable
from spaseq.records import dataclass
from spaseq.sparql.builtins import AGGREGATES


@dataclass(frozen=True, slots=True)
class Context:
    """The data that the checks of one query share."""

    query: ast.Query
    places: SequencePlaces
    scopes: Mapping[str, GpmScope]
    group_variables: Mapping[str, int]

    @property
    def incomplete(self) -> bool:
        """Whether a GPM of SEQ is undefined; it might bind any variable."""
        return any(place.name not in self.scopes for place in self.places.occurrences)

    @property
    def bound(self) -> frozenset[str]:
        """The variables that some GPM outside negations can bind."""
        positive = self.places.positive_names() & self.scopes.keys()
        return frozenset().union(*(self.scopes[name].binds for name in positive))

    @property
    def known(self) -> frozenset[str]:
        """The variables that any GPM can bind."""
        return frozenset().union(*(scope.binds for scope in self.scopes.values()))


def check_variables(context: Context) -> Iterator[Diagnostic]:
    """The findings about variables outside the GPMs' own patterns."""
    yield from _partition(context)
    form = context.query.form
    if context.query.groups is not None:
        pass  # `check_groups` checks the form of a grouped query
    elif isinstance(form, ast.Select):
        yield from _select(context, form)
    elif isinstance(form, ast.Construct):
        yield from _template(context, form)
    found: dict[str, list[Occurrence]] = {}
    for place in context.places.occurrences:
        found.setdefault(place.name, []).append(place)
    for name, scope in context.scopes.items():
        places = found.get(name, [])
        for element in scope.filters:
            yield from _calls(context, element.condition, places)
        for bind in scope.stateful:
            yield from _calls(context, bind.expression, places)


# ------------------------------------------------------------------ PARTITION BY


def _partition(context: Context) -> Iterator[Diagnostic]:
    clause = context.query.partition
    if clause is None:
        return
    positive = context.places.positive_names()
    spans = {define.name: define.name_span for define in context.query.defines}
    for key in clause.variables:
        missing = [
            name
            for name, scope in context.scopes.items()
            if name in positive and key.name not in scope.possible
        ]
        if not missing:
            continue
        late = [name for name in missing if key.name in context.scopes[name].binds]
        some = listing(map(quoted, missing))
        many = len(missing) > 1
        everywhere = frozenset.intersection(
            *(s.possible for n, s in context.scopes.items() if n in positive)
        )
        if late:
            hint = (
                f"bind {variable(key.name)} in the pattern itself: a BIND that reads the partial "
                "match is evaluated after the partition is chosen"
            )
        else:
            hint = question_or(
                did_you_mean(key.name, everywhere, "?"),
                f"bind {variable(key.name)} in {some}, or partition by another variable",
            )
        yield Diagnostic(
            f"{variable(key.name)} cannot partition the streams: GPM{'s' if many else ''} {some} "
            f"{'do' if many else 'does'} not bind it in {'their' if many else 'its'} pattern",
            key.span,
            hint,
            spans[missing[0]],
            "a GPM without it",
        )


# ------------------------------------------------------------------ SELECT and CONSTRUCT


def _select(context: Context, select: ast.Select) -> Iterator[Diagnostic]:
    bound = set(context.bound)
    columns: dict[str, Span] = {}
    items = select.items or ()
    for position, item in enumerate(items):
        later = {other.alias.name for other in items[position + 1 :] if other.alias is not None}
        for name in bare_variables(item.expression, within_exists=False):
            if name.name not in bound and not context.incomplete:
                yield unbound(context, name, bound, "SELECT", later)
        yield from _calls(context, item.expression, None)
        yield from no_exists(item.expression, "SELECT")
        alias = item.alias
        if alias is None:
            if isinstance(item.expression, ast.Var):
                columns.setdefault(item.expression.name, item.expression.span)
            continue
        if alias.name in context.known or alias.name in columns:
            yield Diagnostic(
                f"{variable(alias.name)} is already a variable of the query",
                alias.span,
                "choose a new name after AS",
                columns.get(alias.name) or _first_binding(context, alias.name),
                "used here",
            )
        columns.setdefault(alias.name, alias.span)
        bound.add(alias.name)


def no_exists(expression: ast.Expr, clause: str) -> Iterator[Diagnostic]:
    """The error of each EXISTS in an expression of a clause that no event evaluates."""
    if isinstance(expression, ast.Exists):
        yield Diagnostic(
            f"EXISTS is not allowed in {clause}: a match has no single event to evaluate it on",
            expression.span,
            "evaluate it in the GPM of the event: `BIND(EXISTS { … } AS ?found)`",
        )
    for part in subexpressions(expression):
        yield from no_exists(part, clause)


def _template(context: Context, form: ast.Construct) -> Iterator[Diagnostic]:
    bound = context.bound
    reported = set(bound)
    for triple in form.template:
        if isinstance(triple.subject, ast.Literal):
            yield Diagnostic(
                "a literal cannot be the subject of a triple",
                triple.subject.span,
                "write an IRI, a blank node or a variable as subject",
            )
        for term in (triple.subject, triple.predicate, triple.object):
            if isinstance(term, ast.Var) and term.name not in reported and not context.incomplete:
                reported.add(term.name)
                yield unbound(context, term, bound, "the template", ())


def unbound(
    context: Context, name: ast.Var, bound: Iterable[str], where: str, later: Iterable[str]
) -> Diagnostic:
    """The error of a variable that no GPM of a match binds; `later` are aliases further on."""
    negated = [gpm for gpm, scope in context.scopes.items() if name.name in scope.binds]
    if negated:
        some = listing(map(quoted, negated), "or")
        return Diagnostic(
            f"{variable(name.name)} has no value in {where}: only {some} binds it, and no match "
            "contains an event of it",
            name.span,
            "bind it in a GPM that occurs in SEQ without a negation",
            _first_binding(context, name.name),
            "bound here",
        )
    if name.name in later:
        hint = "move the item that defines it to the front"
    else:
        hint = did_you_mean(name.name, bound, "?") or (
            f"bind it in a GPM, or remove it from {where}"
        )
    return Diagnostic(f"nothing binds {variable(name.name)}", name.span, hint)


def _first_binding(context: Context, name: str) -> Span | None:
    """The first occurrence of a variable in the query's GPMs."""
    for define in context.query.defines:
        scope = context.scopes[define.name]
        if name in scope.binds:
            for node in ast.walk((define.at, define.pattern)):
                if isinstance(node, ast.Var) and node.name == name:
                    return node.span
    return None


# ------------------------------------------------------------------ aggregates and PREV


def calls_over_match(context: Context, expression: ast.Expr) -> Iterator[Diagnostic]:
    """The errors of the aggregates of an expression over one match, such as a key."""
    for call in state_calls(expression):
        if isinstance(call, ast.Prev):
            yield Diagnostic(
                "PREV is not allowed in GROUP BY, which has no current iteration",
                call.span,
                f"write `LAST(?{call.variable.name})`, or BIND the value in the GPM",
            )
        else:
            yield from _aggregate(context, call, None)


def _calls(
    context: Context, expression: ast.Expr, places: list[Occurrence] | None
) -> Iterator[Diagnostic]:
    """The errors of every `PREV` and aggregate; `places` is None in SELECT."""
    for call in state_calls(expression):
        if isinstance(call, ast.Prev):
            yield from _prev(context, call, places)
        else:
            yield from _aggregate(context, call, places)


def _prev(
    context: Context, call: ast.Prev, places: list[Occurrence] | None
) -> Iterator[Diagnostic]:
    name = call.variable.name
    if places is None:
        yield Diagnostic(
            "PREV is not allowed in SELECT, which has no current iteration",
            call.span,
            f"write `LAST(?{name})` or `FIRST(?{name})`, or BIND the value in the GPM",
        )
        return
    fault = _no_group_variable(context, call.variable, "PREV")
    if fault is not None:
        yield fault
    unit = context.group_variables.get(name)
    if unit is None:
        return
    outside = [place for place in places if unit not in place.units]
    if outside:
        step = context.places.iterated_steps[unit]
        yield Diagnostic(
            f"PREV(?{name}) is used outside the iteration that binds {variable(name)}: "
            f"{quoted(outside[0].name)} has a place that is not in it",
            call.span,
            f"`LAST(?{name})` is the value of the last iteration; PREV is evaluated within an "
            "iteration and reads the previous one",
            step.span,
            f"the iteration of {variable(name)}",
        )


def _aggregate(
    context: Context, call: ast.Aggregate, places: list[Occurrence] | None
) -> Iterator[Diagnostic]:
    argument = call.argument
    if call.distinct and AGGREGATES[call.name].of_sequence:
        yield Diagnostic(
            f"DISTINCT has no meaning in {call.name}, which returns one value",
            call.span,
            f"write `{call.name}(?v)`",
        )
    match argument:
        case None:
            yield Diagnostic(
                f"{call.name}(*) does not say what to count",
                call.span,
                "write `COUNT(B)` for the events of GPM B, `COUNT(?v)` for the iterations that "
                "bind ?v, or add GROUP BY after the last `}` to count results",
            )
        case ast.GpmName():
            yield from _of_gpm(context, call, argument)
        case ast.Var():
            fault = _no_group_variable(context, argument, call.name)
            if fault is not None:
                yield fault
            elif argument.name in context.group_variables:
                yield from _under_negation(context, argument, call.name, places)
        case _:
            yield Diagnostic(
                f"{call.name} can range over a variable only, not over an expression",
                argument.span,
                "compute the value in the GPM and aggregate that: "
                f"`BIND(… AS ?value)` there, `{call.name}(?value)` here",
            )


def _of_gpm(context: Context, call: ast.Aggregate, argument: ast.GpmName) -> Iterator[Diagnostic]:
    if call.name != "COUNT":
        yield Diagnostic(
            f"{call.name} ranges over the values of a variable, and {quoted(argument.name)} is "
            "a GPM",
            argument.span,
            f"write `{call.name}(?v)` with a variable that {argument.name} binds",
        )
    elif argument.name not in context.scopes:
        yield Diagnostic(
            f"GPM {quoted(argument.name)} is not defined, so it cannot be counted",
            argument.span,
            did_you_mean(argument.name, context.scopes)
            or "name one of the GPMs of SEQ, or a variable with its `?`",
        )
    elif call.distinct:
        yield Diagnostic(
            f"the events of {quoted(argument.name)} in a match are always distinct",
            call.span,
            f"write `COUNT({argument.name})`, or `COUNT(DISTINCT ?v)` with a variable it binds",
        )


def _no_group_variable(context: Context, name: ast.Var, function: str) -> Diagnostic | None:
    """Why a function cannot range over a variable; None if it can."""
    if name.name in context.group_variables or context.incomplete:
        return None
    if name.name not in context.known:
        return Diagnostic(
            f"nothing binds {variable(name.name)}, so {function} has nothing to range over",
            name.span,
            did_you_mean(name.name, context.known, "?") or "bind it in a repeated GPM, as in `B+`",
        )
    message = f"{function} needs a variable that each iteration binds anew, and "
    own = f"write `?{name.name}`, which has one value throughout the match"
    keys = context.query.partition.variables if context.query.partition else ()
    for key in keys:
        if key.name == name.name:
            return Diagnostic(
                message + f"{variable(name.name)} partitions the streams",
                name.span,
                own,
                key.span,
                "a partition variable has one value",
            )
    binding = [
        place
        for place in context.places.occurrences
        if place.name in context.scopes and name.name in context.scopes[place.name].binds
    ]
    iterated = [place for place in binding if place.units]
    if not iterated:
        return Diagnostic(
            message + f"no iteration binds {variable(name.name)}",
            name.span,
            f"{own}; repeat the step that binds it, as in `B+`; or add GROUP BY after the last "
            "`}` to aggregate over results",
            binding[0].reference.span if binding else None,
            "bound by this step",
        )
    outside = [place for place in binding if place.units != iterated[0].units] or binding
    return Diagnostic(
        message + f"{variable(name.name)} is bound outside its iteration too, so all iterations "
        "share its value",
        name.span,
        f"{own}; or rename it in the GPM outside",
        outside[0].reference.span,
        "bound here too",
    )


def _under_negation(
    context: Context, name: ast.Var, function: str, places: list[Occurrence] | None
) -> Iterator[Diagnostic]:
    """A group variable of a negated iteration is visible only under the same negation."""
    around = context.places.unit_negations[context.group_variables[name.name]]
    seen_from = [()] if places is None else [place.negations for place in places]
    if any(view[: len(around)] != around for view in seen_from):
        yield Diagnostic(
            f"{function} has nothing to range over: the iteration that binds "
            f"{variable(name.name)} is negated, so no match contains it",
            name.span,
            "name a variable of a step that is not negated",
            context.places.negations[around[0]].span,
            "the negation",
        )
