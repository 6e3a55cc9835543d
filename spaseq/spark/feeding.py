"""Chunks of events, in the order of their first times → the matches of one part.

Chunks may overlap in time; an event is pushed when every chunk that could hold an earlier
one is there, so that what waits is what overlaps. Ordinals are taken as they are given:
a part sees numbers missing. Where two events of a stream claim one place (they came from
files that know nothing of each other), the later one is moved behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from spaseq.engine.run import Run
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Term
from spaseq.results import Match
from spaseq.spark import chunks
from spaseq.spark.encoding import GraphEncoder
from spaseq.spark.moments import stamp_of

_AT_ONCE = 256


def name_of(text: str | None) -> Term | None:
    """The name of an event as its column has it: an IRI, or a blank node as `_:label`."""
    if text is None:
        return None
    return ox.BlankNode(text[2:]) if text.startswith("_:") else ox.NamedNode(text)


def in_order(tables: Iterable[tuple[int, pa.Table]]) -> Iterator[pa.Table]:
    """The events of (first time, table)s, which come by first time, in order."""
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
    """Ordered events before a time, and the others."""
    count = pc.sum(pc.less(table.column("micros"), micros)).as_py() or 0
    return table.slice(0, count), table.slice(count)


class Feeder:
    """Pushes ordered events into a run."""

    def __init__(self, run: Run):
        self._run = run
        run.has_gaps = True
        self._streams = run.program.streams
        self._last: dict[int, tuple[int, int]] = {}
        """By stream the time and ordinal of its last event."""
        if run.time is not None:
            for number, iri in enumerate(self._streams):
                self._last[number] = (run.time.micros, run.ordinals.get(iri, 0) - 1)

    def push(self, table: pa.Table) -> Iterator[Match]:
        """Events not before those that were pushed."""
        for start in range(0, len(table), _AT_ONCE):
            columns = [column.to_pylist() for column in table.slice(start, _AT_ONCE).columns]
            rows = list(zip(*columns, strict=True))
            if len(self._streams) == 1:
                (encoder,) = self._encoded(rows).values()
                yield from self._run.push_batch(encoder.batch)
            else:
                yield from self._interleaved(rows)

    def _encoded(
        self, rows: list[tuple[int, int, int, bool, str, str, bytes]]
    ) -> dict[int, GraphEncoder]:
        """The events as batches, by stream."""
        run, found = self._run, dict[int, GraphEncoder]()
        for micros, ordinal, stream, dated, stamp, name, graph in rows:
            encoder = found.get(stream)
            if encoder is None:
                # Streams are apart by number, batches by the events before them.
                number = run.events * len(self._streams) + stream
                encoder = GraphEncoder(run.relevance, self._streams[stream], number)
                found[stream] = encoder
            last = self._last.get(stream)
            if last is not None and last[0] == micros and ordinal <= last[1]:
                ordinal = last[1] + 1
            self._last[stream] = micros, ordinal
            literal = None if stamp is None else stamp_of(stamp)
            encoder.add(graph, micros, ordinal, name_of(name), literal, dated)
        return found

    def _interleaved(
        self, rows: list[tuple[int, int, int, bool, str, str, bytes]]
    ) -> Iterator[Match]:
        batches = {stream: e.batch for stream, e in self._encoded(rows).items()}
        taken = dict.fromkeys(batches, 0)
        for stream, some in groupby(rows, itemgetter(2)):
            first = taken[stream]
            taken[stream] += sum(1 for _ in some)
            batch = batches[stream]
            yield from self._run.push_batch(
                EncodedEvent(batch, index) for index in range(first, taken[stream])
            )
