"""What the engine's cost may grow with, by counters and never by the clock."""

from __future__ import annotations

import cProfile
import gc
import pstats
import re
from itertools import islice

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.program import compile_each
from spaseq.rdf.native._terms import EventBatch

EX = "http://example.org/"
S = EX + "s"
GPMS = {
    "A": "{ ?k :a ?x }",
    "B": "{ ?k :b ?y }",
    "C": "{ ?k :c ?z }",
    "N": "{ ?k :n [] }",
}
APART = {name: body.replace("?k", "[]") for name, body in GPMS.items()}


def query(seq: str, gpms: dict[str, str], window: str = "20 SECONDS", clauses: str = "") -> str:
    defines = " ".join(
        f"DEFINE GPM {name} ON s {gpms[name]}" for name in gpms if re.search(rf"\b{name}\b", seq)
    )
    return (
        f"PREFIX : <{EX}> ASK WITHIN {window} {clauses} FROM STREAM s :s "
        f"WHERE {{ SEQ({seq}) {defines} }}"
    )


def event(letter: str, key: int = 0, value: int = 0) -> list[ox.Triple]:
    subject = ox.NamedNode(f"{EX}k{key}")
    return [ox.Triple(subject, ox.NamedNode(EX + letter), ox.Literal(value))]


def fed(text: str | list[str], letters: str, keys: int = 1) -> spaseq.Run:
    """A run after one event a second, its subjects and values changing all the time."""
    run = spaseq.compile(text).start()
    for time, letter in enumerate(letters):
        run.push(S, time, event(letter, time % keys, time))
    return run


def visited(run: spaseq.Run) -> int:
    """Groups that rows were compared with."""
    return sum(state.visited for query in run.queries for state in query.counters().places)


def places(text: str) -> int:
    return len(spaseq.compile(text).queries[0].automaton.places)


# ------------------------------------------------------------------ groups


@pytest.mark.parametrize("unit", ["(B : C)", "(B+)", "(B : !N : C)"])
def test_groups_of_a_bounded_unit_are_those_of_the_bound(unit: str) -> None:
    run = fed(query(f"A : {unit} WITHIN 20 SECONDS", APART, "1 DAY"), "ab" * 700)
    # Each last instant before the unit has a group.
    assert 10 <= run.stats["groups"] <= 2 * 20 + 256
    states = [state for query in run.queries for state in query.counters().places]
    assert sum(state.expired for state in states) >= 400


@pytest.mark.parametrize("seq", ["A ; B WITHIN 20 SECONDS", "A : B+ WITHIN 20 SECONDS"])
def test_groups_are_those_of_the_bound_if_it_is_smaller_than_the_window(seq: str) -> None:
    bounded = fed(query(seq, GPMS, "1 DAY"), "a" * 4000, keys=4000)
    window = fed(query(seq.replace(" WITHIN 20 SECONDS", ""), GPMS, "1 DAY"), "a" * 4000, keys=4000)
    assert window.stats["groups"] == 4000
    # Expired groups are removed when their number has doubled.
    assert bounded.stats["groups"] <= 2 * 20 + 256
    small = fed(query(seq, GPMS, "5 SECONDS"), "a" * 4000, keys=4000)
    assert small.stats["groups"] <= 2 * 5 + 256


@pytest.mark.parametrize("seq", ["A : B : C", "A ; B+ : C", "A : (B | C)+ : N", "A : !N : C"])
def test_without_correlation_the_groups_do_not_grow_with_the_window(seq: str) -> None:
    groups = {
        window: fed(query(seq, APART, window), "ab" * 300).stats["groups"]
        for window in ("10 SECONDS", "100 SECONDS", "1 HOUR")
    }
    assert len(set(groups.values())) == 1
    assert groups["1 HOUR"] <= places(query(seq, APART))


def test_without_correlation_an_event_visits_one_group_per_place() -> None:
    text = query("A : B : C", APART, "1 HOUR")
    short, long = (visited(fed(text, "ab" * n)) / n for n in (50, 500))
    assert long <= short + 0.1 <= 3


def test_an_index_finds_one_group_among_many() -> None:
    text = query("A : B : C", GPMS, "1 HOUR")
    few, many = (fed(text, "aab" * 300, keys) for keys in (7, 301))
    assert many.stats["groups"] > 20 * few.stats["groups"] / 2
    assert visited(many) <= visited(few)


def test_a_comparison_across_steps_visits_the_groups_it_may_hit_as_explain_says() -> None:
    compared = {**APART, "B": "{ [] :b ?y FILTER(?y < ?x) }"}
    assert "logarithmic" in spaseq.compile(query("A : B", compared, "1 HOUR")).explain()
    run = fed(query("A : B", compared, "1 HOUR"), "a" * 100 + "b" * 10)
    assert visited(run) == 100 + 0


