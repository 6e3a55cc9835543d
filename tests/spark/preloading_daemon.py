"""PySpark's daemon, which forks the workers, with the modules of the tests already imported.

PySpark imports them after the fork, because libraries may start threads at their import. That costs
each worker more than a second of processor time, most of the time of a small job. The modules below
start no threads, which the daemon checks where there is a `/proc`.
"""

import os
from pathlib import Path

# The allocator of pyarrow and the linear algebra of numpy would start threads.
os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import spaseq.spark.sink
import spaseq.spark.source
import spaseq.spark.sql
import spaseq.spark.streaming  # noqa: F401

THREADS = Path("/proc/self/task")

if __name__ == "__main__":
    count = len(list(THREADS.iterdir())) if THREADS.exists() else 1
    assert count == 1, "an import has started a thread"
    manager()
