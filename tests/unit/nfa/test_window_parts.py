"""The window, the partitions and the memory of a tECS, each alone against a model."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest
from core_probes import PartitionsProbe, TecsProbe, WindowProbe
from nfa_queries import planned, register_file

from spaseq.nfa.compile import compile_automaton
from spaseq.nfa.native.table_types import CoreTables
from spaseq.nfa.native.tables import tables
from spaseq.nfa.window import WindowTimes
from spaseq.rdf.native._terms import Dictionary

SECOND = 1_000_000


def written(seq: str, clauses: str, gpms: dict[str, str] | None = None) -> CoreTables:
    plan = planned(seq, gpms, "SELECT *", clauses)
    return tables(plan, compile_automaton(plan), register_file(plan))


@pytest.mark.parametrize("clauses", ["WITHIN 10 SECONDS", "WITHIN TUMBLING 10 SECONDS"])
@pytest.mark.parametrize("seed", range(6))
def test_a_window_of_time_starts_at_its_opening(clauses: str, seed: int) -> None:
    chance = random.Random(seed)
    plan = planned("A ; B", None, "SELECT *", clauses)
    clock = WindowTimes(plan.window)
    probe = WindowProbe(written("A ; B", clauses))
    times: list[int] = []
    micros = chance.randrange(-50, 50) * SECOND
    for _ in range(400):
        micros += chance.choice([0, 0, 1, SECOND // 20, SECOND, 12 * SECOND])
        probe.tick(micros)
        times.append(micros)
        window = probe.window
        assert window.now == len(times) - 1
        opening = clock.opening(micros)
        assert probe.opening(micros) == opening
        assert window.bound == next(n for n, time in enumerate(times) if time >= opening)
        assert window.reach == window.bound == probe.bound_at(window.now)
        assert window.timestamp_start == times.index(micros)
        assert [probe.time(n) for n in range(window.bound, len(times))] == times[window.bound :]
        window.skipped = chance.choice([0, window.now])
        assert probe.since() == max(window.bound, window.skipped)


@pytest.mark.parametrize("seed", range(6))
def test_a_window_of_events_holds_the_instants_of_the_last_events(seed: int) -> None:
    chance = random.Random(seed)
    probe = WindowProbe(written("A ; B", "WITHIN 7 EVENTS"))
    counts: list[int] = []
    for micros in range(200):
        probe.tick(micros)
        counts.append(0)
        for _ in range(chance.choice([0, 1, 1, 3, 9])):
            probe.count_event()
            counts[-1] += 1
        bound = probe.window.bound
        assert sum(counts[bound:]) <= 7
        assert bound == 0 or sum(counts[bound - 1 :]) > 7


def test_a_skipped_step_is_searched_in_the_window_of_the_next_one() -> None:
    """`A? ; B` reaches one window back from the start of a match."""
    probe = WindowProbe(written("(A? ; B)? ; C", "WITHIN 10 SECONDS"))
    bounds = []
    for second in range(100):
        probe.tick(second * SECOND)
        window = probe.window
        bounds.append(window.bound)
        assert window.bound == max(0, second - 10)
        assert window.reach == max(0, second - 20)
        for instant in range(window.reach, second + 1):
            assert probe.bound_at(instant) == bounds[instant]


PARTITIONED = "WITHIN 10 SECONDS PARTITION BY ?k EMIT STRICT"
KEYED = {name: f"{{ ?k :{name.lower()} ?{name.lower()} }}" for name in "AB"}


@pytest.mark.parametrize("seed", range(8))
def test_partitions_hold_the_instants_of_their_events_within_reach(seed: int) -> None:
    chance = random.Random(seed)
    dictionary = Dictionary()
    keys = [dictionary.intern(ox.NamedNode(f"http://e/{n}")) for n in range(900)]
    rows = written("A ; (A & B)", PARTITIONED, KEYED)
    assert rows.recorded
    probe = PartitionsProbe(rows, dictionary)
    known: dict[int, list[int]] = {}
    for now in range(1500):
        probe.tick(now * SECOND // 10)
        for _ in range(chance.choice([0, 1, 3])):
            key = chance.choice(keys[: chance.choice([3, 900])])
            probe.record([key])
            if known.setdefault(key, [])[-1:] != [now]:
                known[key].append(now)
        key = chance.choice(keys[: chance.choice([3, 900])])
        instant = now + 1 - chance.randrange(90)
        reach = probe.window.reach
        within = [n for n in known.get(key, ()) if n >= reach]
        found = probe.before([key], instant)
        before = [n for n in within if n < instant]
        if before:
            assert found == before[-1]
        else:
            assert found < max(reach, 0)
    assert probe.stored <= 256 + 2 * 310


def test_a_partition_out_of_reach_begins_anew() -> None:
    dictionary = Dictionary()
    key = dictionary.intern(ox.NamedNode("http://e/k"))
    probe = PartitionsProbe(written("A ; (A & B)", PARTITIONED, KEYED), dictionary)
    probe.tick(0)
    probe.record([key])
    assert probe.before([key], 1) == 0
    probe.tick(60 * SECOND)
    assert probe.before([key], 1) == -1
    probe.record([key])
    assert probe.before([key], 2) == 1
    assert probe.before([key], 1) == -1


def test_a_tecs_has_the_memory_of_its_window() -> None:
    probe = TecsProbe()
    greatest = []
    for part in range(4):
        most = 0
        for instant in range(part * 20_000, (part + 1) * 20_000):
            probe.begin(instant, max(0, instant - 5_000))
            probe.alloc(96)
            most = max(most, probe.tecs.bytes)
            if instant >= 5_000:
                assert probe.tecs.bytes >= 96 * 5_000
        greatest.append(most)
    assert greatest[-1] <= 1.2 * 96 * 5_000
    assert probe.tecs.reserved <= 3 * 96 * 5_000
