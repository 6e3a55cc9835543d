"""The main loop, which moves events from sources to a run and matches to a sink.

Events are passed in batches, or one by one from a live source, whose matches must not be
delayed. Invariant: if an input fails, the matches of all events before the failure are written
before the error is raised, and the run is not finished, since its input is incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias

from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.stream_names import shown_streams as shown_streams
from spaseq.engine.stream_names import stream_iri as stream_iri
from spaseq.engine.stream_names import text_of_stream
from spaseq.errors import SpaseqError
from spaseq.io.formats import Shape
from spaseq.io.merge import Merge, merge
from spaseq.io.read_options import ReadOptions, TimeDomain, log_warning
from spaseq.io.rows.formats import ROW_FORMATS, row_format_of
from spaseq.io.rows.mapping import MappingLike, RowMapping, read_mapping
from spaseq.io.sinks import Sink
from spaseq.io.source import Source
from spaseq.keyed_runs import KeyedRuns
from spaseq.program import Program
from spaseq.rdf.ahead import close_generator
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.runs import Run

Path: TypeAlias = str | PathLike[str]
AtEnd: TypeAlias = Literal["close", "open"]
"""What the end of input does to windows that are open."""
BATCH = 256
"""The number of events of a batch."""
_Answer: TypeAlias = tuple[Iterable[Match], Sequence[Event] | EventBatch | EventSequence]
"""The matches of a batch, and the batch."""


class Engine(Protocol):
    """The part of `Run` that the loop uses."""

    def push_batch(
        self, events: Iterable[Event] | EventBatch | EventSequence
    ) -> Iterable[Match]: ...

    def finish(self, close: bool = True) -> Iterable[Match]: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run, reported after every batch."""

    events: int
    matches: int
    last: Event


Observer: TypeAlias = Callable[[Progress], None]


def shapes(program: CompiledQueries, leading: tuple[str, ...] = ()) -> list[Shape]:
    """The result format of each query.

    Args:
        program: The queries.
        leading: The columns of the match, from `MATCH_COLUMNS`, before the columns of the solution.

    Raises:
        SpaseqError: if a query projects a variable of the same name.
    """
    for query in program.queries:
        for column in query.plan.output.columns:
            if column.name in leading:
                raise SpaseqError(
                    f"the query {query.plan.name} projects ?{column.name}, so the column "
                    f"{column.name} of the match would be a second one: rename the variable"
                )
    prefixes = tuple(pair for query in program.sources for pair in query.prologue.prefixes)
    return [
        Shape(
            query.plan.shown,
            query.plan.output.form,
            tuple(column.name for column in query.plan.output.columns),
            prefixes,
            query.plan.output.grouping is not None,
            leading,
        )
        for query in program.queries
    ]


def file_sources(
    streams: Mapping[str, Sequence[str]],
    options: ReadOptions,
    log: Callable[[str], None] = log_warning,
    maps: Mapping[str, RowMapping] | None = None,
) -> list[Source]:
    """A source for each stream IRI, in the order given; all share one domain of time.

    `maps` has the mappings of the streams that consist of tables, by stream IRI.

    Raises:
        SpaseqError: if a stream of tables has no mapping.
    """
    domain, maps = TimeDomain(), maps or {}
    return [
        file_source(iri, files, maps.get(iri), options, number, domain, log)
        for number, (iri, files) in enumerate(streams.items())
    ]


def file_source(
    iri: str,
    files: Sequence[Any],
    mapping: RowMapping | None,
    options: ReadOptions,
    number: int,
    domain: TimeDomain,
    log: Callable[[str], None] = log_warning,
) -> Source:
    """The source of a stream of files, or of tables that a mapping reads."""
    if mapping is not None:
        from spaseq.io.rows.source import RowSource  # imported here: few streams are tables

        return RowSource(iri, files, options, number, domain, log, mapping=mapping)
    for file in files:
        if not isinstance(file, str) or _is_row_file(file, options):
            shown, suggested = f"a {type(file).__name__}", ""
            if isinstance(file, str):
                shown, suggested = file, f"; spaseq map --suggest {file} writes one"
            raise SpaseqError(
                f"the stream <{iri}> has rows ({shown}), which need a mapping: "
                f"--map NAME=MAPPING.rq (map= in Python){suggested}"
            )
    return Source(iri, files, options, number, domain, log)


def _is_row_file(path: str, options: ReadOptions) -> bool:
    if options.syntax is not None:
        return options.syntax in ROW_FORMATS
    return row_format_of(path) is not None


def matches(
    run: Engine,
    events: Iterable[Event],
    batch: int = BATCH,
    observe: Observer | None = None,
    close: bool = True,
) -> Iterator[Match]:
    """All matches of ordered events, to the end of the run.

    Args:
        run: The run; it is finished at the end of the events.
        events: The events, in time order.
        batch: The number of events passed to the run at once.
        observe: Called after every batch.
        close: As for `Run.finish`.

    Raises:
        SpaseqError: from the source of the events, after the matches of earlier events are yielded.
    """
    watch, matched = _Watch(observe), 0
    answers = answered(run, events, batch, close)
    try:
        for found, some in answers:
            for match in found:
                matched += 1
                yield match
            watch.batch_ended(some, matched)
    finally:
        close_generator(answers)


