"""Comparisons that an ordered index serves: nothing is missed, and little is looked at in vain."""

from __future__ import annotations

import random
from collections import Counter

import pyoxigraph as ox
import pytest
from core_runs import Taken, encoded, in_python
from engine_runs import EX, S, program
from oracle import comparable, timestamp

import spaseq
from spaseq.nfa.native.range_tables import deciding_operator
from spaseq.rdf.event import NUMBER, Event

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMBERS = {
    "integer": ("0", "1", "-1", "16777216", "16777217", "9" * 30),
    "decimal": ("0.0", "0.5", "1.0", "16777216.5", "0." + "0" * 17 + "1"),
    "float": ("0", "1", "1.6777216E7", "INF", "-INF", "NaN", "1E-40"),
    "double": ("0", "-0.0", "1", "1.6777217E7", "INF", "NaN", "1E300", "1E-300"),
    "boolean": ("true", "false"),
    "dateTime": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2025-12-31T20:00:00-05:00"),
    "string": ("a", "b"),
    "date": ("2026-01-01",),
}
VALUES = [
    ox.Literal(text, datatype=ox.NamedNode(XSD + kind))
    for kind, texts in NUMBERS.items()
    for text in texts
] + [ox.Literal("a", language="en"), ox.NamedNode(EX + "a")]


def gpms(operator: str, keyed: bool = True) -> str:
    k = "?k" if keyed else "[]"
    return (
        f"DEFINE GPM A ON s {{ {k} :a ?x }} "
        f"DEFINE GPM B ON s {{ {k} :b ?y FILTER(?y {operator} ?x) }}"
    )


def event(number: int, letter: str, key: str, value: ox.Literal | ox.NamedNode) -> Event:
    fact = (ox.NamedNode(EX + key), ox.NamedNode(EX + letter), value)
    return Event(S, timestamp(number * 1_000_000, NUMBER), 0, [fact])


def drawn(chance: random.Random, letters: str, keys: str, length: int) -> list[Event]:
    return [
        event(n, chance.choice(letters), chance.choice(keys), chance.choice(VALUES))
        for n in range(length)
    ]


def results(run: spaseq.Run, events: list[Event], whole: bool) -> Counter[object]:
    given = encoded(run, events) if whole else events
    return Counter(map(repr, comparable(list(run.push_batch(given)) + run.finish())))


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("seq", ["SEQ(A : B)", "SEQ(A ; B)", "SEQ(A ; B ; B)"])
@pytest.mark.parametrize("seed", range(4))
def test_values_of_all_kinds_are_compared_as_without_an_index(
    operator: str, seq: str, seed: int
) -> None:
    events = drawn(random.Random(seed), "aab", "kj", 160)
    compiled = program(seq, gpms(operator), clauses="WITHIN 40 SECONDS")
    places = compiled.queries[0].automaton.places
    assert any(order is not None for place in places for order in place.orders)
    run = compiled.start()
    taken = Taken(run)
    found = results(run, events, True)
    assert taken.events == len(events)
    assert found == results(in_python(compiled), events, False)
    assert found


@pytest.mark.parametrize("operator", ["<", ">="])
@pytest.mark.parametrize("seed", range(3))
def test_the_iteration_before_is_compared_through_an_index(operator: str, seed: int) -> None:
    many = f"DEFINE GPM A ON s {{ ?k :a ?x FILTER(?x {operator} PREV(?x, ?x)) }} "
    last = "DEFINE GPM B ON s { ?k :b ?y FILTER(?y > LAST(?x)) }"
    compiled = program("SEQ(A+ ; B)", many + last, clauses="WITHIN 12 SECONDS")
    events = drawn(random.Random(seed), "aaab", "kj", 120)
    run = compiled.start()
    assert results(run, events, True) == results(in_python(compiled), events, False)


@pytest.mark.parametrize(
    ("filters", "decided"),
    [
        ("FILTER(?y > ?x)", True),
        ("FILTER(?x >= ?y)", True),
        ("FILTER(?y > PREV(?y, ?x))", True),
        ("FILTER(?y = ?x)", False),
        ("FILTER(?y > ?x + 1)", False),
        ("FILTER(?y > ?x && ?y != ?x)", False),
        ("FILTER(?y > ?x) FILTER(?y != ?x)", False),
        ("FILTER(?y > ?x) BIND(?x AS ?z)", False),
    ],
)
def test_one_comparison_alone_is_decided_by_its_order(filters: str, decided: bool) -> None:
    gpms = f"DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?k :b ?y {filters} }}"
    (query,) = program("SEQ(A ; B+)", gpms, clauses="WITHIN 40 SECONDS").queries
    assert decided == any(
        deciding_operator(query.plan, query.automaton, number, position)
        for number, place in enumerate(query.automaton.places)
        for position in range(len(place.edges))
    )


def visited(run: spaseq.Run) -> int:
    return sum(state.visited for state in run.queries[0].counters().places)


def test_what_does_not_fit_is_not_visited() -> None:
    seen = []
    for waiting in (50, 500):
        run = program("SEQ(A : B)", gpms(">", keyed=False), clauses="WITHIN 9999 SECONDS").start()
        rising = [event(n, "a", "k", ox.Literal(n + 100)) for n in range(waiting)]
        list(run.push_batch(encoded(run, rising)))
        before = visited(run)
        low = [event(waiting + n, "b", "k", ox.Literal(100 + n % 3)) for n in range(30)]
        list(run.push_batch(encoded(run, low)))
        seen.append(visited(run) - before)
    assert seen[0] == seen[1] == 50  # all that are less at once, and the one that equals


