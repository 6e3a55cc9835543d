"""Chunks of events, in the order of their first times → the matches of one part.

Chunks may overlap in time. The feeder pushes an event when no later chunk can hold an earlier one,
so only overlapping chunks wait in memory. The ordinals of the events count within the whole streams
(spaseq/spark/numbering.py), of which a part receives a subset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.native._terms import EventBatch
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark import chunks
from spaseq.spark.chunks import Numbers
from spaseq.spark.encoding import EVENTS_AT_ONCE, EventColumns, GraphEncoder


def in_order(tables: Iterable[tuple[int, pa.Table]]) -> Iterator[pa.Table]:
    """The events of tables in time order. The input is ascending by the first time of a table."""
    waiting: list[pa.Table] = []
    for first, table in tables:
        if waiting:
            before, rest = split(chunks.ordered(pa.concat_tables(waiting)), first)
            if len(before):
                yield before
            waiting = [rest] if len(rest) else []
        waiting.append(table)
    if waiting:
        yield chunks.ordered(pa.concat_tables(waiting))


def split(table: pa.Table, micros: int) -> tuple[pa.Table, pa.Table]:
    """Split sorted events into events before a time in microseconds, and the rest."""
    count = int(np.searchsorted(table.column("micros").to_numpy(), micros))
    return table.slice(0, count), table.slice(count)


class Feeder:
    """Encodes sorted events and pushes them into a run."""

    def __init__(self, run: Run):
        self._run = run
        run.clock.has_gaps = True
        self._streams = run.program.streams
        self._first = run.clock.events
        self._encoders: dict[int, GraphEncoder] = {}

    def push(self, table: pa.Table) -> Iterator[Match]:
        """Push events, none of them before an event pushed earlier; yields the matches."""
        columns = EventColumns.of(table)
        for start in range(0, len(columns), EVENTS_AT_ONCE):
            places = np.arange(start, min(start + EVENTS_AT_ONCE, len(columns)))
            if len(self._streams) == 1:
                yield from self._run.push_batch(self._batch(0, columns, places))
            else:
                yield from self._interleaved(columns, places)

    def _batch(self, stream: int, columns: EventColumns, places: Numbers) -> EventBatch:
        encoder = self._encoders.get(stream)
        if encoder is None:
            # Unique per stream and per number of earlier events, also after a resume.
            number = self._first * len(self._streams) + stream
            encoder = GraphEncoder(self._run.relevance, self._streams[stream], number)
            self._encoders[stream] = encoder
        return encoder.batch(columns, places)

    def _interleaved(self, columns: EventColumns, places: Numbers) -> Iterator[Match]:
        streams = columns.streams[places]
        batches = {
            stream: self._batch(stream, columns, places[streams == stream])
            for stream in np.unique(streams).tolist()
        }
        taken = dict.fromkeys(batches, 0)
        for stream, some in groupby(streams.tolist()):
            first = taken[stream]
            taken[stream] += sum(1 for _ in some)
            batch = batches[stream]
            yield from self._run.push_batch(
                EncodedEvent(batch, index) for index in range(first, taken[stream])
            )
