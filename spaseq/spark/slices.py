"""A DataFrame of unmodified RDF files in time order → its matches, without a shuffle.

Rows cost more than matching: an event that passes from a file through Spark to the task that needs
it crosses four processes. If a query can be divided by time, and the events are those of plain
N-Quads files that do not overlap in time, each task reads its slice of the files, and the window
before it, and reports the matches that end in the slice (spaseq/spark/division.py). No event
crosses the network.

Invariant: the matches are those of the shuffled rows. Neighbouring tasks compute the same border
between their slices, as the readers of splits do (spaseq/spark/splits.py). Files that overlap in
time, or that are read with an error policy other than FAILFAST, are shuffled as rows. Cost: a few
probes per file and per slice; memory is that of one reader, and the window.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from spaseq.io.lines import Lines
from spaseq.io.read_options import Framing
from spaseq.io.source import Source
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.spark import splits
from spaseq.spark.conditions import with_conditions
from spaseq.spark.distribution import lookback
from spaseq.spark.division import Own
from spaseq.spark.paths import size_of
from spaseq.spark.shipping import Shared, is_connect
from spaseq.spark.source import NAME, EventOptions, check_time, is_divisible
from spaseq.spark.tasks import Job, collecting_between, memory_named, report, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MIN_LOOKBACKS_PER_SLICE = 4
"""The minimum length of a slice, in multiples of the lookback that its task also reads."""
_PROBE_BYTES = 1 << 20
_BEGINNING, _END = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class File:
    """A file, its size in bytes, and the times of its first and last event in microseconds."""

    path: str
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Place:
    """The start of an event whose time differs from the event before: file, byte and time."""

    file: int
    offset: int
    micros: int


@dataclass(frozen=True)
class Slices:
    """Files in time order, cut into `count` slices.

    The task of a slice also reads the `back` microseconds before the slice.
    """

    options: EventOptions
    files: tuple[File, ...]
    count: int
    back: int

    def place(self, number: int) -> Place:
        """The start of slice `number`; the end of the last slice for the number `count`."""
        if number <= 0:
            return Place(0, 0, _BEGINNING)
        sizes = list(accumulate((file.size for file in self.files), initial=0))
        if number >= self.count:
            return Place(len(self.files), 0, _END)
        offset = number * sizes[-1] // self.count
        file = bisect_right(sizes, offset) - 1
        return self._at(file, offset - sizes[file])

    def _at(self, file: int, offset: int) -> Place:
        """The first place at or after an offset."""
        if offset > 0:
            found, micros = splits.change(self.files[file].path, offset, self.options.read)
            if micros is not None:
                return Place(file, found, micros)
            file += 1
        if file == len(self.files):
            return Place(file, 0, _END)
        return Place(file, 0, self.files[file].first)

    def with_lookback(self, place: Place) -> Place:
        """A place at least `back` microseconds before another."""
        if place.micros in (_BEGINNING, _END):
            return Place(0, 0, _BEGINNING)
        target = place.micros - self.back
        file, end = place.file, place.offset
        while file > 0 and (end == 0 or self.files[file].first > target):
            file -= 1
            end = self.files[file].size
        step = _PROBE_BYTES
        while step < end:
            found = self._at(file, end - step)
            if found.file == file and found.micros <= target:
                return self._nearer(found, end - step, place, target)
            step *= 2
        return Place(file, 0, self.files[file].first)

    def _nearer(self, far: Place, offset: int, place: Place, target: int) -> Place:
        """A later place before `target`, interpolated on the assumption of a constant event rate;
        `far` if the interpolation misses.
        """
        end = place.offset if place.file == far.file else self.files[far.file].size
        share = 1.1 * (place.micros - target) / max(1, place.micros - far.micros)
        near = self._at(far.file, end - int(share * (end - offset)))
        return near if near.file == far.file and far.micros < near.micros <= target else far

    def ranges(self, first: Place, behind: Place) -> dict[str, tuple[int, int | None]]:
        """The bytes between two places: by path, the first byte and the end (None: file end)."""
        found: dict[str, tuple[int, int | None]] = {}
        for number in range(first.file, min(behind.file + 1, len(self.files))):
            start = first.offset if number == first.file else 0
            end = behind.offset if number == behind.file else None
            if end is None or start < end:
                found[self.files[number].path] = start, end
        return found


def slices(df: DataFrame, job: Job, wanted: int) -> Slices | None:
    """The slices of a DataFrame; None if its rows must be shuffled."""
    options = source_options(df)
    return None if options is None else cut(options, job, wanted)


def cut(options: EventOptions, job: Job, wanted: int) -> Slices | None:
    """The files of a data source in at most `wanted` slices; None if slices are not exact."""
    (plan, *others) = [query.plan for query in job.program.queries]
    back = "" if others else lookback(plan)
    if isinstance(back, str) or len(plan.streams) != 1:
        return None
    if options.stream != plan.streams[0]:
        return None
    if options.mode != "FAILFAST" or options.read.lateness is not None:
        return None
    if options.kind == "decimal" and any(gpm.at for gpm in plan.gpms):
        return None  # a column of decimals does not preserve the lexical form of a number
    files = _in_order(options)
    if files is None:
        return None
    duration = files[-1].last - files[0].first
    size = sum(file.size for file in files)
    count = max(
        1, min(wanted, size // _PROBE_BYTES, duration // max(1, MIN_LOOKBACKS_PER_SLICE * back))
    )
    return Slices(options, files, count, back)


def _in_order(options: EventOptions) -> tuple[File, ...] | None:
    """The files by time; None if a file has no events, or two files overlap in time."""
    found = []
    for path in options.files():
        size = size_of(path)
        if not size or not is_divisible(path, options):
            return None
        times = splits.span(path, options.read)
        if times is None:
            return None
        found.append(File(path, size, *times))
    found.sort(key=lambda file: file.first)
    if not found or any(a.last >= b.first for a, b in pairwise(found)):
        return None
    return tuple(found)


def source_options(df: DataFrame) -> EventOptions | None:
    """The options of `rdf-events`, if the DataFrame is exactly what the data source reads.

    A client of Spark Connect may not have the files that the server reads.
    """
    if is_connect(df.sparkSession):
        return None
    plan: Any = df._jdf.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "DataSourceV2Relation" or plan.table().name() != NAME:
        return None
    return EventOptions.parse(dict(plan.options().asCaseSensitiveMap()))


def is_one_file(df: DataFrame) -> bool:
    """Whether the rows of a DataFrame are the events of one file, with the ordinals of the file."""
    options = source_options(df)
    if options is None or options.mode != "FAILFAST" or len(options.paths) > 1:
        return False
    return os.path.isfile(options.paths[0])


class Slicing:
    """Numbers of slices → rows of the matches that end in them."""

    def __init__(self, job: Shared, slices: Slices):
        self._job = job
        self._slices = slices

    @with_conditions
    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job = self._job.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from collecting_between(sliced(job, self._slices, number))


def sliced(job: Job, slices: Slices, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of the matches that end in a slice."""
    first, behind = slices.place(number), slices.place(number + 1)
    if (first.file, first.offset) == (behind.file, behind.offset):
        return
    run = job.start()
    ranges = slices.ranges(slices.with_lookback(first), behind)
    matches = _matches(run, slices.options, ranges)
    with memory_named(run):
        yield from rows_of(job, run, matches, Own(first.micros, behind.micros))
    report(run)


def _matches(
    run: Run, options: EventOptions, ranges: dict[str, tuple[int, int | None]]
) -> Iterator[Match]:
    """All matches of ranges of files."""

    def opened(path: str) -> Lines:
        return splits.open_range(*ranges[path])(path)

    source = Source(
        options.stream,
        list(ranges),
        replace(options.read, framing=Framing("graph")),
        relevance=run.relevance,
        open_lines=opened,
    )
    for batch in source.batches():
        if len(batch):
            check_time(batch, 0, options.kind)
        yield from run.push_batch(batch)
    yield from run.finish()
