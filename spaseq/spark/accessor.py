"""`df.spaseq`: the functions of this package as methods of a DataFrame, with Connect too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from spaseq.spark.batch import match
from spaseq.spark.mapped_rows import from_rows
from spaseq.spark.shapes import from_kafka, from_quads, quads
from spaseq.spark.streaming import late_events, match_stream
from spaseq.spark.types import typed

if TYPE_CHECKING:
    from collections.abc import Callable


class Accessor:
    """The methods of `df.spaseq`; each is the function of the same name over the DataFrame."""

    def __init__(self, df: DataFrame):
        self._df = df

    def __repr__(self) -> str:
        return f"<{', '.join(name for name in dir(type(self)) if not name.startswith('_'))}>"

    def match(self, query: Any, kb: Any = None, **options: Any) -> DataFrame:
        """The matches of queries: `match`, or `match_stream` of a streaming DataFrame."""
        function: Callable[..., DataFrame] = match_stream if self._df.isStreaming else match
        return function(self._df, query, kb, **options)

    def from_rows(self, stream: str, map: Any, **options: Any) -> DataFrame:
        """The events of rows, by a mapping."""
        return from_rows(self._df, stream, map, **options)

    def from_quads(self, stream: str, **options: Any) -> DataFrame:
        """The events of quads."""
        return from_quads(self._df, stream, **options)

    def from_kafka(self, stream: str | None = None, **options: Any) -> DataFrame:
        """The events of rows of Spark's Kafka source."""
        return from_kafka(self._df, stream, **options)

    def late_events(self) -> DataFrame:
        """The late events of a result of `match` with `late="rows"`."""
        return late_events(self._df)

    def quads(self) -> DataFrame:
        """The quads of matches of a CONSTRUCT."""
        return quads(self._df)

    def typed(self, types: Any) -> DataFrame:
        """Matches with columns cast to types."""
        return typed(self._df, types)


def install() -> None:
    """Give all DataFrames the attribute `spaseq`. A column of that name is `df["spaseq"]`."""
    DataFrame.spaseq = property(Accessor)  # type: ignore[attr-defined]
