"""The files of one stream → its events in time order.

Invariant of the events: instants strictly increase, the ordinal counts the earlier events of the
same timestamp, facts are distinct, and no two events of a run share a blank node (labels are minted
from the numbers of the source and of the event). Memory: one block of lines and one event, or the
events within the allowed lateness.

Events are read in batches (spaseq/rdf/native/terms/batch.pxi): RDF's text syntaxes by compiled
readers, the others statement by statement. The reader yields a batch before a read that may block,
so a live source is not delayed.

A source that is not live is read ahead of its consumer by a thread (spaseq/rdf/ahead.py), and
decompressed by another one. That reader has separate counters. Each batch, and the end, arrive
together with the counters and the position in the file at that moment, and messages arrive in
order, so a consumer cannot tell how far ahead the thread has read.
"""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from spaseq.errors import InputError, SpaseqError
from spaseq.io.documents import DocumentFile
from spaseq.io.formats import StreamSyntax
from spaseq.io.framing_errors import Questions
from spaseq.io.line_file import LineFile
from spaseq.io.lines import STDIN, Lines, announces_messages
from spaseq.io.read_options import (
    Counters,
    ReadOptions,
    TimeDomain,
    Troubles,
    log_warning,
)
from spaseq.io.recognition import recognised
from spaseq.io.statements import Statement, block_statements, document_statements, line_statements
from spaseq.io.time_path import GENERATED_AT
from spaseq.rdf import time
from spaseq.rdf.ahead import Ahead, Lane, close_generator
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.formats import N_QUADS, RdfSyntax
from spaseq.rdf.native._framing import EventReader, Minter
from spaseq.rdf.native._nquads import LineReader
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance
from spaseq.rdf.reorder import StreamTime
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.io.grouping import Members

EVENTS_AT_ONCE = 256
"""The most events in a batch of a file that is read statement by statement."""
_Place: TypeAlias = tuple[int, int, bytes, str, int]
"""(time, order of the first statement, text, file, line) of an event."""
DIVISIBLE = ("graph", "message")
"""The framings whose files several threads may read: what precedes an event does not matter."""
STATEMENTS_AT_ONCE = 4096
"""The number of statements after which such a batch is yielded or refreshed, with or without
events."""


class OpenFile(Protocol):
    """A file that is being read; `position` is the number of bytes read so far."""

    @property
    def name(self) -> str: ...

    def position(self) -> int: ...


def _go_on() -> None:
    """The reader of a source without a thread stops when its consumer does."""


def _never() -> bool:
    """A source without a thread is read when its events are requested."""
    return False


