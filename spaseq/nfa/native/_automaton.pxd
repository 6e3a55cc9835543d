"""The automaton over term numbers; see _automaton.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.nfa.native._lazy_join cimport Chain
from spaseq.nfa.native._window cimport since_of, tick
from spaseq.nfa.native._event cimport show_event, take_row
from spaseq.nfa.native._groups cimport Groups
from spaseq.nfa.native._instant cimport Touched
from spaseq.nfa.native._program cimport Occurrence, Sighting, Way
from spaseq.nfa.native._tecs cimport Node
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

# Those who wait for the rows of a graph pattern: `count` GPMs, and all of their ways to places
# where anybody waits.
cdef struct Audience:
    uint32_t* gpms
    uint32_t count
    uint32_t way_count
    Way** ways


@cython.final
cdef class AutomatonCore(Chain):
    cdef bint passes            # some place only waits for the next instant
    cdef bint adjacent          # strict contiguity is asked for somewhere
    cdef uint8_t* concerned     # per GPM: whether its rows concern others than those who wait
    cdef bint plain             # there is no such GPM
    # Bounds, see spaseq.rdf.limits; and how much was there before the event at hand.
    cdef uint64_t most_groups, kept_groups, sweep_at
    cdef bint sheds
    cdef uint32_t pending_before, values_before, touched_before, accepted_before
    cdef public uint64_t forbidden  # waiting matches that were gone when their window closed

    cdef inline bint waits(self, uint32_t gpm) noexcept nogil:
        """Whether somebody waits for rows of a GPM.

        That holds until places turn that concern it; where rows are joined lazily, until the next.
        """
        return self.may_follow(gpm) if self.lazy else self._is_awaited(gpm)
    cdef bint _is_awaited(self, uint32_t gpm) noexcept nogil
    cdef uint64_t places_of(self, uint32_t gpm) noexcept nogil
    cdef int came_early(self, uint32_t gpm, uint64_t events) noexcept nogil
    cdef bint unsteady(self) noexcept nogil
    cdef inline int present(
        self, EventBatch batch, uint32_t event, uint32_t stream, uint32_t file
    ) except -1 nogil:
        """The event whose rows are fed next; how much there is before it is known to `relieve`."""
        self.pending_before, self.values_before = self.pending_count, self.value_count
        self.touched_before, self.accepted_before = self.touched_count, self.accepted_count
        if self.accepted_count == 0:
            self.passing.clear()
        return show_event(self, batch, event, stream, file)
    cdef inline int feed(
        self, const Audience* those, const term_t* row, uint32_t width
    ) except -1 nogil:
        """One row of the presented event, for those who wait for it."""
        take_row(self, row, width)
        if not self.plain:
            return self._feed_each(those, row, width)
        self.since, self.measured = since_of(self), -1
        return self.meet_all(those.ways, those.way_count, width, NULL)
    cdef int _feed_each(
        self, const Audience* those, const term_t* row, uint32_t width
    ) except -1 nogil
    cdef inline uint32_t way_count(self, uint32_t gpm) noexcept nogil:
        """How many places the rows of a GPM may be taken in."""
        return self.way_first[gpm + 1] - self.way_first[gpm]
    cdef uint32_t list_ways(self, uint32_t gpm, Way** ways) noexcept nogil
    cdef int _feed_one(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil
    cdef bint _concern(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil
    cdef inline int begin_instant(self, int64_t micros) except -1 nogil:
        """The next instant begins, at a time not before the last one's."""
        self.turn += 1
        tick(self, micros)
        assert self.reach <= self.bound and self.timestamp_start <= self.now
        return self.tecs.begin(self.now, self.reach)
    cdef int end_instant(self) except -1 nogil
    cdef int _take_leave(self, Groups groups, const Touched* touched) except -1 nogil
    cdef int _pass_over_place(self, Groups groups, uint32_t place) except -1 nogil
    cdef int _sweep_place(self, Groups groups, uint32_t place) except -1 nogil
    cdef int skip_past(self, uint32_t count) except -1 nogil
    cdef int _see(self, Sighting* sighting, uint32_t width, Groups groups) except -1 nogil
    cdef int _end(
        self, Sighting* sighting, Groups groups, uint32_t number, uint32_t width
    ) except -1 nogil
    cdef uint64_t _living(self) noexcept nogil
    cdef int _sweep(self) except -1 nogil
    cdef int relieve(self) except -1 nogil
    cdef int _pass_over(self, Groups groups) except -1 nogil
