"""The data source `rdf-events`: RDF files and growing directories of them, one row per event.

    spark.read.format("rdf-events").option("stream", iri).load(path)
    spark.readStream.format("rdf-events").option("stream", iri).load(folder)

The source reads files as `spaseq run` does (docs/formats.md), and large N-Quads files in several
splits. A streaming query reads each file once, when the file appears; so a producer writes a file
elsewhere and moves it into the folder. The offset of a streaming query lists the files that were
read and still exist, so a restart repeats the same batches. Readers run in separate processes,
which receive only the options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from spaseq.errors import InputError, SpaseqError
from spaseq.io import time_column
from spaseq.io.identity import TimeKind
from spaseq.io.lines import Lines
from spaseq.io.read_options import Framing, OnError, ReadOptions
from spaseq.io.recognition import extension_syntax, recognised
from spaseq.io.source import Source
from spaseq.rdf.event import DATE_TIME
from spaseq.rdf.native._framing import IN_EVENT
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance
from spaseq.rdf.time import TimeUnit, duration_micros
from spaseq.records import dataclass
from spaseq.results.identity import event_digest
from spaseq.spark import splits
from spaseq.spark.conditions import with_condition, with_conditions
from spaseq.spark.native._arrow import GraphWriter, instants
from spaseq.spark.paths import files_at, given_path, size_of
from spaseq.spark.versions import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
    require_read_limits,
)

_MODES: Mapping[str, OnError] = {"FAILFAST": "stop", "DROPMALFORMED": "skip", "PERMISSIVE": "skip"}
_OPTIONS = (
    "path", "paths", "recursiveFileLookup", "stream", "events", "times", "mode", "syntax",
    "timePredicate", "timeUnit", "lateness", "splitSize", "maxFilesPerTrigger",
)  # fmt: skip
_SPLIT = 64 << 20
NAME = "rdf-events"
CORRUPT = "_corrupt_record"


@dataclass(frozen=True, slots=True)
class EventOptions:
    """The validated options of the source."""

    stream: str
    paths: tuple[str, ...]
    kind: TimeKind
    mode: str
    read: ReadOptions
    split: int
    files_per_trigger: int | None
    recursive: bool = False
    """Whether folders are read with the folders in them."""

    @staticmethod
    def parse(given: Mapping[str, str]) -> EventOptions:
        """The options from Spark's texts.

        Raises:
            SpaseqError: if an option is unknown, missing or malformed.
        """
        values = {name.lower(): value for name, value in given.items()}
        unknown = values.keys() - {name.lower() for name in _OPTIONS}
        if unknown:
            raise SpaseqError(
                f"rdf-events has no option {sorted(unknown)[0]}; it has {', '.join(_OPTIONS)}"
            )
        paths = json.loads(values.get("paths", "[]")) or [values.get("path")]
        for name, value in (("stream", values.get("stream")), ("path", all(paths))):
            if not value:
                raise SpaseqError(f"rdf-events needs the option {name}")
        recursive = values.get("recursivefilelookup", "false").lower()
        kind = _one_of(
            "times", values.get("times", "timestamp"), ("timestamp", "decimal", "string")
        )
        mode = _one_of("mode", values.get("mode", "FAILFAST").upper(), tuple(_MODES))
        lateness = values.get("lateness")
        try:
            read = ReadOptions(
                framing=Framing.parse(values.get("events", "auto")),
                time_predicate=values.get("timepredicate"),
                unit=cast(
                    TimeUnit, _one_of("timeUnit", values.get("timeunit", "s"), ("s", "ms", "us"))
                ),
                on_error=_MODES[mode],
                lateness=None if lateness is None else duration_micros(lateness),
                syntax=values.get("syntax") or None,
                workers=1,  # Spark counts one processor for a task
            )
            split = int(values.get("splitsize", _SPLIT))
            most = values.get("maxfilespertrigger")
            files = None if most is None else int(most)
        except ValueError as error:
            raise SpaseqError(f"an option of rdf-events: {error}") from error
        return EventOptions(
            values["stream"],
            tuple(map(given_path, paths)),
            cast(TimeKind, kind),
            mode,
            read,
            split,
            files,
            _one_of("recursiveFileLookup", recursive, ("true", "false")) == "true",
        )

    def schema(self) -> str:
        """The schema of the rows, in Spark's notation."""
        corrupt = f", {CORRUPT} string" if self.mode == "PERMISSIVE" else ""
        time = time_column.sql_type(self.kind)
        columns = f"stream string, time {time}, ordinal bigint, name string, graph string"
        return f"{columns}, source string{corrupt}"

    def files(self) -> list[str]:
        """The existing files, ordered by modification time and name."""
        return list(files_at(self.paths, self.recursive, self._is_data))

    def _is_data(self, path: str) -> bool:
        return self.read.syntax is not None or extension_syntax(path) is not None