def _last(events: Sequence[Event] | EventBatch | EventSequence) -> Event:
    if isinstance(events, EventBatch):
        return EncodedEvent(events, len(events) - 1)
    if isinstance(events, EventSequence):
        return EncodedEvent(*events.position(len(events) - 1))
    return events[-1]


def pump(
    run: Engine,
    events: Iterable[Event],
    sink: Sink,
    batch: int = BATCH,
    limit: int | None = None,
    observe: Observer | None = None,
    close: bool = True,
) -> None:
    """Write the matches of ordered events to a sink, at most `limit` of them.

    `close` is that of `Run.finish`.

    The matches of a batch are written before the next batch is read.
    """
    if limit is not None and limit < 1:
        return
    if isinstance(run, Run):
        sink.format_natively(run.evaluation, limit)
    elif isinstance(run, KeyedRuns):
        run.format_with(sink, limit)
    answers = answered(run, events, batch, close)
    try:
        _write(answers, sink, limit, _Watch(observe))
    finally:
        close_generator(answers)


def _write(answers: Iterator[_Answer], sink: Sink, limit: int | None, watch: _Watch) -> None:
    for found, some in answers:
        for match in found:
            if match is None:
                sink.write_block()
            else:
                sink.write(match)
            if limit is not None and sink.written >= limit:
                return
        sink.write_block()
        if limit is not None and sink.written >= limit:
            return
        watch.batch_ended(some, sink.written)


class _Watch:
    """Reports the progress of a run to an observer, if there is one."""

    def __init__(self, observe: Observer | None):
        self._observe = observe
        self._events = 0

    def batch_ended(
        self, batch: Sequence[Event] | EventBatch | EventSequence, matched: int
    ) -> None:
        """All matches of a batch have been consumed; `matched` is their number so far."""
        self._events += len(batch)
        if self._observe is not None and len(batch):
            self._observe(Progress(self._events, matched, _last(batch)))


def answered(run: Engine, events: Iterable[Event], size: int, close: bool) -> Iterator[_Answer]:
    """The matches of each batch with the batch, then those of the end of the run.

    An error of the source of the events is raised after the matches of earlier events are consumed.
    """
    read = batches(events, size)
    try:
        for some, failure in read:
            yield run.push_batch(some), some
            if failure is not None:
                raise failure
        yield run.finish(close), ()
    finally:
        close_generator(read)
        if isinstance(run, KeyedRuns):
            run.stop()


def batches(
    events: Iterable[Event], size: int
) -> Iterator[tuple[Sequence[Event] | EventBatch | EventSequence, SpaseqError | None]]:
    """The events in lists of `size`; the last one is paired with the error that ended them, if any.

    Sources that encode their events return their own batches, or sequences merged from them.
    """
    encoded: Iterable[EventBatch | EventSequence] | None = None
    if isinstance(events, Source) and events.relevance is not None:
        encoded = events.batches()
    elif isinstance(events, Merge) and size > 1 and events.encodes:
        encoded = events.sequences()
    if encoded is not None:
        iterator = iter(encoded)
        try:
            for some in iterator:
                yield some, None
        except SpaseqError as error:
            yield (), error
        finally:
            close_generator(iterator)
        return
    single = iter(events)
    try:
        yield from _lists(single, size)
    finally:
        if single is not events:  # the caller closes its own generators
            close_generator(single)


def _lists(
    iterator: Iterator[Event], size: int
) -> Iterator[tuple[Sequence[Event], SpaseqError | None]]:
    """The events in lists of `size`, as `_batches`."""
    while True:
        batch: list[Event] = []
        try:
            for event in iterator:
                batch.append(event)
                if len(batch) == size:
                    break
        except SpaseqError as error:
            yield batch, error
            return
        yield batch, None
        if len(batch) < size:
            return


def merged(
    run: Run,
    streams: Sequence[str],
    sources: Sequence[Iterable[Event]],
    at_end: AtEnd,
    keeps: bool = False,
) -> Iterable[Event]:
    """The events of the sources of some streams, in order; the run learns which streams end.

    With an open end the run keeps the next event of each stream that waits for one that has ended.

    Args:
        run: The run.
        streams: The IRIs of the streams.
        sources: Their events.
        at_end: What the end of input does to windows that are open.
        keeps: Whether the run also keeps the events behind them, which are read to the end.

    Raises:
        SpaseqError: if `at_end` is `open` and a query reads some of several streams only.
    """
    if at_end not in ("close", "open"):
        raise SpaseqError(f"at_end is 'close' or 'open', not {at_end!r}")
    if at_end == "open" and len(sources) > 1:
        everything = [query for iri in streams for query in run.evaluation.inputs_of(iri)]
        for query in run.evaluation.queries:
            if everything.count(query) < len(streams):
                raise SpaseqError(
                    f"the query {query.plan.name} does not read all streams of this run, and with "
                    "an open end the events of a stream wait where another one has ended: run it "
                    "alone, or close at the end"
                )

    def ended(place: int, last: int | None) -> None:
        run.end_stream(streams[place], last)

    return merge(sources, ended, run.wait if at_end == "open" else None, keeps)


def mappings_by_iri(program: Program, maps: Mapping[str, MappingLike]) -> dict[str, RowMapping]:
    """Stream IRI → its mapping.

    Raises:
        QueryError: if a mapping is invalid.
        SpaseqError: if no query reads a stream, or a mapping cannot be read.
    """
    return {
        stream_iri(program, text_of_stream(name)): read_mapping(given)
        for name, given in maps.items()
    }
