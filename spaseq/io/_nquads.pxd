"""Lines of N-Quads to statements; see _nquads.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.io._framing cimport EventReader, Quad
from spaseq.io._tokens cimport Beginning
from spaseq.rdf._terms cimport term_t

cdef enum Found:
    NOTHING         # an empty line, or one of comments
    STATEMENT
    DELIMITER
    UNKNOWN         # something to be judged by others

cdef enum:
    COLUMNS = 64        # slots for predicates

# A term as it stands in the buffer, and its number; 0 where it is valid and not entered.
cdef struct Token:
    const char* text    # NULL: none so far
    size_t size
    term_t term

# A predicate, and what the last triples with it looked like.
cdef struct Column:
    uint64_t hash
    Token predicate
    Token value             # the last object
    const char* datatype    # the last datatype, known to be valid: <...>
    size_t datatype_size
    bint is_string          # it is xsd:string
    unsigned char keep      # a Keep: which of its triples some query can use
    bint timing             # its objects are timestamps
    uint32_t next           # the slot of the predicate that followed it last


@cython.final
cdef class LineReader:
    cdef EventReader events
    cdef bint quads             # N-Quads, not N-Triples
    cdef readonly uint64_t line     # the number of the next line
    cdef uint32_t generation    # of the batch that the tokens below are in
    cdef Token subject, graph
    cdef bint blank_subject
    cdef Column columns[COLUMNS]
    cdef uint32_t column        # the slot of the last predicate
    cdef Beginning beginning    # of the last IRIs that were checked
    cdef char* scratch          # for terms that do not stand in the buffer as they are
    cdef size_t scratch_room
    cdef object sound_block     # this one is UTF-8 up to:
    cdef const char* sound
    cdef dict tags              # language tags by whether they are valid

    cdef int attach(self, block) except -1
    cdef int statement(
        self, const char* at, const char* end, const char** next, Quad* quad
    ) except -1 nogil
    cdef const char* object_token(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil
    cdef const char* literal_token(
        self, const char* at, const char* end, Column* column, bint wanted, term_t* term
    ) except? NULL nogil
    cdef const char* language(
        self, const char* at, const char* end, bint* is_plain
    ) except? NULL nogil
    cdef const char* datatype(
        self, const char* at, const char* end, Column* column
    ) except? NULL nogil
    cdef int build_literal(
        self, const char* at, const char* close, const char* suffix, const char* end
    ) except -1 nogil
    cdef int reserve(self, size_t size) except -1 nogil
    cdef Column* predicate_column(self, const char* text, size_t size) except? NULL nogil
    cdef bint name_or_label(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil
    cdef bint asked_iri(self, const char* text, size_t size) except -1 nogil
    cdef bint asked_tag(self, const char* text, size_t size) except -1 nogil
