"""A DataFrame of events → the columns that jobs read, or an error for a missing column.

`time` and `graph` (N-Triples as text or bytes) are required, `stream` is required if the queries
read several streams, and `name`, `ordinal` and `source` are optional. `chunks.ARRIVED` defines the
order of events with equal times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spaseq.engine.compiled import CompiledQueries
from spaseq.errors import EventError
from spaseq.spark import chunks, time_column
from spaseq.spark.time_column import TimeKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMERIC = (t.IntegralType, t.FractionalType)


def time_kind(df: DataFrame) -> TimeKind:
    """The kind of the times of a DataFrame.

    Raises:
        EventError: if there is no column `time`, or its type is not a type of times.
    """
    _require(df, "time")
    kind = df.schema["time"].dataType
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


def prepared(df: DataFrame, program: CompiledQueries) -> DataFrame:
    """The events of the streams that the queries read, with all columns of `chunks.ARRIVED`."""
    _require(df, "graph")
    streams = program.streams
    if "stream" in df.columns:
        df = df.where(f.col("stream").isin(list(streams)))
    elif len(streams) > 1:
        raise EventError(
            "the queries read several streams, so the DataFrame of events needs a column "
            f"stream with their IRIs: {', '.join(streams)}"
        )
    else:
        df = df.withColumn("stream", f.lit(streams[0]))
    if "name" not in df.columns:
        df = df.withColumn("name", f.lit(None).cast("string"))
    for name, kind in (("ordinal", "bigint"), ("source", "string")):
        if name not in df.columns:
            df = df.withColumn(name, f.lit(None).cast(kind))
    return df.select(
        "stream",
        "time",
        f.col("ordinal").cast("bigint"),
        f.col("name").cast("string"),
        f.coalesce(f.col("graph").cast("binary"), f.lit(b"")).alias("graph"),
        f.col("source").cast("string"),
    )


def micros(df: DataFrame) -> Column:
    """The column `time` in microseconds, close enough to divide a job by. A time without a zone is
    in UTC.
    """
    kind, column = time_kind(df), f.col("time")
    exact = df.schema["time"].dataType
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
    """A batch of prepared events as a table of `chunks.ARRIVED`."""
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


def _require(df: DataFrame, column: str) -> None:
    if column not in df.columns:
        raise EventError(
            f"the DataFrame of events has no column {column}; it has {', '.join(df.columns)}. "
            "spaseq.spark.from_quads and from_kafka convert other layouts into events"
        )
