"""Range indexes of hundreds of groups return the groups of a range, in any order of insertion."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter

import pyoxigraph as ox
import pytest
from core_runs import encoded, in_python
from engine_runs import program
from oracle import comparable
from test_core_orders import event, results

from spaseq.rdf.event import Event

DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
ARRIVALS = {
    "anyhow": lambda n, chance: chance.randrange(10_000),
    "rising": lambda n, chance: 3 * n,
    "falling": lambda n, chance: -3 * n,
    "alike": lambda n, chance: chance.randrange(3),
    "in waves": lambda n, chance: (n * 37) % 200,
}
"""The value of the n-th event."""


def events(arrival: str, seed: int, others: str, count: int = 400) -> list[Event]:
    """Mostly events with `a`, and at times some of the others."""
    chance = random.Random(seed)
    found = []
    for n in range(count):
        letter = chance.choice(others) if n % 60 > 50 else "a"
        value = ARRIVALS[arrival](chance.randrange(n + 1) if letter != "a" else n, chance)
        found.append(event(n, letter, f"k{chance.randrange(40)}", ox.Literal(value)))
    return found


@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize("operator", ["<", "<=", "=", ">"])
@pytest.mark.parametrize("sign", [";", ":"])
def test_groups_of_a_range_are_found(arrival: str, operator: str, sign: str) -> None:
    gpms = (
        "DEFINE GPM A ON s { ?k :a ?x } "
        f"DEFINE GPM B ON s {{ [] :b ?y FILTER(?y {operator} ?x) }} "
        "DEFINE GPM C ON s { ?k :c ?z }"
    )
    compiled = program(f"SEQ(A {sign} B ; C)", gpms, clauses="WITHIN 300 SECONDS")
    given = events(arrival, 1, "bc")
    found = results(compiled.start(), given, True)
    assert found == results(in_python(compiled), given, False)
    assert found or operator == "="


@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize("operators", [("<", ">"), (">", "<="), (">=", ">")])
def test_groups_of_a_range_are_one_union(arrival: str, operators: tuple[str, str]) -> None:
    gpms = (
        "DEFINE GPM A ON s { [] :a ?x } "
        f"DEFINE GPM B ON s {{ [] :b ?y FILTER(?y {operators[0]} ?x) }} "
        f"DEFINE GPM C ON s {{ [] :c ?z FILTER(?z {operators[1]} ?y) }}"
    )
    compiled = program("SEQ(A : B : C)", gpms, clauses="WITHIN 150 SECONDS")
    given = events(arrival, 2, "bbbc", 300)
    found = results(compiled.start(), given, True)
    assert found == results(in_python(compiled), given, False)
    assert found


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("operator", ["<", ">"])
def test_a_bound_may_be_beyond_all_doubles(operator: str, sign: str) -> None:
    """What is compared is rounded outwards, here to infinity."""
    gpms = (
        "DEFINE GPM A ON s { [] :a ?x } "
        f"DEFINE GPM B ON s {{ [] :b ?y FILTER(?y {operator} ?x) }}"
    )
    greatest = ox.Literal(f"{sign}1.7976931348623157E308", datatype=ox.NamedNode(DOUBLE))
    given = [event(n, "a", "k", ox.Literal(n)) for n in range(100)]
    given.append(event(100, "b", "k", greatest))
    found = results(program("SEQ(A : B)", gpms, clauses="WITHIN 300 SECONDS").start(), given, True)
    assert found.total() == (100 if (operator == ">") == (sign == "") else 0)


def test_saved_groups_are_found_again() -> None:
    gpms = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x) }"
    compiled = program("SEQ(A ; B)", gpms, clauses="WITHIN 300 SECONDS")
    given = events("anyhow", 3, "b", 700)
    run = compiled.start()
    before = Counter(map(repr, comparable(list(run.push_batch(encoded(run, given[:350]))))))
    found = before + results(compiled.resume(run.save()), given[350:], True)
    assert found == results(in_python(compiled), given, False)
    assert found > before


@pytest.mark.parametrize("changing", [-1, 100, 200, 300, 1000])
def test_unions_do_not_reach_behind_the_window(changing: int) -> None:
    """Most groups expire while others of their tree go on, through all memory there is."""
    gpms = "DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y FILTER(?y > ?x) }"
    compiled = program("SEQ(A : B)", gpms, clauses="WITHIN 300 SECONDS")
    high = ox.Literal(2000)
    given = [event(n, "a", "k", ox.Literal(2 * n)) for n in range(200)]
    given += [
        event(n, "b", "k", high) if n % 50 else event(n, "a", "k", ox.Literal(changing))
        for n in range(201, 20_000)
    ]
    starts = [n for n in range(20_000) if n < 200 or (n % 50 == 0 and n > 200)]
    run = compiled.start()
    found = sum(1 for _ in run.push_batch(encoded(run, given)))
    assert found == sum(
        bisect_left(starts, n) - bisect_left(starts, n - 300) for n in range(201, 20_000) if n % 50
    )
