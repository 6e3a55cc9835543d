"""Which groups go when there are too many; see _shedding.pyx."""

from libc.stdint cimport int64_t, uint64_t

from spaseq.nfa.native._window cimport Clock

cdef uint64_t held(Clock clock, list groups, int64_t only) noexcept with gil
cdef int shed(Clock clock, list groups, uint64_t surplus, int64_t only) except -1 with gil
