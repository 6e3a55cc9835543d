"""What keeps a query from the compiled core besides its automaton."""

from __future__ import annotations

import pytest
from engine_runs import AB, EX, text

import spaseq
from spaseq.engine.fitness import unfit

EVENTS = "WITHIN 3 EVENTS"


def reasons(*queries: str) -> list[str | None]:
    program = spaseq.compile(list(queries))
    run = program.start()
    found = [unfit(program, query) for query in program.queries]
    assert [reason is None for reason in found] == [q.native is not None for q in run.queries]
    return found


def with_b(body: str) -> str:
    return text(AB, f"DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ {body} }}")


def test_what_the_automaton_says_comes_first() -> None:
    skipped = with_b("?k :b+ ?y").replace("SEQ(", "SEQ((B? : B)? ; ")
    assert reasons(skipped) == ["absent first steps that are looked for from before the window"]


def test_exists_in_a_bind_over_a_partial_match() -> None:
    assert reasons(with_b("?j :b ?y BIND(IF(EXISTS { ?j :c ?k }, ?x, 1) AS ?z)")) == [
        "EXISTS in a BIND that needs a partial match"
    ]


def test_binds_over_a_partial_match_without_bytecode() -> None:
    (reason,) = reasons(with_b("?k :b ?y BIND(REPLACE(?x, 'a', 'b') AS ?z)"))
    assert reason is not None


@pytest.mark.parametrize(
    "body",
    [
        "?k :b* ?y",
        "?j :b ?y FILTER EXISTS { ?j :c ?x }",
        "?j :b ?y FILTER NOT EXISTS { ?j :c ?x }",
        "?k :b ?y FILTER(REPLACE(?x, 'a', 'b') = ?y)",
    ],
)
def test_what_is_left_to_python_keeps_nothing_else_from_the_core(body: str) -> None:
    assert reasons(with_b(body)) == [None]


OTHER = text(
    gpms="DEFINE GPM A ON r { ?k :a ?x } DEFINE GPM B ON r { ?k :b ?y }",
    clauses=EVENTS,
    streams=f"FROM STREAM r <{EX}r>",
)
UNLIKE = "a window that counts events beside queries that do not count the same"


def test_windows_that_count_the_same_events() -> None:
    assert reasons(text(clauses=EVENTS), text("SEQ(A : B)", clauses="WITHIN 9 EVENTS")) == [
        None,
        None,
    ]


def test_windows_that_count_events_beside_windows_of_time() -> None:
    assert reasons(text(clauses=EVENTS), text()) == [UNLIKE, None]


def test_windows_that_count_events_of_different_streams() -> None:
    assert reasons(text(clauses=EVENTS), OTHER) == [UNLIKE, UNLIKE]
