"""What a caller gives as a stream → sources of events.

A stream is files (paths, glob patterns or open files), tables, data sets of named graphs (of
pyoxigraph or rdflib, or an iterable of quads), or an iterable of events. Data sets are written as
N-Quads and read like a file, so the rules for files apply to them. An iterable of quads is consumed
while it is read. Cost: linear, with Python code for each quad or event.
"""

from __future__ import annotations

import glob
import heapq
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from os import PathLike
from typing import IO, Any, Protocol, TypeAlias

import pyoxigraph as ox

from spaseq.engine.python_graphs import facts_of, name_of, term_of
from spaseq.errors import ArgumentError, EventError, SpaseqError, kind_of
from spaseq.io.lines import Lines
from spaseq.io.read_options import Counters, Framing, ReadOptions, TimeDomain, Troubles
from spaseq.io.redirections import shown_url
from spaseq.io.remote_files import is_remote_file
from spaseq.io.rows.formats import is_table
from spaseq.io.rows.mapping import RowMapping
from spaseq.io.source import Source
from spaseq.pipeline import file_source
from spaseq.rdf.accepted import AnyEvent, AnyTerm
from spaseq.rdf.compression import Decompressed
from spaseq.rdf.event import DATE_TIME, Event, Fact, Timestamp, n_triples
from spaseq.rdf.reorder import StreamTime
from spaseq.rdf.time import from_micros, from_value, json_value, mixed_domains


class ArrowStream(Protocol):
    """A table or reader of pyarrow, a frame of pandas or polars, a relation of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """A record batch."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...


Path: TypeAlias = str | PathLike[str]
File: TypeAlias = Path | IO[bytes] | IO[str] | ArrowStream | ArrowArray
AnyQuad: TypeAlias = ox.Quad | tuple[AnyTerm, AnyTerm, AnyTerm, AnyTerm | None]
Stream: TypeAlias = (
    File | Sequence[File] | ox.Store | ox.Dataset | Iterable[AnyQuad] | Iterable[AnyEvent]
)
"""What a stream of `spaseq.run` may be."""

QUADS_AT_ONCE = 1024
"""The number of quads that are written as N-Quads at a time."""
_PATTERN = frozenset("*?[")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def source_of(
    iri: str,
    content: object,
    number: int,
    options: ReadOptions,
    domain: TimeDomain,
    mapping: RowMapping | None,
) -> Iterable[Event]:
    """The source of a stream.

    Args:
        iri: The IRI of the stream.
        content: What the caller gave.
        number: The position of the stream in the run.
        options: How it is read.
        domain: The domain of time of the run.
        mapping: The mapping of its rows, if there is one.

    Raises:
        ArgumentError: if the content has a type that a stream cannot have.
        SpaseqError: if it does not fit the mapping.
    """
    files = _files(content)
    if files is not None:
        return _read(iri, files, number, options, domain, mapping)
    if mapping is not None:
        raise SpaseqError(
            f"the stream <{iri}> has a mapping, but {kind_of(content)} is not a "
            f"file, Arrow table or data frame{_as_table(content)}"
        )
    if isinstance(content, Mapping | bytes) or not isinstance(content, Iterable):
        raise ArgumentError(
            f"streams: the stream <{iri}> is {_shown(content)}; give a path, an open file, a table "
            "with a mapping, a data set, or an iterable of events (timestamp, graph)"
            + ("; spaseq.arun takes asynchronous ones" if hasattr(content, "__aiter__") else "")
        )
    if _is_rdflib_graph(content) and options.framing.kind == "auto":
        raise ArgumentError(
            f"streams: the stream <{iri}> is one graph, in which no event begins or ends; give a "
            "data set with a named graph for each event, or a framing that cuts a graph into "
            'events, such as framing="subject"'
        )
    if isinstance(content, ox.Store | ox.Dataset) or hasattr(content, "quads"):
        if options.framing.kind == "auto":
            options = replace(options, framing=Framing("dataset"))
        found = content.quads() if hasattr(content, "quads") else content
        return _in_memory(iri, type(content).__name__, found, number, options, domain)
    listed = isinstance(content, list | tuple) and content and _is_statement(content[0])
    if listed or _is_rdflib_graph(content):
        return _in_memory(iri, type(content).__name__, content, number, options, domain)
    if isinstance(content, list | tuple):
        return _pushed(iri, content, number, options)
    return _looked_at(iri, content, number, options, domain)


def _as_table(content: object) -> str:
    """Advice on how to turn rows into a table, for messages."""
    if hasattr(content, "collect"):
        return ": its method collect() makes one"
    if isinstance(content, list | tuple) and content and isinstance(content[0], Mapping):
        return ": pyarrow.Table.from_pylist makes a table of dicts"
    return ""


def _shown(content: object) -> str:
    """A value of the wrong type, for messages."""
    text = repr(content)
    shown = content is not None and len(text) <= 40
    return kind_of(content) + (f" ({text})" if shown else "")


