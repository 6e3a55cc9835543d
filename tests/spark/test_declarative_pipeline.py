"""The example of a declarative pipeline, run twice on the server that the other tests share.

`spark-pipelines` starts a server of Spark Connect, and `pyspark.pipelines.cli` as its client. The
test starts only the client, because a second virtual machine takes long to warm up.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pyspark.sql import Row, SparkSession

import spaseq

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark-pipeline"
DATABASE = "cold_chain"
LATER = """\
{"place": "b", "celsius": 9, "time": "2026-01-05T12:10:00Z"}
{"place": "a", "celsius": 4, "time": "2026-01-05T14:00:00Z"}
"""
"""The first row completes a match that began in an earlier file; the second ends its window."""
NEEDING_A_JOB = """
from spaseq.errors import SpaseqError


@dp.materialized_view
def trials() -> DataFrame:
    rows = events(spark.read.table("readings"))
    query = QUERY.replace("AFTER MATCH SKIP PAST LAST EVENT", "")
    apart = query.replace("PARTITION BY ?store", "")
    apart = apart.replace("{ ?store :celsius ?high", "{ ?s :celsius ?high")
    for text, options in [
        (query, {}),
        (query, {"partitions": 2, "types": "infer"}),
        (query, {"partitions": 2, "balance": True}),
        (apart, {"partitions": 2}),
        (apart, {"partitions": 1}),
    ]:
        try:
            match(rows, text, **options)
            print("accepted")
        except SpaseqError as error:
            print("refused:", error)
    return match(rows, query, partitions=2, types=TYPES)
"""


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Iterator[Path]:
    """A copy of the example that keeps everything in its own folder and database."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "spark-pipeline.yml"
    specification = yaml.safe_load(path.read_text())
    specification["storage"] = (tmp_path / "storage").as_uri()
    specification["database"] = DATABASE
    specification["configuration"]["spark.sql.shuffle.partitions"] = "1"
    path.write_text(yaml.safe_dump(specification))
    spark.sql(f"CREATE DATABASE {DATABASE} LOCATION '{(tmp_path / 'tables').as_uri()}'")
    yield tmp_path
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")


def printed(project: Path, server: str, command: str) -> str:
    """What a command of `spark-pipelines` prints in a project."""
    result = subprocess.run(
        [sys.executable, "-m", "pyspark.pipelines.cli", command],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "SPARK_REMOTE": server,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )
    return result.stdout + result.stderr


def table(spark: SparkSession, name: str) -> list[Row]:
    spark.catalog.refreshTable(f"{DATABASE}.{name}")  # a session keeps the list of files
    return spark.table(f"{DATABASE}.{name}").collect()


def matched(project: Path) -> list[tuple[str, int, int]]:
    """Store, low and high of the matches that the engine finds in this process."""
    found = spaseq.run(
        project / "warming.rq",
        streams={"readings": str(project / "readings" / "*.jsonl")},
        map={"readings": project / "events.rq"},
        time_column="time",
    )
    return sorted((m.values["store"], m.values["low"], m.values["high"]) for m in found)


def test_each_run_updates_the_tables(
    project: Path, spark: SparkSession, connect_server: str
) -> None:
    for number, arriving in (2, ""), (3, LATER):
        (project / "readings" / f"arriving-{number}.jsonl").write_text(arriving)
        result = printed(project, connect_server, "run")
        assert "Run is COMPLETED" in result, result[-4000:]
        wanted = matched(project)
        assert len(wanted) == number
        for name in ("warmings", "all_warmings"):
            rows = table(spark, name)
            assert sorted((row.store, row.low, row.high) for row in rows) == wanted, name
        worst = {}
        for store, _, high in wanted:
            worst[store] = max(high, worst.get(store, high))
        assert {row.store: row.celsius for row in table(spark, "worst")} == worst


def test_a_declared_column_must_exist(project: Path, connect_server: str) -> None:
    path = project / "transformations" / "cold_chain.py"
    code = path.read_text()
    declared = 't.StructType([*READINGS, t.StructField("humidity", t.IntegerType())])'
    path.write_text(code.replace("with_schema(rows, READINGS)", f"with_schema(rows, {declared})"))
    result = printed(project, connect_server, "dry-run")
    assert "UNRESOLVED_COLUMN" in result, result[-4000:]
    assert "humidity" in result


def test_what_needs_a_job_says_so(project: Path, connect_server: str) -> None:
    path = project / "transformations" / "cold_chain.py"
    path.write_text(path.read_text() + NEEDING_A_JOB)
    result = printed(project, connect_server, "dry-run")
    lines = [line for line in result.splitlines() if line.startswith(("accepted", "refused:"))]
    patterns = ("pass partitions=$", "infer.*name the types", "balance=True", "partitions=1", "acc")
    assert len(lines) == len(patterns), result[-4000:]
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.search(pattern, line), line
    assert "Run is COMPLETED" in result, result[-4000:]
