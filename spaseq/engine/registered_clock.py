"""The times and ordinals of the events of registered streams, and which of them are due."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from spaseq.rdf.event import Event


def divided_at(events: Sequence[Event], micros: int | None) -> tuple[list[Event], list[Event]]:
    """The events before a time in order, and the others; None is after all times."""
    if micros is None:
        return sorted(events, key=attrgetter("instant")), []
    before = [event for event in events if event.time.micros < micros]
    before.sort(key=attrgetter("instant"))
    return before, [event for event in events if event.time.micros >= micros]


class RegisteredClock:
    """The instants of the last events of the streams that the queries of a run register."""

    def __init__(self) -> None:
        self.times: dict[str, int] = {}
        """Per stream: the time of its last event, in microseconds."""
        self.ordinals: dict[str, int] = {}
        """Per stream: the ordinal of its next event at that time."""

    def advance(self, iri: str, micros: int, count: int = 1) -> int:
        """The ordinal of the first of `count` new events of a stream at a time."""
        if self.times.get(iri) != micros:
            self.times[iri], self.ordinals[iri] = micros, 0
        first = self.ordinals[iri]
        self.ordinals[iri] = first + count
        return first
