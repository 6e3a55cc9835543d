"""The example of `spaseq.spark`: batch, stream and a single process raise the same alerts."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spaseq
from spaseq.results import triples_text

FOLDER = Path(__file__).parents[2] / "examples" / "spark-traffic"


def test_batch_stream_and_single_process_agree(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "pipeline", raising=False)
    import pipeline

    kb = pipeline.prepared(tmp_path, None, 2500, files=3)
    reports = tmp_path / "reports"
    # The last report is far ahead, of a road that nobody knows: the watermark passes the others.
    (reports / "999.csv").write_text(
        "TIMESTAMP,REPORT_ID,avgSpeed,vehicleCount\n2099-01-01T00:00:00Z,x,1,1\n"
    )
    rows = spark.read.schema(pipeline.REPORTS).csv(str(reports), header=True)
    run = spaseq.compile(pipeline.QUERY.read_text()).start({pipeline.KB: str(kb)})
    found = []
    for row in pipeline.events(rows).orderBy("time", "name").collect():
        found += run.push(row.stream, row.time, row.graph, row.name)
    found += run.finish()
    wanted = Counter(
        line for match in found for line in triples_text(match.graph or ()).splitlines()
    )
    assert len(found) > 3
    query = (
        pipeline.stream(spark, str(reports), kb)
        .writeStream.format("rdf")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "streamed"))
    )
    query.awaitTermination()
    pipeline.batch(spark, str(reports), kb).write.format("rdf").mode("append").save(
        str(tmp_path / "batch")
    )
    lines = {}
    for name in ("streamed", "batch"):
        text = "".join(path.read_text() for path in (tmp_path / name).glob("*.nq"))
        lines[name] = sorted(text.splitlines())
    assert lines["streamed"] == lines["batch"]
    triples = Counter(
        line.rpartition(" <urn:")[0] + " ." for line in lines["batch"] if " <urn:" in line[5:]
    )
    assert triples == wanted
