"""The waiting events of one stream, by time, and for equal times by arrival.

A batch whose events are in order, and after all waiting events, is one entry. Otherwise each event
is an entry of a heap, until no event waits. Cost: logarithmic in the waiting events for each event
of the heap; constant for each batch in order.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spaseq.rdf.native._terms import EventBatch

Released: TypeAlias = tuple[EventBatch, int, int]
"""Events in order: a batch, the first one and the one after the last."""


@dataclass(slots=True)
class _Range:
    """Events of a batch in order.

    Args:
        times: The times of all events of the batch, in microseconds.
        record: The record of the journal that has them.
        first: The number of the first one among the events of the record.
        batch: The batch.
        start: The first event that still waits.
    """

    times: Sequence[int]
    record: int
    first: int
    batch: EventBatch
    start: int = 0


class WaitingEvents:
    """The waiting events. Invariant: the heap is empty, or there are no ranges."""

    def __init__(self) -> None:
        self._ranges: deque[_Range] = deque()
        self._heap: list[tuple[int, int, int, EventBatch, int]] = []
        """(time, record, number in it, batch, index)."""

    def __len__(self) -> int:
        return len(self._heap) + sum(len(one.times) - one.start for one in self._ranges)

    def add_all(self, times: Sequence[int], record: int, first: int, batch: EventBatch) -> None:
        """Add the events of a batch, whose times are in order; see `_Range`."""
        last = self._ranges[-1].times[-1] if self._ranges else None
        if self._heap or (last is not None and times[0] < last):
            for index, time in enumerate(times):
                self.add(time, record, first + index, batch, index)
        else:
            self._ranges.append(_Range(times, record, first, batch))

    def add(self, time: int, record: int, number: int, batch: EventBatch, index: int) -> None:
        """Add one event."""
        while self._ranges:
            one = self._ranges.popleft()
            for at in range(one.start, len(one.times)):
                place = (one.times[at], one.record, one.first + at, one.batch, at)
                heapq.heappush(self._heap, place)
        heapq.heappush(self._heap, (time, record, number, batch, index))

    def release(self, bound: int) -> list[Released]:
        """Take the events up to a time, in order."""
        ready: list[Released] = []
        ranges, heap, pop = self._ranges, self._heap, heapq.heappop
        while ranges:
            one = ranges[0]
            end = bisect_right(one.times, bound, one.start)
            if end > one.start:
                ready.append((one.batch, one.start, end))
                one.start = end
            if end < len(one.times):
                break
            ranges.popleft()
        while heap and heap[0][0] <= bound:
            _, _, _, batch, index = pop(heap)
            ready.append((batch, index, index + 1))
        return ready

    def places(self) -> Iterator[tuple[int, int]]:
        """The record of each event, and its number there."""
        for _, record, number, _, _ in self._heap:
            yield record, number
        for one in self._ranges:
            for index in range(one.start, len(one.times)):
                yield one.record, one.first + index

    @property
    def first_time(self) -> int | None:
        """The time of the first event, in microseconds."""
        if self._heap:
            return self._heap[0][0]
        return self._ranges[0].times[self._ranges[0].start] if self._ranges else None

    @property
    def first_record(self) -> int | None:
        """The first record with a waiting event."""
        records = [record for _, record, *_ in self._heap]
        return min(records + [one.record for one in self._ranges], default=None)

    def clear(self) -> None:
        """Remove all events."""
        self._ranges.clear()
        self._heap.clear()
