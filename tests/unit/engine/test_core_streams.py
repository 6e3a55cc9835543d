"""The compiled core on long streams: its state, its costs, its saved state.

Cost and memory are read from counters. Whatever is compared with the automaton in Python is
fed to the core in encoded batches.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyoxigraph as ox
import pytest
from core_runs import SECOND, Taken, encoded, event, in_python, native
from engine_runs import EX, GPMS, R, S, program, push, shown, text
from oracle import comparable

import spaseq
from spaseq.rdf.event import Event
from spaseq.results import Match


def fed(run: spaseq.Run, events: list[Event], size: int = 100) -> list[Match]:
    taken = Taken(run)
    found: list[Match] = []
    for first in range(0, len(events), size):
        found += run.push_batch(encoded(run, events[first : first + size]))
    assert taken.events == len(events)
    return found


def visited(run: spaseq.Run) -> int:
    return sum(state.visited for state in run.queries[0].counters().places)


APART = "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y }"
ONE = ox.Literal(1)

# ------------------------------------------------------------------ cost


@pytest.mark.parametrize("seq", ["SEQ(A : B)", "SEQ(A : A : B)", "SEQ(A : B+)"])
def test_without_correlation_nodes_do_not_grow_with_the_window(seq: str) -> None:
    letters = "aaaaaaaaac" * 60  # nothing is complete, so nothing is enumerated
    made = {}
    for window in (5, 50, 5000):
        run = program(seq, APART, "ASK", f"WITHIN {window} SECONDS").start()
        fed(run, [event(t * SECOND, letter, t, t) for t, letter in enumerate(letters)])
        made[window] = native(run).core.tecs.made
    assert made[50] == made[5000]
    assert made[5000] <= 2 * len(letters)


def test_an_index_visits_as_many_groups_however_many_keys_there_are() -> None:
    seen = []
    for keys in (10, 100, 1000):
        run = program("SEQ(A : B)", clauses="WITHIN 100000 SECONDS").start()
        fed(run, [event(k * SECOND, "a", f"k{k}") for k in range(keys)])
        before = visited(run)
        fed(run, [event((keys + n) * SECOND, "b", f"k{n % keys}") for n in range(50)])
        seen.append(visited(run) - before)
    assert seen[1] == seen[2] == 50


# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("clauses", ["WITHIN 100 SECONDS", "WITHIN 100 EVENTS"])
def test_ever_new_names_leave_nothing_behind(clauses: str) -> None:
    """50,000 events, each of a subject and a value that never come again."""
    run = program("SEQ(A : B)", clauses=clauses).start()
    most_terms = 0
    for first in range(0, 50_000, 500):
        some = range(first, first + 500)
        fed(run, [event(t * SECOND, "ab"[t % 3 == 2], f"k{t // 3}", f"v{t}") for t in some], 500)
        most_terms = max(most_terms, run.rows.matchers.window.live)
    assert run.queries[0].matched > 30_000
    # One and a half windows of two terms an event and a time; three epochs of nodes, each a chunk
    # that is used again and again.
    assert most_terms <= 2 * 3 * 100
    assert native(run).core.tecs.reserved <= 3 << 16
    assert sum(state.groups for state in run.queries[0].counters().places) <= 110


def test_a_long_iteration_is_enumerated() -> None:
    run = program(
        "SEQ(A , B+ , C)",
        APART + " DEFINE GPM C ON s { [] :c ?z }",
        clauses="WITHIN 1000 SECONDS",
    ).start()
    letters = "a" + "b" * 20_000 + "c"
    found = fed(run, [event(t * 1000, letter, "k") for t, letter in enumerate(letters)], 5000)
    assert [len(match.events) for match in found] == [20_002]


@pytest.mark.parametrize(
    ("seconds", "epoch"),
    # Nodes of 3 MB, in epochs of a sixteenth or little more; of 6 MB, in epochs of a large page.
    [(20, 1 << 18), (40, 1 << 21)],
)
def test_nodes_go_behind_a_window_that_is_far_larger_than_an_epoch(
    seconds: int, epoch: int
) -> None:
    run = program("SEQ(A : B)", APART, "ASK", f"WITHIN {seconds} SECONDS").start()
    sizes = []
    for first in range(0, 4000 * seconds, 1000):
        fed(run, [event(t * 1000, "a", "k", t) for t in range(first, first + 1000)], 1000)
        sizes.append(native(run).core.tecs.bytes)
    window, rest = sizes[seconds - 1], sizes[seconds * 3 // 2 :]
    assert window > seconds << 17
    assert window <= max(rest) <= window + 2 * epoch
    assert max(rest[len(rest) // 2 :]) == pytest.approx(max(rest[: len(rest) // 2]), rel=0.05)
    # Chunks end nearly full.
    assert native(run).core.tecs.reserved <= max(rest) * 9 // 8 + 3 * epoch


def test_what_only_ends_matches_leaves_nothing_behind() -> None:
    """More of it at once than a chunk has room for, and then again."""
    ordered = "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x) }"
    run = program("SEQ(A ; B)", ordered, clauses="WITHIN 100000 SECONDS").start()
    reserved = []
    for start in range(0, 20_000, 4000):
        fed(run, [event((start + n) * SECOND, "a", "k", n) for n in range(3500)], 3500)
        before = native(run).core.tecs.bytes
        found = fed(run, [event((start + 3500) * SECOND, "b", "k", 3000)])
        found += fed(run, [event((start + 3501) * SECOND, "b", "k", 4000)])
        assert sorted(int(match.bindings["x"].value) for match in found) == list(range(3500))
        assert native(run).core.tecs.bytes == before
        reserved.append(native(run).core.event.transient.reserved)
    assert 1 << 16 < reserved[0] == reserved[-1] <= 3 << 16


@pytest.mark.parametrize(
    ("seq", "gpms"),
    [
        # Each C ends a match of another way, too: before the others, or after them.
        (
            f"SEQ({either})",
            "DEFINE GPM A ON s { ?k :c ?x } DEFINE GPM B ON s { ?k :b ?y } "
            "DEFINE GPM C ON s { ?k :c ?z }",
        )
        for either in ("A | (B : C)", "(B : C) | A")
    ]
    + [
        # A group that agrees only variable by variable comes before others.
        (
            "SEQ(B : C)",
            "DEFINE GPM B ON s { ?k :b ?y OPTIONAL { ?k :n ?z } } "
            "DEFINE GPM C ON s { ?k :c ?x . ?k :n ?z }",
        )
    ],
)
def test_what_ends_matches_goes_with_the_next_event(seq: str, gpms: str) -> None:
    run = program(seq, gpms, clauses="WITHIN 5 SECONDS").start()
    core = native(run).core
    held = []
    for first in range(0, 900, 300):
        some = []
        for t in range(first, first + 300):
            happened = event(t * SECOND, "bbc"[t % 3], "k", t)
            if t % 3 != 1:
                known = ox.NamedNode(f"{EX}k"), ox.NamedNode(f"{EX}n"), ONE
                happened = replace(happened, facts=[*happened.facts, known])
            some.append(happened)
        assert fed(run, some)
        held.append(core.event.transient.bytes)
    assert 0 < max(held) < 2000


# ------------------------------------------------------------------ more than is near


def test_matches_of_more_events_than_a_maker_remembers() -> None:
    """Each event is part of two matches that are made long after one another."""
    run = program("SEQ(A : B)", APART, clauses="WITHIN 1 HOUR").start()
    events = [event(t * 1000, "a", "k", t) for t in range(6000)]
    events += [event(6_000_000 + t, "b", "k", t) for t in range(2)]
    found = fed(run, events, 1000)
    values = [(match.bindings["x"].value, match.bindings["y"].value) for match in found]
    assert sorted(values) == sorted((str(x), str(y)) for x in range(6000) for y in range(2))


@pytest.mark.parametrize("size", [7, 1000])
def test_a_join_of_more_keys_than_are_near(size: int) -> None:
    """So many terms that those of the next events are fetched ahead, some known, some new."""
    run = program("SEQ(A : B)", clauses="WITHIN 1 HOUR").start()
    chance = random.Random(5)
    events, waiting, expected = [], Counter[str](), 0
    for t in range(30_000):
        letter, key = chance.choice("ab"), f"k{chance.randrange(16_000)}"
        events.append(event(t * 1000, letter, key, t % 5))
        if letter == "a":
            waiting[key] += 1
        else:
            expected += waiting[key]
    found = fed(run, events, size)
    assert len(found) == expected > 5000
    assert run.rows.matchers.window.live > 8192
    for match in found:
        start, end = match.events
        assert start.bindings["k"] == end.bindings["k"] == match.bindings["k"]


def test_groups_of_more_registers_than_fit_a_line_of_the_cache() -> None:
    same = " ; ".join(f":p{n} ?v{n}" for n in range(6))
    run = program(
        "SEQ(A : B)",
        f"DEFINE GPM A ON s {{ ?k {same} }} DEFINE GPM B ON s {{ ?k {same} ; :end 1 }}",
    ).start()
    chance = random.Random(6)
    made = [tuple(chance.randrange(3) for _ in range(6)) for _ in range(300)]
    found = 0
    for t, values in enumerate(made):
        facts = ", ".join(f"k p{n} {value}" for n, value in enumerate(values))
        found += len(push(run, t / 1000, facts + (", k end 1" if t >= 200 else "")))
    before = Counter[tuple[int, ...]]()
    expected = 0
    for t, values in enumerate(made):
        expected += before[values] if t >= 200 else 0
        before[values] += 1
    assert found == expected > 0


# ------------------------------------------------------------------ putting down and taking up


def test_a_large_state_lives_on_until_the_window_has_passed_over_it() -> None:
    """More nodes than an epoch holds, of which only the first one has expired by then."""
    times = [0, *range(10_000_000, 10_600_000, 100), *range(101_000_000, 103_000_000, 100)]
    events = [event(time, "a", f"k{time}", time) for time in times]
    events += [event(104_000_000 + n, "b", f"k{times[n + 1]}") for n in range(6000)]
    made = program("SEQ(A ; B)", clauses="WITHIN 100 SECONDS")
    run = made.start()
    found = fed(run, events[:6002])
    run = made.resume(run.save())
    found += fed(run, events[6002:])
    assert len(found) == 6000
    for match in found:
        start, end = match.events
        assert start.bindings["k"] == end.bindings["k"]
        assert start.bindings["k"] == ox.NamedNode(f"{EX}k{start.time.micros}")


# ------------------------------------------------------------------ terms and counted windows


EQUAL = GPMS.replace("?y }", "?y FILTER(?y = ?x) }")


def test_terms_live_as_long_as_a_window_that_counts_one_streams_events() -> None:
    """Two queries, each of which counts the events of its own stream."""
    few = "WITHIN 3 EVENTS"
    other = text(gpms=EQUAL.replace("ON s", "ON r"), clauses=few, streams="FROM STREAM r :r")
    run = spaseq.compile([text(gpms=EQUAL, clauses=few), other]).start()
    push(run, 1, "fresh a 55")
    for time in range(2, 60):
        push(run, time, f"k{time} a {time}, k{time} b {time + 1000}", R)
    assert push(run, 100, "fresh b 55") == ["A@1 B@100"]


def test_terms_live_as_long_as_a_window_in_which_queued_events_do_not_count_yet() -> None:
    gpms = EQUAL.replace("B ON s", "B ON s, r")
    streams = "FROM STREAM s :s FROM STREAM r :r"
    made = program("SEQ(A ; B)", gpms, clauses="WITHIN 3 EVENTS", streams=streams)
    for resumed in (False, True):
        run = made.start()
        found = push(run, 1, "fresh a 55") + push(run, 1, "fresh b 55")
        for n in range(20):
            found += push(run, 1, f"k{n} b {n + 100}")
        if resumed:
            run = made.resume(run.save())
        found += push(run, 2, "other b 1") + shown(run.finish())
        assert found == ["A@1 B@1"]


def test_a_row_too_late_for_a_strict_place_asks_no_filter_about_forgotten_terms() -> None:
    """The place remembers what it passed over for one instant more, the window may not."""
    gpms = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?j :b ?y FILTER(?y != ?x) }"
    for time, counter in ((3, "passed_over"), (1000, "outside")):
        run = program("SEQ(A , B)", gpms).start()
        push(run, 1, "k a 55")
        push(run, 2, "")
        push(run, time, "m b 66")
        (place,) = (
            state for state in run.queries[0].counters().places if state.place.operator == ","
        )
        counted = {"passed_over": place.passed_over, "outside": place.outside}
        assert counted == {"passed_over": 0, "outside": 0, counter: 1}


# ------------------------------------------------------------------ against the automaton in Python

SHAPES = {
    "next": ("SEQ(A ; B)", GPMS, "WITHIN 9 SECONDS"),
    "any": ("SEQ(A : B)", GPMS, "WITHIN TUMBLING 7 SECONDS"),
    "strict": ("SEQ(A , B)", APART, "WITHIN 9 SECONDS"),
    "iteration": ("SEQ(A ; B{1,3} : A)", GPMS, "WITHIN 12 EVENTS"),
    "rising": (
        "SEQ(A : B+)",
        GPMS.replace("?y }", "?y FILTER(?y > PREV(?y, 0)) }"),
        "WITHIN 5 SECONDS",
    ),
    "compared": ("SEQ(A : B)", APART.replace("?y }", "?y FILTER(?y > ?x) }"), "WITHIN 5 SECONDS"),
    "partition": ("SEQ(A : B ; A)", GPMS, "WITHIN 8 SECONDS PARTITION BY ?k"),
    "skip": ("SEQ(A ; B)", GPMS, "WITHIN 9 SECONDS AFTER MATCH SKIP PAST LAST EVENT"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_long_streams_give_what_the_automaton_in_python_gives(shape: str, seed: int) -> None:
    """Batch by batch, with terms that come and go, gaps, equal times, and states put down."""
    seq, gpms, clauses = SHAPES[shape]
    within, *after = clauses.partition(" AFTER")
    made = program(seq, gpms, clauses=within, streams="FROM STREAM s :s" + "".join(after))
    chance = random.Random(seed)
    events, now, ordinal = [], 0, 0
    for number in range(2000):
        step = chance.choice([0, 1, 1, 1, 2, 2, 40 if chance.random() < 0.02 else 1])
        now, ordinal = now + step, 0 if step else ordinal + 1
        key = chance.choice(["k", f"k{number // 4}"])
        events.append(event(now * SECOND, chance.choice("abx"), key, chance.randrange(4), ordinal))
    run, plain = made.start(), in_python(made)
    while events:
        size = chance.randrange(1, 60)
        some, events = events[:size], events[size:]
        ours, theirs = run.push_batch(encoded(run, some)), plain.push_batch(some)
        assert Counter(comparable(list(ours))) == Counter(comparable(list(theirs)))
        if chance.random() < 0.05:
            run = made.resume(run.save())
    assert run.queries[0].matched == plain.queries[0].matched > 20


# ------------------------------------------------------------------ matches

FREE = "DEFINE GPM A ON s { [] :a [] } DEFINE GPM B ON s { [] :b ?y }"


def test_matches_that_are_not_asked_for_cost_nothing() -> None:
    run = program("SEQ(A : A : A : A : A : B)", FREE, clauses="WITHIN 9999 SECONDS").start()
    events = [event(t * SECOND, "a", t, t) for t in range(200)]
    events += [event(200 * SECOND, "b", "b", 200)]
    found = iter(run.push_batch(encoded(run, events)))
    assert all(len(next(found).events) == 6 for _ in range(10))
    assert run.stats["matches"] == 10  # of 200 over 5, which is 2.5 billion


def test_matches_are_gone_when_the_run_goes_on() -> None:
    run = program("SEQ(A : B)", FREE).start()
    events = [event(t * SECOND, "a", t, t) for t in range(3)] + [event(3 * SECOND, "b", "b", 3)]
    found = iter(run.push_batch(encoded(run, events)))
    next(found)
    run.push(S, 4, [])
    with pytest.raises(RuntimeError, match="the run has gone on"):
        next(found)


def test_a_tally_counts_the_matches_there_are() -> None:
    events = [event(t * SECOND, "ab"[t % 3 == 2], t, t) for t in range(30)]
    counted = program("SEQ(A : A : B)", FREE).start()
    batch = encoded(counted, events)
    after, tally, witnesses = native(counted).tally(batch, 0, 1 << 63)
    assert after == len(batch)
    found = fed(program("SEQ(A : A : B)", FREE).start(), events)
    assert tally == len(found) > 50
    assert witnesses == 3 * tally
    ends = Counter(match.events[-1].time for match in found)
    some = program("SEQ(A : A : B)", FREE).start()
    _, first, witnesses = native(some).tally(encoded(some, events), 0, 4)
    assert first == sum(min(4, count) for count in ends.values()) < tally
    assert witnesses == 3 * first
