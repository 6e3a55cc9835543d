"""One Spark session for all tests that need one, on whatever Java there is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

try:
    import pyspark as installed
except ImportError:
    installed = None
    collect_ignore_glob = ["test_*.py"]

SETTINGS = {
    "spark_ui_enabled": "false",
    "spark_sql_shuffle_partitions": "2",
    "spark_driver_bindAddress": "127.0.0.1",
    "spark_driver_host": "127.0.0.1",
    "spark_log_level": "ERROR",
}


def pytest_report_header() -> str | None:
    if installed is None:
        return "tests of spaseq.spark are left out: pyspark is not installed (pip install .[dev])"
    return None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from spaseq.spark.driver import session

    folder: Path = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session(
            "local[2]", spark_local_dir=folder, spark_sql_warehouse_dir=folder, **SETTINGS
        )
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()
