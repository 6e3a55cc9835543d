"""Timers of partial matches that wait for a deadline; see _deadlines.pyx."""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from spaseq.nfa.native._groups cimport Groups, InstantMembers
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._program cimport Tables
from spaseq.nfa.native._tecs cimport instant_t
from spaseq.nfa.native._window cimport Window

# The deadline of the members of a group with one last instant.
cdef struct Timer:
    int64_t due         # microseconds
    uint64_t serial     # of the group
    InstantMembers* members
    instant_t last      # their last instant, readable after the members have been freed
    uint32_t group

# A place that waits for a deadline, with its timers in order of time.
cdef struct TimedPlace:
    uint32_t place
    int64_t size        # microseconds from the last event to the deadline
    bint ending         # the deadline may end a match
    bint begins         # it begins an iteration
    Timer* timers       # a ring of `room`, a power of two, from `first` to `end`
    uint32_t room
    uint64_t first
    uint64_t end


@cython.final
cdef class Deadlines:
    cdef Tables tables
    cdef OpenInstant instant
    cdef Window window
    cdef TimedPlace* places
    cdef uint32_t count
    cdef uint32_t* number_of    # by place, into `places`
    # Lower bounds on all deadlines, and on those that may end a match; INT64_MAX: there is none.
    cdef int64_t soonest
    cdef int64_t soonest_ending

    cdef int add(self, uint32_t place, uint32_t group, InstantMembers* members) except -1 nogil
    cdef int _grow(self, TimedPlace* at) except -1 nogil
    cdef int trim(self, TimedPlace* at, Groups groups) except -1 nogil
    cdef int64_t next_due(self, bint ending) except? -2 nogil
    cdef bint waits(self, bint ending) except -1 nogil
    cdef int order(self) except -1 nogil


cdef inline bint ends_before(Deadlines deadlines, int64_t micros) except -1 nogil:
    """Whether a deadline before a time may end a match."""
    return deadlines.soonest_ending < micros and deadlines.next_due(True) < micros