@dataclass(slots=True)
class Source:
    """A stream read from successive files. `number` is its position in the run, or `IN_EVENT` of
    spaseq/rdf/native/framing/minting.pxi if its events leave the process.

    With `relevance`, events stay encoded, without the triples that no query can use.
    """

    stream: str
    files: Sequence[str]
    options: ReadOptions = field(default_factory=ReadOptions)
    number: int = 0
    domain: TimeDomain = field(default_factory=TimeDomain)
    log: Callable[[str], None] = log_warning
    counters: Counters = field(default_factory=Counters)
    lines: OpenFile | None = None
    """The file that is being read: progress is measured on it."""
    relevance: Relevance | None = None
    open_lines: Callable[[str], Lines] = Lines
    """Opens a file; Spark passes a function that opens a part of one."""
    go_on: Callable[[], None] = _go_on
    """Called by the reader in each step; it raises an exception if the consumer has stopped."""
    is_ahead: Callable[[], bool] = _never
    """Whether the caller is the thread that reads ahead of the consumer."""

    def __iter__(self) -> Iterator[Event]:
        """The events in order. An `InputError` is raised after the events before it."""
        batches = self._given(self.relevance or Relevance(Dictionary()))
        try:
            for batch in batches:
                for index in range(len(batch)):
                    self.counters.events += 1
                    self.counters.statements += batch.size(index)
                    if self.relevance is not None:
                        yield EncodedEvent(batch, index)
                    else:
                        yield _plain(batch, index)
        finally:
            close_generator(batches)

    def batches(self) -> Iterator[EventBatch]:
        """The same events in batches. A batch does not change after it is yielded."""
        batches = self._given(self.relevance or Relevance(Dictionary()))
        try:
            for batch in batches:
                total = batch.total()
                self.counters.events += len(batch)
                self.counters.statements += total
                self.counters.pruned += total - batch.total_kept()
                yield batch
        finally:
            close_generator(batches)

    def _given(self, relevance: Relevance) -> Iterator[EventBatch]:
        """The batches, read ahead or on request."""
        return self._read_ahead(relevance) if self.reads_ahead else self._batches(relevance)

    def _read_ahead(self, relevance: Relevance) -> Iterator[EventBatch]:
        """The batches, which a thread reads ahead."""
        reader = replace(self, counters=Counters(), lines=None)

        def steps(lane: Lane[_Step]) -> Iterator[_Step]:
            def log(text: str) -> None:
                if lane.is_own:
                    lane.put(text)
                else:
                    self.log(text)

            reader.log, reader.go_on = log, lane.check
            reader.is_ahead = lambda: lane.is_own
            failure: SpaseqError | None = None
            try:
                for batch in reader._batches(relevance):
                    yield batch, replace(reader.counters), reader._reached()
            except SpaseqError as error:
                failure = error
            yield None, replace(reader.counters), reader._reached()
            if failure is not None:
                raise failure

        dictionary, shared = relevance.dictionary, False

        def pays() -> bool:
            nonlocal shared
            if not reader._is_nearly_read:
                dictionary.share()
                shared = True
            return shared

        ahead = Ahead(steps, pays)
        try:
            for step in ahead:
                if isinstance(step, str):
                    self.log(step)
                    continue
                batch, read, self.lines = step
                counters = self.counters
                counters.skipped, counters.late = read.skipped, read.late
                counters.unused, counters.empty = read.unused, read.empty
                if batch is not None:
                    yield batch
        finally:
            ahead.stop()
            if shared:
                dictionary.unshare()

    def _reached(self) -> _Reached | None:
        """The position in the file that is being read."""
        return None if self.lines is None else _Reached(self.lines.name, self.lines.position())

    @property
    def _is_nearly_read(self) -> bool:
        """Whether the last file has at most one more block."""
        file = self.lines
        return isinstance(file, Lines) and file.is_last(self.files) and file.is_nearly_read()

    def _batches(self, relevance: Relevance) -> Iterator[EventBatch]:
        troubles = Troubles(self.options.on_error, self.counters, self.log)
        minter = Minter(self.number)
        if self.options.lateness is None:
            return self._read(relevance, troubles, minter)
        unsorted = self._read(relevance, troubles, None)
        return _reordered(unsorted, self.options.lateness, troubles, minter)

    def _read(
        self, relevance: Relevance, troubles: Troubles, minter: Minter | None
    ) -> Iterator[EventBatch]:
        return Reading(self, relevance, troubles, minter).batches()

    @property
    def live(self) -> bool:
        """Whether the input may still be growing."""
        return STDIN in self.files or self.options.arrival_time

    @property
    def reads_ahead(self) -> bool:
        """Whether a thread reads ahead of the consumer; it never waits for a pipe."""
        return self.options.workers > 1 and not self.live and not any(map(_may_block, self.files))


@dataclass(frozen=True, slots=True)
class _Reached:
    """A file and the number of bytes read of it, at some moment."""

    name: str
    bytes: int

    def position(self) -> int:
        return self.bytes


_Step: TypeAlias = str | tuple[EventBatch | None, Counters, _Reached | None]
"""A message, or a batch (None at the end) with the counters and the position at its moment."""


