"""Terms of lines; see _scanning.pyx."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.io._framing cimport EventReader, Quad
from spaseq.io._tokens cimport Beginning
from spaseq.rdf._terms cimport term_t

cdef enum:
    MOST = 0x7FFFFFFF       # bytes of a token

# A term as it stands in the buffer, and its number; 0 where it is valid and not entered.
cdef struct Token:
    const char* text    # NULL: none so far
    size_t size
    term_t term

# A predicate, and what the last triples with it looked like.
cdef struct Column:
    uint64_t hash
    Token predicate
    bint spaced             # the predicate has a space on both sides
    Token value             # the last object
    const char* datatype    # the last datatype, known to be valid: <...>
    size_t datatype_size
    bint tight              # and it stands right behind its quote
    bint is_string          # it is xsd:string
    unsigned char keep      # a Keep: which of its triples some query can use
    bint timing             # its objects are timestamps
    uint32_t next           # the slot of the predicate that followed it last


cdef class TermReader:
    cdef EventReader events
    cdef Beginning beginning    # of the last IRIs that were checked
    cdef char* scratch          # for terms that do not stand in the buffer as they are
    cdef size_t scratch_room
    cdef dict tags              # language tags by whether they are valid

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
    cdef bint name_or_label(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil
    cdef int enter_valid(self, Token* token) except -1 nogil
    cdef bint asked_iri(self, const char* text, size_t size) except -1 nogil
    cdef bint asked_tag(self, const char* text, size_t size) except -1 nogil
