"""`Run`: one evaluation of a program, whose state can be saved and inspected.

Time advances only: an event closes all earlier timestamps. A call that refuses an event leaves the
run unchanged. A call that fails within an event (a limit, an error of a filter in Python) leaves
the run failed, and all further calls refuse to process events.

If one query reads one stream, events go to the compiled core in batches: those of a reader
(`push_batch`), or one that pushed events are appended to (`spaseq/engine/native/push/push.pxi`).
All others go to the loop of `spaseq.engine.multi_run`, pushed events one by one. The core advances
while its matches are consumed, and `settle` then counts the events that it has processed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from spaseq.engine import changes
from spaseq.engine.checkpoint import save
from spaseq.engine.compiled import CompiledQueries, in_short
from spaseq.engine.evaluation import Evaluation
from spaseq.engine.instants import QueryRun
from spaseq.engine.native._groups import GroupedMatches
from spaseq.engine.native._matches import Matches, MultiMatches
from spaseq.engine.native._push import Alone, Pushing, alone
from spaseq.engine.python_graphs import facts_of, name_of
from spaseq.engine.sharing import SharedProgram
from spaseq.engine.stream_clock import timestamp_of
from spaseq.engine.stream_ends import SeveralStreams
from spaseq.engine.stream_names import iris_of, text_of_stream
from spaseq.errors import ChangeError
from spaseq.parser import ast
from spaseq.rdf.accepted import Bindable, Graph, Name, StreamName, Time
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event, Parameter
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.rdf.native._terms import EventBatch, EventSequence, Relevance
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.explain.diagnosis import Sample


_Feed: TypeAlias = tuple[
    Matches | GroupedMatches | MultiMatches | Pushing, EventBatch | EventSequence, int
]
"""The core's iterator or push batch, its events, and the number of events already counted."""
_OF_PACKAGE = {"settle", "begin_change", "change", "queries"}


