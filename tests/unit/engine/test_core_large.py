"""Tables of the core that have grown: longer than small memory, and rings that wrapped before."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from core_runs import SECOND, encoded, event, in_python
from engine_runs import GPMS, program
from oracle import comparable

MANY = 70_000
"""With this number of groups each table of a place exceeds a huge page of memory."""


@pytest.mark.parametrize("compared", ["", "FILTER(?y > ?x)"], ids=["equal", "above"])
def test_each_of_very_many_groups_is_found(compared: str) -> None:
    gpms = f"DEFINE GPM A ON s {{ ?k :a ?x }} DEFINE GPM B ON s {{ ?k :b ?y {compared} }}"
    run = program("SEQ(A : B)", gpms, clauses="WITHIN 1 HOUR").start()
    chance = random.Random(1)
    values = [chance.randrange(100) for _ in range(MANY)]
    order = list(range(MANY))
    chance.shuffle(order)
    stream = [event(key, "a", f"k{key}", values[key]) for key in range(MANY)]
    for first in range(0, MANY, 5000):
        assert not list(run.push_batch(encoded(run, stream[first : first + 5000])))
    asked = [(key, chance.randrange(100)) for key in order[:5000]]
    ending = [event(MANY + t, "b", f"k{key}", value) for t, (key, value) in enumerate(asked)]
    matches = list(run.push_batch(encoded(run, ending)))
    wanted = Counter(
        (f"k{key}", values[key], value)
        for key, value in asked
        if not compared or value > values[key]
    )
    assert len(wanted) > 2000
    assert wanted == Counter(
        (
            match.bindings["k"].value.rpartition("/")[2],
            int(match.bindings["x"].value),
            int(match.bindings["y"].value),
        )
        for match in matches
    )


SHAPES = {
    "next": ("SEQ(A ; B)", "WITHIN 9 SECONDS"),
    "counted": ("SEQ(A ; B)", "WITHIN 300 EVENTS"),
    "waiting": ("SEQ(A ; B : !A)", "WITHIN 9 SECONDS"),
    "skipped in front": ("SEQ(A? ; B ; A)", "WITHIN 9 SECONDS"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_windows_of_few_and_of_many_instants(shape: str, seed: int) -> None:
    """Few instants a window, then hundreds: the ring over them is longer from where it is then."""
    seq, within = SHAPES[shape]
    made = program(seq, GPMS, clauses=within)
    chance = random.Random(seed)
    events, now = [], 0
    for number in range(1500):
        dense = number % 500 > 100 + 37 * seed
        now += chance.randrange(1, 40) * SECOND // (1000 if dense else 10)
        key = "k" if chance.random() < 0.02 else f"k{number // 4}"
        events.append(event(now, chance.choice("abx"), key, chance.randrange(4)))
    run, plain = made.start(), in_python(made)
    total = 0
    while events:
        size = chance.randrange(1, 60)
        some, events = events[:size], events[size:]
        ours, theirs = list(run.push_batch(encoded(run, some))), list(plain.push_batch(some))
        assert Counter(comparable(ours)) == Counter(comparable(theirs))
        total += len(ours)
        if chance.random() < 0.1:
            run = made.resume(run.save())
    assert total > 20
