"""A DataFrame of events → the columns that jobs read, or an error for a missing column.

`time` and `graph` (N-Triples as text or bytes) are required, `stream` is required if the queries
read several streams, and `name`, `ordinal` and `source` are optional. A row without a stream is of
the only stream of the queries, and malformed if they read several. Rows of other streams are left
out, and counted on request. `chunks.ARRIVED` defines the order of events with equal times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spaseq.engine.compiled import CompiledQueries
from spaseq.errors import EventError
from spaseq.io import time_column
from spaseq.io.identity import TimeKind
from spaseq.spark import chunks
from spaseq.spark.schemas import with_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMERIC = (t.IntegralType, t.FractionalType)
_OPTIONAL = {"ordinal": pa.int64(), "name": pa.string(), "source": pa.string()}
_TEXT = (t.StringType, t.NullType)
_KINDS: dict[str, tuple[tuple[type[t.DataType], ...], str]] = {
    "stream": (_TEXT, "the IRI of a stream as text"),
    "name": (_TEXT, "an IRI as text"),
    "source": (_TEXT, "text"),
    "ordinal": ((t.IntegralType, t.NullType), "a whole number"),
    "graph": ((t.StringType, t.BinaryType, t.NullType), "N-Triples as text or bytes"),
}
"""By column: the types that it may have, and what it holds."""


def time_kind(schema: t.StructType) -> TimeKind:
    """The kind of the times of events with a schema.

    Raises:
        EventError: if there is no column `time`, or its type is not a type of times.
    """
    _require(schema.names, "time")
    kind = schema["time"].dataType
    if isinstance(kind, t.TimestampType | t.TimestampNTZType | t.DateType):
        return "timestamp"
    if isinstance(kind, t.StringType):
        return "string"
    if isinstance(kind, _NUMERIC):
        return "decimal"
    raise EventError(
        f"the column time has the type {kind.simpleString()}; it must be a timestamp, a number of "
        "seconds or a string (a literal, or its lexical form)"
    )


def check_columns(schema: t.StructType, streams: tuple[str, ...]) -> TimeKind:
    """Check that rows have the columns of events; returns the kind of the times.

    Raises:
        EventError: if a column is missing, or has another type.
    """
    _require(schema.names, "graph")
    if len(streams) > 1:
        _require_streams(schema.names, streams)
    for name, (kinds, what) in _KINDS.items():
        if name in schema.names and not isinstance(schema[name].dataType, kinds):
            raise EventError(
                f"the column {name} has the type {schema[name].dataType.simpleString()}; it must "
                f"be {what}"
            )
    return time_kind(schema)


def prepared(df: DataFrame, schema: t.StructType, program: CompiledQueries) -> DataFrame:
    """The events of the streams that the queries read, with all columns of `chunks.ARRIVED`.

    Args:
        df: the events.
        schema: their schema; columns beside it are left out.
        program: the queries.
    """
    check_columns(schema, program.streams)
    streams = program.streams
    if "stream" in schema.names:
        df = df.where(is_own(streams))

    def given(name: str, otherwise: str | None = None) -> Column:
        return f.col(name) if name in schema.names else f.lit(otherwise)

    # Not `withColumn`, which Spark Connect resolves at once: a pipeline that reads a table of its
    # own would not wait for the table.
    chosen = df.select(
        _stream(schema, streams).alias("stream"),
        "time",
        given("ordinal").cast("bigint").alias("ordinal"),
        given("name").cast("string").alias("name"),
        f.coalesce(f.col("graph").cast("binary"), f.lit(b"")).alias("graph"),
        given("source").cast("string").alias("source"),
    )
    fields = [
        t.StructField("stream", t.StringType()),
        t.StructField("time", schema["time"].dataType),
        t.StructField("ordinal", t.LongType()),
        t.StructField("name", t.StringType()),
        t.StructField("graph", t.BinaryType()),
        t.StructField("source", t.StringType()),
    ]
    return with_schema(chosen, t.StructType(fields))


def is_own(streams: Sequence[str]) -> Column:
    """Whether a row with a column `stream` is of the streams, or of none."""
    stream = f.col("stream").cast("string")
    return stream.isNull() | stream.isin(list(streams))


def counts(schema: t.StructType, streams: Sequence[str]) -> list[Column]:
    """The numbers of rows of the streams, and of rows of other streams, for Spark's `observe`."""
    own = is_own(streams) if "stream" in schema.names else f.lit(True)
    return [f.count_if(own).alias("events"), f.count_if(~own).alias("other_streams")]


def _stream(schema: t.StructType, streams: Sequence[str]) -> Column:
    if "stream" not in schema.names:
        return f.lit(streams[0])
    stream = f.col("stream").cast("string")
    return f.coalesce(stream, f.lit(streams[0])) if len(streams) == 1 else stream


