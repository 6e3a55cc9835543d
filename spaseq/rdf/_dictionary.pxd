"""The terms that outlive an event; see _dictionary.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._terms cimport TermRecord, TermStore, term_t

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define spaseq_prefetch(at) __builtin_prefetch(at)
    #else
    #define spaseq_prefetch(at) ((void)(at))
    #endif
    """
    void prefetch "spaseq_prefetch"(const void* at) noexcept nogil


# What the table of texts leads to: all that a look-up reads of a term lies together.
cdef struct Entry:
    term_t term
    uint32_t size       # bytes of the text, which lies behind this


cdef class Dictionary:
    cdef TermStore permanent
    cdef uint64_t* slots            # the permanent terms by text: see `slot_of`; 0 is empty
    cdef uint32_t slot_mask         # so many less one, a power of two
    cdef uint64_t* hints            # a Bloom filter in front of `known`; see _dictionary.pyx
    cdef uint32_t hint_mask         # its words, a power of two, less one
    cdef uint64_t[8] families       # a bit for each family of its terms
    cdef list objects               # per permanent record: its pyoxigraph term, or None

    cdef term_t find(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef void _put(self, uint64_t slot, uint64_t hash) noexcept nogil
    cdef int _grow_slots(self) except -1
    cdef int _grow_hints(self) except -1
    cdef term_t enter(self, bytes text) except 0
    cpdef term_t intern(self, object term) except 0
    cpdef object term(self, term_t number)


cdef inline void awaited(Dictionary dictionary, uint64_t hash) noexcept nogil:
    """A term with this hash may be looked for next: have what says so brought near."""
    prefetch(&dictionary.hints[(hash >> 40) & dictionary.hint_mask])


cpdef bytes text_of(object term)
cpdef object term_of(bytes text, uint32_t lexical)
cdef object written_term(bytes text)
