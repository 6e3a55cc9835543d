"""Query texts → trees, or one error with every finding about all of them.

The checks run after a syntax error too if the tree is complete, and an error in one query does
not prevent checks of the others. A finding whose span contains a syntax error follows from that
error and is omitted. Cost: that of the parser and the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spaseq.errors import Diagnostic, QueryError, QuerySemanticError, QuerySyntaxError
from spaseq.parser import ast, examine
from spaseq.plan.check import check, check_program
from spaseq.plan.logical import QueryPlan
from spaseq.plan.planner import plan_checked


def read_queries(texts: Sequence[str], names: Sequence[str]) -> tuple[ast.Query, ...]:
    """The trees of some queries; `names` are for positions in error messages.

    Raises:
        QueryError: if some text has syntax errors, with the errors of all texts.
    """
    examined = [examine(text) for text in texts]
    errors: list[QueryError] = []
    if any(found for _, found in examined):
        for (query, found), text, name in zip(examined, texts, names, strict=True):
            findings = found if query is None else _merged(found, check(query))
            if _faulty(findings):
                kind = QuerySyntaxError if found else QuerySemanticError
                errors.append(kind(findings, text, name))
    _raise(errors)
    return tuple(query for query, _ in examined if query is not None)


def plan_queries(queries: Sequence[ast.Query], names: Sequence[str]) -> list[QueryPlan]:
    """The plans of queries that run together.

    Raises:
        QueryError: with the static errors of all queries, and their warnings.
    """
    findings: dict[int, list[Diagnostic]] = {n: check(query) for n, query in enumerate(queries)}
    for number, finding in check_program(queries):
        findings[number].append(finding)
    _raise(
        QuerySemanticError(findings[number], query.text, name)
        for number, (query, name) in enumerate(zip(queries, names, strict=True))
        if _faulty(findings[number])
    )
    return [
        plan_checked(query, name, findings[number])
        for number, (query, name) in enumerate(zip(queries, names, strict=True))
    ]


def _faulty(findings: Iterable[Diagnostic]) -> bool:
    return any(finding.severity == "error" for finding in findings)


def _merged(syntax: Sequence[Diagnostic], checks: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings of parser and checks, errors first, each in text order."""
    own = [
        finding
        for finding in checks
        if not any(finding.span.start <= error.span.start < finding.span.end for error in syntax)
    ]
    return sorted(
        [*syntax, *own], key=lambda finding: (finding.severity == "warning", finding.span.start)
    )


def _raise(errors: Iterable[QueryError]) -> None:
    """Raise the first error, with the others attached."""
    collected = list(errors)
    if collected:
        first, *others = collected
        raise type(first)(first.diagnostics, first.source, first.name, others)
