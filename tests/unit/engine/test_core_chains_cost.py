"""The costs of lazy and eager chains, by counters, and their explanation."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyoxigraph as ox
import pytest
from core_runs import native
from engine_runs import EX, S

import spaseq
from spaseq.runs import Run

WINDOW = 100
GPMS = {
    "A": "{ ?j :a ?x }",
    "B": "{ ?k :b ?y FILTER(?x * ?y > 9000) }",
    "C": "{ ?l :c ?z }",
}


def chain(seq: str = "A : B : C", gpms: dict[str, str] | None = None, clauses: str = "") -> str:
    patterns = GPMS | (gpms or {})
    defines = " ".join(f"DEFINE GPM {n} ON s {p}" for n, p in patterns.items() if n in seq)
    clauses = clauses or f"WITHIN {WINDOW} SECONDS"
    return f"PREFIX : <{EX}> SELECT * {clauses} FROM STREAM s :s WHERE {{ SEQ({seq}) {defines} }}"


def rarely(count: int, every: int, rare: str = "c", frequent: str = "ab") -> Iterator[str]:
    """The rare kind now and then, the frequent ones in turn."""
    for number in range(count):
        yield rare if number % every == every - 1 else frequent[number % len(frequent)]


def went(run: Run, letters: Iterator[str], seed: int = 0) -> int:
    """How many matches there are when an event a second has come."""
    chance = random.Random(seed)
    found = 0
    for time, letter in enumerate(letters, run.stats["events"]):
        subject = ox.NamedNode(f"{EX}k{time}")
        fact = ox.Triple(subject, ox.NamedNode(EX + letter), ox.Literal(chance.randint(1, 100)))
        found += len(run.push(S, time, [fact]))
    return found


def compared(run: Run) -> int:
    """Rows and groups that rows were compared with, trials included; starts are none."""
    core = native(run).core
    places = run.queries[0].counters().places
    return (
        core.lazy_join.searched
        + core.lazy_join.sampled
        + sum(s.visited for s in places if not s.place.start)
    )


def run_of(lazily: bool | None, text: str = "") -> Run:
    run = spaseq.compile(text or chain()).start()
    native(run).core.lazy_join.join(lazily)
    return run


# ------------------------------------------------------------------ cost


def test_where_the_last_step_is_rare_a_tenth_is_compared() -> None:
    eager, lazy, observed = (run_of(way) for way in (False, True, None))
    matches = {went(run, rarely(6000, 900)) for run in (eager, lazy, observed)}
    assert len(matches) == 1
    assert matches != {0}
    assert compared(eager) > 6000 * WINDOW / 6
    assert compared(lazy) < compared(eager) / 10
    assert compared(observed) < compared(eager) / 10 + 2 * 1024
    assert native(observed).core.lazy_join.lazy


def test_nothing_is_compared_for_a_last_step_that_never_comes() -> None:
    run = run_of(True)
    went(run, rarely(2000, 10_000))
    assert compared(run) == 0


def test_where_the_last_step_is_frequent_rows_are_joined_as_they_come() -> None:
    eager, lazy, observed = (run_of(way) for way in (False, True, None))
    matches = {went(run, rarely(3000, 3)) for run in (eager, lazy, observed)}
    assert len(matches) == 1
    assert compared(lazy) > 3 * compared(eager)
    assert compared(observed) < 1.5 * compared(eager)
    assert not native(observed).core.lazy_join.lazy


def test_rates_that_drift_are_followed() -> None:
    run, ways = run_of(None), []
    for every in (500, 3, 500, 4, 1000):
        went(run, rarely(4000, every))
        ways.append(native(run).core.lazy_join.lazy)
    assert ways == [True, False, True, False, True]
    assert 5 <= native(run).core.lazy_join.switches < 12
    fixed = [run_of(way) for way in (False, True)]
    for other in fixed:
        for every in (500, 3, 500, 4, 1000):
            went(other, rarely(4000, every))
    assert compared(run) < 0.8 * min(map(compared, fixed))


def test_a_search_that_costs_too_much_is_given_up() -> None:
    """All the rows of the window, at once, but no more than they would have cost as they came."""
    run = run_of(None, chain(gpms={"B": "{ ?k :b ?y FILTER(ABS(?x * ?y) > 9000) }"}))
    went(run, rarely(2000, 3000))
    assert native(run).core.lazy_join.lazy
    before = compared(run)
    went(run, rarely(2, 1))
    once = compared(run) - before
    went(run, rarely(WINDOW, 1))
    assert not native(run).core.lazy_join.lazy
    assert compared(run) - before < 12 * 1.25 * 2 * once


def test_the_rarest_rows_are_looked_at_first_and_filters_asked_at_once() -> None:
    """From D on: A, of which there are few, then B, which a filter decides; C is not looked at."""
    gpms = {
        "A": "{ ?j :a ?x }",
        "B": "{ ?k :b ?y FILTER(ABS(?x * ?y) < 0) }",
        "C": "{ ?l :c ?z }",
        "D": "{ ?m :d ?w }",
    }
    run = run_of(True, chain("C : A : B : C : D", gpms))
    went(run, iter("c" * 10 + "a" * 5 + "b" * 30 + "c" * 30 + "d"))
    assert native(run).core.lazy_join.searched == 5 + 5 * 30


def test_a_filter_that_no_numbers_of_a_block_satisfy_passes_over_it() -> None:
    """Each A asks once about all B; a B that is great enough is found through its blocks."""
    gpms = {"B": "{ ?k :b ?y FILTER(?x * ?y > 10000) }"}
    text = chain(gpms=gpms, clauses="WITHIN 2000 SECONDS")
    run = run_of(True, text)
    went(run, iter("a" * 60 + "b" * 600))
    assert went(run, iter("c")) == 0
    assert native(run).core.lazy_join.searched <= 60 + 60 * 3
    told = run.why_not()
    assert "FILTER(?x * ?y > 10000) was not true 36,000 times" in told
    great = ox.Triple(ox.NamedNode(f"{EX}g"), ox.NamedNode(f"{EX}b"), ox.Literal(10_001))
    assert run.push(S, 661, [great]) == []
    went(run, iter("b" * 300))
    before = native(run).core.lazy_join.searched
    assert went(run, iter("c")) == 60
    assert native(run).core.lazy_join.searched - before <= 60 + 60 * (4 + 16 + 16)


def test_blocks_forget_the_numbers_of_rows_that_have_gone() -> None:
    run = run_of(True, chain(gpms={"B": "{ ?k :b ?y FILTER(?x * ?y > 10000) }"}))
    great = ox.Triple(ox.NamedNode(f"{EX}g"), ox.NamedNode(f"{EX}b"), ox.Literal(10_001))
    for _ in range(4):
        went(run, iter("a"))
        for time in range(run.stats["events"], run.stats["events"] + 60):
            run.push(S, time, [great])
    went(run, iter("ab" * 500))
    assert went(run, iter("c")) == 0
    assert native(run).core.lazy_join.searched <= 50 + 50 * 3


def test_conjunctions_ask_a_filter_as_soon_as_it_can_be() -> None:
    run = spaseq.compile(chain("A AND B AND C", {"B": "{ ?k :b ?y FILTER(?x * ?y < 0) }"})).start()
    went(run, iter("a" * 20 + "b" * 20 + "c" * 20))
    assert native(run).core.conjunction.looked <= 20 * (20 + 20 * 20)


def test_an_index_leaves_few_rows_to_look_at() -> None:
    gpms = {"B": "{ ?k :b ?y FILTER(?x * ?y > 9000) }", "C": "{ ?k :c ?z }"}
    run = run_of(True, chain(gpms=gpms))
    went(run, iter("ab" * 40 + "c"))
    assert native(run).core.lazy_join.searched <= 8


# ------------------------------------------------------------------ what it rests on


def test_bounds_speak_of_groups_so_rows_are_joined_as_they_come() -> None:
    program = spaseq.compile(chain())
    for limits in ({"max_groups": 10_000}, {"max_steps": 10_000}):
        run = program.start(**limits)
        went(run, rarely(2000, 500))
        assert not native(run).core.lazy_join.lazy
    lazy = run_of(True)
    went(lazy, rarely(2000, 500))
    blob = lazy.save()
    free, bounded = program.resume(blob), program.resume(blob, max_groups=10_000)
    assert native(free).core.lazy_join.lazy
    assert native(bounded).core.lazy_join.lazy  # until an event comes
    assert went(free, iter("cabc")) == went(bounded, iter("cabc")) > 0
    assert not native(bounded).core.lazy_join.lazy


def test_a_bounded_run_keeps_no_rows_and_is_gone_on_with_as_rows_come() -> None:
    """An event that runs out of steps is taken twice: its rows must not be kept twice."""
    gpms = {"B": "{ ?k :b ?y FILTER(?x * ?y > 5000) }"}
    program = spaseq.compile(chain(gpms=gpms))
    bounded = program.start(max_steps=20, on_limit="shed")
    went(bounded, rarely(300, 5000))
    assert bounded.stats["shed_groups"] > 0
    assert bounded.stats["buffered_rows"] == 0
    free = program.resume(bounded.save())
    native(free).core.lazy_join.min_rows = 1
    went(free, rarely(WINDOW - 1, 5000))
    assert not native(free).core.lazy_join.lazy
    went(free, rarely(WINDOW, 5000))
    assert native(free).core.lazy_join.lazy
    fixed = program.resume(free.save())
    native(fixed).core.lazy_join.join(False)
    for each in (free, fixed):
        went(each, iter("ab" * 20))
    assert went(free, iter("ccc")) == went(fixed, iter("ccc")) > 0


def test_one_match_of_a_row_is_enough_for_ask() -> None:
    text = chain(gpms={"B": "{ ?k :b ?y FILTER(?x * ?y > 0) }"})
    every, one = run_of(True, text), run_of(True, text.replace("SELECT *", "ASK"))
    assert went(every, rarely(61, 61)) == 30 * 31 // 2
    assert went(one, rarely(61, 61)) == 1
    assert native(one).core.lazy_join.searched < native(every).core.lazy_join.searched / 50


def test_matches_that_are_only_chosen_among_are_not_listed_for_nothing() -> None:
    """Each is found by looking at one more row; but to choose among them takes longer."""
    text = chain(gpms={"B": "{ ?k :b ?y FILTER(?x * ?y > 4000) }"})
    for clause, lazily in (("", True), ("EMIT NEXT", False)):
        run = run_of(None, text.replace("FROM STREAM", f"{clause} FROM STREAM"))
        went(run, rarely(399, 400))
        assert native(run).core.lazy_join.lazy
        assert went(run, iter("c")) > 0
        assert native(run).core.lazy_join.lazy == lazily


def test_rows_are_saved_either_way() -> None:
    for lazily in (False, True):
        run = run_of(lazily)
        went(run, rarely(150, 500))
        assert run.stats["buffered_rows"] == WINDOW + 1
        taken_up = run.program.resume(run.save())
        native(taken_up).core.lazy_join.join(True)
        native(run).core.lazy_join.join(True)
        assert went(taken_up, iter("c" * 5)) == went(run, iter("c" * 5)) > 0


def test_what_was_observed_is_saved() -> None:
    """A run that is saved and taken up all the time goes the way of one that is not."""
    run, other = run_of(None), run_of(None)
    turns = 0
    for every in (500, 3, 500):
        for _ in range(20):
            assert went(run, rarely(200, every)) == went(other, rarely(200, every))
            turns += native(other).core.lazy_join.switches
            other = other.program.resume(other.save())
        assert (
            native(other).core.lazy_join.lazy == native(run).core.lazy_join.lazy == (every == 500)
        )
    assert 3 <= turns < 7


def test_a_state_without_the_rows_of_the_window_is_gone_on_with_as_rows_come() -> None:
    """Where groups are bounded, nothing but groups is kept."""
    run = run_of(False)
    bounded = run.program.start(max_groups=10_000)
    assert went(run, rarely(1000, 5000)) == went(bounded, rarely(1000, 5000))
    resumed = run.program.resume(bounded.save())
    native(resumed).core.lazy_join.min_rows = 1
    assert went(resumed, rarely(20, 5000)) == went(run, rarely(20, 5000))
    assert not native(resumed).core.lazy_join.lazy
    assert went(resumed, iter("ccc")) == went(run, iter("ccc")) > 0
    went(resumed, rarely(2 * WINDOW, 5000))
    assert native(resumed).core.lazy_join.lazy


# ------------------------------------------------------------------ what is said


def test_explain_says_how_rows_are_joined_and_what_came_of_it() -> None:
    run = run_of(None)
    assert "or lazily when C occurs" in run.program.explain()
    went(run, rarely(2000, 500))
    shown = run.explain()
    assert "now lazily, switched 1 time;" in shown
    looked = native(run).core.lazy_join.searched
    assert f"{looked:,} rows examined lazily" in shown
    assert run.program.to_dict()["queries"][0]["joined"]["eager_because"] is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (chain("A ; B : C"), "not a chain of single graph patterns under :"),
        (chain("A : B+ : C"), "not a chain of single graph patterns under :"),
        (chain("A : !C : B : C"), "not a chain of single graph patterns under :"),
        (chain(clauses="WITHIN UNBOUNDED"), "without a window"),
        (chain(clauses="WITHIN 9 SECONDS EMIT STRICT"), "EMIT STRICT"),
        (chain(gpms={"C": "{ ?l :c ?z FILTER EXISTS { ?e :o ?x } }"}), "tests the current event"),
        (chain(gpms={"C": "{ ?l :c ?z BIND(?x + ?z AS ?n) }"}), "a BIND over several steps"),
        (
            chain(gpms={"B": "{ ?k :b ?y FILTER(COALESCE(?z, ?x) < ?y) }"}),
            "reads what a later step may bind",
        ),
    ],
)
def test_explain_says_why_rows_are_always_joined_eagerly(text: str, reason: str) -> None:
    shown = spaseq.compile(text).explain()
    line = next(line for line in shown.splitlines() if "rows are joined eagerly" in line)
    assert reason in line


@pytest.mark.parametrize("seq", ["A : B", "A : C : B"])
def test_nothing_is_said_where_no_step_visits_groups_before_the_last(seq: str) -> None:
    gpms = {"B": "{ ?k :b ?y FILTER(?y > 0) }"}
    assert "joined eagerly" not in spaseq.compile(chain(seq, gpms)).explain()


def test_why_not_says_what_stopped_rows_that_were_joined_lazily() -> None:
    run = run_of(True, chain(gpms={"B": "{ ?k :b ?y FILTER(?x * ?y < 0) }"}))
    went(run, rarely(300, 50))
    told = run.why_not()
    assert "rows were joined lazily when C occurred" in told
    assert "FILTER(?x * ?y < 0) was not true" in told
    assert "never reached:" not in told
