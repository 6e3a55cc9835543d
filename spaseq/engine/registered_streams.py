"""Registered streams: which queries depend on them, and the times and ordinals of their events."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from spaseq.rdf.event import Event

if TYPE_CHECKING:
    from spaseq.engine.instants import QueryRun


def dependent(queries: Sequence[QueryRun], stream: str) -> list[QueryRun]:
    """The queries whose results depend on a stream, also by streams that others register."""
    reached, before = {stream}, 0
    while len(reached) > before:
        before = len(reached)
        for query in queries:
            written = query.plan.registers_stream
            if written is not None and not reached.isdisjoint(query.plan.streams):
                reached.add(written)
    return [query for query in queries if not reached.isdisjoint(query.plan.streams)]


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
