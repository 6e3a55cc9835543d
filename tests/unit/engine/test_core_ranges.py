"""Long chains joined lazily, whose filters pass over whole blocks of rows, match as others do.

Streams are long enough for blocks of blocks, for rings that wrap and grow, and have numbers of all
datatypes and what is none, so that blocks are of one kind here and mixed there. `SPASEQ_EXAMPLES`
is the number of cases (default 4), `SPASEQ_SEED` the first.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pyoxigraph as ox
import pytest
from core_runs import native
from engine_runs import EX, S
from oracle import timestamp

import spaseq
from spaseq.nfa.native.lazy_join_tables import weighed
from spaseq.rdf.event import NUMBER, Event, Fact
from spaseq.runs import Run
from tests.unit.rdf.literals import literal

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "4"))
SEED = int(os.environ.get("SPASEQ_SEED", "0"))

FILTERS = (
    "?x * ?y > {high}",
    "?x + ?y < {low}",
    "?y - ?x > {span} || ?x * ?y < 0",
    "?y > ?x * 1.5 && ?x > {half}",
    "!(?y / ?x < 3)",
    "?x < ?y || ?x - ?y > {span}",
    "?y * 2 = ?x + {half}",
    "-?x * ?y >= 1 || ?x / ?y > 50.5",
)
ODD = (
    ox.Literal("text"),
    ox.Literal("words"),
    ox.Literal("more"),
    ox.NamedNode("urn:x"),
    literal("NaN", "double"),
    literal("INF", "double"),
    literal("99.5", "float"),
    literal("-1", "float"),
    literal("-" + "9" * 30, "integer"),
    literal("9" * 400, "integer"),
    literal("2020-01-31T10:00:00Z", "dateTime"),
    None,
)


def number(chance: random.Random, kind: str, size: int) -> ox.Literal:
    value = chance.randint(-size // 20, size)
    match kind:
        case "integer":
            return literal(str(value), "integer")
        case "decimal":
            return literal(f"{value}.{chance.randint(0, 99):02}", "decimal")
        case "long":
            return literal(f"{value}.{chance.randint(0, 10**15):015}", "decimal")
        case "wide":
            return literal(f"{value}.{chance.randint(0, 10**25):025}", "decimal")
    return literal(repr(value / 7), "double")


def values(chance: random.Random, count: int, size: int) -> Iterator[ox.Term | None]:
    """Now of one kind, now mixed, now with what is no number; sometimes they rise."""
    kinds, odd, drift = ["integer"], 0.0, 0
    for _ in range(count):
        if chance.random() < 0.02:
            kinds = chance.sample(
                ("integer", "decimal", "long", "wide", "double"), chance.randint(1, 3)
            )
            odd = chance.choice((0, 0, 0, 0.03))
            drift = chance.choice((0, 0, size))
        if chance.random() < odd:
            yield chance.choice(ODD)
        else:
            yield number(chance, chance.choice(kinds), size + drift)


class Long:
    """A query and its events."""

    def __init__(self, seed: int):
        self.chance = chance = random.Random(seed)
        size = chance.choice((10, 100, 1000))
        text = chance.choice(FILTERS).format(
            high=size * size * 19 // 20, low=size // 10, span=size * 9 // 10, half=size // 2
        )
        window = chance.choice((50, 300, 300, 600))
        width = chance.choice((f"{window} EVENTS", f"{window} SECONDS"))
        seq = chance.choice(("A : B : C", "A : B : C", "B : A : C", "A : D : B : C"))
        where = {"A": "?a :a ?v OPTIONAL { ?a :x ?x }", "B": "?b :b ?w OPTIONAL { ?b :x ?y }"}
        if seq.startswith("B"):
            where["A"] += f" FILTER({text})"
        else:
            where["B"] += f" FILTER({text})"
        where |= {"C": "?c :c ?z", "D": "?d :d ?u"}
        gpms = " ".join(f"DEFINE GPM {g} ON s {{ {where[g]} }}" for g in seq.split(" : "))
        self.query = (
            f"PREFIX : <{EX}> SELECT ?a ?b ?c WITHIN {width} FROM STREAM s :s "
            f"WHERE {{ SEQ({seq}) {gpms} }}"
        )
        self.events = list(self._events(chance.choice((900, 900, 1800)), size, "d" in seq.lower()))

    def _events(self, count: int, size: int, rare: bool) -> Iterator[Event]:
        time, ordinal = 0, 0
        for index, value in enumerate(values(self.chance, count, size)):
            letter = self.chance.choice("ab")
            if self.chance.random() < 0.01:
                letter = self.chance.choice("cd" if rare else "c")
            same = index > 0 and self.chance.random() < 0.1
            time, ordinal = time + (not same), ordinal + 1 if same else 0
            subject = ox.NamedNode(f"{EX}e{index}")
            facts: list[Fact] = [(subject, ox.NamedNode(EX + letter), ox.Literal(index))]
            if value is not None:
                facts.append((subject, ox.NamedNode(f"{EX}x"), value))
            yield Event(S, timestamp(time * 1_000_000, NUMBER), ordinal, facts)


def bindings(run: Run, events: list[Event]) -> Counter[str]:
    return Counter(str(match.bindings) for match in run.push_batch(events))


@pytest.mark.parametrize("seed", range(SEED, SEED + EXAMPLES))
def test_blocks_that_are_passed_over_have_no_matches(seed: int) -> None:
    case = Long(seed)
    program = spaseq.compile(case.query)
    assert weighed(program.queries[0].plan, program.queries[0].automaton)
    eager, lazy, observed = (program.start() for _ in range(3))
    native(eager).core.lazy_join.join(False)
    native(lazy).core.lazy_join.join(True)
    native(observed).core.lazy_join.min_rows = 50
    first = 0
    while first < len(case.events):
        some = case.events[first : first + case.chance.randint(1, 400)]
        first += len(some)
        expected = bindings(eager, some)
        assert bindings(lazy, some) == expected
        assert bindings(observed, some) == expected
        if case.chance.random() < 0.3:
            lazy = program.resume(lazy.save())
            native(lazy).core.lazy_join.join(True)
