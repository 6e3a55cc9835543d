"""A stream cut into batches has the matches of the whole, for any cuts and orders.

The stateful operators are run without Spark: batches at random, events out of order within the
lateness, watermarks as Spark moves them, state written and read between any two batches, and
now and then a batch that fails and is run again.
"""

from __future__ import annotations

import os
import random
from collections import Counter, OrderedDict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyoxigraph as ox
import pytest
from cases import Case, load
from jobs import arrow, event_rows, kind_of, reference, shown, sourced
from operators import Operator
from oracle import timestamp
from pyspark.sql import Row
from strategies import EXAMPLE, plain_case, random_case
from test_properties import knowledge
from test_suite import _knowledge, _program

import spaseq
from spaseq.errors import StateError
from spaseq.io.arrow_columns import columns_of
from spaseq.io.identity import TimeKind
from spaseq.kb.snapshot import Kb, open_kb
from spaseq.plan.key_division import ByKey
from spaseq.program import Program
from spaseq.rdf.event import NUMBER, Event
from spaseq.runs import Run
from spaseq.spark import chunks, stateful
from spaseq.spark.distribution import distribution
from spaseq.spark.division import Division
from spaseq.spark.streaming import BucketProcessor, Late, PartProcessor
from spaseq.spark.tasks import Gathering, Job

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "50"))
SUITE = [case for case in load() if case.error is None]
SOME = SUITE if "SPASEQ_EXAMPLES" in os.environ else SUITE[1::5]
"""A fifth of the suite, or all of it in a long run."""
AFTER_ALL = 2**52


class Stream:
    """A streaming query: its operators with their state, and a watermark in milliseconds."""

    def __init__(
        self,
        program: Program,
        kb: Kb,
        kind: TimeKind,
        parts: int,
        entail: str | None = None,
    ):
        self.kind: TimeKind = kind
        how = distribution(program)
        variables = how.variables if isinstance(how, ByKey) else ()
        division = Division(variables, ((),) * (parts if variables else 1))
        columns = columns_of(program, self.kind)
        self.shared: Any = SimpleNamespace(
            value=Job(program, kb, columns, division, entail, "test", parts)
        )
        self.buckets, self.parts = Operator(), Operator()
        self.watermark = 0
        self.late_mode: Late = "rows"
        self.late: list[dict[str, Any]] = []
        self.malformed: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        """The rows of matches, and in `found` the same as texts."""
        self.found: Counter[str] = Counter()

    def resumed(self, before: Stream) -> Stream:
        """This query on the checkpoint of another."""
        self.buckets, self.parts = before.buckets.copied(), before.parts.copied()
        self.watermark = before.watermark
        return self

    def batch(self, rows: Sequence[dict[str, Any]], chance: random.Random) -> None:
        while True:
            buckets, parts = self.buckets.copied(), self.parts.copied()
            given = self._given(rows, buckets, parts)
            if chance.random() < 0.3:
                stateful._CACHED_RUNS.clear()
            if chance.random() < 0.8:
                break
        self.buckets, self.parts = buckets, parts
        for row in given:
            table = pa.ipc.open_stream(row.payload).read_all()
            if row.kind == "late":
                self.late += table.to_pylist()
            elif row.kind == "malformed":
                self.malformed += table.to_pylist()
            else:
                self.rows += table.to_pylist()
                self.found += shown(table.to_pylist())

    def _given(
        self, rows: Sequence[dict[str, Any]], buckets: Operator, parts: Operator
    ) -> list[Row]:
        fresh: dict[int, list[Row]] = {}
        if rows:
            for part, _, chunk in chunks.rows(Gathering(self.shared)([arrow(rows, self.kind)])):
                fresh.setdefault(part, []).append(Row(chunk=chunk))
        divided: dict[int, list[Row]] = {}
        for row in buckets.batch(
            BucketProcessor(self.shared, self.late_mode), fresh, self.watermark
        ):
            divided.setdefault(row.part, []).append(row)
        return parts.batch(PartProcessor(self.shared, self.late_mode), divided, self.watermark)

    @property
    def wakes(self) -> list[int]:
        return [*self.buckets.wakes, *self.parts.wakes]

    @property
    def waiting(self) -> bool:
        """Whether events wait for the watermark."""
        return any("waiting" in group for group in self.buckets.states.values())


