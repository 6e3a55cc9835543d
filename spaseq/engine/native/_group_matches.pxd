"""Matches of groups of results; see _group_matches.pyx."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.engine.native._decode cimport Ending, MatchDecoder
from spaseq.engine.native._result_groups cimport NativeGroups
from spaseq.results._json cimport Text
from spaseq.results._match cimport Match


cdef class GroupMatch(Match):
    cdef MatchDecoder reading
    cdef tuple steps            # of the newest result; None: its witnesses are known
    cdef int64_t start          # of the group, in microseconds
    cdef uint32_t domain        # of the start
    cdef bytes packed           # the group (`NativeGroups.pack`); None: the output stage read it
    cdef tuple facts            # of a CONSTRUCT
    cdef GroupColumns columns
    cdef tuple solution         # the values of the columns; None: computed from `packed`
    cdef Ending ending

    cdef int _put_json(self, Text* text) except -1
    cdef int _put_bindings(self, Text* text) except -1
    cdef dict _bindings(self)


cdef class GroupColumns:
    cdef readonly str query
    cdef readonly tuple names
    cdef readonly tuple columns
    cdef readonly object values
    cdef list openings          # per column, the JSON text before its value

    cdef list read(self, bytes packed)


cdef class SolutionMaker:
    cdef NativeGroups groups
    cdef MatchDecoder reading
    cdef GroupColumns columns
    cdef object stage
    cdef bint retains, constructs, asks
    cdef bint had_values        # whether all aggregates of some group have had values

    cdef list made(self, list numbers, int64_t now, object version)
    cdef GroupMatch solved(self, solution, tuple steps)
    cdef GroupMatch _match(
        self, tuple solution, int64_t start, uint32_t domain, uint64_t results
    )
