"""Instants and windows; see _clock.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa._tables cimport Tables
from spaseq.nfa._tecs cimport Label, Tecs, instant_t

# A match that waits for its window to close, unless its group has ended by then.
cdef struct Awaited:
    Awaited* next
    uint32_t place
    uint32_t group
    uint64_t serial     # of the group
    uint32_t length
    Label* labels[1]    # `length` of them, the first event's first


cdef class Clock(Tables):
    cdef readonly Tecs tecs
    cdef int64_t size
    cdef bint tumbling
    cdef readonly bint counted  # the window counts events
    cdef int64_t total          # events inside it
    cdef int64_t* times         # a ring over the instants bound … now: their times, or if
    cdef uint32_t times_mask    # `counted` how many events they have
    cdef Awaited** awaited      # beside them: the waiting matches that start there
    cdef uint64_t awaited_count
    cdef public instant_t now
    cdef public instant_t bound
    cdef public instant_t timestamp_start
    cdef public int64_t micros
    cdef public instant_t skipped   # no match may start before it
    cdef uint64_t turn          # changes whenever what has been accepted may go

    cdef int64_t _opening(self, int64_t micros) noexcept nogil
    cdef bint closes(self, int64_t micros) noexcept
    cpdef int open(self, int64_t micros) except -1
    cdef int count(self) noexcept
    cpdef int skip(self) except -1
    cdef int _reach(self) except -1

    @cython.final
    cdef inline instant_t _since(self) noexcept nogil:
        """No match may start before it."""
        return self.bound if self.bound > self.skipped else self.skipped
