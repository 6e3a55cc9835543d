"""`GROUP BY … OVER … LET … HAVING` → clauses and names that are invalid there.

A grouped query has one solution for each group of results. Its SELECT, `LET` and `HAVING` may name
keys, aggregates over the results, and what `LET` binds; a template keys and what `LET` binds
(docs/language.md, section 6). Cost: linear in the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from spaseq.errors import Diagnostic, Span
from spaseq.parser import ast
from spaseq.plan.check_variables import Context, calls_over_match, no_exists, unbound
from spaseq.plan.scope import bare_variables, state_calls
from spaseq.plan.wording import did_you_mean, question_or, quoted, variable
from spaseq.sparql.builtins import AGGREGATES


def check_groups(context: Context) -> Iterator[Diagnostic]:
    """The findings about a GROUP clause and the expressions of its query."""
    groups = context.query.groups
    if groups is None:
        return
    yield from _over(context.query, groups)
    keys: dict[str, Span] = {}
    yield from _keys(context, groups, keys)
    known: dict[str, Span] = dict(keys)
    checker = _OverGroups(context, frozenset(keys), known)
    for item in groups.lets:
        yield from checker.expression(item.expression, "LET")
        yield from checker.alias(item, "LET")
    form = context.query.form
    if isinstance(form, ast.Construct):
        yield from checker.template(form)
    elif isinstance(form, ast.Select):
        yield from checker.select(form)
    for condition in groups.having:
        yield from checker.expression(condition, "HAVING")


# ------------------------------------------------------------------ OVER


def _over(query: ast.Query, groups: ast.GroupResults) -> Iterator[Diagnostic]:
    over, within = groups.over, query.within
    if over is not None:
        if over.microseconds == 0:
            yield Diagnostic(
                "OVER 0 contains no result",
                over.span,
                "write the length of a group, such as `OVER 5 MINUTES`",
            )
        return
    if within is None:
        return
    if not within.kind.is_of_time:
        clause = (
            "a window of events" if within.kind is ast.WindowKind.EVENTS else "WITHIN UNBOUNDED"
        )
        yield Diagnostic(
            f"under {clause} a group of results has no length",
            groups.word_span,
            "add OVER after the keys, such as `GROUP BY ?k OVER 5 MINUTES`",
            within.span,
            "the window",
        )
    elif within.kind is ast.WindowKind.SPAN and within.microseconds == 0:
        yield Diagnostic(
            "under WITHIN 0 a group of results has no length",
            groups.word_span,
            "add OVER after the keys, such as `GROUP BY ?k OVER 5 MINUTES`",
            within.span,
            "the window",
        )


# ------------------------------------------------------------------ keys


def _keys(
    context: Context, groups: ast.GroupResults, keys: dict[str, Span]
) -> Iterator[Diagnostic]:
    aliases = {key.alias.name: key.alias.span for key in groups.keys if key.alias is not None}
    bound = context.bound
    for key in groups.keys:
        for name in bare_variables(key.expression, within_exists=False):
            if name.name in bound or context.incomplete:
                continue
            if name.name in aliases:
                yield Diagnostic(
                    f"a key cannot use {variable(name.name)}, which is another key",
                    name.span,
                    "repeat the expression of that key",
                    aliases[name.name],
                    "the other key",
                )
            else:
                yield unbound(context, name, bound, "GROUP BY", ())
        yield from calls_over_match(context, key.expression)
        yield from no_exists(key.expression, "GROUP BY")
        if key.alias is None:
            assert isinstance(key.expression, ast.Var)
            keys.setdefault(key.expression.name, key.expression.span)
            continue
        yield from _alias(context, key.alias, keys)
        keys.setdefault(key.alias.name, key.alias.span)


def _alias(context: Context, alias: ast.Var, known: Mapping[str, Span]) -> Iterator[Diagnostic]:
    if alias.name in context.known or alias.name in known:
        yield Diagnostic(
            f"{variable(alias.name)} is already a variable of the query",
            alias.span,
            "choose a new name after AS",
            known.get(alias.name),
            "used here" if alias.name in known else "",
        )


# ------------------------------------------------------------------ expressions over a group


class _OverGroups:
    """Checks expressions over a group; `known` grows by what `LET` and SELECT bind."""

    def __init__(self, context: Context, keys: frozenset[str], known: dict[str, Span]):
        self._context = context
        self._keys = keys
        self._known = known
        self._of_results = context.bound | keys
        """The variables that an aggregate may name."""

    def alias(self, item: ast.Projection, clause: str) -> Iterator[Diagnostic]:
        assert item.alias is not None
        yield from _alias(self._context, item.alias, self._known)
        self._known.setdefault(item.alias.name, item.alias.span)

    def select(self, form: ast.Select) -> Iterator[Diagnostic]:
        if form.items is None:
            yield Diagnostic(
                "SELECT * in a query with GROUP: its variables differ from result to result",
                form.span,
                "name keys and aggregates, such as `SELECT ?k (AVG(?v) AS ?mean)`",
                self._clause,
                "grouped here",
            )
            return
        for item in form.items:
            later = {
                other.alias.name
                for other in form.items
                if other.alias is not None and other.alias.name not in self._known
            }
            yield from self.expression(item.expression, "SELECT", later)
            if item.alias is not None:
                yield from self.alias(item, "SELECT")

    def template(self, form: ast.Construct) -> Iterator[Diagnostic]:
        reported: set[str] = set()
        for triple in form.template:
            if isinstance(triple.subject, ast.Literal):
                yield Diagnostic(
                    "a literal cannot be the subject of a triple",
                    triple.subject.span,
                    "write an IRI, a blank node or a variable as subject",
                )
            for term in (triple.subject, triple.predicate, triple.object):
                if isinstance(term, ast.Var) and term.name not in {*self._known, *reported}:
                    reported.add(term.name)
                    yield self._unknown(term, "the template", ())

    def expression(
        self, expression: ast.Expr, clause: str, later: Iterable[str] = ()
    ) -> Iterator[Diagnostic]:
        for name in bare_variables(expression, within_exists=False):
            if name.name not in self._known and not self._context.incomplete:
                yield self._unknown(name, clause, later)
        yield from no_exists(expression, clause)
        for call in state_calls(expression):
            if isinstance(call, ast.Prev):
                yield Diagnostic(
                    f"PREV is not allowed in {clause}, which has no current iteration",
                    call.span,
                    "BIND the value in the GPM, and aggregate that variable",
                )
            else:
                yield from self._aggregate(call)

    def _aggregate(self, call: ast.Aggregate) -> Iterator[Diagnostic]:
        argument = call.argument
        if AGGREGATES[call.name].of_sequence:
            inside = "?v" if not isinstance(argument, ast.Var) else f"?{argument.name}"
            yield Diagnostic(
                f"{call.name} ranges over the iterations of one match, not over results",
                call.span,
                f"make it a key: `GROUP BY ({call.name}({inside}) AS ?x)`, or aggregate the "
                f"results with `SAMPLE({inside})`, the oldest, MIN or MAX",
            )
            return
        if isinstance(argument, ast.GpmName):
            yield Diagnostic(
                f"{call.name}({argument.name}) counts events of one match, and there are several "
                "results here",
                call.span,
                f"make it a key, `GROUP BY (COUNT({argument.name}) AS ?n)`, or count results: "
                "`COUNT(*)`",
            )
            return
        if argument is None:
            if call.name != "COUNT" or call.distinct:
                shown = f"{call.name}({'DISTINCT ' * call.distinct}*)"
                yield Diagnostic(
                    f"{shown} does not say what to aggregate",
                    call.span,
                    f"name an expression, `{call.name}({'DISTINCT ' * call.distinct}?v)`; "
                    "`COUNT(*)` is the number of results",
                )
            return
        yield from no_exists(argument, f"{call.name}(…)")
        for inner in state_calls(argument):
            if isinstance(inner, ast.Prev):
                yield Diagnostic(
                    f"PREV inside {call.name}: a result has no current iteration",
                    inner.span,
                    "BIND the value in the GPM, and aggregate that variable",
                )
        for name in bare_variables(argument, within_exists=False):
            if name.name in self._of_results or self._context.incomplete:
                continue
            if name.name in self._known:
                yield Diagnostic(
                    f"{call.name} ranges over results, and {variable(name.name)} is the value of "
                    "a whole group",
                    name.span,
                    "use it without the aggregate",
                    self._known[name.name],
                    "bound here",
                )
            else:
                yield unbound(self._context, name, self._of_results, f"{call.name}(…)", ())

    def _unknown(self, name: ast.Var, clause: str, later: Iterable[str]) -> Diagnostic:
        if name.name in self._context.bound:
            if clause == "the template":
                hint = (
                    f"add {variable(name.name)} to GROUP BY, or bind a value for the group: "
                    f"`LET (SAMPLE(?{name.name}) AS ?x)`"
                )
            else:
                hint = (
                    f"add {variable(name.name)} to GROUP BY, or aggregate it, such as "
                    f"`SAMPLE(?{name.name})`"
                )
            return Diagnostic(
                f"{variable(name.name)} differs from result to result, and {clause} is about a "
                "group of results",
                name.span,
                hint,
                self._clause,
                "grouped here",
            )
        if name.name in later:
            hint = "move the item that defines it to the front"
        elif clause in ("the template", "LET") and name.name in self._aliases:
            hint = f"bind it with LET: `LET (… AS ?{name.name})`"
        else:
            hint = question_or(
                did_you_mean(name.name, self._known, "?"),
                f"name a key, an aggregate or a variable of LET in {clause}",
            )
        return Diagnostic(f"nothing binds {quoted('?' + name.name)}", name.span, hint)

    @property
    def _aliases(self) -> set[str]:
        form, groups = self._context.query.form, self._context.query.groups
        assert groups is not None
        items = (form.items or ()) if isinstance(form, ast.Select) else ()
        return {item.alias.name for item in (*items, *groups.lets) if item.alias is not None}

    @property
    def _clause(self) -> Span:
        """The word GROUP."""
        assert self._context.query.groups is not None
        return self._context.query.groups.word_span
