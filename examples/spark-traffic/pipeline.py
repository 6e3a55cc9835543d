"""Raw CSV of road reports → RDF events → congestion → alerts in RDF, batch or streaming.

    python examples/spark-traffic/pipeline.py batch alerts
    python examples/spark-traffic/pipeline.py stream alerts

The input is the reports of Aarhus if SPASEQ_DATA names the folder of the published data. Otherwise
the script generates reports with the same columns, as `spaseq generate traffic` does.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spaseq.generate import write
from spaseq.io.source import Source
from spaseq.spark import match, match_stream, quads, session

QUERY = Path(__file__).with_name("query.rq")
STREAM = "http://example.org/traffic/traffic"
KB = "http://example.org/traffic/kb"
SEGMENT = "http://example.org/traffic/segment/"
SOSA = "http://www.w3.org/ns/sosa/"
TRAFFIC = "http://w3id.org/spaseq/traffic#"
XSD = "http://www.w3.org/2001/XMLSchema#"
REPORTS = "TIMESTAMP timestamp, REPORT_ID string, avgSpeed int, vehicleCount int"
PREFIXES = f"@prefix traffic: <{TRAFFIC}> . @prefix schema: <https://schema.org/> .\n"

Report = tuple[str, str, int, int]


def events(reports: DataFrame) -> DataFrame:
    """The reports as events: each is an observation of a segment, without a name."""
    observed = f.format_string(
        f"_:o <{SOSA}hasFeatureOfInterest> <{SEGMENT}%s> .\n"
        f'_:o <{TRAFFIC}averageSpeed> "%d"^^<{XSD}integer> .\n'
        f'_:o <{TRAFFIC}vehicleCount> "%d"^^<{XSD}integer> .\n',
        "REPORT_ID",
        "avgSpeed",
        "vehicleCount",
    )
    name = f.concat(f.lit("urn:report:"), "REPORT_ID", f.lit(":"), f.unix_seconds("TIMESTAMP"))
    return reports.select(
        f.lit(STREAM).alias("stream"),
        f.col("TIMESTAMP").alias("time"),
        name.alias("name"),
        observed.alias("graph"),
    )


def batch(spark: SparkSession, folder: str, kb: Path) -> DataFrame:
    """The alerts of all reports, as quads."""
    reports = spark.read.schema(REPORTS).csv(folder, header=True)
    return quads(match(events(reports), QUERY.read_text(), {KB: str(kb)}))


def stream(spark: SparkSession, folder: str, kb: Path) -> DataFrame:
    """The alerts of a growing folder of reports, as quads."""
    reports = (
        spark.readStream.schema(REPORTS).option("maxFilesPerTrigger", 4).csv(folder, header=True)
    )
    found = match_stream(events(reports), QUERY.read_text(), {KB: str(kb)}, lateness="10 minutes")
    return quads(found)


# ------------------------------------------------------------------ data


def prepared(folder: Path, data: str | None, count: int, files: int = 12) -> Path:
    """Write the reports to files in `folder`/reports, in time order; returns the knowledge base."""
    if data is not None:
        reports, kb = aarhus(Path(data) / "traffic", folder)
    else:
        reports, kb = generated(folder, count)
    target = folder / "reports"
    target.mkdir()
    size = len(reports) // files + 1
    for number in range(files):
        path = target / f"{number:03}.csv"
        with path.open("w", newline="") as text:
            lines = csv.writer(text)
            lines.writerow(("TIMESTAMP", "REPORT_ID", "avgSpeed", "vehicleCount"))
            lines.writerows(reports[number * size : (number + 1) * size])
        # A streaming query reads files in the order of their modification times.
        os.utime(path, (number, number))
    return kb


def aarhus(folder: Path, target: Path) -> tuple[list[Report], Path]:
    """The reports of all roads of Aarhus over three days."""
    (path,) = folder.glob("traffic_all449_*.csv.gz")
    with gzip.open(path, "rt", newline="") as text:
        reports = [
            (row["TIMESTAMP"], row["REPORT_ID"], int(row["avgSpeed"]), int(row["vehicleCount"]))
            for row in csv.DictReader(text)
        ]
    kb = target / "kb.ttl"
    with (folder / "background" / "trafficMetaData.csv").open(newline="") as text:
        roads = list(csv.DictReader(text))
    kb.write_text(PREFIXES + "".join(map(road, roads)), encoding="utf-8")
    return reports, kb


def road(row: dict[str, Any]) -> str:
    """A road of the metadata, in Turtle."""
    name = f"{row['POINT_1_STREET']} to {row['POINT_2_STREET']}".replace('"', "")
    return (
        f"<{SEGMENT}{row['REPORT_ID']}> a traffic:RoadSegment ; "
        f'schema:name "{name}" ; traffic:freeFlowSpeed {row["NDT_IN_KMH"]} .\n'
    )


def generated(folder: Path, count: int) -> tuple[list[Report], Path]:
    """The same columns for an invented city."""
    paths = write("traffic", 2 * count, 1, folder)
    (path,) = (path for path in paths if path.name == "traffic.nq")
    (kb,) = (path for path in paths if path.name == "kb.ttl")
    return list(reported(Source(STREAM, [str(path)]))), kb


def reported(found: Iterable[Any]) -> Iterator[Report]:
    """Events of the generator as rows."""
    for event in found:
        values = {predicate.value: value.value for _, predicate, value in event.facts}
        yield (
            event.time.term.value,
            values[f"{SOSA}hasFeatureOfInterest"].removeprefix(SEGMENT),
            round(float(values[f"{TRAFFIC}averageSpeed"])),
            int(values[f"{TRAFFIC}vehicleCount"]),
        )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Congestion alerts from raw reports, on Spark.")
    parser.add_argument("mode", choices=("batch", "stream"))
    parser.add_argument("output", help="the folder the alerts are written to, as N-Quads")
    parser.add_argument("--events", type=int, default=20_000, help="how many, where drawn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kb = prepared(folder, os.environ.get("SPASEQ_DATA"), given.events)
        spark = session(spark_ui_enabled="false", spark_sql_shuffle_partitions="2")
        reports = str(folder / "reports")
        if given.mode == "batch":
            batch(spark, reports, kb).write.format("rdf").mode("overwrite").save(given.output)
        else:
            writer = stream(spark, reports, kb).writeStream.format("rdf")
            checkpoint = str(folder / "checkpoint")
            writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(
                given.output
            ).awaitTermination()
        alerts = spark.read.format("rdf-events").option("stream", STREAM).load(given.output)
        print(f"{alerts.count():,} alerts in {given.output}")
        spark.stop()


if __name__ == "__main__":
    main()
