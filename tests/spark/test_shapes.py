"""Rows of quads become events by one rule each for nulls, times and what was written before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spaseq.errors import SpaseqError
from spaseq.spark import from_kafka, from_quads, match

STREAM = "http://example.org/s"
AT = "http://www.w3.org/ns/prov#generatedAtTime"
XSD = "http://www.w3.org/2001/XMLSchema#"
TEN = f'"2026-01-05T10:00:00Z"^^<{XSD}dateTime>'
STAMP = ("urn:g", AT, TEN, None)
QUAD = ("urn:a", "urn:p", '"1"', "urn:g")
LINE = '<urn:a> <urn:p> "1" .\n'
WHEN = datetime(2026, 1, 5, 10, tzinfo=UTC)

Quad = tuple[str | None, str | None, str | None, str | None]


def read(spark: SparkSession, quads: list[Quad], **options: str) -> list[tuple[object, ...]]:
    df = spark.createDataFrame(quads, "s string, p string, o string, g string")
    found = from_quads(df, STREAM, **options).selectExpr(
        "name", "CAST(time AS string) AS time", "graph"
    )
    return sorted(tuple(row) for row in found.collect())


@pytest.fixture
def tokyo(spark: SparkSession) -> Iterator[SparkSession]:
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", zone)


def test_empty_events_and_repeated_times(spark: SparkSession) -> None:
    same = ("urn:g", AT, f'"2026-01-05T12:00:00+02:00"^^<{XSD}dateTime>', "")
    empty: list[Quad] = [("urn:e", AT, TEN, None), (None, None, None, "urn:e")]
    found = read(spark, [STAMP, same, QUAD, *empty, ("urn:tick", AT, TEN, None)])
    time = "2026-01-05 10:00:00"
    assert found == [("urn:e", time, ""), ("urn:g", time, LINE), ("urn:tick", time, "")]


@pytest.mark.parametrize(
    ("quads", "said"),
    [
        ([STAMP, (None, *QUAD[1:])], "graph <urn:g> holds a null"),
        ([STAMP, QUAD, ("urn:b", "urn:p", None, "urn:g")], "graph <urn:g> holds a null"),
        ([STAMP, QUAD, ("urn:b", None, '"1"', "urn:g")], "graph <urn:g> holds a null"),
        ([STAMP, QUAD, (None, None, None, None)], "default graph holds a null"),
        ([("urn:g", AT, None, None), QUAD], "default graph holds a null"),
        ([STAMP, ("urn:g", AT, TEN.replace("T10", "T11"), None), QUAD], "<urn:g> has two timest"),
        ([("urn:g", AT, TEN.replace("T10", "T11"), None), QUAD, STAMP], "<urn:g> has two timest"),
    ],
)
def test_what_is_no_event_is_an_error(spark: SparkSession, quads: list[Quad], said: str) -> None:
    with pytest.raises(Exception, match=said):
        read(spark, quads)


def test_the_column_of_times(spark: SparkSession) -> None:
    schema = "s string, p string, o string, g string, time string"
    time = "2026-01-05T10:00:00"
    rows = [(*QUAD, time), ("urn:b", *QUAD[1:], time + "Z")]
    (row,) = from_quads(spark.createDataFrame(rows, schema), STREAM).collect()
    assert row.graph.count("\n") == 2
    two = spark.createDataFrame([rows[0], ("urn:b", *QUAD[1:], "2026-01-06")], schema)
    with pytest.raises(Exception, match="<urn:g> has two timestamps"):
        from_quads(two, STREAM).collect()


@pytest.mark.parametrize("text", ["2026-01-05T10:00:00", "2026-01-05T12:00:00+02:00"])
def test_times_without_a_zone_are_in_utc(tokyo: SparkSession, text: str) -> None:
    literal = f'"{text}"^^<{XSD}dateTime>'
    df = tokyo.createDataFrame(
        [("urn:g", AT, literal, None), QUAD], "s string, p string, o string, g string"
    )
    (row,) = from_quads(df, STREAM).selectExpr("unix_seconds(time) AS time").collect()
    assert row.time == WHEN.timestamp()
    value = f"<urn:a> <{AT}> {literal} ."
    rows = tokyo.createDataFrame([("k", value)], "key string, value string")
    rows = rows.selectExpr("*", "current_timestamp() AS timestamp")
    kafka = from_kafka(rows, STREAM, time_predicate=AT)
    (event,) = kafka.selectExpr("unix_seconds(time) AS time").collect()
    assert event.time == WHEN.timestamp()


def test_types_that_would_lose_the_zone(spark: SparkSession) -> None:
    with pytest.raises(SpaseqError, match="not timestamp_ntz"):
        read(spark, [STAMP, QUAD], times="timestamp_ntz")


def test_two_times_in_a_message(spark: SparkSession) -> None:
    value = f"<urn:a> <{AT}> {TEN} .\n<urn:a> <{AT}> {TEN.replace('T10', 'T11')} ."
    rows = spark.createDataFrame([("k", value)], "key string, value string")
    rows = rows.selectExpr("*", "current_timestamp() AS timestamp")
    with pytest.raises(Exception, match="a graph has two timestamps"):
        from_kafka(rows, STREAM, time_predicate=AT).collect()


def test_messages_of_one_time(spark: SparkSession) -> None:
    """Those of two topics are simultaneous; in a topic they follow by partition, then offset."""
    places = [("a", 0, 7, "x", 1), ("b", 0, 100, "y", 2)]
    places += [("c", 2, 8, "x", 10), ("c", 10, 3, "y", 20), ("c", 10, 2, "x", 30)]
    rows = [
        (f"http://example.org/{t}", p, o, WHEN, f'<urn:k> <http://example.org/{name}> "{n}" .')
        for t, p, o, name, n in reversed(places)
    ]
    schema = "topic string, partition int, offset bigint, timestamp timestamp, value string"
    df = spark.createDataFrame(rows, schema).withColumn("key", f.lit(None).cast("string"))

    def found(first: str, second: str) -> list[tuple[str, str, list[int]]]:
        streams = "".join(f" FROM STREAM {name} :{name}" for name in sorted({first, second}))
        query = f"""PREFIX : <http://example.org/> SELECT ?x ?y WITHIN 1 HOUR {streams} WHERE {{
            SEQ(X ; Y)
            DEFINE GPM X ON {first} {{ ?k :x ?x }}
            DEFINE GPM Y ON {second} {{ ?k :y ?y }} }}"""
        matches = match(from_kafka(df), query, partitions=2).collect()
        return sorted((m.x, m.y, [event.ordinal for event in m.events]) for m in matches)

    assert found("a", "b") == []
    assert found("c", "c") == [("10", "20", [0, 2]), ("30", "20", [1, 2])]


def test_overwriting_replaces_every_format(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    quads = spark.createDataFrame([STAMP, QUAD], "s string, p string, o string, g string")
    quads = quads.selectExpr(
        "'<urn:g>' AS s", "'<urn:p>' AS p", "'\"1\"' AS o", "'<urn:g>' AS g"
    ).coalesce(1)
    for form, compression in (("nquads", "gzip"), ("ntriples", "none"), ("nquads", "none")):
        writer = quads.write.format("rdf").option("compression", compression)
        writer.option("format", form).mode("overwrite").save(str(folder))
        (folder / "notes.nq").write_text("")
        (name,) = [name for name in os.listdir(folder) if name.startswith("part-")]
        assert name.partition(".")[2] == {"nquads": "nq", "ntriples": "nt"}[form] + (
            ".gz" if compression == "gzip" else ""
        )
    assert (folder / "notes.nq").exists()
