"""The complete matches of a core; see _complete.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport instant_t
from spaseq.nfa.native._window cimport Awaited

cdef list steps_of(Awaited* match)


@cython.final
cdef class Closing:
    cdef AutomatonCore core
    cdef bint is_open           # only what is due before `before` comes out
    cdef int64_t before
    cdef bint begun             # there is a current time
    cdef readonly int64_t micros    # the current time
    cdef readonly bint is_deadline  # it is a deadline
    cdef instant_t start        # matches of earlier starts have come out
    cdef Awaited* rest          # the remaining matches of this start, in order
    cdef Awaited* match         # the current match
    cdef uint64_t listed        # the matches of the current time so far

    cdef bint next_time(self) except -1
    cdef bint next_match(self) except -1
    cdef int _first_start(self) noexcept
    cdef int set_walk(self) except -1
