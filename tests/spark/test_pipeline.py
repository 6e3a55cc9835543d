"""The example of a declarative pipeline, run by the command that comes with PySpark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
import yaml
from pyspark import __file__ as pyspark_file
from settings import JAVA

import spaseq
from spaseq.spark.java import java_home

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark-pipeline"
COMMAND = Path(pyspark_file).parent / "bin" / "spark-pipelines"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the example that keeps everything in its own folder."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "spark-pipeline.yml"
    specification = yaml.safe_load(path.read_text())
    specification["storage"] = (tmp_path / "storage").as_uri()
    specification["configuration"]["spark.sql.shuffle.partitions"] = "1"
    path.write_text(yaml.safe_dump(specification))
    return tmp_path


def run_command(project: Path) -> str:
    """What `spark-pipelines run` prints in a project."""
    home = java_home()
    result = subprocess.run(
        [
            str(COMMAND),
            *("--conf", f"spark.driver.extraJavaOptions={JAVA}"),
            *("--conf", "spark.driver.bindAddress=127.0.0.1"),
            *("--conf", "spark.driver.host=127.0.0.1"),
            *("--conf", "spark.connect.grpc.binding.address=127.0.0.1"),
            *("--conf", "spark.sql.codegen.wholeStage=false"),
            *("--remote", "local[2]"),
            *("--conf", "spark.ui.enabled=false"),
            "run",
        ],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            **({} if home is None else {"JAVA_HOME": home}),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_TESTING": "1",  # a free port, instead of 15002
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
    )
    assert result.returncode == 0, (result.stdout + result.stderr)[-4000:]
    return result.stdout + result.stderr


def table(project: Path, name: str) -> list[dict[str, object]]:
    files = ds.dataset(
        project / "spark-warehouse" / name, format="parquet", exclude_invalid_files=True
    )
    rows: list[dict[str, object]] = files.to_table().to_pylist()
    return rows


def matched(project: Path) -> list[tuple[str, int, int]]:
    """Store, low and high of the matches that the engine finds in this process."""
    found = spaseq.run(
        project / "warming.rq",
        streams={"readings": str(project / "readings" / "*.jsonl")},
        map={"readings": project / "events.rq"},
        time_column="time",
    )
    return sorted((m.values["store"], m.values["low"], m.values["high"]) for m in found)


def test_the_tables_hold_the_matches_of_the_engine(project: Path) -> None:
    printed = run_command(project)
    assert "Run is COMPLETED" in printed, printed[-2000:]
    wanted = matched(project)
    assert len(wanted) == 2
    for name in ("warmings", "all_warmings"):
        rows = table(project, name)
        assert sorted((row["store"], row["low"], row["high"]) for row in rows) == wanted, name
    assert {row["store"]: row["celsius"] for row in table(project, "worst")} == {
        store: high for store, _, high in wanted
    }
