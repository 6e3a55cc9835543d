"""Lines of N-Quads to statements; see _nquads.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.io.native._framing cimport Quad
from spaseq.io.native._nquads_terms cimport Column, TermReader, Token, Usual
from spaseq.rdf._terms cimport term_t

cdef enum Found:
    NOTHING         # an empty line, or one of comments
    STATEMENT
    DELIMITER
    UNKNOWN         # something to be judged by others

cdef enum:
    COLUMNS = 64        # slots for predicates
    TRIED = 8           # of them, from the one the hash says, before one is given up


@cython.final
cdef class LineReader(TermReader):
    cdef bint quads             # N-Quads, not N-Triples
    cdef readonly uint64_t line     # the number of the next line
    cdef uint32_t generation    # of the batch that the tokens below are in
    cdef Usual usual            # its subject: that of the last line
    cdef term_t tail_graph      # the graph in its tail, 0: the default graph
    cdef bint blank_subject
    cdef Token graph            # the last one that was named
    cdef Column columns[COLUMNS]
    cdef object sound_block     # this one is UTF-8 up to:
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