def _may_block(path: str) -> bool:
    """Whether a path is something other than a regular file; it need not exist."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _plain(batch: EventBatch, index: int) -> Event:
    return Event(
        batch.stream,
        batch.time(index),
        batch.ordinal(index),
        tuple(batch.facts(index)),
        batch.name(index),
        f"{batch.file}:{batch.line(index)}",
    )


class Reading:
    """The state of one pass over the files of a source."""

    def __init__(
        self, source: Source, relevance: Relevance, troubles: Troubles, minter: Minter | None
    ):
        self._source = source
        self._options = source.options
        self._troubles = troubles
        self._questions = Questions(source.options, source.domain, troubles)
        factor = time.MICROS_PER_UNIT[source.options.unit]
        self._events = EventReader(relevance, self._questions, source.stream, minter, factor)
        self.document: DocumentFile | None = None
        """The document that `steps` reads."""
        self._relevance = relevance
        self._minter = minter
        self._last_line = 0

    @property
    def events(self) -> EventReader:
        """The reader that the statements are passed to."""
        return self._events

    @property
    def questions(self) -> Questions:
        """The answers to the questions of that reader."""
        return self._questions

    def batches(self) -> Iterator[EventBatch]:
        """The events of all files, in the order they are read."""
        if self._options.framing.kind == "dataset":
            yield from self._data_set()
            return
        if self._options.framing.kind == "member":
            yield from self._members()
            return
        named = self._options.syntax
        for path in self._source.files:
            file = self._source.open_lines(path)
            self._source.lines = file
            try:
                file.options = self._options
                known = recognised(file, path, named)
                self._troubles.note = known.note
                if self._options.workers > 1 and not file.is_live:
                    file.read_ahead()
                yield from self._file_batches(file, known.syntax)
            finally:
                file.close()

    def _file_batches(self, file: Lines, syntax: StreamSyntax) -> Iterator[EventBatch]:
        """The events of one file, including those before the error that ends it."""
        events, counters = self._events, self._source.counters
        kind = self.start(file, syntax)
        unused = untimed = 0
        failure: InputError | None = None
        steps = self.steps(file, syntax, kind)
        try:
            while failure is None:
                self._source.go_on()
                try:
                    more = next(steps, False)
                    if not more:
                        self.finish(file, kind)
                except InputError as error:
                    failure = self.failed(error)
                    more = False
                counters.unused += events.unused - unused
                counters.empty += events.untimed - untimed
                unused, untimed = events.unused, events.untimed
                if len(events.batch):
                    yield events.fresh()
                if not more:
                    break
                events.refresh()
        finally:
            close_generator(steps)
        if failure is not None:
            raise failure

    def start(self, file: Lines, syntax: StreamSyntax, framing: str | None = None) -> str:
        """Prepare for a file. Returns the kind of framing that cuts it into events.

        `framing` is that of a file whose beginning is not read again.
        """
        options = self._options
        kind: str = framing or options.framing.kind
        if kind == "auto":
            is_messages = syntax.has_messages or announces_messages(file.head())
            kind = "message" if is_messages else "graph"
        self._questions.file = file.name
        file.unit = self._troubles.unit = syntax.unit
        self._start_events(self._events, file.name, kind)
        return kind

    def start_messages(self, channel: str, kind: str, timed: bool) -> None:
        """Prepare for the messages of a channel; `timed`: whether their times are in them."""
        self._start_events(self._events, channel, kind, timed=timed)

    def _start_events(
        self,
        events: EventReader,
        file: str,
        kind: str,
        predicate: str | None = None,
        cut: str | None = None,
        timed: bool = True,
    ) -> None:
        """Prepare a reader for a file.

        `predicate` is the default predicate of timestamps; `cut` says how the reader cuts, if not
        by `kind`.
        """
        options = self._options
        named, steps = options.named_predicate(), options.time_steps()
        if kind in ("graph", "dataset"):
            predicates = named if named or steps else (GENERATED_AT,)
        elif kind == "triples" or steps:
            predicates = named
        else:
            predicates = options.time_predicates()
            if predicate is not None and options.time_predicate is None:
                predicates = (predicate,)
        events.start_file(
            file,
            cut or kind,
            options.framing.size + len(named),
            predicates,
            timed and not options.arrival_time,
            bool(named) or kind in ("subject", "member"),
            options.reuse_graph_names,
            options.event_metadata,
            steps,
        )
        events.refresh()

    def finish(self, file: Lines, kind: str) -> None:
        """Finish the last event of a file."""
        self._events.finish()
        if kind in ("graph", "subject") and self._events.unused and not self._events.filled:
            self._questions.no_event(file.number)

    def failed(self, error: InputError) -> InputError:
        """The error that ends a file. The graph before it becomes an event if it is whole."""
        malformed = self._troubles.malformed
        if malformed is None or not self._questions.is_whole_before(
            self._events.whole(), malformed
        ):
            return error
        try:
            self._events.finish(torn=True)
        except InputError as another:
            return another
        return error

    # ------------------------------------------------------------ syntaxes

    def steps(self, file: Lines, syntax: StreamSyntax, kind: str) -> Iterator[bool]:
        """Read the file into events; True each time that a batch may be yielded."""
        is_messages = kind == "message"
        if syntax.read is None and syntax.syntax.line_based:
            yield from self._line_steps(file, syntax.syntax, kind)
            return
        if syntax.steps is not None and kind != "subject":
            yield from syntax.steps(file, self._events, self._troubles, is_messages)
            return
        if syntax.read is None:
            document = DocumentFile(self._events, file, syntax.syntax, self._troubles, is_messages)
            self.document = document
            yield from document.steps()
            statements = document.rest()
        else:
            statements = self._statements(file, syntax, is_messages)
        most = 1 if file.is_live else EVENTS_AT_ONCE
        count = 0
        for quad, line in statements:
            self._events.statement(quad, line)
            count += 1
            if len(self._events.batch) >= most or count == STATEMENTS_AT_ONCE:
                count = 0
                yield True

    def _statements(self, file: Lines, syntax: StreamSyntax, messages: bool) -> Iterator[Statement]:
        if syntax.read is None:
            read = line_statements if syntax.syntax.line_based else document_statements
            return read(file, syntax.syntax, self._troubles)
        return syntax.read(file, syntax.syntax, self._troubles, messages)

    # ------------------------------------------------------------ all files first

    def _scopes(self) -> Iterator[tuple[str, str]]:
        """Each file, with the prefix of its blank nodes' labels."""
        for number, path in enumerate(self._source.files):
            yield path, f"f{number}-" if len(self._source.files) > 1 else ""

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[Lines, StreamSyntax]]:
        """A file that is read before the first event."""
        file = self._source.lines = self._source.open_lines(path)
        file.options = self._options
        try:
            known = recognised(file, path, self._options.syntax)
            self._troubles.note = known.note
            self._questions.file = file.name
            file.unit = self._troubles.unit = known.syntax.unit
            yield file, known.syntax
            self._last_line = file.number
        finally:
            file.close()

    def _unsorted(self, relevance: Relevance, cut: str, predicate: str | None) -> EventReader:
        """A reader whose events are not in order."""
        factor = time.MICROS_PER_UNIT[self._options.unit]
        events = EventReader(relevance, self._questions, self._source.stream, None, factor)
        self._start_events(events, "", self._options.framing.kind, predicate, cut)
        return events

    def _data_set(self) -> Iterator[EventBatch]:
        """The events of the graphs of all files."""
        # Imported here and below, since most files are in order and need no sorting on disk.
        from spaseq.io.grouping import Dataset

        source, events = self._source, self._events
        data = Dataset(self._relevance.dictionary, source.stream, self._options.max_memory)
        unused = 0
        try:
            for path, scope in self._scopes():
                with self._opened(path) as (file, syntax):
                    data.start_file(file.name, scope)
                    self._start_events(events, file.name, "dataset")
                    events.collector = data.collector
                    for _ in self.steps(file, syntax, "dataset"):
                        events.refresh()
                        data.limit(events)
                    events.finish()
                    unused += events.unused
            timed = self._unsorted(self._relevance, "graph", None)
            has_events = data.make_events(timed.events_of)
            unused += data.unused
            source.counters.unused += unused
            self._check_events(has_events, unused)
            assert self._minter is not None  # this framing does not support lateness
            yield from data.batches(self._minter)
        finally:
            data.close()

    def _members(self) -> Iterator[EventBatch]:
        """The events of the members of all files.

        The text of each event is read twice: once for its time, and once in time order.
        """
        from spaseq.io.grouping import Members

        members = Members(self._options.max_memory)
        for path, scope in self._scopes():
            with self._opened(path) as (file, syntax):
                members.read(self._statements(file, syntax, False), file.name, scope)
        order = self._timed(members)
        self._source.counters.unused += members.unused
        self._check_events(bool(order), members.unused)
        yield from self._in_order(order, members.path)

    def _check_events(self, has_events: bool, unused: int) -> None:
        """Report files without an event."""
        if not has_events and unused and self._last_line:
            self._questions.no_event(self._last_line)

    def _timed(self, members: Members) -> list[_Place]:
        """The texts of the events by time and order."""
        events = self._unsorted(Relevance(Dictionary(), []), "graph", members.path)
        lines = LineReader(events, True)
        places: list[_Place] = []
        for group in members.groups(self._troubles):
            self._read_group(events, lines, group.quads, group.file, group.line)
            if len(events.batch):
                micros = events.batch.micros(0)
                places.append((micros, group.order, group.quads, group.file, group.line))
                events.fresh("")
            else:
                events.refresh()
        places.sort()
        return places

    def _in_order(self, places: list[_Place], predicate: str | None) -> Iterator[EventBatch]:
        """The events of the texts in the order of the places."""
        events = self._events
        for _, _, text, file, line in places:
            if file != events.batch.file:
                if len(events.batch):
                    yield events.fresh()
                self._start_events(events, file, "member", predicate, "graph")
                lines = LineReader(events, True)
            self._read_group(events, lines, text, file, line)
            if len(events.batch) >= EVENTS_AT_ONCE:
                yield events.fresh()
            events.refresh()
        if len(events.batch):
            yield events.fresh()

    def _read_group(
        self, events: EventReader, lines: LineReader, text: bytes, file: str, line: int
    ) -> None:
        """Read the text of one event; its errors name the line of its first statement."""
        self._questions.at(file, line)
        lines.number(line)
        at = lines.read(text, 0, len(text))
        while at < len(text):
            behind = lines.behind_sure(text, at, len(text))
            some = block_statements(line, text[at:behind], file, N_QUADS, self._troubles)
            for quad, _ in some:
                events.statement(quad, line)
            at = lines.read(text, behind, len(text))
        events.finish()
        self._questions.at(file, None)

    # ------------------------------------------------------------ lines

    def _line_steps(self, file: Lines, syntax: RdfSyntax, kind: str) -> Iterator[bool]:
        """Read a file of lines, a long one with several threads."""
        reader = LineFile(self._events, file.name, syntax, self._troubles, file.number + 1)
        workers = self._options.workers
        # Two threads are already busy, with reading ahead and with matching.
        may_divide = kind in DIVISIBLE and workers > 2 and not self._options.event_metadata
        for _ in reader.steps(file):
            yield True
            # The domain of time, which the first event sets, must be known to all threads.
            if (
                may_divide
                and self._source.is_ahead()
                and self._source.domain.kind
                and file.is_divisible()
            ):
                # Imported here, since most files are short.
                from spaseq.io.line_parts import LineParts

                part_reader = partial(self._part, file, syntax, kind)
                parts = LineParts(file, reader, part_reader, workers)
                if parts.pays():
                    may_divide = False
                    yield from parts.steps()

    def _part(self, file: Lines, syntax: RdfSyntax, kind: str) -> LineFile:
        """The reader of a part of a file; an error ends it."""
        troubles = Troubles("stop", Counters())
        questions = Questions(self._options, replace(self._source.domain), troubles)
        questions.file = file.name
        factor = time.MICROS_PER_UNIT[self._options.unit]
        events = EventReader(self._relevance, questions, self._source.stream, None, factor)
        self._start_events(events, file.name, kind)
        return LineFile(events, file.name, syntax, troubles)


