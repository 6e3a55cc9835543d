"""`spaseq_match`: matching as a table function of SQL.

    SELECT * FROM spaseq_match(TABLE(events) PARTITION BY key ORDER BY time, query => '…',
                               kb => map('http://example.org/kb', '/data/kb.ttl'))

The rows are events as for `match`, or become events by a mapping. Every partition is a separate
run, so a match is found only if PARTITION BY, or WITH SINGLE PARTITION, keeps its events together.
The columns of the result depend on the query, which `analyze` compiles once, on the driver; it
reads the knowledge base there as well.

Cost: Spark passes rows to a table function one by one, as Python objects, and each partition has a
separate run. `match` receives Arrow batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import types as t
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from spaseq.errors import ArgumentError, EventError
from spaseq.io.arrow_columns import columns_of, select_columns
from spaseq.io.arrow_rows import batches
from spaseq.kb.snapshot import open_kb
from spaseq.program import compile_queries
from spaseq.results import Match
from spaseq.spark import chunks, events, numbering
from spaseq.spark.conditions import with_conditions
from spaseq.spark.division import Division
from spaseq.spark.mapped_rows import RowReader, checked, kind_of_times
from spaseq.spark.part_run import Feeder
from spaseq.spark.tasks import Job, shipped
from spaseq.spark.types import spark_schema
from spaseq.spark.versions import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS_AT_ONCE = 1024


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
        self._run = analysis.job.start()
        self._feeder = Feeder(self._run)
        self._rows: list[Row] = []
        self._waiting = chunks.ARRIVED.empty_table()
        """Events of the latest time, which more events may follow."""
        self._last: int | None = None

    @staticmethod
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

        Raises:
            ArgumentError: for an argument of another type.
            QueryError, KbError, EventError: if query, knowledge base and rows do not agree.
        """
        if not rows.isTable or not isinstance(rows.dataType, t.StructType):
            raise ArgumentError("spaseq_match: the first argument is a table: TABLE(events)")
        program = compile_queries(_text("query", query) or "", bind=_map("bind", bind))
        background = open_kb(_knowledge(kb))
        mapping, regime = _text("map", map), _text("entail", entail)
        time = _text("time_column", time_column)
        program.start(background, entail=regime)
        reader = None
        if mapping is not None:
            if len(program.streams) > 1:
                raise ArgumentError("map: the rows are one stream, and the query reads several")
            kind = kind_of_times(_text("times", times) or "timestamp")
            reader = RowReader(program.streams[0], checked(mapping), time, kind, "FAILFAST")
        elif time is not None or times is not None:
            raise ArgumentError("time_column and times are for rows with a mapping")
        else:
            kind = events.check_columns(rows.dataType, program.streams)
        wanted = None if columns is None else _list("columns", columns)
        (made,) = select_columns([columns_of(program, kind)], wanted)
        job = Job(
            program, background, made, Division((), ((),)), regime, functions=shipped(program)
        )
        return Analysis(spark_schema(made.schema()), job=job, reader=reader, rows=rows.dataType)

    @with_conditions
    def eval(self, row: Row, *_: Any, **__: Any) -> Iterator[tuple[Any, ...]]:
        """Process a row; yields the matches that are complete."""
        self._rows.append(row)
        if len(self._rows) == _ROWS_AT_ONCE:
            yield from self._values(self._pushed(False))

    @with_conditions
    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """The matches at the end of the partition."""
        yield from self._values(self._pushed(True))
        yield from self._values(self._run.finish())

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
        yield from self._feeder.push(
            numbering.numbered(table.slice(0, count), self._job.program.streams)
        )

    def _arrived(self) -> pa.Table:
        """The rows as `chunks.ARRIVED`."""
        streams = self._job.program.streams
        fields = self._columns.fields
        values = {
            field.name: [_internal(field.dataType, row[place]) for row in self._rows]
            for place, field in enumerate(fields)
        }
        batch = pa.RecordBatch.from_pydict(values, schema=self._schema)
        if self._reader is not None:
            made = [chunks.ARRIVED.empty_table()]
            for each in self._reader([batch]):
                sources = pa.nulls(len(each), pa.string())
                made.append(events.arrived(each.append_column("source", sources), streams))
            return pa.concat_tables(made)
        return events.arrived(events.completed(batch, streams), streams)

    def _values(self, matches: Iterable[Match]) -> Iterator[tuple[Any, ...]]:
        """Matches as rows of the result."""
        for batch in batches(self._job.columns, matches):
            columns = [_python(column.to_pylist(), column.type) for column in batch.columns]
            yield from zip(*columns, strict=True)


def _internal(kind: t.DataType, value: Any) -> Any:
    """A value of a row for Arrow; a timestamp is in the local time of the process."""
    if value is not None and isinstance(kind, t.TimestampType | t.TimestampNTZType):
        return kind.toInternal(value)
    return value


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
