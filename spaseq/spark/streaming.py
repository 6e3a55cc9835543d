"""`match_stream`: the matches of queries over a streaming DataFrame, exactly once.

Two stateful operators follow each other.

1. Events wait in buckets of times until the watermark has passed them. The operator then numbers
   them within their streams and divides them among the parts of the keys
   (spaseq/spark/numbering.py). So the results depend neither on the order of arrival nor on the
   division of the input into batches.
2. A group for each part holds a run (spaseq/spark/stateful.py).

Spark's checkpoint holds their state and, after a failure, determines which events Spark reads
again. So a query that was killed and restarted produces the matches of an uninterrupted one. Every
batch checks that the checkpoint belongs to the query.
"""

from __future__ import annotations

import json
import logging
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
)

from spaseq.errors import SpaseqError
from spaseq.io import time_column
from spaseq.io.arrow_columns import columns_of, select_columns
from spaseq.io.arrow_rows import batches
from spaseq.io.identity import TimeKind, written_time
from spaseq.kb.snapshot import open_kb
from spaseq.plan.key_division import ByKey
from spaseq.program import Program
from spaseq.rdf.accepted import Bindable
from spaseq.rdf.time_text import date_time_text
from spaseq.spark import chunks, events, malformed, numbering
from spaseq.spark.batch import SingleTaskWarning, compiled
from spaseq.spark.conditions import with_conditions
from spaseq.spark.distribution import Single, distribution
from spaseq.spark.division import Division
from spaseq.spark.malformed import CORRUPT_PART, mode_of
from spaseq.spark.schemas import is_batch, schema_of, with_schema
from spaseq.spark.shipping import Shared, shared
from spaseq.spark.stateful import Saved, advance, check, header
from spaseq.spark.tasks import MARK, Divider, Gathering, Job, Limits, shipped
from spaseq.spark.types import Types, spark_schema, typed
from spaseq.spark.versions import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.stateful_processor import (
        ExpiredTimerInfo,
        ListState,
        TimerValues,
        ValueState,
    )

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
Late: TypeAlias = Literal["log", "rows"]

_CHUNKS = spark_schema(chunks.CHUNKS)
_DIVIDED = spark_schema(
    pa.schema(
        [
            ("part", pa.int32()),
            ("kind", pa.string()),
            ("chunk", pa.binary()),
            ("size", pa.int64()),
        ]
    )
)
_OUT = spark_schema(
    pa.schema([("kind", pa.string()), ("payload", pa.binary()), ("size", pa.int64())])
)
"""Kinds of rows: `matches`, `late`, `malformed`; each with the number of rows in its payload. With
late="log" a payload of late events is a summary, and only counts.
"""
_PARTS_PER_TASK = 2


