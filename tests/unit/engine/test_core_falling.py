"""Iterations that compare with the one before, and the first matches of an instant.

`PREV(?v, ?default)` is found by an order: of the default in the first iteration, of the last
iteration's value in others; `LIMIT` keeps the first lists of instants below a node. Drawn cases
are compared with the reference semantics, in whatever way events come.
"""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from engine_runs import EX, S
from oracle import timestamp
from strategies import Case
from test_core_campaign import CHUNK, EXAMPLES, SEED, WAYS, failed, objections

import spaseq
from spaseq.errors import QueryError
from spaseq.rdf.event import NUMBER, Event, Fact
from spaseq.runs import Run

SEQUENCES = (
    "A ; B+ ; C", "A ; B+ ; C", "A : B+ : C", "A ; B{1,3} : C", "A , B+ ; C", "B+ ; C", "A ; B+",
    "A ; (B ; D)+ ; C", "A ; (D ; B)+ ; C", "A ; B* ; C", "A ; (B+ ; D)+ ; C", "A ; (B | D)+ ; C",
)  # fmt: skip
PREVIOUS = (
    "PREV(?p, ?x)", "PREV(?p, ?x)", "PREV(?p, ?x)", "PREV(?p)", "PREV(?p, 2)", "PREV(?p, ?x + 1)",
)  # fmt: skip
ENDS = ("FILTER(?z > ?x)", "FILTER(?z <= ?x)", "FILTER(?z < ?p)", "")
VALUES = [ox.Literal(value) for value in (0, 1, 2, 3, 2.5, "a")]


def query_of(chance: random.Random) -> str:
    sequence = chance.choice(SEQUENCES)
    k = "?k" if chance.random() < 0.7 else "[]"
    operator = chance.choice(("<", "<=", ">", ">="))
    sides = ["?p", chance.choice(PREVIOUS)]
    chance.shuffle(sides)
    besides = chance.choice(("", "", " && ?p != 1"))
    patterns = {
        "A": f"{k} :a ?x",
        "B": f"{k} :b ?p FILTER({sides[0]} {operator} {sides[1]}{besides})",
        "C": f"{k} :c ?z {chance.choice(ENDS)}",
        "D": f"{k} :d ?y",
    }
    window = chance.choice(("1 HOUR", "3 SECONDS", "6 SECONDS", "4 EVENTS"))
    clauses = [f"WITHIN {window} FROM STREAM s <{S}>"]
    if k == "?k" and chance.random() < 0.2:
        clauses.append("PARTITION BY ?k")
    if chance.random() < 0.15:
        clauses.append("AFTER MATCH SKIP PAST LAST EVENT")
    defines = " ".join(
        f"DEFINE GPM {name} ON s {{ {pattern} }}"
        for name, pattern in patterns.items()
        if name in sequence
    )
    limit = f" LIMIT {chance.randint(1, 3)}" if chance.random() < 0.6 else ""
    return (
        f"PREFIX : <{EX}> SELECT * {' '.join(clauses)} WHERE {{ SEQ({sequence}) {defines} }}{limit}"
    )


def falling_case(seed: int) -> Case:
    chance = random.Random(seed)
    events, now, ordinal = [], 0, 0
    for _ in range(chance.randint(4, 10)):
        step = chance.choice((0, 1, 1, 1, 2))
        ordinal = 0 if step or not events else ordinal + 1
        now += step
        facts: dict[Fact, None] = {}
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            subject = ox.NamedNode(EX + chance.choice("jk"))
            predicate = ox.NamedNode(EX + chance.choice("aabbbccd"))
            facts[subject, predicate, chance.choice(VALUES)] = None
        events.append(Event(S, timestamp(now * 1_000_000, NUMBER), ordinal, list(facts)))
    return Case(query_of(chance), {S: events})


FALLING = (
    f"PREFIX : <{EX}> SELECT * WITHIN 100 SECONDS FROM STREAM s <{S}> WHERE {{ SEQ(A ; B+ ; C) "
    "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :a ?p FILTER(?p < PREV(?p, ?x)) } "
    "DEFINE GPM C ON s { ?k :a ?z FILTER(?z > ?x) } }"
)


def priced(run: Run, number: int) -> int:
    """After so many events of one key, with values at random: the matches."""
    chance, found = random.Random(number), 0
    for time in range(number):
        fact = ox.NamedNode(EX + "k"), ox.NamedNode(EX + "a"), ox.Literal(chance.randint(0, 999))
        found += len(run.push(S, time, [fact]))
    return found


def test_an_iteration_visits_the_groups_it_joins() -> None:
    """Those that the window has passed over once, if at all."""
    run = spaseq.compile(FALLING).start()
    assert priced(run, 1500) > 1000
    for state in run.queries[0].counters().places:
        assert state.visited <= 1.1 * (state.joined + state.outside), state.number
        assert state.outside <= max(state.expired, 1)
    assert sum(state.joined for state in run.queries[0].counters().places) > 5000


def test_limit_gives_the_first_of_all_matches_of_an_instant() -> None:
    every, first = spaseq.compile(FALLING).start(), spaseq.compile(FALLING + " LIMIT 2").start()
    chance = random.Random(3)
    limited = 0
    for time in range(300):
        subject, predicate = ox.NamedNode(EX + chance.choice("jk")), ox.NamedNode(EX + "a")
        facts = [(subject, predicate, ox.Literal(chance.randint(0, 99))) for _ in range(2)]
        found = every.push(S, time, facts)
        found.sort(key=lambda match: [event.time.micros for event in match.events])
        kept = first.push(S, time, facts)
        assert len(kept) == min(2, len(found))
        limited += len(found) > 2
        for ours, theirs in zip(kept, found, strict=False):
            assert [e.time for e in ours.events] == [e.time for e in theirs.events]
    assert limited > 30
    assert first.stats["matches"] < every.stats["matches"]


@pytest.mark.parametrize("first", range(SEED, SEED + EXAMPLES, CHUNK))
def test_runs_of_values_equal_the_reference(first: int) -> None:
    seen = 0
    for seed in range(first, min(first + CHUNK, SEED + EXAMPLES)):
        case = falling_case(seed)
        try:
            program = spaseq.compile(case.query, names=["q"])
        except QueryError:
            continue
        seen += 1
        found = objections(case, program, seed, WAYS)
        if found:
            pytest.fail(failed(case, seed, found))
    assert seen > 0.6 * (min(first + CHUNK, SEED + EXAMPLES) - first)
