"""`spaseq_match`: matching as a table function of SQL.

    SELECT * FROM spaseq_match(TABLE(events) PARTITION BY key ORDER BY time, query => '…',
                               kb => map('http://example.org/kb', '/data/kb.ttl'))

The rows are events as for `match`, or become events by a mapping. Every partition is a separate
run, so a match is found only if PARTITION BY, or WITH SINGLE PARTITION, keeps its events together.
The columns of the result depend on the query, which `analyze` compiles once, on the driver; it
reads the knowledge base there as well.

Cost: Spark passes rows to a table function one by one, as Python objects, and each partition has a
separate run. `match` receives Arrow batches.

Spark does not tell a table function its partition, but rows of two partitions differ, and each row
belongs to one. So a digest of the row identifies an event besides its ordinal, which counts within
the partition.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import types as t
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from spaseq.engine.limit_errors import OnLimit
from spaseq.errors import ArgumentError, EventError
from spaseq.io.arrow_columns import columns_of, select_columns
from spaseq.io.arrow_rows import batches
from spaseq.io.losses import Loss
from spaseq.kb.snapshot import open_kb
from spaseq.program import compile_queries
from spaseq.results import Match, Witness
from spaseq.spark import chunks, events, numbering
from spaseq.spark.conditions import with_condition, with_conditions
from spaseq.spark.division import Division
from spaseq.spark.mapped_rows import RowReader, check_columns, checked, kind_of_times, with_ordinal
from spaseq.spark.part_run import Feeder
from spaseq.spark.stateful import retained
from spaseq.spark.tasks import Job, Limits, memory_named, report, shipped
from spaseq.spark.types import spark_schema
from spaseq.spark.versions import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS_AT_ONCE = 1024
_ARRIVED = chunks.ARRIVED.append(pa.field("row", pa.string()))
"""Events with the digests of their rows."""


def register_table_function(spark: SparkSession) -> None:
    """Register `spaseq_match` with a session."""
    from pyspark.sql.functions import udtf

    made: Any = udtf(SpaseqMatch)
    spark.udtf.register("spaseq_match", made)


@dataclass
class Analysis(AnalyzeResult):
    """The data of a call that the driver passes to the workers."""

    job: Job | None = None
    reader: RowReader | None = None
    """The reader of rows with a mapping."""
    rows: t.StructType | None = None
    """The columns of the rows."""


class SpaseqMatch:
    """The table function: one instance for each partition of rows."""

    def __init__(self, analysis: Analysis):
        assert analysis.job is not None
        assert analysis.rows is not None
        self._job = analysis.job
        self._reader = analysis.reader
        self._columns = analysis.rows
        self._schema = arrow_schema(analysis.rows)
        self._run = _started(analysis.job)
        self._feeder = Feeder(self._run)
        self._rows: list[Row] = []
        self._lost: list[Loss] = []
        """What the mapping lost of the rows."""
        self._waiting = _ARRIVED.empty_table()
        """Events of the latest time, which more events may follow."""
        self._last: int | None = None
        self._origins: dict[tuple[str, int, int], str] = {}
        """The digests of rows by the stream, time and ordinal of their events, in time order."""
        self._retained = retained(analysis.job.program)

    @staticmethod
    @with_condition
    def analyze(
        rows: AnalyzeArgument,
        query: AnalyzeArgument,
        kb: AnalyzeArgument | None = None,
        map: AnalyzeArgument | None = None,
        time_column: AnalyzeArgument | None = None,
        bind: AnalyzeArgument | None = None,
        entail: AnalyzeArgument | None = None,
        columns: AnalyzeArgument | None = None,
        times: AnalyzeArgument | None = None,
        ordinal_column: AnalyzeArgument | None = None,
        max_groups: AnalyzeArgument | None = None,
        max_steps: AnalyzeArgument | None = None,
        max_matches: AnalyzeArgument | None = None,
        max_memory: AnalyzeArgument | None = None,
        on_limit: AnalyzeArgument | None = None,
    ) -> Analysis:
        """Check a call and compile its query.

        Args:
            rows: the table.
            query: the text of a query over one or several streams.
            kb: graph IRIs with files: a map, or `IRI=FILE` for one.
            map: a mapping that makes an event of each row: its text, or the path of its file.
            time_column: the column of times, if the mapping leaves `?_time` unbound.
            bind: a map of values for query variables.
            entail: the entailment regime.
            columns: an array of the columns to compute; all by default.
            times: the type of the times of the result, with a mapping: `timestamp` (the default)
                for dates, `decimal` for numbers of seconds, `string` for either.
            ordinal_column: the column that orders the events of one time, with a mapping.
            max_groups: a limit of each partition, as for `match`; so are the others.
            max_steps: as `max_groups`.
            max_matches: as `max_groups`.
            max_memory: as `max_groups`.
            on_limit: as for `match`.

        Raises:
            ArgumentError: for an argument of another type.
            QueryError, KbError, EventError: if query, knowledge base and rows do not agree.
        """
        if not rows.isTable or not isinstance(rows.dataType, t.StructType):
            raise ArgumentError("spaseq_match: the first argument is a table: TABLE(events)")
        program = compile_queries(_text("query", query) or "", bind=_map("bind", bind))
        background = open_kb(_knowledge(kb))
        mapping, regime = _text("map", map), _text("entail", entail)
        time, ordinal = _text("time_column", time_column), _text("ordinal_column", ordinal_column)
        limits = Limits(
            max_groups=_number("max_groups", max_groups),
            max_steps=_number("max_steps", max_steps),
            max_matches=_number("max_matches", max_matches),
            max_memory=_number("max_memory", max_memory),
            on_limit=cast(OnLimit, _text("on_limit", on_limit) or "stop"),
        )
        program.start(background, entail=regime, **limits)
        reader = None
        if mapping is not None:
            if len(program.streams) > 1:
                raise ArgumentError("map: the rows are one stream, and the query reads several")
            kind = kind_of_times(_text("times", times) or "timestamp")
            rule = with_ordinal(checked(mapping), rows.dataType, ordinal)
            check_columns(rows.dataType, rule, time)
            reader = RowReader(program.streams[0], rule, time, kind, "FAILFAST")
        elif time is not None or times is not None or ordinal is not None:
            raise ArgumentError("time_column, ordinal_column and times are for rows with a mapping")
        else:
            kind = events.check_columns(rows.dataType, program.streams)
        wanted = None if columns is None else _list("columns", columns)
        (made,) = select_columns([columns_of(program, kind)], wanted)
        job = Job(
            program,
            background,
            made,
            Division((), ((),)),
            regime,
            uuid.uuid4().hex,
            functions=shipped(program),
            limits=limits,
        )
        return Analysis(spark_schema(made.schema()), job=job, reader=reader, rows=rows.dataType)

    @with_conditions
    def eval(self, row: Row, *_: Any, **__: Any) -> Iterator[tuple[Any, ...]]:
        """Process a row; yields the matches that are complete."""
        self._rows.append(row)
        if len(self._rows) == _ROWS_AT_ONCE:
            with memory_named(self._run):
                yield from self._values(self._pushed(False))

    @with_conditions
    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """The matches at the end of the partition."""
        with memory_named(self._run):
            yield from self._values(self._pushed(True))
            yield from self._values(self._run.finish())
        report(self._run, self._job.mark)
        if self._reader is not None:
            self._reader.report(self._lost)

    def _pushed(self, is_end: bool) -> Iterator[Match]:
        """The matches of the rows so far, except those of the latest time unless they are all."""
        table = pa.concat_tables([self._waiting, self._arrived()])
        self._rows = []
        if not len(table):
            return
        table = chunks.ordered(table)
        micros = table.column("micros").to_numpy()
        if self._last is not None and micros[0] < self._last:
            raise EventError(
                "the rows of a partition are not in the order of time: "
                "TABLE(…) PARTITION BY … ORDER BY time"
            )
        self._last = int(micros[-1])
        count = len(table) if is_end else int(np.searchsorted(micros, micros[-1]))
        self._waiting = table.slice(count)
        ready = numbering.numbered(table.slice(0, count), self._job.program.streams)
        self._remember(ready)
        yield from self._feeder.push(ready)
        self._forget()

    def _remember(self, events_: pa.Table) -> None:
        """Note the rows of numbered events."""
        streams = self._job.program.streams
        names = ("stream", "micros", "ordinal", "row")
        columns = (events_.column(name).to_pylist() for name in names)
        for stream, micros, ordinal, row in zip(*columns, strict=True):
            self._origins[streams[stream], micros, ordinal] = row

    def _forget(self) -> None:
        """Drop the rows of events that can be in no further match."""
        if self._retained is None or self._last is None:
            return
        kept = self._last - 2 * self._retained
        for place in list(takewhile(lambda place: place[1] < kept, self._origins)):
            del self._origins[place]

    def _origin(self, witness: Witness) -> str:
        return self._origins.get((witness.stream, witness.time.micros, witness.ordinal), "")

    def _arrived(self) -> pa.Table:
        """The events of the rows, with the digests of the rows."""
        streams = self._job.program.streams
        fields = self._columns.fields
        values = {
            field.name: [_internal(field.dataType, row[place]) for row in self._rows]
            for place, field in enumerate(fields)
        }
        batch = pa.RecordBatch.from_pydict(values, schema=self._schema)
        rows = pa.array(list(map(_digest, zip(*values.values(), strict=True))), pa.string())
        made = [_ARRIVED.empty_table()]
        if self._reader is None:
            made.append(_with_rows(events.completed(batch, streams), rows, streams))
        elif len(batch):
            for each, places in self._reader.read(batch, self._lost):
                events_ = each.append_column("source", pa.nulls(len(each), pa.string()))
                made.append(_with_rows(events_, rows.take(pa.array(places)), streams))
        return pa.concat_tables(made)

    def _values(self, matches: Iterable[Match]) -> Iterator[tuple[Any, ...]]:
        """Matches as rows of the result."""
        for batch in batches(self._job.columns, matches, self._origin):
            columns = [_python(column.to_pylist(), column.type) for column in batch.columns]
            yield from zip(*columns, strict=True)


# Spark counts the arguments of `SpaseqMatch.__init__`, which must not be wrapped.
_started = with_condition(Job.start)


def _internal(kind: t.DataType, value: Any) -> Any:
    """A value of a row for Arrow; a timestamp is in the local time of the process."""
    if value is not None and isinstance(kind, t.TimestampType | t.TimestampNTZType):
        return kind.toInternal(value)
    return value


def _digest(row: tuple[Any, ...]) -> str:
    return blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _with_rows(batch: pa.RecordBatch, rows: pa.Array, streams: tuple[str, ...]) -> pa.Table:
    """A batch of prepared events as a table of events with the digests of their rows."""
    return events.arrived(batch, streams).append_column(_ARRIVED.field("row"), rows)


def _python(values: list[Any], kind: pa.DataType) -> list[Any]:
    """Values of Arrow in the form that Spark accepts: a map is a dictionary."""
    if pa.types.is_map(kind):
        return [None if value is None else dict(value) for value in values]
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        struct = kind.value_type
        fields = [struct.field(place) for place in range(struct.num_fields)]
        maps = [field.name for field in fields if pa.types.is_map(field.type)]
        for value in values:
            for item in value or ():
                item.update({name: dict(item[name]) for name in maps if item[name] is not None})
    return values


# ------------------------------------------------------------------ arguments


def _constant(name: str, given: AnalyzeArgument | None) -> Any:
    if given is None:
        return None
    if not given.isConstantExpression:
        raise ArgumentError(f"{name}: a constant is needed")
    return given.value


def _text(name: str, given: AnalyzeArgument | None) -> str | None:
    value = _constant(name, given)
    if value is not None and not isinstance(value, str):
        raise ArgumentError(f"{name}: a text is needed, not {value!r}")
    return value


def _number(name: str, given: AnalyzeArgument | None) -> int | None:
    value = _constant(name, given)
    if value is not None and not isinstance(value, int):
        raise ArgumentError(f"{name}: a whole number is needed, not {value!r}")
    return value


def _list(name: str, given: AnalyzeArgument) -> list[str]:
    value = _constant(name, given)
    if not isinstance(value, list):
        raise ArgumentError(f"{name}: an array is needed, not {value!r}")
    return value


def _map(name: str, given: AnalyzeArgument | None) -> dict[str, Any]:
    value = _constant(name, given)
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentError(f"{name}: a map is needed, not {value!r}")
    return dict(value or {})


def _knowledge(given: AnalyzeArgument | None) -> dict[str, Any]:
    value = _constant("kb", given)
    if isinstance(value, str):
        iri, equals, path = value.partition("=")
        if not equals:
            raise ArgumentError(f"kb: a map, or IRI=FILE, is needed, not {value!r}")
        return {iri: path}
    return _map("kb", given)
