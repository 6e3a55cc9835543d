"""The loop: sources → run → sink. Everything that moves events and matches, and nothing else.

Events are handed to the run in batches, one by one where somebody may be waiting for the
matches. Invariant: when an input fails, the matches of every event before the failure have
been written before the error is raised, and the run is not finished, since its input is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import Any, Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.engine.limit_errors import OnLimit
from spaseq.engine.python_graphs import facts_of
from spaseq.errors import EventError, SpaseqError
from spaseq.io.formats import Shape
from spaseq.io.merge import merge
from spaseq.io.read_options import ReadOptions, TimeDomain, log_warning
from spaseq.io.sinks import Sink
from spaseq.io.source import Source
from spaseq.program import Program, compile_queries
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.time import TimePrecision, from_value
from spaseq.results import Match

Path: TypeAlias = str | PathLike[str]
BATCH = 256


class Engine(Protocol):
    """What the loop needs of a `Run`."""

    def push_batch(self, events: Iterable[Event] | EventBatch) -> Iterable[Match]: ...

    def finish(self) -> Iterable[Match]: ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: counted after every batch."""

    events: int
    matches: int
    last: Event


Observer: TypeAlias = Callable[[Progress], None]


def shapes(program: Program) -> list[Shape]:
    """What the results of each query look like."""
    return [
        Shape(
            query.plan.name,
            query.plan.output.form,
            tuple(column.name for column in query.plan.output.columns),
        )
        for query in program.queries
    ]


def file_sources(
    streams: Mapping[str, Sequence[str]],
    options: ReadOptions,
    log: Callable[[str], None] = log_warning,
) -> list[Source]:
    """A source per stream IRI, in the order given; they share one domain of time."""
    domain = TimeDomain()
    return [
        Source(iri, files, options, number, domain, log)
        for number, (iri, files) in enumerate(streams.items())
    ]


def matches(
    run: Engine, events: Iterable[Event], batch: int = BATCH, observe: Observer | None = None
) -> Iterator[Match]:
    """All matches of ordered events, to the end of the run.

    Raises:
        SpaseqError: of the events' source, when the matches before it have been yielded.
    """
    seen = found = 0
    for some, failure in _batches(events, batch):
        for match in run.push_batch(some):
            found += 1
            yield match
        seen += len(some)
        if observe is not None and len(some):
            last = EncodedEvent(some, len(some) - 1) if isinstance(some, EventBatch) else some[-1]
            observe(Progress(seen, found, last))
        if failure is not None:
            raise failure
    yield from run.finish()


def pump(
    run: Engine,
    events: Iterable[Event],
    sink: Sink,
    batch: int = BATCH,
    limit: int | None = None,
    observe: Observer | None = None,
) -> None:
    """Write the matches of ordered events to a sink, at most `limit` of them."""
    if limit is not None and limit < 1:
        return
    for match in matches(run, events, batch, observe):
        sink.write(match)
        if limit is not None and sink.written >= limit:
            return


def _batches(
    events: Iterable[Event], size: int
) -> Iterator[tuple[Sequence[Event] | EventBatch, SpaseqError | None]]:
    """The events in lists of `size`; the last list may come with the error that ended them.

    A source that encodes its events gives them as it has read them, in batches of its own.
    """
    if isinstance(events, Source) and events.relevance is not None:
        batches = events.batches()
        try:
            for encoded in batches:
                yield encoded, None
        except SpaseqError as error:
            yield (), error
        return
    iterator = iter(events)
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


