"""`Evaluation`: compiled queries with their state, and the effect of one event on them.

An event closes all earlier timestamps, windows included. A query that reads a registered stream
processes a timestamp when it closes, because only then are all events known that the writer
registers at that timestamp.

The caller (`spaseq.runs`) admits events in order, and treats an error of `process` or
`close_before` as the failure of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from spaseq.engine.compaction import Compaction
from spaseq.engine.compiled import CompiledQueries, CompiledQuery
from spaseq.engine.division import NO_MATCHES, Division
from spaseq.engine.draining import Draining
from spaseq.engine.entailment import Entailment
from spaseq.engine.formatting import Block, Formatting, Make, writing
from spaseq.engine.instants import QueryRun
from spaseq.engine.limit_errors import check_limits
from spaseq.engine.native._matches import copies
from spaseq.engine.native.dispatch_keys import KeyChoice
from spaseq.engine.part_states import Part
from spaseq.engine.pattern_rows import EventRows, check_graphs, check_uses
from spaseq.engine.permanent_terms import renumber
from spaseq.engine.registered_streams import RegisteredClock, divided_at
from spaseq.engine.run_queries import RunQueries
from spaseq.engine.sharing import SharedProgram, unshared
from spaseq.engine.stream_clock import StreamClock
from spaseq.engine.stream_ends import StreamEnds
from spaseq.errors import SpaseqError
from spaseq.gpm.pattern import Pattern
from spaseq.kb.knowledge import Knowledge
from spaseq.parser import ast
from spaseq.rdf._relevance import Relevance
from spaseq.rdf._sequence import EventSequence
from spaseq.rdf.event import Event, Parameter, fact_of
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.engine.listing import Entry, Listed
    from spaseq.engine.multi_run import MultiRun

Begin: TypeAlias = "Callable[[CompiledQuery, QueryRun | Part | None], QueryRun]"
"""Begins a query now; with another state, the query continues it."""


class Evaluation(StreamEnds):
    """The state of one run: a clock, a knowledge base, and one `QueryRun` per query.

    Args:
        program: The compiled queries.
        kb: The knowledge base, as `Program.start` takes it.
        bound: The variables that were replaced by constants; saved with the state.
        entail: The entailment regime, or None; saved with the state.
        limits: The limits of groups, steps and memory.
        prune: Whether readers drop the triples that no query can use.
        apart: The numbers of queries that share no state with an equal one.
        shared: The program as the run evaluates it, if that differs from `program`.
    """

    def __init__(
        self,
        program: CompiledQueries,
        kb: Mapping[str, Any] | Any = None,
        bound: Mapping[str, Parameter] | None = None,
        entail: str | None = None,
        limits: Limits = NO_LIMITS,
        prune: bool = True,
        apart: Collection[int] = (),
        shared: SharedProgram | None = None,
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
        self.listed = listed = RunQueries(shared, apart, self._query)
        """The queries: programs, names and states."""
        self.unbound, self.queries = listed.unbound, listed.states
        self.direct, self.delayed = listed.direct, listed.delayed
        self._parts: list[tuple[int, list[Match]]] = []
        self.compaction = Compaction(self.distinct, self.rows)
        self.rows.prefetch(lambda: self.distinct)
        self.clock = StreamClock(program.streams)
        self.registered = RegisteredClock()
        self._draining = Draining()
        self._multi: MultiRun | None = None
        self._keys = KeyChoice(self.rows.matchers.dictionary)
        self._is_shared: bool | None = None
        self.formatting: Formatting | None = None
        """How the matches are written, if a sink has them written without objects."""
        self._last: dict[int, list[Match]] = {}
        """Per query that others equal: its last matches."""
        self.failing: int | None = None
        """The number of the query in which an error has stopped the run."""
        self.skipped = 0
        """The events processed as empty because a remote KB failed."""
        self.begin_streams()
        self.kb.begin()

    def _query(self, query: CompiledQuery) -> QueryRun:
        graphs = self.entailed.get(query.plan.kb_graphs, self.kb)
        return QueryRun(query, graphs, self.rows.matchers, self._limits, self._files)

    # ------------------------------------------------------------------ the queries

    @property
    def public(self) -> CompiledQueries:
        """The queries as they were written; `program` holds them as they are evaluated."""
        return self.listed.public

    @property
    def program(self) -> CompiledQueries:
        """The queries as they are evaluated."""
        return self.listed.program

    @property
    def shared(self) -> SharedProgram:
        """The relation of `public` and `program`."""
        return self.listed.shared

    @property
    def divisions(self) -> Mapping[int, Division]:
        """Per query that is a template: what divides its matches among its queries."""
        return self.listed.divisions

    @property
    def distinct(self) -> tuple[QueryRun, ...]:
        """The states of the queries, each once."""
        return self.listed.distinct

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
        return any(self.delayed)

    def drain(self, queries: Iterable[QueryRun] = ()) -> None:
        """Let some queries begin no further partial matches, and list all that do not."""
        for query in queries:
            query.drain(self.clock)
        self._draining.update(self.distinct)

    def drained(self) -> list[str]:
        """The names of the queries that have drained since the last call, except the last one."""
        closed = self.clock.closed if self._draining.states else None
        if closed is None or self.clock.finished or not self._draining.is_due(closed):
            return []
        self.sync()
        states = zip(self.program.queries, self.queries, strict=True)
        return self._draining.over(states, closed)[: len(self.queries) - 1]

    @property
    def draining(self) -> dict[str, str]:
        """The queries that drain: the name of each in the run, and in its matches."""
        return self._draining.shown(zip(self.program.queries, self.queries, strict=True))

    @property
    def blamed(self) -> str | None:
        """The name of the query in which the run has failed; None if it is not known."""
        failing = 0 if len(self.queries) == 1 else self.failing
        if failing is None or failing in self.divisions:
            return None
        return self.queries[failing].plan.name

    def is_single(self, stream: str) -> bool:
        """Whether there is one query, which reads this stream directly, and no other stream."""
        if len(self.queries) > 1 or self.listed.has_templates or not self.direct[0]:
            return False
        return self.clock.streams == (stream,) and self.queries[0].reads_only(stream)

    def format_with(self, block: Block, make: Make) -> bool:
        """Have makers write the matches to a block, before the first event.

        Matches that come one by one from Python, and those of queries without a maker, remain
        objects. All matches come in order, so that a sink can write both kinds.

        Returns:
            False if no query has a maker; nothing changes then.
        """
        names = [query.plan.shown for query in self.program.queries]
        made = writing(block, make, names, self.listed.originals, self.queries, self.divisions)
        self.formatting = made or self.formatting
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
                several = len(self.public.queries) > 1 or len(self.clock.streams) > 1
                self._is_shared = several and all(query.on_core for query in self.queries)
            if not self._is_shared or self.waiting:
                return None
            from spaseq.engine.multi_run import MultiRun  # one query over one stream needs none

            self._multi = MultiRun(
                self.program,
                self.queries,
                self.listed.originals,
                self.rows,
                self.clock,
                self.kb,
                self._files,
                self._register,
                self.shared.places,
                self.divisions,
                None if self.formatting is None else self.formatting.block,
                self._keys,
                self.direct,
                self.delayed,
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
            state, _ = misnamed.popitem()
            self.listed.rename(state, lambda query: self._renamed(query, state))  # noqa: B023

    def _renumber(self) -> None:
        """Let the states know the terms that new queries have made permanent."""
        if self._known_terms is not None:
            known, self._known_terms = self._known_terms, None
            renumber(self.distinct, self.rows.matchers, known)

    def _renamed(self, compiled: CompiledQuery, state: QueryRun) -> QueryRun:
        """A state that continues another one, with the name of another query."""
        query = self._query(compiled)
        query.begin_at(self.clock)
        query.take_over(state, self.clock)
        self._forget(state)
        self._remember(query)
        return query

    def compact_if_due(self) -> None:
        """Compact the state of queries without a window, if it has doubled.

        Call it between two events, while no iterator over matches is open.
        """
        if self.compaction.is_due(self.clock.events):
            self._discard_loop()
            self.compaction.compact()

    # ------------------------------------------------------------------ other queries

    def begin(
        self, entry: Entry, other: CompiledQuery, new: Mapping[int, Pattern]
    ) -> QueryRun | None:
        """Begin a query between two events, before it is one of the run.

        Cost: that of the query, whatever the number of the others.

        Args:
            entry: The query, which neither registers a stream nor reads a registered one.
            other: Another query of the run afterwards; if there is none, the query.
            new: The patterns that the run does not have, by number.

        Returns:
            None if all queries must be begun again (`change`): under entailment, if matches are
            written without objects, and if there must be new matchers.

        Raises:
            KbError, LimitExceeded, ChangeError: if the run cannot have the query; the queries are
                as before.
        """
        if self.entail is not None or self.formatting is not None:
            return None
        compiled = entry.compiled
        self._check(CompiledQueries((compiled,), (), (), (entry.source,), (entry.name,)), new)
        self._abandon_loop()
        if self._known_terms is None:
            self._known_terms = self.rows.matchers.dictionary.version
        try:
            if not self.rows.add(compiled, other, new):
                self._renumber()
                return None
            query = self._query(compiled)
            query.begin_at(self.clock)
            # Before the state is numbered.
            self._keys.learn(self.rows.matchers.patterns, new)
            if entry.kept is not None:
                query.take_over(entry.kept, self.clock)
        except BaseException:
            self.listed.forget(new)
            self._renumber()
            raise
        if entry.drains:
            query.drain(self.clock)
        return query

    def forget_unused(self) -> None:
        """Forget the values of bound variables that no query has any longer."""
        if self.bound:
            used = self.listed.variable_uses
            self.bound = {name: term for name, term in self.bound.items() if name in used}

    def append(self, one: Listed, new: Mapping[int, Pattern], own: Mapping[int, Pattern]) -> None:
        """Add a query that has begun after the others; see `RunQueries.append`."""
        self.listed.append(one, new, own)
        self._continue(one, None)

    def exchange(self, one: Listed, new: Mapping[int, Pattern], own: Mapping[int, Pattern]) -> None:
        """Replace a query by one that has begun; see `RunQueries.exchange`."""
        self._continue(one, self.listed.exchange(one, new, own))

    def delete(self, name: str) -> None:
        """Remove a query that no template evaluates and that is not the only one."""
        self._abandon_loop()
        self._continue(None, self.listed.delete(name))

    def _abandon_loop(self) -> None:
        """Let the next event build the compiled loop again."""
        if self._multi is not None:
            self._multi.unload()
            self._multi = None

    def _continue(self, one: Listed | None, left: QueryRun | None) -> None:
        """Continue after a change of one query: with a new one, and without a state that left."""
        self.rows.follow(self.program, left=one is None or left is not None)
        if left is not None:
            self._forget(left)
        if one is not None:
            query = one.entry.state
            self.clock.add_streams(query.plan.streams)
            self._remember(query)
            self.rows.prefetch_also(query)
            for iri in self.ended.keys() & query.plan.streams:
                query.end_stream(iri, self.ended[iri])
        self._is_shared, self._last = None, {}
        if len(self.queries) == 1:
            self.catch_up()  # the events of a single query do not come to the loop

    def _remember(self, query: QueryRun) -> None:
        self.compaction.add(query)
        self._draining.add(query)

    def _forget(self, query: QueryRun) -> None:
        self.compaction.remove(query)
        self._draining.states.discard(query)

    def change(
        self,
        program: CompiledQueries,
        unbound: Sequence[ast.Query],
        new: Mapping[int, Pattern],
        queries: Callable[[Begin], list[QueryRun]],
        shared: SharedProgram | None = None,
        matched: Mapping[int, int] = NO_MATCHES,
    ) -> None:
        """Change the queries between two events.

        Args:
            program: The program afterwards. Its patterns keep their numbers.
            unbound: Its sources before variables were bound.
            new: The patterns that the run does not have, by number.
            queries: Lists the states of the queries. Its argument begins one, which may continue
                the state of another.
            shared: The program as it was written, if there are templates afterwards.
            matched: The matches so far of their queries, by the numbers in `shared`.

        Raises:
            KbError, LimitExceeded, ChangeError: if the run cannot have a query; the queries are as
                before.
        """
        self._check(program, new)
        self._discard_loop()
        rows, before = self.rows.parts, self._entailment
        self._entailment, undo = before.changed(program, self.entailed, self.kb, self.kb.current)
        terms = self.rows.matchers.dictionary.version
        continued: list[tuple[QueryRun, QueryRun | Part]] = []
        written = program.written

        def begin(query: CompiledQuery, kept: QueryRun | Part | None) -> QueryRun:
            begun = self._query(query)
            begun.begin_at(self.clock, delayed=not written.isdisjoint(query.plan.streams))
            if kept is not None:
                continued.append((begun, kept))
            return begun

        try:
            rebuilds = self.rows.change(program, new)
            after = queries(begin)
            # Before states are numbered.
            self._keys.learn(self.rows.matchers.patterns, range(len(program.patterns)))
            for query, kept in continued:
                query.take_over(kept, self.clock)
        except BaseException:
            undo()
            self.listed.forget(new)
            self._entailment, self.rows.parts = before, rows
            renumber(self.distinct, self.rows.matchers, terms)
            raise
        delayed = dict(zip(self.queries, self.delayed, strict=True))
        delayed |= {q: delayed.get(kept, []) for q, kept in continued if isinstance(kept, QueryRun)}
        staying = [query for query in self.distinct if query in after]
        if rebuilds:
            for query in staying:
                query.renew(self.rows.matchers)
        else:
            renumber(staying, self.rows.matchers, terms)
        waiting = [delayed.get(query, []) for query in after]
        self.listed.replace(shared or unshared(program), unbound, after, waiting, new, matched)
        self._adopt()

    def _check(self, program: CompiledQueries, new: Mapping[int, Pattern]) -> None:
        """Raise an error if the run cannot have the queries of a program, with new patterns."""
        if not self.kb.has(program.kb_graphs):
            self.adopt_kb()  # a graph was added since the last event
        check_graphs(program, self.kb.latest.graphs)
        check_limits(program, self._limits)
        if self._is_read:
            check_uses(program.queries, new.values(), self.rows.matchers.used)

    def _adopt(self) -> None:
        """Continue with changed queries, whose automata are ready."""
        self.drain()
        self.clock.add_streams(self.program.streams)
        self.compaction = Compaction(self.distinct, self.rows)
        self.rows.prefetch(lambda: self.distinct)
        self._is_shared, self._last = None, {}
        for iri, last in self.ended.items():
            for query in self.inputs_of(iri):
                query.end_stream(iri, last)
        if self.formatting is not None:
            self.format_with(self.formatting.block, self.formatting.make)

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
                    self.failing = self.queries.index(loop.failing)
        self._leave_loop()
        clock, micros = self.clock, event.time.micros
        if clock.closed is None or micros > clock.closed:
            self._close_before(micros, found)
            self._give_parts(found)
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

    def close_before(self, micros: int | None, found: list[Match]) -> None:
        """Close all timestamps before `micros`, or all; writers of streams precede readers."""
        with self._in_order():
            try:
                self._close_before(micros, found)
            finally:
                self._give_parts(found)

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
        """Add the matches that `process` lists to `found`, or those of an equal earlier query."""
        original = self.listed.originals[number]
        if original < number:
            name = self.program.queries[number].plan.shown
            self._give(number, copies(self._last[original], name), found)
            return
        some: list[Match] = []
        try:
            process(some)
        except BaseException:
            self.failing = number
            raise
        finally:
            self._last[number] = some
            self._give(number, self._register(query, some), found)

    def _give(self, number: int, matches: list[Match], found: list[Match]) -> None:
        """Add the matches of a query to `found`; with templates, `_give_parts` does."""
        if number in self.divisions:
            self._parts += self.divisions[number](matches)
        elif self.divisions:
            self._parts.append((self.shared.places[number], matches))
        else:
            found += matches

    def _give_parts(self, found: list[Match]) -> None:
        """Add the matches of the parts of templates, in the order of all queries."""
        for _, some in sorted(self._parts, key=itemgetter(0)):
            found += some
        self._parts.clear()

    def _release(
        self, number: int, query: QueryRun, micros: int | None, found: list[Match]
    ) -> None:
        """Push the delayed events of a query whose timestamps close."""
        closed, self.delayed[number] = divided_at(self.delayed[number], micros)
        for event in closed:
            self._advance(number, query, event.time.micros, found)
            self._push(number, query, event, found)

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
            for number, reader in enumerate(self.queries):
                if reader.reads(iri):
                    self.delayed[number].append(event)
        return matches
