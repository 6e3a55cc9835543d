"""`QueryRun`: one query over its streams, from events through the automaton to matches.

The events of one timestamp may arrive in any order of streams. A query processes the first event of
a stream at a timestamp at once, and an event with a greater ordinal k when every stream has passed
its instant: when each has delivered its ordinal k or promises a later time (`pass_streams`), or
when the timestamp closes. Results therefore do not depend on the interleaving of streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.compiled import CompiledQuery
from spaseq.engine.continuing import same_solutions
from spaseq.engine.core_groups import CoreGroups
from spaseq.engine.formatting import Make
from spaseq.engine.limit_errors import exceeded, naming_limits
from spaseq.engine.native._groups import GroupedMatches
from spaseq.engine.native._matches import ConstructMaker, Matches, MatchMaker
from spaseq.engine.native.check import check
from spaseq.engine.native.query_run import NativeRun, native_run
from spaseq.engine.native.snapshot import (
    add_counts,
    counts_of,
    restore_automaton,
    save_automaton,
)
from spaseq.engine.native_constructs import construct_maker
from spaseq.engine.output import OutputStage
from spaseq.engine.pattern_rows import EventRows
from spaseq.engine.place_names import Notation
from spaseq.engine.query_state import QueryState, memory_use
from spaseq.engine.residual_filters import linked
from spaseq.engine.result_groups import NEVER
from spaseq.engine.saved_groups import restore_groups, save_groups
from spaseq.engine.stream_clock import StreamClock
from spaseq.errors import ChangeError, LimitExceeded, StateError
from spaseq.gpm.matchers import Matchers
from spaseq.gpm.named_graphs import CurrentGraphs
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.counters import AutomatonCounters, MemoryUse, PlaceCounters
from spaseq.nfa.match_path import Path
from spaseq.nfa.native.lazy_join_tables import weighed
from spaseq.nfa.registers import RegisterFile
from spaseq.nfa.replay import LinkedOccurrence
from spaseq.nfa.state import AutomatonState
from spaseq.rdf.checked import GREATEST, LEAST, PASSED
from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import DATE_TIME, Event, Timestamp
from spaseq.rdf.limits import NO_LIMIT, NO_LIMITS, LimitReached, Limits
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.time import from_micros
from spaseq.results import Match

if TYPE_CHECKING:
    from spaseq.engine.part_states import Part


class QueryRun:
    """The state of one query. `files` numbers the files; the queries of a run share it."""

    on_core = True
    """Whether the compiled core evaluates the query."""

    def __init__(
        self,
        compiled: CompiledQuery,
        kb: CurrentGraphs,
        matchers: Matchers,
        limits: Limits = NO_LIMITS,
        files: dict[str, int] | None = None,
    ):
        plan = compiled.plan
        self.limits = limits
        self.plan = plan
        self._files = files
        self.compiled = compiled
        self._kb = kb
        self._registers = RegisterFile(plan, RunningAggregates())
        self._occurrences = linked(plan, self._registers, kb, matchers.calls, LinkedOccurrence)
        self.native = self._on_the_core(matchers)
        """The automaton on the compiled core."""
        self.output = OutputStage(compiled, self._registers, self._occurrences, kb, matchers.calls)
        self.constructs = self._new_constructs()
        """Makes the matches of a query that registers a stream; None if Python does."""
        self._arrange()
        self._waits = self.output.waits
        self.ended: dict[str, int] = {}
        """The time of the last event of each input stream that has ended before others."""
        self.grouping = self._new_grouping()
        """Reads the results of a query with GROUP into groups; None without GROUP."""
        self._read_results()
        self.time: Timestamp | None = None
        """The open timestamp; None before the first event and after the timestamp has closed."""
        self.delivered: dict[str, int] = dict.fromkeys(plan.streams, 0)
        """Per stream: the least ordinal of its next event at the open timestamp."""
        self.ordinal = 0
        """The ordinal of the open instant."""
        self.opened = False
        self.queued: dict[int, list[Event]] = {}
        """By ordinal: events of the open timestamp whose instant is not open yet."""
        self.behind = 0
        """The number of queued events."""
        self.domain = ""
        """The kind of timestamps; empty before the first event."""
        self.emitted = 0
        """The number of matches so far, without those that `native.matches` or `grouping` made."""
        self.ending = False
        """Whether the end of all input closes windows."""
        self._marked_count = 0
        self._empty_at: int | None = None
        """The time at which a draining query was found without a group."""
        self.members = 1
        """The number of queries that the run evaluates as this one (`list_for`)."""
        self.shed_before = 0
        """The number of groups that a limit dropped before the run was resumed."""
        self._make: Make | None = None
        self._copied: Sequence[str] = ()
        self.copiers: Sequence[MatchMaker | None] = ()
        """The makers of queries that equal this one, if `write_with` has set its maker."""

    def reads(self, stream: str) -> bool:
        """Whether the query reads a stream."""
        return stream in self.plan.streams

    @property
    def matched(self) -> int:
        """The number of matches so far."""
        maker = self.native.matches
        made = 0 if maker is None else maker.made
        return self.emitted + made + (0 if self.grouping is None else self.grouping.made)

    @property
    def closed_by_end(self) -> int:
        """The number of matches whose windows the end of input closed."""
        maker = self.native.matches
        by_groups = 0 if self.grouping is None else self.grouping.closed_by_end
        return self._marked_count + by_groups + (0 if maker is None else maker.closed_by_end)

    def end_stream(self, stream: str, last: int) -> None:
        """An input stream has ended before others, with an event at the time `last`."""
        self.ended[stream] = last
        self._tell_ended()

    def go_on(self, stream: str) -> None:
        """An input stream that has ended has another event."""
        if self.ended.pop(stream, None) is not None:
            self._tell_ended()

    def _tell_ended(self) -> None:
        last = min(self.ended.values(), default=GREATEST)
        if self.native.matches is not None:
            self.native.matches.ended_at = last
        if self.grouping is not None:
            self.grouping.end_inputs(last)

    def write_with(self, make: Make, copied: Sequence[str]) -> bool:
        """Have makers write the matches from now on; False if the query has none.

        Args:
            make: Makes the maker of a query.
            copied: The names of the queries that equal this one and share its state.
        """
        self._make, self._copied = make, copied
        return self._set_makers()

    def _set_makers(self) -> bool:
        make = self._make
        made = [None if make is None else make(self.native, name) for name in self._names]
        if made[0] is None:
            return False
        if self.native.matches is not None:
            self.emitted += self.native.matches.made
            self._marked_count += self.native.matches.closed_by_end
        self.native.matches, *self.copiers = made
        self._tell_ended()
        return True

    @property
    def _names(self) -> Sequence[str]:
        return self.plan.shown, *self._copied

    # ------------------------------------------------------------------ state

    def _on_the_core(self, matchers: Matchers) -> NativeRun:
        return native_run(
            self.compiled, self._registers, self._occurrences, matchers, self.limits, self._files
        )

    def _new_constructs(self) -> ConstructMaker | None:
        errors = self.output.errors.template
        return construct_maker(self.native, self.compiled, self._registers, errors)

    def _new_grouping(self) -> CoreGroups | None:
        if self.output.groups is None:
            return None
        return CoreGroups(self.compiled, self.output, self._kb)

    def _read_results(self) -> None:
        if self.grouping is not None:
            self.grouping.read_from(self.native)
            self._tell_ended()

    def _arrange(self) -> None:
        if self.native.gathering is not None:
            self.native.gathering.arrange_with(self.output)

    def list_for(self, members: int) -> None:
        """Let an event have as many matches as that many queries may have."""
        self.members = members
        self.native.core.limit_matches(min(NO_LIMIT, members * self.limits.most_matches))

    def state(self) -> AutomatonState:
        """The state of the automaton as plain data; the automaton does not change."""
        self.native.step.check_exclusive()
        return save_automaton(self.native, over=self.time is None)

    def counters(self) -> AutomatonCounters:
        """The counters of the automaton."""
        self.native.step.check_exclusive()
        counts, places = counts_of(self.native), self.compiled.automaton.places
        names = self._registers.cell_names()
        groups = Counter(place for place, _ in self.groups())
        return AutomatonCounters(
            places=[
                PlaceCounters(number, place, groups[number], **counted)
                for number, (place, counted) in enumerate(zip(places, counts.places, strict=True))
            ],
            waiting=len(self.native.parts.awaiting()),
            waited=self.native.core.transitions.waited,
            forbidden=self.native.parts.ended(),
            disagreed=counts.disagreed,
            untrue=counts.untrue,
            errors=[[each.named(names) for each in some] for some in counts.errors],
        )

    def result_errors(self) -> list[ErrorCount]:
        """The errors of the parts of the result (`result_errors.result_parts`)."""
        return list(self.output.errors.counts(self._native_errors()))

    def has_erred(self) -> bool:
        """Whether an expression over partial matches, or of the result, has erred."""
        return any(self.result_errors()) or any(map(any, counts_of(self.native).errors))

    def _native_errors(self) -> list[ErrorCount | None]:
        """Those that the core counts, of the keys and arguments of groups."""
        return [] if self.grouping is None else self.grouping.errors()

    def held(self) -> MemoryUse:
        """The size of the automaton's state and of the results remembered for de-duplication."""
        return memory_use(self.state(), self.output)

    def groups(self) -> Iterator[tuple[int, Sequence[int]]]:
        """(place, registers) of the live groups."""
        for place, values, *_ in self.native.parts.groups(self.time is None):
            yield place, values

    def next_closing(self) -> int | None:
        """The next closing time or deadline that a match, or a group of results, waits for."""
        parts = self.native.parts
        starts = parts.awaiting() if self.compiled.automaton.waits else ()
        times = [self.native.clock.closing(parts.time_of(start)) for start in starts]
        deadline = self.native.core.next_deadline(ending=True)
        if deadline is not None:
            times.append(deadline)
        if self.output.groups is not None and self.output.groups.due != NEVER:
            times.append(self.output.groups.due)
        return min(times, default=None)

    def arrived(
        self, place: int, registers: Sequence[int], since: int, most: int
    ) -> tuple[int, list[tuple[object, ...]]]:
        """The number of groups that a place ever had, and registers of its newest live groups.

        Skips the first `since` groups and reads at most `most`, newest first.
        """
        live = [self.compiled.automaton.places[place].live.index(r) for r in registers]
        made, numbers = self.native.parts.created_since(place, since, most)
        term = self.native.parts.term
        return made, [tuple([term(values[c]) for c in live]) for values in numbers]

    @property
    def shed(self) -> int:
        """The number of groups and waiting matches that a limit dropped."""
        return self.shed_before + self.native.core.shed()

    def kept(self) -> QueryState:
        """The state but for the automaton and the output."""
        return QueryState.of(self)

    def resume(self, kept: QueryState, state: AutomatonState) -> None:
        """Continue from the state of a query and its automaton; the output has been restored."""
        self.time, self.domain = kept.time, kept.domain
        self.ordinal, self.opened = kept.ordinal, kept.opened
        self.delivered = dict(kept.delivered)
        self.queued = {ordinal: list(some) for ordinal, some in kept.queued.items()}
        self.behind = sum(map(len, self.queued.values()))
        self.ended = dict(kept.ended)
        self.emitted, self._marked_count = kept.matched, kept.marked
        self.shed_before = kept.shed
        restore_automaton(self.native, state)
        self._read_results()
        self._tell_ended()

    def renew(self, matchers: Matchers) -> None:
        """Rebuild the core after terms have become permanent and so changed their numbers."""
        before, state, kept = self.native, self.state(), self.kept()
        self.output.errors.keep(self._native_errors())
        self.grouping = self._new_grouping()
        self.native = self._on_the_core(matchers)
        self.list_for(self.members)
        self.constructs = self._new_constructs()
        self._arrange()
        self._set_makers()
        self.resume(kept, state)
        add_counts(self.native, counts_of(before))

    def begin_at(self, clock: StreamClock, delayed: bool = False) -> None:
        """Begin between two events of a run; the query sees only later events.

        Ordinals of the open timestamp count its earlier events.

        Args:
            clock: The clock of the run.
            delayed: Whether the events of the open timestamp wait until it closes, because the
                query reads a registered stream. Then no timestamp is open for the query.
        """
        is_open = not delayed and clock.time is not None and clock.closed == clock.time.micros
        known = clock.ordinals if is_open else {}
        self.time = None if known.keys().isdisjoint(self.plan.streams) else clock.time
        self.domain = clock.domain or ""
        self.delivered = {iri: known.get(iri, 0) for iri in self.plan.streams}
        self.ordinal = min(self.delivered.values())

    def take_over(self, before: QueryRun | Part, clock: StreamClock) -> None:
        """Continue from the state of another query, whose automaton is the same.

        A `Part` has no counters of its own: those of places and filters begin anew.

        Raises:
            ChangeError: if the state is not one of this query.
        """
        state, matched = before.state(), before.matched
        is_part = not isinstance(before, QueryRun)
        before = before if isinstance(before, QueryRun) else before.whole
        kept = replace(before.kept(), matched=matched)
        self.output.take_over(before.output, same_solutions(before.plan, self.plan))
        try:
            writer = Writer()
            groups = save_groups(before.output.groups, writer)
            reader = Reader(writer.tables())
            restore_groups(self.plan, self.output.groups, groups, clock, reader)
            check(self.native, state, dated=kept.domain == DATE_TIME, opened=kept.opened)
        except StateError as error:
            raise ChangeError(
                f"the state of the query {self.plan.name} does not fit the new one: {error}"
            ) from error
        self.resume(kept, state)
        if not is_part:
            add_counts(self.native, counts_of(before.native))
            self.output.errors.count_on(before.output.errors, before._native_errors())

    def count_on(self, other: QueryRun) -> None:
        """Add the counters and the matches of another run of the query."""
        self.emitted += other.matched
        add_counts(self.native, counts_of(other.native))
        self.output.errors.count_on(other.output.errors, other._native_errors())

    # ------------------------------------------------------------------ draining

    @property
    def drains(self) -> bool:
        """Whether the query begins no further partial matches."""
        return self.native.last_start is not None

    def drain(self, clock: StreamClock) -> None:
        """Begin no further partial matches; the existing ones continue.

        An event of another stream that comes later at the instant of the last event counts as an
        earlier event.
        """
        # Each queued ordinal becomes an instant.
        instant = self.native.core.window.now + len(self.queued)
        self.native.start_until(instant, LEAST if clock.closed is None else clock.closed)

    def has_drained(self, closed: int) -> bool:
        """Whether a draining query can have no further matches.

        All timestamps before `closed` are closed. Without a window of time, a query has drained
        when its last group has gone; if partial matches are rows, it never has.
        """
        assert self.native.last_start is not None
        _, micros = self.native.last_start
        is_of_time = self.plan.window.is_of_time
        if is_of_time and self.native.clock.closing(micros) < closed:
            return self.next_closing() is None
        if self._keeps_rows or self.queued or next(self.groups(), None) is not None:
            return False
        # Matches of open instants are still to come.
        self._empty_at = closed if self._empty_at is None else self._empty_at
        return self._empty_at < closed and self.next_closing() is None

    def is_idle(self, closed: int | None) -> bool:
        """Whether the query has nothing but what has left its window, so that it could begin anew.

        All timestamps before `closed` are closed. Cost: linear in the state.
        """
        if self.drains or self.opened or self.queued or self.next_closing() is not None:
            return False
        state, parts = self.state(), self.native.parts
        if state.pending or state.begun or state.complete or state.kept or state.partitions:
            return False
        if not self.plan.window.is_of_time or closed is None:
            return not state.groups
        latest = [parts.union(members)[0] for _, _, members, *_ in parts.groups(self.time is None)]
        closing = self.native.clock.closing
        return all(closing(parts.time_of(start)) < closed for start in latest)

    @property
    def _keeps_rows(self) -> bool:
        """Whether partial matches can be rows that are joined later, and not groups."""
        automaton = self.compiled.automaton
        starts = (automaton.places[number] for number in automaton.starts)
        first = (automaton.atoms[edge.atom] for place in starts for edge in place.edges)
        return any(atom.conjoined for atom in first) or weighed(self.plan, automaton)

    def exceeded(self, reached: LimitReached, member: CompiledQuery | None = None) -> LimitExceeded:
        """The error that names the place that reached a limit, and the cause.

        `member`: the query that has too many matches, among those that are evaluated as one.
        """
        parts, core, time = self.native.parts, self.native.core, self.time
        held = self.groups(), parts.awaited_count()
        if core.window.now >= 0 and self.domain:
            time = from_micros(core.window.micros, self.domain)
        return exceeded(reached, self.limits, Notation(member or self.compiled), held, time)

    # ------------------------------------------------------------------ events

    @naming_limits
    def push(self, event: Event, rows: EventRows, found: list[Match]) -> None:
        """Process an event at the open timestamp, or the first event after `advance`.

        Adds the matches that are certain to `found`.

        Raises:
            LimitExceeded: if a limit is reached; so do `advance` and `run`.
        """
        self.time = event.time
        self.delivered[event.stream] = event.ordinal + 1
        if event.ordinal == 0:
            self._feed(event, rows, found)
        else:
            self.queued.setdefault(event.ordinal, []).append(event)
            self.behind += 1
        self._pass_instants(rows, found)

    @naming_limits
    def pass_streams(
        self, streams: Iterable[str], time: Timestamp, rows: EventRows, found: list[Match]
    ) -> None:
        """Some streams deliver no more events at the open timestamp of the run."""
        self.time = time
        for stream in streams:
            self.delivered[stream] = PASSED
        self._pass_instants(rows, found)

    def _pass_instants(self, rows: EventRows, found: list[Match]) -> None:
        """Process the queued events whose instants all streams have passed."""
        certain = min(self.delivered.values())
        while self.ordinal < certain:
            self._feed_queued(rows, found)
            self._close_instant(found)
            self.ordinal = self._next_ordinal(certain)

    @naming_limits
    def advance(self, before: int | None, rows: EventRows, found: list[Match]) -> None:
        """Close all timestamps before `before`; None closes all."""
        if self.time is not None and (before is None or self.time.micros < before):
            domain = self.time.domain
            self._close_timestamp(rows, found)
        else:
            domain = self.domain
        self.close_windows(before, domain, found)

    def close_windows(self, before: int | None, domain: str, found: list[Match]) -> None:
        """Add the waiting matches whose windows close before a time, or all, to `found`."""
        if self.native.matches is not None:
            found += self.native.matches.take_due(before, self._kb.version, self.ending)
            return
        if self.grouping is not None:
            taken = self.grouping.taken_before(before, self.ending)
            if taken is not None:
                found += taken
                return
        for closing, early, paths in self.native.due(before):
            if not paths:
                continue
            self._close_groups(closing - 1 if early else closing, domain, found)
            some: list[Match] = []
            self._emit(paths, from_micros(closing, domain), some, early)
            found += self._marked(some, closing if early else closing + 1)
        groups = self.output.groups
        if groups is not None:
            self._close_groups(NEVER if before is None else before, domain, found)
            if before is not None:
                groups.expire(before)

    def group_in_python(self) -> None:
        """Let Python read the results and keep the groups."""
        assert self.grouping is not None
        self.grouping.leave_core()

    def _close_groups(self, now: int, domain: str, found: list[Match]) -> None:
        """Add the matches of tumbling groups whose window ends at a time or before it."""
        matches = self._closed_groups(now, domain)
        self.emitted += len(matches)
        found += matches

    def _closed_groups(self, now: int, domain: str) -> list[Match]:
        grouping = self.grouping
        if grouping is None or grouping.due == NEVER or grouping.due > now:
            return []
        due = grouping.due
        return self._marked(grouping.close(domain), due)

    def _marked(self, matches: list[Match], passed: int) -> list[Match]:
        """The matches, marked if the end of input closed them, and not an event from `passed`
        on."""
        if not self.ending and all(last >= passed for last in self.ended.values()):
            return matches
        self._marked_count += len(matches)
        return [match.__replace__(closed_by_end=True) for match in matches]

    @naming_limits
    def run(self, batch: EventBatch, first: int, position: int) -> tuple[int, Iterable[Match]]:
        """Process encoded events of the query's only stream, up to an event that completes a match.

        Also stops before an event whose time or ordinal does not follow from its predecessor's.

        Args:
            batch: The events.
            first: The index of the first event.
            position: The number of events of the run before it.

        Returns:
            The index of the next event, and the matches; the caller consumes them first.
        """
        self.domain = self.domain or batch.time(first).domain
        numbers = self.native.numbers_of(batch.stream, batch.file)
        after = self.native.step.run(batch, first, *numbers, position)
        if after > first:
            time = self.advance_to(batch, after)
            return after, self.completed(time)
        return after, ()

    def stream(
        self, batch: EventBatch, first: int, position: int, kb: Knowledge
    ) -> Matches | GroupedMatches | None:
        """As `run`, as an iterator over the matches of all events; None if there is no maker.

        The caller calls `advance_to` with the progress of the iterator before any other method.
        """
        maker = self.native.matches
        if maker is None and self.grouping is None:
            return None
        domain = self.domain = self.domain or batch.time(first).domain
        numbers = self.native.numbers_of(batch.stream, batch.file)
        if maker is not None:
            return maker.run(batch, first, *numbers, position, self.plan.skip_past_last, kb)
        assert self.grouping is not None
        closed = partial(self._closed_groups, domain=domain)
        return self.grouping.stream(batch, first, numbers, position, kb, closed)

    def left_over(self, matches: Matches | GroupedMatches) -> Iterable[Match]:
        """The matches of the event at which an iterator has ended, if Python must group them."""
        if not isinstance(matches, GroupedMatches):
            return ()
        if not self.native.core.complete or self.time is None:
            return ()
        return self.completed(self.time)

    def reported(self, error: BaseException) -> BaseException:
        """The error to raise for an error of the core: a limit becomes `LimitExceeded`."""
        return self.exceeded(error) if isinstance(error, LimitReached) else error

    def advance_to(self, batch: EventBatch, after: int) -> Timestamp:
        """Advance over the events of a batch before `after`; returns the current time."""
        self.time = batch.time(after - 1)
        self.domain = self.time.domain
        self.ordinal = self.delivered[batch.stream] = batch.ordinal(after - 1) + 1
        return self.time

    def reached(self, first: int) -> int:
        """The index of the event at which `run` failed."""
        return max(first, self.native.step.reached)

    def _feed(self, event: Event, rows: EventRows, found: list[Match]) -> None:
        if not self.opened:
            self.native.open_instant(event.time.micros)
            self.opened = True
            self.domain = event.time.domain
        rows.ready(event)
        self.native.feed(event)
        if not self._waits:
            self._collect(event.time, found)

    def _collect(self, end: Timestamp, found: list[Match]) -> None:
        """Add the complete matches to `found`."""
        found += self.completed(end)

    def completed(self, end: Timestamp) -> Iterable[Match]:
        """The complete matches, which end at `end`; the caller consumes them first."""
        if self.native.matches is not None:
            if self.native.core.complete:
                return self.native.matches.take(self.plan.skip_past_last, self._kb.version)
            return ()
        if self.constructs is not None:
            return self._constructed()
        if self.grouping is not None:
            taken = self.grouping.taken(end)
            if taken is not None:
                return taken
        found: list[Match] = []
        self._emit(list(self.native.take(one=self.output.any_will_do)), end, found)
        return found

    def _constructed(self) -> list[Match]:
        """The complete matches of a query that registers a stream."""
        assert self.constructs is not None
        if not self.native.core.complete:
            return []
        skips, output = self.plan.skip_past_last, self.output
        found = self.constructs.take_all(skips, self._kb.version, output.constructed)
        output.constructed += len(found)
        self.emitted += len(found)
        return found

    def _feed_queued(self, rows: EventRows, found: list[Match]) -> None:
        for event in self.queued.pop(self.ordinal, ()):
            self.behind -= 1
            self._feed(event, rows, found)

    def _close_instant(self, found: list[Match]) -> None:
        if self.opened:
            self.native.close_instant()
            assert self.time is not None
            self._collect(self.time, found)
        self.opened = False
        self.ordinal += 1

    def _next_ordinal(self, most: int) -> int:
        """The least ordinal of a queued event, or `most` if it is less."""
        for ordinal in range(self.ordinal, min(most, self.ordinal + len(self.queued))):
            if ordinal in self.queued:
                return ordinal
        return min([most, *self.queued])

    def _close_timestamp(self, rows: EventRows, found: list[Match]) -> None:
        if self.opened:
            self._close_instant(found)
        for ordinal in sorted(self.queued):
            self.ordinal = ordinal
            self._feed_queued(rows, found)
            self._close_instant(found)
        self.time = None
        self.ordinal = 0
        self.delivered = dict.fromkeys(self.delivered, 0)

    def _emit(
        self, paths: list[Path], end: Timestamp, found: list[Match], early: bool = False
    ) -> None:
        ended = self.native.ended
        if ended is not None:
            ended.settle(self.native.core.window.bound)
            paths = ended.left(paths)
        if not paths:
            return
        matches, left = self.output.batch(paths, end, self.native, early)
        if self.grouping is not None:
            self.grouping.set_deadline()
        if ended is not None:
            for path in left:
                ended.later(path.key, path.start, ended.until(path))
        if self.plan.skip_past_last:
            for path in left:
                self.native.skip(path)
        self.emitted += len(matches)
        found += matches
