"""Rows that are not events: recognised, described, and returned in a separate column.

A row is malformed if its graph is not N-Triples, its time is missing or of another form, or its
name is not an IRI. The mode decides what happens then, with the names that Spark's readers use:
FAILFAST ends the job with an error that names the event, DROPMALFORMED drops the row, and
PERMISSIVE returns it in the column `_corrupt_record`, in a row without a match.

Cost of the last two: each graph is parsed once more.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator
from typing import Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa

from spaseq.errors import ArgumentError, EventError
from spaseq.rdf.native._terms import Dictionary, Relevance
from spaseq.spark import chunks, events
from spaseq.spark.encoding import EventColumns, GraphEncoder

Mode: TypeAlias = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]

MODES: tuple[Mode, ...] = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")
CORRUPT = "_corrupt_record"
CORRUPT_PART = -2
"""The part of chunks that hold malformed rows."""
_NAMES = ("stream", "time", "ordinal", "name", "graph", "source")


def mode_of(mode: str) -> Mode:
    """A mode by its name, in any case.

    Raises:
        ArgumentError: for any other name.
    """
    if not isinstance(mode, str) or mode.upper() not in MODES:
        raise ArgumentError(f"mode: one of {', '.join(MODES)} is needed, not {mode!r}")
    return cast(Mode, mode.upper())


def column(time: pa.DataType) -> pa.Field:
    """The column of results that holds malformed rows, for events with a type of times."""
    return pa.field(CORRUPT, pa.struct(list(_records(time))))


def _records(time: pa.DataType) -> pa.Schema:
    """Malformed rows: the columns of events, whose times have any type, and the error."""
    kinds = {"ordinal": pa.int64(), "time": time}
    return pa.schema(
        [(name, kinds.get(name, pa.string())) for name in (*_NAMES, "error")],
        metadata={b"spaseq": chunks.VERSION},
    )


class Sorting:
    """Separates the events of batches from malformed rows.

    Args:
        streams: the streams of the program.
        mode: the mode.
        reported: the streams whose malformed rows are to be returned; with one of them, also the
            rows without a stream.
        time: the type of the times.
    """

    def __init__(
        self,
        streams: tuple[str, ...],
        mode: Mode,
        reported: tuple[str, ...],
        time: pa.DataType,
    ):
        self._streams = streams
        self._mode = mode
        self._reported = (*reported, None) if reported else ()
        self._records = _records(time)

    def sorted(self, batch: pa.RecordBatch) -> tuple[pa.Table, list[pa.RecordBatch]]:
        """The events of a batch of prepared events, as `chunks.ARRIVED`; and a chunk with the
        malformed rows, if there are any to return.

        Raises:
            EventError: under FAILFAST, for a time that is none; names the row.
        """
        if self._mode == "FAILFAST":
            try:
                return events.arrived(batch, self._streams), []
            except EventError:
                wrong = dict(self._found(batch, parse=False))
                place, error = next(iter(wrong.items()))
                (row,) = batch.slice(place, 1).to_pylist()
                raise EventError(f"{_shown(row)}: {error}") from None
        wrong = dict(self._found(batch, parse=True))
        table = events.arrived(_without(batch, wrong), self._streams)
        return table, self._returned(batch, wrong) if wrong else []

    def sound(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch without its malformed rows, unless they are to end the job."""
        if self._mode == "FAILFAST":
            return batch
        return _without(batch, dict(self._found(batch, parse=True)))

    def _returned(self, batch: pa.RecordBatch, wrong: dict[int, str]) -> list[pa.RecordBatch]:
        rows = batch.take(pa.array(list(wrong), pa.int64()))
        if self._mode == "DROPMALFORMED":
            (row,) = rows.slice(0, 1).to_pylist()
            first = f"{_shown(row)}: {next(iter(wrong.values()))}"
            logging.getLogger("spaseq.spark").warning(
                "%d malformed rows were dropped; the first is %s", len(wrong), first
            )
            return []
        texts = [graph.decode("utf-8", "replace") for graph in rows.column("graph").to_pylist()]
        columns = {name: rows.column(name) for name in _NAMES}
        columns |= {"graph": pa.array(texts), "error": pa.array(list(wrong.values()))}
        arrays = [columns[field.name].cast(field.type) for field in self._records]
        records = pa.Table.from_arrays(arrays, schema=self._records)
        own = [stream in self._reported for stream in rows.column("stream").to_pylist()]
        records = records.filter(pa.array(own))
        return [chunks.row(CORRUPT_PART, 0, chunks.written(records))] if len(records) else []

    def _found(
        self, batch: pa.RecordBatch, parse: bool, first: int = 0
    ) -> Iterator[tuple[int, str]]:
        """The places of malformed rows, from `first`, and their errors; halves ranges that fail."""
        try:
            table = events.encoded(batch, self._streams)
            if parse and len(table):
                # A separate dictionary, so that the terms of a batch are dropped with it.
                relevance = Relevance(Dictionary())
                encoder = GraphEncoder(relevance, self._streams[0], 0)
                encoder.read(EventColumns.of(table), np.arange(len(table)))
        except EventError as error:
            if len(batch) == 1:
                yield first, str(error)
                return
            half = len(batch) // 2
            yield from self._found(batch.slice(0, half), parse, first)
            yield from self._found(batch.slice(half), parse, first + half)


def _without(batch: pa.RecordBatch, wrong: Collection[int]) -> pa.RecordBatch:
    if not wrong:
        return batch
    sound = np.setdiff1d(np.arange(len(batch)), np.fromiter(wrong, np.int64))
    return batch.take(pa.array(sound))


def rows_of_chunk(chunk: bytes, schema: pa.Schema) -> pa.Table:
    """The malformed rows of a chunk as rows of results, whose other columns are null."""
    table = chunks.read(chunk)
    records = table.to_struct_array()
    arrays = [
        records if field.name == CORRUPT else pa.nulls(len(table), field.type) for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def with_column(batches: Iterable[pa.RecordBatch], time: pa.DataType) -> Iterator[pa.RecordBatch]:
    """Rows of matches with the column of malformed rows, which is null."""
    field = column(time)
    for batch in batches:
        yield batch.append_column(field, pa.nulls(len(batch), field.type))


def _shown(row: dict[str, object]) -> str:
    """A row in a sentence."""
    name = row["name"] or "without a name"
    return f"the event {name} of the stream {row['stream']} at {row['time']}"
