"""The names of the last graphs that were closed; see _closed_graphs.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

cdef struct Entry:
    uint32_t tag        # the lower half of the hash
    uint32_t offset     # of the text in `bytes`
    uint32_t size       # of it; with the flag SHORTENED the name is `beginning` and the text
    uint32_t before     # the position of the next older name of the chain
    uint32_t line       # the line where the graph began, at most 2**32 - 1
    uint32_t file       # the number of its file


@cython.final
cdef class ClosedNames:
    cdef Entry* entries     # a ring of `capacity`; position p is at index p - 1
    cdef uint32_t* heads    # 2 * capacity chains by hash: the position of the newest name, or 0
    cdef uint32_t next      # the position of the next name
    cdef uint32_t capacity, count
    cdef uint64_t* recent   # a bit per hash of the names since the last turn, and
    cdef uint64_t* older    # of the REMEMBERED names before them: no bit in either, no such name
    cdef uint32_t turn      # how many names were inserted since the last turn
    cdef char* bytes        # a ring of `room`: texts from the oldest entry's to `write`
    cdef size_t room, write
    cdef size_t held        # bytes of texts
    cdef char* beginning    # the common prefix, of the first name; NULL before a first name
    cdef uint32_t beginning_size

    cdef void expect(self, uint64_t hash) noexcept nogil
    cdef const Entry* find(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef bint _begins(self, const char* text, uint32_t size) noexcept nogil
    cdef int add(
        self, uint64_t hash, const char* text, uint32_t size, uint64_t line, uint32_t file
    ) except -1 nogil
    cdef int _begin(self, const char* text, uint32_t size) except -1 nogil
    cdef void _mark(self, uint64_t hash) noexcept nogil
    cdef void _forget(self) noexcept nogil
    cdef Entry* _oldest(self, uint32_t i) noexcept nogil
    cdef int _widen(self) except -1 nogil
    cdef int _make_room(self, uint32_t size) except -1 nogil
