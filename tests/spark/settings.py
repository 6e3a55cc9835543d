"""The settings of all sessions of the tests: small, quiet, on loopback, and soon up."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession

from spaseq.spark import session

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that runs for a minute spends most of it compiling: its own code, and that of Spark."""
SETTINGS = {
    "spark_ui_enabled": "false",
    "spark_ui_showConsoleProgress": "false",
    "spark_sql_shuffle_partitions": "2",
    "spark_sql_codegen_wholeStage": "false",
    "spark_driver_bindAddress": "127.0.0.1",
    "spark_driver_host": "127.0.0.1",
    "spark_driver_extraJavaOptions": JAVA,
    "spark_executor_extraJavaOptions": JAVA,
    "spark_log_level": "ERROR",
    "spark_python_daemon_module": "preloading_daemon",
}


def worker_path() -> str:
    """The PYTHONPATH with which workers find `preloading_daemon`, the tests and the package."""
    here = Path(__file__).parent
    return os.pathsep.join([str(here), str(here.parents[1]), os.environ.get("PYTHONPATH", "")])


def small_session(master: str, **options: object) -> SparkSession:
    with warnings.catch_warnings(), patch.dict(os.environ, PYTHONPATH=worker_path()):
        warnings.simplefilter("ignore")
        return session(master, **SETTINGS, **options)
