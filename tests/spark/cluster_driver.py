"""Batch and streaming on a Spark with two workers in separate processes.

    python cluster_driver.py EVENTS FOLDER

Prints, as JSON, how many workers took part, and what was found in each way.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame
from streaming_driver import LATENESS, QUERY, STREAM

from spaseq.spark import match, match_stream, session

SETTINGS = {
    "spark_ui_enabled": "false",
    "spark_sql_shuffle_partitions": "2",
    "spark_driver_bindAddress": "127.0.0.1",
    "spark_driver_host": "127.0.0.1",
    "spark_executor_memory": "700m",
}


def _parents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The process that the process of this task belongs to: one for each worker."""
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"id": [os.getppid()]})


def shown(matches: DataFrame) -> list[str]:
    rows = matches.select("id", "k", "low", "high", "n").collect()
    return sorted(" ".join(row) for row in rows)


def main(events: str, folder: Path) -> None:
    spark = session("local-cluster[2,1,1024]", spark_local_dir=folder / "scratch", **SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    parents = spark.range(0, 8, 1, 8).mapInArrow(_parents, "id long").distinct()
    reader = spark.read.format("rdf-events").option("stream", STREAM)
    rows = reader.load(events).repartition(3)
    stream = spark.readStream.format("rdf-events").option("stream", STREAM)
    stream = stream.option("maxFilesPerTrigger", "3").load(events)
    writer = match_stream(stream, QUERY, lateness=LATENESS).writeStream.format("json")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
    found = {
        "workers": parents.count(),
        "batch": shown(match(rows, QUERY, partitions=4)),
        "stream": shown(spark.read.json(str(folder / "out"))),
    }
    application = spark.sparkContext.applicationId
    spark.stop()
    # What workers write down lies beside Spark itself.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
