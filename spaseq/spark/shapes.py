"""DataFrames of other shapes ↔ events and quads.

`from_quads`: rows of quads to events, one for each graph; `from_kafka`: rows as Kafka's source
gives them to events, one for each; `quads`: the graphs of CONSTRUCT to quads, a graph for each
match. Terms are N-Triples; where an IRI is expected, one without angle brackets will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyoxigraph as ox
from pyspark.sql import functions as f

from spaseq.errors import SpaseqError
from spaseq.io.read_options import GENERATED_AT
from spaseq.io.time_column import moment_of_text
from spaseq.rdf.time import canonical_literal, from_value
from spaseq.spark import events
from spaseq.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PARTITION_DIGITS = 10
"""As many as the greatest number of a partition has: texts of that length sort as numbers."""
QUADS = pa.schema([(name, pa.string()) for name in ("s", "p", "o", "g")])


def from_quads(
    df: DataFrame, stream: str, *, time_predicate: str = GENERATED_AT, times: str = "timestamp"
) -> DataFrame:
    """The events of quads in columns `s`, `p`, `o`, `g`: one for each named graph.

    A graph's time is in a column `time` beside its quads, or the object of a triple about it in
    the default graph (`g` null or empty), as in files; `times` is "timestamp", a numeric type,
    or "string" for the literal as it is. A time without a zone is in UTC, whatever the session's
    time zone is. A named row whose `s`, `p` and `o` are all null, and a timestamp of a graph
    without quads, make an event with an empty graph. Any other null among `s`, `p`, `o`, and two
    different timestamps of one graph, end the job with an error that names the graph.
    """
    if df.isStreaming:
        raise SpaseqError(
            "a graph's quads may still come, so a stream of quads has no events yet: put each "
            "event in one row (from_kafka), or read files (rdf-events)"
        )
    if times.lower() in ("timestamp_ntz", "date"):
        raise SpaseqError(f"from_quads: times is timestamp, string or a numeric type, not {times}")
    s, p, o, g = _iri("s"), _iri("p"), f.col("o"), _iri("g")
    named = f.col("g").isNotNull() & (f.col("g") != "")
    line = f.concat(s, f.lit(" "), p, f.lit(" "), o, f.lit(" .\n"))
    rows = df.where(_is_whole(named, g))
    text = f.concat_ws("", f.sort_array(f.collect_set(line))).alias("graph")
    grouped = rows.where(named).groupBy(g.alias("g"))
    if "time" in df.columns:
        instant = f.coalesce(events.micros(df).cast("string"), f.col("time").cast("string"))
        alone = _alone(f.min("time"), f.coalesce(instant, f.lit("null")), instant, g)
        found = grouped.agg(text, alone.alias("time"))
    else:
        stamped = rows.where(~named & (p == f.lit(f"<{time_predicate}>")))
        instant = f.coalesce(events.micros_of_text(o).cast("string"), o)
        stamp = _alone(f.min(o), instant, o, s)
        stamps = stamped.groupBy(s.alias("g")).agg(stamp.alias("stamp"))
        found = grouped.agg(text).join(stamps, "g", "full")
        found = found.withColumn("time", _cast(f.col("stamp"), times))
        found = found.withColumn("graph", f.coalesce("graph", f.lit("")))
    name = f.when(f.col("g").startswith("<"), f.expr("substring(g, 2, length(g) - 2)"))
    return found.select(
        f.lit(stream).alias("stream"), "time", name.otherwise(f.col("g")).alias("name"), "graph"
    )


def from_kafka(
    df: DataFrame, stream: str | None = None, *, time_predicate: str | None = None
) -> DataFrame:
    """The events of rows with `key`, `value`, `timestamp`: each value is a graph in N-Triples.

    An event's time is the row's, or with `time_predicate` that of a triple in its graph; its
    name is the key, where that is an IRI. `stream` may be left out where `topic` is the
    stream's IRI; messages of different topics are then events of different streams. Events of
    one stream and time are ordered by `topic`, `partition` and `offset`, where there are such
    columns: they become the columns `source` and `ordinal`.
    Two different times in one graph end the job with an error; a time without a zone is in UTC,
    whatever the session's time zone is.
    """
    text = f.col("value").cast("string")
    time = f.col("timestamp")
    if time_predicate is not None:
        form = f'<{_escaped(time_predicate)}>\\s*"([^"]*)"'
        found = f.transform(f.regexp_extract_all(text, f.lit(form), 1), _moment)
        said = f.concat(f.lit("from_kafka: a graph has two timestamps: "), text)
        several = f.size(f.array_distinct(found)) > 1
        time = f.when(several, f.raise_error(said)).otherwise(f.try_element_at(found, f.lit(1)))
    key = f.col("key").cast("string")
    columns = [
        (f.col("topic") if stream is None else f.lit(stream)).alias("stream"),
        time.alias("time"),
        f.when(key.rlike("^[A-Za-z][A-Za-z0-9+.-]*:[^\\s<>]+$"), key).alias("name"),
        f.coalesce(f.col("value").cast("binary"), f.lit(b"")).alias("graph"),
    ]
    if "offset" in df.columns:
        columns.append(f.col("offset").cast("bigint").alias("ordinal"))
    source = [f.col("topic")] if "topic" in df.columns else []
    if "partition" in df.columns:
        source.append(f.lpad(f.col("partition").cast("string"), _PARTITION_DIGITS, "0"))
    if source:
        columns.append(f.concat_ws("/", *source).alias("source"))
    return df.select(*columns)


def _moment(form: Column) -> Column:
    return events.zoned(form).cast("timestamp")


def _is_whole(named: Column, g: Column) -> Column:
    """True for a quad, and for a named row without any term; an error for a quad with a null."""
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


def _alone(value: Column, instant: Column, shown: Column, graph: Column) -> Column:
    """An aggregate of the times of a graph; an error where they are not one instant."""
    said = f.concat(
        f.lit("from_quads: the graph "),
        graph,
        f.lit(" has two timestamps: "),
        f.array_join(f.sort_array(f.collect_set(shown)), " and ", "null"),
    )
    return f.when(f.size(f.collect_set(instant)) > 1, f.raise_error(said)).otherwise(value)


def _cast(literal: Column, times: str) -> Column:
    """Literals of times as a type."""
    if times == "string":
        return literal
    form = events.lexical(literal)
    return (events.zoned(form) if times.lower().startswith("timestamp") else form).cast(times)


def quads(matches: DataFrame) -> DataFrame:
    """The graphs of CONSTRUCT as quads: those of a match in a graph of its own, with its time.

    The time stands in front of the quads it is the time of, in the default graph (`g` null), so
    that what `df.write.format("rdf")` makes of them can be read as a stream again.
    """
    if not {"id", "graph"} <= set(matches.columns):
        raise SpaseqError("these matches have no graphs: quads are made of those of CONSTRUCT")
    chosen = matches.where(f.col("graph").isNotNull()).select("id", "query", "end", "graph")
    return chosen.mapInArrow(_quads, spark_schema(QUADS))


def _quads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [quad for row in batch.to_pylist() for quad in _graph(**row)]
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(4)]
        yield pa.RecordBatch.from_arrays(columns, schema=QUADS)


def _graph(
    id: str, query: str, end: object, graph: str
) -> Iterator[tuple[str, str, str, str | None]]:
    name = f"<urn:spaseq:{quote(query, safe='')}:{id}>"
    time = moment_of_text(end) if isinstance(end, str) else from_value(end)
    yield name, f"<{GENERATED_AT}>", str(canonical_literal(time)), None
    for triple in ox.parse(graph, format=ox.RdfFormat.N_TRIPLES):
        yield str(triple.subject), str(triple.predicate), str(triple.object), name


def _iri(column: str) -> Column:
    """A column whose IRIs have angle brackets."""
    value = f.col(column)
    return f.when(value.startswith("<") | value.startswith("_:"), value).otherwise(
        f.concat(f.lit("<"), value, f.lit(">"))
    )


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() else f"\\{c}" for c in text)
