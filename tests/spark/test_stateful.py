"""A stream cut into batches gives what the whole gives, whatever the cuts and the order.

The stateful operator is run without Spark: batches at random, events out of order within the
lateness, watermarks as Spark moves them, state written and read between any two batches, and
now and then a batch that fails and is run again.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest
from cases import Case, load
from jobs import arrow, event_rows, kind_of, reference, shown
from oracle import timestamp
from strategies import EXAMPLE, plain_case, random_case
from test_properties import knowledge
from test_suite import _knowledge, _program

import spaseq
from spaseq.errors import StateError
from spaseq.kb.snapshot import Kb, open_kb
from spaseq.program import Program
from spaseq.rdf.event import NUMBER, Event
from spaseq.spark import chunks, stateful
from spaseq.spark.distribution import ByKey, distribution
from spaseq.spark.division import Division
from spaseq.spark.result_columns import columns_of
from spaseq.spark.rows import batches
from spaseq.spark.stateful import Saved, advance
from spaseq.spark.tasks import Dividing, Job

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "300"))
SUITE = [case for case in load() if case.error is None]
BEFORE_ALL, AFTER_ALL = -(2**62), 2**62


class Stream:
    """A streaming query: parts with their state, and a watermark."""

    def __init__(
        self,
        program: Program,
        kb: Kb,
        events: Sequence[Event],
        parts: int,
        entail: str | None = None,
    ):
        self.kind = kind_of(events)
        how = distribution(program)
        self.parts = parts if isinstance(how, ByKey) else 1
        variables = how.variables if isinstance(how, ByKey) else ()
        division = Division(variables, ((),) * self.parts)
        columns = columns_of(program, self.kind)
        self.job = Job(program, kb, columns, division, entail, "test")
        self.saved: dict[int, Saved] = {}
        self.waiting: dict[int, bytes] = {}
        self.wakes: dict[int, int] = {}
        self.watermark = BEFORE_ALL
        self.late = 0
        self.found: Counter[str] = Counter()

    def batch(self, rows: Sequence[dict[str, Any]], chance: random.Random) -> None:
        shared: Any = SimpleNamespace(value=self.job)
        fresh: dict[int, list[bytes]] = {}
        if rows:
            for part, _, chunk in chunks.rows(Dividing(shared)([arrow(rows, self.kind)])):
                fresh.setdefault(part, []).append(chunk)
        due = {part for part, wake in self.wakes.items() if wake < self.watermark}
        for part in sorted({*fresh, *due}):
            for attempt in range(2):
                tables = [chunks.read(chunk) for chunk in fresh.get(part, ())]
                kept = [chunks.read(self.waiting[part])] if part in self.waiting else []
                done = advance(self.job, part, self.saved.get(part), kept, tables, self.watermark)
                if attempt or chance.random() < 0.8:
                    break
            if chance.random() < 0.3:
                stateful._RUNS.clear()
            self._keep(part, done)

    def _keep(self, part: int, done: stateful.Advance) -> None:
        for known in (self.saved, self.waiting, self.wakes):
            known.pop(part, None)
        if done.saved is not None:
            self.saved[part] = done.saved
        if len(done.waiting):
            self.waiting[part] = chunks.written(done.waiting)
        if done.wake is not None:
            self.wakes[part] = done.wake
        self.late += len(done.late)
        found = batches(self.job.columns, done.matches)
        self.found += shown(row for batch in found for row in batch.to_pylist())


def streamed(
    program: Program,
    kb: Kb,
    events: Sequence[Event],
    seed: int,
    parts: int,
    entail: str | None = None,
) -> Stream:
    """The events in batches, out of order by three seconds at most, to the end of time."""
    chance = random.Random(seed)
    stream = Stream(program, kb, events, parts, entail)
    lateness = chance.choice((0, 1, 3)) * 1_000_000
    arriving = sorted(events, key=lambda e: e.time.micros + chance.random() * lateness)
    greatest = BEFORE_ALL
    while arriving:
        count = chance.randint(1, 4)
        some, arriving = arriving[:count], arriving[count:]
        stream.batch(event_rows(some, stream.kind), chance)
        greatest = max(greatest, *(event.time.micros for event in some))
        if chance.random() < 0.7:
            stream.watermark = max(stream.watermark, (greatest - lateness) // 1000 * 1000)
        if chance.random() < 0.3:
            stream.batch([], chance)
    while stream.wakes:
        stream.watermark = max(min(stream.wakes.values()) + 1, stream.watermark)
        if chance.random() < 0.3:
            stream.watermark = AFTER_ALL
        stream.batch([], chance)
    return stream


def objection(
    program: Program, kb: Kb, events: Sequence[Event], seed: int, entail: str | None = None
) -> str:
    whole = reference(program, kb, events, entail)
    for parts in (1, 3):
        stream = streamed(program, kb, events, seed, parts, entail)
        missing, more = whole - stream.found, stream.found - whole
        if missing or more or stream.late or stream.waiting:
            return f"missing: {list(missing)}\ntoo much: {list(more)}\nlate: {stream.late}"
    return ""


def test_state_of_another_query_or_division_is_refused() -> None:
    case = next(case for case in SUITE if case.file == "partition" and case.single_stream)
    (query,) = case.queries
    events = [event for stream in case.streams.values() for event in stream]
    program = spaseq.compile(query)
    stream = Stream(program, open_kb({}), events, 2)
    stream.watermark = events[1].time.micros
    stream.batch(event_rows(events[1:], stream.kind), random.Random(1))
    stream.watermark += 1
    stream.batch([], random.Random(1))
    assert stream.saved
    part, saved = next(iter(stream.saved.items()))
    none = chunks.EVENTS.empty_table()

    def resumed(other: Stream) -> None:
        advance(other.job, part, saved, [none], [none], stream.watermark)

    stateful._RUNS.clear()
    resumed(Stream(program, open_kb({}), events, 2))
    with pytest.raises(StateError, match="begin a new checkpoint"):
        resumed(Stream(program, open_kb({}), events, 3))
    with pytest.raises(StateError, match=r'"entail": "rdfs".*begin a new checkpoint'):
        resumed(Stream(program, open_kb({}), events, 2, "rdfs"))
    stateful._RUNS.clear()
    longer = spaseq.compile(query.replace("WITHIN 1", "WITHIN 11"))
    with pytest.raises(StateError, match="another program"):
        resumed(Stream(longer, open_kb({}), events, 2))


def test_events_that_wait_say_which_query_they_wait_for() -> None:
    case = next(case for case in SUITE if case.file == "partition" and case.single_stream)
    (query,) = case.queries
    events = [event for stream in case.streams.values() for event in stream]
    program = spaseq.compile(query)
    stream = Stream(program, open_kb({}), events, 2)
    stream.batch(event_rows(events, stream.kind), random.Random(1))
    assert stream.waiting
    assert stream.saved.keys() == stream.waiting.keys()
    part, saved = next(iter(stream.saved.items()))
    waiting = [chunks.read(stream.waiting[part])]

    def resumed(other: Stream, kept: Saved | None = saved) -> None:
        stateful._RUNS.clear()
        advance(other.job, part, kept, waiting, [], BEFORE_ALL)

    resumed(Stream(program, open_kb({}), events, 2))
    with pytest.raises(StateError, match="begin a new checkpoint"):
        resumed(Stream(program, open_kb({}), events, 3))
    longer = spaseq.compile(query.replace("WITHIN 1", "WITHIN 11"))
    with pytest.raises(StateError, match="another program"):
        resumed(Stream(longer, open_kb({}), events, 2))
    with pytest.raises(StateError, match="does not say which query"):
        resumed(stream, None)


def test_events_of_one_time_are_in_the_order_of_names_then_graphs() -> None:
    row = {"micros": 1, "ordinal": 0, "stream": 0, "dated": False, "stamp": None}
    rows = [
        {**row, "name": name, "graph": graph}
        for name, graph in ((None, b"1"), (None, b"2"), ("a", b"2"), ("a", b"3"), ("b", b"1"))
    ]
    shuffled = pa.Table.from_pylist(rows[::-1], schema=chunks.EVENTS)
    assert chunks.ordered(shuffled).to_pylist() == rows


def test_chunks_of_another_version_are_refused() -> None:
    table = chunks.EVENTS.empty_table().replace_schema_metadata({b"spaseq": b"0"})
    with pytest.raises(StateError, match="format 0"):
        chunks.read(chunks.written(table))


@pytest.mark.parametrize("first", range(0, EXAMPLES, 50))
def test_drawn_queries(first: int) -> None:
    for seed in range(first, first + 50):
        for case in (random_case(seed), plain_case(seed)):
            program = spaseq.compile(case.query, names=["q"])
            found = objection(program, open_kb(knowledge(case)), case.merged, seed)
            assert not found, f"seed {seed}: {found}\n{case}"


@pytest.mark.parametrize("case", SUITE, ids=str)
def test_suite(case: Case) -> None:
    program = _program(case)
    events = sorted(
        (e for name, s in case.streams.items() if name in program.streams for e in s),
        key=lambda e: (e.instant, e.stream),
    )
    if not events:
        return
    found = objection(program, open_kb(_knowledge(case)), events, 1, case.entail)
    assert not found, found


def test_a_part_wakes_when_the_window_of_a_match_that_waits_closes() -> None:
    program = spaseq.compile(
        "PREFIX : <http://example.org/> SELECT * WITHIN 5 SECONDS FROM STREAM S :S WHERE { "
        "SEQ(A ; !B) DEFINE GPM A ON S { ?k :a ?x } DEFINE GPM B ON S { ?k :b ?y } }"
    )
    fact = (ox.NamedNode(f"{EXAMPLE}k"), ox.NamedNode(f"{EXAMPLE}a"), ox.Literal(1))
    events = [Event(f"{EXAMPLE}S", timestamp(0, NUMBER), 0, (fact,))]
    stream, chance = Stream(program, open_kb({}), events, 1), random.Random(1)
    stream.batch(event_rows(events, stream.kind), chance)
    stream.watermark = 1_000_000
    stream.batch([], chance)
    assert stream.wakes == {0: 5_000_000}
    stream.watermark = 5_000_001
    stream.batch([], chance)
    assert sum(stream.found.values()) == 1
