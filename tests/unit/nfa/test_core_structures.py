"""The core's tECS and groups against small models, through `CoreParts`.

`SPASEQ_EXAMPLES` sets the number of random histories of groups: a fifteenth of it (default 4).
"""

from __future__ import annotations

import os
import random
from itertools import count

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.native.query_run import NativeRun
from spaseq.nfa.native._selection import pop_complete

QUERY = (
    "PREFIX : <http://example.org/> SELECT * WITHIN 10 SECONDS FROM STREAM s :s "
    "WHERE { SEQ(A ; B) DEFINE GPM A ON s { ?k :a ?x } "
    "DEFINE GPM B ON s { ?k :b ?y FILTER(?y > ?x) } }"
)
EXAMPLES = max(2, int(os.environ.get("SPASEQ_EXAMPLES", "60")) // 15)
EARLIEST = 10_000
"""No start is later than the instants of labels."""
Paths = frozenset[tuple[int, tuple[int, ...]]]
"""(start, labels' instants) of each match."""


def native() -> tuple[NativeRun, int]:
    """A fresh run, and the place of it that keeps ?k and ?x."""
    found = spaseq.compile(QUERY).start().queries[0].native
    assert found is not None
    places = found.compiled.automaton.places
    (place,) = (number for number, place in enumerate(places) if not place.start)
    return found, place


class Building:
    """Nodes and unions of one core, each beside the paths it stands for."""

    def __init__(self) -> None:
        self.native, self.place = native()
        self.core, self.parts = self.native.core, self.native.parts
        for number in range(64):  # so that the numbers registers hold here stand for terms
            self.native.matchers.dictionary.intern(ox.Literal(number))
        self.instants = count(EARLIEST)
        self.unions: list[tuple[int, Paths]] = []

    def node(self, union: int = 0, below: Paths = frozenset(), start: int = 0) -> tuple[int, Paths]:
        instant = next(self.instants)
        label = self.label(instant)
        if not union:
            return self.parts.load_node(label, 0, start), frozenset({(start, (instant,))})
        paths = frozenset((first, (*path, instant)) for first, path in below)
        return self.parts.load_node(label, union, max(first for first, _ in below)), paths

    def label(self, instant: int) -> int:
        return self.parts.load_label(self.place, 0, instant, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, [])

    def wait(self, group: int, node: int) -> None:
        self.parts.load_pending(self.place, [group, group], node)
        self.core.close()

    def add(self, group: int, node: tuple[int, Paths]) -> None:
        """Let a node join a group, whose union is a new one from then on."""
        before = self.union(group)
        self.wait(group, node[0])
        self.unions.append((self.address(group), before | node[1]))

    def address(self, group: int) -> int:
        (found,) = (u for _, values, u, *_ in self.groups() if values == [group, group])
        return found

    def groups(self) -> list[tuple[int, list[int], int, bool, object]]:
        return list(self.parts.groups(over=False))

    def union(self, group: int) -> Paths:
        if all(values != [group, group] for _, values, *_ in self.groups()):
            return frozenset()
        return dict(self.unions)[self.address(group)]

    def paths(
        self, union: int, below: Paths, one: bool = False
    ) -> list[tuple[int, tuple[int, ...]]]:
        """What a new node on top of a union enumerates, without that node."""
        self.parts.load_complete(self.node(union, below)[0])
        found = pop_complete(self.core, lambda at: self.parts.label(at[0])[2], one)  # type: ignore[arg-type, return-value]
        return [(start, steps[:-1]) for start, steps, _ in found]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(40))
def test_unions_enumerate_what_starts_in_the_window_once_and_never_change(seed: int) -> None:
    chance = random.Random(seed)
    built = Building()
    for _ in range(chance.randrange(2, 14)):
        start, below = chance.randrange(20), chance.choice([(0, frozenset()), *built.unions])
        built.add(chance.randrange(1, 4), built.node(*below, start=start))
    for bound in sorted(chance.sample(range(21), 4)):
        built.core.window.bound = bound
        for union, paths in built.unions:
            alive = sorted(path for path in paths if path[0] >= bound)
            if alive:
                assert sorted(built.paths(union, paths)) == alive
                assert built.paths(union, paths, one=True)[0] in alive


