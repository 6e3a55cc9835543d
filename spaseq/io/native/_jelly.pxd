"""Frames of Jelly → statements; see _jelly.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from spaseq.rdf.native._framing cimport EventReader, Quad
from spaseq.rdf.native._nquads cimport TermReader
from spaseq.rdf.native._terms cimport EventBatch, term_t

cdef enum Kind:
    NONE
    IRI
    BLANK
    LITERAL
    DEFAULT
    TRIPLE      # a triple term: number `other` of `triples`
    FAULT       # not an RDF term: number `other` of `reasons`

cdef struct Term:
    Kind kind
    term_t term             # its number in the batch; 0: not entered
    int32_t other
    const char* text        # the message of a literal that is not entered, in the current block
    const char* end

# An entry of a lookup table.
cdef struct Entry:
    char* text              # NULL: not set
    uint32_t size, room
    uint32_t version        # counts the texts of this entry
    # Names only: the term with the prefix used last.
    term_t term
    uint32_t generation     # of the batch of `term`
    uint32_t prefix, prefix_version
    uint8_t valid           # of a datatype: 1 valid, 2 not; of a name with its prefix: 1 valid

cdef struct Table:
    Entry* entries          # entries[0] is unused
    uint32_t size
    uint32_t assigned       # the index assigned last
    uint32_t used           # the index used last

cdef struct Found:
    Quad quad
    int32_t fault           # >= 0: a reason; < -1: a quad of Python, number -2 - `fault`; else -1

# Where the terms of a statement are in its message.
cdef struct Part:
    uint32_t field
    const char* text
    const char* end


@cython.final
cdef class JellyReader(TermReader):
    cdef object troubles
    cdef str file
    cdef bint marked                # a frame is a message
    cdef readonly uint64_t frame    # the number of the frame begun last
    cdef readonly Py_ssize_t missing    # bytes of the frame at the end of the block that the block
                                        # lacks
    cdef EventBatch batch           # the batch of the terms below
    cdef bytes options              # the message of the stream's options; None: not read
    cdef tuple parsed               # its fields
    cdef int physical               # 1: triples, 2: quads, 3: graphs
    cdef Table names, prefixes, datatypes
    cdef Term slots[4]              # terms of the last statement
    cdef Term graph                 # of a stream of graphs
    cdef bint in_graph
    cdef list reasons, triples, quads
    cdef Found* found               # statements of the frame
    cdef uint32_t found_count, found_room, delivered
    cdef bint at_end                # the frame's statements are being delivered
    cdef uint64_t bytes_read        # of frames
    cdef uint64_t bytes_written     # of long terms and messages that tables and repetition make

    cdef int expand(self, size_t size) except -1 nogil
    cdef int move(self) except -1
    cdef int begin(self) except -1
    cdef int decode(self, const char* at, const char* end) except -1 nogil
    cdef int row(self, const char* at, const char* end, bint first) except -1 nogil
    cdef int read_options(self, const char* at, const char* end) except -1
    cdef int assign(self, Table* table, const char* at, const char* end) except -1 nogil
    cdef int statement(self, const char* at, const char* end, bint is_quad) except -1 nogil
    cdef int graph_start(self, const char* at, const char* end) except -1 nogil
    cdef int namespace(self, const char* at, const char* end) except -1 nogil
    cdef int term(
        self, uint32_t kind, const char* at, const char* end, bint wanted, Term* term
    ) except -1 nogil
    cdef int iri(self, const char* at, const char* end, Term* term) except -1 nogil
    cdef int label(self, const char* at, const char* end, Term* term) except -1 nogil
    cdef int literal(
        self, const char* at, const char* end, bint wanted, Term* term
    ) except -1 nogil
    cdef int triple_term(
        self, const char* at, const char* end, int depth, Term* term
    ) except -1 nogil
    cdef int settle(self) except -1 nogil
    cdef int enter_text(self, size_t size, Term* term) except -1 nogil
    cdef int add(self, Term* terms, const Term* graph, bint wanted, bint timing) except -1 nogil
    cdef int unusual(self, Found* found, Term* terms, const Term* graph) except -1
    cdef int make_triple(self, const Term* terms, Term* term) except -1
    cdef bint refuse(self, Term* term, object reason) except -1
    cdef object value(self, const Term* term)
    cdef int deliver(self, uint32_t most) except -1
