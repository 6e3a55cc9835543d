"""The functions that workers run: events → chunks for tasks, and chunks of a task → matches.

Spark ships them to the workers by name, with a `Job` that holds the program and the knowledge
base (spaseq/spark/shipping.py).
"""

from __future__ import annotations

import gc
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TypedDict, TypeGuard

import numpy as np
import pyarrow as pa

from spaseq.engine.limit_errors import OnLimit
from spaseq.errors import LimitExceeded
from spaseq.io.arrow_columns import Columns
from spaseq.io.arrow_rows import CompiledRows, Rows
from spaseq.io.native._columns import RowMaker
from spaseq.kb.snapshot import Kb
from spaseq.parser import ast
from spaseq.plan.key_division import needs_every_event
from spaseq.program import Program
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark import chunks, events, malformed, numbering
from spaseq.spark.chunks import Numbers
from spaseq.spark.conditions import with_conditions
from spaseq.spark.division import Division, Own
from spaseq.spark.encoding import EVENTS_AT_ONCE, EventColumns, GraphEncoder
from spaseq.spark.keys import KeyPartitioner
from spaseq.spark.malformed import CORRUPT_PART, Mode, Sorting
from spaseq.spark.native._arrow import GraphWriter
from spaseq.spark.part_run import Feeder, in_order
from spaseq.spark.shipping import Shared
from spaseq.sparql.registry import register_all, registered

_NONE: Numbers = np.zeros(0, np.int64)
MARK = -1
"""A bucket without events that every batch of a streaming query reaches."""
_REPORTED: set[tuple[str, str]] = set()
"""What this worker has reported about jobs, by their marks."""


class Limits(TypedDict, total=False):
    """The limits of a run, as `Program.start` takes them."""

    max_groups: int | None
    max_steps: int | None
    max_matches: int | None
    max_memory: int | None
    on_limit: OnLimit


