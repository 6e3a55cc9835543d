"""`run`: queries over streams in one call."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from spaseq.engine.limit_errors import OnLimit
from spaseq.engine.stream_names import shown_streams, stream_iri, text_of_stream
from spaseq.errors import ArgumentError, EventError, QueryWarning, SpaseqError, kind_of
from spaseq.inputs import Stream, source_of
from spaseq.io.python_words import python_words
from spaseq.io.read_options import Framing, OnError, ReadOptions, TimeDomain
from spaseq.io.rows.mapping import MappingLike
from spaseq.io.source import Source
from spaseq.keyed_runs import KeyedRuns, divided
from spaseq.pipeline import BATCH, AtEnd, mappings_by_iri, merged
from spaseq.plan.wording import did_you_mean
from spaseq.program import AnyQuery, Program, compile_queries
from spaseq.rdf.accepted import Bindable
from spaseq.rdf.event import Event
from spaseq.rdf.time import TimePrecision, TimeUnit, duration_micros
from spaseq.result import Result

Duration: TypeAlias = timedelta | str | int | float
"""A duration: a timedelta, a text such as `"10s"` or `"PT10S"`, or a number of seconds."""
_CHOICES = {
    "unit": get_args(TimeUnit),
    "on_error": get_args(OnError),
    "time_precision": get_args(TimePrecision),
    "arrival_time": (True, False),
    "reuse_graph_names": (True, False),
    "event_metadata": (True, False),
}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "framing": Framing,
    "syntax": str,
    "time_predicate": str,
    "time_column": str,
    "workers": int,
    "contexts": Mapping,
}
Entail: TypeAlias = Literal["rdfs", "owl-ql"]


@python_words()
def run(
    program: Program | AnyQuery | Sequence[AnyQuery],
    streams: Mapping[str, Stream],
    kb: Mapping[str, Any] | None = None,
    bind: Mapping[str, Bindable] | None = None,
    options: ReadOptions | None = None,
    entail: Entail | None = None,
    max_groups: int | None = None,
    max_steps: int | None = None,
    max_memory: int | None = None,
    on_limit: OnLimit = "stop",
    map: Mapping[str, MappingLike] | None = None,
    time_column: str | None = None,
    workers: int | None = None,
    at_end: AtEnd = "close",
    *,
    framing: str | Framing | None = None,
    syntax: str | None = None,
    time_predicate: str | None = None,
    unit: TimeUnit | None = None,
    time_precision: TimePrecision | None = None,
    lateness: Duration | None = None,
    on_error: OnError | None = None,
    arrival_time: bool | None = None,
    clock: Callable[[], int] | None = None,
    contexts: Mapping[str, str] | None = None,
    reuse_graph_names: bool | None = None,
    event_metadata: bool | None = None,
    max_matches: int | None = None,
) -> Result:
    """Run queries over streams. Returns the matches, one by one or as a table.

    Args:
        program: A compiled program, or one or several queries as for `spaseq.compile`.
        streams: For each stream, by its IRI or its name in a query, one of:
            a path or a glob pattern, an open file, or a list of them;
            an iterable in time order of `Event`s, (timestamp, graph) or (timestamp, graph, name),
            see `Run.push`;
            a `pyoxigraph.Store` or `Dataset` or an `rdflib.Dataset` with a named graph for each
            event, or an iterable of quads, in the order of events;
            with a mapping in `map`: a file of rows, an Arrow table or reader, a frame of pandas or
            polars, a relation of DuckDB, or a list of them.
        kb: The knowledge base, as for `Program.start`.
        bind: Values of query variables, as for `Program.bind`.
        options: How to read, in one object; the keywords below take its fields one by one.
        entail: `rdfs` or `owl-ql`, as for `Program.start`.
        max_groups: As for `Program.start`.
        max_steps: As for `Program.start`.
        max_memory: As for `Program.start`. It also limits the framings that read all files first.
        on_limit: As for `Program.start`.
        map: For each stream of rows, by its IRI or its name, the mapping: its text, or the path
            of its file.
        time_column: The column of times, for rows whose mapping leaves `?_time` unbound.
        workers: The threads that match, 2 by default. A query over one stream of large files whose
            matches share a key is divided among them by that key (`explain` names it); all other
            queries have one. Another thread reads files ahead. With 1, nothing is read ahead.
        at_end: `close`: the end of all streams closes every window; matches of windows that a
            stream had not passed are `closed_by_end`. `open`: such matches are not returned.
        framing: How statements are cut into events: `auto`, `graph`, `message`, `subject`,
            `dataset`, `member` or `triples:N` (docs/formats.md).
        syntax: The syntax of files, such as `trig` or `csv`, instead of the extension's syntax.
        time_predicate: The IRI of the predicate of timestamps, or a path of predicates.
        unit: The unit of times that are plain numbers: `s`, `ms` or `us`.
        time_precision: How to treat a time finer than a microsecond: `error`, `truncate`, `round`.
        lateness: How late an event may be and still be reordered: a timedelta, a text such as
            `"10s"`, or a number of seconds. Events that are later are counted and dropped. By
            default streams are in order, and an event out of order is an error.
        on_error: Whether a malformed statement or event ends the run (`stop`) or is logged and
            skipped (`skip`).
        arrival_time: Whether the time of an event is its arrival time.
        clock: For `arrival_time`: returns microseconds since 1970-01-01T00:00:00Z.
        contexts: Files that replace remote JSON-LD contexts, by URL. The file of "" replaces all
            other remote contexts.
        reuse_graph_names: Whether a graph name that occurs again with a time is another event.
        event_metadata: Whether statements about the name of an event belong to it.
        max_matches: As for `Program.start`.

    Returns:
        A `Result`. Nothing is read before its first match is requested.

    Raises:
        ArgumentError: immediately, for an argument of a type that is not accepted.
        QueryError: immediately, if a query or a mapping is invalid; while iterating, if a mapping
            does not fit the columns.
        SpaseqError: immediately, if the streams do not fit the queries.
        InputError, EventError: while iterating, after the matches of all earlier events.

    Example:
        >>> for match in spaseq.run(Path("rise.rq"), streams={"trades": "trades.nq"}):
        ...     print(match["company"], match.end.datetime)
    """
    check_mapping("streams", streams)
    for name, given in (("kb", kb), ("bind", bind), ("map", map)):
        check_mapping(name, given)
    if entail is not None and not kb:
        message = f"entail={entail!r} adds nothing without a knowledge base: its schema is in kb="
        warnings.warn(message, QueryWarning, stacklevel=3)
    if not isinstance(program, Program):
        program = compile_queries(program, bind=bind)
    elif bind:
        program = program.bind(bind)
    contents = _by_iri(program, streams)
    read = _options(
        options,
        framing=_framing(framing),
        syntax=syntax,
        time_predicate=time_predicate,
        unit=unit,
        time_precision=time_precision,
        lateness=None if lateness is None else _micros("lateness", lateness),
        on_error=on_error,
        arrival_time=arrival_time,
        clock=clock,
        contexts=contexts,
        reuse_graph_names=reuse_graph_names,
        event_metadata=event_metadata,
        time_column=time_column,
        workers=workers,
    )
    maps = mappings_by_iri(program, map or {})
    for mapping in maps.values():
        for warning in mapping.shown_warnings():
            warnings.warn(warning, QueryWarning, stacklevel=3)
    started = program.start(
        kb=kb,
        entail=entail,
        max_groups=max_groups,
        max_steps=max_steps,
        max_memory=max_memory,
        on_limit=on_limit,
        max_matches=max_matches,
    )
    if max_memory is not None and read.max_memory is None:
        read = replace(read, max_memory=max_memory)
    domain, sources = TimeDomain(), list[Iterable[Event]]()
    for number, (iri, content) in enumerate(contents.items()):
        source = source_of(iri, content, number, read, domain, maps.get(iri))
        if isinstance(source, Source):
            source.relevance = started.relevance
        sources.append(source)
    live = any(not isinstance(s, Source) or s.live for s in sources)
    # An iterator keeps what is not read, and may never end.
    keeps = not any(isinstance(content, Iterator) for content in contents.values())
    ordered = merged(started, list(contents), sources, at_end, keeps)
    limited = any(limit is not None for limit in (max_groups, max_steps, max_matches, max_memory))

    def several() -> KeyedRuns | None:
        return None if limited or entail is not None else divided(started, program, sources)

    size = 1 if live else BATCH
    return Result(started, ordered, size, close=at_end == "close", several=several, sources=sources)


_EXAMPLES = {
    "streams": '{"trades": "trades.nq"}',
    "kb": '{"http://example.org/kb": "kb.ttl"}',
    "map": '{"trades": "trades.rq"}',
    "bind": '{"threshold": 20}',
}
"""Values of arguments that are mappings, for messages."""


def check_mapping(name: str, given: object) -> None:
    """Refuse an argument that is not a mapping.

    Raises:
        ArgumentError: naming the argument.
    """
    if (given is not None or name == "streams") and not isinstance(given, Mapping):
        example = _EXAMPLES.get(name)
        shown = f", as in {name}={example}" if example else ""
        raise ArgumentError(f"{name}: a dict is needed{shown}, not {kind_of(given)}")


def check_keywords(given: Mapping[str, object]) -> None:
    """Refuse keywords that `run` does not have, before it is called.

    Raises:
        ArgumentError: naming the keyword.
    """
    known = run.__annotations__.keys() - {"return"}
    for name in given:
        if name not in known:
            question = did_you_mean(name, known)
            raise ArgumentError(f"there is no argument {name}" + (question and f" ({question})"))


def _options(options: ReadOptions | None, **given: Any) -> ReadOptions:
    """The options with the keywords that are given.

    Raises:
        ArgumentError: for a keyword with a value that it does not accept.
        SpaseqError: for keywords that cannot be used together.
    """
    if options is not None and not isinstance(options, ReadOptions):
        raise ArgumentError(f"options: ReadOptions are needed, not {kind_of(options)}")
    changes = {name: value for name, value in given.items() if value is not None}
    for name, value in changes.items():
        choices = _CHOICES.get(name)
        if choices is not None and value not in choices:
            shown = ", ".join(map(repr, choices))
            raise ArgumentError(f"{name}: one of {shown} is needed, not {value!r}")
        kind = _TYPES.get(name)
        if kind is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ArgumentError(f"{name}: {kind_of(value)} is not accepted; see spaseq.run")
    return replace(options or ReadOptions(), **changes)


def _framing(given: str | Framing | None) -> Framing | None:
    """A framing that may be given as text.

    Raises:
        SpaseqError: for a text that is not a framing.
    """
    try:
        return Framing.parse(given) if isinstance(given, str) else given
    except ValueError as error:
        raise SpaseqError(f"framing: {error}") from None


def _micros(name: str, duration: Duration) -> int:
    """A duration in microseconds.

    Raises:
        ArgumentError: for a type that is not accepted.
        SpaseqError: if it is negative, or a text that is not a duration.
    """
    if isinstance(duration, timedelta):
        micros = duration // timedelta(microseconds=1)
    elif isinstance(duration, str):
        try:
            micros = duration_micros(duration)
        except EventError as error:
            raise SpaseqError(f"{name}: {error}") from error
    elif isinstance(duration, int | float) and not isinstance(duration, bool):
        micros = builtins.round(duration * 1_000_000)
    else:
        raise ArgumentError(
            f"{name}: a timedelta, a text such as '10s' or a number of seconds is needed, not "
            f"{kind_of(duration)}"
        )
    if micros < 0:
        raise SpaseqError(f"{name}: a duration is not negative, and this one is {duration}")
    return micros


def _by_iri(program: Program, streams: Mapping[str, Any]) -> dict[str, Any]:
    """Stream IRI → content, in the order in which the queries declare the streams."""
    named = {
        stream_iri(program, text_of_stream(name)): content for name, content in streams.items()
    }
    for iri in program.streams:
        if iri not in named:
            raise SpaseqError(f"the stream <{iri}> was not given; {shown_streams(program)}")
    return {iri: named[iri] for iri in program.streams}
