"""Runs a workload on the engine: processor seconds, and the number of matches.

Events are encoded before the measurement. Processor times depend little on other load.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from time import process_time, thread_time_ns

from streams import STREAM, Happening, Triples, encoded

import spaseq
from spaseq.engine.native.query_run import NativeRun
from spaseq.rdf.limits import NO_LIMIT

Events = Sequence[Happening]
SINGLE = 500
"""The number of one-event batches that are encoded together."""


@dataclass(frozen=True)
class Fed:
    """The time and the matches of one pass."""

    seconds: float
    found: int
    witnesses: int = 0
    evaluations: int = 0
    """How often a filter of partial matches was evaluated."""


Feeding = Callable[[spaseq.Program, Events], Fed]


def compiled(run: spaseq.Run) -> NativeRun:
    """The automaton of a run's only query on the compiled core."""
    return run.queries[0].native


def tallied(
    program: spaseq.Program, events: Events, lazily: bool | None = None, most: int = NO_LIMIT
) -> Fed:
    """Run the automaton alone: enumerate the matches without creating objects.

    Args:
        lazily: how a chain is joined; None: as the engine itself chooses.
        most: so many matches of an event are enumerated.
    """
    run = program.start()
    batches = encoded(run, events)
    native = compiled(run)
    native.core.lazy_join.join(lazily)
    found = witnesses = position = 0
    gc.collect()
    started = process_time()
    for batch in batches:
        after, some, events_of = native.tally(batch, position, most)
        assert after == len(batch)
        found += some
        witnesses += events_of
        position += after
    return Fed(process_time() - started, found, witnesses, native.step.evaluations)


def matched(program: spaseq.Program, events: Events) -> Fed:
    """Run the batches, with an object per match."""
    run = program.start()
    batches = encoded(run, events)
    found = witnesses = 0
    gc.collect()
    started = process_time()
    for batch in batches:
        for match in run.push_batch(batch):
            found += 1
            witnesses += len(match.events)
    return Fed(process_time() - started, found, witnesses)


def pushed(program: spaseq.Program, events: Events) -> Fed:
    """Push event by event, from pyoxigraph triples to match objects."""
    run = program.start()
    triples = Triples()
    facts = [[triples.of(event)] for event in events]
    found = 0
    gc.collect()
    started = process_time()
    for number, some in enumerate(facts):
        found += len(run.push(STREAM, number, some))
    return Fed(process_time() - started, found)


def first_of_each(program: spaseq.Program, events: Events, most: int) -> Fed:
    """Run the batches, with objects for the first `most` matches of each event only."""
    run = program.start()
    batches = encoded(run, events)
    query = run.queries[0]
    compiled(run)
    found = position = 0
    gc.collect()
    started = process_time()
    for batch in batches:
        first, size = 0, len(batch)
        while first < size:
            first, matches = query.run(batch, first, position + first)
            found += sum(1 for _ in islice(matches, most))
        position += size
    return Fed(process_time() - started, found)


def one_by_one(
    run: spaseq.Run, events: Events, first: int = 0, most: int = NO_LIMIT
) -> tuple[list[int], int]:
    """Nanoseconds of the processor for each event, in an encoded batch of its own; the matches.

    As `tallied` otherwise. What is swept or made longer now and then is a part of these; Python's
    collector is not.

    Args:
        first: so many events have been.
    """
    native = compiled(run)
    spent: list[int] = []
    found = 0
    gc.collect()
    gc.disable()
    for begin in range(0, len(events), SINGLE):
        for batch in encoded(run, events[begin : begin + SINGLE], 1, first + begin):
            started = thread_time_ns()
            after, some, _ = native.tally(batch, first + len(spent), most)
            spent.append(thread_time_ns() - started)
            assert after == 1
            found += some
    gc.enable()
    return spent, found
