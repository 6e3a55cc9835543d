"""`KeyedRuns`: the events of one query divided by key among runs in separate threads.

The caller's thread divides each batch that a reader returns
(spaseq/io/native/events/event_parts.pxi), passes the parts to the threads, and merges their matches
into the order of a single run. Meanwhile the threads match the next batches; matching releases the
interpreter's lock. `key_division` decides which queries can be divided. All others are matched by
one run.

Invariant: the matches are those of a single run, in the order of their last events. If a thread
fails at an event, the error is raised after the matches of earlier events.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue

from spaseq.engine.key_division import KeyDivision, key_division
from spaseq.engine.native._matches import Matches
from spaseq.io.native._events import MOST_PARTS, EventPart, EventParts
from spaseq.io.native._match_blocks import Block, PartMatches, PartMerge
from spaseq.io.sinks import Sink
from spaseq.io.source import Source
from spaseq.program import Program
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event
from spaseq.rdf.native._terms import EventBatch, EventSequence, cancel, forget
from spaseq.results import Match
from spaseq.runs import Run

LEAST_BYTES = 1 << 23
"""The minimum size of a stream's files, in bytes, for which dividing their events pays."""
BATCHES_AHEAD = 2
"""The number of batches in the threads whose matches have not been collected."""


def divided(
    run: Run, program: Program, sources: Sequence[Iterable[Event]], *, sink: Sink | None = None
) -> KeyedRuns | None:
    """Runs that divide the events of a source by key and replace a run that has not begun.

    Args:
        run: The run, without limits, knowledge base and entailment.
        program: Its program.
        sources: Its sources, which read with the `relevance` of the run.
        sink: The sink that writes the matches, if they need not be objects.

    Returns:
        The runs; None if one run has to match all events, or if more threads do not pay.
    """
    (source, *others) = sources
    if others or type(source) is not Source or not source.reads_ahead:
        return None
    if sum(map(_size, source.files)) < LEAST_BYTES or not (sink is None or sink.joins_parts):
        return None
    division = key_division(program)
    if isinstance(division, str):
        return None
    return KeyedRuns(run, program, division, min(source.options.workers, MOST_PARTS))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


class _Worker:
    """A run with the events of some keys, and its thread.

    Args:
        program: The program.
        number: The number of the part.
        parts: The number of all parts.
        columns: Per occurrence, the column of the key in the rows of its graph pattern.
    """

    def __init__(self, program: Program, number: int, parts: int, columns: list[int]):
        self.run = Run(program)
        self.run.clock.has_gaps = True
        self.run.queries[0].native.step.gaps = True
        self.block: Block | None = None
        self._parts = parts
        self._index = 0
        """The event of the current part that is being matched."""
        self._columns = columns
        self._given: SimpleQueue[EventPart | None] = SimpleQueue()
        self._found: SimpleQueue[PartMatches] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._work, name=f"spaseq-part-{number}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def give(self, part: EventPart) -> None:
        """Match a part of a batch next."""
        self._given.put(part)

    def take(self) -> PartMatches:
        """The matches of the oldest part whose matches have not been collected."""
        while True:
            try:
                return self._found.get(timeout=1)
            except Empty:
                if not self._thread.is_alive():
                    raise MemoryError("a thread that matches has no memory left") from None

    def stop(self) -> None:
        """End the thread, even in the middle of an event."""
        thread = self._thread
        if thread.ident is None:
            return
        cancel(thread.ident)
        self._given.put(None)
        thread.join()
        forget(thread.ident)

    def _work(self) -> None:
        """The loop of the thread."""
        while (part := self._given.get()) is not None:
            found = PartMatches(part, self._parts, self._columns, self.block)
            try:
                self._match(part.batch, found)
            except BaseException as error:
                last = min(self._index, len(part.batch) - 1)
                found.fail(self.run.queries[0].reported(error), last)
            found.finish()
            self._found.put(found)

    def _match(self, batch: EventBatch, found: PartMatches) -> None:
        """Match the events of a part."""
        run, self._index = self.run, 0
        query, clock = run.queries[0], run.clock
        while self._index < len(batch):
            index = self._index
            clock.check_event(EncodedEvent(batch, index))
            matches = query.stream(batch, index, clock.events, run.kb)
            assert isinstance(matches, Matches)
            try:
                found.take(matches)
            finally:
                self._index = matches.after
                if matches.after > index:
                    query.advance_to(batch, matches.after)
                    clock.count_batch(batch, index, matches.after)
            assert self._index > index, "an event that the clock admits is processed"


class KeyedRuns:
    """The runs of one query, each with the events of some keys, in place of one run.

    Args:
        run: A run of the query, which processes no events. It receives the counters of all runs.
        program: The program, of one query.
        division: The key.
        parts: The number of runs.
    """

    def __init__(self, run: Run, program: Program, division: KeyDivision, parts: int):
        self._run = run
        plan = program.queries[0].plan
        variables = [plan.gpms[occurrence.gpm].variables for occurrence in plan.occurrences]
        columns = [names.index(division.variable) for names in variables]
        self._workers = [_Worker(program, number, parts, columns) for number in range(parts)]
        dictionaries = [worker.run.rows.matchers.dictionary for worker in self._workers]
        self._parts = EventParts(run.rows.matchers.dictionary, division.ends, dictionaries)
        self._block: Block | None = None
        self._waiting: deque[list[_Worker]] = deque()
        """For each batch whose matches have not been collected: the workers with events of it."""
        self._begun = False
        self.is_counted = False
        """Whether the run has the counters of all runs, which it has after the end of the input."""

    def format_with(self, sink: Sink, most: int | None) -> None:
        """Let the threads format the matches for a sink, at most `most` of them."""
        runs = [worker.run.evaluation for worker in self._workers]
        self._block, blocks = sink.format_parts(runs, most)
        for worker, block in zip(self._workers, blocks, strict=True):
            worker.block = block

    def push_batch(self, events: Iterable[Event] | EventBatch | EventSequence) -> Iterator[Match]:
        """Pass a batch to the threads, and yield the matches of earlier batches.

        An empty batch yields the matches of all batches. With `format_with`, None stands for
        formatted matches, which the sink can write.
        """
        if isinstance(events, EventBatch) and len(events):
            self._give(events)
        most = BATCHES_AHEAD if isinstance(events, EventBatch) else 0
        while len(self._waiting) > most:
            yield from self._merged()

    def _give(self, batch: EventBatch) -> None:
        if not self._begun:
            self._begun = True
            for worker in self._workers:
                worker.start()
        clock = self._run.clock
        clock.count_batch(batch, 0, len(batch))
        given = []
        for part, worker in zip(self._parts.divide(batch), self._workers, strict=True):
            if len(part.batch):
                worker.give(part)
                given.append(worker)
        self._waiting.append(given)

    def _merged(self) -> Iterator[Match]:
        """The matches of the oldest batch that waits."""
        found = [worker.take() for worker in self._waiting.popleft()]
        merge = PartMerge(found, self._block)
        yield from merge  # type: ignore[misc]
        if merge.failure is not None:
            raise merge.failure

    def finish(self, close: bool = True) -> Iterator[Match]:
        """The matches of the batches that wait; the end of the input completes no other match."""
        yield from self.push_batch(())
        self.stop()
        for worker in self._workers:
            assert not worker.run.finish(close)
            self._run.rows.matchers.count_on(worker.run.rows.matchers)
            self._run.queries[0].count_on(worker.run.queries[0])
        self.is_counted = True
        self._run.finish(close)

    def stop(self) -> None:
        """End the threads."""
        for worker in self._workers:
            worker.stop()
