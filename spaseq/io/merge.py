"""Several ordered sources → one sequence of events in the order of instants.

Events of one instant are in the order in which their sources are declared. Memory: one event of
each source, or one batch. If a source fails, the merge first yields all earlier events and then
raises the error, so the events before an error do not depend on how far files are read ahead.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from spaseq.errors import SpaseqError
from spaseq.io.source import Source
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._sequence import EventSequence
from spaseq.rdf._sequence import merge as merge_batches
from spaseq.rdf.event import Event

_Entry = tuple[int, int, int, Event | SpaseqError]
_Failure = tuple[int, int, int, SpaseqError]


def merge(sources: Sequence[Iterable[Event]]) -> Iterable[Event]:
    """The events of all sources by (time, ordinal, position of the source)."""
    return sources[0] if len(sources) == 1 else Merge(sources)


class Merge:
    """The events of several sources, one after the other."""

    def __init__(self, sources: Sequence[Iterable[Event]]):
        self._sources = sources

    def __iter__(self) -> Iterator[Event]:
        return _merged(self._sources)

    @property
    def encodes(self) -> bool:
        """Whether all sources encode their events, so that `sequences` can be used."""
        return all(isinstance(s, Source) and s.relevance is not None for s in self._sources)

    def sequences(self) -> Iterator[EventSequence]:
        """The same events in sequences, for sources that encode them."""
        return merged_batches([s.batches() for s in self._sources if isinstance(s, Source)])


def _merged(sources: Sequence[Iterable[Event]]) -> Iterator[Event]:
    iterators = [iter(source) for source in sources]
    waiting: list[_Entry] = []
    for place, iterator in enumerate(iterators):
        first = next(iterator, None)
        if first is not None:
            waiting.append((*first.instant, place, first))
    heapq.heapify(waiting)
    while waiting:
        micros, ordinal, place, event = waiting[0]
        if isinstance(event, SpaseqError):
            raise event
        yield event
        following = _following(iterators[place])
        if following is None:
            heapq.heappop(waiting)
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


def merged_batches(sources: Iterable[Iterable[EventBatch]]) -> Iterator[EventSequence]:
    """The events of several sources of batches, in sequences, in the order of `merge`.

    A sequence ends with the last event of one of the present batches.
    """
    iterators = [iter(source) for source in sources]
    batches: list[EventBatch | None] = [next(iterator, None) for iterator in iterators]
    firsts = [0] * len(iterators)
    failures: list[_Failure] = []
    while any(batch is not None for batch in batches):
        until = min(failures, key=lambda failure: failure[:3], default=None)
        sequence, firsts = merge_batches(batches, firsts, None if until is None else until[:3])
        if len(sequence):
            yield sequence
        elif until is not None:
            raise until[3]
        for place, batch in enumerate(batches):
            if batch is None or firsts[place] < len(batch):
                continue
            firsts[place] = 0
            try:
                batches[place] = next(iterators[place], None)
            except SpaseqError as error:
                # The failed event is at the next instant of its source or later.
                last = len(batch) - 1
                failures.append((batch.micros(last), batch.ordinal(last) + 1, place, error))
                batches[place] = None
    if failures:
        raise min(failures, key=lambda failure: failure[:3])[3]
