"""Rows of readings → a table of readings, the matches as a stream, and all matches at once."""

from __future__ import annotations

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from spaseq.spark import from_rows, match, match_stream, with_schema

spark = SparkSession.active()

# The command reads this file in the folder of the specification. Spark may run in another one.
FILES = Path("readings").resolve().as_uri()
QUERY = Path("warming.rq").read_text(encoding="utf-8")
MAPPING = Path("events.rq").read_text(encoding="utf-8")
STREAM = "http://example.org/cold-chain/readings"
READINGS = t.StructType(
    [
        t.StructField("place", t.StringType()),
        t.StructField("celsius", t.IntegerType()),
        t.StructField("time", t.TimestampType()),
    ]
)
TYPES = {"low": "int", "high": "int"}
COLUMNS = ["id", "start", "end", "store", "low", "high"]


def events(rows: DataFrame) -> DataFrame:
    """Readings as events. Nothing here asks Spark for a schema, as the tables do not exist yet."""
    return from_rows(with_schema(rows, READINGS), STREAM, MAPPING, time_column="time")


def arriving() -> DataFrame:
    """The readings as they arrive: files of JSON lines in a folder."""
    return spark.readStream.schema(READINGS).json(FILES)


@dp.table
def readings() -> DataFrame:
    """All readings so far."""
    return arriving()


@dp.table
def warmings() -> DataFrame:
    """The matches, each as soon as the watermark has passed it."""
    return match_stream(
        events(arriving()), QUERY, lateness="1 minute", parts=2, types=TYPES, columns=COLUMNS
    )


@dp.materialized_view
def all_warmings() -> DataFrame:
    """The matches of all readings so far, computed again by each update."""
    return match(
        events(spark.read.table("readings")), QUERY, partitions=2, types=TYPES, columns=COLUMNS
    )
