"""`StreamClock`: the position of a run in its streams, and which events it admits.

The clock admits an event if a query reads its stream, its kind of time is the run's, its timestamp
is not closed, and the run has neither failed nor finished. Invariant: a refused event changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spaseq.errors import ArgumentError, EventError, RunFailed, kind_of
from spaseq.rdf.checked import PASSED
from spaseq.rdf.event import Event, Timestamp
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.time import TimePrecision, from_micros, from_value, json_value, mixed_domains


class StreamClock:
    """The time, the ordinals and the event counters of one run.

    Args:
        streams: The IRIs of the external streams.
    """

    def __init__(self, streams: Sequence[str]):
        self.streams = tuple(streams)
        """The IRIs of the external streams, including those that no query reads any longer."""
        self._known = set(streams)
        self.time: Timestamp | None = None
        """The greatest timestamp so far, of an event or a watermark."""
        self.closed: int | None = None
        """All timestamps before this one are closed, in microseconds."""
        self.ordinals: dict[str, int] = {}
        """Per stream: the number of events at the current timestamp, or `PASSED`."""
        self.domain: str | None = None
        """The kind of time of all events; None before the first event."""
        self.finished = False
        self.failure = ""
        """The error that stopped the run within an event; the state is unusable after it."""
        self.time_precision: TimePrecision = "error"
        """How to treat a pushed time finer than a microsecond."""
        self.has_gaps = False
        """Whether the run receives a part of its streams, so that ordinals may be missing."""
        self.events = 0
        self.triples = 0
        self.per_stream: dict[str, int] = dict.fromkeys(streams, 0)
        """Per external stream: the number of events so far."""

    def add_streams(self, streams: Sequence[str]) -> None:
        """Admit the events of further streams."""
        self.streams = tuple(dict.fromkeys((*self.streams, *streams)))
        self._known.update(streams)
        for iri in streams:
            self.per_stream.setdefault(iri, 0)

    def join(self, other: StreamClock) -> None:
        """Have the streams and the events of another clock, which has closed the same times."""
        self.add_streams(other.streams)
        self.domain = self.domain or other.domain
        if self.time is None or (other.time is not None and other.time.micros > self.time.micros):
            self.time, self.ordinals = other.time, {}
        self.events += other.events
        self.triples += other.triples
        for iri, count in other.per_stream.items():
            self.per_stream[iri] += count

    # ------------------------------------------------------------------ admission

    def check_running(self) -> None:
        """Raise `RunFailed` after a failure."""
        if self.failure:
            raise RunFailed(
                f"the run has failed and accepts no more events: {self.failure}\n"
                "Start a new run, or resume a saved one"
            )

    def check_event(self, event: Event) -> None:
        """Admit an event with the next ordinal of its stream, or a later one if there are gaps.

        Raises:
            ArgumentError: for anything but an event.
            EventError: if the clock does not admit the event.
        """
        if not isinstance(event, Event):
            raise ArgumentError(f"push_batch takes Events, and {event!r} is {kind_of(event)}")
        self.check_stream(event.stream)
        self.check_time(event.time, event.stream)
        ordinal = self.next_ordinal(event.stream, event.time)
        if event.ordinal < ordinal or (event.ordinal > ordinal and not self.has_gaps):
            raise EventError(
                f"event {ordinal} of <{event.stream}> at {json_value(event.time)} "
                f"says it is number {event.ordinal}"
            )

    def check_stream(self, stream: str) -> None:
        """Raise an error if the run accepts no events of a stream."""
        self.check_running()
        if self.finished:
            raise EventError("the run is finished: start a new one for more events")
        if stream not in self._known:
            known = ", ".join(f"<{iri}>" for iri in self.streams)
            raise EventError(f"no query reads the stream <{stream}>; they read {known}")

    def check_time(self, time: Timestamp, stream: str) -> None:
        """Raise an error if a timestamp is closed, or of another kind than earlier ones."""
        if self.domain is not None and time.domain != self.domain:
            raise EventError(mixed_domains(self.domain, time.domain, f"an event of <{stream}>"))
        is_over = self.next_ordinal(stream, time) == PASSED
        if is_over or (self.closed is not None and time.micros < self.closed):
            assert self.closed is not None
            raise late_event(stream, time, from_micros(self.closed, time.domain))

    def passes(self, time: Timestamp) -> bool:
        """Whether a watermark closes timestamps, which also decides the kind of time.

        Raises:
            EventError: if it is of another kind than the events.
        """
        if self.domain is not None and time.domain != self.domain:
            raise EventError(mixed_domains(self.domain, time.domain, "the watermark"))
        if self.closed is not None and time.micros <= self.closed:
            return False
        self.domain = time.domain
        return True

    def floor_of(self, stream: str) -> int | None:
        """The least time of an event of a stream that is not late; None: there is none."""
        is_over = (
            self.time is not None
            and self.closed == self.time.micros
            and (self.ordinals.get(stream) == PASSED)
        )
        return self.closed if self.closed is None else self.closed + is_over

    def passing(self, reached: Mapping[str, int]) -> list[str]:
        """The streams that pass the current timestamp if they deliver no events before a time each.

        Those that have passed it already are left out.
        """
        if self.time is None or self.closed != self.time.micros or self.finished:
            return []
        return [
            iri
            for iri, micros in reached.items()
            if micros > self.closed and self.ordinals.get(iri) != PASSED
        ]

    def next_ordinal(self, stream: str, time: Timestamp) -> int:
        """The ordinal of the next event of a stream at a timestamp."""
        if self.time is None or time.micros != self.time.micros:
            return 0
        return self.ordinals.get(stream, 0)

    def follows(self, batch: EventBatch, index: int) -> bool:
        """Whether `check_event` would admit an event of a batch, apart from its ordinal."""
        stamp = batch.time(index)
        return (
            not self.finished
            and not self.failure
            and self.domain in (None, stamp.domain)
            and (self.closed is None or stamp.micros >= self.closed)
        )

    # ------------------------------------------------------------------ progress

    def count_event(self, event: Event) -> None:
        """Advance to an event."""
        if self.time is None or event.time.micros != self.time.micros:
            self.ordinals = {}
        self.time, self.domain = event.time, event.time.domain
        self.ordinals[event.stream] = event.ordinal + 1
        self.events += 1
        self.triples += event.size
        self.per_stream[event.stream] += 1

    def count_batch(self, batch: EventBatch, first: int, after: int) -> None:
        """Advance over the events `first:after` of a batch; each closes all earlier timestamps."""
        if after == first:
            return
        time = batch.time(after - 1)
        self.time, self.domain, self.closed = time, time.domain, time.micros
        self.ordinals = {batch.stream: batch.ordinal(after - 1) + 1}
        self.events += after - first
        self.triples += batch.total(first, after)
        self.per_stream[batch.stream] += after - first

    def count_parts(
        self,
        parts: Iterable[tuple[EventBatch, int, int]],
        time: Timestamp,
        ordinals: Mapping[str, int],
    ) -> None:
        """Advance over ranges of batches, to a time and its ordinals."""
        self.time, self.domain, self.closed = time, time.domain, time.micros
        self.ordinals = dict(ordinals)
        for batch, first, after in parts:
            self.events += after - first
            self.triples += batch.total(first, after)
            self.per_stream[batch.stream] += after - first


def late_event(stream: str, time: Timestamp, now: Timestamp) -> EventError:
    """The error for an event at a time before the one that its run or its stream has reached."""
    return EventError(
        f"an event of <{stream}> at {json_value(time)} is late: the run has reached "
        f"{json_value(now)}. Sort the events, or let the reader reorder them (lateness)"
    )


def timestamp_of(value: Any, precision: TimePrecision = "error") -> Timestamp:
    """A datetime, or a number of seconds, as a timestamp."""
    return value if isinstance(value, Timestamp) else from_value(value, "s", precision)
