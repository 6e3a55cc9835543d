"""What is still to be followed inside a guarded unit; see _frontier.pyx."""

cimport cython
from libc.stdint cimport uint32_t

from spaseq.nfa._tecs cimport instant_t
from spaseq.rdf._terms cimport term_t


@cython.final
cdef class Frontier:
    cdef uint32_t cells
    cdef uint32_t* places
    cdef instant_t* lasts
    cdef term_t* values         # the environments
    cdef uint32_t* hashes
    cdef uint32_t* heads        # by hash, `room` of them
    cdef uint32_t* others       # the next with a like hash
    cdef uint32_t count, room
    cdef uint32_t next          # that is followed

    cdef int push(
        self, uint32_t place, instant_t last, const term_t* env, const uint32_t* live,
        uint32_t width,
    ) except -1
    cdef int clear(self) noexcept
    cdef int _grow(self) except -1