def match_stream(
    df: DataFrame,
    query: Program | str | Sequence[str],
    kb: Mapping[str, Any] | None = None,
    *,
    lateness: str = "0 seconds",
    late: Late = "log",
    bind: Mapping[str, Bindable] | None = None,
    types: Types | None = None,
    parts: int | None = None,
    entail: str | None = None,
    columns: Sequence[str] | None = None,
    mode: str = "FAILFAST",
    observe: str | None = None,
    **limits: Unpack[Limits],
) -> DataFrame:
    """The matches of queries over a streaming DataFrame of events.

    Args:
        df: as for `match`.
        query: as for `match`.
        kb: as for `match`; read by this call, and again when the query is restarted.
        lateness: the greatest delay of an event behind the latest time so far, as Spark's
            `withWatermark` spells durations.
        late: how late events are reported: "log" writes one warning per batch to a worker's log;
            "rows" adds a column `late` that holds the event, and is null in rows of matches.
            `observe` counts them in both cases.
        bind: as for `match`.
        types: the Spark types of the columns of variables, by column.
        parts: the number of groups of state for keys, and of buckets for waiting events. It
            cannot change during the life of a checkpoint.
        entail: as for `match`. It cannot change during the life of a checkpoint.
        columns: as for `match`.
        mode: as for `match`. FAILFAST ends the stream, and again at each restart, until the source
            no longer has the row. It may change during the life of a checkpoint.
        observe: a name, unique in the query, for metrics of each batch: `NAME_input` with the
            counts of `events` and of rows of `other_streams`, `NAME_output` with those of
            `matches`, `late` events and `malformed` rows (with PERMISSIVE). Spark shows them in the
            progress of the query and to its listeners, also on Connect.
        limits: as for `match`. They may change during the life of a checkpoint.

    Raises:
        QueryError, KbError, EventError: at once, if the query, knowledge base and events do not
            agree.
        ValueError: if `columns` names a column that does not exist.
    """
    if is_batch(df):
        raise SpaseqError("match_stream needs a streaming DataFrame; use match for any other")
    program = compiled(query, bind)
    background = open_kb(kb or {})
    program.start(background, entail=entail, **limits)
    spark = df.sparkSession
    if spark.conf.get(PROVIDER, "") != ROCKSDB:
        raise SpaseqError(
            f'the state of match_stream needs RocksDB: spark.conf.set("{PROVIDER}", "{ROCKSDB}"), '
            "or create the session by spaseq.spark.session()"
        )
    given = schema_of(df)
    kind = events.check_columns(given, program.streams)
    wanted = parts or _PARTS_PER_TASK * int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    (made,) = select_columns([columns_of(program, kind)], columns)
    whole = Job(
        program,
        background,
        made,
        _division(program, wanted),
        entail,
        uuid.uuid4().hex,
        wanted,
        shipped(program),
        mode_of(mode),
        program.streams,
        arrow_type(given["time"]),
        limits,
    )
    job = shared(spark, whole)
    if observe is not None:
        counts = events.counts(given, program.streams)
        df = with_schema(df.observe(f"{observe}_input", *counts), given)
    if "stream" in given.names:
        # In front of the watermark, which rows of other streams do not move.
        df = df.where(events.is_own(program.streams))
    timed = df.select("*", f.timestamp_micros(events.micros(given)).alias("__event_time"))
    prepared = events.prepared(timed.withWatermark("__event_time", lateness), given, program)
    gathered = prepared.mapInArrow(Gathering(job).__call__, _CHUNKS)
    divided = gathered.groupBy("part").transformWithState(
        BucketProcessor(job, late), _DIVIDED, "Append", "EventTime"
    )
    out = (
        with_schema(divided, _DIVIDED)
        .groupBy("part")
        .transformWithState(PartProcessor(job, late), _OUT, "Append", "EventTime")
    )
    if observe is not None:
        out = out.observe(f"{observe}_output", *map(_count, ("matches", "late", "malformed")))
    schema = spark_schema(_schema(whole, late))
    found = with_schema(out, _OUT).mapInArrow(Unpacking(job, late).__call__, schema)
    return found if types is None else typed(found, types)


def _count(kind: str) -> Column:
    """The number of rows of a kind."""
    counted = f.sum(f.when(f.col("kind") == kind, f.col("size")))
    return f.coalesce(counted, f.lit(0)).alias(kind)


def late_events(matches: DataFrame) -> DataFrame:
    """The late events of a result of `match_stream` with `late="rows"`, as a table of events.

    Its columns are those of events, so it can be matched again, or written to a table of its own
    (inside `foreachBatch`, beside the matches).

    Raises:
        SpaseqError: if the result has no column `late`.
    """
    if "late" not in matches.columns:
        raise SpaseqError('late_events needs the column late of match_stream(…, late="rows")')
    # Not `late.*`, which means all columns of a table of that name.
    late = f.col("late")
    names = _late_type("string").names
    return matches.where(late.isNotNull()).select(*(late[name].alias(name) for name in names))


def _division(program: Program, parts: int) -> Division:
    how = distribution(program)
    if isinstance(how, ByKey):
        return Division(how.variables, ((),) * parts)
    reason = how.reason if isinstance(how, Single) else how.why_not_by_key
    warnings.warn(f"one task does all the work: {reason}", SingleTaskWarning, stacklevel=3)
    return Division((), ((),))


