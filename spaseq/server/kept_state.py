"""The state of the server on disk, and what leads to it: journal, checkpoints, and their undoing.

The machine is made from the last checkpoint and the records after it at the start, and again when
something has to be taken out of that history: a query that stopped its run, one that a client
paused or removed in the midst of an event, or records that could not be written.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from spaseq.errors import ChangeError
from spaseq.live.checkpoints import Checkpoints
from spaseq.live.state import Checkpoint, StateFolder
from spaseq.rdf.native._terms import check
from spaseq.records import dataclass
from spaseq.results import Match
from spaseq.server.board import Board
from spaseq.server.deliveries import Deliveries, Place
from spaseq.server.journal import Journal
from spaseq.server.machine import Machine
from spaseq.server.places import RunStopped
from spaseq.server.problems import Problem
from spaseq.server.recovery import (
    QueriesLeft,
    blamed,
    failure_record,
    outlined,
    recovered,
    write_failure,
)
from spaseq.server.run_options import RunSettings
from spaseq.server.sources import Sources
from spaseq.server.standing import Definition, Standing
from spaseq.server.topics import Topic

_LEFT = "it was paused or removed while an event was matched"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Where and how the engine keeps its state.

    Args:
        folder: The state folder.
        checkpoint: Seconds between two checkpoints.
        idle: Seconds after which a silent stream no longer holds back the others; None: never.
        queued_bytes: The bytes of events that may wait in the queue.
        durable: Whether the folder outlives the process.
        paused: Whether all queries are paused at the start.
        sources: Name of a stream → the paths or URLs that feed it.
        sinks: Name of a sink → its URL.
    """

    folder: Path
    checkpoint: float = 10.0
    idle: float | None = 10.0
    queued_bytes: int = 1 << 26
    durable: bool = True
    paused: bool = False
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)