def completed(batch: pa.RecordBatch, streams: tuple[str, ...]) -> pa.RecordBatch:
    """Rows with the columns of events as a batch of prepared events.

    Raises:
        EventError: for a row of another stream.
    """
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = {
        name: given[name].cast(kind) if name in given else pa.nulls(len(batch), kind)
        for name, kind in _OPTIONAL.items()
    }
    stream = given.get("stream", pa.nulls(len(batch))).cast(pa.string())
    if len(streams) == 1:
        stream = pc.fill_null(stream, streams[0])
    known = pc.is_in(stream, value_set=pa.array([*streams, None], pa.string()))
    if not pc.all(known).as_py() and len(batch):
        other = stream.filter(pc.invert(known))[0]
        raise EventError(
            f"a row of the stream {other}, which the query does not read: its streams are "
            f"{', '.join(streams)}; pass TABLE(SELECT * FROM … WHERE stream IN (…))"
        )
    columns |= {"stream": stream, "time": given["time"]}
    columns["graph"] = pc.fill_null(given["graph"].cast(pa.binary()), b"")
    return pa.RecordBatch.from_pydict(columns)


def micros(schema: t.StructType) -> Column:
    """The column `time` in microseconds, close enough to divide a job by. A time without a zone is
    in UTC.
    """
    kind, column = time_kind(schema), f.col("time")
    exact = schema["time"].dataType
    if isinstance(exact, t.TimestampNTZType):
        return f.expr("timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', time)")
    if isinstance(exact, t.DateType):
        return f.expr("datediff(time, DATE'1970-01-01') * 86400000000L")
    if kind == "timestamp":
        return f.unix_micros(column)
    if kind == "decimal":
        return (column.cast("double") * 1_000_000).cast("bigint")
    return micros_of_text(column)


def micros_of_text(column: Column) -> Column:
    """The times of literals, or of lexical forms, in microseconds, as `micros` computes them."""
    form = lexical(column)
    return f.coalesce(
        f.unix_micros(zoned(form).try_cast("timestamp")),
        (form.try_cast("double") * 1_000_000).cast("bigint"),
    )


def lexical(column: Column) -> Column:
    """The lexical forms of literals."""
    return f.regexp_extract(column, '^"?([^"]*)', 1)


def zoned(form: Column) -> Column:
    """Lexical forms of dates and dateTimes with an explicit zone, UTC if they have none. Spark
    then reads them independently of the session's time zone.
    """
    day = "^(-?[0-9]+-[0-9][0-9]-[0-9][0-9])(Z|[+-][0-9][0-9]:[0-9][0-9])?$"
    full = f.regexp_replace(f.trim(form), day, "$1T00:00:00$2")
    return f.when(full.rlike("(Z|[+-][0-9][0-9]:[0-9][0-9])$"), full).otherwise(
        f.concat(full, f.lit("Z"))
    )


def arrived(batch: pa.RecordBatch, streams: tuple[str, ...]) -> pa.Table:
    """A batch of prepared events as a table of `chunks.ARRIVED`.

    Raises:
        EventError: for a row without a stream, or a time that is none.
    """
    if batch.column("stream").null_count:
        raise EventError(
            f"the row has no stream, and the queries read several: {', '.join(streams)}"
        )
    micros, stamps, dated = time_column.read(batch.column("time"))
    stream = pc.index_in(batch.column("stream"), value_set=pa.array(streams, pa.string()))
    return pa.Table.from_arrays(
        [
            micros,
            batch.column("ordinal").cast(pa.int64()),
            stream.cast(pa.int16()),
            dated,
            stamps,
            batch.column("name").cast(pa.string()),
            batch.column("graph").cast(pa.binary()),
            batch.column("source").cast(pa.string()),
        ],
        schema=chunks.ARRIVED,
    )


def encoded(batch: pa.RecordBatch, streams: tuple[str, ...]) -> pa.Table:
    """A batch of prepared events as a table of `chunks.EVENTS`.

    The ordinals of the batch already count within the streams.
    """
    table = arrived(batch, streams)
    columns = {name: table.column(name) for name in chunks.EVENTS.names}
    columns["ordinal"] = columns["ordinal"].fill_null(0)
    return pa.Table.from_arrays(list(columns.values()), schema=chunks.EVENTS)


def _require(columns: Sequence[str], column: str) -> None:
    if column not in columns:
        raise EventError(
            f"the DataFrame of events has no column {column}; it has {', '.join(columns)}. "
            "spaseq.spark.from_rows, from_quads and from_kafka convert other layouts into events"
        )


def _require_streams(columns: Sequence[str], streams: Sequence[str]) -> None:
    if "stream" not in columns:
        raise EventError(
            "the queries read several streams, so the DataFrame of events needs a column "
            f"stream with their IRIs: {', '.join(streams)}"
        )