class BucketProcessor(StatefulProcessor):
    """The first stateful operator: each group of rows is a bucket of times."""

    def __init__(self, job: Shared, late: Late):
        self._job = job
        self._late = late
        self._divider: Divider | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; Spark calls this once in each task."""
        self._handle = handle
        self._header: ValueState = handle.getValueState("header", "header string")
        self._waiting: ListState = handle.getListState("waiting", "first bigint, chunk binary")

    @with_conditions
    def handleInputRows(
        self, key: Any, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Process the new events of a bucket.

        The bucket `MARK` has no events and stores the header of the checkpoint. The bucket
        `CORRUPT_PART` has malformed rows, which pass through.
        """
        self._check()
        sent = [bytes(row.chunk) for row in rows if row.chunk]
        if key[0] == MARK:
            self._header.update((header(self._job.value),))
        elif key[0] == CORRUPT_PART:
            for chunk in sent:
                yield Row(part=0, kind="malformed", chunk=chunk, size=len(chunks.read(chunk)))
        else:
            yield from self._released([chunks.read(chunk) for chunk in sent], timerValues)

    @with_conditions
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Release the events of a bucket that the watermark has passed."""
        self._check()
        yield from self._released([], timerValues)

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def _check(self) -> None:
        saved = self._header.get() if self._header.exists() else None
        if saved is not None:
            check(self._job.value, saved[0])

    def _released(self, fresh: list[pa.Table], timers: TimerValues) -> Iterator[Row]:
        watermark = max(0, timers.getCurrentWatermarkInMs())
        waiting = list(self._waiting.get()) if self._waiting.exists() else []
        before = [chunks.read(bytes(chunk)) for _, chunk in waiting]
        streams = self._job.value.program.streams
        done = numbering.release(before, fresh, 1000 * watermark, streams)
        wake = None
        if len(done.waiting):
            wake = done.waiting.column("micros")[0].as_py()
            self._waiting.put([(wake, chunks.written(done.waiting))])
            self._header.update((header(self._job.value),))
        elif waiting:
            self._waiting.clear()
            self._header.clear()
        _set_timer(self._handle, wake, watermark)
        yield from self._divided(done.ready)
        yield from self._reported(done.late)

    def _divided(self, ready: pa.Table) -> Iterator[Row]:
        if not len(ready):
            return
        if self._divider is None:
            self._divider = Divider(self._job.value)
        writer = chunks.ChunkWriter()
        written = chain(writer.add(*self._divider.divided(ready)), writer.rest())
        for part, _, chunk in chunks.rows(written):
            yield Row(part=part, kind="events", chunk=chunk, size=None)

    def _reported(self, late: pa.Table) -> Iterator[Row]:
        if not len(late):
            return
        chunk = chunks.written(late) if self._late == "rows" else _summary(late)
        yield Row(part=0, kind="late", chunk=chunk, size=len(late))


class PartProcessor(StatefulProcessor):
    """The second stateful operator: each group of rows is a part of the keys."""

    def __init__(self, job: Shared, late: Late):
        self._job = job
        self._late = late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; Spark calls this once in each task."""
        self._handle = handle
        self._part: ValueState = handle.getValueState(
            "part", "header string, last bigint, run binary"
        )

    @with_conditions
    def handleInputRows(
        self, key: Any, rows: Iterator[Row], timerValues: TimerValues
    ) -> Iterator[Row]:
        """Evaluate the events of a part; pass late events and malformed rows through."""
        ready, summaries = [], []
        for row in rows:
            if row.kind == "events":
                ready.append(chunks.read(bytes(row.chunk)))
            else:
                yield Row(kind=row.kind, payload=bytes(row.chunk), size=row.size)
                if row.kind == "late" and self._late == "log":
                    summaries.append(bytes(row.chunk))
        if summaries:
            self._log(summaries)
        yield from self._advance(key[0], ready, timerValues)

    @with_conditions
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Close the windows of a part that the watermark has passed."""
        yield from self._advance(key[0], [], timerValues)

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def _advance(self, part: int, ready: list[pa.Table], timers: TimerValues) -> Iterator[Row]:
        watermark = max(0, timers.getCurrentWatermarkInMs())
        saved = self._part.get() if self._part.exists() else None
        before = None if saved is None else Saved(saved[0], saved[1], bytes(saved[2]))
        done = advance(self._job.value, part, before, ready, 1000 * watermark)
        if done.saved is None:
            self._part.clear()
        else:
            self._part.update((done.saved.header, done.saved.last, done.saved.run))
        _set_timer(self._handle, done.wake, watermark)
        for batch in batches(self._job.value.columns, done.matches):
            table = pa.Table.from_batches([batch])
            yield Row(kind="matches", payload=chunks.written(table), size=len(table))

    def _log(self, summaries: Sequence[bytes]) -> None:
        """Log the late events of a batch, all of which reach one part."""
        streams = self._job.value.program.streams
        for stream, (count, first, last) in _together(summaries).items():
            is_date = self._job.value.columns.kind == "timestamp"
            times = [date_time_text(each) if is_date else each / 1e6 for each in (first, last)]
            logging.getLogger("spaseq.spark").warning(
                "%d late events of the stream %s were dropped, with times from %s to %s: they "
                "arrived behind the watermark",
                count, streams[stream], *times,
            )  # fmt: skip


def _summary(late: pa.Table) -> bytes:
    """Late events by the number of their stream: how many, and the first and last time."""
    counts = late.group_by("stream").aggregate(
        [("micros", "count"), ("micros", "min"), ("micros", "max")]
    )
    names = ("stream", "micros_count", "micros_min", "micros_max")
    rows = zip(*(counts.column(name).to_pylist() for name in names), strict=True)
    return json.dumps({stream: rest for stream, *rest in rows}).encode()


def _together(summaries: Sequence[bytes]) -> dict[int, tuple[int, int, int]]:
    """The sum of summaries of late events."""
    found: dict[int, tuple[int, int, int]] = {}
    for summary in summaries:
        for stream, (count, first, last) in json.loads(summary).items():
            known = found.get(int(stream), (0, first, last))
            found[int(stream)] = known[0] + count, min(known[1], first), max(known[2], last)
    return found


def _set_timer(handle: StatefulProcessorHandle, wake: int | None, watermark: int) -> None:
    """Make the timer at `wake`, in microseconds, the only timer of a group; None: no timer.

    A timer expires when the watermark reaches it. So all buckets release the events of a time in
    the same batch, and a part passes a time only after it has received these events.
    """
    for timer in list(handle.listTimers()):
        handle.deleteTimer(timer)
    if wake is not None:
        handle.registerTimer(max(watermark, wake // 1000) + 1)


class Unpacking:
    """Output of the second stateful operator → rows of matches, late events and malformed rows."""

    def __init__(self, job: Shared, late: Late):
        self._job = job
        self._late = late

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        schema = _schema(job, self._late)
        for batch in batches:
            for kind, payload, _ in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                if kind == "late" and self._late == "log":
                    continue
                if kind == "malformed":
                    table = malformed.rows_of_chunk(payload, schema)
                else:
                    table = pa.ipc.open_stream(payload).read_all()
                    if kind == "late":
                        table = _late_rows(table, schema, job.program.streams, job.columns.kind)
                    for field in list(schema)[table.num_columns :]:
                        table = table.append_column(field, pa.nulls(len(table), field.type))
                yield from table.to_batches()


def _schema(job: Job, late: Late) -> pa.Schema:
    """The schema of the rows: of matches, then of late events, then of malformed rows."""
    schema = job.columns.schema()
    if late == "rows":
        schema = schema.append(pa.field("late", _late_type(job.columns.kind)))
    return schema.append(malformed.column(job.time)) if job.mode == "PERMISSIVE" else schema


def _late_type(kind: TimeKind) -> pa.DataType:
    return pa.struct(
        [
            ("stream", pa.string()),
            ("time", time_column.arrow_type(kind)),
            ("ordinal", pa.int64()),
            ("name", pa.string()),
            ("graph", pa.string()),
        ]
    )


def _late_rows(
    table: pa.Table, schema: pa.Schema, streams: Sequence[str], kind: TimeKind
) -> pa.Table:
    rows = [
        {
            "late": {
                "stream": streams[row["stream"]],
                "time": written_time(time_column.timestamp_of(row), kind),
                "ordinal": row["ordinal"],
                "name": row["name"],
                "graph": row["graph"].decode(),
            }
        }
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=schema)
