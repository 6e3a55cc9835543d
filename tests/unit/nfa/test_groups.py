"""The groups of a place and their indexes, and the frontier of a guard, against dictionaries."""

from __future__ import annotations

import random
from collections import Counter
from math import inf

import pyoxigraph as ox
import pytest
from core_probes import FrontierProbe, GroupsProbe

from spaseq.rdf.native._terms import Dictionary

ALL, BY_FIRST, BY_BOTH, ORDERED = range(4)
INDEXES = [([0], -1), ([0, 1], -1), ([0], 1)]
"""The indexes of places with two registers; the last one orders by the second register."""


class Drawn:
    """A probe and the groups that it must hold: number → (key, value)."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        dictionary = Dictionary()
        count = self.chance.choice([3, 40, 1000])
        scale = self.chance.choice([1, 0.5, 10**12])
        self.keys = [
            dictionary.intern(ox.NamedNode(f"http://e/{n}"))
            for n in range(self.chance.choice([1, 4]))
        ]
        numbers = [float(n) * scale for n in range(count)]
        self.value_of = {dictionary.intern(_literal(number)): number for number in numbers}
        self.probe = GroupsProbe(2, INDEXES, dictionary)
        self.groups: dict[int, tuple[int, int]] = {}
        self.starts: dict[int, int] = {}
        self.turn = 0

    def step(self) -> None:
        """Create or remove a group; growing and shrinking alternate."""
        self.turn += 1
        growth = 0.9 if self.turn // 300 % 2 == 0 else 0.1
        key, value = self.chance.choice(self.keys), self.chance.choice(list(self.value_of))
        known = self.probe.find([key, value])
        assert known == next((n for n, g in self.groups.items() if g == (key, value)), None)
        if known is None and self.chance.random() < growth:
            start = self.chance.randrange(50)
            number = self.probe.create([key, value], start)
            assert number not in self.groups
            self.groups[number], self.starts[number] = (key, value), start
        elif self.groups:
            number = self.chance.choice(list(self.groups)) if known is None else known
            self.probe.remove(number)
            del self.groups[number], self.starts[number]


def _literal(number: float) -> ox.Literal:
    return (
        ox.Literal(int(number))
        if number == int(number)
        else ox.Literal(
            str(number), datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
        )
    )


@pytest.mark.parametrize("seed", range(12))
def test_indexes_return_the_groups_with_their_key(seed: int) -> None:
    drawn = Drawn(seed)
    chance, probe = drawn.chance, drawn.probe
    for _ in range(1200):
        drawn.step()
        assert len(probe.live) == len(drawn.groups)
        key, value = chance.choice(drawn.keys), chance.choice(list(drawn.value_of))
        with_key = {n for n, group in drawn.groups.items() if group[0] == key}
        assert Counter(probe.lookup(BY_FIRST, [key])) == Counter(with_key)
        both = {n for n in with_key if drawn.groups[n][1] == value}
        assert probe.lookup(BY_BOTH, [key, value]) == list(both)
    assert sorted(probe.live) == sorted(drawn.groups)
    assert all(tuple(probe.values(n)) == group for n, group in drawn.groups.items())


def test_groups_with_one_hash_are_distinct() -> None:
    def mixed(value: int) -> int:
        return value + (value >> 4)

    probe = GroupsProbe(2, [([0, 1], -1), ([1], -1)], Dictionary())
    near = (mixed(5000) + 2**32) * 16 // 17
    collision = next(v for v in range(near - 40, near + 40) if mixed(v) == mixed(5000) + 2**32)
    pairs = [(7, 5000), (7, collision)]
    numbers = [probe.create(pair, 0) for pair in pairs]
    assert [probe.find(pair) for pair in pairs] == numbers
    assert [probe.lookup(1, pair) for pair in pairs] == [[n] for n in numbers]
    assert [probe.lookup(2, pair[1:]) for pair in pairs] == [[n] for n in numbers]


@pytest.mark.parametrize("seed", range(24))
def test_a_range_has_its_groups_in_order(seed: int) -> None:
    drawn = Drawn(seed)
    chance, probe = drawn.chance, drawn.probe
    for _ in range(1200):
        drawn.step()
        key = chance.choice(drawn.keys)
        least, most = sorted(chance.choices([-inf, *drawn.value_of.values(), inf], k=2))
        found = probe.range(ORDERED, [key], least, most)
        assert {n: value for value, n in found} == {
            n: drawn.value_of[value]
            for n, (first, value) in drawn.groups.items()
            if first == key and least <= drawn.value_of[value] <= most
        }
        values = [value for value, _ in found]
        assert len(values) == len({n for _, n in found})
        assert values in (sorted(values), sorted(values, reverse=True))


@pytest.mark.parametrize("seed", range(24))
def test_the_union_of_a_range_has_the_members_of_its_groups(seed: int) -> None:
    chance = random.Random(seed)
    dictionary = Dictionary()
    count = chance.choice([2, 60, 900])
    value_of = {dictionary.intern(ox.Literal(n)): n for n in range(count)}
    probe = GroupsProbe(1, [([], 0)], dictionary)
    groups: dict[int, tuple[int, int]] = {}
    for turn in range(900):
        value = chance.choice(list(value_of))
        known = probe.find([value])
        if known is None:
            start = chance.randrange(50)
            groups[probe.create([value], start)] = value_of[value], start
        elif chance.random() < 0.5:
            probe.remove(known)
            del groups[known]
        if turn % 5 == 0:
            bound, above, since = chance.randrange(-1, count + 1), chance.random() < 0.5, 0
            if chance.random() < 0.3:
                since = chance.randrange(50)
            wanted = [
                start
                for value, start in groups.values()
                if (value > bound if above else value < bound) and start >= since
            ]
            found = probe.union(1, bound, above, since)
            # A union that was computed for an earlier start of the window stays valid.
            assert Counter(found) == Counter(wanted)
            if since:
                for number in [n for n, (_, start) in groups.items() if start < since]:
                    probe.remove(number)
                    del groups[number]


@pytest.mark.parametrize("seed", range(6))
def test_a_frontier_has_each_entry_once(seed: int) -> None:
    chance = random.Random(seed)
    probe = FrontierProbe(3, [2, 0])
    for _ in range(3):
        entries: dict[tuple[int, ...], tuple[int, list[int]]] = {}
        for _ in range(chance.choice([5, 300])):
            place, last, width = chance.randrange(2), chance.randrange(4), chance.randrange(3)
            env = [chance.randrange(3) for _ in range(3)]
            key = (place, last, *[env[r] for r in (2, 0)[:width]])
            if place:
                width, key = 2, (place, last, env[2], env[0])
            else:
                width, key = 1, (place, last, env[2])
            entries.setdefault(key, (len(entries), env))
            assert probe.push(place, last, env, width) == len(entries)
        for key, (number, env) in entries.items():
            assert probe.entry(number) == (key[0], key[1], env)
        probe.clear()
