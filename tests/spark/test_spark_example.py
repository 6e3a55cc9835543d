"""The example of `spaseq.spark`: batch, stream and a single process raise the same alerts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

import spaseq
from spaseq.results import triples_text

FOLDER = Path(__file__).parents[2] / "examples" / "spark-traffic"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "pipeline", raising=False)
    import pipeline

    return pipeline


def alone(spark: SparkSession, example: ModuleType, reports: Path, kb: Path) -> Counter[str]:
    """The triples of the alerts that the engine raises in this process."""
    rows = spark.read.schema(example.REPORTS).csv(str(reports), header=True)
    run = spaseq.compile(example.QUERY.read_text()).start({example.KB: str(kb)})
    found = []
    for row in example.events(rows).orderBy("time", "name").collect():
        found += run.push(row.stream, row.time, row.graph, row.name)
    found += run.finish()
    assert len(found) > 3
    return Counter(line for match in found for line in triples_text(match.graph or ()).splitlines())


def lines_of(folder: Path) -> list[str]:
    return sorted("".join(path.read_text() for path in folder.glob("*.nq")).splitlines())


def triples_of(lines: Iterable[str]) -> Counter[str]:
    """The triples of quads, without those that say the time of a graph."""
    return Counter(line.rpartition(" <urn:")[0] + " ." for line in lines if " <urn:" in line[5:])


def test_batch_stream_and_single_process_agree(
    spark: SparkSession, example: ModuleType, tmp_path: Path
) -> None:
    kb = example.prepared(tmp_path, None, 2500, files=3)
    reports = tmp_path / "reports"
    # The last report is far ahead, of a road that nobody knows: the watermark passes the others.
    (reports / "999.csv").write_text(
        "TIMESTAMP,REPORT_ID,avgSpeed,vehicleCount\n2099-01-01T00:00:00Z,x,1,1\n"
    )
    query = (
        example.stream(spark, str(reports), kb)
        .writeStream.format("rdf")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "streamed"))
    )
    query.awaitTermination()
    example.batch(spark, str(reports), kb).write.format("rdf").mode("append").save(
        str(tmp_path / "batch")
    )
    lines = lines_of(tmp_path / "batch")
    assert lines_of(tmp_path / "streamed") == lines
    assert triples_of(lines) == alone(spark, example, reports, kb)


def test_the_published_data(
    spark: SparkSession, example: ModuleType, tmp_path: Path, data_directory: Path
) -> None:
    """A morning in Aarhus."""
    kb = example.prepared(tmp_path, str(data_directory), 0)
    reports = tmp_path / "reports"
    for number, path in enumerate(sorted(reports.iterdir())):
        if number != 1:
            path.unlink()
    example.batch(spark, str(reports), kb).write.format("rdf").mode("append").save(
        str(tmp_path / "batch")
    )
    assert triples_of(lines_of(tmp_path / "batch")) == alone(spark, example, reports, kb)