@dataclass
class FileSplit(InputPartition):
    """A file, or a part of it between byte offsets, which `splits.beginning` aligns to events."""

    path: str
    first: int
    behind: int | None


class RdfEvents(DataSource):
    """The data source."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return NAME

    @with_condition
    def schema(self) -> str:
        """The schema of the rows, in Spark's notation."""
        return EventOptions.parse(self.options).schema()

    @with_condition
    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader for `spark.read`."""
        return EventsReader(EventOptions.parse(self.options))

    @with_condition
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader for `spark.readStream`."""
        options = EventOptions.parse(self.options)
        if options.files_per_trigger is not None:
            require_read_limits("maxFilesPerTrigger")
        return GrowingFolder(options)


class EventsReader(DataSourceReader):
    """Reads all existing files."""

    def __init__(self, options: EventOptions):
        self._options = options

    @with_condition
    def partitions(self) -> Sequence[FileSplit]:
        """The splits of all files; Spark reads each in a task."""
        files = self._options.files()
        if not files:
            shown = ", ".join(self._options.paths)
            raise SpaseqError(f"rdf-events: there is no RDF file at {shown}")
        return [part for path in files for part in file_splits(path, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of one split."""
        assert isinstance(partition, FileSplit)
        return rows(partition, self._options)


class GrowingFolder(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads files as they appear in a folder."""

    def __init__(self, options: EventOptions):
        self._options = options
        self._until: frozenset[str] | None = None
        """The only files to read, for a query with the trigger `availableNow`."""

    def prepareForTriggerAvailableNow(self) -> None:
        """Restrict the query to the files that exist now."""
        self._until = frozenset(self._options.files())

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first batch: no file was read."""
        return {"files": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit from the option `maxFilesPerTrigger`."""
        most = self._options.files_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    @with_condition
    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """The files read so far that still exist, and the files of the next batch.

        PySpark 4.1 passes no arguments: all files that exist then.
        """
        start = self.initialOffset() if start is None else start
        there = self._options.files()
        if self._until is not None:
            there = [path for path in there if path in self._until or path in start["files"]]
        taken = [path for path in there if path in start["files"]]
        new = [path for path in there if path not in start["files"]]
        if isinstance(limit, ReadMaxFiles):
            new = new[: limit.max_files]
        return {"files": dict.fromkeys([*taken, *new], 1)} if new else start

    @with_condition
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[FileSplit]:
        """The splits of the files of a batch."""
        new = [path for path in end["files"] if path not in start["files"]]
        return [part for path in new for part in file_splits(path, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of one split."""
        assert isinstance(partition, FileSplit)
        return rows(partition, self._options)


def file_splits(path: str, options: EventOptions) -> list[FileSplit]:
    """The splits of a file."""
    size = size_of(path)
    if size <= options.split or not is_divisible(path, options):
        return [FileSplit(path, 0, None)]
    offsets = list(range(0, size, options.split))
    return [
        FileSplit(path, first, behind)
        for first, behind in zip(offsets, [*offsets[1:], None], strict=True)
    ]


def is_divisible(path: str, options: EventOptions) -> bool:
    """Whether parts of a file can be read apart."""
    lines = Lines(path)
    try:
        if lines.compression:
            return False
        known = recognised(lines, path, options.read.syntax)
    finally:
        lines.close()
    return splits.is_divisible(path, known.syntax.syntax, options.read)


@with_conditions
def rows(part: FileSplit, options: EventOptions) -> Iterator[pa.RecordBatch]:
    """The events of a split as rows."""
    troubles: list[str] = []
    read = options.read
    first, behind = part.first, part.behind
    whole = (first, behind) == (0, None)
    if not whole:
        read = replace(read, framing=Framing("graph"))
        first = splits.beginning(part.path, first, read)
        behind = None if behind is None else splits.beginning(part.path, behind, read)
    source = Source(
        options.stream,
        [part.path],
        read,
        IN_EVENT,
        log=troubles.append,
        relevance=Relevance(Dictionary()),
    )
    if not whole:
        source.open_lines = splits.open_range(first, behind)
    for batch in source.batches():
        yield _record_batch(batch, options, troubles, part.path)
        troubles.clear()
    if troubles and options.mode == "PERMISSIVE":
        yield _record_batch(None, options, troubles, part.path)


def _record_batch(
    batch: EventBatch | None, options: EventOptions, troubles: Sequence[str], path: str
) -> pa.RecordBatch:
    fields = [*event_fields(options.kind), ("source", pa.string())]
    arrays = None
    if batch is not None and len(batch):
        arrays = event_arrays(batch, options.stream, options.kind)
        arrays.append(pa.array([path] * len(batch), pa.string()))
    if options.mode == "PERMISSIVE":
        fields.append((CORRUPT, pa.string()))
    schema = pa.schema(fields)
    if arrays is None:
        arrays = [pa.array([], field.type) for field in schema][:6]
    if options.mode == "PERMISSIVE":
        arrays.append(pa.nulls(len(arrays[0]), pa.string()))
        more = [[options.stream] * len(troubles), *([None] * len(troubles) for _ in range(5))]
        arrays = [
            pa.concat_arrays([array, pa.array(some, array.type)])
            for array, some in zip(arrays, [*more, list(troubles)], strict=True)
        ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def event_fields(kind: TimeKind) -> list[tuple[str, pa.DataType]]:
    """The columns of events."""
    return [
        ("stream", pa.string()),
        ("time", time_column.arrow_type(kind)),
        ("ordinal", pa.int64()),
        ("name", pa.string()),
        ("graph", pa.string()),
    ]


def event_arrays(batch: EventBatch, stream: str, kind: TimeKind) -> list[pa.Array]:
    """The events of a batch as the columns of `event_fields`."""
    count = len(batch)
    check_time(batch, 0, kind)  # all times of a source are of one kind: check the first
    numbers = pa.Array.from_buffers(pa.int64(), 2 * count, [None, pa.py_buffer(instants(batch))])
    if kind == "string":
        times = pa.array([str(batch.time(index).term) for index in range(count)], pa.string())
    else:
        times = time_column.column(numbers.slice(0, count), kind)
    writer = GraphWriter()
    writer.add_names(batch)
    names = _texts(writer, count)
    writer.add_all(batch)
    graphs = _texts(writer, count)
    absent = pc.equal(names, "")
    if pc.any(absent).as_py():
        known = [_name(batch, index, stream) for index in range(count)]
        names = pa.array(known, pa.string())
    return [
        pa.array([stream] * count, pa.string()),
        times,
        numbers.slice(count),
        names,
        graphs,
    ]


def _texts(writer: GraphWriter, count: int) -> pa.Array:
    texts, ends = writer.written()
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(texts))


def _name(batch: EventBatch, index: int, stream: str) -> str | None:
    """The name of an event. A blank node gets a label from the event's time and ordinal, which
    is the same in every task.
    """
    name = batch.name(index)
    if isinstance(name, ox.BlankNode):
        return f"_:e{event_digest(stream, batch.micros(index), batch.ordinal(index))}"
    return None if name is None else name.value


def check_time(batch: EventBatch, index: int, kind: TimeKind) -> None:
    """Check that the time of an event is of a kind.

    Raises:
        InputError: if it is of another kind.
    """
    domain = batch.time(index).domain
    if kind != "string" and (kind == "timestamp") != (domain == DATE_TIME):
        shown = "a date" if domain == DATE_TIME else "a number"
        raise InputError(
            f"its timestamp is {shown}: set the option times to "
            f'"{"timestamp" if domain == DATE_TIME else "decimal"}", or to "string" for either',
            batch.file,
            batch.line(index),
        )


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise SpaseqError(f"rdf-events: {name} is one of {', '.join(known)}, not {value!r}")
    return value