SMALL = [0, 1, -1, 2, 7]
LARGE = [sign * (2**n + d) for n in (49, 51, 53) for d in (-1, 0, 1) for sign in (1, -1)]
DECIMALS = ["1.5", "-1.5", "1.50", "2.0", "0.0", "-0.0", "0.0000001", "-0.0000001", "1.6777215"]
DECIMALS += ["1.6777216", "1.67772150", "2.0000001", "99999999999.125", "99999999999.1250001"]
LONG = ["1." + "0" * 15 + "1", "1." + "0" * 16 + "1", "1." + "0" * 17 + "1", "1.0"]


def number(value: int | str) -> ox.Literal:
    """A literal of an integer, or of a decimal's text."""
    if isinstance(value, int):
        return ox.Literal(value)
    return ox.Literal(value, datatype=ox.NamedNode(f"{XSD}decimal"))


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize(
    "numbers",
    [SMALL, SMALL + LARGE, [*SMALL, 10**18, 10**18 + 1], SMALL + DECIMALS, DECIMALS, SMALL + LONG],
)
def test_numbers_of_few_digits_and_many_are_compared_as_without_an_index(
    operator: str, numbers: list[int | str]
) -> None:
    chance = random.Random(2)
    events = [
        event(n, chance.choice("aab"), "k", number(chance.choice(numbers))) for n in range(300)
    ]
    # From here on there are others in the order, too.
    events[200] = event(200, "a", "k", ox.Literal(1.5))
    for seq in ("SEQ(A : B)", "SEQ(A ; B)"):
        compiled = program(seq, gpms(operator), clauses="WITHIN 40 SECONDS")
        found = results(compiled.start(), events, True)
        assert found == results(in_python(compiled), events, False)
        assert found


@pytest.mark.parametrize(
    ("operator", "others", "fitting"),
    [("<", "", 3), ("<=", "", 4), ("<", "decimal", 3), ("<", "double", 4)],
)
def test_of_numbers_of_few_digits_those_that_fit_are_visited(
    operator: str, others: str, fitting: int
) -> None:
    run = program("SEQ(A ; B)", gpms(operator), clauses="WITHIN 99 SECONDS").start()
    waiting = [event(n, "a", "k", ox.Literal(n)) for n in range(10)]
    if others:
        waiting.append(event(10, "a", "j", ox.Literal("0", datatype=ox.NamedNode(XSD + others))))
    list(run.push_batch(encoded(run, waiting)))
    before = visited(run)
    found = list(run.push_batch(encoded(run, [event(20, "b", "k", ox.Literal(6))])))
    assert visited(run) - before == fitting
    assert len(found) == 3 + (operator == "<=")


@pytest.mark.parametrize("seed", range(3))
def test_groups_go_from_the_index_with_the_window(seed: int) -> None:
    chance = random.Random(seed)
    compiled = program("SEQ(A ; B)", gpms(">"), clauses="WITHIN 7 SECONDS")
    events = [
        event(n, chance.choice("aaab"), chance.choice("kjl"), ox.Literal(chance.randint(0, 9)))
        for n in range(3000)
    ]
    run = compiled.start()
    assert results(run, events, True) == results(in_python(compiled), events, False)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("keyed", [True, False])
def test_long_ranges_are_gone_through_group_by_group(operator: str, keyed: bool) -> None:
    chance = random.Random(5)
    numbers = [chance.randint(0, 900) for _ in range(1500)]
    events = [event(n, "a", "k", ox.Literal(number)) for n, number in enumerate(numbers)]
    asked = [0, 1, 450, 899, 900]
    events += [event(1500 + n, "b", "k", ox.Literal(number)) for n, number in enumerate(asked)]
    run = program("SEQ(A : B)", gpms(operator, keyed), clauses="WITHIN 9999 SECONDS").start()
    found = Counter(
        int(match.events[1].bindings["y"].value)  # type: ignore[union-attr]
        for match in run.push_batch(encoded(run, events))
    )
    agrees = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}[operator]
    assert found == Counter(y for y in asked for x in numbers if agrees(y, x))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keyed", [True, False])
def test_values_that_must_be_equal_are_found_by_an_index(seed: int, keyed: bool) -> None:
    events = drawn(random.Random(seed), "aab", "kj", 200)
    compiled = program("SEQ(A : B)", gpms("=", keyed), clauses="WITHIN 60 SECONDS")
    run = compiled.start()
    assert results(run, events, True) == results(in_python(compiled), events, False)


def test_what_is_not_equal_is_not_visited() -> None:
    seen = []
    for waiting in (50, 500):
        run = program("SEQ(A : B)", gpms("=", keyed=False), clauses="WITHIN 9999 SECONDS").start()
        others = [event(2 * n, "a", "k", ox.Literal(n)) for n in range(waiting)]
        others += [event(2 * n + 1, "a", "k", ox.Literal(f"x{n}")) for n in range(waiting)]
        list(run.push_batch(encoded(run, sorted(others, key=lambda e: e.time.micros))))
        before = visited(run)
        asked = [ox.Literal(7), ox.Literal(7.0), ox.Literal("x7"), ox.NamedNode(EX + "x7")]
        list(
            run.push_batch(
                encoded(run, [event(2000 + n, "b", "k", value) for n, value in enumerate(asked)])
            )
        )
        seen.append(visited(run) - before)
    assert seen == [3, 3]
