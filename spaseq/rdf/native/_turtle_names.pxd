"""Names of Turtle and TriG → terms; see _turtle_names.pyx."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf.native._nquads_terms cimport TermReader
from spaseq.rdf._terms cimport term_t

cdef struct Prefix:
    char* name
    size_t size
    char* iri
    size_t iri_size
    size_t root         # bytes of the scheme and the authority with its slash; 0: no path
    int before          # the prefix declared before it with the same hash; -1: none

# The last term of a spelling.
cdef struct Spelling:
    uint64_t hash
    const char* text
    size_t size
    term_t term         # 0: valid and not entered

cdef enum:
    MOST_TOKEN = 1 << 23    # bytes of an IRI, a name or a label; pyoxigraph judges longer ones
    SPELLINGS = 1024
    PREFIX_CHAINS = 64
    FEW_PREFIXES = 256      # up to which the chains are short


cdef class NameReader(TermReader):
    cdef Prefix* declared
    cdef uint32_t prefix_count, prefix_room
    cdef int chains[PREFIX_CHAINS]
    cdef int* many_chains       # of more than FEW_PREFIXES, by hash; NULL if there are fewer
    cdef uint32_t many_count    # a power of two
    cdef uint64_t bytes_read, bytes_written     # of the document, and of IRIs composed for it
    cdef str base
    cdef bytes folder, document     # what a simple path and a fragment are appended to, or None
    cdef const char* folder_text
    cdef const char* document_text
    cdef size_t folder_size, document_size
    cdef dict resolved          # unusual references against the base
    cdef Spelling spellings[SPELLINGS]

    cdef int forget(self) except -1
    cdef int chain_of(self, const char* text, size_t size) noexcept nogil
    cdef int spread(self) except -1
    cdef int compose(self, size_t size) except -1 nogil
    cdef int declare(self, bytes name, bytes iri) except -1
    cdef Prefix* prefix_of(self, const char* text, size_t size) noexcept nogil
    cdef term_t entered(self, const char* text, size_t size) except 0 nogil
    cdef bint iri(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil
    cdef bint relative(self, const char* text, size_t size, term_t* term) except -1 nogil
    cdef bint asked_reference(self, const char* text, size_t size, term_t* term) except -1 nogil
    cdef bint name(
        self, const char* text, size_t size, bint escaped, bint wanted, term_t* term
    ) except -1 nogil