def streamed(
    program: Program,
    kb: Kb,
    events: Sequence[Event],
    seed: int,
    parts: int,
    entail: str | None = None,
) -> Stream:
    """The events in batches, out of order by three seconds at most, to the end of time."""
    chance, kind = random.Random(seed), kind_of(events)
    stream = Stream(program, kb, kind, parts, entail)
    lateness = chance.choice((0, 1, 3)) * 1_000_000
    rows = sourced(event_rows(events, kind), chance)
    micros = {row["time"]: e.time.micros for row, e in zip(rows, events, strict=True)}
    chance.shuffle(rows)
    arriving = sorted(rows, key=lambda row: micros[row["time"]] + chance.random() * lateness)
    greatest = 0
    while arriving:
        count = chance.randint(1, 4)
        some, arriving = arriving[:count], arriving[count:]
        stream.batch(some, chance)
        greatest = max(greatest, *(micros[row["time"]] for row in some))
        if chance.random() < 0.7:
            stream.watermark = max(stream.watermark, (greatest - lateness) // 1000)
        if chance.random() < 0.3:
            stream.batch([], chance)
    while stream.wakes:
        stream.watermark = max(min(stream.wakes), stream.watermark)
        if chance.random() < 0.3:
            stream.watermark = AFTER_ALL
        stream.batch([], chance)
    return stream


def objection(
    program: Program,
    kb: Kb,
    events: Sequence[Event],
    seed: int,
    parts: int,
    entail: str | None = None,
) -> str:
    # A watermark is never before 1970, or 0.
    events = [event for event in events if event.time.micros >= 0]
    whole = reference(program, kb, events, entail)
    stream = streamed(program, kb, events, seed, parts, entail)
    missing, more = whole - stream.found, stream.found - whole
    if missing or more or stream.late or stream.waiting:
        return f"missing: {list(missing)}\ntoo much: {list(more)}\nlate: {stream.late}"
    return ""


def test_late_events_are_counted_in_both_modes(caplog: pytest.LogCaptureFixture) -> None:
    """With one line for each stream and batch, however many groups of times they are in."""
    query = """PREFIX : <http://example.org/> SELECT * WITHIN 2 SECONDS PARTITION BY ?k
    FROM STREAM s :s WHERE { SEQ(A ; B)
      DEFINE GPM A ON s { ?k :v 1 } DEFINE GPM B ON s { ?k :v 2 } }"""
    graph = b"<urn:k> <http://example.org/v> 1 ."
    late = [
        {"stream": f"{EXAMPLE}s", "time": 10**6 * second, "graph": graph, "ordinal": None,
         "name": None, "source": None}
        for second in range(20)
    ]  # fmt: skip
    modes: tuple[Late, ...] = ("rows", "log")
    for mode in modes:
        stream = Stream(spaseq.compile(query), open_kb({}), "timestamp", 5)
        stream.late_mode = mode
        stream.watermark = 10**6
        given = stream._given(late, Operator(), Operator())
        assert {row.kind for row in given} == {"late"}
        assert sum(row.size for row in given) == 20
        sizes = [len(pa.ipc.open_stream(row.payload).read_all()) for row in given if mode == "rows"]
        assert sum(sizes) == (20 if mode == "rows" else 0)
    assert caplog.messages == [
        "20 late events of the stream http://example.org/s were dropped, with times from "
        "1970-01-01T00:00:00Z to 1970-01-01T00:00:19Z: they arrived behind the watermark"
    ]


def test_expressions_that_err_are_named_once(caplog: pytest.LogCaptureFixture) -> None:
    query = """PREFIX : <http://example.org/> SELECT (?x * 2 AS ?y) WITHIN 2 SECONDS
    PARTITION BY ?k FROM STREAM s :s WHERE { SEQ(A ; B)
      DEFINE GPM A ON s { ?k :v ?x } DEFINE GPM B ON s { ?k :v ?z } }"""
    graph = b'<urn:k> <http://example.org/v> "n/a" .'
    rows = [
        {"stream": f"{EXAMPLE}s", "time": 10**6 * second, "graph": graph, "ordinal": None,
         "name": None, "source": None}
        for second in range(8)
    ]  # fmt: skip
    stream = Stream(spaseq.compile(query), open_kb({}), "timestamp", 1)
    for number in (0, 4):
        stream.batch(rows[number : number + 4], random.Random(1))
        stream.watermark = 10**3 * (number + 4)
    stream.batch([], random.Random(1))
    (line,) = caplog.messages
    assert line.startswith("the query query: SELECT: (?x * 2 AS ?y) had ")
    assert line.endswith(' errors, first "n/a" * 2: a string and a number')


@pytest.mark.parametrize("state", ["none", "events that wait", "runs"])
def test_a_checkpoint_of_another_query_or_division_is_refused(state: str) -> None:
    case = next(case for case in SUITE if case.file == "partition" and case.single_stream)
    (query,) = case.queries
    events = [event for stream in case.streams.values() for event in stream]
    program = spaseq.compile(query)
    kind, chance = kind_of(events), random.Random(1)
    stream = Stream(program, open_kb({}), kind, 2)
    rows = event_rows(events, kind)
    if state == "none":
        # The event that moves time is late for ever; no group of keys has any state.
        stream.watermark = AFTER_ALL
    stream.batch(rows, chance)
    if state == "runs":
        stream.watermark = max(event.time.micros for event in events) // 1000
        stream.batch([], chance)
    assert stream.waiting == (state != "none")
    assert any(stream.parts.states.values()) == (state == "runs")

    def goes_on(other: Stream) -> None:
        stateful._CACHED_RUNS.clear()
        other.resumed(stream).batch(rows[-1:], chance)

    goes_on(Stream(program, open_kb({}), kind, 2))
    with pytest.raises(StateError, match=r'"parts": 2.*"parts": 3.*start a new checkpoint'):
        goes_on(Stream(program, open_kb({}), kind, 3))
    with pytest.raises(StateError, match=r'"entail": "rdfs".*start a new checkpoint'):
        goes_on(Stream(program, open_kb({}), kind, 2, "rdfs"))
    longer = spaseq.compile(query.replace("WITHIN 1", "WITHIN 11"))
    with pytest.raises(StateError, match="continue with the query"):
        goes_on(Stream(longer, open_kb({}), kind, 2))


def test_a_late_event_of_several_parts_comes_out_once() -> None:
    program = spaseq.compile(
        f"PREFIX : <{EXAMPLE}> SELECT * WITHIN 5 SECONDS PARTITION BY ?k FROM STREAM S :S WHERE {{ "
        "SEQ(A ; !N ; B) DEFINE GPM A ON S { ?k :a ?x } DEFINE GPM B ON S { ?k :b ?y } "
        "DEFINE GPM N ON S { ?z :stop ?n } }"
    )
    graphs = [
        "".join(f'<{EXAMPLE}{key}> <{EXAMPLE}a> "1" .\n' for key in "abcd"),
        f'<{EXAMPLE}z> <{EXAMPLE}stop> "1" .\n',
        f'<{EXAMPLE}z> <{EXAMPLE}other> "1" .\n',
    ]
    row = {"stream": f"{EXAMPLE}S", "time": 1_000_000, "ordinal": None, "source": None}
    rows = [{**row, "name": f"urn:{n}", "graph": text.encode()} for n, text in enumerate(graphs)]
    stream, chance = Stream(program, open_kb({}), "timestamp", 4), random.Random(1)
    stream.watermark = 5_000
    stream.batch(rows, chance)
    assert [(row["name"], row["graph"].decode()) for row in stream.late] == [
        (f"urn:{n}", text) for n, text in enumerate(graphs)
    ]
    assert not stream.waiting


def test_a_worker_keeps_a_limited_number_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: OrderedDict[bytes, tuple[Run, int]] = OrderedDict()
    monkeypatch.setattr(stateful, "_CACHED_RUNS", runs)
    job: Any = SimpleNamespace(mark="test")
    large = bytes(stateful._MAX_CACHED_BYTES // 4)
    for blob, limit in ((b"small", stateful._MAX_CACHED_RUNS), (large, stateful._LARGE_RUNS)):
        for task in range(limit + 5):
            stateful._cache(job, task, blob, cast("Run", task))
        assert [run for run, _ in runs.values()] == list(range(5, limit + 5))


def test_chunks_of_another_version_are_refused() -> None:
    table = chunks.EVENTS.empty_table().replace_schema_metadata({b"spaseq": b"0"})
    with pytest.raises(StateError, match="format 0"):
        chunks.read(chunks.written(table))


@pytest.mark.parametrize("first", range(0, EXAMPLES, 50))
def test_drawn_queries(first: int) -> None:
    for seed in range(first, first + 50):
        for case in (random_case(seed), plain_case(seed)):
            program = spaseq.compile(case.query, names=["q"])
            found = objection(
                program, open_kb(knowledge(case)), case.merged, seed, 1 if seed % 3 == 0 else 3
            )
            assert not found, f"seed {seed}: {found}\n{case}"


@pytest.mark.parametrize("case", SOME, ids=str)
def test_suite(case: Case) -> None:
    program = _program(case)
    events = sorted(
        (e for name, s in case.streams.items() if name in program.streams for e in s),
        key=lambda e: (e.instant, e.stream),
    )
    if not events:
        return
    found = objection(program, open_kb(_knowledge(case)), events, 1, 3, case.entail)
    assert not found, found


def test_a_part_wakes_when_the_window_of_a_match_that_waits_closes() -> None:
    program = spaseq.compile(
        "PREFIX : <http://example.org/> SELECT * WITHIN 5 SECONDS FROM STREAM S :S WHERE { "
        "SEQ(A ; !B) DEFINE GPM A ON S { ?k :a ?x } DEFINE GPM B ON S { ?k :b ?y } }"
    )
    fact = (ox.NamedNode(f"{EXAMPLE}k"), ox.NamedNode(f"{EXAMPLE}a"), ox.Literal(1))
    events = [Event(f"{EXAMPLE}S", timestamp(0, NUMBER), 0, (fact,))]
    stream, chance = Stream(program, open_kb({}), kind_of(events), 1), random.Random(1)
    stream.batch(event_rows(events, stream.kind), chance)
    stream.watermark = 1_000
    stream.batch([], chance)
    assert stream.wakes == [5_001]
    stream.watermark = 5_001
    stream.batch([], chance)
    assert sum(stream.found.values()) == 1