def run(
    program: Program | str | Sequence[str],
    streams: Mapping[str, Any],
    kb: Mapping[str, Any] | None = None,
    bind: Mapping[str, object] | None = None,
    options: ReadOptions | None = None,
    entail: str | None = None,
    max_groups: int | None = None,
    max_steps: int | None = None,
    on_limit: OnLimit = "stop",
) -> Iterator[Match]:
    """The matches of queries over streams: the whole package in one call.

    `streams` gives each stream, by IRI or by the name a query calls it, its file, a list
    of files, or an iterable in the order of time: of `Event`s, or of (timestamp, graph) or
    (timestamp, graph, name) as `Run.push` takes them. `options` says how files are read,
    `entail` what patterns match by the schema of the KB, and the last three what the run may
    hold and do (see `Program.start`).

    Raises:
        QueryError, SpaseqError: at once, for a query or streams that do not fit together.
        InputError, EventError: while iterating, after the matches of all that came before.
    """
    if not isinstance(program, Program):
        program = compile_queries(program, bind=bind)
    elif bind:
        program = program.bind(bind)
    given = _by_iri(program, streams)
    started = program.start(
        kb=kb, entail=entail, max_groups=max_groups, max_steps=max_steps, on_limit=on_limit
    )
    domain, sources = TimeDomain(), list[Iterable[Event]]()
    for number, (iri, content) in enumerate(given.items()):
        files = _files(content)
        if files is None:
            precision = options.time_precision if options else "error"
            sources.append(_pushed(iri, content, number, precision))
        else:
            read = Source(iri, files, options or ReadOptions(), number, domain)
            read.relevance = started.relevance
            sources.append(read)
    live = any(not isinstance(s, Source) or s.live for s in sources)
    return matches(started, merge(sources), 1 if live else BATCH)


def stream_iri(program: Program, name: str) -> str:
    """The IRI of a stream from outside, by that IRI or by the name queries give it.

    Raises:
        SpaseqError: for what no query reads, and a name that queries use for different streams.
    """
    if name in program.streams:
        return name
    called = {s.iri.value for query in program.sources for s in query.streams if s.name == name}
    found = [iri for iri in program.streams if iri in called]
    if len(found) > 1:
        shown = " and ".join(f"<{iri}>" for iri in found)
        raise SpaseqError(f"the queries call both {shown} {name}; use the IRI")
    if not found:
        raise SpaseqError(f"no query reads the stream {name}; {shown_streams(program)}")
    return found[0]


def shown_streams(program: Program) -> str:
    """The streams from outside, with the names that queries give them, for messages."""
    names: dict[str, dict[str, None]] = {iri: {} for iri in program.streams}
    for query in program.sources:
        for stream in query.streams:
            names.get(stream.iri.value, {})[stream.name] = None
    shown = ", ".join(f"<{iri}> ({', '.join(called)})" for iri, called in names.items())
    return f"the streams read are {shown}" if shown else "no stream is read"


def _by_iri(program: Program, streams: Mapping[str, Any]) -> dict[str, Any]:
    """The contents by stream IRI, in the order the queries declare the streams."""
    named = {stream_iri(program, name): content for name, content in streams.items()}
    for iri in program.streams:
        if iri not in named:
            raise SpaseqError(f"the stream <{iri}> was not given; {shown_streams(program)}")
    return {iri: named[iri] for iri in program.streams}


def _files(content: Any) -> list[str] | None:
    """The paths, where the content of a stream is files."""
    if isinstance(content, str | PathLike):
        return [str(content)]
    listed = isinstance(content, list | tuple) and content
    if listed and all(isinstance(item, str | PathLike) for item in content):
        return [str(item) for item in content]
    return None


def _pushed(
    stream: str, items: Iterable[Any], number: int, precision: TimePrecision
) -> Iterator[Event]:
    """Events made of what a caller gives; ordinals are counted here."""
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
                    f"{item!r} is no event: give an Event or (timestamp, graph)"
                ) from None
            stamp = from_value(timestamp, "s", precision)
            facts = facts_of(graph, f"s{number}e{place + 1}")
            name = next(chain(rest), None)
            name = ox.NamedNode(name) if isinstance(name, str) else name
        if last is not None and stamp.micros < last:
            raise EventError(
                f"time runs backwards in <{stream}>: {stamp.term.value} is before the event "
                "in front of it; sort the events"
            )
        ordinal = ordinal + 1 if stamp.micros == last else 0
        last = stamp.micros
        yield Event(stream, stamp, ordinal, facts, name)
