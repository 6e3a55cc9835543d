"""What the workers do: events to the tasks of a job, and the events of a task to matches.

Both are shipped to the workers by name with a `Job`, which holds the program and the knowledge
base and is broadcast once for each job, however many tasks it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from spaseq.engine.program import Program
from spaseq.engine.run import Run
from spaseq.kb.snapshot import Kb
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.encoded import EncodedEvent
from spaseq.results import Match
from spaseq.spark import chunks, events
from spaseq.spark.distribution import needs_every_event
from spaseq.spark.division import Division
from spaseq.spark.encoding import GraphEncoder
from spaseq.spark.feeding import Feeder, in_order
from spaseq.spark.keys import Sorter
from spaseq.spark.moments import stamp_of
from spaseq.spark.rows import Columns

if TYPE_CHECKING:
    from pyspark import Broadcast

_AT_ONCE = 512


@dataclass(frozen=True)
class Job:
    """What all tasks of a job share."""

    program: Program
    kb: Kb
    columns: Columns
    division: Division
    entail: str | None = None
    mark: str = ""
    """Tells jobs apart that share a worker."""

    def start(self) -> Run:
        """A run; what its entailment makes of the knowledge base is made once for each worker."""
        return self.program.start(self.kb, entail=self.entail)

    @cached_property
    def keeps_all(self) -> bool:
        """Whether every event is needed, also those that no graph pattern accepts."""
        plans = [query.plan for query in self.program.queries]
        return len(plans) > 1 or (not self.division.variables and needs_every_event(plans[0]))


class Dividing:
    """Batches of events → chunks for the tasks that need them."""

    def __init__(self, job: Broadcast[Job]):
        self._job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        divider = Divider(self._job.value)
        writer = chunks.ChunkWriter()
        for batch in batches:
            if len(batch):
                yield from writer.add(*divider.divided(batch))
        yield from writer.rest()


class Divider:
    """Says which events of a batch which tasks need."""

    def __init__(self, job: Job):
        self._job = job
        self._router = job.division.router()
        self._sorter = (
            None
            if job.keeps_all
            else Sorter(job.start(), job.division.variables, job.division.parts)
        )

    def divided(self, batch: pa.RecordBatch) -> tuple[pa.Table, dict[int, list[int]]]:
        """The events, without triples of no use, and the places of those that a task needs."""
        table = events.encoded(batch, self._job.program.streams)
        if self._sorter is None:
            times = table.column("micros").to_pylist()
            found: dict[int, list[int]] = {}
            for place, micros in enumerate(times):
                for task in self._router.tasks((0,), micros):
                    found.setdefault(task, []).append(place)
            return table, found
        return self._sorted(table, self._sorter)

    def _sorted(self, table: pa.Table, sorter: Sorter) -> tuple[pa.Table, dict[int, list[int]]]:
        found: dict[int, list[int]] = {}
        graphs = table.column("graph").to_pylist()
        by_key = bool(self._job.division.variables)
        for place, micros, batch, index in _encoded(table, graphs, self._job, sorter):
            event = EncodedEvent(batch, index)
            if by_key:
                parts = sorter.parts(event)
                if not parts:
                    continue
            elif sorter.accepts(event):
                parts = (0,)
            else:
                continue
            for task in self._router.tasks(parts, micros):
                found.setdefault(task, []).append(place)
            if 0 < batch.kept(index) < batch.size(index):
                graphs[place] = batch.n_triples(index)
        column = table.schema.get_field_index("graph")
        field = table.schema.field(column)
        return table.set_column(column, field, pa.array(graphs, pa.binary())), found


def _encoded(
    table: pa.Table, graphs: list[bytes], job: Job, sorter: Sorter
) -> Iterator[tuple[int, int, EventBatch, int]]:
    """(place, time, batch, place in it) of the events, stream by stream."""
    micros, streams, dated, stamps = (
        table.column(name).to_pylist() for name in ("micros", "stream", "dated", "stamp")
    )
    for number, iri in enumerate(job.program.streams):
        places = [place for place, stream in enumerate(streams) if stream == number]
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            encoder = GraphEncoder(sorter.relevance, iri, number)
            for place in some:
                stamp = None if stamps[place] is None else stamp_of(stamps[place])
                encoder.add(graphs[place], micros[place], 0, None, stamp, dated[place])
            for index, place in enumerate(some):
                yield place, micros[place], encoder.batch, index


class Sampling:
    """Batches of events → the part and the time of each, for dividing evenly."""

    def __init__(self, job: Broadcast[Job]):
        self._job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        divider = Divider(self._job.value)
        for batch in batches:
            table, places = divider.divided(batch)
            times = table.column("micros").to_pylist()
            pairs = [(task, times[place]) for task, some in places.items() for place in some]
            yield pa.RecordBatch.from_pydict(
                {"part": [part for part, _ in pairs], "micros": [time for _, time in pairs]},
                schema=pa.schema([("part", pa.int32()), ("micros", pa.int64())]),
            )


class Evaluating:
    """Chunks by task and first time → rows of matches."""

    def __init__(self, job: Broadcast[Job]):
        self._job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        for task, some in groupby(chunks.rows(batches), itemgetter(0)):
            yield from job.columns.batches(job.division.owned(evaluated(job, some), task))


def evaluated(job: Job, some: Iterable[tuple[int, int, bytes]]) -> Iterator[Match]:
    """All matches of the events of one task."""
    run = job.start()
    feeder = Feeder(run)
    for table in in_order((first, chunks.read(chunk)) for _, first, chunk in some):
        yield from feeder.push(table)
    yield from run.finish()
