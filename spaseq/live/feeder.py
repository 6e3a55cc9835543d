"""Threads that read sources into bounded queues.

A thread reads while the coordinator decodes and matches. It waits while its queue is full, so a
slow query slows its sources down (back-pressure) and memory is bounded.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from spaseq.live.protocols import Chunk, Position, Source

MAX_QUEUED_BYTES = 1 << 23
MAX_QUEUED_CHUNKS = 4096
MAX_TAKEN_BYTES = 1 << 18
"""Bytes decoded at once; between two such turns, the run checks signals and checkpoints."""
POLL_SECONDS = 0.05
"""The longest wait of a source before it notices that the run stops."""


class Inbox:
    """The queues of all sources, with one condition to wait for any of them.

    Args:
        count: The number of sources.
        changed: The condition, if its owner also waits for other changes.
    """

    def __init__(self, count: int, changed: threading.Condition | None = None):
        self._changed = changed or threading.Condition()
        self._chunks: list[deque[Chunk]] = [deque() for _ in range(count)]
        self._bytes = [0] * count
        self._ended = [False] * count
        self._failures: list[BaseException | None] = [None] * count
        self._silent: list[float | None] = [None] * count
        self._open = [False] * count
        self._left = [False] * count
        self._wanted = frozenset(range(count))
        self.stopped = False

    def put(self, number: int, chunks: Sequence[Chunk]) -> None:
        """Append chunks of a source; waits while its queue is full."""
        with self._changed:
            while self.is_wanted(number) and (
                self._bytes[number] >= MAX_QUEUED_BYTES
                or len(self._chunks[number]) >= MAX_QUEUED_CHUNKS
            ):
                self._changed.wait()
            self._chunks[number].extend(chunks)
            self._bytes[number] += sum([chunk.size for chunk in chunks])
            if number in self._wanted:
                self._changed.notify_all()

    def leave(self, number: int) -> None:
        """Let the thread of a source end, since no more of the source is needed."""
        with self._changed:
            self._left[number] = True
            self._chunks[number].clear()
            self._bytes[number] = 0
            self._changed.notify_all()

    def is_wanted(self, number: int) -> bool:
        """Whether the thread of a source should continue."""
        return not self.stopped and not self._left[number]

    def hear(self, number: int, since: float | None) -> None:
        """Record the monotonic time since which a source has had no bytes; None: it has bytes."""
        if since is None or self._silent[number] is None:
            self._silent[number] = since

    def has_opened(self, number: int) -> None:
        """Record that a source has been opened."""
        self._open[number] = True

    def is_open(self, number: int) -> bool:
        """Whether a source has been opened."""
        return self._open[number]

    def silence(self, number: int, now: float) -> float:
        """The seconds for which a source has had no bytes."""
        since = self._silent[number]
        return 0.0 if since is None or self._chunks[number] else now - since

    def end(self, number: int, failure: BaseException | None) -> None:
        """Record that a source has ended, possibly with a failure."""
        with self._changed:
            self._ended[number] = True
            self._failures[number] = failure
            if self._silent[number] is None:
                self._silent[number] = time.monotonic()
            self._changed.notify_all()

    def take(self, number: int, most: int = MAX_TAKEN_BYTES) -> list[Chunk]:
        """The next chunks in the queue of a source: of `most` bytes, or one."""
        taken: list[Chunk] = []
        with self._changed:
            chunks = self._chunks[number]
            while chunks and (not taken or chunks[0].size <= most):
                taken.append(chunks.popleft())
                most -= taken[-1].size
                self._bytes[number] -= taken[-1].size
            if taken:
                self._changed.notify_all()
        return taken

    def size(self, number: int) -> int:
        """The bytes in the queue of a source."""
        return self._bytes[number]

    def has_ended(self, number: int) -> bool:
        """Whether a source has ended and its queue is empty."""
        return self._ended[number] and not self._chunks[number]

    def failure(self, number: int) -> BaseException | None:
        """The error that ended a source."""
        return self._failures[number]

    def wait(self, wanted: Sequence[int], timeout: float) -> None:
        """Wait until a source of `wanted` has chunks or ends, at most `timeout` seconds."""
        with self._changed:
            self._wanted = frozenset(wanted)
            if not any(self._chunks[number] for number in wanted):
                self._changed.wait(timeout)
            self._wanted = frozenset(range(len(self._chunks)))

    def stop(self) -> None:
        """Let all threads end."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()


class Feeder(threading.Thread):
    """The thread of one source."""

    def __init__(self, source: Source, number: int, inbox: Inbox, position: Position | None):
        super().__init__(name=f"source-{number}", daemon=True)
        self._source = source
        self._number = number
        self._inbox = inbox
        self._position = position

    def run(self) -> None:
        """Read the source until it ends or the run stops."""
        failure: BaseException | None = None
        inbox, number = self._inbox, self._number
        try:
            try:
                self._source.open(self._position)
                inbox.has_opened(number)
                while inbox.is_wanted(number):
                    begun = time.monotonic()
                    chunks = self._source.poll(POLL_SECONDS)
                    if chunks is None:
                        break
                    inbox.hear(number, None if chunks else begun)
                    if chunks:
                        inbox.put(number, chunks)
            finally:
                self._source.close()
        except BaseException as error:  # raised again by the coordinator
            failure = error
        inbox.end(number, failure)
