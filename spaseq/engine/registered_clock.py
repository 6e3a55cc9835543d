"""The times and ordinals of the events of registered streams."""

from __future__ import annotations


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
