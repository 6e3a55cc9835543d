"""`MultiRun`: the queries of a run in one compiled loop, and their state on both sides of it.

The loop (`spaseq.engine.native._driver`) serves runs of several queries, or of one query over
several streams. While it is loaded, the driver holds the position in the streams and the events
that wait for registered streams, and the clock of the run counts its events. `sync` writes the
position to each `QueryRun`, and `unload` also lets other code process events. Both cost one step
for each query, so the run calls them only before the state of a query is read or changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spaseq.engine.checkpoint import without_collection
from spaseq.engine.formatting import Block
from spaseq.engine.instants import QueryRun
from spaseq.engine.native._driver import MultiDriver
from spaseq.engine.native._matches import ConstructMaker, MatchMaker, MultiMatches
from spaseq.engine.native.dispatch_keys import KeyChoice, rarest, reads_filters
from spaseq.engine.pattern_rows import EventRows
from spaseq.engine.run_query import Executor
from spaseq.engine.stream_clock import StreamClock
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import DATE_TIME, Event
from spaseq.rdf.limits import LimitReached
from spaseq.rdf.native._terms import EventBatch, EventSequence
from spaseq.rdf.time import from_micros
from spaseq.results import Match

MOST_TOGETHER = 256
"""The registered events that one batch holds at most."""


class MultiRun:
    """The compiled loop of one run.

    Args:
        executors: What evaluates the queries. The loop takes their delayed events when it loads
            their states, and `sync` writes them.
        rows: The matchers.
        clock: The clock of the run.
        kb: The knowledge base.
        files: File name → its number, which all queries share.
        register: Appends the matches of a query to the stream that it registers, if any.
        block: What the makers of matches write to, if they do not make objects.
        keys: The keys of the patterns.
    """

    def __init__(
        self,
        executors: Sequence[Executor],
        rows: EventRows,
        clock: StreamClock,
        kb: Knowledge,
        files: dict[str, int],
        register: Callable[[QueryRun, list[Match]], list[Match]],
        block: Block | None,
        keys: KeyChoice,
    ):
        self._executors = executors
        self._places = [executor.first.serial for executor in executors]
        self._queries = queries = [executor.state for executor in executors]
        self._shares = {
            n: executor.division
            for n, executor in enumerate(executors)
            if executor.division is not None
        }
        self._equal: dict[int, list[tuple[int, str, MatchMaker | None]]] = {}
        for n, executor in enumerate(executors):
            if executor.division is None and len(executor.members) > 1:
                others = executor.queries[1:]
                copiers = executor.state.copiers or [None] * len(others)
                self._equal[n] = [
                    (query.serial, query.plan.shown, copier)
                    for query, copier in zip(others, copiers, strict=True)
                ]
        self._block = block
        self._clock = clock
        self._kb = kb
        self._files = files
        self._register = register
        self._matchers = matchers = rows.matchers
        self._dictionary = matchers.dictionary
        self._readers = frozenset(n for n, each in enumerate(executors) if not each.direct)
        self._readers_of = {
            iri: tuple(n for n in sorted(self._readers) if queries[n].reads(iri))
            for iri in {iri for n in self._readers for iri in queries[n].plan.streams}
        }
        self._registered: dict[str, EventBatch] = {}
        written = [iri for query in queries if (iri := query.plan.registers_stream) is not None]
        # A collection would visit all objects of the queries, several times, and find nothing.
        with without_collection():
            self.driver = MultiDriver(
                [*clock.streams, *written],
                [
                    (
                        query.native.step,
                        query.plan.streams,
                        query.output.waits,
                        n in self._readers,
                        query.plan.registers_stream is not None,
                    )
                    for n, query in enumerate(queries)
                ],
                [executor.compiled.tasks for executor in executors],
                keys.of(matchers.patterns),
                matchers.window,
                matchers.counted,
            )
        self._reads_several = any(len(query.plan.streams) > 1 for query in queries)
        self._makers = [query.native.matches for query in queries]
        self._skips = [query.plan.skip_past_last for query in queries]
        self.failing: Executor | None = None
        """What evaluates the query in which `process` has failed."""

    def accepts(self, batch: EventBatch) -> bool:
        """Whether the loop can process events of a batch."""
        return batch.dictionary is self._dictionary and batch.stream in self._clock.per_stream

    def may_hold(self, event: Event) -> bool:
        """Whether an event may have to wait for other streams."""
        return event.ordinal > 0 and self._reads_several

    def is_narrowed(self, pattern: int) -> bool:
        """Whether constants in the filters of a pattern exclude events before it is matched."""
        patterns = self._matchers.patterns
        return reads_filters(patterns[pattern], rarest(patterns)[pattern])

    # ------------------------------------------------------------------ events

    def stream(self, events: EventSequence, first: int, end: int, *, holds: bool) -> MultiMatches:
        """An iterator that processes events as far as the requested match needs.

        The caller calls `count` with its progress before any other method.

        Args:
            events: The events.
            first: The index of the first event to process.
            end: The index after the last one.
            holds: Whether the loop may hold events until their timestamp closes, while other
                streams have not passed earlier instants. Their batches must not change then.
        """
        self._load()
        if first < end and not self._queries[0].domain:
            # The loop counts its events after it has returned, but an error names their time.
            batch, index = events.position(first)
            domain = batch.time(index).domain
            for query in self._queries:
                query.domain = domain
        return MultiMatches(
            self.driver,
            self._collect,
            self._makers,
            self._skips,
            events,
            first,
            end,
            self._clock.events,
            [self._file(batch.file) for batch in events.batches],
            self._kb,
            self._equal,
            self._places,
            self._shares,
            holds,
            self._block,
        )

    def process(self, event: Event, batch: EventBatch, index: int, found: list[Match]) -> bool:
        """Process one admitted event; adds its matches to `found`.

        Returns:
            False if the loop does not accept the event; nothing has changed.

        Raises:
            LimitExceeded: if a limit is reached.
        """
        holds = self.may_hold(event)
        matches = self.stream(EventSequence([batch]), index, index + 1, holds=holds)
        try:
            found.extend(matches)
        except BaseException as error:
            executor = self._executors[matches.failing]
            self.failing = executor if matches.failed else None
            if isinstance(error, LimitReached):
                raise executor.state.exceeded(error) from None
            raise
        if matches.after == index:
            return False
        self._clock.count_event(event)
        self._clock.closed = event.time.micros
        return True

    def count(self, events: EventSequence, first: int, after: int) -> None:
        """Count the events `first:after` of a sequence, which the driver has processed."""
        clock = self._clock
        if after > first:
            batch, index = events.position(after - 1)
            clock.count_parts(events.parts(first, after), batch.time(index), self.driver.ordinals)
        if clock.closed is not None and self.driver.micros > clock.closed:
            clock.closed = self.driver.micros

    def _file(self, name: str) -> int:
        return self._files.setdefault(name, len(self._files))

    def _collect(
        self,
        number: int,
        complete: bool,
        until: int | None,
        events: EventSequence,
        processed: int,
    ) -> list[Match]:
        """The matches of a query that are complete, and those whose windows close by `until`."""
        query, clock = self._queries[number], self._clock
        if processed:
            batch, index = events.position(processed - 1)
            end = batch.time(index)
        else:
            assert clock.time is not None
            end = clock.time
        if number in self._readers:
            end = from_micros(query.native.core.window.micros, end.domain)
        found: list[Match] = []
        if complete:
            found += query.completed(end)
        if until is not None:
            query.close_windows(until, end.domain, found)
        return self._register(query, found)

    # ------------------------------------------------------------------ registered streams

    def is_delayed(self, stream: str) -> bool:
        """Whether events of an input stream wait for registered ones."""
        return stream in self._readers_of

    def register(self, event: Event) -> None:
        """Let the readers of a registered stream process an event when its timestamp closes."""
        readers = self._readers_of.get(event.stream)
        if readers is not None:
            batch = self._batch_of(event.stream)
            self._matchers.add(batch, event)
            self.driver.register(readers, batch, len(batch) - 1, self._file(""))

    def register_all(
        self, iri: str, constructs: ConstructMaker, matches: list[Match], ordinal: int
    ) -> None:
        """As `register`, for matches that compiled code has made.

        Args:
            iri: The stream.
            constructs: Their maker.
            matches: Some matches of one instant.
            ordinal: The ordinal of the event of the first one.
        """
        readers = self._readers_of.get(iri)
        if readers is not None:
            batch = self._batch_of(iri)
            first = len(batch)
            constructs.add_events(matches, batch, ordinal)
            for index in range(first, len(batch)):
                self.driver.register(readers, batch, index, self._file(""))

    def _batch_of(self, iri: str) -> EventBatch:
        """The batch of the next events of a registered stream."""
        batch = self._registered.get(iri)
        if batch is None or not self.driver.delaying or len(batch) >= MOST_TOGETHER:
            batch = self._registered[iri] = EventBatch(self._dictionary, iri)
        batch.refit()
        return batch

    # ------------------------------------------------------------------ state

    def _load(self) -> None:
        """Give the state of the queries to the driver."""
        if self.driver.loaded:
            return
        clock = self._clock
        times = {}
        if clock.time is not None and clock.closed == clock.time.micros:
            times = {iri: (clock.closed, ordinal) for iri, ordinal in clock.ordinals.items()}
        self.driver.load(
            clock.closed,
            None if clock.domain is None else clock.domain == DATE_TIME,
            times,
            [query.ordinal if query.opened else None for query in self._queries],
            clock.has_gaps,
        )
        for n in self._readers:
            for event in self._executors[n].delayed:
                batch, index = self._matchers.encoded(event, own=True)
                self.driver.delay(n, batch, index, self._file(batch.file))

    def sync(self) -> None:
        """Write the position in the streams to each query."""
        if not self.driver.loaded:
            return
        self.driver.settle()
        clock = self._clock
        is_open = clock.time is not None and clock.closed == clock.time.micros
        known = clock.ordinals if is_open else {}
        for number, query in enumerate(self._queries):
            had = {} if number in self._readers else known
            query.time = None if had.keys().isdisjoint(query.plan.streams) else clock.time
            query.domain = clock.domain or ""
            query.delivered = {iri: had.get(iri, 0) for iri in query.plan.streams}
            query.ordinal = min(query.delivered.values())
            query.opened = self.driver.is_open(number)
            query.queued = {}
            for batch, index in self.driver.held_by(number):
                event = EncodedEvent(batch, index)
                query.queued.setdefault(event.ordinal, []).append(event)
            query.behind = sum(map(len, query.queued.values()))
        for n in self._readers:
            self._executors[n].delayed = [
                EncodedEvent(batch, index) for batch, index in self.driver.delayed_by(n)
            ]

    def unload(self) -> None:
        """Let other code process events, until the next call of `stream`."""
        if self.driver.loaded:
            self.sync()
            self.driver.unload()
