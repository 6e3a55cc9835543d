"""DataFrames of other layouts ↔ events and quads.

- `from_quads` converts rows of quads into events, one per named graph.
- `from_kafka` converts rows of Spark's Kafka source into events, one per row.
- `quads` converts the graphs of CONSTRUCT into quads, one named graph per match.

Terms are N-Triples. Where only an IRI is possible, the angle brackets are optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyoxigraph as ox
from pyspark.sql import functions as f
from pyspark.sql import types as t

from spaseq.errors import SpaseqError
from spaseq.io.time_column import timestamp_of_text
from spaseq.io.time_path import GENERATED_AT
from spaseq.rdf.time import canonical_literal, from_value
from spaseq.spark import events
from spaseq.spark.schemas import is_batch, schema_of, with_schema
from spaseq.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PARTITION_DIGITS = 10
"""The digits of the greatest partition number; texts padded to this length sort as numbers."""
_MATCH = ("id", "query", "end", "graph")
"""The columns of matches that `quads` reads."""
QUADS = pa.schema([(name, pa.string()) for name in ("s", "p", "o", "g")])


def from_quads(
    df: DataFrame, stream: str, *, time_predicate: str = GENERATED_AT, times: str = "timestamp"
) -> DataFrame:
    """The events of quads in the columns `s`, `p`, `o`, `g`, one event per named graph.

    The time of a graph is the value of a column `time` in its rows, or the object of a triple
    about the graph in the default graph (`g` null or empty), as in files. A time without a zone is
    in UTC, whatever the session's time zone. A graph without quads is an event with an empty
    graph: a row with `g` alone, or a timestamp alone.

    Any other null among `s`, `p` and `o`, and two different timestamps of one graph, fail the job
    with an error that names the graph.

    Args:
        df: the quads.
        stream: the IRI of the stream.
        time_predicate: the predicate of the timestamps in the default graph.
        times: the type of the column `time`: "timestamp", a numeric type, or "string" for the
            literal.

    Raises:
        SpaseqError: for a streaming DataFrame, or another type of times.
    """
    if is_batch(df) is False:
        raise SpaseqError(
            "from_quads cannot read a streaming DataFrame, since further quads of a graph may "
            "arrive: put each event in one row (from_kafka), or read files (rdf-events)"
        )
    if times.lower() in ("timestamp_ntz", "date"):
        raise SpaseqError(f"from_quads: times is timestamp, string or a numeric type, not {times}")
    s, p, o, g = _iri("s"), _iri("p"), f.col("o"), _iri("g")
    named = f.col("g").isNotNull() & (f.col("g") != "")
    line = f.concat(s, f.lit(" "), p, f.lit(" "), o, f.lit(" .\n"))
    rows = df.where(_is_whole(named, g))
    text = f.concat_ws("", f.sort_array(f.collect_set(line))).alias("graph")
    grouped = rows.where(named).groupBy(g.alias("g"))
    given = schema_of(df)
    if "time" in given.names:
        instant = f.coalesce(events.micros(given).cast("string"), f.col("time").cast("string"))
        only = _single_time(f.min("time"), f.coalesce(instant, f.lit("null")), instant, g)
        found = grouped.agg(text, only.alias("time"))
        time, graph = f.col("time"), f.col("graph")
    else:
        stamped = rows.where(~named & (p == f.lit(f"<{time_predicate}>")))
        instant = f.coalesce(events.micros_of_text(o).cast("string"), o)
        stamp = _single_time(f.min(o), instant, o, s)
        stamps = stamped.groupBy(s.alias("g")).agg(stamp.alias("stamp"))
        found = grouped.agg(text).join(stamps, "g", "full")
        time, graph = _cast(f.col("stamp"), times), f.coalesce("graph", f.lit(""))
    name = f.when(f.col("g").startswith("<"), f.expr("substring(g, 2, length(g) - 2)"))
    return found.select(
        f.lit(stream).alias("stream"),
        time.alias("time"),
        name.otherwise(f.col("g")).alias("name"),
        graph.alias("graph"),
    )


def from_kafka(
    df: DataFrame, stream: str | None = None, *, time_predicate: str | None = None
) -> DataFrame:
    """The events of rows with `key`, `value`, `timestamp`; each `value` is a graph in N-Triples.

    The name of an event is its key, if that is an IRI. Events of one stream and time are ordered
    by `topic`, `partition` and `offset`, if these columns exist; they become the columns `source`
    and `ordinal`. A time without a zone is in UTC, whatever the session's time zone. Two different
    times in one graph fail the job with an error.

    Args:
        df: the rows.
        stream: the IRI of the stream. By default `topic` is the IRI, and messages of different
            topics are events of different streams.
        time_predicate: the predicate of a triple in the graph whose object is the time. By default
            the time is the row's `timestamp`.
    """
    given = schema_of(df)
    text = f.col("value").cast("string")
    time = f.col("timestamp")
    if time_predicate is not None:
        form = f'<{_escaped(time_predicate)}>\\s*"([^"]*)"'
        found = f.transform(f.regexp_extract_all(text, f.lit(form), 1), _timestamp)
        said = f.concat(f.lit("from_kafka: a graph has two timestamps: "), text)
        several = f.size(f.array_distinct(found)) > 1
        time = f.when(several, f.raise_error(said)).otherwise(f.try_element_at(found, f.lit(1)))
    key = f.col("key").cast("string")
    own_time = "timestamp" in given.names and time_predicate is None
    columns = {
        "stream": (f.col("topic") if stream is None else f.lit(stream), t.StringType()),
        "time": (time, given["timestamp"].dataType if own_time else t.TimestampType()),
        "name": (
            f.when(key.rlike("^[A-Za-z][A-Za-z0-9+.-]*:[^\\s<>]+$"), key),
            t.StringType(),
        ),
        "graph": (f.coalesce(f.col("value").cast("binary"), f.lit(b"")), t.BinaryType()),
    }
    if "offset" in given.names:
        columns["ordinal"] = f.col("offset").cast("bigint"), t.LongType()
    source = [f.col("topic")] if "topic" in given.names else []
    if "partition" in given.names:
        source.append(f.lpad(f.col("partition").cast("string"), _PARTITION_DIGITS, "0"))
    if source:
        columns["source"] = f.concat_ws("/", *source), t.StringType()
    events_ = df.select(*(column.alias(name) for name, (column, _) in columns.items()))
    fields = [t.StructField(name, kind) for name, (_, kind) in columns.items()]
    return with_schema(events_, t.StructType(fields))


def _timestamp(form: Column) -> Column:
    return events.zoned(form).cast("timestamp")


def _is_whole(named: Column, g: Column) -> Column:
    """True for a quad, and for a row with a graph name alone; an error for any other null."""
    there = [f.col(name).isNotNull() for name in ("s", "p", "o")]
    whole = there[0] & there[1] & there[2]
    empty = ~(there[0] | there[1] | there[2])
    graph = f.when(named, f.concat(f.lit("graph "), g)).otherwise(f.lit("default graph"))
    said = f.concat(
        f.lit("from_quads: a quad of the "),
        graph,
        f.lit(" holds a null; only a row of a named graph whose s, p and o are all null may"),
    )
    return f.when(whole | (empty & named), f.lit(True)).otherwise(
        f.raise_error(said).cast("boolean")
    )


def _single_time(value: Column, instant: Column, shown: Column, graph: Column) -> Column:
    """An aggregate of the times of a graph; an error if they are different instants."""
    said = f.concat(
        f.lit("from_quads: the graph "),
        graph,
        f.lit(" has two timestamps: "),
        f.array_join(f.sort_array(f.collect_set(shown)), " and ", "null"),
    )
    return f.when(f.size(f.collect_set(instant)) > 1, f.raise_error(said)).otherwise(value)


def _cast(literal: Column, times: str) -> Column:
    """Literals of times, cast to a type."""
    if times == "string":
        return literal
    form = events.lexical(literal)
    return (events.zoned(form) if times.lower().startswith("timestamp") else form).cast(times)


def quads(matches: DataFrame) -> DataFrame:
    """The graphs of CONSTRUCT as quads, each match in a named graph of its own.

    A row in the default graph (`g` null) before the quads holds the time of the graph. So the files
    that `df.write.format("rdf")` writes of these rows are a stream that spaseq can read.

    Raises:
        SpaseqError: if the matches have no graphs.
    """
    given = schema_of(matches)
    if not {"id", "graph"} <= set(given.names):
        raise SpaseqError("these matches have no graphs: quads needs matches of a CONSTRUCT query")
    chosen = matches.where(f.col("graph").isNotNull()).select(*_MATCH)
    known = with_schema(chosen, t.StructType([given[name] for name in _MATCH]))
    return known.mapInArrow(_quads, spark_schema(QUADS))


def _quads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [quad for row in batch.to_pylist() for quad in _graph(**row)]
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(4)]
        yield pa.RecordBatch.from_arrays(columns, schema=QUADS)


def _graph(
    id: str, query: str, end: object, graph: str
) -> Iterator[tuple[str, str, str, str | None]]:
    name = f"<urn:spaseq:{quote(query, safe='')}:{id}>"
    time = timestamp_of_text(end) if isinstance(end, str) else from_value(end)
    yield name, f"<{GENERATED_AT}>", str(canonical_literal(time)), None
    for triple in ox.parse(graph, format=ox.RdfFormat.N_TRIPLES):
        yield str(triple.subject), str(triple.predicate), str(triple.object), name


def _iri(column: str) -> Column:
    """A column with angle brackets around its IRIs."""
    value = f.col(column)
    return f.when(value.startswith("<") | value.startswith("_:"), value).otherwise(
        f.concat(f.lit("<"), value, f.lit(">"))
    )


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() else f"\\{c}" for c in text)
