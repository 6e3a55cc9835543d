"""The sources that feed streams, as threads: their chunks wait in a queue for the engine.

The sources, the threads and the queues are those of live runs (`spaseq.live`). A source is read
from the time at which a query first reads its stream. A slow query slows its sources down, because
a thread waits while its queue is full.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from spaseq.errors import StateError
from spaseq.live.addresses import redacted
from spaseq.live.feeder import Feeder, Inbox
from spaseq.live.opening import opened_source
from spaseq.live.protocols import AcknowledgingSource, Chunk, Position, ReportingSource, Source
from spaseq.server.feeds import Feed, FeedSettings

QUIET_SECONDS = 0.2
"""Seconds without bytes after which an event without an explicit end is complete."""


class SourceReader:
    """One source.

    Args:
        name: The name of its stream in the queries, or the IRI.
        number: Its number in the queues.
        places: Its paths or URLs, without passwords.
        source: The source.
    """

    def __init__(self, name: str, number: int, places: Sequence[str], source: Source):
        self.name = name
        self.number = number
        self.places = list(places)
        self.source = source
        self.stream = ""
        """The IRI of the stream; empty until a query reads it."""
        self.status: Literal["unread", "reading", "ended", "failed"] = "unread"
        self.failure = ""
        self.was_quiet = True
        """Whether the open event has been requested since the last chunk."""
        self.waits = False
        """Whether it must wait for the other streams."""
        self.taken: list[Chunk] = []
        """The chunks of this turn, which are not durable yet."""
        self.thread: Feeder | None = None

    @property
    def problem(self) -> str:
        """The problem that prevents it from being read; empty if there is none."""
        if self.failure or self.status != "reading":
            return self.failure
        return (self.source.problem or "") if isinstance(self.source, ReportingSource) else ""

    def settings(self, stream: str) -> FeedSettings:
        """The settings of a feed of this source."""
        source = self.source
        return FeedSettings(self.name, stream, self.places, source.messages, source.replays)

    def to_dict(self) -> dict[str, Any]:
        """The source as JSON."""
        shown = {"name": self.name, "places": self.places, "status": self.status}
        return shown | ({"problem": self.problem} if self.problem else {})


class Sources:
    """All sources.

    Args:
        places: Name of a stream → the paths or URLs of its source.
        changed: Is notified when something has arrived.
        keeps: Whether there is a state folder, so that positions matter.
        log: Reports what happens to sources.

    Raises:
        SpaseqError: if a source cannot be opened.
    """

    def __init__(
        self,
        places: Mapping[str, Sequence[str]],
        changed: threading.Condition,
        keeps: bool,
        log: Callable[[str], None],
    ):
        self._log = log
        self._inbox = Inbox(len(places), changed)
        self._readers: list[SourceReader] = []
        for number, (name, urls) in enumerate(places.items()):
            source = opened_source(name, urls, log, follows=True)
            if keeps and isinstance(source, AcknowledgingSource):
                source.expect_checkpoints()
            if keeps and not source.replays:
                log(f"the source of {name} cannot be read again after a crash")
            self._readers.append(SourceReader(name, number, list(map(redacted, urls)), source))

    def __iter__(self) -> Iterator[SourceReader]:
        return iter(self._readers)

    def check(self, feeds: Mapping[str, Feed], folder: str) -> None:
        """Refuse to continue a feed with another source.

        Raises:
            StateError: with both.
        """
        for reader in self._readers:
            feed = feeds.get(reader.name)
            if feed is not None and list(feed.settings.places) != reader.places:
                before, now = ", ".join(feed.settings.places), ", ".join(reader.places)
                raise StateError(
                    f"--state {folder}: the source of the stream {reader.name} was {before}, and "
                    f"is now {now}: its position means nothing there"
                )

    # ------------------------------------------------------------ threads

    @property
    def unread(self) -> list[SourceReader]:
        """The sources whose stream no query has read yet."""
        return [reader for reader in self._readers if reader.status == "unread"]

    def reading(self) -> list[SourceReader]:
        """The sources that are read."""
        return [reader for reader in self._readers if reader.status == "reading"]

    def begin(self, reader: SourceReader, position: Position | None) -> None:
        """Start the thread of a source at a position; None: at the beginning."""
        source = reader.source
        reader.status = "reading"
        if not (source.replays or source.messages):
            position = None  # a pipe
        reader.thread = Feeder(source, reader.number, self._inbox, position)
        reader.thread.start()

    def stop(self) -> None:
        """End all threads."""
        self._inbox.stop()
        for reader in self._readers:
            if reader.thread is not None:
                reader.thread.join(2.0)

    def fail(self, reader: SourceReader, reason: str) -> None:
        """Record that a source cannot be read until the server is restarted."""
        reader.status, reader.failure = "failed", reason
        self._inbox.leave(reader.number)
        self._log(f"the source of {reader.name} has ended: {reason}")

    def end(self, reader: SourceReader) -> None:
        """Record that a source has reached its end."""
        reader.status = "ended"
        self._log(f"the source of {reader.name} has come to its end")

    # ------------------------------------------------------------ queues

    @property
    def has_chunks(self) -> bool:
        """Whether a source has chunks that can be taken."""
        return any(
            not reader.waits and self._inbox.size(reader.number) for reader in self.reading()
        )

    def has_queued(self, stream: str) -> bool:
        """Whether chunks of a stream wait to be taken."""
        return any(
            reader.stream == stream and self._inbox.size(reader.number) for reader in self.reading()
        )

    def taken(self, reader: SourceReader) -> list[Chunk]:
        """The next chunks of a source, first those of a turn that was undone."""
        reader.taken += self._inbox.take(reader.number)
        if reader.taken:
            reader.was_quiet = False
        return list(reader.taken)

    def forget_taken(self) -> None:
        """Note that the chunks that were taken are durable."""
        for reader in self._readers:
            reader.taken.clear()

    def is_quiet(self, reader: SourceReader) -> bool:
        """Whether a source has been quiet for a while; true only once per pause."""
        if reader.was_quiet:
            return False
        silent = self._inbox.silence(reader.number, time.monotonic())
        reader.was_quiet = silent >= QUIET_SECONDS
        return reader.was_quiet

    def has_ended(self, reader: SourceReader) -> bool:
        """Whether a source has ended, and all of its chunks have been taken."""
        return self._inbox.has_ended(reader.number)

    def failure(self, reader: SourceReader) -> BaseException | None:
        """The error that ended a source; None if it has reached its end."""
        return self._inbox.failure(reader.number)

    # ------------------------------------------------------------ checkpoints

    def acknowledge(self, positions: Mapping[str, Position | None]) -> None:
        """Tell the sources that a checkpoint has these positions."""
        for reader in self.reading():
            position = positions.get(reader.name)
            if position is not None:
                reader.source.acknowledge(position)
