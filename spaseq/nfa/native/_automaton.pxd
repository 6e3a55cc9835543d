"""The automaton over term numbers; see _automaton.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.nfa.native._conjunction cimport Conjunction
from spaseq.nfa.native._deadlines cimport Deadlines, TimedPlace, Timer
from spaseq.nfa.native._event cimport CurrentEvent, set_event, set_row
from spaseq.nfa.native._groups cimport Group, Groups, InstantMembers
from spaseq.nfa.native._instant cimport OpenInstant, Touched
from spaseq.nfa.native._joins cimport StepJoin
from spaseq.nfa.native._lazy_join cimport LazyJoin
from spaseq.nfa.native._negation cimport Negation
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._program cimport Edge, EagerGuard, EdgeRef, Occurrence, Tables
from spaseq.nfa.native._tecs cimport Label, Node, Tecs, instant_t
from spaseq.nfa.native._transitions cimport Transitions
from spaseq.nfa.native._window cimport Window, since_of, tick
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

# The recipients of the rows of an event: `count` GPMs, with the ways by which their rows reach
# starts and places with waiting groups.
cdef struct Audience:
    uint32_t* gpms
    uint32_t count
    uint32_t way_count
    EdgeRef** ways


@cython.final
cdef class AutomatonCore:
    # The parts; each refers only to those above it.
    cdef readonly Tables tables
    cdef readonly Window window
    cdef readonly CurrentEvent event
    cdef readonly Tecs tecs
    cdef readonly Partitions partitions # None without PARTITION BY
    cdef readonly Conjunction conjunction
    cdef readonly Negation negation
    cdef readonly OpenInstant instant
    cdef Deadlines deadlines
    cdef readonly StepJoin joins
    cdef readonly Transitions transitions
    cdef readonly LazyJoin lazy_join
    cdef bint has_strict_places # some place waits for the next instant only
    cdef bint adjacent          # some operator is strict
    cdef bint has_floors        # some place has groups with floors
    cdef uint8_t* has_side_effects # per GPM: whether its rows affect more than the waiting groups
    cdef bint only_joins        # no GPM has side effects
    # Limits, see spaseq.rdf.limits; and the counts before the current event.
    cdef uint64_t most_groups, kept_groups, sweep_at
    cdef bint sheds
    cdef uint32_t pending_before, values_before, touched_before, accepted_before
    cdef public uint64_t forbidden  # waiting matches that guards removed before their window closed

    cdef inline bint waits(self, uint32_t gpm) noexcept nogil:
        """Whether a group waits for rows of a GPM.

        The answer holds until `changed_places` names one of its places; under the lazy join, until
        the next event.
        """
        return self.lazy_join.may_follow(gpm) if self.lazy_join.lazy else self._is_awaited(gpm)
    cdef bint _is_searched(self, uint32_t gpm) noexcept nogil
    cdef instant_t since_at(self, const Node* node) noexcept nogil
    cdef bint _is_awaited(self, uint32_t gpm) noexcept nogil
    cdef uint64_t places_of(self, uint32_t gpm) noexcept nogil
    cdef int count_early_events(self, uint32_t gpm, uint64_t events) noexcept nogil
    cdef bint needs_every_instant(self) noexcept nogil
    cdef inline int count_event(self) noexcept nogil:
        """Count one more event at the open instant, if the window counts events."""
        if self.window.counted:
            self.window.count_event()
            self.keep_terms()
        return 0
    cdef inline int keep_terms(self) noexcept nogil:
        """Keep terms as long as an absence before a match looks back, whatever the event count.

        The next event advances them before it is counted.
        """
        cdef int64_t needed = self.window.reached + 1
        if self.window.counted and needed > self.event.terms.horizon:
            self.event.terms.horizon = 2 * needed
        return 0
    cdef inline int begin_event(
        self, EventBatch batch, uint32_t event, uint32_t stream, uint32_t file
    ) except -1 nogil:
        """Make an event current, and record the counts that `undo_event` restores."""
        self.pending_before = self.instant.pending_count
        self.values_before = self.instant.value_count
        self.touched_before = self.instant.touched_count
        self.accepted_before = self.instant.accepted_count
        if self.instant.accepted_count == 0:
            self.event.transient.clear()
        return set_event(self.event, batch, event, stream, file)
    cdef inline int feed_row(
        self, const Audience* audience, const term_t* row, uint32_t width
    ) except -1 nogil:
        """Process one row of the current event for its recipients."""
        set_row(self.event, row, width)
        if not self.only_joins:
            return self._feed_each(audience, row, width)
        self.event.since, self.transitions.measured = since_of(self.window), -1
        return self.transitions.join_all(audience.ways, audience.way_count, width, NULL)
    cdef int _feed_each(
        self, const Audience* audience, const term_t* row, uint32_t width
    ) except -1 nogil
    cdef inline uint32_t way_count(self, uint32_t gpm) noexcept nogil:
        """The number of ways of a GPM."""
        return self.tables.way_first[gpm + 1] - self.tables.way_first[gpm]
    cdef uint32_t list_ways(self, uint32_t gpm, EdgeRef** ways) noexcept nogil
    cdef int _feed_gpm(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil
    cdef bint _update_parts(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil
    cdef inline int begin_instant(self, int64_t micros) except -1 nogil:
        """Begin the next instant, at a time not before the last one's."""
        self.event.match_generation += 1
        if self.deadlines.soonest < micros:
            self.pass_deadlines_before(micros)
        tick(self.window, micros)
        assert self.window.reach <= self.window.bound
        assert self.window.timestamp_start <= self.window.now
        return self.tecs.begin(self.window.now, self.window.reach)
    cdef int pass_deadlines_before(self, int64_t micros) except -1 nogil
    cdef int pass_deadline_at(self, int64_t due) except -1 nogil
    cdef int _pass_deadlines(self, int64_t due) except -1 nogil
    cdef int _pass_deadline(
        self, const TimedPlace* at, const Timer* timer, Groups groups
    ) except -1 nogil
    cdef Label* _label_deadline(
        self, const TimedPlace* at, const InstantMembers* members, int64_t due
    ) except NULL nogil
    cdef int end_instant(self) except -1 nogil
    cdef int _remove_joined(self, Groups groups, const Touched* touched) except -1 nogil
    cdef int _raise_joined(self, Groups groups, const Touched* touched) except -1 nogil
    cdef int _expire_strict_place(self, Groups groups, uint32_t place) except -1 nogil
    cdef int _sweep_place(self, Groups groups, uint32_t place) except -1 nogil
    cdef bint _is_out_of_bounds(self, Groups groups, uint32_t group, uint32_t place) noexcept nogil
    cdef bint _is_past_limits(
        self, const Group* group, uint32_t place, const Edge* edge
    ) noexcept nogil
    cdef int skip_past(self, uint32_t count) except -1 nogil
    cdef int _apply_eager_guard(
        self, EagerGuard* eager, uint32_t width, Groups groups
    ) except -1 nogil
    cdef int _remove_if_forbidden(
        self, EagerGuard* eager, Groups groups, uint32_t number, uint32_t width
    ) except -1 nogil
    cdef uint64_t _count_live(self) noexcept nogil
    cdef int _sweep(self) except -1 nogil
    cdef int undo_event(self) except -1 nogil
    cdef int _expire_strict(self, Groups groups) except -1 nogil
