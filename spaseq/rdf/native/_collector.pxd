"""The graphs of a data set; see _collector.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.rdf.native._minting cimport Minter
from spaseq.rdf.native._quads cimport Quad
from spaseq.rdf.native._term_map cimport TermMap
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

# The form of a fact: flags.
cdef enum:
    IS_KEPT = 1             # a query can use it
    IS_TIMING = 2           # its predicate is one of timestamps
    IS_STAMP = 4            # it is a timestamp in the default graph
    BLANK_SUBJECT = 8
    BLANK_OBJECT = 16

# A statement of a graph, or about its name.
cdef struct Fact:
    term_t subject
    term_t predicate
    term_t object
    uint32_t next           # of the same chain; 0: none
    uint32_t form

cdef struct Group:
    term_t name
    uint32_t file           # the number of its file
    uint64_t order          # its position among the groups, by their first statements
    uint64_t line           # of its first statement
    uint32_t first_fact, last_fact
    uint32_t first_stamp, last_stamp    # of the statements of the default graph about the name
    uint32_t statements     # facts that are not stored
    uint32_t described      # facts about the name
    uint8_t is_event        # it has quads or a timestamp

# An event of the batch, and what orders it.
cdef struct Place:
    int64_t micros
    uint64_t order
    uint32_t event
    uint32_t file


@cython.final
cdef class Collector:
    cdef readonly EventBatch batch  # the terms of the facts; then the events too
    cdef readonly list files        # the names of the files; this one is the last
    cdef bytes scope                # precedes the labels of blank nodes
    cdef const char* scope_text
    cdef size_t scope_size
    cdef readonly uint64_t unused   # statements of no event
    cdef uint64_t before            # the order of the first group
    cdef Fact* facts                # facts[0] is unused
    cdef uint32_t fact_count, fact_room
    cdef Group* groups
    cdef uint32_t count, room
    cdef uint32_t done              # groups that have become events or are none
    cdef TermMap names              # the number of the group of a name
    cdef Place* places
    cdef uint32_t placed, place_room

    cdef EventBatch source          # the batch whose terms were copied last
    cdef term_t* copies             # by local term of it: the term of `batch`, or 0
    cdef uint32_t copy_room
    cdef char* text                 # a label with its scope, or a blob
    cdef size_t text_size, text_room

    cdef term_t stored(self, EventBatch source, term_t term) except? 0 nogil
    cdef int new_source(self, EventBatch source) except -1
    cdef int write_scoped(self, const char* text, uint32_t size) except -1 nogil
    cdef term_t enter(self, const char* text, uint32_t size) except 0 nogil
    cdef uint32_t group(self, EventBatch source, term_t name, uint64_t line) except? 0 nogil
    cdef uint32_t group_of(self, term_t name, uint64_t line) except? 0 nogil
    cdef int describe(
        self, EventBatch source, const Quad* quad, bint is_stored
    ) except -1 nogil
    cdef int add(
        self, EventBatch source, uint32_t group, const Quad* quad, bint about
    ) except -1 nogil
    cdef uint32_t link(self, Group* group, bint about, uint32_t form) except 0 nogil
    cdef void quad_of(self, uint32_t fact, Quad* quad, uint64_t line) noexcept nogil
    cdef int place(self, const Group* group) except -1 nogil
    cdef int write(self, const void* bytes, size_t size) except -1 nogil
    cdef int write_term(self, term_t term) except -1 nogil
    cdef uint32_t length(self, uint32_t fact) noexcept nogil
    cdef int write_chain(self, uint32_t fact) except -1
