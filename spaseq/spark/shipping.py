"""The data of a job on its way to the workers: broadcast, or pickled with each function.

A session with a `SparkContext` broadcasts a job once. Spark Connect has no broadcasts, so there the
functions hold the job as compressed bytes, and a worker unpickles it at the first use and keeps it
for its next tasks. Cost on Connect: the bytes travel once for each function of a job, three at
most, and within one message (128 MB unless the server is configured otherwise).
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from pyspark.core import broadcast
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

    from spaseq.spark.tasks import Job

_MAX_CACHED_JOBS = 4
_CACHED_JOBS: OrderedDict[bytes, Job] = OrderedDict()
"""The jobs that this worker unpickled last, by the digest of their bytes."""


class Shared(Protocol):
    """A job, as the functions of workers hold it."""

    @property
    def value(self) -> Job:
        """The job."""


def shared(spark: SparkSession, job: Job) -> Shared:
    """A job in the form in which a session sends it to its workers."""
    if is_connect(spark):
        return PickledJob.of(job)
    return BroadcastJob(spark.sparkContext.broadcast(job))


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no access to Spark's JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def parallelism(spark: SparkSession) -> int:
    """The number of tasks that a session runs at once; on Connect, found by a small job."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    # The server divides a range into as many partitions.
    parts = spark.range(1 << 16).select(f.spark_partition_id().alias("part"))
    (row,) = parts.agg(f.max("part")).collect()
    return int(row[0]) + 1


class BroadcastJob:
    """A broadcast job that is resolved at its first use.

    Spark also unpickles a stateful operator in a process without broadcasts, to read its state.
    Unpickling a `Broadcast` fails there.
    """

    def __init__(self, job: Broadcast[Job] | None, number: int = -1):
        self._job = job
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        assert self._job is not None
        # Pickling the broadcast registers it with the operator, so Spark ships it to the workers.
        (number,) = self._job.__reduce__()[1]
        return BroadcastJob, (None, number)

    @property
    def value(self) -> Job:
        """The job."""
        if self._job is None:
            self._job = broadcast._broadcastRegistry[self._number]
        return self._job.value


class PickledJob:
    """A job as compressed bytes."""

    def __init__(self, data: bytes, size: int, digest: bytes):
        self._data = data
        self._size = size
        self._digest = digest

    @staticmethod
    def of(job: Job) -> PickledJob:
        """The bytes of a job."""
        data = pickle.dumps(job, pickle.HIGHEST_PROTOCOL)
        packed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
        return PickledJob(packed, len(data), blake2b(data, digest_size=16).digest())

    @property
    def value(self) -> Job:
        """The job."""
        job = _CACHED_JOBS.pop(self._digest, None)
        if job is None:
            job = pickle.loads(pa.Codec("zstd").decompress(self._data, self._size, asbytes=True))
        _CACHED_JOBS[self._digest] = job
        if len(_CACHED_JOBS) > _MAX_CACHED_JOBS:
            _CACHED_JOBS.popitem(last=False)
        return job
