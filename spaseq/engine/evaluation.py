"""`Evaluation`: compiled queries with their state, and the effect of one event on them.

An event closes all earlier timestamps, windows included. A query that reads a registered stream
processes a timestamp when it closes, because only then all events that the writer registers at it
are known.

The caller (`spaseq.runs`) admits events in order, and treats an error of `process` or
`close_before` as the failure of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from spaseq.engine.compaction import Compaction
from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.entailment import Entailment
from spaseq.engine.formatting import Block, Formatting, Make
from spaseq.engine.instants import QueryRun
from spaseq.engine.limit_errors import check_limits
from spaseq.engine.multi_run import MultiRun
from spaseq.engine.native._matches import copies
from spaseq.engine.pattern_rows import EventRows, check_graphs
from spaseq.engine.stream_clock import StreamClock
from spaseq.errors import SpaseqError
from spaseq.kb.knowledge import Knowledge
from spaseq.parser import ast
from spaseq.rdf._relevance import Relevance
from spaseq.rdf._sequence import EventSequence
from spaseq.rdf.event import Event, Parameter, fact_of
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.results import Match


def _originals(program: CompiledQueries) -> list[int]:
    """Per query: the number of the first query that equals it but for its name.

    Queries that register streams, or read registered ones, count as different from all others.
    """
    numbers = range(len(program.queries))
    if any(query.plan.registers_stream is not None for query in program.queries):
        return list(numbers)
    known: dict[ast.Query, int] = {}
    return [known.setdefault(program.sources[number], number) for number in numbers]


class Evaluation:
    """The state of one run: a clock, a knowledge base, and one `QueryRun` per query.

    Args:
        program: The compiled queries.
        kb: The knowledge base, as `Program.start` takes it.
        bound: The variables that were replaced by constants; saved with the state.
        entail: The entailment regime, or None; saved with the state.
        limits: The limits of groups, steps and memory.
    """

    def __init__(
        self,
        program: CompiledQueries,
        kb: Mapping[str, Any] | Any = None,
        bound: Mapping[str, Parameter] | None = None,
        entail: str | None = None,
        limits: Limits = NO_LIMITS,
    ):
        self.program = program
        self.bound = dict(bound or {})
        self._entailment = Entailment(program, entail)
        self.kb = Knowledge(kb or {}, self._entailment.closures)
        """The background graphs and their changes (`load`, `replace`, `reload`)."""
        check_graphs(program, self.kb.graphs)
        self.entail = entail
        self.entailed = self._entailment.graphs(self.kb, self.kb.current)
        self.rows = EventRows(program, self.kb, self.entailed, limits)
        check_limits(program, limits)
        self._files: dict[str, int] = {}
        self.originals = _originals(program)
        """Per query: the number of the first query that equals it but for its name."""
        self.queries: list[QueryRun] = []
        """The state of each query; equal queries share one."""
        for number, query in enumerate(program.queries):
            self.queries.append(
                self.queries[self.originals[number]]
                if self.originals[number] < number
                else QueryRun(
                    query,
                    self.entailed.get(query.plan.kb_graphs, self.kb),
                    self.rows.matchers,
                    limits,
                    self._files,
                )
            )
        self.compaction = Compaction(self.distinct, self.rows)
        self.rows.prefetch(self.distinct)
        self.clock = StreamClock(program.streams)
        written = {q.plan.registers_stream for q in self.queries} - {None}
        self.direct = [not written & set(q.plan.streams) for q in self.queries]
        """Per query: whether it reads no registered stream, and so processes events at once."""
        self.delayed: list[list[Event]] = [[] for _ in self.queries]
        """Per query that is not direct: the events of timestamps that are not closed."""
        self.derived_time: dict[str, int] = {}
        """Per registered stream: the time of its last event, in microseconds."""
        self.derived_ordinal: dict[str, int] = {}
        """Per registered stream: the ordinal of its next event at `derived_time`."""
        self._multi: MultiRun | None = None
        self._is_shared: bool | None = None
        self.formatting: Formatting | None = None
        """How a sink has the matches written, if it does so without objects."""
        self._last: dict[int, list[Match]] = {}
        """Per query with equal ones: the matches that it had last."""
        self.skipped = 0
        """The events processed as empty because a remote KB failed."""
        self.kb.begin()

    # ------------------------------------------------------------------ readers

    @property
    def relevance(self) -> Relevance:
        """The triples that the queries can use; a reader drops all others.

        Batches that are read with it are encoded for this run only.
        """
        self._entailment.read_with(self.rows.matchers.used)
        return self.rows.matchers.relevance

    @property
    def waiting(self) -> bool:
        """Whether a query has queued events that are not matched yet."""
        if self._multi is not None and self._multi.driver.loaded:
            return self._multi.driver.holding
        return any(query.behind for query in self.queries)

    @property
    def distinct(self) -> tuple[QueryRun, ...]:
        """The states of the queries, each once."""
        return tuple(dict.fromkeys(self.queries))

    def is_single(self, stream: str) -> bool:
        """Whether there is one query, which reads this stream only and directly."""
        (query, *others), (direct, *_) = self.queries, self.direct
        return not others and direct and query.reads_only(stream)

    def format_with(self, block: Block, make: Make) -> bool:
        """Have makers write the matches to a block, before the first event.

        Matches that come one by one from Python, and those of queries without a maker, remain
        objects. They come in their order, so that a sink can write both.

        Returns:
            False if no query has a maker; nothing changes then.
        """
        copied: dict[int, list[str]] = {}
        for number, original in enumerate(self.originals):
            if original < number:
                name = self.program.queries[number].plan.name
                copied.setdefault(original, []).append(name)
        made = [
            query.write_with(make, copied.get(number, ()))
            for number, query in enumerate(self.queries)
            if self.originals[number] == number
        ]
        if any(made):
            self.formatting = Formatting(block, make, bool(copied) or not all(made))
        return self.formatting is not None

    def _in_order(self) -> AbstractContextManager[None]:
        """Matches of several queries are listed within."""
        if self.formatting is None:
            return nullcontext()
        return self.formatting.in_order()

    # ------------------------------------------------------------------ the compiled loop

    def multi(self) -> MultiRun | None:
        """The compiled loop of all queries; None if it cannot process the next event.

        It cannot if a query reads what another one registers, and while events are queued until
        other streams have passed earlier instants. One query over one stream has its own loop.
        """
        if self._multi is None:
            if self._is_shared is None:
                several = len(self.queries) > 1 or len(self.program.streams) > 1
                on_core = all(query.on_core for query in self.queries)
                self._is_shared = several and on_core and all(self.direct)
            if not self._is_shared or self.waiting:
                return None
            self._multi = MultiRun(
                self.program,
                self.queries,
                self.originals,
                self.rows,
                self.clock,
                self.kb,
                self._files,
                self._register,
                None if self.formatting is None else self.formatting.block,
            )
        return self._multi if self._multi.driver.loaded or not self.waiting else None

    def is_narrowed(self, pattern: int) -> bool:
        """Whether constants in the filters of a pattern exclude events before it is matched."""
        return self._multi is not None and self._multi.is_narrowed(pattern)

    def count(self, events: EventSequence, first: int, after: int) -> None:
        """Count the events `first:after` of a sequence, which the compiled loop has processed."""
        assert self._multi is not None
        self._multi.count(events, first, after)

    def sync(self) -> None:
        """Write the progress of the compiled loop to the queries, before their state is read."""
        if self._multi is not None:
            self._multi.sync()

    def _leave_loop(self) -> None:
        """Write the progress of the compiled loop to the queries, before their state changes."""
        if self._multi is not None:
            self._multi.unload()

    def _discard_loop(self) -> None:
        """As `_leave_loop`, before the automata are replaced."""
        self._leave_loop()
        self._multi = None

    def compact_if_due(self) -> None:
        """Compact the state of queries without a window, if it has doubled.

        Call it between two events, while no iterator over matches is open.
        """
        if self.compaction.is_due(self.clock.events):
            self._discard_loop()
            self.compaction.compact()

    # ------------------------------------------------------------------ the knowledge base

    def adopt_kb(self) -> None:
        """Adopt the next version of the KB, if no event waits to be matched.

        Raises:
            KbError, LimitExceeded: if the queries cannot use it; they retain the version before.
        """
        if self.waiting or any(self.delayed):
            return
        self._discard_loop()
        matchers = self.rows.matchers
        terms = matchers.dictionary.version
        before = self.kb.current, self.kb.version
        self.kb.exchange()
        try:
            self.rows.renew(self._entailment.closures(self.kb.current))
        except SpaseqError:
            self.kb.current, self.kb.version = before
            self.rows.renew(self._entailment.closures(self.kb.current))
            raise
        finally:
            # Terms that the failed version made permanent remain permanent.
            if self.rows.matchers is not matchers or matchers.dictionary.version > terms:
                for query in self.distinct:
                    query.renew(self.rows.matchers)

    def prepare(self, event: Event) -> Event:
        """Request what the patterns need from remote KBs for an event.

        Returns:
            The event, or an empty one if a remote KB failed whose failures are skipped.

        Raises:
            KbError: if a remote KB failed whose failures are errors; nothing has changed.
        """
        if self.kb.changes:
            self.adopt_kb()
        refused = self.rows.refusal(event, self.waiting)
        if refused is None:
            return event
        error, skips = refused
        if not skips:
            raise error
        self.skipped += 1
        return event.bare()

    # ------------------------------------------------------------------ time

    def process(self, event: Event, found: list[Match]) -> None:
        """Process an admitted and prepared event; adds the matches that are certain to `found`."""
        with self._in_order():
            self._process(event, found)

    def _process(self, event: Event, found: list[Match]) -> None:
        loop = self.multi()
        if loop is not None:
            batch, index = self.rows.matchers.encoded(event)
            if loop.process(event, batch, index, found):
                return
        self._leave_loop()
        clock, micros = self.clock, event.time.micros
        if clock.closed is None or micros > clock.closed:
            self._close_before(micros, found)
        clock.count_event(event)
        if self.rows.matchers.counted:
            # A queued event counts when it is fed. All queries read the same streams.
            self.rows.matchers.advance(clock.events - self.queries[0].behind)
        for number, query in enumerate(self.queries):
            if not query.reads(event.stream):
                continue
            if self.direct[number]:
                # Readers of the stream that the query registers process its matches later.
                self._push(number, query, event, found)
            else:
                self.delayed[number].append(event)

    def inputs_of(self, stream: str) -> list[QueryRun]:
        """The queries whose results depend on an input stream, also by registered streams."""
        reached, before = {stream}, 0
        while len(reached) > before:
            before = len(reached)
            for query in self.queries:
                written = query.plan.registers_stream
                if written is not None and not reached.isdisjoint(query.plan.streams):
                    reached.add(written)
        return [query for query in self.distinct if not reached.isdisjoint(query.plan.streams)]

    def close_before(self, micros: int | None, found: list[Match]) -> None:
        """Close all timestamps before `micros`, or all; writers of streams precede readers."""
        with self._in_order():
            self._close_before(micros, found)

    def _close_before(self, micros: int | None, found: list[Match]) -> None:
        self._leave_loop()
        for query in self.distinct:
            query.ending = micros is None
        for number, query in enumerate(self.queries):
            if not self.direct[number]:
                self._release(number, query, micros, found)
            self._advance(number, query, micros, found)
        if micros is not None:
            self.clock.closed = micros
            if not self.rows.matchers.counted:
                self.rows.matchers.advance(micros)

    def _push(self, number: int, query: QueryRun, event: Event, found: list[Match]) -> None:
        self._collect(number, query, found, lambda some: query.push(event, self.rows, some))

    def _advance(
        self, number: int, query: QueryRun, micros: int | None, found: list[Match]
    ) -> None:
        self._collect(number, query, found, lambda some: query.advance(micros, self.rows, some))

    def _collect(
        self,
        number: int,
        query: QueryRun,
        found: list[Match],
        process: Callable[[list[Match]], None],
    ) -> None:
        """Add the matches that `process` lists to `found`, or those of an equal query before."""
        original = self.originals[number]
        if original < number:
            name = self.program.queries[number].plan.name
            found += copies(self._last[original], name)
            return
        some: list[Match] = []
        try:
            process(some)
        finally:
            self._last[number] = some
            found += self._register(query, some)

    def _release(
        self, number: int, query: QueryRun, micros: int | None, found: list[Match]
    ) -> None:
        """Push the delayed events of a query whose timestamps close."""
        delayed = self.delayed[number]
        ready = [e for e in delayed if micros is None or e.time.micros < micros]
        self.delayed[number] = [
            e for e in delayed if micros is not None and e.time.micros >= micros
        ]
        ready.sort(key=lambda event: event.instant)
        for event in ready:
            self._advance(number, query, event.time.micros, found)
            self._push(number, query, event, found)

    def _register(self, query: QueryRun, matches: list[Match]) -> list[Match]:
        """Append the matches of a query to the stream that it registers, if any."""
        iri = query.plan.registers_stream
        if iri is None:
            return matches
        for match in matches:
            assert match.graph is not None
            if self.derived_time.get(iri) != match.end.micros:
                self.derived_time[iri] = match.end.micros
                self.derived_ordinal[iri] = 0
            ordinal = self.derived_ordinal[iri]
            self.derived_ordinal[iri] = ordinal + 1
            event = Event(iri, match.end, ordinal, tuple(map(fact_of, match.graph)))
            for number, reader in enumerate(self.queries):
                if reader.reads(iri):
                    self.delayed[number].append(event)
        return matches
