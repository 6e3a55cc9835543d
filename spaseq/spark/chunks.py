"""Events in few fat rows: what goes over the network between the parts of a job.

A row of Spark costs as much as hundreds of bytes, so events travel by the thousand: a chunk
is an Arrow table of them in Arrow's stream format, compressed. It has a part, and the time of
its first event to sort by. No pickles: a chunk kept in a checkpoint can be read by any
version that knows the columns, and `VERSION` in its metadata says which it has.

Invariant: the events of a chunk are in order of (time, ordinal, stream), then name (those without
one first), then graph.
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

VERSION = b"1"
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
"""`stream` is a position among the streams of the program; `stamp` as `moments.read` has it."""

CHUNKS = "part int, first bigint, chunk binary"
_ARROW_CHUNKS = pa.schema([("part", pa.int32()), ("first", pa.int64()), ("chunk", pa.binary())])
_ORDER = [(name, "ascending") for name in ("micros", "ordinal", "stream", "name", "graph")]
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")

EVENTS_IN_CHUNK = 8192
BYTES_IN_CHUNK = 8 << 20


def ordered(table: pa.Table) -> pa.Table:
    """The events in the order in which a run takes them."""
    if _is_ordered(table):
        return table
    place = table.schema.get_field_index("name")
    # Spark sorts nulls first, Arrow last; no name is empty.
    keys = table.set_column(place, "name", pc.fill_null(table.column(place), ""))
    return table.take(pc.sort_indices(keys, sort_keys=_ORDER))


def _is_ordered(table: pa.Table) -> bool:
    """Whether the order of the events is plain without their names."""
    behind = np.ones(max(len(table) - 1, 0), np.bool_)
    for column in ("stream", "ordinal", "micros"):
        values = table.column(column).to_numpy()
        equal = values[1:] == values[:-1]
        behind = (values[1:] > values[:-1]) | equal & (behind if column != "stream" else False)
    return bool(behind.all())


def written(table: pa.Table) -> bytes:
    """A table as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read(chunk: bytes) -> pa.Table:
    """The table that `written` wrote.

    Raises:
        StateError: where another version of the package did.
    """
    table = pa.ipc.open_stream(pa.py_buffer(chunk)).read_all()
    version = (table.schema.metadata or {}).get(b"spaseq", b"?")
    if version != VERSION:
        raise StateError(
            f"events were put down in format {version.decode()}, this spaseq reads "
            f"{VERSION.decode()}: go on with the version that wrote the checkpoint"
        )
    return table


class ChunkWriter:
    """Collects events by part, and hands them out in rows that are fat enough."""

    def __init__(self, schema: pa.Schema = EVENTS) -> None:
        self._schema = schema
        self._waiting: dict[int, list[pa.Table]] = {}

    def add(self, events: pa.Table, places: Numbers, tasks: Numbers) -> Iterator[pa.RecordBatch]:
        """Take events: the i-th of `places` is for the i-th of `tasks`; the rows that are ready."""
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
        """The rows of what is left."""
        for part in list(self._waiting):
            yield self._row(part)

    def _row(self, part: int) -> pa.RecordBatch:
        table = ordered(pa.concat_tables(self._waiting.pop(part)))
        first = table.column("micros")[0].as_py()
        return pa.RecordBatch.from_pydict(
            {"part": [part], "first": [first], "chunk": [written(table)]}, schema=_ARROW_CHUNKS
        )


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
    """(part, first time, chunk) of fat rows."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