def _reordered(
    arrivals: Iterator[EventBatch], lateness: int, troubles: Troubles, minter: Minter
) -> Iterator[EventBatch]:
    """The events in order, from a heap of the events that the watermark has not reached.

    `spaseq.rdf.reorder` defines which events are late.
    """
    waiting: list[tuple[int, int, EventBatch, int]] = []
    stream = StreamTime(lateness)
    watermark = stream.bound
    arrived = 0
    failure: InputError | None = None
    ready = _Ready(minter)
    while failure is None:
        try:
            batch = next(arrivals, None)
        except InputError as error:
            batch, failure = None, error
        if batch is None:
            break
        for index in range(len(batch)):
            micros = batch.micros(index)
            if micros < watermark:
                stamp = batch.time(index)
                closed = time.from_micros(watermark, stamp.domain).term.value
                troubles.late(
                    f"its time is {stamp.term.value}, but all times before {closed} are closed",
                    batch.file,
                    batch.line(index),
                )
                continue
            arrived += 1
            heapq.heappush(waiting, (micros, arrived, batch, index))
            watermark = stream.reach(micros)
            while waiting and waiting[0][0] <= watermark:
                yield from ready.add(*heapq.heappop(waiting)[2:])
        yield from ready.rest()
    while waiting:
        yield from ready.add(*heapq.heappop(waiting)[2:])
    yield from ready.rest()
    if failure is not None:
        raise failure


class _Ready:
    """Copies events whose order is final into new batches."""

    def __init__(self, minter: Minter):
        self._minter = minter
        self._batch: EventBatch | None = None

    def add(self, batch: EventBatch, index: int) -> Iterator[EventBatch]:
        """Copy an event. Yields the batch before it if the event needs another one."""
        ready = self._batch
        if ready is not None and (ready.file != batch.file or len(ready) >= EVENTS_AT_ONCE):
            yield from self.rest()
            ready = None
        if ready is None:
            ready = self._batch = EventBatch(batch.dictionary, batch.stream, batch.file)
        self._minter.copy(batch, index, ready)

    def rest(self) -> Iterator[EventBatch]:
        """The batch that has not been yielded."""
        ready, self._batch = self._batch, None
        if ready is not None:
            yield ready
