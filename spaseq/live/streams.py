"""One stream of a live run: chunks → encoded events, in order, with a frontier and a position.

The frontier is the time before which the stream has no further events: the time of its last event,
or its greatest time less the lateness. The coordinator releases the events up to the least frontier
of all streams that are not idle.

The position is that of the events that the run has processed. It consists of a restart point of the
reader (`spaseq.io.pushed`) at or before the first unprocessed event, and of the processed events
after this point, which are read again and skipped. Under `lateness`, an event may be processed
before an earlier one, so the numbers of the unprocessed events are listed.

Cost: without lateness, constant per chunk. With lateness, logarithmic in the waiting events, in
Python. Memory: the waiting events.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from spaseq.errors import InputError
from spaseq.io.source import EVENTS_AT_ONCE, Source
from spaseq.live.protocols import Chunk, Position
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import EventBatch, Relevance
from spaseq.rdf.reorder import AHEAD, Horizon, Refusal, StreamTime

LateEvent = tuple[EventBatch, int, Refusal]
"""(batch, index, why it is not processed)."""


class Decoder(Protocol):
    """Chunks → events; see `spaseq.live.decoders`."""

    @property
    def failure(self) -> InputError | None: ...

    def begin(self, chunk: Chunk) -> None: ...

    def take(self, chunk: Chunk) -> Iterator[EventBatch]: ...

    def quiet(self) -> EventBatch | None: ...

    def end(self) -> EventBatch | None: ...

    def open(self, point: Mapping[str, Any]) -> None: ...

    def restart(self) -> dict[str, Any] | None: ...


class Stream(StreamTime):
    """The events of one source, and their time (`spaseq.rdf.reorder`).

    Args:
        source: The options, the counters and the log of the stream.
        relevance: The triples that the queries can use.
        decode: Makes the decoder, from (source, relevance, minter or None).
        late: Receives each event that is too late.
        keeps: Whether `position` will be called.
    """

    def __init__(
        self,
        source: Source,
        relevance: Relevance,
        decode: Callable[[Source, Relevance, Minter | None], Decoder],
        late: Callable[[LateEvent], None],
        keeps: bool,
    ):
        super().__init__(source.options.lateness or 0)
        self.source = source
        self.reorders = source.options.lateness is not None
        """Whether this object puts the events in order."""
        self.horizon: Callable[[str], Horizon] | None = None
        """Returns which events are too far ahead, from the kind of their time; None: none are."""
        self._minter = Minter(source.number)
        self.decoder = decode(source, relevance, None if self.reorders else self._minter)
        self._late = late
        self._keeps = keeps
        self.domain: str | None = None
        self._read = 0
        """The number of events read, including those that are read again."""
        self._released = 0
        """Without lateness, the number of events processed."""
        self._again: set[int] | None = None
        """The numbers of the events read again that must be processed; None: from `_released`
        on."""
        self._until = 0
        """The number of the first event that is not read again."""
        self._batches: deque[EventBatch] = deque()
        self._first = 0
        """The index of the next event of the first batch."""
        self._waiting: list[tuple[int, int, EventBatch, int]] = []
        """Under lateness: a heap of (time, number, batch, index)."""
        self._points: deque[tuple[int, dict[str, Any]]] = deque()
        """(number of the next event, restart point with the position of the source)."""
        self.complete: Callable[[Position], Position] | None = None
        """Completes a position of the source for a checkpoint: its `order_after`, if it has one."""
        self.ended = False
        self.was_quiet = True
        """Whether the open event has been closed since the last chunk."""

    @property
    def frontier(self) -> int | None:
        """The time before which no further events come; None: not known."""
        return super().frontier if self.has_read_again else None

    @property
    def has_read_again(self) -> bool:
        """Whether all events that a checkpoint had read have been read again."""
        return self._read >= self._until

    @property
    def pending(self) -> int:
        """The number of events that wait for other streams or for late events."""
        return len(self._waiting) + sum(map(len, self._batches)) - self._first

    # ------------------------------------------------------------ reading

    def take(self, chunk: Chunk) -> None:
        """Decode a chunk. An error is in `failure`, after the events before it."""
        self.was_quiet = False
        if chunk.document is not None:
            self.decoder.begin(chunk)
            self._keep()
        for batch in self.decoder.take(chunk):
            self._add(batch)
        self._keep()

    def quiet(self) -> None:
        """Complete the open event, since nothing has arrived for a while."""
        self.was_quiet = True
        batch = self.decoder.quiet()
        if batch is not None:
            self._add(batch)
            self._keep()

    def end(self) -> None:
        """Handle the end of the source."""
        batch = self.decoder.end()
        if batch is not None:
            self._add(batch)
        self._keep()

    @property
    def failure(self) -> InputError | None:
        """The error that ends the stream."""
        return self.decoder.failure

    def _keep(self) -> None:
        """Remember the restart point."""
        if not self._keeps or self.failure is not None:
            return
        point = self.decoder.restart()
        if point is not None:
            if self._points and self._points[-1][0] == self._read:
                self._points.pop()
            self._points.append((self._read, point))
            if not self.reorders:
                self._forget(self._released)

    def _forget(self, number: int) -> None:
        """Remove the restart points that precede the last one before an event."""
        points = self._points
        while len(points) > 1 and points[1][0] <= number:
            points.popleft()

    def _add(self, batch: EventBatch) -> None:
        count = len(batch)
        number, self._read = self._read, self._read + count
        self.domain = batch.time(0).domain
        if self.reorders:
            self._wait(batch, number)
            return
        first = min(max(self._released - number, 0), count)
        skipped = first
        while first < count and self.floor is not None and batch.micros(first) < self.floor:
            self._late((batch, first, Refusal(self.overtaken, self.floor)))
            self.source.counters.late += 1
            first += 1
        self._released += first - skipped
        self._count(batch, skipped)
        self.reach(batch.micros(count - 1))
        if first == count:
            return
        if not self._batches:
            self._first = first
        self._batches.append(batch)

    def _wait(self, batch: EventBatch, number: int) -> None:
        """Put events in the heap, except those that are too late or were processed."""
        self._count(batch, 0)
        horizon = None if self.horizon is None else self.horizon(batch.time(0).domain)
        before = self.greatest
        for index in range(len(batch)):
            micros = batch.micros(index)
            if number + index < self._until:
                if self._again is None or number + index not in self._again:
                    self.source.counters.events -= 1  # counted before the checkpoint
                    continue
            else:
                refusal = self.late(micros)
                if refusal is None and horizon is not None:
                    refusal = horizon.ahead(micros)
                if refusal is not None:
                    self._late((batch, index, refusal))
                    if refusal.reason == AHEAD:
                        self.source.counters.ahead += 1
                    else:
                        self.source.counters.late += 1
                    continue
            heapq.heappush(self._waiting, (micros, number + index, batch, index))
            self.reach(micros)
        if self.greatest != before:
            self.reached = time.time_ns() // 1000

    def _count(self, batch: EventBatch, first: int) -> None:
        counters = self.source.counters
        total = batch.total(first)
        counters.events += len(batch) - first
        counters.statements += total
        counters.pruned += total - (batch.total_kept() if first == 0 else total)

    # ------------------------------------------------------------ release

    def order(self, bound: int | None) -> None:
        """Under lateness, put the events up to a time in their final order; None: all events."""
        waiting = self._waiting
        ready: EventBatch | None = None
        while waiting and (bound is None or waiting[0][0] <= bound):
            _, _, batch, index = heapq.heappop(waiting)
            if ready is None or ready.file != batch.file or len(ready) >= EVENTS_AT_ONCE:
                ready = EventBatch(batch.dictionary, batch.stream, batch.file)
                self._batches.append(ready)
            self._minter.copy(batch, index, ready)

    @property
    def head(self) -> tuple[EventBatch | None, int]:
        """The first batch in order, and the index of its next event."""
        return (self._batches[0], self._first) if self._batches else (None, 0)

    @property
    def next_time(self) -> int | None:
        """The least time of an event that waits, in microseconds; None: none waits."""
        batch, first = self.head
        times = [] if batch is None else [batch.micros(first)]
        return min(times + [micros for micros, *_ in self._waiting[:1]], default=None)

    def advance(self, index: int) -> None:
        """Record that the events of the first batch before `index` are processed."""
        self._released += index - self._first
        self._first = index
        if index == len(self._batches[0]):
            self._batches.popleft()
            self._first = 0

    # ------------------------------------------------------------ positions

    def position(self) -> dict[str, Any] | None:
        """The position at which to continue after the processed events; None: at the beginning."""
        numbers = sorted(number for _, number, _, _ in self._waiting)
        next_number = min(numbers, default=self._read) if self.reorders else self._released
        self._forget(next_number)
        if not self._points or self._points[0][0] > next_number:
            return None
        number, point = self._points[0]
        if self.complete is not None:
            point = {**point, "source": self.complete(point["source"])}
        saved: dict[str, Any] = {"point": point, "greatest": self.greatest, "domain": self.domain}
        if self.reorders:
            if self._until > self._read:
                # Some events that must be read again have not been read yet.
                unread = [n for n in self._again or () if n >= self._read]
                numbers += sorted(unread)
            saved["minter"] = self._minter.state()
            saved["count"] = max(self._read, self._until) - number
            saved["again"] = [one - number for one in numbers]
        else:
            saved["skip"] = self._released - number
        return saved

    def go_on(self, saved: Mapping[str, Any]) -> Any:
        """Continue after a checkpoint without reading again; returns the position of the source.

        Events of the source that were read and not processed are lost. The numbers of processed
        events, from which the labels of their blank nodes are made, are not used again.
        """
        point = saved["point"]
        self.decoder.open(point)
        self.greatest, self.domain = saved["greatest"], saved["domain"]
        if self.reorders:
            self._minter.restore(*saved["minter"])
        else:
            made, last, ordinal = self._minter.state()
            self._minter.restore(made + saved["skip"], last, ordinal)
        return point["source"]

    def resume(self, saved: Mapping[str, Any]) -> Any:
        """Continue at a position; returns the position of the source."""
        point = saved["point"]
        self.decoder.open(point)
        self._points.append((0, dict(point)))
        self.domain = saved["domain"]
        if self.reorders:
            self.greatest = saved["greatest"]
            self._minter.restore(*saved["minter"])
            self._until = saved["count"]
            self._again = set(saved["again"])
        else:
            # The frontier is known once the events after the restart point have been read again.
            self._released = saved["skip"]
        return point["source"]
