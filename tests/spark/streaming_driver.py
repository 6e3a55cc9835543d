"""A driver of a streaming query, to be run as a process of its own and to be killed.

    python streaming_driver.py EVENTS CHECKPOINT OUTPUT SCRATCH [LATENESS]

Takes two files of the folder EVENTS in each batch, and ends when there is none left.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from settings import small_session

from spaseq.spark import match_stream

STREAM = "http://example.org/s"
LATENESS = "5 seconds"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?k ?low ?high ?n
WITHIN 20 SECONDS
PARTITION BY ?k
FROM STREAM s :s
WHERE {
  SEQ(Low ; Mid+ ; !Bad ; High)
  DEFINE GPM Low ON s { ?k :value ?low FILTER(?low < 3) }
  DEFINE GPM Mid ON s { ?k :value ?n FILTER(?n >= 3 && ?n < 7) }
  DEFINE GPM Bad ON s { ?k :alarm [] }
  DEFINE GPM High ON s { ?k :value ?high FILTER(?high > ?low + 5) }
}
"""


def write_matches(spark: SparkSession, events: str, checkpoint: str, output: str) -> DataFrame:
    """Write the matches of all files, going on where the checkpoint says."""
    stream = (
        spark.readStream.format("rdf-events")
        .option("stream", STREAM)
        .option("maxFilesPerTrigger", "2")
        .load(events)
    )
    query = (
        match_stream(stream, QUERY, lateness=LATENESS)
        .writeStream.format("json")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(output)
    )
    query.awaitTermination()
    return spark.read.json(output)


def main(events: str, checkpoint: str, output: str, scratch: str) -> None:
    spark = small_session("local[2]", spark_local_dir=scratch)
    spark.sparkContext.setLogLevel("ERROR")
    write_matches(spark, events, checkpoint, output)
    spark.stop()
    print("complete", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
