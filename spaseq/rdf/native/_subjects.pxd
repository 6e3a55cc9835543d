"""Statements by subject; see _subjects.pyx."""

cimport cython
from libc.stdint cimport uint32_t

from spaseq.rdf.native._quads cimport Quad
from spaseq.rdf.native._term_map cimport TermMap
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

cdef enum:
    NOWHERE = 0xFFFFFFFFu

# A statement about a node to which no subject has referred.
cdef struct Waiting:
    Quad quad
    uint32_t next       # of the same node; the last one leads to the first
    bint taken          # it has been passed on


@cython.final
cdef class Subjects:
    cdef uint32_t most          # statements that may wait
    cdef uint32_t limit         # the same for this file, whose nodes may all be connected
    cdef term_t current         # the subject of the event, 0 before the first
    cdef TermMap own             # its blank nodes
    cdef Waiting* waiting
    cdef uint32_t count, live, room     # `live` of them have not been passed on
    cdef TermMap heads           # the last waiting statement of each node, or NOWHERE
    cdef uint32_t* claimed      # the positions of those that a statement refers to
    cdef term_t* queue          # nodes that are reached
    cdef Quad* ready            # what the last call passes on
    cdef uint32_t ready_count, ready_room

    cdef void clear(self) noexcept nogil
    cdef int take(self, const Quad* quad) except -1 nogil
    cdef int rest(self) except -1 nogil
    cdef int move(self, EventBatch source, EventBatch target) except -1
    cdef int put(self, const Quad* quad, term_t graph, bint owned) except -1 nogil
    cdef int wait(self, const Quad* quad) except -1 nogil
    cdef int chain(self, uint32_t place) except -1 nogil
    cdef uint32_t claim(self, term_t node) noexcept nogil
    cdef int roots(self, uint32_t behind) except -1 nogil
    cdef int release(self) except -1 nogil
    cdef int compact(self, bint always) except -1 nogil
