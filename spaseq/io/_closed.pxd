"""The names of the graphs closed last; see _closed.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

cdef struct Entry:
    uint64_t hash
    size_t offset       # of the text in `bytes`
    uint32_t size
    uint32_t next       # the entry behind it in its chain, NONE at the end


@cython.final
cdef class ClosedNames:
    cdef Entry* entries     # a ring of `capacity`: `count` of them from `oldest` on
    cdef uint32_t* heads    # 2 * capacity chains by hash
    cdef uint32_t capacity, count, oldest
    cdef uint64_t* recent   # a bit per hash of the names that came since the last turn, and
    cdef uint64_t* older    # of the REMEMBERED before those: where neither is set, none is held
    cdef uint32_t turn      # how many came since the last turn
    cdef char* bytes        # a ring of `room`: texts from that of the oldest entry to `write`
    cdef size_t room, write

    cdef bint holds(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef int add(self, uint64_t hash, const char* text, uint32_t size) except -1 nogil
    cdef void _mark(self, uint64_t hash) noexcept nogil
    cdef int _widen(self) except -1 nogil
    cdef void _forget(self) noexcept nogil
    cdef int _make_room(self, uint32_t size) except -1 nogil