def test_a_filter_across_steps_visits_every_group_as_explain_says() -> None:
    compared = {**APART, "B": "{ [] :b ?y FILTER(?y < ?x + 0) }"}
    program = spaseq.compile(query("A : B", compared, "1 HOUR"))
    assert "linear in the groups waiting in place 2" in program.explain()
    run = fed(query("A : B", compared, "1 HOUR"), "a" * 100 + "b" * 10)
    assert visited(run) == 100 + 10 * 100


def test_bounded_iterations_cost_places_not_copies() -> None:
    assert places(query("A : B{2}", APART)) == places(query("A : B{1000,100000}", APART))


def test_the_automaton_is_linear_in_the_sequence() -> None:
    sizes = [places(query(" ; ".join("AB" * n), APART)) for n in (5, 10, 20)]
    assert sizes == [10, 20, 40]


# ------------------------------------------------------------------ evaluations


def test_a_graph_pattern_is_evaluated_once_an_event_whatever_waits_for_it() -> None:
    texts = [query(seq, GPMS) for seq in ("A : B", "A ; B", "B , A", "A ; B+ ; A")]
    run = fed(texts, "aabb" * 50)
    assert run.stats["evaluated_gpms"] == 200 * 2
    assert run.stats["groups"] > 0


@pytest.mark.parametrize("seq", ["A : (B & C)", "A ; (B AND C)", "A : (B AND (C | N))"])
def test_a_conjunction_meets_the_groups_that_share_its_keys(seq: str) -> None:
    letters = "a" * 100 + "bc" * 100
    run = spaseq.compile(query(seq, GPMS, "1 DAY")).start()
    for number, letter in enumerate(letters):
        key = number if number < 100 else (number - 100) // 2
        run.push(S, min(number, 100), event(letter, key))
    assert run.stats["matches"] >= 1
    assert visited(run) <= 100 + 2 * 100


# ------------------------------------------------------------------ memory

ENDLESS = [
    query("A : B : C", APART),
    query("A ; !N ; B", GPMS),
    query("A : B+", {**GPMS, "B": "{ ?k :b ?y FILTER(?y > PREV(?y, 0)) }"}, "5 SECONDS"),
    query("A AND B", GPMS),
    query("N? ; A ; C", GPMS),
    query("A , B", GPMS, "1 MINUTE", "PARTITION BY ?k"),
    query("A ; !B", GPMS),
    query("A : C", GPMS, "30 EVENTS"),
]


def test_what_is_kept_is_bounded_by_the_window() -> None:
    """20,000 events: what is kept after the first 2,500 is what is kept ever after."""
    run = spaseq.compile(ENDLESS).start()
    kept = []
    for time in range(20_000):
        run.push(S, time, event("abanca"[time % 6], time % 5, time))
        if time % 2_500 == 2_499:
            stats = run.stats
            kept.append((stats["groups"], stats["nodes"], stats["buffered_rows"]))
    for sizes in zip(*kept, strict=True):
        # The longest window holds 60 events.
        assert max(sizes) <= 60 * len(ENDLESS)
        assert max(sizes) - min(sizes) <= 3 * len(ENDLESS)
    for query_run in run.queries:
        state = query_run.state()
        assert len(state.awaited) <= 60
        assert sum(len(partition.instants) for partition in state.partitions) <= 60
        assert not any(partition.skipped for partition in state.partitions)


def test_strictly_waiting_partial_matches_are_those_of_the_last_instant() -> None:
    run = fed(query("A , B", APART, "1 DAY"), "a" * 2000)
    assert run.stats["nodes"] <= 2


def test_a_state_is_as_large_as_what_is_shared() -> None:
    """Of n² partial matches that wait in one group, n are written; once, wherever they stand."""
    for count in (50, 200):
        run = fed(query("A : B : C", APART, "1 DAY"), "a" * count + "b" * count)
        state = run.queries[0].state()
        assert len(state.graph) <= 4 * 2 * count
        assert len(state.labels) == 2 * count
        resumed = run.program.resume(run.save())
        assert len(resumed.queries[0].state().graph) == len(state.graph)
        assert resumed.stats["bytes"] == run.stats["bytes"] > 100 * count


# ------------------------------------------------------------------ enumeration


def encoded(run: spaseq.Run, letters: str) -> EventBatch:
    """An event a second, as readers hand them over."""
    batch = EventBatch(run.rows.matchers.dictionary, stream=S)
    for time, letter in enumerate(letters):
        facts = [(fact.subject, fact.predicate, fact.object) for fact in event(letter)]
        batch.add(facts, time * 1_000_000, 0, None, ox.Literal(time), False)
    return batch


