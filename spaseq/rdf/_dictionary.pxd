"""The terms that outlive an event; see _dictionary.pyx."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from spaseq.rdf._memory cimport prefetch
from spaseq.rdf._terms cimport TermRecord, TermStore, term_t

cdef extern from *:
    """
    /* A table of words. It is replaced as a whole when it grows, so that its mask and its words
       agree for a thread that reads it meanwhile. */
    typedef struct { uint64_t mask; uint64_t at[1]; } spaseq_words;

    static inline spaseq_words *spaseq_loaded(spaseq_words *const *place) {
        return __atomic_load_n(place, __ATOMIC_ACQUIRE);
    }
    static inline void spaseq_publish(spaseq_words **place, spaseq_words *table) {
        __atomic_store_n(place, table, __ATOMIC_RELEASE);
    }
    static inline uint64_t spaseq_word(const uint64_t *word) {
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    static inline void spaseq_set_word(uint64_t *word, uint64_t value) {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
    """
    ctypedef struct Words "spaseq_words":
        uint64_t mask           # the number of words, a power of two, minus one
        uint64_t* at
    Words* loaded "spaseq_loaded"(Words** place) noexcept nogil
    void publish "spaseq_publish"(Words** place, Words* table) noexcept nogil
    uint64_t word_at "spaseq_word"(const uint64_t* word) noexcept nogil
    void set_word "spaseq_set_word"(uint64_t* word, uint64_t value) noexcept nogil

cdef enum:
    LONGEST_NAME = 48   # bytes at the end of an IRI in which its local name is searched
    NEAR = 512          # words of hints that stay in the L1 cache: 4 KB


# An entry of the table of texts: a look-up reads a term's number, size and text in one place.
cdef struct Entry:
    term_t term
    uint32_t size       # bytes of the text, which follows the entry


cdef class Dictionary:
    cdef TermStore permanent
    cdef Words* slots               # the permanent terms by text: see `slot_of`; 0 is empty
    cdef Words* hints               # a Bloom filter in front of `slots`; see _dictionary.pyx
    cdef uint64_t[8] families       # a bit for each family of terms, see `family_of`
    cdef list objects               # per permanent record: its pyoxigraph term, or None
    cdef uint32_t readers           # the threads that look terms up meanwhile, see `share`
    cdef void** retired             # blocks that these threads may still read
    cdef uint32_t retired_count, retired_room

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef int _grow_slots(self) except -1
    cdef int _grow_hints(self) except -1
    cdef int _grow_records(self) except -1
    cdef int _retire(self, void* block) except -1
    cdef term_t enter(self, bytes text) except 0
    cpdef term_t intern(self, object term) except 0
    cpdef object term(self, term_t number)


cdef inline void awaited(Dictionary dictionary, uint64_t hash) noexcept nogil:
    """Prefetch the hint for a term with this hash, which may be looked up next."""
    cdef Words* hints = loaded(&dictionary.hints)
    prefetch(&hints.at[(hash >> 40) & hints.mask])


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
    cdef Words* hints = loaded(&dictionary.hints)
    cdef Words* slots
    cdef uint32_t family
    if hints.mask >= NEAR:
        family = family_of(text, size)
        if not word_at(&dictionary.families[family >> 6]) >> (family & 63) & 1:
            return 0
        # Overlaps with the read of the hint, which suffices for most terms.
        slots = loaded(&dictionary.slots)
        prefetch(&slots.at[<uint32_t>hash & slots.mask])
    if word_at(&hints.at[(hash >> 40) & hints.mask]) & hint != hint:
        return 0
    return dictionary.search(hash, text, size)


cpdef bytes text_of(object term)
cpdef object term_of(bytes text, uint32_t lexical)
cdef object written_term(bytes text)