# ------------------------------------------------------------------ files


def _files(content: Any) -> list[Any] | None:
    """The paths, open files and tables that a stream consists of; None if it does not."""
    if _is_file(content):
        return _paths(content)
    if isinstance(content, list | tuple) and content and all(map(_is_file, content)):
        return [file for item in content for file in _paths(item)]
    return None


def _is_file(content: Any) -> bool:
    return isinstance(content, str | PathLike) or is_table(content) or hasattr(content, "read")


def _paths(content: Any) -> list[Any]:
    """The files that a path or a glob pattern names; an open file or a table is returned itself."""
    if not isinstance(content, str | PathLike):
        return [content]
    path = os.fspath(content)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if os.path.exists(path):
        return [path]
    if _URL.match(path):
        if is_remote_file(path):
            return [path]
        raise SpaseqError(
            f"streams: {shown_url(path)} is not the URL of a finished file, and run reads those to "
            "their end: arun and the command spaseq run follow sources that go on"
        )
    if not _PATTERN.intersection(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise SpaseqError(f"no file matches {path}")
    return found


def _read(
    iri: str,
    files: Sequence[Any],
    number: int,
    options: ReadOptions,
    domain: TimeDomain,
    mapping: RowMapping | None,
) -> Source:
    """The source of files, some of which may be open."""
    opened: dict[str, Any] = {}
    names = [_entered(opened, file) if hasattr(file, "read") else file for file in files]
    if not opened:
        return file_source(iri, files, mapping, options, number, domain)
    if mapping is not None:
        raise ArgumentError(f"streams: the rows of <{iri}> are read from a path or a table")
    if len({id(file) for file in opened.values()}) < len(opened):
        raise ArgumentError(f"streams: the stream <{iri}> has the same open file twice")

    def open_lines(path: str) -> Lines:
        return OpenedLines(path, _binary(opened[path])) if path in opened else Lines(path)

    # A file of the caller is read in the thread of the caller.
    alone = replace(options, workers=1)
    return Source(iri, names, alone, number, domain, open_lines=open_lines)


def _entered(opened: dict[str, Any], file: Any) -> str:
    """Register an open file under a unique name. Returns the name."""
    name = getattr(file, "name", None)
    shown = name if isinstance(name, str) else type(file).__name__
    numbered = (f"<{shown} {number}>" for number in count(2))
    name = next(each for each in chain([f"<{shown}>"], numbered) if each not in opened)
    opened[name] = file
    return name


class OpenedLines(Lines):
    """The lines of a file that the caller has opened and will close."""

    def __init__(self, name: str, file: IO[bytes]):
        super().__init__(name.strip("<>"), file)
        self.name = name

    def close(self) -> None:
        """Stop reading."""
        file = getattr(self, "_file", None)
        if isinstance(file, Decompressed):
            file.stop()

    def base(self) -> str | None:
        """None: relative IRIs have no base."""
        return None


def _binary(file: Any) -> IO[bytes]:
    """An open file as a binary file that can be read in blocks."""
    if isinstance(file, io.TextIOBase):
        below = getattr(file, "buffer", None)
        return io.BytesIO(file.read().encode()) if below is None else below
    if hasattr(file, "read1"):
        found: IO[bytes] = file
        return found
    return io.BufferedReader(_Blocks(iter(lambda: file.read(1 << 16), b"")))


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]):
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


# ------------------------------------------------------------------ quads


def _is_rdflib_graph(content: object) -> bool:
    return hasattr(content, "namespace_manager") and not hasattr(content, "quads")


def _is_statement(item: Any) -> bool:
    """Whether an item of an iterable is a quad or a triple; events begin with a time."""
    if isinstance(item, ox.Quad | ox.Triple):
        return True
    return isinstance(item, tuple) and len(item) == 4


def _in_memory(
    iri: str,
    name: str,
    quads: Iterable[Any],
    number: int,
    options: ReadOptions,
    domain: TimeDomain,
) -> Source:
    """The source of quads that are in memory."""
    data = b"".join(_lines(quads))
    shown = f"<{name}>"
    written = replace(options, syntax="nq")

    def open_lines(path: str) -> Lines:
        return OpenedLines(path, io.BytesIO(data))

    return Source(iri, [shown], written, number, domain, open_lines=open_lines)


def _looked_at(
    iri: str, content: Iterable[Any], number: int, options: ReadOptions, domain: TimeDomain
) -> Iterator[Event]:
    """The events of an iterable; its first item shows whether it has events or quads."""
    items = iter(content)
    first = next(items, None)
    if first is None:
        return
    items = chain((first,), items)
    if not _is_statement(first):
        yield from _pushed(iri, items, number, options)
        return

    def open_lines(path: str) -> Lines:
        return OpenedLines(path, io.BufferedReader(_Blocks(_lines(items))))

    # The iterable of the caller is read in the thread of the caller.
    alone = replace(options, syntax="nq", workers=1)
    yield from Source(iri, ["<quads>"], alone, number, domain, open_lines=open_lines)


