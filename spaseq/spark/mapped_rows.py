"""Rows of any DataFrame → events, by a SPARQL CONSTRUCT (docs/rows.md).

The rows of an Arrow batch are read in compiled code, as those of a file. A row has no number in
Spark, so a mapping cannot use `?_row`. Events of one stream and time are ordered by name and graph.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import types as t

from spaseq.errors import ArgumentError, SpaseqError
from spaseq.io.identity import TimeKind
from spaseq.io.losses import Loss, merged_losses, worth_reporting
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.columns import columns_of
from spaseq.io.rows.mapping import ROW, MappingLike, RowMapping, read_mapping
from spaseq.io.rows.plan import checked_columns
from spaseq.io.rows.source import RowSource
from spaseq.parser import ast
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.native._minting import IN_EVENT
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
        QueryError: if the mapping is invalid, or has a variable that is not a column.
        SpaseqError: if it uses `?_row`, which rows of Spark do not have.
        ArgumentError: for another mode, another type of times, or a missing `time_column`.

    Example:
        >>> import spaseq.spark as sps
        >>> events = sps.from_rows(trades, "http://example.org/trades", "trades.rq")
    """
    reader = RowReader(stream, checked(map), time_column, kind_of_times(times), row_mode(mode))
    # `mapInArrow` needs the schema, and its own error does not say how to make it known.
    check_columns(schema_of(df), reader.mapping, time_column)
    return df.mapInArrow(reader.__call__, spark_schema(pa.schema(event_fields(reader.kind))))


def check_columns(schema: t.StructType, mapping: RowMapping, time_column: str | None) -> None:
    """Check that a mapping fits the columns of a DataFrame, before a worker finds out.

    Raises:
        QuerySemanticError: if a variable of the mapping is not a column, or is a column of lists.
        ArgumentError: if there is no column `time_column`.
    """
    try:
        checked_columns(mapping, columns_of(list(map(_field, schema.fields))), time_column)
    except LookupError as error:
        raise ArgumentError(f"time_column: {error.args[0]}") from None


def _field(field: t.StructField) -> pa.Field:
    return pa.field(field.name, _shape(field.dataType))


def _shape(type_: t.DataType) -> pa.DataType:
    """An Arrow type with the fields, lists and maps of a Spark type; all values are nulls."""
    if isinstance(type_, t.StructType):
        return pa.struct(list(map(_field, type_.fields)))
    if isinstance(type_, t.ArrayType):
        return pa.list_(pa.null())
    return pa.map_(pa.string(), pa.null()) if isinstance(type_, t.MapType) else pa.null()


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
        self.mapping = mapping
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
        lost: list[Loss] = []
        for batch in batches:
            if not len(batch):
                continue
            source = RowSource(
                self._stream,
                [pa.Table.from_batches([batch])],
                options,
                IN_EVENT,
                log=log,
                relevance=Relevance(Dictionary()),
                mapping=self.mapping,
            )
            for found in source.batches():
                if len(found):
                    arrays = event_arrays(found, self._stream, self.kind)
                    # An ordinal would count the rows of one batch.
                    arrays[2] = pa.nulls(len(found), pa.int64())
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            lost = merged_losses([*lost, *source.counters.losses()])
        for loss in worth_reporting(lost):
            log(f"the mapping of <{self._stream}>: {loss}")