class Run(SeveralStreams):
    """One evaluation of a `Program`; made by `Program.start`.

    One thread may use a run at a time; a call in a second thread raises `RuntimeError`.
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
        self.alone = Alone()
        """The lock that refuses a second thread."""
        self.evaluation = Evaluation(program, kb, bound, entail, limits, prune, shared, unbound)
        self._like = program
        self._program = program, program
        """The queries of the evaluation, and the same in the class of the program."""
        self.clock, self.rows = self.evaluation.clock, self.evaluation.rows
        self.kb = self.evaluation.kb
        """The background graphs and their changes (`load`, `replace`, `reload`)."""
        self.unreturned: list[Match] = []
        """The matches that were certain before the last call failed."""
        self.failing: str | None = None
        """The query in which the run failed; None if it has not, or no query is to blame."""
        self._feed: _Feed | None = None
        self._iris: dict[str, str] = {}

    def __dir__(self) -> list[str]:
        """The public names; other attributes are for the package."""
        public = {name for name in vars(Run) if not name.startswith("_")}
        return sorted(public - _OF_PACKAGE | {"kb", "unreturned"})

    def __repr__(self) -> str:
        # Without the lock: it must work in a debugger, too, while another thread uses the run.
        clock, feed = self.clock, self._feed
        count = clock.events + (0 if feed is None else feed[0].after - feed[2])
        state = ", stopped" if clock.failure else ", finished" if clock.finished else ""
        queries, plural = in_short(self.evaluation.listed.public), "" if count == 1 else "s"
        return f"<Run of {queries}; {count} event{plural}{state}>"

    def _repr_html_(self) -> str:
        from spaseq.explain.notebook import run_html

        return run_html(self.program, self.stats, repr(self)[1:-1])

    @property
    def queries(self) -> Sequence[QueryRun]:
        """The states of what evaluates the queries; for the package itself."""
        return self.evaluation.listed.states

    @property
    def program(self) -> CompiledQueries:
        """The current queries."""
        public = self.evaluation.listed.public
        if self._program[0] is not public:
            parts = {part.name: getattr(public, part.name) for part in fields(public)}
            self._program = public, replace(self._like, **parts)
        return self._program[1]

    @property
    def relevance(self) -> Relevance:
        """The triples that the queries can use; a reader drops all others.

        Batches that are read with it are encoded for this run only.
        """
        return self.evaluation.relevance

    # ------------------------------------------------------------------ single events

    def push(
        self, stream: StreamName, timestamp: Time, graph: Graph, name: Name | None = None
    ) -> list[Match]:
        """Process one event of one stream.

        Args:
            stream: The IRI of the stream, or its name in the queries.
            timestamp: A datetime or date (without a zone in UTC), an ISO text, a number of seconds,
                a literal, a `numpy.datetime64` or a `Timestamp`.
            graph: An rdflib graph, an iterable of pyoxigraph or rdflib triples or quads, or
                N-Triples or N-Quads as bytes or text. Names of graphs in it are ignored.
            name: The name of the event's graph, an IRI or a blank node.

        Returns:
            The matches that are certain after the event.

        Raises:
            ArgumentError: if the name of the stream is neither text nor an IRI.
            EventError: for an unknown stream, an invalid time or graph, or an event whose timestamp
                is closed. This error and the one above leave the run unchanged.
            LimitExceeded: if the event exceeds a limit of the run; the run has then failed.
            RuntimeError: if another thread uses the run.

        Example:
            >>> run.push("trades", "2026-01-05T12:00:00Z", b"<urn:t1> <urn:price> 14 .")
        """
        # Most callers pass the IRI itself, and the same object each time.
        known = self._iris.get(stream) if isinstance(stream, str) else None
        stream = self._stream_iri(stream) if known is None else known
        feed = self._feed  # read once: the lock is not held yet
        if feed is not None and isinstance(pushing := feed[0], Pushing):
            try:
                found = pushing.push(stream, timestamp, graph, name)
            except BaseException as error:
                if pushing.failed:
                    self._fail_push(error)
                raise
            if found is not None:
                return found
        return self._push(stream, timestamp, graph, name)

    def _stream_iri(self, name: StreamName) -> str:
        """The IRI of a stream; a name that no query has is returned as it is."""
        text, iris = text_of_stream(name), self._iris
        if not iris:  # a change replaces the table, so it never keeps earlier names
            sources = [query.source for query in list(self.evaluation.listed.by_name.values())]
            iris.update(iris_of(sources, self.clock.streams))
        return iris.get(text, text)

    @alone
    def _push(self, stream: str, timestamp: Any, graph: Any, name: Any) -> list[Match]:
        """As `push`, for an event that the open push batch does not accept."""
        if self._feed is not None and isinstance(self._feed[0], Pushing):
            self._stop_feed()
        self.settle()
        clock = self.clock
        clock.check_stream(stream)
        time = timestamp_of(timestamp, clock.time_precision)
        clock.check_time(time, stream)
        self._check_ahead(stream, time)
        facts = facts_of(graph, f"e{clock.events}")
        found = self._wake(time.micros, stream)
        ordinal = clock.next_ordinal(stream, time)
        self._process(Event(stream, time, ordinal, facts, name_of(name)), found)
        self._open_push_batch(stream)
        return found

    def _open_push_batch(self, stream: str) -> None:
        """Append the events that follow to a batch of the core, if the query allows it."""
        query = self.evaluation.single(stream)
        if query is not None and not self.rows.asks(stream):
            relevance = self.rows.matchers.relevance
            pushing = query.native.pushing(self.alone, self.clock, relevance, self.kb)
            if pushing is not None:
                self._feed = pushing, pushing.batch, 0

    def _fail_push(self, error: BaseException) -> NoReturn:
        """Fail after an error within an event of the push batch, which still holds the lock."""
        try:
            reported = self.queries[0].reported(error)
            self._stop_feed()
            self._fail(reported)
            raise reported from None
        finally:
            self.alone.leave()

    def _process(self, event: Event, found: list[Match]) -> None:
        """Process an admitted event.

        After any error except that of a remote KB (`KbError`), the run has failed.
        """
        self._stop_feed()
        if self.evaluation.delays_kb:
            self._close_before(event.time.micros, found)
        event = self.evaluation.prepare(event)
        try:
            self.evaluation.process(event, found)
        except BaseException as error:
            self._fail(error, found)
            raise

    # ------------------------------------------------------------------ batches

    def push_batch(self, events: Iterable[Event] | EventBatch | EventSequence) -> Iterator[Match]:
        """Process events in the order of their timestamps, lazily as the matches are consumed.

        Args:
            events: Events, an encoded batch of a reader, or a sequence of events of such batches.
                The ordinal of each event must be the next one of its stream.

        Returns:
            An iterator over the matches. Matches of an event of an encoded batch must be consumed
            before another call advances the run; after that the iterator raises `RuntimeError`.

        Example:
            >>> matches = list(run.push_batch(source))
        """
        if isinstance(events, EventBatch):
            if self.evaluation.single(events.stream) is not None:
                return self.alone.taking(self._push_encoded(events))
            events = EventSequence([events])
        if isinstance(events, EventSequence):
            return self.alone.taking(self._push_sequence(events))
        return self.alone.taking(self._push_events(events))

    def _push_events(self, events: Iterable[Event]) -> Iterator[Match]:
        if isinstance(events, Sequence):
            self.rows.ask(events)
        for event in events:
            yield from self._push_event(event)

    def _push_event(self, event: Event) -> Iterator[Match]:
        """Process one event; yields its matches even if it fails."""
        found: list[Match] = []
        self.settle()
        try:
            if self.evaluation.ahead and isinstance(event, Event):
                self._check_ahead(event.stream, event.time)
                found += self._wake(event.time.micros, event.stream)
            self.clock.check_event(event)
            self._process(event, found)
        finally:
            self.unreturned = []
            yield from found

    def _push_encoded(self, batch: EventBatch) -> Iterator[Match]:
        """Process a batch of the only query's only stream in the core.

        Events that the core does not accept are processed one by one.
        """
        evaluation, index = self.evaluation, 0
        ready = single = batch.dictionary is self.rows.matchers.dictionary
        while index < len(batch):
            after = index
            self._stop_feed()
            query = evaluation.single(batch.stream)
            if query is None:
                # Between two matches a caller can add queries.
                yield from self._push_sequence(EventSequence([batch]), index)
                return
            if single and self.kb.changes:
                evaluation.adopt_kb()
                ready = True
            if ready:
                # Between two matches a caller can make terms permanent and fill the tables.
                batch.refit()
                ready = self.rows.prepare(batch, query.behind > 0)
            if ready and self.clock.follows(batch, index):
                matches = query.stream(batch, index, self.clock.events, self.kb)
                if matches is None:
                    after, found = self._run(batch, index)
                    yield from found
                else:
                    yield from self._consume(matches, batch, index)
                    after = matches.after
                    yield from query.left_over(matches)
            if after == index and index < len(batch):
                yield from self._push_event(EncodedEvent(batch, index))
                after += 1
            index = after

    def _push_sequence(self, events: EventSequence, index: int = 0) -> Iterator[Match]:
        """As `_push_encoded` from an event on, for several queries or several streams."""
        evaluation, clock, ready = self.evaluation, self.clock, True
        while index < len(events):
            after = index
            self._stop_feed()
            # The answers of a remote KB are those for one batch.
            asking = any(self.rows.asks(batch.stream) for batch in events.batches)
            possible = (len(events.batches) == 1 or not asking) and not evaluation.ahead
            ready = ready and possible
            if possible and self.kb.changes:
                evaluation.adopt_kb()
                ready = True
            for batch in events.batches if evaluation.ended else ():
                evaluation.go_on(batch.stream, batch.micros(len(batch) - 1))
            loop = evaluation.multi() if ready and not evaluation.delays_kb else None
            if loop is not None and all(map(loop.accepts, events.batches)):
                for batch in events.batches:
                    batch.refit()
                if asking:
                    ready = self.rows.prepare(events.batches[0], evaluation.waiting)
                else:
                    self.rows.matchers.collect(events.batches)
                if ready and not (clock.finished or clock.failure):
                    matches = loop.stream(events, index, len(events), holds=not asking)
                    yield from self._consume(matches, events, index)
                    after = matches.after
            if after == index and index < len(events):
                yield from self._push_event(EncodedEvent(*events.position(index)))
                after += 1
            index = after

    def _run(self, batch: EventBatch, index: int) -> tuple[int, Iterable[Match]]:
        """Run the core up to the next event with matches: (next event, matches)."""
        query = self.queries[0]
        try:
            after, found = query.run(batch, index, self.clock.events)
        except BaseException as error:
            self.clock.count_batch(batch, index, query.reached(index))
            self._fail(error)
            raise
        self.clock.count_batch(batch, index, after)
        return after, found

    def _consume(
        self,
        matches: Matches | GroupedMatches | MultiMatches,
        batch: EventBatch | EventSequence,
        first: int,
    ) -> Iterator[Match]:
        """Yield matches; the core processes events only as far as the consumer asks."""
        self._feed = matches, batch, first
        try:
            yield from matches
        except BaseException as error:
            if isinstance(error, RuntimeError):
                self.clock.check_running()  # a call in between may have failed
            if not matches.failed:
                raise
            failing = matches.failing if isinstance(matches, MultiMatches) else 0
            executor = self.evaluation.failing = self.evaluation.listed.executors[failing]
            reported = executor.state.reported(error)
            self._fail(reported)
            raise reported from None
        finally:
            if self._feed is not None and self._feed[0] is matches:
                self._stop_feed()

    def settle(self) -> None:
        """Count the events that the core has processed by itself; if there are none, compact."""
        if self._feed is not None:
            matches, events, first = self._feed
            self._feed = matches, events, matches.after
            if isinstance(events, EventSequence):
                self.evaluation.count(events, first, matches.after)
            elif matches.after > first:
                self.queries[0].advance_to(events, matches.after)
                self.clock.count_batch(events, first, matches.after)
        elif not self.clock.failure:
            self.evaluation.compact_if_due()

    def _stop_feed(self) -> None:
        """Count the events of the core and invalidate its iterator or push batch."""
        self.settle()
        if self._feed is not None:
            self._feed[0].invalidate()
            self._feed = None
        if not self.clock.failure:
            for name in self.evaluation.drained():
                self.change(changes.removed(self.evaluation, name))

    # ------------------------------------------------------------------ time

    @alone
    def advance(self, timestamp: Time) -> list[Match]:
        """A watermark: no stream has further events before `timestamp`.

        Args:
            timestamp: As for `push`.

        Returns:
            The matches that become certain.

        Raises:
            EventError: for an invalid time, or a time of another kind (date or number) than before.

        Example:
            >>> run.advance("2026-01-05T13:00:00Z")
        """
        self.settle()
        clock = self.clock
        clock.check_running()
        time = timestamp_of(timestamp, clock.time_precision)
        if not clock.passes(time):
            return []
        return self._close_before(time.micros, self._wake(time.micros))

    @alone
    def finish(self, close: bool = True) -> list[Match]:
        """The end of all streams.

        Args:
            close: The end of input closes every window, and the run accepts no more events. Matches
                that this closes are `closed_by_end`. False: waiting matches and events keep
                waiting; `save` stores them, and a resumed run continues with them.

        Returns:
            The matches that become certain.

        Example:
            >>> last = run.finish()
        """
        if self.clock.finished:
            return []
        self.clock.check_running()
        if not close:
            return self._pass_waiting()
        found = self._wake(None)
        self._close_before(None, found)
        self.clock.finished = True
        self.kb.close()
        return found

    def _close_before(self, micros: int | None, found: list[Match]) -> list[Match]:
        """`found`, with the matches that are certain when all timestamps before `micros` close."""
        self._stop_feed()
        try:
            self.evaluation.close_before(micros, found)
        except BaseException as error:
            self._fail(error, found)
            raise
        return found

    def _fail(self, error: BaseException, found: Sequence[Match] = ()) -> None:
        """Mark the run as failed after an error within an event."""
        self.unreturned = list(found)
        self.failing = self.evaluation.blamed
        self.clock.failure = str(error) or type(error).__name__
        self.kb.close()

    # ------------------------------------------------------------------ changes of the queries

    @alone
    def add(self, name: str, program: CompiledQueries, *, new_streams: bool = False) -> None:
        """Add a query, which sees only later events; the others continue.

        Variables that are bound in the run are bound in the query as well. Matches of the last
        event must have been consumed. Cost: that of the query, for `replace` and `remove` too; the
        next event then takes a step for each query of the run.

        Args:
            name: Its name, for matches, `remove` and `replace`.
            program: A program of one query.
            new_streams: Whether the query may read streams that the run does not have.

        Raises:
            ChangeError: if the run lacks a stream of the query, has a query of that name, or has a
                reader that drops triples of the query (`Program.start`). No error changes the run.
            ArgumentError: if the name is empty.
            KbError: if the knowledge base lacks what the query needs.
            LimitExceeded: if the limits of the run do not allow the query.

        Example:
            >>> run.add("hot", spaseq.compile(query))
        """
        self.begin_change()
        self.change(changes.added(self.evaluation, name, program, new_streams))

    @alone
    def replace(
        self,
        name: str,
        program: CompiledQueries,
        state: changes.StatePolicy = "fresh",
        *,
        new_streams: bool = False,
    ) -> None:
        """Replace a query with another one in the same position.

        Args:
            name: The name of both.
            program: A program of one query.
            state: `fresh`: the new query begins without partial matches. `keep`: it continues the
                partial matches of the old query, which must have the same automaton, registers,
                window and selection of matches. Projections, constants in filters and graph
                patterns may differ; existing partial matches do not change. `drain`: the new query
                begins without partial matches, and the old one continues until its partial matches
                have ended; its matches keep the name of the query (see `remove`).
            new_streams: As for `add`.

        Raises:
            ChangeError: as for `add`; if there is no query of the name; and if the new query cannot
                continue the state of the old one. The message names the difference.
            KbError, LimitExceeded: as for `add`.

        Example:
            >>> run.replace("hot", spaseq.compile(query), "keep")
        """
        self.begin_change()
        self.change(changes.replaced(self.evaluation, name, program, state, new_streams))

    @alone
    def remove(self, name: str, *, drain: bool = False) -> None:
        """Remove a query with its partial matches; events of its streams are still accepted.

        Args:
            name: Its name.
            drain: Whether the query first continues its partial matches until they have ended, by a
                match or with their window. Meanwhile it starts no new ones, `draining` lists it,
                and its name is free. Without a time window it may remain forever; to end it, remove
                it again, by the name in `draining`. The last query of a run remains.

        Raises:
            ChangeError: if there is no such query, if it is the only one (without `drain`), or if
                another one reads the stream that it registers. With `drain`, also if it registers a
                stream or reads a registered one, or drains already.

        Example:
            >>> run.remove("hot")
        """
        self.begin_change()
        self.change(changes.removed(self.evaluation, name, drain))
        self.evaluation.forget_unused()

    @property
    def draining(self) -> Mapping[str, str]:
        """The queries that drain: the name of each in the run, and in its matches."""
        return self.evaluation.draining

    @alone
    def bind(self, **values: Bindable) -> None:
        """Change the values of variables; queries keep partial matches, or drain with old values.

        Args:
            values: Variable name → term or plain Python value, as for `Program.bind`. The variables
                must have been free in the texts of the queries.

        Raises:
            ValueError: if no query uses a name as a free variable.
            ChangeError: if a query cannot keep its state, as for `replace`.

        Example:
            >>> run.bind(threshold=30)
        """
        self.begin_change()
        before = self.evaluation.bound
        try:
            self.change(changes.rebound(self.evaluation, self._like, values))
        except BaseException:
            self.evaluation.bound = before
            raise

    def begin_change(self) -> None:
        """Prepare for `change`."""
        self.settle()
        self.clock.check_running()
        if self.clock.finished:
            raise ChangeError("the run is finished")
        self._stop_feed()

    def change(self, change: changes.Change) -> None:
        """Change the queries; for the package itself."""
        change.apply()
        self._iris = {}

    @alone
    def divide(self) -> None:
        """Evaluate each query separately from now on; see `share` of `Program.start`.

        Example:
            >>> run.divide()
        """
        self.begin_change()
        self.change(changes.apart(self.evaluation))

    @alone
    def close(self) -> None:
        """End the run without the end of input: release connections, accept no more events.

        The end of a `with` block does this. Matches that wait for their windows are not returned;
        `finish` returns them. Closing a run that has ended does nothing.

        Example:
            >>> run.close()
        """
        if self.clock.finished or self.clock.failure:
            return
        self._stop_feed()
        self.clock.failure = "it was closed"
        self.kb.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # ------------------------------------------------------------------ state and reports

    @alone
    def save(self) -> bytes:
        """The whole state as a versioned blob, from which `Program.resume` continues.

        Cost: linear in the state.

        Raises:
            RunFailed: if the run has failed.

        Example:
            >>> Path("run.state").write_bytes(run.save())
        """
        self.settle()
        self.evaluation.sync()
        return save(self.evaluation)

    @property
    @alone
    def stats(self) -> dict[str, Any]:
        """The counters of the run: events, triples, matches, groups, per stream and place.

        `spaseq.explain.why_not.statistics` describes the keys. Cost: linear in the state.
        """
        from spaseq.explain.why_not import statistics

        self.settle()
        self.evaluation.sync()
        return statistics(self.evaluation)

    @alone
    def explain(self) -> str:
        """The plan as text, with the observed cost and results of each graph pattern so far.

        Example:
            >>> print(run.explain())
        """
        from spaseq.explain.report import explain_run

        self.settle()
        self.evaluation.sync()
        return explain_run(self.evaluation, self.program)

    @alone
    def why_not(self, query: str | None = None, events: Iterable[Any] | Sample = ()) -> str:
        """How far each pattern got, and why places did not advance.

        Args:
            query: The name of a query; None for all.
            events: Some events with all their triples, each as (stream, timestamp, graph) or an
                `Event`. With them, the report says what patterns without a solution were missing:
                a predicate, a constant, a filter that errs, with values.

        Raises:
            EventError: for an item of `events` that is not an event.
            ValueError: if no query has the name.

        Example:
            >>> print(run.why_not())
        """
        from spaseq.explain.diagnosis import sampled
        from spaseq.explain.why_not import why_not

        self.settle()
        self.evaluation.sync()
        sample = sampled(events, self._stream_iri, self.clock)
        return why_not(self.evaluation, query, sample)
