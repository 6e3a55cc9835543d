"""Several ordered sources → one sequence of events, ordered by instant.

Events of one instant are in the order in which their sources are declared. Memory: one event of
each source, or one batch. If a source fails, the merge first yields all earlier events and then
raises the error, so the events before an error do not depend on how far files are read ahead.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from spaseq.errors import SpaseqError
from spaseq.io.source import Source
from spaseq.rdf.ahead import close_generator
from spaseq.rdf.checked import LEAST
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.rdf.native._terms import merge as merge_batches

OnEnd: TypeAlias = Callable[[int, int | None], None]
OnWait: TypeAlias = Callable[[Event], None]
_Entry = tuple[int, int, int, Event | SpaseqError]
_Failure = tuple[int, int, int, SpaseqError]


def merge(
    sources: Sequence[Iterable[Event]],
    on_end: OnEnd | None = None,
    on_wait: OnWait | None = None,
    keeps: bool = False,
) -> Iterable[Event]:
    """The events of all sources by (time, ordinal, position of the source).

    Args:
        sources: The sources.
        on_end: Called with the position of a source that has ended, and the time of its last event
            in microseconds, before any event of a later time is yielded. It is not called for a
            single source.
        on_wait: If given, the merge stops where the first source has ended, after the events of the
            same timestamp, since that source may still have earlier events than the others. It is
            called with the next event of each other source.
        keeps: It is called with all later events, in order.
    """
    return sources[0] if len(sources) == 1 else Merge(sources, on_end, on_wait, keeps)


class Merge:
    """The events of several sources, one after the other; the arguments are those of `merge`."""

    def __init__(
        self,
        sources: Sequence[Iterable[Event]],
        on_end: OnEnd | None = None,
        on_wait: OnWait | None = None,
        keeps: bool = False,
    ):
        self._sources = sources
        self._ends = _Ends(on_end, on_wait, keeps)

    def __iter__(self) -> Iterator[Event]:
        return _merged(self._sources, self._ends)

    @property
    def encodes(self) -> bool:
        """Whether all sources yield encoded events, so that `sequences` can be used."""
        return all(isinstance(s, Source) and s.relevance is not None for s in self._sources)

    def sequences(self) -> Iterator[EventSequence]:
        """The same events in sequences, for sources that yield encoded events."""
        encoded = [s.batches() for s in self._sources if isinstance(s, Source)]
        return merged_batches(encoded, self._ends)


class _Ends:
    """The sources that have ended, and the time until which events are merged."""

    def __init__(
        self, on_end: OnEnd | None = None, on_wait: OnWait | None = None, keeps: bool = False
    ):
        self._on_end = on_end
        self._on_wait = on_wait
        self.keeps = keeps
        self.until: int | None = None
        """The greatest timestamp of an event that is merged, in microseconds; None: no bound."""

    def ended(self, place: int, last: int | None) -> None:
        """Record that a source has ended after an event of this time, or without an event."""
        if self._on_end is not None:
            self._on_end(place, last)
        if self._on_wait is not None:
            end = LEAST - 1 if last is None else last
            self.until = end if self.until is None else min(self.until, end)

    def wait(self, event: Event) -> None:
        """Record that an event waits, since a source has ended before it."""
        assert self._on_wait is not None
        self._on_wait(event)


def _merged(sources: Sequence[Iterable[Event]], ends: _Ends) -> Iterator[Event]:
    iterators = [iter(source) for source in sources]
    try:
        yield from _merged_events(iterators, ends)
    finally:
        for source, iterator in zip(sources, iterators, strict=True):
            if iterator is not source:  # the caller closes its own generators
                close_generator(iterator)


def _merged_events(iterators: Sequence[Iterator[Event]], ends: _Ends) -> Iterator[Event]:
    waiting: list[_Entry] = []
    for place, iterator in enumerate(iterators):
        first = next(iterator, None)
        if first is not None:
            waiting.append((*first.instant, place, first))
        else:
            ends.ended(place, None)
    heapq.heapify(waiting)
    while waiting:
        micros, ordinal, place, event = waiting[0]
        is_beyond = ends.until is not None and micros > ends.until
        if is_beyond and not ends.keeps:
            heapq.heappop(waiting)
            if not isinstance(event, SpaseqError):
                ends.wait(event)
            continue
        if isinstance(event, SpaseqError):
            raise event
        if is_beyond:
            ends.wait(event)
        else:
            yield event
        following = _following(iterators[place])
        if following is None:
            heapq.heappop(waiting)
            ends.ended(place, micros)
        elif isinstance(following, SpaseqError):
            # The failed event is at the next instant of its source or later.
            heapq.heapreplace(waiting, (micros, ordinal + 1, place, following))
        else:
            heapq.heapreplace(waiting, (*following.instant, place, following))


def _following(iterator: Iterator[Event]) -> Event | SpaseqError | None:
    try:
        return next(iterator, None)
    except SpaseqError as error:
        return error


def merged_batches(
    sources: Iterable[Iterable[EventBatch]], ends: _Ends | None = None
) -> Iterator[EventSequence]:
    """The events of several sources of batches, in sequences, in the order of `merge`.

    A sequence ends with the last event of one of the current batches.
    """
    iterators = [iter(source) for source in sources]
    try:
        yield from _merged_sequences(iterators, _Ends() if ends is None else ends)
    finally:
        for iterator in iterators:
            close_generator(iterator)


def _merged_sequences(
    iterators: Sequence[Iterator[EventBatch]], ends: _Ends
) -> Iterator[EventSequence]:
    batches: list[EventBatch | None] = [next(iterator, None) for iterator in iterators]
    for place, batch in enumerate(batches):
        if batch is None:
            ends.ended(place, None)
    firsts = [0] * len(iterators)
    failures: list[_Failure] = []
    stopped = False
    while any(batch is not None for batch in batches):
        failure = min(failures, key=lambda failure: failure[:3], default=None)
        bounds = [] if failure is None else [failure[:3]]
        if ends.until is not None and not stopped:
            bounds.append((ends.until + 1, 0, 0))
        sequence, firsts = merge_batches(batches, firsts, min(bounds, default=None))
        if len(sequence) and not stopped:
            yield sequence
        elif len(sequence):
            for index in range(len(sequence)):
                ends.wait(EncodedEvent(*sequence.position(index)))
        elif (
            ends.until is not None and not stopped and (failure is None or failure[0] > ends.until)
        ):
            stopped = True
            if not ends.keeps:
                for batch, place in zip(batches, firsts, strict=True):
                    if batch is not None:
                        ends.wait(EncodedEvent(batch, place))
                return
        elif failure is not None:
            raise failure[3]
        for place, batch in enumerate(batches):
            if batch is None or firsts[place] < len(batch):
                continue
            firsts[place] = 0
            try:
                batches[place] = next(iterators[place], None)
                if batches[place] is None:
                    ends.ended(place, batch.micros(len(batch) - 1))
            except SpaseqError as error:
                # The failed event is at the next instant of its source or later.
                last = len(batch) - 1
                failures.append((batch.micros(last), batch.ordinal(last) + 1, place, error))
                batches[place] = None
    if failures:
        first = min(failures, key=lambda failure: failure[:3])
        if ends.until is None or stopped or first[0] <= ends.until:
            raise first[3]
