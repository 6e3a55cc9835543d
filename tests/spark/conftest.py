"""One Spark session for all tests that need one, on whatever Java there is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALLED = find_spec("pyspark") is not None
if not INSTALLED:
    # `test_spark_installed.py` says why.
    collect_ignore_glob = ["test_[!s]*.py", "test_sl*.py", "test_spark_example.py", "test_st*.py"]

SETTINGS = {
    "spark_ui_enabled": "false",
    "spark_sql_shuffle_partitions": "2",
    "spark_driver_bindAddress": "127.0.0.1",
    "spark_driver_host": "127.0.0.1",
    "spark_log_level": "ERROR",
}


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
