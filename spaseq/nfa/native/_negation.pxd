"""Guards that look back; see _negation.pyx."""

cimport cython
from libc.stdint cimport INT64_MIN, int64_t, uint32_t

from spaseq.nfa.native._frontier cimport Frontier
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._conjunction cimport Conjunction, Range, RowSearch
from spaseq.nfa.native._program cimport Edge, Place, Tables
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._tecs cimport instant_t
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._terms cimport term_t

cdef enum:
    NO_INSTANT = -1
    DONE = -2           # target of a link: the guarded unit has occurred

cdef struct Guard:
    bint negated
    int64_t lookback    # before a match: how far the search reaches back, -1: one window
    Range starts        # places where the guarded unit may begin

# Where a search for a guarded unit begins and ends.
cdef struct Stretch:
    instant_t last      # the last instant of the partial match, from which the unit's bounds count
    int64_t micros      # its time, or that of a deadline that the match has passed since
    int64_t until       # the latest time at which an absence that ends the unit is over; INT64_MIN:
                        # before the next step

# A guard, and the registers that it reads as they were before the edge.
cdef struct Check:
    uint32_t guard
    Range restored


@cython.final
cdef class Negation:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Conjunction conjunction
    cdef Partitions partitions  # None without PARTITION BY
    cdef Guard* guards
    cdef uint32_t* starts
    cdef Check* checks
    cdef uint32_t* restored
    cdef Range* edge_checks     # per edge
    cdef Range* link_checks     # per link
    cdef Range* place_checks    # per place where matches wait for the close
    cdef Frontier** frontiers
    cdef uint32_t frontier_count, frontier_depth

    cdef Stretch stretch        # of the current partial match

    cdef int begin(self) noexcept nogil
    cdef inline int base(
        self, instant_t instant, int64_t micros, int64_t until=INT64_MIN
    ) noexcept nogil:
        """Set where the searches for guarded units begin and end."""
        self.stretch = Stretch(instant, micros, until)
        return 0
    cdef instant_t forbidden_until(
        self, uint32_t edge, const term_t* before, const term_t* after, instant_t low,
        instant_t high, bint starting,
    ) except -2 nogil
    cdef instant_t latest_occurrence(
        self, Check* check, const term_t* before, const term_t* after, instant_t low,
        instant_t high, bint starting,
    ) except -2 nogil
    cdef instant_t instant_before(self, const term_t* env, instant_t instant) noexcept nogil
    cdef bint forbids(
        self, Range checks, const term_t* env, instant_t low, instant_t high
    ) except -1 nogil
    cdef int completes(self, RowSearch* begun, void* watched) except -1 nogil
    cdef int follow_absence(self, void* task) except -1 nogil
    cdef int push(
        self, Frontier* frontier, uint32_t target, instant_t last, int64_t micros, const term_t* env
    ) except -1 nogil
    cdef Frontier* frontier(self) except NULL nogil
    cdef int follow_unit_links(
        self, uint32_t edge, const term_t* env, const Stretch* since, instant_t high,
        Frontier* frontier,
    ) except -1 nogil


cdef instant_t latest_rival(
    Negation negation, uint32_t place, RowSearch* candidate, const term_t* before, instant_t low,
    int64_t since,
) except -2 nogil
