"""Joins of rows and waiting groups; see _transitions.pyx."""

cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t

from spaseq.nfa.native._groups cimport Group, Groups
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._joins cimport StepJoin
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._range_index cimport Rank
from spaseq.nfa.native._program cimport Edge, Place, Tables, Way
from spaseq.nfa.native._tecs cimport Label, Node, Tecs, Walk
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._terms cimport term_t


@cython.final
cdef class Transitions:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef OpenInstant instant
    cdef StepJoin joins
    cdef Partitions partitions      # None without PARTITION BY
    cdef Walk walk
    cdef int32_t measured           # the measured column of the current row, -1: none
    cdef Rank rank                  # its rank and value
    cdef double value
    cdef bint distinct              # no other number has its value
    cdef uint64_t most_living       # upper bound on groups and waiting matches
    cdef public uint64_t waited     # matches that ever waited for their windows

    cdef int meet(self, Way* way, uint32_t width, Label** label) except -1 nogil
    cdef int meet_all(
        self, Way** ways, uint32_t count, uint32_t width, Label** kept
    ) except -1 nogil
    cdef int _take_whole(
        self, Way* way, uint32_t width, Label** label, double least, double most
    ) except -1 nogil
    cdef int take_any(
        self, Way* way, uint32_t number, uint32_t width, Label** label, Groups groups, bint sure
    ) except -1 nogil
    cdef int take_outside(self, Way* way, uint32_t number, Group* group) except -1 nogil
    cdef bint _fits(self, Edge* edge, uint32_t width, bint sure) except -1 nogil
    cdef int show(self, uint32_t first) except -1 nogil
    cdef int await_each(self, uint32_t place, uint32_t group, Node* node) except -1 nogil
    cdef int put_awaited(self, uint32_t place, uint32_t group, Walk walk) except -1 nogil
