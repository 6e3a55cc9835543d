"""The owner of the server's state: one thread, which executes calls one at a time.

Requests arrive as calls in a queue, and are answered by futures. The thread takes the calls that
have arrived, executes each on the machine (`spaseq.server.machine`) and writes it to the journal.
Then it makes the journal durable once for all of them, publishes the matches, and answers. A client
is therefore never told of anything that a crash could undo, and one sync serves many requests.

Between two turns it makes a checkpoint if one is due, in a copy of the process
(`spaseq.live.checkpoints`).
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import astuple, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from spaseq.engine.changes import StatePolicy
from spaseq.errors import StateError
from spaseq.live.checkpoints import Checkpoints
from spaseq.live.coordinator import MAX_PENDING_EVENTS
from spaseq.live.protocols import Chunk
from spaseq.live.state import Checkpoint, StateFolder
from spaseq.live.status import INTERVAL_SECONDS
from spaseq.program import Program
from spaseq.rdf._batch import EventBatch
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.server.board import Board
from spaseq.server.bodies import Body
from spaseq.server.components import Holding
from spaseq.server.deliveries import Deliveries, Place
from spaseq.server.event_search import find_event
from spaseq.server.feeds import chunk_record
from spaseq.server.inputs import Accepted, Late, time_of_json
from spaseq.server.journal import Journal
from spaseq.server.kb_graphs import KbGraph
from spaseq.server.machine import Machine, RunStopped
from spaseq.server.problems import Problem
from spaseq.server.recovery import blamed, failure_record, recovered
from spaseq.server.run_options import RunSettings
from spaseq.server.sources import SourceReader, Sources
from spaseq.server.standing import Definition, Standing
from spaseq.server.topics import Topic

TURN_CALLS = 256
"""The most calls of one turn."""
WAIT_SECONDS = 0.05
"""Seconds after which the thread checks idle streams and checkpoints."""
_T = TypeVar("_T")


@dataclass(slots=True)
class _Call(Generic[_T]):
    """A call and its answer; `size`: the bytes that it holds in the queue."""

    function: Callable[[], _T]
    future: Future[_T]
    size: int


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Where and how the engine keeps its state.

    Args:
        folder: The state folder.
        checkpoint: Seconds between two checkpoints.
        idle: Seconds after which a silent stream no longer holds back the others; None: never.
        queued_bytes: The bytes of events that may wait in the queue.
        durable: Whether the folder outlives the process.
        sources: Name of a stream → the paths or URLs that feed it.
        sinks: Name of a sink → its URL.
    """

    folder: Path
    checkpoint: float = 10.0
    idle: float | None = 10.0
    queued_bytes: int = 1 << 26
    durable: bool = True
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)


