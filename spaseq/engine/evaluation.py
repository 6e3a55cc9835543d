"""One evaluation of compiled queries. Events in, matches out; no I/O.

Time only goes forwards: an event closes all earlier timestamps, windows included. Queries
that read what another registers see a timestamp when it has closed, for only then is it
known which events the other one writes at it. A call that raises because an event cannot be
taken leaves the run as it was; one that raises in the midst of an event (a bound that is
reached, an error in Python) leaves it failed, and all further ones say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyoxigraph as ox

from spaseq.engine._alone import alone
from spaseq.engine.compaction import Condensing
from spaseq.engine.compiled import CompiledQueries
from spaseq.engine.entailment import Entailment
from spaseq.engine.instants import QueryRun
from spaseq.engine.limit_errors import check_limits
from spaseq.engine.native._matches import Matches
from spaseq.engine.native._push import Pushing
from spaseq.engine.pattern_rows import EventRows, check_graphs
from spaseq.engine.stream_clock import Admission, timestamp_of
from spaseq.errors import EventError, SpaseqError
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.encoded import EncodedEvent
from spaseq.rdf.event import Event, fact_of
from spaseq.rdf.limits import NO_LIMITS, Limits
from spaseq.rdf.time import mixed_domains
from spaseq.results import Match


class Evaluation(Admission):
    """The state of one evaluation, and what events do to it."""

    def __init__(
        self,
        program: CompiledQueries,
        kb: Mapping[str, Any] | Any = None,
        bound: Mapping[str, ox.NamedNode | ox.Literal] | None = None,
        entail: str | None = None,
        limits: Limits = NO_LIMITS,
    ):
        self.program = program
        self.bound = dict(bound or {})
        """The variables that were fixed to make this program; saved with the state."""
        self._entailment = Entailment(program, entail)
        self.kb = Knowledge(kb or {}, self._entailment.closures)
        """The background graphs, and what changes them (`load`, `replace`, `reload`)."""
        check_graphs(program, self.kb.graphs)
        self.entail = entail
        """The regime of entailment, if there is one; saved with the state."""
        self.entailed = self._entailment.graphs(self.kb, self.kb.current)
        self.rows = EventRows(program, self.kb, self.entailed, limits)
        check_limits(program, limits)
        self.queries = [
            QueryRun(
                query,
                self.entailed.get(query.plan.kb_graphs, self.kb),
                self.rows.matchers,
                limits,
            )
            for query in program.queries
        ]
        self._condensing = Condensing(self.queries, self.rows)
        self.rows.look_ahead(self.queries)
        super().__init__(program.streams)
        written = {q.plan.registers_stream for q in self.queries} - {None}
        self.direct = [not written & set(q.plan.streams) for q in self.queries]
        """Per query whether it is handed events at once: it reads no registered stream."""
        self.delayed: list[list[Event]] = [[] for _ in self.queries]
        """Per query that reads registered streams: events not yet handed to it."""
        self.derived_time: dict[str, int] = {}
        self.derived_ordinal: dict[str, int] = {}
        """Per registered stream: the time of its last event, and the next one's ordinal."""
        self.unreturned: list[Match] = []
        """The matches that a call had found before it failed."""
        self._ahead: tuple[Matches | Pushing, EventBatch, int] | None = None
        """What takes events of a batch, of which those before a number have been counted."""
        self.skipped = 0
        """Events taken as empty, since a remote KB failed that they needed."""
        self.kb.begin()

    @property
    def relevance(self) -> Relevance:
        """What the queries can use of an event: a reader that has it leaves out the rest.

        The batches it makes are encoded for this run, and for no other.
        """
        self._entailment.read_with(self.rows.matchers.used)
        return self.rows.matchers.relevance

    def push_batch(self, events: Iterable[Event] | EventBatch) -> Iterator[Match]:
        """Many events in the order of their timestamps, one at a time as matches are taken.

        `events` are given one by one, or as a reader's encoded batch. An event's own ordinal
        must be the one its stream is at. Of a batch, the matches of an event are asked for before
        the run goes on in another way; later that is a `RuntimeError`.
        """
        if isinstance(events, EventBatch):
            return self.alone.taking(self._push_encoded(events))
        return self.alone.taking(self._push_each(events))

    def _push_each(self, events: Iterable[Event]) -> Iterator[Match]:
        if isinstance(events, Sequence):
            self.rows.ask(events)
        for event in events:
            yield from self._each(event)

    def _each(self, event: Event) -> Iterator[Match]:
        """One event: its matches, also where it fails."""
        found: list[Match] = []
        self.settle()
        try:
            self._take(self._checked(event), found)
        finally:
            self.unreturned = []
            yield from found

    def _push_encoded(self, batch: EventBatch) -> Iterator[Match]:
        """The events of a batch, as many at a time as the query can take without Python."""
        query, index = self.queries[0], 0
        known = batch.dictionary is self.rows.matchers.dictionary
        ready = alone = known and self._is_alone(batch.stream)
        while index < len(batch):
            after = index
            self._overtake()
            if alone and self.kb.changes:
                self._exchange()
                ready = True
            if ready:
                # Others may have made terms permanent, and filled the tables, since the last match.
                batch.refit()
                ready = self.rows.prepare(batch, self._waiting)
            if ready and self._follows(batch, index):
                matches = query.stream(batch, index, self.events, self.kb)
                if matches is None:
                    after, found = self._run(query, batch, index)
                    yield from found
                else:
                    yield from self._one_by_one(matches, batch, index)
                    after = matches.after
            if after == index and index < len(batch):
                yield from self._each(EncodedEvent(batch, index))
                after += 1
            index = after

    def _is_alone(self, stream: str) -> bool:
        """Whether the events of a stream are for one query on the core, and for that at once."""
        (query, *others), (direct, *_) = self.queries, self.direct
        return not others and direct and query.reads_only(stream)

    def _run(self, query: QueryRun, batch: EventBatch, index: int) -> tuple[int, Iterable[Match]]:
        try:
            after, found = query.run(batch, index, self.events)
        except BaseException as error:
            self._count(batch, index, query.reached(index))
            self._fail(error)
            raise
        self._count(batch, index, after)
        return after, found

    def _one_by_one(self, matches: Matches, batch: EventBatch, first: int) -> Iterator[Match]:
        """Matches whose events are taken, and counted, as far as somebody asks for them."""
        self._ahead = matches, batch, first
        try:
            yield from matches
        except BaseException as error:
            if isinstance(error, RuntimeError):
                self.check_going()  # what went on in between may have failed
            if not matches.failed:
                raise
            told = self.queries[0].told(error)
            self._fail(told)
            raise told from None
        finally:
            if self._ahead is not None and self._ahead[0] is matches:
                self._overtake()

    def settle(self) -> None:
        """Count the events that have been taken, by matches that are asked for or one by one."""
        if self._ahead is not None:
            matches, batch, first = self._ahead
            self._ahead = matches, batch, matches.after
            if matches.after > first:
                self.queries[0].taken(batch, matches.after)
                self._count(batch, first, matches.after)
        elif not self.failure:
            self._condensing.look(self.events)

    def _overtake(self) -> None:
        """Go on: matches that are being taken of a batch have come as far as they can."""
        self.settle()
        if self._ahead is not None:
            self._ahead[0].overtake()
            self._ahead = None

    @alone
    def advance(self, timestamp: Any) -> list[Match]:
        """A watermark: nothing before `timestamp` comes any more, on any stream."""
        self.settle()
        self.check_going()
        time = timestamp_of(timestamp, self.time_precision)
        if self.domain is not None and time.domain != self.domain:
            raise EventError(mixed_domains(self.domain, time.domain, "the watermark"))
        if self.closed is not None and time.micros <= self.closed:
            return []
        self.domain = time.domain
        return self._closed_before(time.micros)

    @alone
    def finish(self) -> list[Match]:
        """The end of all streams: every window closes. The run takes no more events."""
        if self.finished:
            return []
        self.check_going()
        found = self._closed_before(None)
        self.finished = True
        self.kb.close()
        return found

    @property
    def _waiting(self) -> bool:
        """Whether events have been taken that are not matched yet."""
        return any(query.behind for query in self.queries)

    def _exchange(self) -> None:
        """Take up the next version of the KB, between two events and all at once.

        Raises:
            KbError, LimitExceeded: if the queries cannot run on it; they go on with the one
                before.
        """
        if self._waiting or any(self.delayed):
            return
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
            # Terms that a failure has made permanent stay so.
            if self.rows.matchers is not matchers or matchers.dictionary.version > terms:
                for query in self.queries:
                    query.renew(self.rows.matchers)

    def _possible(self, event: Event) -> Event:
        """The event; an empty one where a remote KB fails that may be done without.

        Raises:
            KbError: where it may not.
        """
        if self.kb.changes:
            self._exchange()
        refused = self.rows.refusal(event, self._waiting)
        if refused is None:
            return event
        error, skips = refused
        if not skips:
            raise error
        self.skipped += 1
        return event.bare()

    def _take(self, event: Event, found: list[Match]) -> None:
        """One event that was found to fit; adds the matches that are certain by then.

        Raises:
            KbError: where the KB cannot be asked for what it needs; the run is as it was.
            SpaseqError: of anything else; the run has failed.
        """
        self._overtake()
        event = self._possible(event)
        try:
            self._accept(event, found)
        except BaseException as error:
            self._fail(error, found)
            raise

    def _closed_before(self, micros: int | None) -> list[Match]:
        """The matches that are certain when all timestamps before `micros` are over."""
        found: list[Match] = []
        self._overtake()
        try:
            self._close_before(micros, found)
        except BaseException as error:
            self._fail(error, found)
            raise
        return found

    def _fail(self, error: BaseException, found: Sequence[Match] = ()) -> None:
        """An error in the midst of an event: what the run holds is of no use any more."""
        self.unreturned = list(found)
        self.failure = str(error) or type(error).__name__
        self.kb.close()

    def _accept(self, event: Event, found: list[Match]) -> None:
        micros = event.time.micros
        if self.closed is None or micros > self.closed:
            self._close_before(micros, found)
        if self.time is None or micros != self.time.micros:
            self.ordinals = {}
        self.time, self.domain = event.time, event.time.domain
        self.ordinals[event.stream] = event.ordinal + 1
        self.events += 1
        if self.rows.matchers.counted:
            # What is queued counts when it is fed; the queries read the same streams.
            self.rows.matchers.advance(self.events - self.queries[0].behind)
        self.triples += event.size
        self.per_stream[event.stream] += 1
        for number, query in enumerate(self.queries):
            if not query.reads(event.stream):
                continue
            if self.direct[number]:
                # What a registered stream's writer finds now, its readers see at the close.
                self._push(query, event, found)
            else:
                self.delayed[number].append(event)

    def _close_before(self, micros: int | None, found: list[Match]) -> None:
        """Close all timestamps before `micros`, in the order the queries feed each other."""
        for number, query in enumerate(self.queries):
            if not self.direct[number]:
                self._hand_over(number, query, micros, found)
            self._advance(query, micros, found)
        if micros is not None:
            self.closed = micros
            if not self.rows.matchers.counted:
                self.rows.matchers.advance(micros)

    def _push(self, query: QueryRun, event: Event, found: list[Match]) -> None:
        some: list[Match] = []
        try:
            query.push(event, self.rows, some)
        finally:
            found += self._publish(query, some)

    def _advance(self, query: QueryRun, micros: int | None, found: list[Match]) -> None:
        some: list[Match] = []
        try:
            query.advance(micros, self.rows, some)
        finally:
            found += self._publish(query, some)

    def _hand_over(
        self, number: int, query: QueryRun, micros: int | None, found: list[Match]
    ) -> None:
        waiting = self.delayed[number]
        ready = [e for e in waiting if micros is None or e.time.micros < micros]
        self.delayed[number] = [
            e for e in waiting if micros is not None and e.time.micros >= micros
        ]
        ready.sort(key=lambda event: event.instant)
        for event in ready:
            self._advance(query, event.time.micros, found)
            self._push(query, event, found)

    def _publish(self, query: QueryRun, matches: list[Match]) -> list[Match]:
        """Matches of a registered stream become events of its readers."""
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
