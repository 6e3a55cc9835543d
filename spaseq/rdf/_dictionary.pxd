"""The terms that outlive an event; see _dictionary.pyx."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from spaseq.rdf._memory cimport prefetch
from spaseq.rdf._terms cimport TermRecord, TermStore, term_t

cdef enum:
    LONGEST_NAME = 48   # bytes at the end of an IRI in which its local name is searched
    NEAR = 512          # words of hints that stay in the L1 cache: 4 KB


# An entry of the table of texts: a look-up reads a term's number, size and text in one place.
cdef struct Entry:
    term_t term
    uint32_t size       # bytes of the text, which follows the entry


cdef class Dictionary:
    cdef TermStore permanent
    cdef uint64_t* slots            # the permanent terms by text: see `slot_of`; 0 is empty
    cdef uint32_t slot_mask         # the number of slots, a power of two, minus one
    cdef uint64_t* hints            # a Bloom filter in front of `known`; see _dictionary.pyx
    cdef uint32_t hint_mask         # the number of its words, a power of two, minus one
    cdef uint64_t[8] families       # a bit for each family of terms, see `family_of`
    cdef list objects               # per permanent record: its pyoxigraph term, or None

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef void _put(self, uint64_t slot, uint64_t hash) noexcept nogil
    cdef int _grow_slots(self) except -1
    cdef int _grow_hints(self) except -1
    cdef term_t enter(self, bytes text) except 0
    cpdef term_t intern(self, object term) except 0
    cpdef object term(self, term_t number)


cdef inline void awaited(Dictionary dictionary, uint64_t hash) noexcept nogil:
    """Prefetch the hint for a term with this hash, which may be looked up next."""
    prefetch(&dictionary.hints[(hash >> 40) & dictionary.hint_mask])


cdef inline uint64_t hint_of(uint64_t hash) noexcept nogil:
    """Three bits of a word, from bits of the hash that most tables do not use."""
    return (
        (<uint64_t>1 << (hash >> 22 & 63))
        | (<uint64_t>1 << (hash >> 28 & 63))
        | (<uint64_t>1 << (hash >> 34 & 63))
    )


cdef inline uint32_t family_of(const char* text, uint32_t size) noexcept nogil:
    """The family of a term, one of 512: equal for literals of a datatype, and IRIs of a namespace.

    It is a hash of the end of the datatype, or of the last bytes of the namespace. All other terms
    of one kind have the same family.
    """
    cdef uint64_t end
    cdef uint32_t at = size - 1, least = 8
    if size < 10 or text[0] == c"_":
        return text[0]
    if text[0] == c"<":
        least = max(least, size - min(size, <uint32_t>LONGEST_NAME))
        while at > least and text[at] != c"/" and text[at] != c"#" and text[at] != c":":
            at -= 1
    elif text[at] != c">":
        return text[0]
    memcpy(&end, text + at - 7, 8)
    return <uint32_t>(end * 0x9E3779B97F4A7C15u >> 55)


cdef inline term_t permanent_of(
    Dictionary dictionary, uint64_t hash, const char* text, uint32_t size
) noexcept nogil:
    """The number of the permanent term with this text, or 0."""
    cdef uint64_t hint = hint_of(hash)
    cdef uint32_t family
    if dictionary.hint_mask >= NEAR:
        family = family_of(text, size)
        if not dictionary.families[family >> 6] >> (family & 63) & 1:
            return 0
        # Overlaps with the read of the hint, which suffices for most terms.
        prefetch(&dictionary.slots[<uint32_t>hash & dictionary.slot_mask])
    if dictionary.hints[(hash >> 40) & dictionary.hint_mask] & hint != hint:
        return 0
    return dictionary.search(hash, text, size)


cpdef bytes text_of(object term)
cpdef object term_of(bytes text, uint32_t lexical)
cdef object written_term(bytes text)
