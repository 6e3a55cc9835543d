"""Batch and streaming on a Spark with two workers in separate processes, of two cores each.

    python clusters_driver.py EVENTS FOLDER SHUFFLED QUERY

Prints, as JSON, how many workers took part, what was found in each way over the folder EVENTS
(`batch`, `stream`), and what QUERY found over the folder SHUFFLED (`shuffled`).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame
from settings import small_session
from streaming_driver import LATENESS, QUERY, STREAM

from spaseq.spark import match, match_stream


def described(rows: Iterable[Any]) -> list[list[Any]]:
    """Matches by `id`, and by the places of their events."""
    return sorted([row["id"], [[e["name"], e["ordinal"]] for e in row["events"]]] for row in rows)


def batch(events: DataFrame, query: str, **options: int) -> list[list[Any]]:
    return described(match(events, query, columns=["id", "events"], **options).collect())


def _parents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The process that the process of this task belongs to: one for each worker."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"id": [os.getppid()]})


def shown(matches: DataFrame) -> list[str]:
    rows = matches.select("id", "k", "low", "high", "n").collect()
    return sorted(" ".join(row) for row in rows)


def on_workers(events: str, folder: Path, shuffled: str, query: str) -> dict[str, Any]:
    spark = small_session(
        "local-cluster[2,2,1024]",
        spark_local_dir=folder / "scratch",
        spark_executor_memory="700m",
    )
    spark.sparkContext.setLogLevel("ERROR")
    parents = spark.range(0, 8, 1, 8).mapInArrow(_parents, "id long").distinct()
    reader = spark.read.format("rdf-events").option("stream", STREAM)
    rows = reader.load(events).repartition(3)
    stream = spark.readStream.format("rdf-events").option("stream", STREAM)
    stream = stream.option("maxFilesPerTrigger", "3").load(events)
    writer = match_stream(stream, QUERY, lateness=LATENESS).writeStream.format("json")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    mixed = reader.option("times", "decimal").load(shuffled)
    found = {
        "workers": parents.count(),
        "batch": shown(match(rows, QUERY, partitions=4)),
        "stream": shown(spark.read.json(str(folder / "out"))),
        "shuffled": batch(mixed, query),
    }
    application = spark.sparkContext.applicationId
    spark.stop()
    # What workers write down lies beside Spark itself.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)
    return found


def main(events: str, folder: str, shuffled: str, query: str) -> None:
    print(json.dumps(on_workers(events, Path(folder), shuffled, query)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
