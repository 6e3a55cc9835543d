"""Chunks: thousands of events in one row of Spark, for the shuffles of a job.

A row of Spark costs as much as hundreds of bytes. So a row holds a chunk: a table of events in
Arrow's stream format, compressed, with its part and, as the sort key, the time of its first event.
A chunk contains no pickles: every version that knows the columns can read a chunk from a
checkpoint. `VERSION` in its metadata identifies the columns.

Invariant: the events of a chunk are sorted. The sort key of `EVENTS` is time, ordinal, stream. The
key of `ARRIVED`, before events have ordinals, is time, stream, source, given ordinal, name, graph;
a missing source, ordinal or name sorts first. A column `row` is the last key of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spaseq.errors import StateError

Numbers: TypeAlias = NDArray[np.int64]

VERSION = b"2"
EVENTS = pa.schema(
    [
        pa.field("micros", pa.int64(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("stream", pa.int16(), nullable=False),
        pa.field("dated", pa.bool_(), nullable=False),
        pa.field("stamp", pa.string()),
        pa.field("name", pa.string()),
        pa.field("graph", pa.binary(), nullable=False),
    ],
    metadata={b"spaseq": VERSION},
)
"""`stream` is an index into the program's streams; `time_column.read` defines `stamp`."""

ARRIVED = EVENTS.set(1, pa.field("ordinal", pa.int64())).append(pa.field("source", pa.string()))
"""Events before spaseq/spark/numbering.py numbers them: `ordinal` counts within the source."""

CHUNKS = pa.schema([("part", pa.int32()), ("first", pa.int64()), ("chunk", pa.binary())])
_ORDER = ("micros", "ordinal", "stream")
_ORDER_ARRIVED = ("micros", "stream", "source", "ordinal", "name", "graph", "stamp")
_MIN_INT64 = -(2**63)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

EVENTS_IN_CHUNK = 8192
BYTES_IN_CHUNK = 8 << 20


def ordered(table: pa.Table) -> pa.Table:
    """The events, sorted by the key of their schema."""
    names: tuple[str, ...] = _ORDER_ARRIVED if "source" in table.column_names else _ORDER
    if "row" in table.column_names:
        names = (*names, "row")
    if _is_ordered(table, names):
        return table
    keys = table
    for place, field in enumerate(table.schema):
        if field.nullable:
            first = "" if pa.types.is_string(field.type) else _MIN_INT64
            keys = keys.set_column(place, field.name, pc.fill_null(table.column(place), first))
    return table.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names]))


def _is_ordered(table: pa.Table, names: tuple[str, ...]) -> bool:
    """Whether the leading integer columns of the sort key already ascend."""
    behind = np.zeros(max(len(table) - 1, 0), np.bool_)
    for column in reversed(names[: names.index("stream") + 1]):
        values = table.column(column).to_numpy()
        behind = (values[1:] > values[:-1]) | (values[1:] == values[:-1]) & behind
    return bool(behind.all())


def written(table: pa.Table) -> bytes:
    """A table as bytes in Arrow's stream format, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read(chunk: bytes) -> pa.Table:
    """The table that `written` wrote.

    Raises:
        StateError: if the table has the format of another version.
    """
    table = pa.ipc.open_stream(pa.py_buffer(chunk)).read_all()
    version = (table.schema.metadata or {}).get(b"spaseq", b"?")
    if version != VERSION:
        raise StateError(
            f"the checkpoint holds events in format {version.decode()}, this version of spaseq "
            f"reads {VERSION.decode()}: continue with the version that wrote the checkpoint"
        )
    return table


class ChunkWriter:
    """Collects events by part into chunks of at most about `EVENTS_IN_CHUNK` events."""

    def __init__(self, schema: pa.Schema = EVENTS) -> None:
        self._schema = schema
        self._waiting: dict[int, list[pa.Table]] = {}

    def add(self, events: pa.Table, places: Numbers, tasks: Numbers) -> Iterator[pa.RecordBatch]:
        """Add event `places[i]` to the chunk of task `tasks[i]`, for each i; yield full chunks."""
        order = np.argsort(tasks, kind="stable")
        tasks, firsts = np.unique(tasks[order], return_index=True)
        chosen = events.take(pa.array(places[order]))
        bounds = (*firsts.tolist(), len(chosen))
        for number, task in enumerate(tasks.tolist()):
            some = chosen.slice(bounds[number], bounds[number + 1] - bounds[number])
            waiting = self._waiting.setdefault(task, [])
            waiting.append(some)
            if (
                sum(map(len, waiting)) >= EVENTS_IN_CHUNK
                or sum(one.nbytes for one in waiting) >= BYTES_IN_CHUNK
            ):
                yield self._row(task)

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The chunks that are not full."""
        for part in list(self._waiting):
            yield self._row(part)

    def _row(self, part: int) -> pa.RecordBatch:
        table = ordered(pa.concat_tables(self._waiting.pop(part)))
        first = table.column("micros")[0].as_py()
        return row(part, first, written(table))


def row(part: int, first: int, chunk: bytes) -> pa.RecordBatch:
    """A row with a chunk; an empty one has no events."""
    columns = {"part": [part], "first": [first], "chunk": [chunk]}
    return pa.RecordBatch.from_pydict(columns, schema=CHUNKS)


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    """The rows of batches of chunks, as (part, first time, chunk)."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