class Engine:
    """The thread and what it owns.

    Args:
        settings: Where and how the state is kept.
        run: What holds for all queries.
        board: Where matches are published.
        log: Reports what happens.

    Raises:
        SpaseqError: if the folder cannot be used, or its state cannot be continued.
    """

    def __init__(
        self,
        settings: EngineSettings,
        run: RunSettings,
        board: Board,
        log: Callable[[str], None] = lambda text: None,
    ):
        self._settings = settings
        self.run_settings = run
        self.board = board
        self._log = log
        self._calls: deque[_Call[Any]] = deque()
        self._arrived = threading.Condition()
        self._queued = 0
        self._is_stopping = False
        self._is_closed = False
        self.failure: BaseException | None = None
        """The error that ended the thread."""
        self.ended: Callable[[], None] = lambda: None
        """Called in the thread when it ends."""
        self._checkpoint_waiters: list[tuple[int, int, Future[int]]] = []
        """(the number to wait for, the failures before, the answer)."""
        self._folder = StateFolder(str(settings.folder), log)
        self.kb_folder = settings.folder / "kb"
        self.kb_folder.mkdir(exist_ok=True)
        self._journal = Journal(settings.folder, log)
        self._lows: list[int] = []
        self.started = time.monotonic()
        self.holding: Sequence[Holding] = ()
        """The streams that hold back others, since the last look."""
        self._looked = 0.0
        self._turn_begun: float | None = None
        stored = self._folder.checkpoints()
        last = stored[0] if stored else None
        # A query can have the name of a removed query, but none of its matches.
        self.machine = recovered(
            lambda: self._restored(last),
            last,
            self._journal,
            log,
            lambda machine: board.keep(machine.listed),
        )
        self.board.keep(self.machine.listed)
        self._lows = [0 if last is None else last.header["low"]]
        self.checkpoints = Checkpoints(
            self._folder, board, self._saved, self._positions, self._header,
            self._acknowledge, 0 if last is None else last.number, settings.checkpoint, log,
        )  # fmt: skip
        self.deliveries = Deliveries(
            settings.sinks, settings.folder / "deliveries",
            self._folder.identifier, lambda: self.machine.runs.all, log,
        )  # fmt: skip
        board.deliver = self.deliveries.wake
        self.sources = Sources(settings.sources, self._arrived, settings.durable, log)
        try:
            self.sources.check(self.machine.feeds, str(settings.folder))
        except StateError:
            self.close()
            raise
        self._thread = threading.Thread(target=self._loop, name="spaseq-engine", daemon=True)

    def _restored(self, checkpoint: Checkpoint | None) -> Machine:
        """A machine without a state, and the matches of a checkpoint."""
        self.board.restore({} if checkpoint is None else checkpoint.header["token"])
        return Machine(self.run_settings, self.kb_folder, self.board.add)

    def _rewound(self, begins: Mapping[str, int], generations: Mapping[str, int | None]) -> Machine:
        """A machine without a state; matches that were already published are omitted.

        Args:
            begins: Query → the number of its first match after the checkpoint.
            generations: Query → the record that registered it. A query of the same name that has
                been removed since has other matches.
        """

        def found(match: Match, identifier: str) -> None:
            if machine.born(match.query) == generations.get(match.query):
                self.board.add(match, identifier)

        self.board.rewind(begins)
        machine = Machine(self.run_settings, self.kb_folder, found)
        return machine

    # ------------------------------------------------------------ calls

    def start(self) -> None:
        """Start the thread, and those of the sources."""
        self._begin_sources()
        for reader in self.sources.unread:
            self._log(f"the source of {reader.name} is read when a query reads this stream")
        self.board.publish(self.machine.new_watermarks())
        self.deliveries.begin(self._delivered)
        self._thread.start()

    @property
    def sink_names(self) -> Collection[str]:
        """The sinks that queries can name."""
        return self._settings.sinks.keys()

    @property
    def _delivered(self) -> dict[Place, Topic]:
        """The deliveries that the queries want."""
        return {
            Place(name, standing.born, sink): self.board.channel(name).topic
            for name, standing in self.machine.listed.items()
            for sink in standing.definition.sinks
        }

    def _keep_listed(self) -> None:
        """Add and remove replay buffers and deliveries, so that they match the existing queries."""
        self.board.keep(self.machine.listed)
        self._keep_deliveries()

    def _keep_deliveries(self) -> None:
        """Begin and end deliveries, so that they match the existing queries."""
        if self._thread.is_alive():
            self.deliveries.update(self._delivered)

    @property
    def queued(self) -> int:
        """The bytes of the waiting calls."""
        return self._queued

    @property
    def busy_seconds(self) -> float:
        """The seconds that the current turn has lasted."""
        begun = self._turn_begun
        return 0.0 if begun is None else time.monotonic() - begun

    @property
    def stuck_seconds(self) -> float:
        """The seconds since the engine has last attended to calls, while it works."""
        return self.busy_seconds

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and self.failure is None

    def call(self, function: Callable[[], _T], size: int = 0) -> Future[_T]:
        """Do something in the thread of the engine.

        Args:
            function: The function to call; its result or exception is the answer.
            size: The bytes that it holds until then.

        Raises:
            Problem: 429 if too many bytes wait; 503 if the engine has ended.
        """
        future: Future[_T] = Future()
        with self._arrived:
            if self._is_stopping or self.failure is not None:
                raise Problem(503, "the server is stopping", "stopping", {"Retry-After": "1"})
            if size and self._queued + size > self._settings.queued_bytes and self._queued:
                raise Problem(
                    429, "the queue of events is full: send the body again", "busy",
                    {"Retry-After": "1"},
                )  # fmt: skip
            self._calls.append(_Call(function, future, size))
            self._queued += size
            self._arrived.notify()
        return future

    def stop(self) -> None:
        """Execute the waiting calls, make a checkpoint, and end the thread."""
        with self._arrived:
            self._is_stopping = True
            self._arrived.notify()
        if self._thread.is_alive():
            self._thread.join()
        self.deliveries.stop()
        self.close()

    def close(self) -> None:
        """Release the folder."""
        if not self._is_closed:
            self._is_closed = True
            self.machine.close()
            self._journal.close()
            self._folder.close()

    def flush_journal(self) -> None:
        """Let `find_event` see all events. Call it in the thread of the engine."""
        self._journal.flush()

    def find_event(self, stream: str, graph: str, time: str) -> bytes:
        """The triples of an event; see `event_search.find_event`. Call it in any thread."""
        reading = self.run_settings.reading
        return find_event(self._journal, reading, stream, graph, time)

    # ------------------------------------------------------------ the thread

    def _loop(self) -> None:
        try:
            while not self._is_stopping or self._calls:
                calls = self._taken()
                self._turn_begun = time.monotonic()
                self._turn(calls)
                self._turn_begun = None
            self.checkpoints.make_last()
        except BaseException as error:
            self.failure = error
            self._log(f"the engine has ended: {type(error).__name__}: {error}")
        finally:
            self.checkpoints.cancel()
            self.sources.stop()
            with self._arrived:
                self._is_stopping = True
                left = list(self._calls)
                self._calls.clear()
            for call in left:
                call.future.set_exception(Problem(503, "the server is stopping", "stopping"))
            for _, _, future in self._checkpoint_waiters:
                future.set_exception(Problem(503, "the server is stopping", "stopping"))
            self.ended()

    def _taken(self) -> list[_Call[Any]]:
        with self._arrived:
            if not self._calls and not self._is_stopping and not self.sources.has_chunks:
                self._arrived.wait(WAIT_SECONDS)
            return [self._calls.popleft() for _ in range(min(TURN_CALLS, len(self._calls)))]

    def _turn(self, calls: list[_Call[Any]]) -> None:
        """Execute some calls, make them durable, publish, and answer."""
        self._end_drained()
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        for call in calls:
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                answers.append((call.future, call.function(), None))
            except Exception as error:
                answers.append((call.future, None, error))
        try:
            self._read_sources()
            self._notice_silence()
            self._look_at_holders()
            if self._settings.durable:
                self._journal.sync()
            self.board.publish(self.machine.new_watermarks())
        except BaseException:
            # The changes are not on disk, so they must not be reported, and the engine has to end.
            refused = Problem(503, "the server cannot write its state", "storage")
            for future, _, _ in answers:
                future.set_exception(refused)
            raise
        with self._arrived:
            self._queued -= sum([call.size for call in calls])
        for future, answer, failure in answers:
            if failure is None:
                future.set_result(answer)
            else:
                future.set_exception(failure)
        self.checkpoints.turn(time.monotonic())
        self._answer_checkpoints()

    def _end_drained(self) -> None:
        """End drained versions; the previous turn has published their last matches."""
        machine = self.machine
        if not machine.draining:
            return
        records = machine.drained(time.time())
        for record in records:
            self._journal.append({"do": "drained", "record": record})
            machine.end_draining(record)
        if records:
            self._keep_listed()

    def _look_at_holders(self) -> None:
        """Note which streams hold back others, for threads that ask whether the server is ready."""
        now = time.monotonic()
        if now - self._looked >= INTERVAL_SECONDS:
            self._looked, self.holding = now, self.machine.holding()

    def _notice_silence(self) -> None:
        """Stop silent streams from holding back the others."""
        idle = self._settings.idle
        if idle is None:
            return
        now, components = time.monotonic(), self.machine.components
        for stream in self.machine.streams.values():
            component = components.get(stream.iri)
            if component is None or len(component.streams) < 2:
                continue  # no other stream waits for it
            silent = now - stream.heard >= idle and not self.sources.has_queued(stream.iri)
            if not stream.is_idle and silent:
                self._journal.append({"do": "idle", "stream": stream.iri})
                self._matching(lambda: self.machine.idle(stream))  # noqa: B023 (called at once)

    # ------------------------------------------------------------ sources

    def _begin_sources(self) -> None:
        """Start to read the sources whose streams queries now read."""
        for reader in self.sources.unread:
            feed = self.machine.feeds.get(reader.name)
            if feed is not None:
                iri = feed.settings.stream
            else:
                try:
                    iri = self.machine.stream(reader.name).iri
                except Problem:  # no query reads it yet, or its name means several streams
                    continue
                settings = reader.settings(iri)
                self._journal.append({"do": "feed", "settings": astuple(settings)})
                self.machine.add_feed(settings)
                feed = self.machine.feeds[reader.name]
            reader.stream = iri
            if feed.failure:
                self.sources.fail(reader, feed.failure)
            elif feed.has_ended and reader.source.replays:
                self.sources.end(reader)
            else:
                self.sources.begin(reader, feed.position)

    def _read_sources(self) -> None:
        """Take the chunks that have arrived from the sources."""
        for reader in self.sources.reading():
            reader.waits = self._is_ahead(reader.stream)
            if reader.waits:
                continue
            name, chunks = reader.name, self.sources.taken(reader)
            for chunk in chunks:
                says, data = chunk_record(name, chunk)
                self._feed(reader, says, data, partial(self._take_chunk, name, chunk))
                if reader.failure:
                    break
            if chunks:
                self.machine.streams[reader.stream].heard = time.monotonic()
            elif self.sources.is_quiet(reader):
                last = self.machine.quiet(name)
                if last or self.machine.feeds[name].failure:
                    says = {"do": "quiet", "feed": name}
                    self._feed(reader, says, b"", partial(self._take_last, name, last))
            elif self.sources.has_ended(reader):
                failure = self.sources.failure(reader)
                if failure is not None:
                    self._fail(reader, str(failure))
                else:
                    says = {"do": "end", "feed": name}
                    self._feed(reader, says, b"", partial(self._end_feed, name))
                    self.sources.end(reader)

    def _take_chunk(self, name: str, chunk: Chunk, record: int, arrived: int) -> list[Late]:
        return self.machine.take_chunk(name, chunk, record, arrived)

    def _take_last(
        self, name: str, last: Sequence[EventBatch], record: int, arrived: int
    ) -> list[Late]:
        return self.machine.take_last(name, last, record, arrived)

    def _end_feed(self, name: str, record: int, arrived: int) -> list[Late]:
        return self.machine.end_feed(name, record, arrived)

    def _feed(
        self,
        reader: SourceReader,
        says: Mapping[str, Any],
        data: bytes,
        take: Callable[[int, int], list[Late]],
    ) -> None:
        """Write a record of a source to the journal, and take its events."""
        arrived = time.time_ns() // 1000
        record = self._journal.append({**says, "arrived": arrived}, data)
        for late in self._matching(lambda: take(record, arrived)) or ():
            self.board.add_late(self.machine.readers_of(reader.stream), late)
        failure = self.machine.feeds[reader.name].failure
        if failure:
            self._fail(reader, failure)

    def _fail(self, reader: SourceReader, reason: str) -> None:
        """Stop the stream of a source that has failed from holding back the others."""
        self.sources.fail(reader, reason)
        stream = self.machine.streams[reader.stream]
        self._journal.append({"do": "idle", "stream": stream.iri})
        self._matching(lambda: self.machine.idle(stream))

    def _is_ahead(self, iri: str) -> bool:
        """Whether too many events of a stream wait for the others for more to be read."""
        stream = self.machine.streams[iri]
        if stream.pending < MAX_PENDING_EVENTS:
            return False
        holder = self.machine.holders.get(iri)
        return holder is not None and holder is not stream

    # ------------------------------------------------------------ changes

    def put_query(self, definition: Definition, program: Program, state: StatePolicy) -> Standing:
        """Add or replace a query; see `Machine.put_query`."""
        has_joined = self._join(definition, program)
        machine = self.machine
        try:
            machine.put_query(definition, program, state, self._journal.next)
        except BaseException:
            if has_joined:  # for nothing
                self._journal.append({"do": "divide"})
                machine.divide_all()
            raise
        self._journal.append({"do": "query", "definition": definition.to_dict(), "state": state})
        self.board.channel(definition.name)
        if definition.sinks or self.deliveries.of(definition.name):
            self._keep_deliveries()
        self._begin_sources()
        return machine.queries[definition.name]

    def _join(self, definition: Definition, program: Program) -> bool:
        """Make one run of those that a new query has to be in; returns whether there were several.

        See `Machine.join`.
        """
        has_joined = False
        while len(runs := self.machine.needed_runs(definition, program)) > 1:
            self.machine.check_join(runs)
            self._journal.append({"do": "join", "runs": runs})
            has_joined = True
            self._matching(lambda: self.machine.join(runs))
        return has_joined

    def remove_stream(self, name: str) -> None:
        """Forget a stream that no query reads; see `Machine.remove_stream`."""
        stream = self.machine.stream(name)
        self.machine.remove_stream(stream)
        self._journal.append({"do": "stream-remove", "stream": stream.iri})

    def begin_queries(self, definitions: Sequence[Definition], program: Program) -> None:
        """Begin several queries together, before `start`; see `Machine.begin_queries`."""
        self.machine.begin_queries(definitions, program, self._journal.next)
        data = [definition.to_dict() for definition in definitions]
        self._journal.append({"do": "queries", "definitions": data})
        self._keep_listed()

    def remove_query(self, name: str, drain: bool = False, seconds: float | None = None) -> None:
        """Remove a query; see `Machine.remove_query`.

        Args:
            name: The query.
            drain: Whether it finishes its partial matches first.
            seconds: The longest time for this; None: until they have ended.
        """
        until = None if seconds is None else time.time() + seconds
        self.machine.remove_query(name, self._journal.next, drain, until)
        says: dict[str, Any] = {"do": "remove", "name": name}
        self._journal.append(says | ({"drain": True, "until": until} if drain else {}))
        self._keep_listed()

    def put_kb(self, iri: str, file: str, triples: int) -> KbGraph:
        """Add or replace a KB graph whose file is in `kb_folder` and synced."""
        graph = KbGraph(self._journal.next + 1, file, "", triples)
        self.machine.put_kb(iri, graph)
        self._journal.append({"do": "kb", "iri": iri, "file": file, "triples": triples})
        return graph

    def remove_kb(self, iri: str) -> None:
        """Remove a KB graph; see `Machine.remove_kb`."""
        self.machine.remove_kb(iri)
        self._journal.append({"do": "kb-remove", "iri": iri})

    def events(self, name: str, body: Body) -> tuple[Accepted, int]:
        """Accept a body of events of a stream; returns the outcome, and its record."""
        machine = self.machine
        stream = machine.stream(name)
        read = machine.read(stream, body)
        record = self._journal.append(
            {"do": "events", "stream": stream.iri, **body.says()}, body.data
        )
        stream.heard = time.monotonic()
        accepted = self._matching(lambda: machine.take(stream, read, record, body.arrived))
        if accepted is None:
            # The run has been rebuilt, with the events of this body.
            count = 0 if read.batch is None else len(read.batch)
            accepted = Accepted(count, [], read.rejected, read.errors)
        for late in accepted.late:
            self.board.add_late(self.machine.readers_of(stream.iri), late)
        return accepted, record

    def watermark(self, name: str, value: Any) -> tuple[int, Any]:
        """Accept a watermark of a stream, a number of seconds or a date.

        Returns:
            Its record, and the time that the queries of the stream have reached.
        """
        stream = self.machine.stream(name)
        stamp = time_of_json(value)
        says = {"do": "watermark", "stream": stream.iri, "micros": stamp.micros,
                "domain": stamp.domain}  # fmt: skip
        stream.heard = time.monotonic()
        self.machine.check_domain(stream, stamp.domain)
        record = self._journal.append(says)
        self._matching(lambda: self.machine.promise(stream, stamp.micros, stamp.domain))
        component = self.machine.components.get(stream.iri)
        return record, None if component is None else component.watermark

    def _matching(self, match: Callable[[], _T]) -> _T | None:
        """Call a function that matches events; None if this stopped a run.

        In this case, the queries to blame are taken out, and the runs are rebuilt without them.
        """
        try:
            return match()
        except RunStopped as stopped:
            self._take_out(stopped)
            return None

    def _take_out(self, stopped: RunStopped) -> None:
        for name, revision in blamed(self.machine, stopped):
            self._log(f"the query {name} has stopped the run and is taken out: {stopped}")
            self.board.tell(name, "error", {"failure": str(stopped)})
            self._journal.append(failure_record(name, revision, stopped))
        self._journal.sync()
        self.machine.close()
        self.checkpoints.cancel()
        stored = self._folder.checkpoints()
        last = stored[0] if stored else None
        heard = {stream.iri: stream.heard for stream in self.machine.streams.values()}
        generations = {name: self.machine.born(name) for name in self.machine.listed}
        begins: dict[str, int] = {}
        if last is not None:
            for name, mark in last.header["token"].items():
                born = generations.get(name)
                if born is not None and born < last.header["journal"]:
                    begins[name] = mark["end"]
        self.machine = recovered(
            lambda: self._rewound(begins, generations), last, self._journal, self._log
        )
        self.machine.found = self.board.add
        self.board.end_rewind()
        self._keep_listed()
        for iri, at in heard.items():
            if iri in self.machine.streams:
                self.machine.streams[iri].heard = at

    # ------------------------------------------------------------ checkpoints

    def checkpoint(self) -> Future[int]:
        """Make a checkpoint soon; the answer is its number. Call it in the thread."""
        future: Future[int] = Future()
        # A checkpoint that is being written may lack what was acknowledged since.
        self.checkpoints.request()
        pending = 1 if self.checkpoints.is_pending else 0
        number, failed = self.checkpoints.number + 1 + pending, self.checkpoints.failed
        self._checkpoint_waiters.append((number, failed, future))
        return future

    def _answer_checkpoints(self) -> None:
        left = []
        for number, failed, future in self._checkpoint_waiters:
            if self.checkpoints.number >= number:
                future.set_result(self.checkpoints.number)
            elif self.checkpoints.failed > failed:
                future.set_exception(
                    Problem(507, "the checkpoint cannot be written; the last one holds", "storage")
                )
            else:
                if not self.checkpoints.is_pending:
                    self.checkpoints.request()
                left.append((number, failed, future))
        self._checkpoint_waiters = left

    def _saved(self) -> bytes:
        return self.machine.runs.save()

    def _low(self) -> int:
        """The first record that a checkpoint made now needs."""
        needed = self.machine.first_needed()
        return self._journal.next if needed is None else min(needed, self._journal.next)

    def _positions(self) -> Mapping[str, Any]:
        sources = {name: feed.position for name, feed in self.machine.feeds.items()}
        return {"low": self._low(), "sources": sources}

    def _header(self) -> Mapping[str, Any]:
        return {
            "journal": self._journal.next,
            "low": self._low(),
            "machine": self.machine.state(),
        }

    def _acknowledge(self, positions: Mapping[str, Any]) -> None:
        """Remove everything that neither a completed checkpoint nor the previous one needs."""
        self._lows = [*self._lows[-1:], positions["low"]]
        self._journal.forget(min(self._lows))
        self.sources.acknowledge(positions["sources"])

    def remove_unused_kb(self) -> None:
        """Remove the files of KB graphs that no checkpoint needs; call it before `start`."""
        used = {graph.file for graph in self.machine.kb.graphs.values()}
        for checkpoint in self._folder.checkpoints():
            used |= {one[1] for one in checkpoint.header["machine"]["kb"]["graphs"].values()}
        for name in os.listdir(self.kb_folder):
            if name not in used:
                with suppress(OSError):
                    (self.kb_folder / name).unlink()