def test_the_first_matches_do_not_wait_for_the_others() -> None:
    """Of 2 to the power of 200, taken from a batch."""
    text = query("A+ : B", APART, "1 DAY").replace("ASK", "SELECT *")
    run = spaseq.compile(text).start()
    some = list(islice(run.push_batch(encoded(run, "a" * 200 + "b")), 10))
    assert len(some) == len({match.to_json() for match in some}) == 10
    assert run.queries[0].matched <= 11


def test_strict_contiguity_meets_the_last_instant_of_a_partition_only() -> None:
    text = query("A , B", GPMS, "1 DAY", "PARTITION BY ?k").replace("ASK", "SELECT *")
    run = fed(text, "a" * 2000, keys=2)
    before = visited(run)
    assert len(run.push(S, 2000, event("b", 0))) == 1
    assert visited(run) - before <= 2


def test_iterations_keep_no_more_than_the_window() -> None:
    """What a run holds under `B+` follows the window, not the stream."""
    run = spaseq.compile(query("A ; B+", APART, "10 SECONDS").replace("ASK", "SELECT ?x")).start()
    sizes = []
    for time in range(60_000):
        run.push(S, time, event("ab"[time % 2], value=time))
        sizes.append(run.queries[0].native.core.tecs.bytes)
    assert max(sizes) < 1 << 20
    assert max(sizes[30_000:]) <= max(sizes[:30_000])


def test_a_time_in_front_of_a_window_of_events_keeps_the_terms_of_that_time() -> None:
    """Every key is new. The events of the time are many times those of the window, and vary."""
    (query_run,) = (run := spaseq.compile(FORGETFUL).start()).queries
    last: dict[int, int] = {}
    live = []
    time = 0
    for number in range(12_000):
        time += number % (1, 5, 9)[number // 4_000] == 0  # 1, 5, then 9 events a second
        key = number - (50 if number % 3 else 0)
        if number % 90 < 45:
            last[key] = time
        matches = run.push(S, time, event("an"[number % 90 < 45], key))
        absent = last.get(key, -100) < time - 60
        assert bool(matches) == (number % 90 >= 45 and absent)
        live.append(query_run.native.step.window.live)
    # No more than 9 events a second, and epochs end with 256 terms.
    assert max(live) < 4 * 60 * 9 + 2 * 256
    assert run.stats["buffered_rows"] <= 61 * 9


FORGETFUL = query("!N WITHIN 60 SECONDS ; A", GPMS, "3 EVENTS")


@pytest.mark.parametrize("condition", ["?x + ?y > 0", "?x + ?y < 0", "?y > ?x", "?y < ?x"])
def test_groups_that_an_event_has_passed_over_are_visited_once(condition: str) -> None:
    gpms = {"A": GPMS["A"], "B": f"{{ ?k :b ?y FILTER({condition}) }}"}
    run = fed(query("A , B", gpms, "1 DAY", "PARTITION BY (?k)"), "ab" * 400)
    assert visited(run) <= 4 * 800


def _separate(count: int) -> spaseq.Program:
    """Queries of which no two share a pattern."""
    text = (
        "PREFIX : <http://example.org/> SELECT ?c WITHIN 10 SECONDS FROM STREAM s :s WHERE {{ "
        "SEQ(A : B) DEFINE GPM A ON s {{ ?c :p{0} ?x }} "
        "DEFINE GPM B ON s {{ ?c :q{0} ?y . FILTER(?y > ?x) }} }}"
    )
    return compile_each([(f"q{n}", text.format(n), {}) for n in range(count)], {})


def test_resuming_costs_each_query_once() -> None:
    def cost(count: int) -> tuple[int, int]:
        """The calls and steps of generators of resuming, and the number of queries."""
        program = _separate(count)
        run = program.start(prune=False)
        run.push("s", 1, b"<urn:a> <http://example.org/p1> <urn:b> .")
        blob = run.save()
        profile = cProfile.Profile()
        profile.runcall(program.resume, blob, prune=False)
        return pstats.Stats(profile).total_calls, count  # type: ignore[attr-defined]

    (few, small), (many, large) = cost(40), cost(400)
    assert many / few < 1.1 * large / small


def test_the_first_event_does_not_visit_all_objects_again_and_again() -> None:
    run = _separate(600).start(prune=False)
    passes: list[int] = []

    def count(phase: str, says: dict[str, int]) -> None:
        if phase == "start":
            passes.append(says["generation"])

    gc.collect()
    gc.callbacks.append(count)
    try:
        run.push("s", 1, b"<urn:a> <http://example.org/p1> <urn:b> .")
    finally:
        gc.callbacks.remove(count)
    assert len(passes) < 5
