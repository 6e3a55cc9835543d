"""The main loop, which moves events from sources to a run and matches to a sink.

Events are passed in batches, or one by one from a live source, whose matches must not be
delayed. Invariant: if an input fails, the matches of all events before the failure are written
before the error is raised, and the run is not finished, since its input is incomplete.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.engine.limit_errors import OnLimit
from spaseq.engine.python_graphs import facts_of
from spaseq.errors import EventError, QueryWarning, SpaseqError
from spaseq.io.formats import Shape
from spaseq.io.merge import Merge, merge
from spaseq.io.read_options import ReadOptions, TimeDomain, log_warning
from spaseq.io.rows.formats import ROW_FORMATS, is_table, row_format_of
from spaseq.io.rows.mapping import MappingLike, RowMapping, read_mapping
from spaseq.io.sinks import Sink
from spaseq.io.source import Source
from spaseq.program import Program, compile_queries
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._sequence import EventSequence
from spaseq.rdf.ahead import close_generator
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.time import TimePrecision, from_value
from spaseq.results import Match
from spaseq.runs import Run

Path: TypeAlias = str | PathLike[str]
AtEnd: TypeAlias = Literal["close", "open"]
"""What the end of input does to windows that are open."""
BATCH = 256
"""Events of a batch."""
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


def shapes(program: Program, leading: tuple[str, ...] = ()) -> list[Shape]:
    """The result format of each query.

    Args:
        program: The queries.
        leading: Columns of the match in front of those of the solution, from `MATCH_COLUMNS`.

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
        _source(iri, files, maps.get(iri), options, number, domain, log)
        for number, (iri, files) in enumerate(streams.items())
    ]


