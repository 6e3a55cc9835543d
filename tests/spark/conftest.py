"""One Spark session for all tests that need one, on whatever Java there is."""

from __future__ import annotations

import socket
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

CONNECT = "org.apache.spark.sql.connect.SparkConnectPlugin"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session. It also serves clients of Spark Connect (`connect_server`)."""
    from settings import small_session

    folder: Path = tmp_path_factory.mktemp("spark")
    made = small_session(
        "local[2]",
        spark_local_dir=folder,
        spark_sql_warehouse_dir=folder,
        spark_plugins=CONNECT,
        spark_connect_grpc_binding_address="127.0.0.1",
        spark_connect_grpc_binding_port=free_port(),
    )
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()


@pytest.fixture
def connect_server(spark: SparkSession) -> str:
    """The address at which clients of Spark Connect reach the session."""
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"
