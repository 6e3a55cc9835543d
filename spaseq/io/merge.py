"""Several ordered sources → one sequence of events in the order of instants.

Events of one instant are in the order in which their sources are declared. Memory: one event of
each source. If a source fails, the merge first yields all earlier events and then raises the
error, so the events before an error do not depend on how far files are read ahead.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from spaseq.errors import SpaseqError
from spaseq.rdf.event import Event

_Entry = tuple[int, int, int, Event | SpaseqError]


def merge(sources: Sequence[Iterable[Event]]) -> Iterable[Event]:
    """The events of all sources by (time, ordinal, position of the source)."""
    return sources[0] if len(sources) == 1 else _merged(sources)


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
