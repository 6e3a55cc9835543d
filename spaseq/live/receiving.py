"""Code that the sources of channels share: a receiving thread, and pauses between connections.

The thread of a source puts messages into a bounded queue, and waits while it is full. A slow query
therefore slows the channel down, and connections are kept alive meanwhile.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Sequence

from spaseq.live.protocols import Chunk

MAX_QUEUED = 10_000
"""The most messages that wait to be taken."""
MAX_TOGETHER = 1 << 18
"""Bytes of the messages that are passed on together."""
LEAST_PAUSE, MOST_PAUSE = 0.2, 30.0
"""Seconds between two attempts to connect."""


class Pauses:
    """Pauses between attempts: each twice as long as the previous one, with a random part."""

    def __init__(self, least: float = LEAST_PAUSE, most: float = MOST_PAUSE):
        self.least = least
        self._most = most
        self._next = least

    def reset(self) -> None:
        """Reset the pauses after a successful attempt."""
        self._next = self.least

    def following(self) -> float:
        """The next pause in seconds."""
        pause = self._next
        self._next = min(2 * pause, self._most)
        return pause * random.uniform(0.5, 1.0)


def together(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Combine chunks of one message into chunks of several; marks and documents are unchanged."""
    found: list[Chunk] = []
    some: list[Chunk] = []
    size = 0

    def complete() -> None:
        nonlocal size
        if len(some) > 1:
            messages = [(chunk.data, chunk.media_type, chunk.time) for chunk in some]
            found.append(Chunk(b"", some[-1].position, together=messages))
        else:
            found.extend(some)
        some.clear()
        size = 0

    for chunk in chunks:
        if chunk.mark or chunk.together:
            complete()
            found.append(chunk)
            continue
        some.append(chunk)
        size += chunk.size
        if size >= MAX_TOGETHER:
            complete()
    complete()
    return found


class Background:
    """A thread that receives messages.

    Args:
        receive: Runs in the thread; it calls `emit`, and returns at the end of the source.
        name: The name of the thread.
    """

    def __init__(self, receive: Callable[[Background], None], name: str):
        self._receive = receive
        self._queue: queue.Queue[Chunk] = queue.Queue(MAX_QUEUED)
        self._failure: BaseException | None = None
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._receive(self)
        except BaseException as error:  # raised again by `take`
            self._failure = error

    def emit(self, chunk: Chunk) -> None:
        """Pass a message on; waits while the queue is full."""
        while not self.stopped.is_set():
            try:
                self._queue.put(chunk, timeout=0.1)
                return
            except queue.Full:
                continue

    def offer(self, chunk: Chunk) -> bool:
        """Pass a message on, unless the queue is full; returns whether it was."""
        try:
            self._queue.put_nowait(chunk)
        except queue.Full:
            return False
        return True

    def pause(self, seconds: float) -> None:
        """Wait, unless the source is closed meanwhile."""
        self.stopped.wait(seconds)

    def take(self, timeout: float) -> Sequence[Chunk] | None:
        """The messages that have arrived, as `Source.poll`.

        Raises:
            Exception: the error that ended the thread, after the messages before it.
        """
        until = time.monotonic() + timeout
        found: list[Chunk] = []
        while True:
            try:
                while len(found) < MAX_QUEUED:
                    found.append(self._queue.get_nowait())
            except queue.Empty:
                pass
            if found:
                return together(found)
            if not self._thread.is_alive() and self._queue.empty():
                if self._failure is not None:
                    raise self._failure
                return None
            left = until - time.monotonic()
            if left <= 0:
                return ()
            try:
                found.append(self._queue.get(timeout=min(left, 0.05)))
            except queue.Empty:
                continue

    def stop(self, seconds: float = 2.0) -> None:
        """End the thread, which checks `stopped`."""
        self.stopped.set()
        self._thread.join(seconds)
