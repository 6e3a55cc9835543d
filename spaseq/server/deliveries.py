"""The sinks of queries: each delivery reads the replay buffer of one query in its own thread.

An unreachable sink therefore slows neither the engine nor other sinks. The sinks are those of live
runs (`spaseq.live.protocols`), and a delivery makes its own checkpoints with them: the sink
prepares its output, the number of the next match is stored with the token, and the sink commits.
Matches have the same numbers after a crash of the server, because they are found again from the
journal. A sink that commits receives each match exactly once; the others receive it at least once,
with its identifier.

A sink that fails is opened again, with growing pauses. If the buffer drops matches meanwhile, their
number is reported and the delivery continues with the oldest one in the buffer.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, cast

from spaseq.errors import SpaseqError
from spaseq.live import registry
from spaseq.live.protocols import Sink, WaitingSink
from spaseq.live.receiving import Pauses
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.delivered import DeliveredMatch
from spaseq.server.topics import Gone, Topic

MOST_PAUSE = 30.0
"""Seconds between two attempts to open a sink."""
LOOK_SECONDS = 1.0
"""The longest wait for new matches."""
STOP_SECONDS = 5.0
"""Seconds that a delivery may take to end."""


class Place(NamedTuple):
    """The query and the sink of a delivery."""

    query: str
    born: int
    """The record of the journal that registered the query."""
    sink: str
    """The name of the sink."""


class _Stored:
    """The last two checkpoints of a delivery, in a file.

    Args:
        path: The file.
    """

    def __init__(self, path: Path):
        self._path = path
        self.known: dict[int, Mapping[str, Any]] = {}
        """Number → the number of the next match, and the token of the sink."""
        with suppress(FileNotFoundError):
            read = json.loads(path.read_text())
            self.known = {int(number): saved for number, saved in read.items()}

    def keep(self, number: int) -> None:
        """Remove all checkpoints except one."""
        self.known = {n: saved for n, saved in self.known.items() if n == number}

    def add(self, number: int, cursor: int, token: Any) -> None:
        """Store a checkpoint durably."""
        self.known[number] = {"next": cursor, "token": token}
        aside = self._path.with_suffix(".new")
        with open(aside, "w") as file:
            json.dump(self.known, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


class Delivery(threading.Thread):
    """The matches of one query on their way to one sink.

    Args:
        place: The query and the sink.
        topic: The matches.
        url: The URL to which they are sent.
        path: The file of its checkpoints.
        state: Identifies the state folder to the sink.
        runs: Returns the runs of the server.
        log: Reports trouble.
    """

    def __init__(
        self,
        place: Place,
        topic: Topic,
        url: str,
        path: Path,
        state: str,
        runs: Callable[[], list[Run]],
        log: Callable[[str], None],
    ):
        super().__init__(name=f"delivery-{place.query}-{place.sink}", daemon=True)
        self.place = place
        self._topic = topic
        self._url = url
        self._stored = _Stored(path)
        self._state = f"{state}-{path.stem}"
        self._runs = runs
        self._log = log
        self._changed = threading.Condition()
        self._is_stopping = self._is_removed = False
        self._sink: Sink | None = None
        self.cursor = max((s["next"] for s in self._stored.known.values()), default=0)
        """The number of the next match."""
        self.lost = 0
        """The number of matches that the buffer dropped before they were sent."""
        self._problem = ""

    # ------------------------------------------------------------ the server

    def wake(self) -> None:
        """Wake the delivery, since there are new matches."""
        with self._changed:
            self._changed.notify()

    def stop(self, removed: bool = False) -> None:
        """Send the available matches and end; `removed`: the query or its sink has been removed."""
        with self._changed:
            self._is_stopping, self._is_removed = True, removed
            self._changed.notify()

    @property
    def problem(self) -> str:
        """The problem that prevents matches from being sent; empty if there is none."""
        sink = self._sink
        waits = sink.waiting.problem if isinstance(sink, WaitingSink) else None
        return self._problem or waits or ""

    def to_dict(self) -> dict[str, Any]:
        """The delivery as JSON."""
        shown: dict[str, Any] = {
            "sink": self.place.sink,
            "delivered": self.cursor,
            "waiting": max(self._topic.end - self.cursor, 0),
        }
        if self.lost:
            shown["lost"] = self.lost
        return shown | ({"problem": self.problem} if self.problem else {})

    # ------------------------------------------------------------ the thread

    def run(self) -> None:
        """Deliver until `stop`, and open the sink again whenever it fails."""
        pauses = Pauses(most=MOST_PAUSE)
        while True:
            before = self.cursor
            try:
                self._deliver()
                break
            except (SpaseqError, OSError) as error:
                if not self._problem:
                    self._log(f"query {self.place.query}, sink {self.place.sink}: {error}")
                self._problem = str(error)
            finally:
                self._close()
            if self.cursor > before:
                pauses = Pauses(most=MOST_PAUSE)
            with self._changed:
                if not self._is_stopping:
                    self._changed.wait(pauses.following())
                if self._is_stopping:
                    break
        if self._is_removed:
            self._stored.remove()

    def _deliver(self) -> None:
        known = self._stored.known
        self._sink = sink = registry.open_sink(self._url, keeps=True)
        if isinstance(sink, WaitingSink):
            sink.waiting.log = self._log
        number = sink.resume(self._state, {n: saved["token"] for n, saved in known.items()})
        self.cursor = known[number]["next"] if number else 0
        self._stored.keep(number)
        for run in self._runs():
            sink.attach(run)
        while True:
            if self._write(sink):
                number += 1
                self._stored.add(number, self.cursor, sink.prepare())
                sink.commit(number)
                self._stored.keep(number)
                self._problem = ""
                continue
            with self._changed:
                if self._topic.end <= self.cursor:
                    if self._is_stopping:
                        return
                    self._changed.wait(LOOK_SECONDS)

    def _write(self, sink: Sink) -> bool:
        """Write the next block of matches; returns whether there is anything to commit."""
        end = self._topic.end
        if self.cursor >= end:
            return False
        try:
            data, after = self._topic.read(self.cursor, end)
        except Gone:
            first = max(self._topic.first, self.cursor + 1)
            self.lost += first - self.cursor
            self._log(
                f"query {self.place.query}, sink {self.place.sink}: {first - self.cursor} matches "
                "are no longer in the replay buffer (--replay) and were not sent"
            )
            self.cursor = first
            return True  # so that the loss is stored, and not counted again
        for line in data.splitlines():
            # The sinks of URLs use only these attributes of a match.
            sink.write(cast(Match, DeliveredMatch(line)))
        sink.write_block()
        self.cursor = after
        return True

    def _close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            with suppress(SpaseqError, OSError):
                sink.close()


class Deliveries:
    """All deliveries. All calls come from the thread of the engine, except those of readers.

    Args:
        sinks: Name → URL of the sinks that the operator has declared.
        folder: Where their checkpoints are.
        state: Identifies the state folder.
        runs: Returns the runs of the server.
        log: Reports trouble.
    """

    def __init__(
        self,
        sinks: Mapping[str, str],
        folder: Path,
        state: str,
        runs: Callable[[], list[Run]],
        log: Callable[[str], None],
    ):
        self._sinks = sinks
        self._folder = folder
        self._state = state
        self._runs = runs
        self._log = log
        self._all: dict[Place, Delivery] = {}
        self._unknown: set[Place] = set()
        folder.mkdir(exist_ok=True)

    def update(self, wanted: Mapping[Place, Topic]) -> None:
        """Begin the missing deliveries, and end those that are no longer wanted."""
        for place in self._all.keys() - wanted.keys():
            self._all.pop(place).stop(removed=True)
        for place, topic in wanted.items():
            if place in self._all:
                continue
            url = self._sinks.get(place.sink)
            if url is not None:
                made = Delivery(
                    place, topic, url, self._path(place), self._state, self._runs, self._log
                )
                self._all[place] = made
                made.start()
            elif place not in self._unknown:
                self._unknown.add(place)
                self._log(f"query {place.query}: there is no --sink {place.sink} any more")

    def begin(self, wanted: Mapping[Place, Topic]) -> None:
        """Like `update`, at the start; also removes the checkpoints of removed queries."""
        kept = {self._path(place).name for place in wanted}
        for path in self._folder.iterdir():
            if path.name not in kept:
                path.unlink()
        self.update(wanted)

    def _path(self, place: Place) -> Path:
        text = json.dumps(place).encode()
        return self._folder / f"{blake2b(text, digest_size=12).hexdigest()}.json"

    def wake(self, queries: Iterable[str]) -> None:
        """Wake the deliveries of queries that have new matches."""
        if self._all:
            names = set(queries)
            for place, delivery in self._all.items():
                if place.query in names:
                    delivery.wake()

    def of(self, query: str) -> list[Delivery]:
        """The deliveries of a query."""
        return [made for place, made in list(self._all.items()) if place.query == query]

    def problems(self) -> list[str]:
        """The problems that prevent matches from being sent, for `/readyz`."""
        return [
            f"sink {place.sink} of query {place.query}: {made.problem}"
            for place, made in list(self._all.items())
            if made.problem
        ]

    def stop(self) -> None:
        """Send the available matches, for a limited time, and end."""
        for delivery in self._all.values():
            delivery.stop()
        for delivery in self._all.values():
            delivery.join(STOP_SECONDS)
