"""What the compiled core is told of an automaton."""

from __future__ import annotations

import pytest
from nfa_queries import planned

from spaseq.engine.aggregates import RunningAggregates
from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.native.table_types import CoreTables
from spaseq.nfa.native.tables import tables
from spaseq.nfa.registers import RegisterFile
from spaseq.nfa.wiring import windows_back


def written(
    seq: str, gpms: dict[str, str] | None = None, clauses: str = "WITHIN 10 SECONDS"
) -> CoreTables:
    plan = planned(seq, gpms, "SELECT *", clauses)
    return tables(plan, compile_automaton(plan), RegisterFile(plan, RunningAggregates()))


KEYED = {name: f"{{ ?k :{name.lower()} ?{name.lower()} }}" for name in "AB"}
IN_PARTITIONS = "WITHIN 10 SECONDS PARTITION BY ?k"


@pytest.mark.parametrize(
    ("seq", "more", "recorded"),
    [
        ("A , B", "", False),
        ("A ; B", " FROM STREAM r :r EMIT STRICT", False),
        ("A ; (A & B)", "", False),
        ("A , (A & B)", "", True),
        ("A ; (A & B)", " FROM STREAM r :r EMIT STRICT", True),
        ("A ; !(A , B) ; B", "", True),
        ("A ; (A & B)", " FROM STREAM r :r AFTER MATCH SKIP PAST LAST EVENT", False),
    ],
)
def test_instants_of_partitions_are_recorded_where_somebody_looks_back_at_contiguity(
    seq: str, more: str, recorded: bool
) -> None:
    found = written(seq, KEYED, IN_PARTITIONS + more)
    assert found.recorded == recorded
    assert found.tracked or not recorded


@pytest.mark.parametrize(
    ("seq", "windows"),
    [
        ("A ; B", 1),
        ("C? ; A", 1),
        ("A ; (C? ; D)? ; B", 1),
        ("C? ; (A & B)", 2),
        ("(C? ; D)? ; A", 2),
        ("(C? ; D)? ; (A AND B)", 3),
        ("((C? ; D)? ; B)? ; A", 3),
    ],
)
def test_steps_skipped_in_front_are_looked_for_from_before_the_window(
    seq: str, windows: int
) -> None:
    assert windows_back(compile_automaton(planned(seq))) == windows


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
    assert [row[-2] for row in found.occurrences] == [False, True, False]
