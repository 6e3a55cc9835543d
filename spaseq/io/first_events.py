"""The first events of files, read once more with all their triples, to explain an empty result.

A run drops the triples that no query uses while reading. To say what a pattern was missing,
`explain` needs whole events, but only a few of them.

Cost: bounded by the numbers of events and triples below, except for the framings that read all
files before the first event, which are not read again if they are large.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from spaseq.errors import SpaseqError
from spaseq.io.read_options import COLLECTED, Counters, TimeDomain
from spaseq.io.source import Source
from spaseq.rdf.event import Event

MOST_EVENTS = 2000
"""The most events of a stream."""
MOST_TRIPLES = 200_000
"""The most triples of the events of a stream."""
MOST_COLLECTED = 1 << 26
"""The most bytes of files that are read whole before the first event."""


def first_events(sources: Sequence[Source]) -> tuple[list[Event], bool]:
    """The first events of each source, and whether these are all the events.

    Sources that may still be growing, such as pipes, cannot be read again and have none. Errors end
    a source early without a message, since the run has reported them.
    """
    domain = TimeDomain()
    events: list[Event] = []
    is_whole = True
    for source in sources:
        if not _can_be_read_again(source):
            is_whole = False
            continue
        again = replace(
            source,
            domain=domain,
            log=lambda message: None,
            counters=Counters(),
            lines=None,
            relevance=None,
        )
        is_whole &= _read(again, events)
    return events, is_whole


def _can_be_read_again(source: Source) -> bool:
    if source.live:
        return False
    paths = [file for file in source.files if isinstance(file, str)]
    if not all(map(os.path.isfile, paths)):
        return False
    if source.options.framing.kind in COLLECTED:
        return sum(map(os.path.getsize, paths)) <= MOST_COLLECTED
    return all(
        isinstance(file, str) or not hasattr(file, "read_next_batch") for file in source.files
    )


def _read(source: Source, events: list[Event]) -> bool:
    """Append the first events of a source; returns whether there are no more."""
    triples = 0
    number = 0
    iterator = iter(source)
    try:
        for event in iterator:
            events.append(event)
            number += 1
            triples += event.size
            if number >= MOST_EVENTS or triples >= MOST_TRIPLES:
                return next(iterator, None) is None
    except SpaseqError:
        return False
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
    return True
