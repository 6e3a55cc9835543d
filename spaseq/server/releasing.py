"""The events of several streams, in the order of time → the matches of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spaseq.rdf._batch import EventBatch
from spaseq.rdf._sequence import merge
from spaseq.rdf.time import from_micros
from spaseq.results import Match
from spaseq.runs import Run
from spaseq.server.inputs import InputStream


def matches_up_to(run: Run, streams: Sequence[InputStream], bound: int) -> Iterator[Match]:
    """Match the events that wait up to a time, and close the time before it.

    Args:
        run: The run.
        streams: The streams that its queries read, in its order.
        bound: The time, in microseconds.
    """
    if len(run.clock.streams) == 1:
        for batch in streams[0].release(bound):
            yield from run.push_batch(batch)
    else:
        yield from _merged(run, [list(stream.release(bound)) for stream in streams])
    clock = run.clock
    if clock.domain is not None and (clock.closed is None or bound > clock.closed):
        yield from run.advance(from_micros(bound, clock.domain))


def _merged(run: Run, queues: list[list[EventBatch]]) -> Iterator[Match]:
    """Match the events of several streams in the order of time."""
    firsts = [0] * len(queues)
    while any(queues):
        heads = [queue[0] if queue else None for queue in queues]
        sequence, after = merge(heads, firsts, None)
        yield from run.push_batch(sequence)
        for number, head in enumerate(heads):
            if head is None:
                continue
            firsts[number] = after[number]
            if after[number] == len(head):
                queues[number].pop(0)
                firsts[number] = 0
