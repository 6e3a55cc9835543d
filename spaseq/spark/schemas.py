"""Schemas of DataFrames, without asking Spark where it must not be asked.

The query function of a table in a declarative pipeline must neither analyze nor run a DataFrame,
since the tables it reads need not exist yet. On Spark Connect, even `columns` and `mapInArrow`
analyze a DataFrame, unless the client knows its schema. Spark has a public method for that,
`DataFrame.to`, but the server analyzes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from spaseq.errors import SpaseqError
from spaseq.spark.shipping import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_FORBIDDEN = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"


def with_schema(df: DataFrame, schema: StructType) -> DataFrame:
    """The same DataFrame with a schema that Spark Connect need not ask the server for.

    A query function of a declarative pipeline needs it for the tables and sources that it reads.

    Args:
        df: the DataFrame.
        schema: the names and types of its columns. Spark fails the pipeline if a column does not
            exist, and omits columns that are not named here. It does not compare the types.

    Example:
        >>> import spaseq.spark as sps
        >>> trades = sps.with_schema(spark.read.table("trades"), trades_schema)
    """
    if not is_connect(df.sparkSession):
        return df
    known: Any = df.select(*(f"`{name.replace('`', '``')}`" for name in schema.names))
    known._cached_schema = schema
    return known  # type: ignore[no-any-return]


def schema_of(df: DataFrame) -> StructType:
    """The schema of a DataFrame.

    Raises:
        SpaseqError: in a query function of a pipeline, if the client does not know the schema.
    """
    with refused_as(
        "a query function of a pipeline must not ask Spark for the schema of a DataFrame: "
        "declare it with spaseq.spark.with_schema(df, schema)"
    ):
        return df.schema


def is_batch(df: DataFrame) -> bool | None:
    """Whether a DataFrame is not streaming; None in a query function, where Spark checks it."""
    try:
        return not df.isStreaming
    except PySparkException as error:
        if not _is_refusal(error):
            raise
        return None


@contextmanager
def refused_as(message: str) -> Iterator[None]:
    """Say what to do if Spark refuses to analyze or run something in a query function.

    Raises:
        SpaseqError: with the message, in place of the refusal.
    """
    try:
        yield
    except PySparkException as error:
        if not _is_refusal(error):
            raise
        raise SpaseqError(message) from None


def _is_refusal(error: PySparkException) -> bool:
    return error.getCondition() == _FORBIDDEN
