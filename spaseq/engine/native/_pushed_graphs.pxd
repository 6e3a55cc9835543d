"""Graphs of pushed events → triples of a batch; see _pushed_graphs.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._relevance cimport Relevance
from spaseq.rdf._terms cimport term_t
from spaseq.rdf.native._framing cimport EventReader
from spaseq.rdf.native._nquads cimport LineReader


@cython.final
cdef class GraphReader:
    cdef EventBatch batch
    cdef Relevance relevance
    cdef EventReader events         # of text; None until the first one
    cdef LineReader lines
    cdef dict kinds                 # by class: the kind of its terms
    cdef dict labels                # of the event's blank nodes: their numbers
    cdef bytes scope                # the prefix of the labels of its blank nodes
    cdef char* text                 # the term that is being looked up
    cdef uint32_t room, size

    cdef int64_t read(self, object graph, int64_t event) except -2
    cdef int64_t read_text(self, bytes text) except -2
    cdef int64_t read_graph(self, object graph, int64_t event) except -2
    cdef int kind_of(self, object term) except -1
    cdef int put(self, const char* text, Py_ssize_t size) except -1
    cdef int put_string(self, object text) except -1
    cdef term_t iri(self, object text) except? 0
    cdef term_t blank(self, object label) except 0
    cdef term_t literal(self, object term) except? 0
    cdef term_t end(self, object term, int kind) except? 0
