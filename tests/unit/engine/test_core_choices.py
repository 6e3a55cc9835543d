"""EMIT and LIMIT on the compiled core enumerate the selected matches only."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from core_runs import in_python
from engine_runs import EX, push, shown, text

import spaseq
from spaseq.nfa.native._selection import Selection
from spaseq.runs import Run

APART = (
    "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y } DEFINE GPM C ON s { [] :c ?z }"
)


def started(seq: str, clauses: str, end: str = "") -> Run:
    query = text(f"SEQ({seq})", APART if "C" in seq else APART.partition(" DEFINE GPM C")[0],
                 clauses=f"WITHIN 1 HOUR {clauses}")  # fmt: skip
    return spaseq.compile(query + end).start()


def in_partitions(seq: str, gpms: str, clauses: str = "") -> Run:
    query = text(seq, gpms, clauses=f"WITHIN 1 HOUR PARTITION BY ?k {clauses}")
    return spaseq.compile(query).start()


def selection(run: Run) -> Selection:
    native = run.queries[0].native
    assert native.selection is not None
    return native.selection


@pytest.mark.parametrize("clauses", ["EMIT MAX", "EMIT NEXT", "EMIT LAST", "EMIT ANY"])
def test_one_of_many_subsets_is_listed(clauses: str) -> None:
    """Two to the power of 60 matches, of which one is kept."""
    looked = []
    for length in (30, 60):
        run = started("A : B+ : C", clauses)
        push(run, 0, "k a 1")
        for time in range(1, length + 1):
            push(run, time, "k b 1")
        (found,) = push(run, length + 1, "k c 1")
        assert selection(run).listed == 1
        looked.append(selection(run).looked)
        assert len(found.split()) == length + 2
    assert looked[1] <= 2.2 * looked[0] <= 2.2 * 30 * 12


def test_next_and_last_among_pairs() -> None:
    """a b a b … c: NEXT takes the first ones, LAST the last ones; neither lists the others."""
    for clauses, wanted in (("EMIT NEXT", "A@0 B@1 C@40"), ("EMIT LAST", "A@38 B@39 C@40")):
        run = started("A : B : C", clauses)
        for time in range(40):
            push(run, time, "k a 1" if time % 2 == 0 else "k b 1")
        assert push(run, 40, "k c 1") == [wanted]
        assert selection(run).listed == 1


def test_limit_lists_no_more_than_it_keeps() -> None:
    run = started("A : B : C", "", " LIMIT 3")
    for time in range(80):
        push(run, time, "k a 1" if time % 2 == 0 else "k b 1")
    assert push(run, 80, "k c 1") == ["A@0 B@1 C@80", "A@0 B@3 C@80", "A@0 B@5 C@80"]
    assert selection(run).listed == 3
    assert selection(run).looked < 6 * 80


def test_limit_lists_matches_of_the_same_instants_to_choose_by_solution() -> None:
    run = started("A : B", "", " LIMIT 2")
    run.push(f"{EX}s", 0, facts("a", 3, 1, 2))
    run.push(f"{EX}s", 1, facts("a", 0))
    found = run.push(f"{EX}s", 2, facts("b", 7))
    assert [match.bindings["x"].value for match in found] == ["1", "2"]
    assert selection(run).listed == 4


def test_matches_of_the_same_events_stay_together() -> None:
    for clauses in ("EMIT ANY", "EMIT MAX", "EMIT NEXT", "EMIT LAST"):
        run = started("A : B", clauses)
        run.push(f"{EX}s", 0, facts("a", 1, 2))
        run.push(f"{EX}s", 1, facts("a", 3))
        found = run.push(f"{EX}s", 2, facts("b", 7, 8))
        events = Counter(shown(found))
        assert set(events.values()) <= {2, 4}, clauses
        if clauses != "EMIT MAX":
            assert len(events) == 1


def test_any_takes_the_first_in_each_partition() -> None:
    keyed = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"
    run = in_partitions("SEQ(A : B)", keyed, "EMIT ANY")
    push(run, 0, "k a 1")
    push(run, 1, "j a 1, k a 2")
    push(run, 2, "j a 2")
    assert sorted(push(run, 3, "k b 1, j b 1")) == ["A@0 B@3", "A@1 B@3"]
    assert selection(run).listed == 2


def test_strict_emission_keeps_only_what_is_contiguous() -> None:
    """Under EMIT STRICT a partial match waits for one instant, whatever its operator."""
    run = started("A : B : C", "EMIT STRICT")
    for time in range(0, 300, 3):
        push(run, time, "k a 1")
        push(run, time + 1, "k b 1")
        assert len(push(run, time + 2, "k c 1")) == 1
        assert run.stats["nodes"] <= 3
    assert run.queries[0].matched == 100


def test_strict_emission_within_partitions() -> None:
    keyed = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"
    run = in_partitions("SEQ(A : B)", keyed, "EMIT STRICT")
    push(run, 0, "k a 1")
    push(run, 1, "j a 1")
    assert push(run, 2, "k b 1") == ["A@0 B@2"]
    push(run, 3, "j c 1")
    assert push(run, 4, "j b 1") == ["A@1 B@4"]
    push(run, 5, "k a 1, k b 2")
    assert push(run, 6, "k b 1") == ["A@5 B@6"]
    assert push(run, 7, "k b 1") == []


def test_an_event_that_only_other_patterns_read_breaks_contiguity_in_its_partition() -> None:
    keyed = (
        "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y } "
        "DEFINE GPM C ON s { ?k :c ?z FILTER(?z > 100) }"
    )
    run = in_partitions("SEQ(A , B : C)", keyed)
    for time, facts_ in enumerate(("k a 1", "j c 1", "k b 1", "k c 101")):
        found = push(run, time, facts_)
    assert found == ["A@0 B@2 C@3"]
    for time, facts_ in enumerate(("k a 1", "k c 1", "k b 1", "k c 101"), 10):
        # An event of C's pattern, though its filter turns it down.
        assert push(run, time, facts_) == (["A@0 B@2 C@13"] if time == 13 else [])


def test_partitions_skip_for_themselves() -> None:
    keyed = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"
    run = in_partitions("SEQ(A : B)", keyed, "AFTER MATCH SKIP PAST LAST EVENT")
    push(run, 0, "k a 1, j a 1")
    assert push(run, 1, "k b 1") == ["A@0 B@1"]
    assert push(run, 2, "k b 1, j b 1") == ["A@0 B@2"]
    assert push(run, 3, "k b 1, j b 1") == []


def facts(predicate: str, *values: int) -> bytes:
    """N-Triples of one subject."""
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    return "".join(
        f'<{EX}k> <{EX}{predicate}> "{value}"^^{integer} .\n' for value in values
    ).encode()


@pytest.mark.parametrize("seed", range(60))
def test_what_is_chosen_is_what_a_list_of_all_gives(seed: int) -> None:
    """The core beside the automaton in Python, which lists all matches of an instant."""
    chance = random.Random(seed)
    seq = chance.choice(
        ("A : B : C", "A : B+ : C", "A ; B+ : C", "(A | B)+ : C", "A : (A | B) : B")
    )
    clauses, end = chance.choice(
        (("EMIT MAX", ""), ("EMIT NEXT", ""), ("EMIT LAST", ""), ("", " LIMIT 1"),
         ("", " LIMIT 4"), ("EMIT ANY", ""))
    )  # fmt: skip
    query = text(f"SEQ({seq})", APART if "C" in seq else APART.partition(" DEFINE GPM C")[0],
                 clauses=f"WITHIN 8 SECONDS {clauses}")  # fmt: skip
    program = spaseq.compile(query + end)
    ours, theirs = program.start(), in_python(program)
    for time in range(40):
        letters = chance.sample("abc", chance.choice((0, 1, 1, 1, 2)))
        event = b"".join(facts(letter, *range(chance.choice((1, 1, 2)))) for letter in letters)
        found = ours.push(f"{EX}s", time, event)
        wanted = theirs.push(f"{EX}s", time, event)
        assert Counter(m.to_json() for m in found) == Counter(m.to_json() for m in wanted)
