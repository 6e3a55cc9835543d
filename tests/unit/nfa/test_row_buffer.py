"""The row buffer and its zone maps against a list of rows."""

from __future__ import annotations

import random
from math import inf

import pyoxigraph as ox
import pytest
from core_probes import RowBufferProbe

from spaseq.rdf.native._terms import Dictionary

BLOCKS = (16, 256)
"""The rows of a block at each level."""


class Model:
    """The rows that a buffer holds: number → (instant, micros, terms, whether keyed)."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, int, list[int], bool]] = {}
        self.next = 1

    def newest(self, fits: object) -> int:
        first = min(self.rows, default=self.next)
        return max((n for n, row in self.rows.items() if fits(row)), default=first - 1)  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(12))
def test_a_buffer_is_a_queue_of_rows(seed: int) -> None:
    chance = random.Random(seed)
    dictionary = Dictionary()
    terms = [dictionary.intern(ox.NamedNode(f"http://e/{n}")) for n in range(5)]
    probe, model = RowBufferProbe([0, 1], [], dictionary), Model()
    instant = micros = 0
    reach = chance.choice([12, 600])
    for _ in range(chance.choice([40, 400])):
        for _ in range(chance.choice([0, 1, 3])):
            instant += chance.choice([0, 0, 1])
            micros += chance.choice([0, 10])
            row = instant, micros, chance.choices(terms, k=2), chance.random() < 0.5
            assert probe.add(*row) == model.next
            model.rows[model.next] = row
            model.next += 1
        if chance.random() < 0.3:
            bound = instant - chance.randrange(reach)
            probe.expire(bound)
            model.rows = {n: row for n, row in model.rows.items() if row[0] >= bound}
        assert probe.span == (min(model.rows, default=model.next), model.next)
        assert all(probe.row(n) == row for n, row in model.rows.items())
        when, time = chance.randrange(instant + 2), chance.randrange(micros + 20)
        assert probe.before(when) == model.newest(lambda row, when=when: row[0] < when)
        assert probe.until(time) == model.newest(lambda row, time=time: row[1] <= time)
        for column, term in enumerate(chance.choices(terms, k=2)):
            found = probe.chain(column, term)
            assert found == sorted(found, reverse=True)
            equal = {n for n, row in model.rows.items() if row[2][column] == term}
            assert equal <= set(found) <= set(model.rows)


def test_a_chain_has_few_rows_of_other_terms() -> None:
    dictionary = Dictionary()
    terms = [dictionary.intern(ox.NamedNode(f"http://e/{n}")) for n in range(1000)]
    probe = RowBufferProbe([0], [], dictionary)
    for instant, term in enumerate(terms):
        probe.add(instant, instant, [term], True)
    assert sum(len(probe.chain(0, term)) for term in terms) < 4 * len(terms)


@pytest.mark.parametrize("seed", range(6))
def test_zones_are_the_least_and_greatest_numbers_of_their_blocks(seed: int) -> None:
    chance = random.Random(seed)
    dictionary = Dictionary()
    numbers = {dictionary.intern(ox.Literal(n)): n for n in range(-500, 500)}
    text = dictionary.intern(ox.Literal("no number"))
    probe = RowBufferProbe([], [1], dictionary)
    values: list[float | None] = [None]  # rows are numbered from 1
    for instant in range(700):
        term = text if chance.random() < 0.002 else chance.choice(list(numbers))
        number = probe.add(instant, instant, [0, term], True)
        values.append(numbers.get(term))
        if chance.random() < 0.2:
            probe.expire(instant - 300)
        first, _ = probe.span
        for level, size in enumerate(BLOCKS):
            some = chance.randrange(first, number + 1)
            block = range(max(some // size * size, 1), min((some // size + 1) * size, number + 1))
            inside = [values[n] for n in block]
            known = [value for value in inside if value is not None]
            wanted = (min(known), max(known)) if None not in inside else (-inf, inf)
            assert probe.zone(some, level, 0) == wanted
