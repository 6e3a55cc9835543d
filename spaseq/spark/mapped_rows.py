"""Rows of any DataFrame → events, by a SPARQL CONSTRUCT (docs/rows.md).

The rows of an Arrow batch are read in compiled code, as those of a file. A row has no number in
Spark, so a mapping cannot use `?_row`. Events of one stream and time are ordered by `?_ordinal`,
name and graph.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import types as t

from spaseq.errors import NOWHERE, ArgumentError, InputError, SpaseqError
from spaseq.io.identity import TimeKind
from spaseq.io.losses import Loss, merged_losses, worth_reporting
from spaseq.io.read_options import ReadOptions
from spaseq.io.rows.columns import columns_of
from spaseq.io.rows.mapping import ORDINAL, ROW, MappingLike, RowMapping, read_mapping
from spaseq.io.rows.plan import checked_columns
from spaseq.io.rows.source import RowSource
from spaseq.parser import ast
from spaseq.rdf.native._framing import IN_EVENT
from spaseq.rdf.native._terms import Dictionary, Relevance
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
_SHOWN_CHARACTERS = 300
_log = logging.getLogger("spaseq.spark")
_PLACE = re.compile(r", row ([0-9]+): ")


def from_rows(
    df: DataFrame,
    stream: str,
    map: MappingLike,
    *,
    time_column: str | None = None,
    ordinal_column: str | None = None,
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
        ordinal_column: the column of whole numbers that orders the events of one time, such as an
            offset, if the mapping leaves `?_ordinal` unbound.
        times: the type of the column `time` of the events: "timestamp" for dates, "decimal" for
            numbers of seconds, "string" for either.
        mode: "FAILFAST" ends the job at a row without a time, with a name that is not an IRI, or
            with an ordinal that is not a whole number; "DROPMALFORMED" drops such rows, with a
            warning in the worker's log.

    Raises:
        QueryError: if the mapping is invalid, or has a variable that is not a column.
        SpaseqError: if it uses `?_row`, which rows of Spark do not have.
        ArgumentError: for another mode, another type of times, a missing `time_column` or
            `ordinal_column`, or one of another type.

    Example:
        >>> import spaseq.spark as sps
        >>> events = sps.from_rows(trades, "http://example.org/trades", "trades.rq")
    """
    mapping, kind, treatment = checked(map), kind_of_times(times), row_mode(mode)
    # `mapInArrow` needs the schema, and its own error does not say how to make it known.
    given = schema_of(df)
    mapping = with_ordinal(mapping, given, ordinal_column)
    reader = RowReader(stream, mapping, time_column, kind, treatment)
    check_columns(given, reader.mapping, time_column)
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


def with_ordinal(mapping: RowMapping, schema: t.StructType, column: str | None) -> RowMapping:
    """The mapping with `?_ordinal` bound to a column of a DataFrame; without a column, as it is.

    Raises:
        ArgumentError: if there is no such column, if it holds other values than whole numbers, or
            if the mapping binds `?_ordinal` itself.
    """
    if column is None:
        return mapping
    elements = mapping.tree.where.elements
    if any(isinstance(each, ast.Bind) and each.variable.name == ORDINAL for each in elements):
        raise ArgumentError(f"ordinal_column: {mapping.name} binds ?{ORDINAL} already")
    found = {each.name: each for each in columns_of(list(map(_field, schema.fields)))}.get(column)
    if found is None:
        raise ArgumentError(
            f"ordinal_column: there is no column {column}; there are {', '.join(schema.names)}"
        )
    if column in schema.names and not isinstance(schema[column].dataType, t.IntegralType):
        kind = schema[column].dataType.simpleString()
        raise ArgumentError(f"ordinal_column: {column} has the type {kind}, not one of integers")
    bind = ast.Bind(ast.Var(found.variable, NOWHERE), ast.Var(ORDINAL, NOWHERE), NOWHERE)
    where = replace(mapping.tree.where, elements=(*elements, bind))
    return replace(mapping, tree=replace(mapping.tree, where=where))


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
        lost: list[Loss] = []
        for batch in batches:
            if len(batch):
                for events, _ in self.read(batch, lost):
                    yield events
        self.report(lost)

    def report(self, lost: Sequence[Loss]) -> None:
        """Log what the mapping lost of the rows."""
        for loss in worth_reporting(lost):
            _log.warning("the mapping of <%s>: %s", self._stream, loss)

    def read(
        self, batch: pa.RecordBatch, lost: list[Loss]
    ) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
        """The events of a batch of rows, each with the index of its row; adds to what was lost.

        Raises:
            InputError: under FAILFAST, for a row that is no event; shows its values.
        """
        options = ReadOptions(
            lateness=_ANY_ORDER,
            time_column=self._time_column,
            on_error="skip" if self._mode == "DROPMALFORMED" else "stop",
            workers=1,  # Spark counts one processor for a task
        )
        dropped: list[str] = []
        source = RowSource(
            self._stream,
            [pa.Table.from_batches([batch])],
            options,
            IN_EVENT,
            log=dropped.append,
            relevance=Relevance(Dictionary()),
            mapping=self.mapping,
            ordered=True,
        )
        schema = pa.schema(event_fields(self.kind))
        try:
            for found in source.batches():
                if len(found):
                    lines = [found.line(index) for index in range(len(found))]
                    arrays = event_arrays(found, self._stream, self.kind)
                    # The ordinals of the source count the rows of one batch.
                    ordinals = () if source.reader is None else source.reader.ordinals_of(lines)
                    arrays[2] = pa.array(ordinals, pa.int64())
                    rows = [line - 1 for line in lines]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema), rows
        except InputError as error:
            row = error.line if error.unit == "row" else None
            said = error.message if row is None else f"{error.message}: {_shown(batch, row - 1)}"
            raise InputError(f"a row for the stream {self._stream}: {said}") from error
        lost[:] = merged_losses([*lost, *source.counters.losses()])
        if dropped:
            self._report_dropped(dropped, batch)

    def _report_dropped(self, dropped: Sequence[str], batch: pa.RecordBatch) -> None:
        place = _PLACE.search(dropped[0])
        first = dropped[0]
        if place is not None:
            first = f"{first[place.end() :]}: {_shown(batch, int(place[1]) - 1)}"
        _log.warning(
            "%d rows for the stream %s were dropped; the first: %s",
            len(dropped), self._stream, first,
        )  # fmt: skip


def _shown(batch: pa.RecordBatch, row: int) -> str:
    """The values of a row in a message, as many as fit."""
    (values,) = batch.slice(row, 1).to_pylist()
    said = ", ".join(f"{name} = {value!r}" for name, value in values.items())
    return f"{said[:_SHOWN_CHARACTERS]}…" if len(said) > _SHOWN_CHARACTERS else said
