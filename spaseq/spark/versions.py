"""The differences between the versions of PySpark, 4.1 to 4.3.

PySpark has limits on the batches of a Python data source since 4.2. 4.1 lacks the names of
`pyspark.sql.streaming.datasource`, and each batch takes all that is available. With the stand-ins
here, the reader of spaseq/spark/source.py is one class on every version.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

import pyarrow as pa
import pyspark
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from spaseq.errors import SpaseqError

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ModuleNotFoundError:
    HAS_READ_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]
        """A limit on a batch; 4.1 passes none."""

    @dataclass
    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """No limit."""

    @dataclass
    class ReadMaxFiles(ReadLimit):  # type: ignore[no-redef]
        """A maximum number of files."""

        max_files: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A reader that prepares for the trigger `availableNow`; 4.1 prepares none."""
else:
    HAS_READ_LIMITS = True

__all__ = [
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxFiles",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "arrow_type",
    "require_read_limits",
]


def require_read_limits(option: str) -> None:
    """Check that Spark can limit the batches of a stream, as an option asks.

    Raises:
        SpaseqError: on PySpark 4.1.
    """
    if not HAS_READ_LIMITS:
        raise SpaseqError(
            f"rdf-events: {option} needs PySpark 4.2 or later, and this is {pyspark.__version__}, "
            "whose data sources cannot limit a batch: without it, each batch takes all new files"
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Spark schema, with timestamps in UTC."""
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # 4.1 knows no other zone


def arrow_type(field: StructField) -> pa.DataType:
    """The Arrow type of a column, with timestamps in UTC."""
    return arrow_schema(StructType([field])).field(0).type
