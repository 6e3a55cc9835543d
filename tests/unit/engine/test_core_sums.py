"""All groups that a comparison lets through are joined at once: the matches are the same."""

from __future__ import annotations

import random
from dataclasses import replace

import pyoxigraph as ox
import pytest
from core_runs import Taken, encoded, in_python
from engine_runs import text
from test_core_orders import drawn, event, results

import spaseq
from spaseq.nfa.native.range_tables import joins_whole
from spaseq.rdf.event import Event

GPMS = (
    "A ON s {{ [] :a ?x }} ",
    "D ON s {{ [] :d ?x }} ",
    "B ON s {{ [] :b ?y FILTER(?y {0} ?x) }} ",
    "C ON s {{ [] :c ?z FILTER(?y {1} ?z) }} ",
    "N ON s {{ [] :n ?x }} ",
    "L ON s {{ [] :c ?z }} ",
)


def steps(
    sequence: str, *operators: str, clauses: str = "", end: str = "", window: int = 30
) -> spaseq.Program:
    """`sequence` names some of the GPMs."""
    used = "".join(f"DEFINE GPM {gpm.format(*operators)}" for gpm in GPMS if gpm[0] in sequence)
    within = f"WITHIN {window} SECONDS {clauses}"
    return spaseq.compile(text(f"SEQ({sequence})", used, clauses=within) + end)


def whole(compiled: spaseq.Program) -> int:
    """How many edges take all groups of a range at once."""
    (query,) = compiled.queries
    return sum(
        joins_whole(query.plan, query.automaton, number, position)
        for number, place in enumerate(query.automaton.places)
        for position in range(len(place.edges))
    )


@pytest.mark.parametrize("operators", [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")])
@pytest.mark.parametrize("seed", range(6))
def test_two_comparisons_of_values_of_all_kinds(operators: tuple[str, str], seed: int) -> None:
    events = drawn(random.Random(seed), "aabbcc", "k", 200)
    compiled = steps("A : B : C", *operators)
    assert whole(compiled) == 2
    run = compiled.start()
    taken = Taken(run)
    found = results(run, events, True)
    assert taken.events == len(events)
    assert found
    assert found == results(in_python(compiled), events, False)


def numbers(seed: int, length: int = 160) -> list[Event]:
    """Few values, and up to three events of one time."""
    chance = random.Random(seed)
    times = sorted(chance.choices(range(length // 2), k=length))
    found = []
    for n, time in enumerate(times):
        letter, value = chance.choice("aabbccdn"), ox.Literal(chance.randint(0, 6))
        ordinal = n - times.index(time)
        found.append(replace(event(time, letter, "k", value), ordinal=ordinal))
    return found


SEQUENCES = [
    "A : B : C",
    "(A | D) : B : C",
    "A : !N : B : C",
    "A : B : (C | L)",
    "A : B : !N : C",
    "A ; D : B : C",
]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("clauses", ["", "AFTER MATCH SKIP PAST LAST EVENT"])
@pytest.mark.parametrize("seed", range(3))
def test_sequences_with_other_steps(sequence: str, clauses: str, seed: int) -> None:
    compiled = steps(sequence, ">", ">=", clauses=clauses)
    assert whole(compiled)
    events = numbers(seed)
    run = compiled.start()
    found = results(run, events, True)
    assert found
    assert found == results(in_python(compiled), events, False)


@pytest.mark.parametrize("choice", ["EMIT NEXT", "EMIT LAST", "EMIT MAX", "LIMIT 2"])
@pytest.mark.parametrize("seed", range(3))
def test_some_matches_are_chosen(choice: str, seed: int) -> None:
    emit, limit = (choice, "") if choice.startswith("EMIT") else ("", choice)
    compiled = steps("A : B : C", ">", ">=", clauses=emit, end=limit)
    assert whole(compiled) == 2
    events = numbers(seed)
    found = results(compiled.start(), events, True)
    assert found
    assert found == results(in_python(compiled), events, False)


@pytest.mark.parametrize("seed", range(3))
def test_saved_and_resumed_in_between(seed: int) -> None:
    compiled = steps("A : B : C", ">", ">=")
    events = drawn(random.Random(seed), "aabbc", "k", 120)
    run = compiled.start()
    found = []
    for number in range(0, len(events), 7):
        found += list(run.push_batch(encoded(run, events[number : number + 7])))
        run = compiled.resume(run.save())
    expected = list(compiled.start().push_batch(events))
    assert found
    assert sorted(str(match.to_dict()) for match in found) == sorted(
        str(match.to_dict()) for match in expected
    )


def test_what_is_kept_for_later_is_told_apart() -> None:
    kept = (
        "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x) } "
        "DEFINE GPM C ON s { [] :c ?z FILTER(?z > ?x) }"
    )
    compiled = spaseq.compile(text("SEQ(A : B : C)", kept, clauses="WITHIN 30 SECONDS"))
    assert whole(compiled) == 1  # C forgets all, B does not
    events = drawn(random.Random(3), "aabbc", "k", 150)
    assert results(compiled.start(), events, True) == results(in_python(compiled), events, False)


@pytest.mark.parametrize(
    "condition", ["?y > ?x && ?y < ?x + 5", "?y > ?x + 1", "?y = ?x", "?y > ?x || ?y > 3"]
)
def test_other_filters_are_asked_group_by_group(condition: str) -> None:
    gpms = f"DEFINE GPM A ON s {{ [] :a ?x }} DEFINE GPM B ON s {{ [] :b ?y FILTER({condition}) }}"
    compiled = spaseq.compile(text("SEQ(A : B)", gpms, clauses="WITHIN 30 SECONDS"))
    assert whole(compiled) == 0
    events = numbers(1)
    assert results(compiled.start(), events, True) == results(in_python(compiled), events, False)


def test_a_row_makes_one_node_whatever_number_of_groups_it_is_joined_to() -> None:
    chance = random.Random(1)
    for waiting in (40, 4000):
        run = steps("A : B : C", ">", ">", window=99999).start()
        low = [event(n, "a", "k", ox.Literal(chance.random())) for n in range(waiting)]
        list(run.push_batch(encoded(run, low)))
        native = run.queries[0].native
        made = native.core.tecs.made
        high = [event(waiting + n, "b", "k", ox.Literal(n + 2)) for n in range(20)]
        list(run.push_batch(encoded(run, high)))
        assert native.core.tecs.made - made == 20


def test_unions_are_worked_out_again_only_where_something_changed() -> None:
    """The bytes of an event depend on the logarithm of the groups, not on their number."""
    chance = random.Random(1)
    bytes_of = []
    for waiting in (500, 8000):
        run = steps("A : B : C", ">", ">", window=99999).start()
        low = [event(n, "a", "k", ox.Literal(chance.random())) for n in range(waiting)]
        low.append(event(waiting, "b", "k", ox.Literal(0.5)))
        list(run.push_batch(encoded(run, low)))
        native = run.queries[0].native
        before = native.core.tecs.bytes
        mixed = [
            event(waiting + 1 + n, "ab"[n % 2], "k", ox.Literal(chance.random()))
            for n in range(200)
        ]
        list(run.push_batch(encoded(run, mixed)))
        bytes_of.append(native.core.tecs.bytes - before)
    assert bytes_of[1] < 3 * bytes_of[0]
