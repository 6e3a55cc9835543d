"""Conjunctions on the compiled core: the rows examined, and the counters."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from core_runs import native, pushed, started
from engine_runs import EX, S

KEYED = {name: f"{{ ?k :{name.lower()} ?{name.lower()} }}" for name in "ABC"}
APART = {name: f"{{ [] :{name.lower()} ?{name.lower()} }}" for name in "ABC"}


@pytest.mark.parametrize("seq", ["A & B & C", "A AND B AND C"])
def test_nothing_is_looked_at_before_every_operand_has_an_event(seq: str) -> None:
    run = started(seq, APART)
    for number in range(100):
        pushed(run, 1, "ab"[number % 2])
    assert native(run).core.conjunction.looked == 0
    assert pushed(run, 1, "c") == 50 * 50


def test_a_conjunction_looks_at_the_rows_of_its_timestamp() -> None:
    run = started("A & B", APART)
    for time in range(300):
        pushed(run, time, "a")
    assert pushed(run, 400, "a") == 0
    assert pushed(run, 400, "b") == 1
    assert pushed(run, 401, "b") == 0
    assert native(run).core.conjunction.looked == 1


def test_any_order_begins_with_the_rarest_operand_and_goes_on_by_index() -> None:
    run = started("A AND B AND C", KEYED)
    for time in range(500):
        pushed(run, time, "a", key=time)
    for time in range(500, 505):
        pushed(run, time, "b", key=time - 500)
    assert pushed(run, 600, "c", key=3) == 1
    # One row of each, and what falls into its bucket.
    assert native(run).core.conjunction.looked <= 8


def test_an_event_stands_for_one_operand_only() -> None:
    run = started("A AND B", {"A": "{ ?k ?p ?a }", "B": "{ ?j ?q ?b }"})
    assert pushed(run, 0, "x") == 0
    assert pushed(run, 1, "x") == 2
    assert pushed(run, 2, "x") == 4


def test_the_next_conjunction_takes_whom_it_follows() -> None:
    run = started("C ; (A & B)", APART)
    pushed(run, 0, "c")
    pushed(run, 1, "a")
    assert pushed(run, 1, "b") == 1
    assert pushed(run, 1, "b") == 1
    pushed(run, 2, "a")
    assert pushed(run, 2, "b") == 0


@pytest.mark.parametrize("seq", ["A AND B", "C ; (A AND B)", "A & B", "C ; (A & B)"])
def test_what_is_kept_is_bounded_by_the_window(seq: str) -> None:
    run = started(seq, KEYED, "20 SECONDS")
    for time in range(3_000):
        pushed(run, time // 3, "abc"[time % 3], key=time % 5)
    native = run.queries[0].native
    assert len(list(native.parts.buffered_rows())) <= 2 * 21 + 2
    assert run.stats["groups"] <= 3 * 21


def test_witnesses_come_in_the_order_of_their_instants() -> None:
    run = started("C : (A AND B) : C", KEYED)
    for time, letter in enumerate("cba"):
        pushed(run, time, letter)
    (match,) = run.push(
        S, 9, [ox.Triple(ox.NamedNode(EX + "k0"), ox.NamedNode(EX + "c"), ox.Literal(0))]
    )
    assert [witness.gpm for witness in match.events] == ["C", "B", "A", "C"]
