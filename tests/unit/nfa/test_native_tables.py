"""Which automata the compiled core takes, and what keeps the others from it."""

from __future__ import annotations

import pytest
from nfa_queries import planned

from spaseq.engine.aggregates import RunningAggregates
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.native import tables, unfit
from spaseq.nfa.registers import RegisterFile


def reason(
    seq: str,
    gpms: dict[str, str] | None = None,
    clauses: str = "WITHIN 10 SECONDS",
    head: str = "SELECT *",
) -> str | None:
    plan = planned(seq, gpms, head, clauses)
    return unfit(plan, compile_automaton(plan))


KEYED = {name: f"{{ ?k :{name.lower()} ?{name.lower()} }}" for name in "AB"}
IN_PARTITIONS = "WITHIN 10 SECONDS PARTITION BY ?k"


@pytest.mark.parametrize("seq", ["A", "A ; B : C , D", "A ; B+ ; C", "A : (B | (C{2,3} : D))"])
def test_sequences_iterations_and_disjunctions_fit(seq: str) -> None:
    assert reason(seq) is None


@pytest.mark.parametrize("window", ["TUMBLING 5 SECONDS", "5 EVENTS", "5 SECONDS", "UNBOUNDED"])
def test_every_window_fits(window: str) -> None:
    assert reason("A ; B", clauses=f"WITHIN {window}") is None


@pytest.mark.parametrize(
    "clauses", ["EMIT NEXT", "EMIT STRICT", "AFTER MATCH SKIP PAST LAST EVENT"]
)
def test_what_is_emitted_is_not_the_cores_business(clauses: str) -> None:
    assert reason("A ; B", clauses=f"WITHIN 5 SECONDS FROM STREAM r :r {clauses}") is None


def test_partitions_fit_without_contiguity() -> None:
    assert reason("A ; B", KEYED, IN_PARTITIONS) is None


def test_previous_and_last_values_fit() -> None:
    rising = "{ [] :b ?b FILTER(?b > PREV(?b, 0)) }"
    assert reason("A ; B+", {"B": rising}) is None
    assert reason("A+ ; B", {"B": "{ [] :b ?b FILTER(?b > LAST(?a)) }"}) is None


@pytest.mark.parametrize(
    ("seq", "more"),
    [
        ("A , B", ""),
        ("A ; B", " FROM STREAM r :r EMIT STRICT"),
        ("A ; B", " FROM STREAM r :r AFTER MATCH SKIP PAST LAST EVENT"),
    ],
)
def test_contiguity_and_skipping_within_partitions_fit(seq: str, more: str) -> None:
    assert reason(seq, KEYED, IN_PARTITIONS + more) is None


@pytest.mark.parametrize("seq", ["A ; (A & B)", "A ; !(A : B) ; B"])
def test_contiguity_and_skipping_within_partitions_beside_what_looks_back(seq: str) -> None:
    within = "contiguity or skipping within partitions, with guards or conjunctions that look back"
    for more in ("EMIT STRICT", "AFTER MATCH SKIP PAST LAST EVENT"):
        clauses = f"{IN_PARTITIONS} FROM STREAM r :r {more}"
        assert reason(seq, KEYED, clauses) == within
    assert reason(seq.replace(";", ","), KEYED, IN_PARTITIONS) == within
    assert reason(seq, KEYED, IN_PARTITIONS) is None
    assert reason(seq, KEYED, "WITHIN 5 SECONDS FROM STREAM r :r EMIT STRICT") is None


@pytest.mark.parametrize("seq", ["A ; !C ; B", "A ; C? ; B", "A ; !C ; !D : B+", "A ; !C"])
def test_negations_and_absent_steps_decided_on_sight_fit(seq: str) -> None:
    assert reason(seq) is None


@pytest.mark.parametrize(
    "seq", ["A ; !(C : D)", "A ; !(C : D) ; B", "C? ; A", "A ; (B ; C)?", "A ; !(C ; !D) ; B"]
)
def test_negations_of_units_and_steps_skipped_in_front_fit(seq: str) -> None:
    assert reason(seq) is None


@pytest.mark.parametrize(
    "negated", ["{ [] :c ?b }", "{ [] :c ?c FILTER(?c > ?b) }", "{ ?k :c ?c }"]
)
@pytest.mark.parametrize("seq", ["A ; !C ; B", "B ; !C ; A"])
def test_negations_that_read_what_follows_fit(seq: str, negated: str) -> None:
    assert reason(seq, {"A": "{ [] :a ?a }", "B": "{ ?k :b ?b }", "C": negated}) is None


@pytest.mark.parametrize("seq", ["(C? ; D)? ; A", "C? ; (A & B)", "C? ; (A AND B)"])
def test_steps_skipped_in_front_that_are_looked_for_from_before_the_window(seq: str) -> None:
    assert reason(seq) == "absent first steps that are looked for from before the window"


@pytest.mark.parametrize(
    "seq", ["(A & B) ; C", "C : (A AND B)", "A ; (B | (C & D))", "A ; !(B AND C) ; D"]
)
def test_conjunctions_fit(seq: str) -> None:
    assert reason(seq) is None


@pytest.mark.parametrize("term", ["SUM(?b)", "COUNT(B)", "FIRST(?b)", "AVG(DISTINCT ?b)"])
def test_values_over_iterations_fit(term: str) -> None:
    assert reason("B+ ; C", {"C": f"{{ [] :c ?c FILTER(?c > {term}) }}"}) is None


def test_assignments_of_other_steps_values_fit() -> None:
    assert reason("A ; B", {"B": "{ [] :b ?b BIND(?a + ?b AS ?c) }"}) is None


def test_several_last_values_of_a_variable_fit() -> None:
    assert reason("(A+ ; B)+", {"B": "{ [] :b ?b FILTER(1 <= LAST(?a)) }"}) is None


def test_what_only_the_output_shows_is_not_kept() -> None:
    head = "SELECT (SUM(?b) AS ?s) (FIRST(?b) AS ?f) (COUNT(B) AS ?n)"
    plan = planned("B+ ; C", {}, head, "WITHIN 10 SECONDS")
    assert {r.kind for r in plan.registers} == {"value", "aggregate", "first", "count"}
    found = tables(plan, compile_automaton(plan), RegisterFile(plan, RunningAggregates()))
    assert {plan.registers[number].kind for number in found.kept} == {"value"}
    assert found.followers == []


def test_rows_are_kept_before_they_are_bound_where_something_is_worked_out_of_them() -> None:
    gpms = {"C": "{ [] :c ?c FILTER(?c > MAX(?b)) }"}
    plan = planned("A ; B+ ; C", gpms, "SELECT *", "WITHIN 10 SECONDS")
    found = tables(plan, compile_automaton(plan), RegisterFile(plan, RunningAggregates()))
    assert [row[-1] for row in found.occurrences] == [False, True, False]
