"""Joins of steps with guards or over several events; see _joins.pyx."""

cimport cython
from libc.stdint cimport uint32_t

from spaseq.nfa.native._groups cimport Groups
from spaseq.nfa.native._instant cimport OpenInstant
from spaseq.nfa.native._conjunction cimport Conjunction, RowSearch
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._negation cimport Negation
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._program cimport Place, Tables, EdgeRef
from spaseq.nfa.native._tecs cimport Label, Node, Tecs, instant_t, union_t
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._terms cimport term_t

# The beginning of a match that is decided only when all events of its instant have been counted.
cdef struct DeferredStart:
    uint32_t edge
    uint32_t place
    Node* node          # node of its step


@cython.final
cdef class StepJoin:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef Conjunction conjunction
    cdef Negation negation
    cdef Partitions partitions  # None without PARTITION BY
    cdef OpenInstant instant
    cdef term_t* before         # the environment of a partial match before the step
    cdef Label** step           # the labels of the current step, by instant
    cdef uint32_t step_count    # 0: the labels are not created yet
    cdef DeferredStart* deferred
    cdef term_t* deferred_values    # their environments
    cdef uint32_t deferred_count, deferred_room

    cdef int join_guarded(
        self, EdgeRef* way, uint32_t number, uint32_t width, Label** label
    ) except -1 nogil
    cdef int conjoin(self, EdgeRef* way) except -1 nogil
    cdef int _conjoin_each(self, Groups groups, EdgeRef* way, RowSearch* seek) except -1 nogil
    cdef int _conjoin_with(self, Groups groups, RowSearch* seek) except -1 nogil
    cdef int begin_deferred(self) except -1 nogil
    cdef int expire_strict(self, Groups groups) except -1 nogil
    cdef int _begin(self, EdgeRef* way, RowSearch* seek) except -1 nogil
    cdef int _join(self, EdgeRef* way, uint32_t number, RowSearch* seek) except -1 nogil
    cdef instant_t _least_last_instant(
        self, EdgeRef* way, uint32_t number, RowSearch* seek
    ) except -2 nogil
    cdef int _follow(
        self, EdgeRef* way, uint32_t number, RowSearch* seek, instant_t needed, Groups groups
    ) except -1 nogil
    cdef Node* _node(
        self, EdgeRef* way, RowSearch* seek, union_t before, instant_t start
    ) except NULL nogil
    cdef int _label_step(self, EdgeRef* way, RowSearch* seek) except -1 nogil
    cdef bint _start_is_forbidden(
        self, uint32_t edge, Place* place, instant_t first
    ) except -1 nogil
    cdef int defer_start(self, EdgeRef* way, Node* node) except -1 nogil