class KeptState:
    """The machine, and what is stored of it. All calls come from the thread of the engine.

    Args:
        settings: Where and how the state is kept.
        run: What holds for all queries.
        board: Where matches are published.
        log: Reports what happens.

    Raises:
        SpaseqError: if the folder cannot be used, or its state cannot be continued.
    """

    sources: Sources
    """The sources that the engine reads."""

    def __init__(
        self, settings: EngineSettings, run: RunSettings, board: Board, log: Callable[[str], None]
    ):
        self._settings = settings
        self.run_settings = run
        self.board = board
        self._log = log
        self._checkpoint_waiters: list[tuple[int, int, Future[int]]] = []
        """(the number to wait for, the failures before, the answer)."""
        self._folder = StateFolder(str(settings.folder), log)
        self.kb_folder = settings.folder / "kb"
        self.kb_folder.mkdir(exist_ok=True)
        self._journal = Journal(settings.folder, log)
        self._journal.reserve()
        self._lows: list[int] = []
        self.started = time.monotonic()
        self._turn_begun: float | None = None
        self._attended = 0.0
        """When the thread last looked at its queue."""
        self._may_interrupt = self._has_left = self._removes = False
        self._generations: dict[str, int | None] = {}
        """While the runs are made again: query → the record that registered it."""
        self._room_asked = 0.0
        """When `_look_for_room` has last tried."""
        self.kb_arriving: set[str] = set()
        """The files in `kb_folder` that clients are about to make graphs."""
        self.storage = ""
        """Why changes are refused: what the operating system says; empty: they are accepted."""
        self._reached = 0
        """While the journal is read: the number of the current record."""
        self._replayed, self._begun = threading.Event(), threading.Event()
        stored = self._folder.checkpoints()
        last = stored[0] if stored else None
        self._last = last
        self.machine = Machine(run, self.kb_folder, board.add)
        """The state; until the journal is read, without runs."""
        outlined(self.machine, last, self._journal)
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

    def _replay(self) -> None:
        """Read the journal after the last checkpoint."""
        board, last = self.board, self._last
        if self._settings.paused:
            self._pause_all()
        self._turn_begun = self._attended = time.monotonic()
        self._may_interrupt = True
        try:
            # A query can have the name of a removed query, but none of its matches.
            self.machine = recovered(
                lambda: self._restored(last),
                last,
                self._journal,
                self._log,
                lambda machine: board.keep(machine.listed),
                self._reach,
            )
        finally:
            self._may_interrupt, self._turn_begun = False, None
        board.keep(self.machine.listed)
        self._last = None
        self._remove_unused_kb()

    def _reach(self, record: int) -> None:
        """Note how far the journal is read, and attend to calls."""
        self._reached = record
        check()

    @property
    def has_replayed(self) -> bool:
        """Whether the journal has been read, so that the queries run."""
        return self._replayed.is_set()

    @property
    def progress(self) -> str:
        """How far the journal has been read."""
        return f"record {self._reached + 1} of {self._journal.next}"

    def _pause_all(self) -> None:
        """Pause all queries before the journal is read, so that they see none of its events."""
        for name, standing in list(self.machine.queries.items()):
            if standing.is_running:
                self._leave(name, replace(standing.definition, paused=True))
        for version in self.machine.draining:
            name = version.definition.name
            self._journal.append(failure_record(name, version.revision, _LEFT))
        self._journal.sync()
        self._has_left = False

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
        if self._begun.is_set():
            self.deliveries.update(self._delivered)

    @property
    def is_matching(self) -> bool:
        """Whether the state of the runs cannot be read, since they are within an event."""
        return self._may_interrupt

    # ------------------------------------------------------------ the history

    def _leave(self, name: str, definition: Definition | None) -> Standing:
        """Take a query out of the history since the checkpoint.

        Args:
            name: The query.
            definition: Its definition from now on; None: it is removed.
        """
        machine = self.machine
        self._check_unread(name)
        running = [machine.queries.get(name), *machine.draining.of(name)]
        records = [
            failure_record(name, version.revision, _LEFT)
            for version in running
            if version is not None and version.is_running
        ]
        standing = machine.latest(name)
        if definition is None:
            self._enter([*records, {"do": "remove", "name": name}])
            machine.queries.pop(name, None)
            machine.draining.forget(name)
        else:
            says = {"do": "query", "definition": definition.to_dict(), "state": "fresh"}
            record = self._enter([*records, says])
            standing = replace(standing, definition=definition, revision=record, failure="")
            machine.queries[name] = standing
        self._has_left = True
        return standing

    def _enter(self, records: Sequence[Mapping[str, Any]]) -> int:
        """Append records at once, on a full disk in the reserved room; the number of the last.

        Raises:
            OSError: if they cannot be written; none of them remains.
        """
        journal = self._journal
        before = journal.next
        while True:
            try:
                numbers = [journal.append(says) for says in records]
                if self._settings.durable:
                    journal.sync()
            except OSError as error:
                journal.cut(before)
                if not journal.spend():
                    raise
                self._note_storage(str(error))
            else:
                return numbers[-1]

    def _check_unread(self, name: str) -> None:
        """Refuse to take out a query whose stream another one reads.

        Raises:
            Problem: if there is no such query.
            ChangeError: with the other one.
        """
        queries = self.machine.queries
        (own,) = self.machine.latest(name).definition.compile().queries
        iri = own.plan.registers_stream
        for other, standing in queries.items() if iri is not None else ():
            if other == name or not standing.is_running:
                continue
            if iri in standing.definition.compile().streams:
                raise ChangeError(f"the query {other} reads the stream <{iri}> of {name}")

    def _matching(self, match: Callable[[], _T]) -> _T | None:
        """Call a function that matches events; None if the runs had to be made again.

        This is so if the events stopped a run, whose query to blame is taken out, or if a query was
        paused or removed meanwhile.
        """
        self._may_interrupt = True
        try:
            return match()
        except RunStopped as stopped:
            self._take_out(stopped)
        except QueriesLeft:
            self._rebuild()
        finally:
            self._may_interrupt = False
        return None

    def _take_out(self, stopped: RunStopped) -> None:
        for name, revision in blamed(self.machine, stopped):
            self._log(f"the query {name} has stopped the run and is taken out: {stopped}")
            self.board.tell(name, "error", {"failure": str(stopped)})
            write_failure(self._journal, name, revision, str(stopped))
        self._rebuild()

    def _rebuild(self) -> None:
        """Make the runs again: from the last checkpoint, and the records after it."""
        self.machine.close()
        self.checkpoints.cancel()
        stored = self._folder.checkpoints()
        last = stored[0] if stored else None
        heard = {stream.iri: stream.heard for stream in self.machine.streams.values()}
        self._generations = {name: self.machine.born(name) for name in self.machine.listed}
        begins: dict[str, int] = {}
        if last is not None:
            for name, mark in last.header["token"].items():
                born = self._generations.get(name)
                if born is not None and born < last.header["journal"]:
                    begins[name] = mark["end"]
        may, self._may_interrupt = self._may_interrupt, True
        try:
            self.machine = recovered(
                lambda: self._rewound(begins, self._generations),
                last, self._journal, self._log, reached=self._reach,
            )  # fmt: skip
        finally:
            self._may_interrupt = may
        self.machine.found = self.board.add
        self.board.end_rewind()
        self._keep_listed()
        for iri, at in heard.items():
            if iri in self.machine.streams:
                self.machine.streams[iri].heard = at
        # The matches of queries that were taken out are not found again from this journal.
        self.checkpoints.request()

    # ------------------------------------------------------------ the disk

    @contextmanager
    def _recorded(self, says: Mapping[str, Any], body: bytes = b"") -> Iterator[int]:
        """Append a record, and execute it within this context; without success, it is cut off.

        Raises:
            OSError: if it cannot be written; nothing has changed.
        """
        number = self._journal.append(says, body)
        try:
            yield number
        except Exception:
            self._journal.cut(number)
            raise

    def _look_for_room(self) -> None:
        """Accept changes again if the journal can grow; tried once a second."""
        now = time.monotonic()
        if self.storage and now >= self._room_asked + 1.0:
            self._room_asked = now
            if self._journal.has_room():
                self.storage = ""
                self._journal.reserve()
                self._log("the state can be written again")

    def _note_storage(self, reason: str) -> None:
        if reason != self.storage:
            self._log(f"changes are refused until the state can be written: {reason}")
        self.storage = reason

    def _refused(self) -> Problem:
        return Problem(
            503, f"the server cannot write its state, and has changed nothing: {self.storage}",
            "storage", {"Retry-After": "10"},
        )  # fmt: skip

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
        self._remove_unused_kb()

    def _remove_unused_kb(self) -> None:
        """Remove the files of KB graphs that neither the state nor the last checkpoint names."""
        used = {graph.file for graph in self.machine.kb.graphs.values()}
        for checkpoint in self._folder.checkpoints()[:1]:
            used |= {one[1] for one in checkpoint.header["machine"]["kb"]["graphs"].values()}
        for name in os.listdir(self.kb_folder):
            if name not in used and name not in self.kb_arriving:
                with suppress(OSError):
                    (self.kb_folder / name).unlink()
