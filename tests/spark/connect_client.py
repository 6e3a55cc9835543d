"""A client of Spark Connect: a process without a JVM.

    python connect_client.py REMOTE FOLDER

Prints, as JSON, by case of the suite the ids of the matches (`cases`), what the table function of
SQL finds in one of them (`table`), and a streaming query over the files of FOLDER (`stream`).
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from pathlib import Path

import pyarrow as pa
from cases import Case, load
from jobs import arrow, event_rows, kind_of
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from streaming_driver import LATENESS, QUERY, STREAM
from test_suite import _knowledge, _program

from spaseq.rdf.event import Event
from spaseq.results import triples_text
from spaseq.spark import match_stream, session
from spaseq.spark.shipping import parallelism

FILES = ("conjunction", "entailment", "knowledge_base", "windows")


def chosen() -> list[Case]:
    """The first case with matches of some files of the suite."""
    cases: dict[str, Case] = {}
    for case in load():
        if len(case.queries) == 1 and any(case.alternatives) and case.file in FILES:
            cases.setdefault(case.file, case)
    assert len(cases) == len(FILES), cases.keys()
    return list(cases.values())


def events_of(case: Case) -> list[Event]:
    events = [event for stream in case.streams.values() for event in stream]
    return sorted(events, key=lambda e: (e.instant, e.stream))


def matches_of(case: Case, spark: SparkSession) -> DataFrame:
    events = events_of(case)
    kind = kind_of(events)
    df = spark.createDataFrame(pa.Table.from_batches([arrow(event_rows(events, kind), kind)]))
    found = df.spaseq.match(
        _program(case), _knowledge(case), partitions=2, entail=case.entail, columns=["id"]
    )
    return found.select(f.lit(str(case)).alias("case"), "id")


def tabled(case: Case, spark: SparkSession) -> tuple[str, list[str]]:
    """A case, and the starts of the matches that the table function finds in it."""
    events = [(str(e.time.term), triples_text(e.facts)) for e in events_of(case)]
    df = spark.createDataFrame(events, "time string, graph string").withColumn("key", f.lit(1))
    df.createOrReplaceTempView("events")
    query = case.queries[0].replace("'", "\\'")
    table = f"spaseq_match(TABLE(events) PARTITION BY key ORDER BY time, query => '{query}')"
    rows = spark.sql(f"SELECT start FROM {table}").collect()
    return str(case), sorted(row.start for row in rows)


def streamed(spark: SparkSession, folder: Path) -> list[str]:
    stream = spark.readStream.format("rdf-events").option("stream", STREAM)
    stream = stream.option("maxFilesPerTrigger", "8").load(str(folder / "events"))
    found = match_stream(stream, QUERY, lateness=LATENESS, parts=2, columns=["id"])
    writer = found.writeStream.format("json")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    return sorted(row.id for row in spark.read.json(str(folder / "out")).collect())


def main(remote: str, folder: str) -> None:
    spark = session(remote, spark_sql_shuffle_partitions="2")
    found = reduce(DataFrame.unionByName, (matches_of(case, spark) for case in chosen()))
    cases: dict[str, list[str]] = {str(case): [] for case in chosen()}
    for row in found.collect():
        cases[row.case].append(row.id)
    table = tabled(next(case for case in chosen() if case.file == "windows"), spark)
    stream = streamed(spark, Path(folder))
    assert parallelism(spark) == 2
    spark.stop()
    assert SparkContext._gateway is None, "a client has no JVM"
    print(json.dumps({"cases": cases, "table": table, "stream": stream}))


if __name__ == "__main__":
    main(*sys.argv[1:3])
