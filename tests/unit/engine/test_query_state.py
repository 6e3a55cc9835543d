"""What a query continues from: all of its fields are kept, or follow from what is kept."""

from __future__ import annotations

from dataclasses import fields

import spaseq
from spaseq.engine.checkpoint import _OF_QUERY
from spaseq.engine.query_state import QueryState
from spaseq.results import Match
from spaseq.runs import Run

S, T = "http://example.org/S", "http://example.org/T"
QUERY = """PREFIX : <http://example.org/>
SELECT ?a WITHIN 10 SECONDS FROM STREAM S :S FROM STREAM T :T
WHERE { SEQ(A ; !N) DEFINE GPM A ON S { [] :a ?a } DEFINE GPM N ON T { [] :n [] } }"""

KEPT_AS = {"emitted": "matched", "_marked_count": "marked", "shed_before": "shed"}
"""Attributes that have another name in `QueryState`."""
DERIVED = {
    # made from the compiled query, the limits and the knowledge base of the run
    "limits", "plan", "compiled", "_files", "_kb", "_registers", "_occurrences", "native",
    "constructs", "grouping", "_waits",
    # saved beside `QueryState`: the automaton's state has `native`, `OutputStage` its own fields
    "output",
    # from other fields, and from the division of equal queries into templates
    "behind", "members",
    # set again by the run: for each call, by the sink, and with the next closed timestamp
    "ending", "_make", "_copied", "copiers", "_empty_at",
}  # fmt: skip


def test_every_attribute_is_kept_or_derived() -> None:
    run = spaseq.compile(QUERY).start()
    kept = {field.name for field in fields(QueryState)}
    for name in vars(run.queries[0]):
        assert KEPT_AS.get(name, name) in kept or name in DERIVED, (
            f"QueryRun.{name} is neither in QueryState nor derived"
        )
    assert kept <= set(_OF_QUERY)


def fact(name: str) -> str:
    return f'<http://example.org/e> <http://example.org/{name}> "1" .'


def ended() -> Run:
    """A run with a waiting match, one of whose streams has ended."""
    run = spaseq.compile(QUERY).start()
    run.push("S", 1, fact("a"))
    run.end_stream(T, None)
    return run


def marks(run: Run, *more: Match) -> list[tuple[int, bool]]:
    found = [*more, *run.push("S", 20, fact("x")), *run.finish()]
    return [(match.end.micros // 10**6, match.closed_by_end) for match in found]


def counts(run: Run) -> list[tuple[int, int]]:
    return [(query.matched, query.closed_by_end) for query in run.queries]


def resumed(run: Run) -> Run:
    return spaseq.compile(QUERY).resume(run.save())


def changed(run: Run) -> Run:
    """A run whose query has another automaton object and continues the same state."""
    run.replace("query", spaseq.compile(QUERY), "keep")
    return run


def renewed(run: Run) -> Run:
    """A run whose core was built again, as after a change of the knowledge base."""
    run.evaluation._discard_loop()
    for query in run.queries:
        query.renew(run.rows.matchers)
    return run


def test_which_streams_have_ended_is_kept() -> None:
    for continues in (resumed, changed, renewed):
        assert marks(continues(ended())) == [(11, True)], continues


def test_the_number_of_marked_matches_is_kept() -> None:
    for continues in (resumed, changed, renewed):
        run = ended()
        assert run.push("S", 20, fact("x"))[0].closed_by_end
        assert counts(continues(run)) == [(1, 1)], continues


def test_a_stream_that_goes_on_has_not_ended() -> None:
    for continues in (resumed, renewed):
        run = continues(ended())
        run.push("T", 2, fact("x"))
        assert marks(run) == [(11, False)]
        assert run.evaluation.ended == {}
