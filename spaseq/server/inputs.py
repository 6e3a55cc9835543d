"""The streams of the server: waiting events, the progress of time, and what holds it back.

An event waits until every other stream that is not idle has reached its time, and with `--lateness`
also until its own stream is that much further. Then it is released to the runs, in time order. An
event before the time that a run has reached, or further behind its stream than the lateness, is
late: it is counted and reported, but not matched.

Cost: see `spaseq.server.waiting`; Python code of constant size for a batch in order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyoxigraph as ox

from spaseq.errors import EventError
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import Timestamp
from spaseq.rdf.time import from_micros, from_value, json_value
from spaseq.records import dataclass
from spaseq.server.waiting import Released, WaitingEvents

BEFORE_ALL = -(1 << 63)
"""A time before that of any event, in microseconds."""
_DATE = ox.NamedNode("http://www.w3.org/2001/XMLSchema#dateTime")


@dataclass(frozen=True, slots=True)
class Late:
    """An event that is too late."""

    stream: str
    batch: EventBatch
    index: int
    reason: str
    watermark: int
    """The time before which it is late, in microseconds."""

    def to_dict(self) -> dict[str, Any]:
        """The event and the reason as JSON, as in the file of `spaseq run --late`."""
        stamp, name = self.batch.time(self.index), self.batch.name(self.index)
        shown = {
            "stream": self.stream,
            "time": json_value(stamp),
            "reason": self.reason,
            "watermark": json_value(from_micros(self.watermark, stamp.domain)),
            "lateness": (self.watermark - stamp.micros) / 1e6,
            "graph": None if name is None else name.value,
            "triples": self.batch.n_triples(self.index).decode(),
        }
        return {key: value for key, value in shown.items() if value is not None}


def time_of_json(value: Any) -> Timestamp:
    """A time in JSON: a number of seconds, or a text with a date and a time.

    Raises:
        EventError: for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise EventError("a time is a number of seconds, or a date like 2026-01-01T00:00:00Z")
    return from_value(ox.Literal(value, datatype=_DATE) if isinstance(value, str) else value)


