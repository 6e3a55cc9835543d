"""Blocks of written matches; see _match_blocks.pyx."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.engine.native._matches cimport MatchMaker
from spaseq.results._json cimport Text


cdef class Counter:
    cdef uint64_t number
    cdef bytes prefix


cdef class Names:
    cdef dict counters      # query → Counter
    cdef uint64_t blanks

    cdef Counter counter(self, str query)


cdef class Block:
    cdef Text text
    cdef readonly uint64_t rows     # formatted since the last `clear`
    cdef uint64_t rest              # matches that are still accepted
    cdef public bint makes_objects  # its makers make objects, which the sink writes in order
    cdef public bint each           # the iterator over the matches pauses at each of them

    cdef bint is_full(self) noexcept


cdef class BlockMaker(MatchMaker):
    cdef Block block

    cdef int start(self, object names) except -1
    cdef int put_match(self, Text* text, object version) except -1
    cdef int replay(self) except -1
