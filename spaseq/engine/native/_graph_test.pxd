"""Filters that read graphs, over environments; see _graph_test.pyx."""

cimport cython
from libc.stdint cimport uint32_t

from spaseq.gpm.native._matcher cimport NativeMatcher
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t


@cython.final
cdef class GraphTest:
    cdef NativeMatcher matcher
    cdef uint32_t count
    cdef uint32_t* cells    # of an environment, by column
    cdef term_t* row

    cdef bint holds(self, EventBatch given, EventBatch batch, const term_t* env) except -1 nogil
