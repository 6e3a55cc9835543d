"""What makes matches; see _matches.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._parts cimport CoreParts
from spaseq.nfa._tecs cimport Label, Walk, instant_t

# Where a register got its value: a step of the match, counted from 1, and a column of its row.
cdef struct Origin:
    uint32_t step
    uint32_t column


cdef class MatchMaker:
    cdef AutomatonCore core
    cdef str query
    cdef tuple names            # of the projected variables
    cdef uint32_t* registers    # they are read from
    cdef uint32_t column_count
    cdef Origin* origins        # per register
    cdef list steps
    cdef list streams
    cdef CoreParts parts
    cdef dict known             # what labels are decoded to, by their addresses
    cdef uint64_t epoch         # the oldest of the core when `known` was last emptied

    cdef object _match(self, Walk walk, end, int kb_version)
    cdef tuple _decoded(self, Label* label)
    cdef int _replay(self, Walk walk) noexcept