def test_what_the_window_has_passed_over_is_left_out_of_new_unions() -> None:
    built = Building()
    for start in (5, 1, 9, 3, 7, 2):
        built.add(1, built.node(start=start))
    old = built.unions[-1]
    built.core.window.bound = 4
    built.add(1, built.node(start=8))
    assert sorted(start for start, _ in built.paths(*built.unions[-1])) == [5, 7, 8, 9]
    assert sorted(start for start, _ in built.paths(*old)) == [5, 7, 9]


def test_starts_in_order_cost_one_cell_each() -> None:
    built = Building()
    sizes = []
    for start in range(3000):
        before = built.core.tecs.bytes
        built.wait(1, built.node(start=start)[0])
        sizes.append(built.core.tecs.bytes - before)
    assert sizes[0] < sizes[1]  # a union of one node is that node
    assert len(set(sizes[1:])) == 1


def test_starts_out_of_order_cost_logarithmically_many() -> None:
    built = Building()
    starts = list(range(4000))
    random.Random(3).shuffle(starts)
    for start in starts:
        built.wait(1, built.node(start=start)[0])
    in_order = Building()
    for start in range(4000):
        in_order.wait(1, in_order.node(start=start)[0])
    assert built.core.tecs.bytes < 6 * in_order.core.tecs.bytes


def test_a_long_path_is_enumerated_without_recursion() -> None:
    built = Building()
    address, start = built.node(start=7)[0], 7
    for _ in range(50_000):
        instant = next(built.instants)
        union = built.parts.load_union(start, address, 0, 0)
        address = built.parts.load_node(built.label(instant), union, start)
    built.parts.load_complete(address)
    ((first, steps, _),) = pop_complete(built.core, lambda at: built.parts.label(at[0])[2], False)  # type: ignore[arg-type, return-value]
    assert first == 7
    assert list(steps) == list(range(EARLIEST, EARLIEST + 50_001))


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_groups_are_a_dictionary_of_their_registers(seed: int) -> None:
    """Made, found and dropped, at random; their table grows and what went is used again."""
    chance = random.Random(seed)
    run = spaseq.compile(QUERY).start()
    model: dict[tuple[int, int], int] = {}
    most = chance.choice([3, 12, 40])
    for step in range(1500):
        key, value = chance.randrange(most), chance.randrange(most)
        drops = chance.random() < 0.2
        letter = ox.NamedNode("http://example.org/" + "ab"[drops])
        fact = (ox.NamedNode(f"http://a/{key}"), letter, ox.Literal(value))
        found = run.push("http://example.org/s", 1, [fact])
        if drops:
            fits = [group for group in model if group[0] == key and group[1] < value]
            assert len(found) == sum(model.pop(group) for group in fits)
        else:
            model[key, value] = model.get((key, value), 0) + 1
        if step % 25 == 0:  # the state is listed for it
            assert run.stats["groups"] == len(model)
    assert run.stats["groups"] == len(model)


@pytest.mark.skipif("SPASEQ_ASSERTS" not in os.environ, reason="a build without assertions")
def test_broken_invariants_are_told() -> None:
    built = Building()
    built.add(1, built.node(start=5))
    union, label = built.unions[-1][0], built.label(EARLIEST + 7)
    with pytest.raises(AssertionError):
        built.parts.load_node(label, union, 6)  # nothing below starts then
    with pytest.raises(AssertionError):
        built.parts.load_node(label, 0, EARLIEST + 8)  # before it starts
    built.parts.load_group(built.place, [2, 2], union, False, None)
    with pytest.raises(ValueError, match="the same registers"):
        built.parts.load_group(built.place, [2, 2], union, False, None)