@dataclass(frozen=True)
class Job:
    """The data that all tasks of a job share."""

    program: Program
    kb: Kb
    columns: Columns
    division: Division
    entail: str | None = None
    mark: str = ""
    """Identifies the job among the jobs of a worker."""
    buckets: int = 1
    """The number of buckets in which events are numbered."""
    functions: bytes = b""
    """The registered functions that the program calls, pickled by `shipped`."""
    mode: Mode = "FAILFAST"
    """The treatment of malformed rows."""
    reported: tuple[str, ...] = ()
    """The streams whose malformed rows this job returns."""
    time: pa.DataType = field(default_factory=pa.string)
    """The type of the times of events."""
    limits: Limits = field(default_factory=Limits)
    """The limits of each run."""

    def start(self) -> Run:
        """A new run. A worker computes the entailed knowledge base once."""
        if self.functions:
            register_all(pickle.loads(self.functions))
        return self.program.start(self.kb, entail=self.entail, share=False, **self.limits)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows of results."""
        schema = self.columns.schema()
        if self.mode == "PERMISSIVE":
            schema = schema.append(malformed.column(self.time))
        return schema

    def sorting(self) -> Sorting:
        """The object that separates events from malformed rows."""
        return Sorting(self.program.streams, self.mode, self.reported, self.time)

    @cached_property
    def needs_all_events(self) -> bool:
        """Whether an event that no graph pattern accepts can change a result."""
        plans = [query.plan for query in self.program.queries]
        return len(plans) > 1 or (not self.division.variables and needs_every_event(plans[0]))


def shipped(program: Program) -> bytes:
    """The registered functions that a program calls, pickled for the workers.

    Functions of the driver's main module are pickled by value, as Spark does with those of its
    users; all others by name, so the workers need their modules.
    """
    from pyspark import cloudpickle

    names = {node.function.value for node in ast.walk(program.sources) if _is_call(node)}
    found = [each for each in map(registered, sorted(names)) if each is not None]
    dumps: Callable[[object], bytes] = cloudpickle.dumps
    return dumps(found) if found else b""


def _is_call(node: object) -> TypeGuard[ast.FunctionCall]:
    return isinstance(node, ast.FunctionCall)


class Dividing:
    """Batches of events with ordinals → chunks for the tasks that need them."""

    def __init__(self, job: Shared):
        self._job = job

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        divider = Divider(job)
        writer = chunks.ChunkWriter()
        for batch in batches:
            if len(batch):
                yield from writer.add(*divider.divided(events.encoded(batch, job.program.streams)))
        yield from writer.rest()


class Gathering:
    """Batches of events → chunks for the buckets in which they are numbered.

    A chunk without events for the bucket `MARK` comes with the number of events in place of a time.
    Chunks of malformed rows have the bucket `CORRUPT_PART`.
    """

    def __init__(self, job: Shared):
        self._job = job

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        writer = chunks.ChunkWriter(chunks.ARRIVED)
        sorting, count = job.sorting(), 0
        for batch in batches:
            if len(batch):
                count += len(batch)
                table, wrong = sorting.sorted(batch)
                yield from wrong
                buckets = numbering.buckets(table.column("micros").to_numpy(), job.buckets)
                yield from writer.add(table, np.arange(len(table)), buckets)
        yield from writer.rest()
        yield chunks.row(MARK, count, b"")


class Numbering:
    """Chunks by bucket and first time → chunks for the tasks that need them."""

    def __init__(self, job: Shared):
        self._job = job

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        divider = Divider(job)
        writer = chunks.ChunkWriter()
        for part, some in groupby(chunks.rows(batches), itemgetter(0)):
            if part == CORRUPT_PART:
                yield from (chunks.row(*row) for row in some)
                continue
            if part == MARK:
                if not sum(count for _, count, _ in some):
                    logging.getLogger("spaseq.spark").warning(
                        "no row is of a stream that the query reads: it reads %s",
                        ", ".join(job.program.streams),
                    )  # fmt: skip
                continue
            for table in in_order((first, chunks.read(chunk)) for _, first, chunk in some):
                ready = numbering.numbered(table, job.program.streams)
                yield from writer.add(*divider.divided(ready))
        yield from writer.rest()


class Divider:
    """Determines the tasks that need each event, and drops triples that no query can use."""

    def __init__(self, job: Job):
        self._job = job
        self._router = job.division.router()
        self._partitioner: KeyPartitioner | None = None
        if not job.needs_all_events:
            self._partitioner = KeyPartitioner(
                job.start(), job.division.variables, job.division.parts
            )
            relevance = self._partitioner.relevance
            self._encoders = [
                GraphEncoder(relevance, iri, number)
                for number, iri in enumerate(job.program.streams)
            ]

    def divided(self, table: pa.Table) -> tuple[pa.Table, Numbers, Numbers]:
        """The events that some task needs, without triples that no query can use; and two columns
        of pairs: the index of an event, and a task that needs it.
        """
        columns = EventColumns.of(table)
        if self._partitioner is None:
            parts, places = np.zeros(len(table), np.int64), np.arange(len(table))
        else:
            table, places, parts = self._partitioned(table, columns, self._partitioner)
        micros = table.column("micros").to_numpy()
        pairs, tasks = self._router.tasks(parts, micros[places])
        return table, places[pairs], tasks

    def _partitioned(
        self, table: pa.Table, columns: EventColumns, partitioner: KeyPartitioner
    ) -> tuple[pa.Table, Numbers, Numbers]:
        """The events with a part; and two columns of pairs: the index of an event, and a part."""
        graphs = GraphWriter()
        retained, places, parts, count = [_NONE], [_NONE], [_NONE], 0
        for number, encoder in enumerate(self._encoders):
            own = np.flatnonzero(columns.streams == number)
            for start in range(0, len(own), EVENTS_AT_ONCE):
                some = own[start : start + EVENTS_AT_ONCE]
                read = encoder.batch(columns, some)
                pairs = partitioner.pairs(read)
                found = np.unique(pairs[:, 0])
                graphs.add(read, found, some[found], columns.graphs, columns.ends)
                retained.append(some[found])
                places.append(count + np.searchsorted(found, pairs[:, 0]))
                parts.append(pairs[:, 1])
                count += len(found)
        place = table.schema.get_field_index("graph")
        chosen = table.remove_column(place).take(pa.array(np.concatenate(retained)))
        texts, ends = graphs.written()
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(texts)]
        written = pa.Array.from_buffers(pa.binary(), count, buffers)
        chosen = chosen.add_column(place, table.schema.field(place), written)
        return chosen, np.concatenate(places), np.concatenate(parts)


class Sampling:
    """Batches of events → the part and time of each, from which the driver derives a division."""

    def __init__(self, job: Shared):
        self._job = job

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        divider, sorting = Divider(job), job.sorting()
        for batch in batches:
            sound = events.encoded(sorting.sound(batch), job.program.streams)
            table, places, tasks = divider.divided(sound)
            micros = table.column("micros").to_numpy()[places]
            yield pa.RecordBatch.from_arrays(
                [pa.array(tasks, pa.int64()).cast(pa.int32()), pa.array(micros)],
                names=["part", "micros"],
            )


class Evaluating:
    """Chunks by task and first time → rows of matches."""

    def __init__(self, job: Shared):
        self._job = job

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        for task, some in groupby(chunks.rows(batches), itemgetter(0)):
            if task == CORRUPT_PART:
                for _, _, chunk in some:
                    yield from malformed.rows_of_chunk(chunk, job.schema).to_batches()
                continue
            run = job.start()
            found = evaluated(run, some)
            with memory_named(run):
                yield from collecting_between(rows_of(job, run, found, job.division.own(task)))
            report(run)


@contextmanager
def memory_named(run: Run) -> Iterator[None]:
    """Say in which queries and at what time the memory of a worker ended.

    Raises:
        LimitExceeded: in place of MemoryError.
    """
    try:
        yield
    except MemoryError as error:
        names, time = ", ".join(run.program.names), run.clock.time
        at = "" if time is None else f" at {time.term.value}"
        raise LimitExceeded(
            f"a worker has no memory left for the query {names}{at}: "
            f"{error or 'an allocation failed'}. Bound it with max_groups, max_steps or "
            "max_matches, or give the workers more memory (spark.executor.pyspark.memory)"
        ) from error


def _has_lost(run: Run) -> bool:
    """Whether a function or an expression erred, or a limit dropped groups."""
    matchers = run.rows.matchers
    return (
        bool(matchers.calls.failures)
        or any(map(matchers.has_erred, range(len(matchers.patterns))))
        or any(query.shed or query.has_erred() for query in run.queries)
    )


def report(run: Run, mark: str = "") -> None:
    """Log what a run lost: the errors of functions and expressions, and the groups that it dropped.

    With the mark of a job, a worker logs each function and expression once for the job. A run that
    lost nothing costs a look at its counts.
    """
    if not _has_lost(run):
        return
    stats, log = run.stats, logging.getLogger("spaseq.spark").warning
    said = {
        iri: f"the function {iri} raised {each['errors']} errors, first {each['first']}"
        for iri, each in stats.get("function_errors", {}).items()
    }
    for name, query in stats["queries"].items():
        for each in query.get("errors", ()):
            where = f"{each['gpm']}: {each['expression']}"
            said[where] = (
                f"the query {name}: {where} had {each['errors']} errors, first {each['example']}"
            )
        if query["shed_groups"]:
            said[name] = (
                f"the query {name} dropped {query['shed_groups']} groups of partial matches: "
                "on_limit is shed"
            )
    for what, text in said.items():
        if (mark, what) not in _REPORTED:
            log("%s", text)
        if mark:
            _REPORTED.add((mark, what))


def collecting_between(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, with Python's cyclic garbage collector restricted to run between them.

    The objects of rows are many and form no cycles. While rows are built, the collector would
    traverse the whole heap of the worker repeatedly, for more than a quarter of the worker's time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for batch in batches:
            yield batch
            gc.collect(0)
    finally:
        if was_enabled:
            gc.enable()


def evaluated(run: Run, some: Iterable[tuple[int, int, bytes]]) -> Iterator[Match]:
    """All matches of the events of one task."""
    feeder = Feeder(run)
    for table in in_order((first, chunks.read(chunk)) for _, first, chunk in some):
        yield from feeder.push(table)
    yield from run.finish()


def rows_of(
    job: Job, run: Run, matches: Iterable[Match | None], own: Own
) -> Iterator[pa.RecordBatch]:
    """The rows of the matches of a new run that belong to a task.

    If possible, compiled code builds rows in place of matches; the run then yields None when a
    batch is full.
    """
    batches = _match_rows(job, run, matches, own)
    return malformed.with_column(batches, job.time) if job.mode == "PERMISSIVE" else batches


def _match_rows(
    job: Job, run: Run, matches: Iterable[Match | None], own: Own
) -> Iterator[pa.RecordBatch]:
    maker = _row_maker(job, run, own)
    rows = Rows(job.columns) if maker is None else CompiledRows(job.columns, maker)
    for match in matches:
        if isinstance(rows, Rows) and match is not None and own.has(match):
            rows.add(match)
        if rows.full:
            yield rows.batch()
    if len(rows):
        yield rows.batch()


def _row_maker(job: Job, run: Run, own: Own) -> RowMaker | None:
    """Replace the run's match maker by one that builds rows; None if rows need `Match` objects."""
    native = run.queries[0].native
    if len(run.queries) > 1 or job.columns.kind == "string":
        return None
    if run.queries[0].plan.output.limit is not None:
        return None
    maker = native.made_by(RowMaker)
    if maker is not None:
        maker.restrict(own.first, own.behind, own.variables, own.part, own.parts)
        native.matches = maker
    return maker
