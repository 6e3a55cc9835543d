"""Searches along property paths; see _path_search.pyx."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cimport cython

from spaseq.gpm.native._marks cimport Marks
from spaseq.gpm.native._rows cimport Rows
from spaseq.gpm.native._summary_graph cimport Side, SummaryGraph
from spaseq.rdf._effort cimport Effort
from spaseq.rdf._terms cimport term_t

cdef struct Link:
    uint32_t view
    bint forward
    uint32_t excluded_first     # the predicates that it must not have
    uint32_t excluded_end

@cython.final
cdef class PathSearch:
    """The search that one automaton makes from a given node."""

    cdef SummaryGraph graph
    cdef Link* links
    cdef uint32_t link_count
    cdef uint32_t* follow       # the links of state s: follow[follow_first[s]:follow_first[s + 1]]
    cdef uint32_t* follow_first
    cdef uint8_t* accepting     # per state
    cdef term_t* excluded
    cdef Marks visited          # (node, state), and (node, ACCEPTED)
    cdef uint64_t* frontier     # the pairs in the order in which they were reached
    cdef term_t* reached        # the nodes in an accepting state
    cdef uint32_t room          # of both
    cdef uint32_t end           # of the frontier
    cdef uint32_t reached_count

    cdef int begin_event(self) except -1 nogil
    cdef bint search(self, Effort* effort, term_t start, term_t target) except -1 nogil
    cdef bint _follow(
        self, Effort* effort, const Link* link, term_t node, uint32_t state
    ) except -1 nogil
    cdef int _reach(self, term_t node, uint32_t state) noexcept nogil
    cdef bint _excludes(self, const Link* link, term_t predicate) noexcept nogil


@cython.final
cdef class PathJoin:
    """The operator REACH of one graph pattern."""

    cdef SummaryGraph graph
    cdef PathSearch ahead       # from the subject
    cdef PathSearch back        # from the object
    cdef int subject_slot       # -1: a constant
    cdef int object_slot
    cdef term_t subject
    cdef term_t object
    cdef int nodes              # the view of all nodes, if the path may be empty; else -1
    cdef readonly uint64_t needed   # the views without which the path leads nowhere; see `bit_of`
    cdef Marks started          # the nodes from which a search with two free ends has started

    cdef bint extend(self, Effort* effort, const Rows* left, Rows* out) except -1 nogil
    cdef bint _may_connect(self, term_t subject, term_t object) except -1 nogil
    cdef bint _is_end(self, term_t node, Side side) except -1 nogil
    cdef bint _extend_from_all(self, Effort* effort, const term_t* row, Rows* out) except -1 nogil
    cdef bint _extend_from_view(
        self, Effort* effort, const term_t* row, Rows* out, uint32_t view, bint subjects
    ) except -1 nogil
    cdef bint _extend_from(
        self, Effort* effort, const term_t* row, Rows* out, term_t start
    ) except -1 nogil
    cdef int _append(
        self, Rows* out, const term_t* row, term_t subject, term_t object
    ) except -1 nogil
