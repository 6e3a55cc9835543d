"""`LIMIT n PER ?k EVERY d` → numbers, lengths and variables that are invalid there.

`PER` names variables that SELECT could show (docs/language.md, section 5, "LIMIT").
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.plan.check_variables import Context, unbound
from spaseq.plan.wording import did_you_mean, question_or, variable


def check_limit(context: Context) -> Iterator[Diagnostic]:
    """The findings about the LIMIT of a query."""
    limit = context.query.limit
    if limit is None:
        return
    if limit.count == 0:
        yield Diagnostic(
            "LIMIT 0 emits no match at all",
            limit.span,
            "write how many matches of one instant to emit, or delete the clause",
        )
    if limit.every is not None and limit.every.microseconds == 0:
        yield Diagnostic(
            "EVERY 0 spans no time",
            limit.every.span,
            "write how long the limit applies, such as `EVERY 10 MINUTES`, or delete EVERY",
        )
    if not limit.per:
        return
    if isinstance(context.query.form, ast.Ask):
        yield Diagnostic(
            "an ASK has no PER: it returns one answer per instant, without variables",
            limit.per_span,
            "delete PER; EVERY limits how often it answers",
            context.query.form.span,
            "the query's form",
        )
    elif not context.incomplete:
        yield from _Per(context).check(limit.per)


class _Per:
    """Checks the variables of `PER`."""

    def __init__(self, context: Context):
        self._context = context
        form, groups = context.query.form, context.query.groups
        items = (form.items or ()) if isinstance(form, ast.Select) else ()
        self._aliases = {item.alias.name for item in items if item.alias is not None}
        self._known: set[str] = set(self._aliases)
        """What SELECT could show."""
        if groups is None:
            self._known |= context.bound
        else:
            self._known |= {_name(item) for item in (*groups.keys, *groups.lets)}
        self._shown: set[str] | None = None
        """What a SELECT DISTINCT shows; None: it need not show a variable of PER."""
        if isinstance(form, ast.Select) and form.distinct and form.items is not None:
            self._shown = {_name(item) for item in items if _is_named(item)}

    def check(self, names: tuple[ast.Var, ...]) -> Iterator[Diagnostic]:
        for name in names:
            if name.name not in self._known:
                yield self._unknown(name)
            elif self._shown is not None and name.name not in self._shown:
                yield Diagnostic(
                    f"PER names {variable(name.name)}, which SELECT DISTINCT does not show: "
                    "results that are equal under DISTINCT may differ in it",
                    name.span,
                    f"add {variable(name.name)} to SELECT, or delete DISTINCT",
                    self._context.query.form.span,
                    "the query's form",
                )

    def _unknown(self, name: ast.Var) -> Diagnostic:
        context = self._context
        groups = context.query.groups
        if groups is None:
            return unbound(context, name, self._known, "PER", ())
        if name.name in context.bound:
            return Diagnostic(
                f"{variable(name.name)} differs from result to result, and PER is about a group of "
                "results",
                name.span,
                f"add {variable(name.name)} to GROUP BY, or bind a value for the group: "
                f"`LET (SAMPLE(?{name.name}) AS ?x)`",
                groups.word_span,
                "grouped here",
            )
        hint = question_or(
            did_you_mean(name.name, self._known, "?"),
            "name a key, an alias of SELECT or a variable of LET",
        )
        return Diagnostic(f"nothing binds {variable(name.name)}", name.span, hint)


def _is_named(item: ast.Projection) -> bool:
    return item.alias is not None or isinstance(item.expression, ast.Var)


def _name(item: ast.Projection) -> str:
    if item.alias is not None:
        return item.alias.name
    assert isinstance(item.expression, ast.Var)
    return item.expression.name
