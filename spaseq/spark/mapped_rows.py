"""Rows of any DataFrame → events, by a SPARQL CONSTRUCT (docs/rows.md).

The rows of an Arrow batch are read in compiled code, as those of a file. A row has no number in
Spark, so a mapping cannot use `?_row`. Events of one stream and time are ordered by name and graph.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import pyarrow as pa

from spaseq.errors import ArgumentError, SpaseqError
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.mapping import ROW, MappingLike, RowMapping, read_mapping
from spaseq.io.rows.source import RowSource
from spaseq.io.time_column import TimeKind
from spaseq.parser import ast
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf._relevance import Relevance
from spaseq.spark.conditions import with_conditions
from spaseq.spark.schemas import schema_of
from spaseq.spark.source import event_arrays, event_fields
from spaseq.spark.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RowMode: TypeAlias = Literal["FAILFAST", "DROPMALFORMED"]

_MODES = ("FAILFAST", "DROPMALFORMED")
_TIMES = ("timestamp", "decimal", "string")
_ANY_ORDER = 1 << 62
"""A lateness that accepts rows in any order."""


def from_rows(
    df: DataFrame,
    stream: str,
    map: MappingLike,
    *,
    time_column: str | None = None,
    times: str = "timestamp",
    mode: str = "FAILFAST",
) -> DataFrame:
    """The events of the rows of a DataFrame: Parquet, JDBC, Kafka, a table, in batch or streaming.

    Args:
        df: the rows. Their columns are the variables of the mapping.
        stream: the IRI of the stream.
        map: the mapping, a `CONSTRUCT` that makes the graph of an event of each row: its text, or
            the path of its file, which this call reads. `?_time` is the time and `?_graph` the name
            of the event, if they are bound. A row that the mapping filters out is no event.
        time_column: the column of times, if the mapping leaves `?_time` unbound.
        times: the type of the column `time` of the events: "timestamp" for dates, "decimal" for
            numbers of seconds, "string" for either.
        mode: "FAILFAST" ends the job at a row without a time, or with a name that is not an IRI;
            "DROPMALFORMED" drops such rows, with a warning in the worker's log.

    Raises:
        QueryError: if the mapping is invalid.
        SpaseqError: if it uses `?_row`, which rows of Spark do not have.
        ArgumentError: for another mode, or another type of times.

    Example:
        >>> import spaseq.spark as sps
        >>> events = sps.from_rows(trades, "http://example.org/trades", "trades.rq")
    """
    reader = RowReader(stream, checked(map), time_column, kind_of_times(times), row_mode(mode))
    schema_of(df)  # `mapInArrow` needs it, and its own error does not say how to make it known
    return df.mapInArrow(reader.__call__, spark_schema(pa.schema(event_fields(reader.kind))))


def checked(map: MappingLike) -> RowMapping:
    """A mapping that does not use the number of a row.

    Raises:
        QueryError: if it is invalid.
        SpaseqError: if it uses `?_row`.
    """
    mapping = read_mapping(map)
    if any(isinstance(node, ast.Var) and node.name == ROW for node in ast.walk(mapping.tree)):
        raise SpaseqError(f"{mapping.name}: ?{ROW} is the number of a row, and Spark has none")
    return mapping


def kind_of_times(times: str) -> TimeKind:
    """A type of times by its name.

    Raises:
        ArgumentError: for any other.
    """
    if times not in _TIMES:
        raise ArgumentError(f"times: one of {', '.join(_TIMES)} is needed, not {times!r}")
    return cast(TimeKind, times)


def row_mode(mode: str) -> RowMode:
    """A mode by its name, in any case.

    Raises:
        ArgumentError: for any other.
    """
    if mode.upper() not in _MODES:
        raise ArgumentError(f"mode: one of {', '.join(_MODES)} is needed, not {mode!r}")
    return cast(RowMode, mode.upper())


class RowReader:
    """Batches of rows → batches of events, with the columns `stream` to `graph`."""

    def __init__(
        self,
        stream: str,
        mapping: RowMapping,
        time_column: str | None,
        kind: TimeKind,
        mode: RowMode,
    ):
        self.kind = kind
        self._stream = stream
        self._mapping = mapping
        self._time_column = time_column
        self._mode = mode

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        options = ReadOptions(
            lateness=_ANY_ORDER,
            time_column=self._time_column,
            on_error="skip" if self._mode == "DROPMALFORMED" else "stop",
            workers=1,  # Spark counts one processor for a task
        )
        schema = pa.schema(event_fields(self.kind))
        log = logging.getLogger("spaseq.spark").warning
        for batch in batches:
            if not len(batch):
                continue
            source = RowSource(
                self._stream,
                [pa.Table.from_batches([batch])],
                options,
                log=log,
                relevance=Relevance(Dictionary()),
                mapping=self._mapping,
            )
            for found in source.batches():
                if len(found):
                    arrays = event_arrays(found, self._stream, self.kind)
                    # An ordinal would count the rows of one batch.
                    arrays[2] = pa.nulls(len(found), pa.int64())
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