def _lines(quads: Iterable[Any]) -> Iterator[bytes]:
    """Quads as N-Quads, several at a time."""
    rest = iter(quads)
    while some := list(islice(rest, QUADS_AT_ONCE)):
        yield "".join(map(_line, some)).encode()


def _line(quad: Any) -> str:
    if isinstance(quad, ox.Quad):
        name = quad.graph_name
        parts: tuple[Any, ...] = (quad.subject, quad.predicate, quad.object)
        graph = None if isinstance(name, ox.DefaultGraph) else name
    elif isinstance(quad, ox.Triple):
        parts, graph = (quad.subject, quad.predicate, quad.object), None
    else:
        parts, graph = tuple(quad[:3]), quad[3] if len(quad) > 3 else None
        graph = getattr(graph, "identifier", graph)  # rdflib: a graph, or its name
        if isinstance(graph, ox.DefaultGraph) or str(graph) == _RDFLIB_DEFAULT:
            graph = None
    terms = [n_triples(term_of(part)) for part in parts]
    return " ".join([*terms, *([] if graph is None else [str(term_of(graph))]), ".\n"])


_RDFLIB_DEFAULT = "urn:x-rdflib:default"
"""The name that rdflib gives to the default graph of a data set."""


# ------------------------------------------------------------------ events


def _pushed(
    stream: str, items: Iterable[Any], number: int, options: ReadOptions
) -> Iterator[Event]:
    """Events from the items of a caller's iterable, in order and with ordinals."""
    counters = Counters()
    troubles = Troubles(options.on_error, counters)
    events = _read_events(stream, items, number, options, troubles)
    if options.lateness is not None:
        events = _reordered(events, options.lateness, troubles)
    last: int | None = None
    ordinal = 0
    for event in events:
        micros = event.time.micros
        if last is not None and micros < last:
            message = (
                f"time runs backwards in <{stream}>: {json_value(event.time)} is before the time "
                "of the previous event; sort the events, or name a lateness"
            )
            if options.on_error == "stop":
                raise EventError(message)
            troubles.report(message, event.origin, None)
            continue
        ordinal = ordinal + 1 if micros == last else 0
        last = micros
        yield replace(event, ordinal=ordinal)


def _read_events(
    stream: str, items: Iterable[Any], number: int, options: ReadOptions, troubles: Troubles
) -> Iterator[Event]:
    """The events of the items, each with the ordinal 0."""
    domain = ""
    for place, item in enumerate(items, 1):
        origin = f"event {place} of <{stream}>"
        try:
            stamp, facts, name = _parts(item, f"s{number}e{place}", options)
            if options.arrival_time:
                stamp = from_micros(options.clock(), DATE_TIME)
            domain = domain or stamp.domain
            if stamp.domain != domain:
                raise EventError(mixed_domains(domain, stamp.domain, origin))
        except EventError as error:
            if options.on_error == "stop":
                raise
            troubles.report(str(error), origin, None)
            continue
        yield Event(stream, stamp, 0, facts, name, origin)


_Parts: TypeAlias = tuple[Timestamp, Sequence[Fact], "ox.NamedNode | ox.BlankNode | None"]


def _parts(item: Any, scope: str, options: ReadOptions) -> _Parts:
    """The time, the facts and the name of an event."""
    if isinstance(item, Event):
        return item.time, item.facts, item.name
    try:
        if isinstance(item, Mapping):
            raise TypeError
        timestamp, graph, *rest = item
    except (TypeError, ValueError):
        rows = "; rows are a table with a mapping" if isinstance(item, Mapping) else ""
        raise EventError(
            f"{item!r} is not an event; use an Event or (timestamp, graph){rows}"
        ) from None
    stamp = from_value(timestamp, options.unit, options.time_precision)
    return stamp, facts_of(graph, scope), name_of(rest[0] if rest else None)


def _reordered(events: Iterator[Event], lateness: int, troubles: Troubles) -> Iterator[Event]:
    """The events in time order, by the rules for files (`spaseq.io.source`)."""
    waiting: list[tuple[int, int, Event]] = []
    stream = StreamTime(lateness)
    watermark = stream.bound
    for arrived, event in enumerate(events):
        micros = event.time.micros
        if micros < watermark:
            closed = from_micros(watermark, event.time.domain)
            troubles.late(
                f"its time is {json_value(event.time)}, and all before {json_value(closed)} "
                "is closed",
                event.origin,
                None,
            )
            continue
        heapq.heappush(waiting, (micros, arrived, event))
        watermark = stream.reach(micros)
        while waiting and waiting[0][0] <= watermark:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
