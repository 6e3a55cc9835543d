"""The expressions of a run that erred: how often, and the reason for the first error.

They are the filters and BINDs, and those of the result: SELECT, GROUP BY, LET, HAVING and the
template of a CONSTRUCT.

The counts are those of the run. The reason is found on request, by evaluating the expression again
on the first row for which it had no value. Expressions with EXISTS have no reason, since the event
of that row is no longer available.

Cost: a few evaluations in Python per expression that erred.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from spaseq.engine.evaluation import Evaluation
from spaseq.engine.residual_filters import looks_at_graphs
from spaseq.engine.result_errors import ResultPart, result_parts
from spaseq.engine.run_query import RunQuery
from spaseq.explain.cost import conditions
from spaseq.gpm.expression_errors import (
    error_text,
    kind_of,
    named,
    prefixes_of,
    shown_term,
    with_prefixes,
)
from spaseq.gpm.plan_text import renamed
from spaseq.gpm.python.entry import Scope
from spaseq.nfa.counters import AutomatonCounters
from spaseq.parser import ast
from spaseq.parser.format import expression_line, term_text
from spaseq.plan.logical import GpmPlan
from spaseq.rdf.error_count import ErrorCount, Example
from spaseq.rdf.event import Term
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Erred:
    """An expression that erred."""

    gpm: str
    """Its graph pattern, or the clause of the result that has it."""
    text: str
    """The text as in the query, with its prefixes: `FILTER(?x < 15)`."""
    count: int
    always: bool
    """Whether it never had a value."""
    example: str
    """Why it erred first: `"12" < 15: a string and a number`; empty if that is unknown."""
    unbound: str = ""
    """The variable that it leaves unbound, if it is a BIND of a pattern: `?x`."""
    local: int = -1
    """Its position among the local filters of its graph pattern."""
    occurrence: int = -1
    """The occurrence whose rows are tested with it, if it reads the partial match."""

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        only = "only erred" if self.always else "erred"
        return f"{self.text} {only}, {times}" + (f": {self.example}" if self.example else "")

    def as_data(self) -> dict[str, Any]:
        """For `Run.stats`."""
        return {
            "gpm": self.gpm,
            "expression": self.text,
            "errors": self.count,
            "always": self.always,
            "example": self.example,
        }


def _filters(gpm: GpmPlan) -> list[str]:
    """The texts of its local filters."""
    return [f"FILTER({condition.text})" for condition in gpm.local]


def _like(text: str, known: Sequence[str]) -> str:
    """The known text that is equal to another except for constants in place of variables."""
    pattern = re.compile(re.sub(r"\\\?\\\.\w+", ".+", re.escape(text)))
    return next(filter(pattern.fullmatch, known), text)


def erred(run: Evaluation, number: int, counters: AutomatonCounters) -> list[Erred]:
    """The filters and BINDs of a query that erred, in the order of the query.

    Args:
        run: The run.
        number: The query.
        counters: The counters of its parts (`RunQuery.own_counters`).
    """
    query = run.listed.queries[number]
    plan = query.evaluated_plan
    # Queries that are evaluated as one have variables in place of constants; these texts are from
    # the query as it was written.
    written = query.plan
    tasks = query.own_tasks
    prefixes = prefixes_of(query.source)
    scope = Scope(None, run.kb, plan.kb_graphs)

    def why(expression: ast.Expr, count: ErrorCount) -> str:
        return _reason(expression, count, scope, prefixes)

    def as_written(these: Sequence[str], own: Sequence[str], gpm: int) -> Sequence[str]:
        """The texts of conditions; with a variable for a constant, another place may test them."""
        if len(these) == len(own):
            return own
        places = [o for o in written.occurrences if o.gpm == gpm]
        known = _filters(written.gpms[gpm]) + [text for o in places for text, _ in conditions(o)]
        return [_like(text, known) for text in these]

    def of_pattern(index: int) -> Iterator[Erred]:
        gpm, task = plan.gpms[index], tasks[index]
        pattern = run.rows.matchers.patterns[task]
        names = dict(zip(pattern.program.variables, gpm.variables, strict=True))
        matchers = run.rows.matchers
        if not matchers.has_erred(task):
            return  # a pattern of a template can have thousands of constants
        counts = matchers.errors(task)
        for node, expression in _inner(pattern.program.pattern):
            count = counts.get(expression)
            if count:
                text = _text(node, prefixes)
                text, example = renamed((text, why(expression, count)), names)
                bound = text.rpartition(" AS ")[2][:-1] if text.startswith("BIND") else ""
                yield Erred(gpm.name, text, count.count, not count.has_value, example, bound)
        texts = as_written(_filters(gpm), _filters(written.gpms[index]), index)
        for position, text in enumerate(texts):
            count = counts.get(position)
            if count:
                (example,) = renamed((why(pattern.filters[position], count),), names)
                always = not count.has_value
                yield Erred(gpm.name, text, count.count, always, example, local=position)

    def of_partial_matches() -> Iterator[Erred]:
        for occurrence, counts in zip(plan.occurrences, counters.errors, strict=True):
            own = [text for text, _ in conditions(written.occurrences[occurrence.index])]
            these = [text for text, _ in conditions(occurrence)]
            texts = as_written(these, own, occurrence.gpm)
            expressions = [condition.expression for _, condition in conditions(occurrence)]
            for text, expression, count in zip(texts, expressions, counts, strict=True):
                if count:
                    yield Erred(
                        plan.gpms[occurrence.gpm].name,
                        text,
                        count.count,
                        not count.has_value,
                        why(expression, count),
                        occurrence=occurrence.index,
                    )

    found = [each for index in range(len(plan.gpms)) for each in of_pattern(index)]
    binds = {(e.gpm, e.unbound): e for e in found if e.unbound}
    every = [
        _traced(each, binds) for each in (*found, *of_partial_matches(), *_of_result(run, query))
    ]
    return [replace(each, text=with_prefixes(each.text, prefixes)) for each in every]


def of_results(run: Evaluation) -> Iterator[tuple[str, Erred]]:
    """The expressions of results that erred on bound values, each with the name of its query.

    An unbound variable is not reported: OPTIONAL and missing columns leave variables unbound.
    """
    for query in run.listed.queries:
        for each in _of_result(run, query):
            if not each.example.endswith("is unbound"):
                yield query.plan.name, each


def _of_result(run: Evaluation, query: RunQuery) -> Iterator[Erred]:
    """The expressions of the result of a query that erred."""
    counts = query.state.result_errors()
    if not any(counts):
        return
    plan, written = query.evaluated_plan, query.plan
    prefixes = prefixes_of(query.source)
    scope = Scope(None, run.kb, plan.kb_graphs)
    parts, own = result_parts(plan.output), result_parts(written.output)
    shown = own if len(own) == len(parts) else parts
    for part, as_shown, count in zip(parts, shown, counts, strict=True):
        if not count:
            continue
        if isinstance(part.node, ast.Triple):
            example = _misplaced(count.example, prefixes)
        else:
            example = _reason(part.node, count, scope, prefixes)
        text = with_prefixes(_text_of_part(as_shown, prefixes), prefixes)
        yield Erred(part.clause, text, count.count, not count.has_value, example)


def _reason(expression: ast.Expr, count: ErrorCount, scope: Scope, prefixes: dict[str, str]) -> str:
    """Why an expression erred first; empty if that is unknown."""
    if count.example is None or looks_at_graphs(expression):
        return ""
    row = cast("dict[str, Term | None]", dict(count.example))
    return error_text(expression, row, scope, prefixes) or ""


def _traced(each: Erred, binds: Mapping[tuple[str, str], Erred]) -> Erred:
    """The error, with the reason why a BIND left a variable of the expression unbound."""
    name, bound, _ = each.example.partition(" is unbound")
    bind = binds.get((each.gpm, name)) if bound else None
    if bind is None or not bind.example:
        return each
    return replace(each, example=f"{each.example}, because its BIND erred: {bind.example}")


def _inner(
    pattern: ast.GroupGraphPattern,
) -> Iterator[tuple[ast.Filter | ast.Bind, ast.Expr]]:
    """The filters and BINDs within a pattern, each with its expression."""
    for node in ast.walk(pattern):
        if isinstance(node, ast.Filter):
            yield node, node.condition
        elif isinstance(node, ast.Bind):
            yield node, node.expression


def _text_of_part(part: ResultPart, prefixes: dict[str, str]) -> str:
    """The text of an expression of the result, or of a triple of the template."""
    if isinstance(part.node, ast.Triple):
        terms = (part.node.subject, part.node.predicate, part.node.object)
        return " ".join(term_text(cast(ast.Term, term), prefixes) for term in terms)
    text = expression_line(part.node, prefixes)
    for node in ast.walk(part.node):
        if isinstance(node, ast.Var) and "(" in node.name:  # the register of an aggregate
            text = text.replace(f"?{node.name}", named(node.name))
    if part.clause == "HAVING":
        return f"HAVING({text})"
    return f"({text} AS ?{part.variable})" if part.variable else text


def _misplaced(example: Example | None, prefixes: dict[str, str]) -> str:
    """Why a triple of the template is not valid."""
    if example is None:
        return ""
    ((place, term),) = example.items()
    assert term is not None
    return f"{shown_term(term, prefixes)} is {kind_of(term)}, and a {place} is an IRI" + (
        " or a blank node" if place == "subject" else ""
    )


def _text(node: ast.Filter | ast.Bind, prefixes: dict[str, str]) -> str:
    """The text of a filter or BIND."""
    if isinstance(node, ast.Filter):
        return f"FILTER({expression_line(node.condition, prefixes)})"
    return f"BIND({expression_line(node.expression, prefixes)} AS ?{node.variable.name})"
