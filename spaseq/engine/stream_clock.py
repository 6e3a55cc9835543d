"""Which events a run may take now: known streams, one kind of time, in order, while it goes on.

Invariant: what is refused here has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spaseq.engine._alone import Alone
from spaseq.errors import EventError, RunFailed
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import Event, Timestamp
from spaseq.rdf.time import TimePrecision, from_micros, from_value, json_value, mixed_domains


class Admission:
    """Where the streams of a run have come to."""

    def __init__(self, streams: Sequence[str]):
        self.alone = Alone()
        """What refuses a second thread."""
        self._external = streams
        self._known = set(streams)
        self.time: Timestamp | None = None
        """The greatest timestamp so far (event or watermark)."""
        self.closed: int | None = None
        """Timestamps before this one are closed."""
        self.ordinals: dict[str, int] = {}
        """Events per stream at the current timestamp, registered streams too."""
        self.domain: str | None = None
        self.finished = False
        self.failure = ""
        """What stopped the run in the midst of an event: its state is of no use since."""
        self.time_precision: TimePrecision = "error"
        """What a pushed time finer than a microsecond becomes."""
        self.has_gaps = False
        """Whether the run is given a part of its streams, in which numbers are missing."""
        self.events = 0
        self.triples = 0
        self.per_stream: dict[str, int] = dict.fromkeys(streams, 0)

    def _checked(self, event: Event) -> Event:
        """An event that may come now, with the ordinal its stream is at (or a later one)."""
        self._check_stream(event.stream)
        time = self._check_time(event.time, event.stream)
        ordinal = self._next_ordinal(event.stream, time)
        if event.ordinal < ordinal or (event.ordinal > ordinal and not self.has_gaps):
            raise EventError(
                f"event {ordinal} of <{event.stream}> at {json_value(time)} "
                f"says it is number {event.ordinal}"
            )
        return event

    def check_going(self) -> None:
        """Refuse to go on after a failure."""
        if self.failure:
            raise RunFailed(
                f"the run has failed, and takes no more events: {self.failure}\n"
                "Start a new one, or resume one that was saved before"
            )

    def _check_stream(self, stream: str) -> None:
        self.check_going()
        if self.finished:
            raise EventError("the run is finished: start a new one for more events")
        if stream not in self._known:
            known = ", ".join(f"<{iri}>" for iri in self._external)
            raise EventError(f"no query reads the stream <{stream}>; they read {known}")

    def _check_time(self, time: Timestamp, stream: str) -> Timestamp:
        if self.domain is not None and time.domain != self.domain:
            raise EventError(mixed_domains(self.domain, time.domain, f"an event of <{stream}>"))
        if self.closed is not None and time.micros < self.closed:
            now = from_micros(self.closed, time.domain)
            raise EventError(
                f"an event of <{stream}> at {json_value(time)} is late: time has come to "
                f"{json_value(now)} already. Sort the events, or let the reader "
                "reorder them (--lateness)"
            )
        return time

    def _next_ordinal(self, stream: str, time: Timestamp) -> int:
        if self.time is None or time.micros != self.time.micros:
            return 0
        return self.ordinals.get(stream, 0)

    def _follows(self, batch: EventBatch, index: int) -> bool:
        """Whether an event may be taken without looking at what it lacks."""
        stamp = batch.time(index)
        return (
            not self.finished
            and not self.failure
            and self.domain in (None, stamp.domain)
            and (self.closed is None or stamp.micros >= self.closed)
        )

    def _count(self, batch: EventBatch, first: int, after: int) -> None:
        """Some events have been taken, each as its timestamp closed all before it."""
        if after == first:
            return
        time = batch.time(after - 1)
        self.time, self.domain, self.closed = time, time.domain, time.micros
        self.ordinals = {batch.stream: batch.ordinal(after - 1) + 1}
        self.events += after - first
        self.triples += batch.total(first, after)
        self.per_stream[batch.stream] += after - first


def timestamp_of(value: Any, precision: TimePrecision = "error") -> Timestamp:
    """A datetime, or a number of seconds, as a timestamp."""
    return value if isinstance(value, Timestamp) else from_value(value, "s", precision)
