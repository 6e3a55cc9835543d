"""Shedding of groups under a limit; see _shedding.pyx."""

from libc.stdint cimport int64_t, uint64_t

from spaseq.nfa.native._program cimport Tables
from spaseq.nfa.native._window cimport Window

cdef uint64_t count_held(
    Tables tables, Window window, list groups, int64_t only
) noexcept with gil
cdef int shed(
    Tables tables, Window window, list groups, uint64_t surplus, int64_t only
) except -1 with gil