def _source(
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
            shown = file if isinstance(file, str) else f"a {type(file).__name__}"
            suggested = f"; spaseq map --suggest {file} writes one" if shown == file else ""
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
        SpaseqError: from the source of the events, after the matches before it are yielded.
    """
    watch, matched = _Watch(observe), 0
    answers = _found(run, events, batch, close)
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
    answers = _found(run, events, batch, close)
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


def _found(run: Engine, events: Iterable[Event], size: int, close: bool) -> Iterator[_Answer]:
    """The matches of each batch with the batch, then those of the end of the run.

    An error of the source of the events is raised after the matches before it are consumed.
    """
    batches = _batches(events, size)
    try:
        for some, failure in batches:
            yield run.push_batch(some), some
            if failure is not None:
                raise failure
    finally:
        close_generator(batches)
    yield run.finish(close), ()


def _batches(
    events: Iterable[Event], size: int
) -> Iterator[tuple[Sequence[Event] | EventBatch | EventSequence, SpaseqError | None]]:
    """The events in lists of `size`; the last one is paired with the error that ended them, if any.

    Sources that encode their events return their own batches, or sequences merged of them.
    """
    batches: Iterable[EventBatch | EventSequence] | None = None
    if isinstance(events, Source) and events.relevance is not None:
        batches = events.batches()
    elif isinstance(events, Merge) and size > 1 and events.encodes:
        batches = events.sequences()
    if batches is not None:
        iterator = iter(batches)
        try:
            for encoded in iterator:
                yield encoded, None
        except SpaseqError as error:
            yield (), error
        finally:
            close_generator(iterator)
        return
    single = iter(events)
    try:
        yield from _lists(single, size)
    finally:
        if single is not events:  # a generator of the caller is the caller's to close
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
    run: Run, streams: Sequence[str], sources: Sequence[Iterable[Event]], at_end: AtEnd
) -> Iterable[Event]:
    """The events of the sources of some streams, in order; the run learns which streams end.

    Raises:
        SpaseqError: if `at_end` is `open` and a query reads some of several streams only.
    """
    if at_end not in ("close", "open"):
        raise SpaseqError(f"at_end is 'close' or 'open', not {at_end!r}")
    if at_end == "open" and len(sources) > 1:
        everything = [query for iri in streams for query in run.evaluation.inputs_of(iri)]
        for query in run.evaluation.distinct:
            if everything.count(query) < len(streams):
                raise SpaseqError(
                    f"the query {query.plan.name} does not read all streams of this run, and with "
                    "an open end the events of a stream wait where another one has ended: run it "
                    "alone, or close at the end"
                )

    def ended(place: int, last: int | None) -> None:
        run.end_stream(streams[place], last)

    return merge(sources, ended, at_end == "open")


def run(
    program: Program | str | Sequence[str],
    streams: Mapping[str, Any],
    kb: Mapping[str, Any] | None = None,
    bind: Mapping[str, object] | None = None,
    options: ReadOptions | None = None,
    entail: str | None = None,
    max_groups: int | None = None,
    max_steps: int | None = None,
    max_memory: int | None = None,
    on_limit: OnLimit = "stop",
    map: Mapping[str, MappingLike] | None = None,
    time_column: str | None = None,
    workers: int | None = None,
    at_end: AtEnd = "close",
) -> Iterator[Match]:
    """Run queries over streams and iterate over the matches.

    Args:
        program: A compiled program, or the text of one or several queries.
        streams: For each stream, by its IRI or its name in a query, a file, a list of files, or
            an iterable in time order of `Event`s, (timestamp, graph) or (timestamp, graph, name);
            see `Run.push`. A stream with a mapping is a file of rows, an Arrow table or reader,
            a data frame of pandas or polars, or a list of them.
        kb: The knowledge base, as for `Program.start`.
        bind: Values of query variables, as for `Program.bind`.
        options: How to read files; `max_memory` also limits the framings that read all files first.
        entail: `rdfs` or `owl-ql`, as for `Program.start`.
        max_groups: As for `Program.start`.
        max_steps: As for `Program.start`.
        max_memory: As for `Program.start`.
        on_limit: As for `Program.start`.
        map: For each stream of rows, by its IRI or its name, the mapping: its text, or the path
            of its file.
        time_column: The column of times, of rows whose mapping leaves `?_time` unbound.
        workers: The threads of the run, 2 by default: one reads files ahead while another one
            matches. With 1, nothing is read ahead.
        at_end: `close`: the end of all streams closes every window; matches of windows that a
            stream had not passed are `closed_by_end`. `open`: such matches are not returned.

    Raises:
        QueryError: immediately, if a query or a mapping is invalid; while iterating, if a mapping
            does not fit the columns.
        SpaseqError: immediately, if the streams do not fit the queries.
        InputError, EventError: while iterating, after the matches of all earlier events.
    """
    if not isinstance(program, Program):
        program = compile_queries(program, bind=bind)
    elif bind:
        program = program.bind(bind)
    given = _by_iri(program, streams)
    options = options or ReadOptions()
    if time_column is not None:
        options = replace(options, time_column=time_column)
    if workers is not None:
        options = replace(options, workers=workers)
    maps = mappings_by_iri(program, map or {})
    for mapping in maps.values():
        for warning in mapping.shown_warnings():
            warnings.warn(warning, QueryWarning, stacklevel=2)
    started = program.start(
        kb=kb,
        entail=entail,
        max_groups=max_groups,
        max_steps=max_steps,
        max_memory=max_memory,
        on_limit=on_limit,
    )
    if max_memory is not None and (options is None or options.max_memory is None):
        options = replace(options or ReadOptions(), max_memory=max_memory)
    domain, sources = TimeDomain(), list[Iterable[Event]]()
    for number, (iri, content) in enumerate(given.items()):
        files = _files(content)
        if files is None:
            if iri in maps:
                raise SpaseqError(
                    f"the stream <{iri}> has a mapping, but a {type(content).__name__} is no "
                    "file, Arrow table or data frame"
                )
            sources.append(_pushed(iri, content, number, options.time_precision))
        else:
            read = _source(iri, files, maps.get(iri), options, number, domain)
            read.relevance = started.relevance
            sources.append(read)
    live = any(not isinstance(s, Source) or s.live for s in sources)
    ordered = merged(started, list(given), sources, at_end)
    return matches(started, ordered, 1 if live else BATCH, close=at_end == "close")


def stream_iri(program: Program, name: str) -> str:
    """The IRI of an input stream, given by its IRI or by its name in the queries.

    Raises:
        SpaseqError: if no query reads the stream, or queries use the name for several streams.
    """
    if name in program.streams:
        return name
    named = {s.iri.value for query in program.sources for s in query.streams if s.name == name}
    iris = [iri for iri in program.streams if iri in named]
    if len(iris) > 1:
        shown = " and ".join(f"<{iri}>" for iri in iris)
        raise SpaseqError(f"the queries use the name {name} for both {shown}; use the IRI")
    if not iris:
        raise SpaseqError(f"no query reads the stream {name}; {shown_streams(program)}")
    return iris[0]


def shown_streams(program: Program) -> str:
    """The input streams with their names in the queries, for messages."""
    names: dict[str, dict[str, None]] = {iri: {} for iri in program.streams}
    for query in program.sources:
        for stream in query.streams:
            names.get(stream.iri.value, {})[stream.name] = None
    shown = ", ".join(f"<{iri}> ({', '.join(known)})" for iri, known in names.items())
    return f"the streams read are {shown}" if shown else "no stream is read"


def _by_iri(program: Program, streams: Mapping[str, Any]) -> dict[str, Any]:
    """Stream IRI → content, in the order in which the queries declare the streams."""
    named = {stream_iri(program, name): content for name, content in streams.items()}
    for iri in program.streams:
        if iri not in named:
            raise SpaseqError(f"the stream <{iri}> was not given; {shown_streams(program)}")
    return {iri: named[iri] for iri in program.streams}


def mappings_by_iri(program: Program, maps: Mapping[str, MappingLike]) -> dict[str, RowMapping]:
    """Stream IRI → its mapping.

    Raises:
        QueryError: if a mapping is invalid.
        SpaseqError: if no query reads a stream, or a mapping cannot be read.
    """
    return {stream_iri(program, name): read_mapping(given) for name, given in maps.items()}


def _files(content: Any) -> list[Any] | None:
    """The paths and tables of a stream's content if it consists of them, else None."""
    if isinstance(content, str | PathLike):
        return [str(content)]
    if is_table(content):
        return [content]
    listed = isinstance(content, list | tuple) and content
    if listed and all(isinstance(item, str | PathLike) or is_table(item) for item in content):
        return [str(item) if isinstance(item, PathLike) else item for item in content]
    return None


def _pushed(
    stream: str, items: Iterable[Any], number: int, precision: TimePrecision
) -> Iterator[Event]:
    """Events from the items of a caller's iterable, with ordinals."""
    last: int | None = None
    ordinal = 0
    for place, item in enumerate(items):
        if isinstance(item, Event):
            stamp, facts, name = item.time, item.facts, item.name
        else:
            try:
                timestamp, graph, *rest = item
            except TypeError:
                raise EventError(
                    f"{item!r} is not an event; use an Event or (timestamp, graph)"
                ) from None
            stamp = from_value(timestamp, "s", precision)
            facts = facts_of(graph, f"s{number}e{place + 1}")
            name = next(chain(rest), None)
            name = ox.NamedNode(name) if isinstance(name, str) else name
        if last is not None and stamp.micros < last:
            raise EventError(
                f"time runs backwards in <{stream}>: {stamp.term.value} is before the time of "
                "the previous event; sort the events"
            )
        ordinal = ordinal + 1 if stamp.micros == last else 0
        last = stamp.micros
        yield Event(stream, stamp, ordinal, facts, name)
