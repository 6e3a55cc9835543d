"""A query → all static errors and warnings about it, each with its position in the text.

The checks are listed in docs/language.md, section 2. All of them run on every query, so that one
pass reports every error. An error is reported once, at the innermost place that has it; errors
that only follow from another one (an undefined GPM binds nothing) are omitted. Errors precede
warnings, each in text order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.plan.check_bounds import check_bounds
from spaseq.plan.check_comparisons import check_comparisons
from spaseq.plan.check_filters import check_filters
from spaseq.plan.check_functions import check_functions
from spaseq.plan.check_groups import check_groups
from spaseq.plan.check_limit import check_limit
from spaseq.plan.check_patterns import check_pattern
from spaseq.plan.check_sequence import check_sequence
from spaseq.plan.check_shared import check_shared
from spaseq.plan.check_variables import Context, check_variables
from spaseq.plan.places import (
    SequencePlaces,
    group_variables,
    sequence_places,
    without_parentheses,
)
from spaseq.plan.scope import gpm_scopes
from spaseq.plan.visibility import Visibility, visibility
from spaseq.plan.wording import did_you_mean, excerpt, question_or, quoted

MAX_WINDOW = 2**63 - 1
"""The longest window of a run, in microseconds or events."""


def check(query: ast.Query) -> list[Diagnostic]:
    """All findings about one query. The query can run if and only if none is an error."""
    places = sequence_places(query.sequence)
    scopes = gpm_scopes(query)
    context = Context(query, places, scopes, group_variables(query, scopes, places))
    bare = without_parentheses(query.sequence)
    seen = visibility(bare, places, scopes, context.group_variables)
    findings = [
        *_clauses(query),
        *_streams(query),
        *check_sequence(query, places),
        *check_bounds(query, bare),
        *(finding for define in query.defines for finding in check_pattern(define)),
        *_after_match(query, places),
        *check_functions(query),
        *check_comparisons(query),
        *check_variables(context),
        *check_shared(context, bare),
        *check_groups(context),
        *check_limit(context),
        *_vacuous_negations(query, seen),
        *check_filters(context, seen),
    ]
    return sorted(findings, key=_rank)


def _rank(finding: Diagnostic) -> tuple[bool, int]:
    return finding.severity == "warning", finding.span.start


# ------------------------------------------------------------------ clauses and streams


def _clauses(query: ast.Query) -> Iterator[Diagnostic]:
    register = query.register
    is_stream = register is not None and register.kind == "STREAM"
    if register is not None and is_stream and not isinstance(query.form, ast.Construct):
        yield Diagnostic(
            "only a CONSTRUCT query can be registered as a stream: its graphs are the "
            "stream's events",
            register.span,
            "write CONSTRUCT { … } in place of SELECT or ASK, or register it with "
            "`REGISTER QUERY name AS`",
            query.form.span,
            "the query's form",
        )
    yield from _window(query)


def _after_match(query: ast.Query, places: SequencePlaces) -> Iterator[Diagnostic]:
    after = query.after_match
    if after is None or not after.name or after.name in places.positive_names():
        return
    negated = any(place.name == after.name for place in places.occurrences)
    yield Diagnostic(
        f"{quoted(after.name)} occurs in SEQ only in negations, so no match contains an event of it"
        if negated
        else f"AFTER MATCH {after.mode} names {quoted(after.name)}, which is not a GPM of SEQ",
        after.span,
        question_or(
            did_you_mean(after.name, places.positive_names()),
            "name a GPM that occurs in SEQ without a negation, or write SKIP TO NEXT",
        ),
    )


def _window(query: ast.Query) -> Iterator[Diagnostic]:
    within = query.within
    if within is None:
        yield Diagnostic(
            "the query has no WITHIN, which limits how long a match may take",
            query.sequence.span,
            "add for example `WITHIN 10 MINUTES` before WHERE or after the last `}`",
        )
        return
    if within.kind.tumbles and within.microseconds == 0:
        yield Diagnostic(
            "a tumbling window of length 0 contains no event",
            within.span,
            "set a length, such as `WITHIN TUMBLING 10 MINUTES`",
        )
    elif within.kind is ast.WindowKind.EVENTS and within.events == 0:
        yield Diagnostic(
            "a window of 0 events contains no match",
            within.span,
            "write how many events a match may span, such as `WITHIN 100 EVENTS`",
        )
    elif within.kind is ast.WindowKind.UNBOUNDED:
        yield Diagnostic(
            "under WITHIN UNBOUNDED nothing expires: memory grows as long as the query runs",
            within.span,
            "limit the window if the streams do not end",
            severity="warning",
        )
    if max(within.microseconds, within.events) > MAX_WINDOW:
        yield Diagnostic(
            "the window is too long: the maximum is 292,000 years or 2⁶³ events",
            within.span,
            "write a shorter window, or `WITHIN UNBOUNDED`",
        )


def _streams(query: ast.Query) -> Iterator[Diagnostic]:
    declared: dict[str, ast.FromStream] = {}
    for stream in query.streams:
        first = declared.setdefault(stream.name, stream)
        if first.iri != stream.iri:
            yield Diagnostic(
                f"stream {quoted(stream.name)} is declared twice, with different IRIs",
                stream.span,
                "rename one of the two",
                first.span,
                "first declared here",
            )
    for define in query.defines:
        for position, name in enumerate(define.streams):
            if name in declared:
                continue
            spans = define.stream_spans
            yield Diagnostic(
                f"stream {quoted(name)} is not declared",
                spans[position] if position < len(spans) else define.name_span,
                question_or(
                    did_you_mean(name, declared),
                    f"declare it before WHERE: `FROM STREAM {name} <its IRI>`",
                ),
            )


def _vacuous_negations(query: ast.Query, seen: Visibility) -> Iterator[Diagnostic]:
    if query.partition is not None:
        return
    for negated in seen.negated:
        if negated.operators == {","} and not negated.in_front:
            what = excerpt(query.text, negated.step.span, "the negation")
            yield Diagnostic(
                f"{what} forbids nothing: the `,` after it allows no event in between anyway",
                negated.step.span,
                "write `;` or `:` after it, or add PARTITION BY, under which `,` considers one "
                "partition only",
                severity="warning",
            )


# ------------------------------------------------------------------ several queries


def check_program(queries: Sequence[ast.Query]) -> list[tuple[int, Diagnostic]]:
    """Errors between queries that run together: duplicate names and cycles of streams.

    Each finding is paired with the index of the query whose text it points into.
    """
    findings = [*_registered_twice(queries), *_cycles(queries)]
    return sorted(findings, key=lambda numbered: (numbered[0], _rank(numbered[1])))


def _registered_twice(queries: Sequence[ast.Query]) -> Iterator[tuple[int, Diagnostic]]:
    first: dict[tuple[str, str], int] = {}
    for number, query in enumerate(queries):
        register = query.register
        if register is None:
            continue
        owner = first.setdefault((register.kind, register.name), number)
        if owner == number:
            continue
        what = "query" if register.kind == "QUERY" else "stream"
        name = register.name if what == "query" else f"<{register.name}>"
        yield (
            number,
            Diagnostic(
                f"a {what} {quoted(name)} is already registered by query {owner + 1} of "
                f"{len(queries)}",
                register.span,
                f"choose another {'name' if what == 'query' else 'IRI'} for this one",
            ),
        )


def _cycles(queries: Sequence[ast.Query]) -> Iterator[tuple[int, Diagnostic]]:
    """Queries that read their own results; each cycle once, at its first query."""
    makers: dict[str, int] = {}
    for number, query in enumerate(queries):
        if query.register is not None and query.register.kind == "STREAM":
            makers.setdefault(query.register.name, number)
    reads = [
        [(makers[s.iri.value], s) for s in query.streams if s.iri.value in makers]
        for query in queries
    ]
    for start in range(len(queries)):
        cycle = _shortest_cycle(start, reads)
        if not cycle or min(maker for maker, _ in cycle) < start:
            continue
        names = [f"<{stream.iri.value}>" for _, stream in cycle]
        path = " reads ".join([*names, names[0]])
        yield (
            start,
            Diagnostic(
                f"the query reads its own results: {path}",
                cycle[0][1].span,
                "remove one FROM STREAM of the cycle, or register its query under a new IRI",
            ),
        )


_Reads = tuple[int, ast.FromStream]


def _shortest_cycle(start: int, reads: Sequence[Sequence[_Reads]]) -> list[_Reads]:
    """The FROM STREAM clauses of a shortest cycle through a query; empty if there is none."""
    reached: set[int] = set()
    paths: list[list[_Reads]] = [[edge] for edge in reads[start]]
    while paths:
        longer: list[list[_Reads]] = []
        for path in paths:
            maker = path[-1][0]
            if maker == start:
                return path
            if maker not in reached:
                reached.add(maker)
                longer += [[*path, edge] for edge in reads[maker]]
        paths = longer
    return []
