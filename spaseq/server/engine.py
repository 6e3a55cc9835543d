"""The owner of the server's state: one thread, which executes calls one at a time.

Requests arrive as calls in a queue, and are answered by futures. The thread takes the calls that
have arrived, executes each on the machine (`spaseq.server.machine`) and writes it to the journal.
Then it makes the journal durable once for all of them, publishes the matches, and answers. A client
is therefore never told of anything that a crash could undo, and one sync serves many requests.

**Attention.** An event may take long, and so may the journal at the start. Meanwhile the thread
looks at its queue every 50 ms. It answers calls that only read what lies beside the runs, and
pauses and removes queries: these are taken out of the history since the last checkpoint, which is
then matched again, so that nothing of the event remains half done. Other calls wait, and are
refused after a few seconds. The server can therefore always be asked, relieved of a query, and
stopped.

**Trouble with the disk.** If the journal or the matches cannot be written, all that was done since
the last sync is undone: the records are cut off, the runs are made again, and the clients are
refused. The server continues, and accepts changes as soon as there is room.

Between two turns it makes a checkpoint if one is due, in a copy of the process
(`spaseq.live.checkpoints`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import astuple, replace
from functools import partial
from typing import Any, TypeVar

from spaseq.engine.changes import StatePolicy
from spaseq.errors import StateError
from spaseq.live.coordinator import MAX_PENDING_EVENTS
from spaseq.live.protocols import Chunk
from spaseq.live.status import INTERVAL_SECONDS
from spaseq.program import Program
from spaseq.rdf.native._terms import EventBatch, attend, forget
from spaseq.server.board import Board, NotStored
from spaseq.server.bodies import Body
from spaseq.server.calls import Answer, Call, Stopping, stopping
from spaseq.server.components import Holding
from spaseq.server.event_search import find_event
from spaseq.server.feeds import chunk_record
from spaseq.server.inputs import Accepted, Late, time_of_json
from spaseq.server.kb_graphs import KbGraph
from spaseq.server.kept_state import EngineSettings, KeptState
from spaseq.server.problems import Problem
from spaseq.server.recovery import (
    QueriesLeft,
)
from spaseq.server.run_options import RunSettings
from spaseq.server.sources import SourceReader, Sources
from spaseq.server.standing import Definition, Standing

TURN_CALLS = 256
"""The most calls of one turn."""
WAIT_SECONDS = 0.05
"""Seconds after which the thread checks idle streams and checkpoints."""
START_SECONDS = 2.0
"""Seconds to wait for the journal to be read before the server listens."""
STOP_SECONDS = 2.0
"""Seconds that an event may still take when the server stops; after a restart it is read again."""
SLOW_SECONDS = 5.0
"""Seconds that one event takes after which the log names the queries that may be slow."""
_T = TypeVar("_T")


class Engine(KeptState):
    """The thread and what it owns; arguments and errors are those of `KeptState`."""

    def __init__(
        self,
        settings: EngineSettings,
        run: RunSettings,
        board: Board,
        log: Callable[[str], None] = lambda text: None,
    ):
        super().__init__(settings, run, board, log)
        self._calls: deque[Call[Any]] = deque()
        self._arrived = threading.Condition()
        self._queued = 0
        self._is_stopping = False
        self._is_closed = False
        self.failure: BaseException | None = None
        """The error that ended the thread."""
        self.ended: Callable[[], None] = lambda: None
        """Called in the thread when it ends."""
        self.holding: Sequence[Holding] = ()
        """The streams that hold back others, since the last look."""
        self._looked = 0.0
        self._stop_by: float | None = None
        """When the current event is given up, since the server stops."""
        self._attends = self._told_slow = False
        self.sources = Sources(settings.sources, self._arrived, settings.durable, log)
        self._thread = threading.Thread(target=self._loop, name="spaseq-engine", daemon=True)
        try:
            self.sources.check(self.machine.feeds, str(settings.folder))
        except StateError:
            self.close()
            raise
        self._thread.start()
        try:
            self._replayed.wait(START_SECONDS)
        except BaseException:
            self.close()
            raise
        if self.failure is not None:
            self.close()
            raise self.failure

    # ------------------------------------------------------------ calls

    def start(self) -> None:
        """Execute calls, and read the sources, as soon as the journal is read."""
        self._begun.set()

    def _begin(self) -> None:
        """Begin with the sources and the deliveries."""
        self._begin_sources()
        for reader in self.sources.unread:
            self._log(f"the source of {reader.name} is read when a query reads this stream")
        self.board.publish(self.machine.new_watermarks())
        self.deliveries.begin(self._delivered)

    @property
    def sink_names(self) -> Collection[str]:
        """The sinks that queries can name."""
        return self._settings.sinks.keys()

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
        return 0.0 if self._turn_begun is None else time.monotonic() - self._attended

    @property
    def trouble(self) -> str:
        """What calls wait for."""
        if not self.has_replayed:
            return f"the server reads its journal: {self.progress}"
        return (
            f"an event has been matched for {self.busy_seconds:.0f} s, by one of the queries "
            f"{self._suspects}: pause or remove it"
        )

    @property
    def _suspects(self) -> str:
        """The queries that the current event may be too much for."""
        one = self.machine.matched
        names = [] if one is None else list(one.names)
        return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive() and self.failure is None

    def call(
        self,
        function: Callable[[], _T],
        size: int = 0,
        meanwhile: Callable[[], _T] | None = None,
    ) -> Future[_T]:
        """Do something in the thread of the engine.

        Args:
            function: The function to call; its result or exception is the answer.
            size: The bytes that it holds until then.
            meanwhile: What is called instead in the midst of an event: it must not use the runs.

        Raises:
            Problem: 429 if too many bytes wait; 503 if the engine has ended.
        """
        future: Future[_T] = Future()
        with self._arrived:
            if self._is_stopping or self.failure is not None:
                raise stopping()
            if size and self._queued + size > self._settings.queued_bytes and self._queued:
                raise Problem(
                    429, "the queue of events is full: send the body again", "busy",
                    {"Retry-After": "1"},
                )  # fmt: skip
            self._calls.append(Call(function, future, size, meanwhile))
            self._queued += size
            self._arrived.notify()
        return future

    def hurry(self) -> None:
        """The server is about to stop: give up an event that takes too long."""
        if self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_SECONDS

    def stop(self) -> None:
        """Execute the waiting calls, make a checkpoint, and end the thread."""
        self.hurry()
        self._end()
        self.deliveries.stop()
        self.close()

    def _end(self) -> None:
        """End the thread."""
        with self._arrived:
            self._is_stopping = True
            self._arrived.notify()
        self._begun.set()
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Release the folder; an engine that has not been started makes no checkpoint."""
        if not self._is_closed:
            if not self._begun.is_set():
                self._stop_by = time.monotonic()
                self._end()
            self._is_closed = True
            self.machine.close()
            self._journal.close()
            self._folder.close()

    def find_event(self, stream: str, graph: str, time: str) -> bytes:
        """The triples of an event; see `event_search.find_event`. Call it in any thread."""
        reading = self.run_settings.reading
        return find_event(self._journal, reading, stream, graph, time)

    # ------------------------------------------------------------ the thread

    def _loop(self) -> None:
        thread = threading.get_ident()
        attend(thread, self._attend)
        is_whole = False
        """Whether the state is that of the journal, so that a checkpoint can be made."""
        try:
            self._replay()
            self._replayed.set()
            self._begun.wait()
            is_whole = self._stop_by is None or not self._is_stopping
            if is_whole:
                self._begin()
            while not self._is_stopping or self._calls:
                calls = self._taken()
                self._turn_begun = self._attended = time.monotonic()
                self._told_slow = False
                self._turn(calls)
                self._turn_begun = None
            if is_whole:
                self.checkpoints.make_last()
        except Stopping:
            self._log("stopped within an event, which is read again at the next start")
        except BaseException as error:
            self.failure = error
            if self._begun.is_set():
                self._log(f"the engine has ended: {type(error).__name__}: {error}")
        finally:
            forget(thread)
            self.checkpoints.cancel()
            self.sources.stop()
            with self._arrived:
                self._is_stopping = True
                left = list(self._calls)
                self._calls.clear()
            for call in left:
                if call.future.set_running_or_notify_cancel():
                    call.future.set_exception(stopping())
            for _, _, future in self._checkpoint_waiters:
                future.set_exception(stopping())
            self._replayed.set()
            self.ended()

    def _taken(self) -> list[Call[Any]]:
        with self._arrived:
            if not self._calls and not self._is_stopping and not self.sources.has_chunks:
                self._arrived.wait(WAIT_SECONDS)
            return [self._calls.popleft() for _ in range(min(TURN_CALLS, len(self._calls)))]

    def _turn(self, calls: list[Call[Any]]) -> None:
        """Execute some calls, make them durable, publish, and answer."""
        answers: list[Answer] = []
        left = deque(calls)
        try:
            try:
                self._look_for_room()
                self._end_drained()
                # The topic of a removed query goes with the end of the turn.
                while left and not self._removes:
                    self._execute(left.popleft(), answers)
                self._read_sources()
                self._notice_silence()
                self._look_at_holders()
                self.board.store()
                if self._settings.durable:
                    self._journal.sync()
                if not self.storage:
                    self.sources.forget_taken()
            except (NotStored, OSError) as error:
                self._undo(str(error), answers)
            self.board.publish(self.machine.new_watermarks())
        except BaseException as error:
            # What is not on disk must not be reported, and the engine has to end.
            self._give_up(calls, answers, error)
            raise
        if self._removes:
            self._removes = False
            self._keep_listed()
        with self._arrived:
            self._calls.extendleft(reversed(left))
            self._queued -= sum([call.size for call in calls]) - sum([call.size for call in left])
        for answer in answers:
            answer.give()
        self.checkpoints.turn(time.monotonic())
        self._answer_checkpoints()

    def _execute(self, call: Call[Any], answers: list[Answer]) -> None:
        """Execute a call between two events."""
        if not call.future.set_running_or_notify_cancel():
            return
        answer = Answer(call.future, None, None, self._journal.next, -1)
        answers.append(answer)
        try:
            answer.result = call.function()
        except OSError as error:
            self._note_storage(str(error))
            answer.error = self._refused()
        except Exception as error:
            answer.error = error
        answer.after = self._journal.next

    def _undo(self, reason: str, answers: Sequence[Answer]) -> None:
        """Return to the state at the last sync, and refuse the calls since then.

        Raises:
            OSError: if the records cannot be cut off; the engine has to end.
        """
        self._note_storage(reason)
        self.board.discard()
        synced, has_changed = self._journal.synced, False
        if self._journal.next > synced:
            self._journal.cut(synced)
            self._rebuild()
        for answer in answers:
            has_changed = has_changed or answer.after < 0 or answer.after > synced
            if has_changed:
                answer.error = self._refused()

    def _give_up(
        self, calls: Sequence[Call[Any]], answers: Sequence[Answer], error: BaseException
    ) -> None:
        """Refuse the calls of a turn that does not end, and let nothing of them remain."""
        with suppress(OSError):
            self._journal.cut(self._journal.synced)
        is_stopping = isinstance(error, Stopping)
        refused = stopping() if is_stopping else Problem(503, "the engine has ended", "storage")
        begun = {id(answer.future) for answer in answers}
        for call in calls:
            if id(call.future) in begun or call.future.set_running_or_notify_cancel():
                call.future.set_exception(refused)

    # ------------------------------------------------------------ attention

    def _attend(self) -> None:
        """Look at the queue in the midst of an event; compiled loops call this.

        Raises:
            Stopping: if the server stops, and the event takes too long.
            QueriesLeft: if queries were paused or removed.
        """
        now = self._attended = time.monotonic()
        if not self._may_interrupt or self._attends:
            return
        if self._stop_by is not None and now >= self._stop_by:
            raise Stopping
        if self.has_replayed and self.busy_seconds > SLOW_SECONDS and not self._told_slow:
            self._told_slow = True
            self._log(self.trouble)
        self._attends = True
        try:
            for call in self._urgent():
                self._answer_meanwhile(call)
        finally:
            self._attends = False
        if self._has_left:
            self._has_left = False
            raise QueriesLeft

    def _urgent(self) -> list[Call[Any]]:
        """Take the calls that do not wait; those that were given up are removed."""
        with self._arrived:
            found = [call for call in self._calls if call.meanwhile is not None]
            gone = [call for call in self._calls if call.future.cancelled()]
            if found or gone:
                left = [call for call in self._calls if call not in found and call not in gone]
                self._calls = deque(left)
                self._queued -= sum([call.size for call in (*found, *gone)])
        return found

    def _answer_meanwhile(self, call: Call[Any]) -> None:
        if call.meanwhile is None or not call.future.set_running_or_notify_cancel():
            return
        try:
            result = call.meanwhile()
        except OSError as error:
            self._note_storage(str(error))
            call.future.set_exception(self._refused())
        except Exception as error:
            call.future.set_exception(error)
        else:
            call.future.set_result(result)

    def pause_now(self, name: str) -> Standing:
        """Pause a query in the midst of an event; returns the query.

        Raises:
            ChangeError: if another one reads the stream that it registers.
        """
        standing = self.machine.query(name)
        if standing.definition.paused:
            return standing
        return self._leave(name, replace(standing.definition, paused=True))

    def remove_now(self, name: str) -> None:
        """Remove a query in the midst of an event.

        Raises:
            ChangeError: if another one reads the stream that it registers.
        """
        self._leave(name, None)
        self._generations.pop(name, None)
        self.board.keep(self.machine.listed)

    def _end_drained(self) -> None:
        """End drained versions; the previous turn has published their last matches."""
        machine = self.machine
        if not machine.draining:
            return
        for record in [] if self.storage else machine.drained(time.time()):
            with self._recorded({"do": "drained", "record": record}):
                machine.end_draining(record)
            self._removes = True

    def _look_at_holders(self) -> None:
        """Note which streams hold back others, for threads that ask whether the server is ready."""
        now = time.monotonic()
        if now - self._looked >= INTERVAL_SECONDS:
            self._looked, self.holding = now, self.machine.holding()

    def _notice_silence(self) -> None:
        """Stop silent streams from holding back the others."""
        idle = self._settings.idle
        if self.storage or idle is None:
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
        if self.storage:
            return
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
        says = {"do": "query", "definition": definition.to_dict(), "state": state}
        try:
            with self._recorded(says) as record:
                machine.put_query(definition, program, state, record)
        except Exception:
            if has_joined:  # for nothing
                with self._recorded({"do": "divide"}):
                    machine.divide_all()
            raise
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
            self._journal.append({"do": "join", "definition": definition.to_dict()})
            has_joined = True
            self._matching(lambda: self.machine.join(runs))
        return has_joined

    def remove_stream(self, name: str) -> None:
        """Forget a stream that no query reads; see `Machine.remove_stream`."""
        stream = self.machine.stream(name)
        with self._recorded({"do": "stream-remove", "stream": stream.iri}):
            self.machine.remove_stream(stream)

    def begin_queries(self, definitions: Sequence[Definition], program: Program) -> None:
        """Begin several queries together, before `start`; see `Machine.begin_queries`."""
        data = [definition.to_dict() for definition in definitions]
        with self._recorded({"do": "queries", "definitions": data}) as record:
            self.machine.begin_queries(definitions, program, record)
        self._keep_listed()

    def remove_query(self, name: str, drain: bool = False, seconds: float | None = None) -> None:
        """Remove a query; see `Machine.remove_query`.

        Args:
            name: The query.
            drain: Whether it finishes its partial matches first.
            seconds: The longest time for this; None: until they have ended.
        """
        until = None if seconds is None else time.time() + seconds
        says: dict[str, Any] = {"do": "remove", "name": name}
        says |= {"drain": True, "until": until} if drain else {}
        with self._recorded(says) as record:
            self.machine.remove_query(name, record, drain, until)
        self._removes = True

    def put_kb(self, iri: str, file: str, triples: int) -> KbGraph:
        """Add or replace a KB graph whose file is in `kb_folder` and synced."""
        with self._recorded({"do": "kb", "iri": iri, "file": file, "triples": triples}) as record:
            graph = KbGraph(record + 1, file, "", triples)
            self.machine.put_kb(iri, graph)
        return graph

    def remove_kb(self, iri: str) -> None:
        """Remove a KB graph; see `Machine.remove_kb`."""
        with self._recorded({"do": "kb-remove", "iri": iri}):
            self.machine.remove_kb(iri)

    def events(self, name: str, body: Body) -> tuple[Accepted, int]:
        """Accept a body of events of a stream; returns the outcome, and its record."""
        machine = self.machine
        stream = machine.stream(name)
        read = machine.read(stream, body)
        record = self._journal.append(
            {"do": "events", "stream": stream.iri, **body.says()}, body.data
        )
        stream.heard = time.monotonic()
        accepted = self._matching(lambda: machine.take(stream, read, record, body))
        if accepted is None:
            # The run has been rebuilt, with the events of this body.
            count = 0 if read.batch is None else len(read.batch)
            accepted = Accepted(count, [], read.rejected, read.errors)
        for late in accepted.late:
            self.board.add_late(self.machine.readers_of(stream.iri), late)
        return accepted, record

    def answer(self, name: str, body: Body) -> dict[str, Any]:
        """As `events`; a body that comes again under its key gets the answer of the first time."""
        digest = self.machine.digest(name, body)
        known = self.machine.repeats.find(body.key, digest)
        if known is None:
            accepted, record = self.events(name, body)
            known = self.machine.repeats.find(body.key, digest) or accepted.to_dict(record)
        return known

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
