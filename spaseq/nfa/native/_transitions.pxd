"""Joins of rows and waiting groups; see _transitions.pyx."""

cimport cython
from libc.stdint cimport int32_t, uint32_t, uint64_t

from spaseq.nfa.native._deadlines cimport Deadlines
from spaseq.nfa.native._groups cimport Group, Groups
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._joins cimport StepJoin
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._range_index cimport Rank
from spaseq.nfa.native._program cimport Edge, Place, Tables, EdgeRef
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
    cdef Deadlines deadlines
    cdef Walk walk
    cdef int32_t measured           # the measured column of the current row, -1: none
    cdef Rank rank                  # its rank and value
    cdef double value
    cdef bint distinct              # no other number has its value
    cdef uint64_t max_live          # upper bound on groups and waiting matches
    cdef public uint64_t waited     # matches that ever waited for their windows

    cdef int join_place(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil
    cdef int join_all(
        self, EdgeRef** ways, uint32_t count, uint32_t width, Label** kept
    ) except -1 nogil
    cdef int _join_whole_range(
        self, EdgeRef* way, uint32_t width, Label** label, double least, double most
    ) except -1 nogil
    cdef int join_environment(
        self, EdgeRef* way, uint32_t number, uint32_t width, Label** label, Groups groups, bint sure
    ) except -1 nogil
    cdef int raise_group(self, uint32_t target, uint32_t number, Groups groups) except -1 nogil
    cdef int skip_expired(self, EdgeRef* way, uint32_t number, Group* group) except -1 nogil
    cdef bint _fits(self, Edge* edge, uint32_t width, bint sure) except -1 nogil
    cdef int show_pending(self, uint32_t first) except -1 nogil
    cdef int await_matches(self, uint32_t place, uint32_t group, Node* node) except -1 nogil
    cdef int add_awaited(
        self, uint32_t place, uint32_t group, Node* node, Walk walk
    ) except -1 nogil
