"""Lines of N-Quads → statements; see _nquads.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf.native._nquads_terms cimport Column, TermReader, Token, Usual
from spaseq.rdf.native._quads cimport Quad
from spaseq.rdf._terms cimport term_t

cdef enum Found:
    NOTHING         # a blank line or a comment
    STATEMENT
    DELIMITER
    UNKNOWN         # a line for pyoxigraph

cdef enum:
    COLUMNS = 64        # slots for predicates
    TRIED = 8           # slots probed from that of the hash on, before one is reused


@cython.final
cdef class LineReader(TermReader):
    cdef bint quads             # N-Quads, not N-Triples
    cdef readonly uint64_t line     # the number of the next line
    cdef uint32_t generation    # of the batch of the tokens below
    cdef Usual usual            # the prediction; its subject is the last line's
    cdef term_t tail_graph      # the graph in its tail; 0: the default graph
    cdef bint blank_subject
    cdef Token graph            # the last graph name
    cdef Column columns[COLUMNS]
    cdef object sound_block     # a block that is valid UTF-8 up to `sound`
    cdef const char* sound

    cpdef Py_ssize_t read(self, bytes block, Py_ssize_t start, Py_ssize_t end) except -1
    cdef int attach(self, block) except -1
    cdef bint is_steady(self) noexcept nogil
    cdef const char* behind_usual(
        self, const char* at, const char* end, Quad* quad
    ) except NULL nogil
    cdef bint fact(self, Quad* quad) except -1 nogil
    cdef const char* object_of(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil
    cdef int statement(
        self, const char* at, const char* end, const char** next, Quad* quad
    ) except -1 nogil
    cdef const char* rest(self, const char* at, const char* end, Quad* quad) except? NULL nogil
    cdef Column* predicate_column(self, const char* text, size_t size) except? NULL nogil
