"""Events as they arrive → events with ordinals, before the shuffle to the tasks.

An ordinal counts the earlier events of the same stream and time. `chunks.ARRIVED` defines the
order: the source of an event (a file by its path, a topic and partition of Kafka), its ordinal
within the source, its name, its graph. So an ordinal depends neither on the order of arrival nor
on the division of the work. Events are grouped into buckets by a hash of their times; a bucket
holds all events of a time.

Cost: one shuffle of all events, and a sort of each bucket.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.records import dataclass
from spaseq.results.identity import event_digest
from spaseq.spark import chunks
from spaseq.spark.chunks import Numbers
from spaseq.spark.part_run import split

_FIBONACCI = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: spreads equidistant times over the buckets."""


@dataclass(frozen=True, slots=True)
class Released:
    """The events of a bucket, divided by the watermark."""

    ready: pa.Table
    """Events that the watermark has passed, with their ordinals."""
    late: pa.Table
    """New events behind the watermark, as they arrived."""
    waiting: pa.Table
    """Events that the watermark has not passed, as they arrived."""


def buckets(micros: Numbers, count: int) -> Numbers:
    """The bucket of each time, the same in every process."""
    mixed = micros.astype(np.uint64) * _FIBONACCI >> np.uint64(32)
    return (mixed % np.uint64(count)).astype(np.int64)


def release(
    waiting: Iterable[pa.Table], fresh: Iterable[pa.Table], watermark: int, streams: tuple[str, ...]
) -> Released:
    """Divide the waiting and the new events of a bucket by a watermark in microseconds."""
    late, new = split(_concatenated(fresh), watermark)
    ready, rest = split(_concatenated([*waiting, new]), watermark)
    return Released(numbered(ready, streams), late, rest)


def numbered(table: pa.Table, streams: tuple[str, ...]) -> pa.Table:
    """A table of `chunks.ARRIVED`, ordered and with all events of its times, as `chunks.EVENTS`.

    Columns beside those of `chunks.ARRIVED` stay with their events.
    """
    micros, stream = table.column("micros").to_numpy(), table.column("stream").to_numpy()
    places = np.arange(len(table))
    is_first = np.ones(len(table), np.bool_)
    is_first[1:] = (micros[1:] != micros[:-1]) | (stream[1:] != stream[:-1])
    ordinals = pa.array(places - np.maximum.accumulate(np.where(is_first, places, 0)), pa.int64())
    names = _renamed(table, ordinals, streams)
    columns = {"ordinal": ordinals, "name": names}
    schema = chunks.EVENTS
    for field in list(table.schema)[len(chunks.ARRIVED) :]:
        schema = schema.append(field)
    arrays = [columns.get(name, table.column(name)) for name in schema.names]
    return chunks.ordered(pa.Table.from_arrays(arrays, schema=schema))


def _renamed(table: pa.Table, ordinals: pa.Array, streams: tuple[str, ...]) -> pa.ChunkedArray:
    """The names of events; a blank node that `rdf-events` named by the old ordinal is renamed."""
    names, given = table.column("name"), table.column("ordinal")
    blank = pc.and_(pc.starts_with(names, "_:e"), pc.not_equal(given, ordinals))
    places = np.flatnonzero(pc.fill_null(blank, False).to_numpy())
    if not len(places):
        return names
    renamed = names.to_pylist()
    for place in places.tolist():
        stream = streams[table.column("stream")[place].as_py()]
        micros = table.column("micros")[place].as_py()
        if renamed[place] == f"_:e{event_digest(stream, micros, given[place].as_py())}":
            renamed[place] = f"_:e{event_digest(stream, micros, ordinals[place].as_py())}"
    return pa.chunked_array([pa.array(renamed, pa.string())])


def _concatenated(tables: Iterable[pa.Table]) -> pa.Table:
    return chunks.ordered(pa.concat_tables([chunks.ARRIVED.empty_table(), *tables]))
