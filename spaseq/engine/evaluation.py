"""`Evaluation`: compiled queries with their state, and the effect of one event on them.

An event closes all earlier timestamps, windows included. A query that reads a registered stream
processes a timestamp when it closes, because only then are all events known that the writer
registers at that timestamp.

The caller (`spaseq.runs`) admits events in order, and treats an error of `process` or
`close_before` as the failure of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from spaseq.engine.compaction import Compaction
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.draining import Draining
from spaseq.engine.entailment import Entailment
from spaseq.engine.formatting import Block, Formatting, Make, writing
from spaseq.engine.instants import QueryRun
from spaseq.engine.limit_errors import check_limits
from spaseq.engine.native._matches import copies
from spaseq.engine.native.dispatch_keys import KeyChoice
from spaseq.engine.pattern_rows import EventRows, check_graphs, check_uses
from spaseq.engine.permanent_terms import renumber
from spaseq.engine.registered_streams import RegisteredClock, dependent, divided_at
from spaseq.engine.run_queries import RunQueries
from spaseq.engine.run_query import Beginning, Edit, Executor
from spaseq.engine.sharing import SharedProgram, unshared
from spaseq.engine.stream_clock import StreamClock
from spaseq.engine.stream_ends import StreamEnds
from spaseq.errors import SpaseqError
from spaseq.gpm.pattern import Pattern
from spaseq.kb.knowledge import Knowledge
from spaseq.parser import ast
from spaseq.rdf.event import Event, Parameter, fact_of
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.rdf.native._terms import EventSequence, Relevance
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.engine.multi_run import MultiRun


class Evaluation(StreamEnds):
    """The state of one run: a clock, a knowledge base, and one `QueryRun` per query.

    Args:
        program: The compiled queries.
        kb: The knowledge base, as `Program.start` takes it.
        bound: The variables that were replaced by constants; saved with the state.
        entail: The entailment regime, or None; saved with the state.
        limits: The limits of groups, steps and memory.
        prune: Whether readers drop the triples that no query can use.
        shared: The program as the run evaluates it, if that differs from `program`.
        unbound: The sources of `program` before variables were bound.
    """

    def __init__(
        self,
        program: CompiledQueries,
        kb: Mapping[str, Any] | Any = None,
        bound: Mapping[str, Parameter] | None = None,
        entail: str | None = None,
        limits: Limits = NO_LIMITS,
        prune: bool = True,
        shared: SharedProgram | None = None,
        unbound: Sequence[ast.Query] | None = None,
    ):
        shared = shared or unshared(program)
        program, self._limits = shared.executed, limits
        self._prunes = prune
        self._is_read = False
        self._known_terms: int | None = None
        """The version of the dictionary that the states know, if it may be an earlier one."""
        self.bound = dict(bound or {})
        self._entailment = Entailment(program, entail)
        self.kb = Knowledge(kb or {}, lambda kb: self._entailment.closures(kb))
        """The background graphs and their changes (`load`, `replace`, `reload`)."""
        check_graphs(program, self.kb.graphs)
        self.entail = entail
        self.entailed = self._entailment.graphs(self.kb, self.kb.current)
        self.rows = EventRows(program, self.kb, self.entailed, limits)
        check_limits(program, limits)
        self._files: dict[str, int] = {}
        self.listed = RunQueries(shared, self._query, unbound)
        """The queries: programs, names and states."""
        self._parts: list[tuple[int, list[Match]]] = []
        self.compaction = Compaction(self.queries, self.rows)
        self.rows.prefetch(lambda: self.queries)
        self.clock = StreamClock(program.streams)
        self.registered = RegisteredClock()
        self._draining = Draining()
        self._multi: MultiRun | None = None
        self._keys = KeyChoice(self.rows.matchers.dictionary)
        self._is_shared: bool | None = None
        self.formatting: Formatting | None = None
        """How the matches are written, if a sink has them written without objects."""
        self.failing: Executor | None = None
        """What has evaluated the query in which an error has stopped the run."""
        self.skipped = 0
        """The events processed as empty because a remote KB failed."""
        self.begin_streams()
        self.kb.begin()

    def _query(self, query: CompiledQuery) -> QueryRun:
        graphs = self.entailed.get(query.plan.kb_graphs, self.kb)
        return QueryRun(query, graphs, self.rows.matchers, self._limits, self._files)

    # ------------------------------------------------------------------ the queries

    @property
    def queries(self) -> list[QueryRun]:
        """The states of what evaluates the queries."""
        return self.listed.states

    # ------------------------------------------------------------------ readers

    @property
    def relevance(self) -> Relevance:
        """The triples that the queries can use; a reader drops all others.

        Batches that are read with it are encoded for this run only.
        """
        matchers = self.rows.matchers
        if not self._prunes:
            self._entailment.read_with(None)
            return Relevance(matchers.dictionary)
        self._is_read = True
        self._entailment.read_with(matchers.used)
        return matchers.relevance

    @property
    def waiting(self) -> bool:
        """Whether a query has queued events that are not yet matched."""
        if self._multi is not None and self._multi.driver.loaded:
            return self._multi.driver.holding
        return any(query.behind for query in self.queries)

    @property
    def delays(self) -> bool:
        """Whether events of readers of registered streams wait until their timestamp closes."""
        if self._multi is not None and self._multi.driver.loaded:
            return self._multi.driver.delaying
        return any(executor.delayed for executor in self.listed.executors)

    def find_draining(self) -> None:
        """List the queries that drain, after their states have been restored."""
        self._draining.update(self.queries)

    def drained(self) -> list[str]:
        """The names of the queries that have drained since the last call, except the last one."""
        closed = self.clock.closed if self._draining.states else None
        if closed is None or self.clock.finished or not self._draining.is_due(closed):
            return []
        self.sync()
        return self._draining.over(self.listed.queries, closed)[: len(self.listed.by_name) - 1]

    @property
    def draining(self) -> dict[str, str]:
        """The queries that drain: the name of each in the run, and in its matches."""
        return self._draining.shown(self.listed.queries)

    @property
    def blamed(self) -> str | None:
        """The name of the query in which the run has failed; None if it is not known."""
        executors = self.listed.executors
        failing = executors[0] if len(executors) == 1 else self.failing
        if failing is None or failing.division is not None:
            return None
        return failing.state.plan.name

    def single(self, stream: str) -> QueryRun | None:
        """The state of the only query, if it reads this stream directly, and no other stream."""
        only = self.listed.only
        if only is None or not self.clock.streams == (stream,) == only.state.plan.streams:
            return None
        return only.state

    def format_with(self, block: Block, make: Make) -> bool:
        """Have makers write the matches to a block, before the first event.

        Matches that come one by one from Python, and those of queries without a maker, remain
        objects. All matches come in order, so that a sink can write both kinds.

        Returns:
            False if no query has a maker; nothing changes then.
        """
        self.formatting = writing(block, make, self.listed.executors) or self.formatting
        return self.formatting is not None

    def _in_order(self) -> AbstractContextManager[None]:
        """A context in which the matches of several queries are listed."""
        return nullcontext() if self.formatting is None else self.formatting.in_order()

    # ------------------------------------------------------------------ the compiled loop

    def multi(self) -> MultiRun | None:
        """The compiled loop; None if it cannot process the next event.

        It cannot do so while events wait for other streams. A query of one stream has its own loop.
        """
        if self._multi is None:
            self.catch_up()
            if self._is_shared is None:
                several = len(self.listed.by_name) > 1 or len(self.clock.streams) > 1
                self._is_shared = several and all(query.on_core for query in self.queries)
            if not self._is_shared or self.waiting:
                return None
            from spaseq.engine.multi_run import MultiRun  # one query over one stream needs none

            self._multi = MultiRun(
                self.listed.executors,
                self.rows,
                self.clock,
                self.kb,
                self._files,
                self._register,
                None if self.formatting is None else self.formatting.block,
                self._keys,
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
        self.catch_up()

    def _discard_loop(self) -> None:
        """Like `_leave_loop`, before the automata are replaced."""
        self._leave_loop()
        self._multi = None

    def catch_up(self) -> None:
        """Let the states know what changes of single queries have left for the next event."""
        self._renumber()
        misnamed = self.listed.misnamed
        while misnamed:
            executor, _ = misnamed.popitem()
            self._rename(executor)

    def _renumber(self) -> None:
        """Let the states know the terms that new queries have made permanent."""
        if self._known_terms is not None:
            known, self._known_terms = self._known_terms, None
            renumber(self.queries, self.rows.matchers, known)

    def _rename(self, executor: Executor) -> None:
        """Give the state of equal queries the name of the first one, as that one has left."""
        former, executor.compiled = executor.state, executor.first.compiled
        query = executor.state = self._query(executor.compiled)
        query.begin_at(self.clock)
        query.take_over(former, self.clock)
        self._forget(former)
        self._remember(query)
        self.listed.relist()

    def compact_if_due(self) -> None:
        """Compact the state of queries without a window, if it has doubled.

        Call it between two events, while no iterator over matches is open.
        """
        if self.compaction.is_due(self.clock.events):
            self._discard_loop()
            self.compaction.compact()

    # ------------------------------------------------------------------ other queries

    def forget_unused(self) -> None:
        """Forget the values of bound variables that no query has any longer."""
        if self.bound:
            used = self.listed.variable_uses
            self.bound = {name: term for name, term in self.bound.items() if name in used}

    def change(self, edit: Edit) -> None:
        """Change some queries between two events.

        Cost: that of these queries, whatever the number of the others, unless there must be new
        matchers.

        Raises:
            KbError, LimitExceeded, ChangeError: if the run cannot have a query; the queries are as
                before.
        """
        begins, new = edit.begins, edit.patterns
        if begins:
            self._check([each.executor for each in begins], new)
        self._abandon_loop()
        if self._known_terms is None:
            self._known_terms = self.rows.matchers.dictionary.version
        matchers, rows = self.rows.matchers, self.rows.parts
        entailment, undo = self._entailment, None
        try:
            if self.entail is not None:
                after = self.listed.after(edit)
                self._entailment, undo = entailment.changed(
                    after, self.entailed, self.kb, self.kb.current
                )
            if begins and not self._match(edit):
                self.rows.rebuild(self.listed.after(edit), new)
            for each in begins:
                query = each.executor.state = self._query(each.executor.compiled)
                query.begin_at(self.clock, delayed=not each.executor.direct)
            # Before states are numbered.
            self._keys.learn(self.rows.matchers.patterns, new)
            for each in begins:
                if isinstance(each.kept, Executor):
                    each.executor.delayed = list(each.kept.delayed)
                    each.executor.state.take_over(each.kept.state, self.clock)
                elif each.kept is not None:
                    each.executor.state.take_over(each.kept, self.clock)
        except BaseException:
            if undo is not None:
                undo()
            self.listed.forget(new)
            self._entailment, self.rows.parts = entailment, rows
            self._renumber()
            raise
        left = self.listed.change(edit)
        if self.rows.matchers is not matchers:
            self._known_terms = None
            for executor in {*self.listed.executors}.difference(e.executor for e in begins):
                executor.state.renew(self.rows.matchers)
        self._continue(begins, left)

    def _abandon_loop(self) -> None:
        """Let the next event build the compiled loop again."""
        if self._multi is not None:
            self._multi.unload()
            self._multi = None

    def _match(self, edit: Edit) -> bool:
        """Extend the matchers in place by the patterns of new queries; False if they cannot be."""
        others = (
            query.executor.compiled
            for name, query in self.listed.by_name.items()
            if name not in edit.put and name not in edit.dropped
        )
        executors = [each.executor for each in edit.begins]
        compiled = [each.compiled for each in executors]
        derived = {n for each in executors if not each.direct for n in each.compiled.tasks}
        return self.rows.add(compiled, next(others, None), edit.patterns, derived)

    def _continue(self, begins: Sequence[Beginning], left: Sequence[Executor]) -> None:
        """Continue after a change, with new executors and without some that have left."""
        self.rows.follow(lambda: self.listed.program, left=bool(left))
        for executor in left:
            self._forget(executor.state)
        written = self.listed.written
        for each in begins:
            query = each.executor.state
            if each.drains:
                query.drain(self.clock)
            self.clock.add_streams([iri for iri in query.plan.streams if iri not in written])
            self._remember(query)
            self.rows.prefetch_also(query)
            for iri, last in self.ended.items():
                if query in dependent(self.queries if written else [query], iri):
                    query.end_stream(iri, last)
        self._is_shared = None
        if self.formatting is not None:
            self.format_with(self.formatting.block, self.formatting.make)
        if len(self.listed.by_name) == 1:
            self.catch_up()  # the events of a single query do not come to the loop

    def _remember(self, query: QueryRun) -> None:
        self.compaction.add(query)
        self._draining.add(query)

    def _forget(self, query: QueryRun) -> None:
        self.compaction.remove(query)
        self._draining.states.discard(query)

    def _check(self, new: Sequence[Executor], patterns: Mapping[int, Pattern]) -> None:
        """Raise an error if the run cannot have some executors, with new patterns."""
        queries = tuple(each.compiled for each in new)
        program = CompiledQueries(queries, (), (), tuple(each.source for each in new), ())
        if not self.kb.has(program.kb_graphs):
            self.adopt_kb()  # a graph was added since the last event
        check_graphs(program, self.kb.latest.graphs)
        check_limits(program, self._limits)
        if self._is_read:
            check_uses(queries, patterns.values(), self.rows.matchers.used)

    # ------------------------------------------------------------------ the knowledge base

    @property
    def delays_kb(self) -> bool:
        """Whether a change of the KB waits until the timestamps of delayed events close."""
        return bool(self.kb.changes) and self.delays

    def adopt_kb(self) -> None:
        """Adopt the next version of the KB, if no event waits to be matched.

        Raises:
            KbError, LimitExceeded: if the queries cannot use it; they retain the version before.
        """
        if self.waiting or self.delays:
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
                for query in self.queries:
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
        if self.ended:
            self.go_on(event.stream, event.time.micros)
        with self._in_order():
            try:
                self._process(event, found)
            finally:
                self._give_parts(found)

    def _process(self, event: Event, found: list[Match]) -> None:
        loop = self.multi()
        if loop is not None:
            own = loop.is_delayed(event.stream) or loop.may_hold(event)
            batch, index = self.rows.matchers.encoded(event, own)
            try:
                if loop.process(event, batch, index, found):
                    return
            finally:
                if loop.failing is not None:
                    self.failing = loop.failing
        self._leave_loop()
        clock, micros = self.clock, event.time.micros
        if clock.closed is None or micros > clock.closed:
            self._close_before(micros, found)
            self._give_parts(found)
        clock.count_event(event)
        if self.rows.matchers.counted:
            # A queued event counts when it is fed. All queries read the same streams.
            self.rows.matchers.advance(clock.events - self.queries[0].behind)
        for executor in self.listed.executors:
            if not executor.state.reads(event.stream):
                continue
            if executor.direct:
                # Readers of the stream that the query registers process its matches later.
                self._push(executor, event, found)
            else:
                executor.delayed.append(event)

    def close_before(self, micros: int | None, found: list[Match]) -> None:
        """Close all timestamps before `micros`, or all; writers of streams precede readers."""
        with self._in_order():
            try:
                self._close_before(micros, found)
            finally:
                self._give_parts(found)

    def _close_before(self, micros: int | None, found: list[Match]) -> None:
        self._leave_loop()
        for executor in self.listed.executors:
            executor.state.ending = micros is None
        for executor in self.listed.executors:
            if not executor.direct:
                self._release(executor, micros, found)
            self._advance(executor, micros, found)
        if micros is not None:
            self.clock.closed = micros
            if not self.rows.matchers.counted:
                self.rows.matchers.advance(micros)

    def _push(self, executor: Executor, event: Event, found: list[Match]) -> None:
        state = executor.state
        self._collect(executor, found, lambda some: state.push(event, self.rows, some))

    def _advance(self, executor: Executor, micros: int | None, found: list[Match]) -> None:
        state = executor.state
        self._collect(executor, found, lambda some: state.advance(micros, self.rows, some))

    def _collect(
        self, executor: Executor, found: list[Match], process: Callable[[list[Match]], None]
    ) -> None:
        """Add the matches that `process` lists for the queries of an executor to `found`."""
        some: list[Match] = []
        try:
            process(some)
        except BaseException:
            self.failing = executor
            raise
        finally:
            self._give(executor, self._register(executor.state, some), found)

    def _give(self, executor: Executor, matches: list[Match], found: list[Match]) -> None:
        """Add matches to `found`; if executors have several queries, `_give_parts` does."""
        if not self.listed.shares:
            found += matches
        elif executor.division is not None:
            self._parts += executor.division(matches)
        else:
            first, *others = executor.queries
            self._parts.append((first.serial, matches))
            self._parts += [(each.serial, copies(matches, each.plan.shown)) for each in others]

    def _give_parts(self, found: list[Match]) -> None:
        """Add the matches of all queries in their order, up to one in which the run has failed."""
        last = None if self.failing is None else self.failing.first.serial
        for serial, some in sorted(self._parts, key=itemgetter(0)):
            if last is None or serial <= last:
                found += some
        self._parts.clear()

    def _release(self, executor: Executor, micros: int | None, found: list[Match]) -> None:
        """Push the delayed events of an executor whose timestamps close."""
        closed, executor.delayed = divided_at(executor.delayed, micros)
        for event in closed:
            self._advance(executor, event.time.micros, found)
            self._push(executor, event, found)

    def _register(self, query: QueryRun, matches: list[Match]) -> list[Match]:
        """Append the matches of a query to the stream that it registers, if any."""
        iri = query.plan.registers_stream
        if iri is None or not matches:
            return matches
        loop = None if self._multi is None or not self._multi.driver.loaded else self._multi
        if loop is not None and query.constructs is not None:
            micros = query.native.core.window.micros
            first = self.registered.advance(iri, micros, len(matches))
            loop.register_all(iri, query.constructs, matches, first)
            return matches
        for match in matches:
            assert match.graph is not None
            ordinal = self.registered.advance(iri, match.end.micros)
            event = Event(iri, match.end, ordinal, tuple(map(fact_of, match.graph)))
            if loop is not None:
                loop.register(event)
                continue
            for executor in self.listed.executors:
                if executor.state.reads(iri):
                    executor.delayed.append(event)
        return matches