class InputStream:
    """One stream.

    Args:
        iri: Its IRI.
        number: Its number among the streams of the server, for labels of blank nodes.
        lateness: How many microseconds an event may be behind the greatest time of the stream.
    """

    def __init__(self, iri: str, number: int, lateness: int):
        self.iri = iri
        self.number = number
        self.lateness = lateness
        self._waiting = WaitingEvents()
        self.greatest: int | None = None
        """The greatest time of an event, in microseconds."""
        self.promised: int | None = None
        """The greatest watermark that was pushed."""
        self.is_idle = False
        """Whether the other streams do not wait for this stream."""
        self.heard = time.monotonic()
        """The time of the last push, on the monotonic clock."""
        self.events = self.late = self.rejected = 0
        self.released = 0
        """The number of events released to the runs."""

    # ------------------------------------------------------------ time

    @property
    def frontier(self) -> int | None:
        """The time before which the stream has no further events; None: not known."""
        own = None if self.greatest is None else self.greatest - self.lateness
        if self.promised is None or (own is not None and own > self.promised):
            return own
        return self.promised

    @property
    def pending(self) -> int:
        """The number of waiting events."""
        return len(self._waiting)

    @property
    def first_record(self) -> int | None:
        """The first record of the journal with a waiting event."""
        return self._waiting.first_record

    def promise(self, micros: int) -> None:
        """Record that no further event comes before a time."""
        if self.promised is None or micros > self.promised:
            self.promised = micros

    # ------------------------------------------------------------ events

    def take(self, batch: EventBatch, record: int, floor: int | None, first: int = 0) -> list[Late]:
        """Let the events of a batch wait; returns those that are too late.

        Args:
            batch: The events.
            record: The record of the journal that has them.
            floor: The time before which the runs accept no event.
            first: The number of the first one among the events of the record.
        """
        times = list(map(batch.micros, range(len(batch))))
        if times and times == sorted(times) and times[0] >= self._bound(floor):
            self._waiting.add_all(times, record, first, batch)
            self.greatest = max(times[-1], times[-1] if self.greatest is None else self.greatest)
            self.events += len(times)
            return []
        return self._take_each(times, batch, record, floor, first)

    def _bound(self, floor: int | None) -> int:
        """The time before which an event is late, in microseconds."""
        own = None if self.greatest is None else self.greatest - self.lateness
        known = [bound for bound in (own, self.promised, floor) if bound is not None]
        return max(known, default=BEFORE_ALL)

    def _take_each(
        self, times: Sequence[int], batch: EventBatch, record: int, floor: int | None, first: int
    ) -> list[Late]:
        """Like `take`, for events that are out of order, or some of which are late."""
        late: list[Late] = []
        lateness, greatest, waiting = self.lateness, self.greatest, self._waiting
        for index, at in enumerate(times):
            own = None if greatest is None else greatest - lateness
            bound, reason = own, "lateness"
            if self.promised is not None and (bound is None or self.promised > bound):
                bound, reason = self.promised, "watermark"
            if floor is not None and (bound is None or floor > bound):
                bound, reason = floor, "idle"
            if bound is not None and at < bound:
                late.append(Late(self.iri, batch, index, reason, bound))
                continue
            waiting.add(at, record, first + index, batch, index)
            if greatest is None or at > greatest:
                greatest = at
        self.greatest = greatest
        self.late += len(late)
        self.events += len(batch) - len(late)
        return late

    def wait_again(self, batch: EventBatch, record: int, first: int, only: frozenset[int]) -> None:
        """Let those events of a batch wait that waited at a checkpoint.

        Args:
            batch: The events.
            record: The record of the journal that has them.
            first: The number of the first one among the events of the record.
            only: The numbers of the events that waited.
        """
        for index in range(len(batch)):
            if first + index in only:
                self._waiting.add(batch.micros(index), record, first + index, batch, index)

    def release(self, bound: int) -> list[Released]:
        """The waiting events up to a time in their final order."""
        ready = self._waiting.release(bound)
        self.released += sum(end - start for _, start, end in ready)
        return ready

    def begin_anew(self) -> None:
        """Forget the time and the waiting events, since there is no longer any query."""
        self._waiting.clear()
        self.greatest = self.promised = None

    def drop(self) -> None:
        """Forget the waiting events, since no query can see them."""
        self._waiting.clear()

    # ------------------------------------------------------------ checkpoints

    def state(self) -> dict[str, Any]:
        """The stream as data, for `restore`."""
        return {
            "iri": self.iri,
            "number": self.number,
            "greatest": self.greatest,
            "promised": self.promised,
            "idle": self.is_idle,
            "counts": [self.events, self.late, self.rejected, self.released],
            "waiting": sorted(self._waiting.places()),
        }

    def restore(self, saved: Mapping[str, Any]) -> dict[int, frozenset[int]]:
        """Continue at a checkpoint; returns the waiting events: record → numbers."""
        self.greatest, self.promised = saved["greatest"], saved["promised"]
        self.is_idle = saved["idle"]
        self.events, self.late, self.rejected, self.released = saved["counts"]
        found: dict[int, set[int]] = {}
        for record, number in saved["waiting"]:
            found.setdefault(record, set()).add(number)
        return {record: frozenset(numbers) for record, numbers in found.items()}


def bound_of(streams: list[InputStream]) -> int | None:
    """The time up to which events can be released; None: not known yet."""
    speaking = [stream for stream in streams if not stream.is_idle]
    if not speaking:
        known = [frontier for s in streams if (frontier := s.frontier) is not None]
        return max(known, default=None)
    least: int | None = None
    for stream in speaking:
        frontier = stream.frontier
        if frontier is None:
            return None
        least = frontier if least is None else min(least, frontier)
    return least


def holder_of(streams: list[InputStream]) -> InputStream | None:
    """The stream that holds back the others, if one does."""
    speaking = [stream for stream in streams if not stream.is_idle]
    if len(speaking) < 2 or not any(stream.pending for stream in streams):
        return None
    for stream in speaking:
        if stream.frontier is None:
            return stream
    return min(speaking, key=lambda stream: stream.frontier or 0)
