"""The events of several streams, in time order → the matches of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from spaseq.rdf.native._terms import EventBatch, merge
from spaseq.rdf.time import from_micros
from spaseq.results import Match
from spaseq.runs import Run


def match_up_to(
    run: Run, queues: Sequence[Iterable[EventBatch]], bound: int, reached: Mapping[str, int]
) -> Iterator[Match]:
    """Match events up to a time, and close the time before it.

    Args:
        run: The run.
        queues: The events of each stream that its queries read, in its order.
        bound: The time, in microseconds.
        reached: Per stream, the time before which it has no further events.
    """
    if len(run.clock.streams) == 1:
        for batch in queues[0]:
            yield from run.push_batch(batch)
    else:
        yield from _merged(run, list(map(list, queues)))
    clock = run.clock
    if clock.domain is not None and (clock.closed is None or bound > clock.closed):
        yield from run.advance(from_micros(bound, clock.domain))
    if len(run.clock.streams) > 1:
        yield from run.pass_streams(reached)


def _merged(run: Run, queues: list[list[EventBatch]]) -> Iterator[Match]:
    """Match the events of several streams in time order."""
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
