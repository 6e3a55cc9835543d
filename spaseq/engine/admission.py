"""Which events a run may take now: known streams, one kind of time, in order, while it goes on.

Invariant: what is refused here has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.errors import EventError, RunFailed
from spaseq.rdf.event import Event, Timestamp
from spaseq.rdf.time import from_micros, json_value


class Admission:
    """Where the streams of a run have come to."""

    def __init__(self, streams: Sequence[str]):
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
        self.has_gaps = False
        """Whether the run is given a part of its streams, in which numbers are missing."""

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
            raise EventError(mixed(self.domain, time.domain, f"an event of <{stream}>"))
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


def mixed(known: str, other: str, what: str) -> str:
    words = {"number": "a number", "dateTime": "a date"}
    return (
        f"{what} has {words[other]} as its timestamp, but the run counts time by "
        f"{words[known]}: use one kind for all streams of a query"
    )
