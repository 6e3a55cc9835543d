"""Term numbers, the records of terms, and hash tables of terms; see _terms.pyx."""

from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from spaseq.rdf._memory cimport Arena
from spaseq.rdf._values cimport Kind

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif
    typedef __int128 spaseq_int128;

    static inline uint64_t spaseq_mix(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    /* A hash of some bytes: multiply and fold, sixteen at a time. */
    static inline uint64_t spaseq_hash(const char *text, size_t size) {
        const uint64_t k0 = 0x2d358dccaa6c78a5ULL, k1 = 0x8bb84b93962eacc9ULL;
        uint64_t seed = k0 ^ size, a = 0, b = 0;
        while (size > 16) {
            memcpy(&a, text, 8);
            memcpy(&b, text + 8, 8);
            seed = spaseq_mix(a ^ k1, b ^ seed);
            text += 16;
            size -= 16;
        }
        a = b = 0;
        if (size >= 8) {
            memcpy(&a, text, 8);
            memcpy(&b, text + size - 8, 8);
        } else if (size >= 4) {
            uint32_t low, high;
            memcpy(&low, text, 4);
            memcpy(&high, text + size - 4, 4);
            a = low;
            b = high;
        } else if (size) {
            a = ((uint64_t)(uint8_t)text[0] << 16) | ((uint64_t)(uint8_t)text[size >> 1] << 8)
                | (uint8_t)text[size - 1];
        }
        return spaseq_mix(k1 ^ size, spaseq_mix(a ^ k1, b ^ seed));
    }

    /* The offset of the last quote of a text, which must have one. */
    static inline uint32_t spaseq_last_quote(const char *text, uint32_t size) {
    #ifdef __SSE2__
        const __m128i quote = _mm_set1_epi8('"');
        while (size >= 16) {
            unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(
                _mm_loadu_si128((const __m128i *)(text + size - 16)), quote));
            if (found)
                return size - 16 + (31 - (uint32_t)__builtin_clz(found));
            size -= 16;
        }
    #endif
        while (text[size - 1] != '"')
            size--;
        return size - 1;
    }

    /* Copy the terms of a row: most rows are short, and a call would cost more than the copies.
       Terms are copied one by one, since a wide load of words just written separately stalls. */
    static inline void spaseq_copy_row(uint32_t *to, const uint32_t *from, uint32_t width) {
        if (width > 4) {
            memcpy(to, from, width * sizeof(uint32_t));
        } else if (width) {
            to[0] = from[0];
            if (width > 1) {
                to[1] = from[1];
                if (width > 2) {
                    to[2] = from[2];
                    if (width > 3)
                        to[3] = from[3];
                }
            }
        }
    }
    """
    ctypedef long long int128 "spaseq_int128"   # 128 bits, whatever Cython believes
    uint64_t hash_of "spaseq_hash"(const char* text, size_t size) noexcept nogil
    uint32_t last_quote "spaseq_last_quote"(const char* text, uint32_t size) noexcept nogil

# A term number. 0 is no term (unbound). The highest bits say which store has the term's record:
ctypedef uint32_t term_t
cdef enum:
    LOCAL = 0x80000000u         # one event batch
    WINDOWED = 0x40000000u      # the window's terms of a dictionary
    PLACE = 0x3FFFFFFFu         # mask of the record's number; neither bit set: permanent
    NUMERAL = 0x20000000u       # with WINDOWED: a numeral without a record, see _numerals.pyx;
                                # no store has that many records

cdef enum:
    FIRST_PART = 4              # bytes before the subject of a triple term
    PARTS_END = 4               # bytes after its object

cdef enum:
    UNDECODED = 100             # the kind of a typed literal that is not yet decoded
    NO_ZONE = 32767

# The part of a value that depends on its kind.
cdef union Further:
    double real         # FLOAT, DOUBLE: the value; DECIMAL, WIDE: the nearest double
    int64_t months      # SPAN

cdef struct TermRecord:
    uint64_t hash       # of text[:size]
    const char* text    # as in N-Quads, escapes resolved: <iri>, _:label, "form", "form"@tag,
                        # "form"^^<datatype>, <<( s p o )>>; tags in lower case, never
                        # ^^xsd:string, one space between the parts of a triple term
    uint32_t size       # bytes of text
    uint32_t lexical    # bytes of the IRI, label or lexical form alone
    uint8_t kind        # a Kind of _values, or UNDECODED
    uint8_t form        # POINT, SPAN: which datatype (see _literals.pxd)
    int16_t zone        # POINT: minutes, or NO_ZONE
    uint32_t epoch      # windowed terms: the epoch that last used the term; terms of a batch:
                        # their last number in the window
    uint64_t given      # the stamp of that number, see WindowTerms; 0: none, or freed
    Further further
    int128 exact        # BOOLEAN, INTEGER: the number; DECIMAL: times 10**18; else attoseconds

cdef extern from *:
    void copy_row "spaseq_copy_row"(term_t* to, const term_t* row, uint32_t width) noexcept nogil

# Invariant: records[0] is unused, so that no term has the number 0.
cdef struct TermStore:
    TermRecord* records     # records[1:count]; growth moves them
    uint32_t count
    uint32_t room
    Arena bytes             # texts that are in no other buffer

cdef struct Slot:
    uint32_t tag        # the lower half of the hash; tag & mask is the start of the probe sequence
    term_t term         # 0: empty

cdef struct SlotTable:
    Slot* slots         # mask + 1 of them, never more than half full
    uint32_t mask
    uint32_t used

cdef extern from *:
    """
    /* Other threads may read the records of permanent terms; see _dictionary.pyx. */
    #define spaseq_records(store) __atomic_load_n(&(store)->records, __ATOMIC_RELAXED)
    #define spaseq_publish_records(store, made) \\
        __atomic_store_n(&(store)->records, made, __ATOMIC_RELEASE)
    """
    TermRecord* shared_records "spaseq_records"(TermStore* store) noexcept nogil
    void publish_records "spaseq_publish_records"(
        TermStore* store, TermRecord* records
    ) noexcept nogil

cdef int store_init(TermStore* store) except -1 nogil
cdef void store_free(TermStore* store) noexcept nogil
cdef bint store_grow(TermStore* store) noexcept nogil
cdef int slots_init(SlotTable* table, uint32_t capacity) except -1 nogil
cdef void slots_free(SlotTable* table) noexcept nogil
cdef void slots_clear(SlotTable* table) noexcept nogil
cdef int slots_grow(SlotTable* table) except -1 nogil


cdef inline uint32_t store_new(TermStore* store) noexcept nogil:
    """The number of a new record, or 0 if there is no room; records may move."""
    if store.count == store.room and not store_grow(store):
        return 0
    store.count += 1
    return store.count - 1


cdef inline bint record_is(
    const TermRecord* record, uint64_t hash, const char* text, uint32_t size
) noexcept nogil:
    return record.hash == hash and record.size == size and memcmp(record.text, text, size) == 0


cdef inline bint is_triple(const char* text) noexcept nogil:
    """Whether the text of a term is that of a triple term."""
    return text[0] == c"<" and text[1] == c"<"


cdef inline uint32_t second_part(const char* text) noexcept nogil:
    """Where the predicate of a triple term begins; the subject begins at `FIRST_PART`.

    Subjects and predicates have no spaces: they are IRIs and blank nodes.
    """
    cdef uint32_t at = FIRST_PART
    while text[at] != c" ":
        at += 1
    return at + 1


cdef inline uint32_t third_part(const char* text, uint32_t second) noexcept nogil:
    """Where the object of a triple term begins; it ends `PARTS_END` bytes before the end."""
    cdef uint32_t at = second
    while text[at] != c" ":
        at += 1
    return at + 1


cdef inline bint has_blank(const char* text, uint32_t size) noexcept nogil:
    """Whether a term is a blank node, or a triple term with one."""
    cdef uint32_t third
    while is_triple(text):
        if text[FIRST_PART] == c"_":
            return True
        third = third_part(text, second_part(text))
        text += third
        size -= third + PARTS_END
    return text[0] == c"_"


cdef inline void record_shape(TermRecord* record) noexcept nogil:
    """Set `lexical` and `kind` from the text; a typed literal stays UNDECODED."""
    cdef const char* text = record.text
    cdef uint32_t end = record.size
    if text[0] == c'<':
        record.kind = Kind.TRIPLE if is_triple(text) else Kind.IRI
        record.lexical = end - 2
    elif text[0] == c'_':
        record.kind = Kind.BLANK
        record.lexical = end - 2
    elif text[end - 1] == c'"':
        record.kind = Kind.STRING
        record.lexical = end - 2
    else:
        record.kind = UNDECODED if text[end - 1] == c'>' else Kind.LANG
        record.lexical = last_quote(text, end) - 1


cdef inline void slots_put(SlotTable* table, uint32_t tag, term_t term) noexcept nogil:
    """Insert a term whose text is not in the table; there must be room."""
    cdef uint32_t place = tag & table.mask
    while table.slots[place].term:
        place = (place + 1) & table.mask
    slots_put_at(table, place, tag, term)


cdef inline void slots_put_at(
    SlotTable* table, uint32_t place, uint32_t tag, term_t term
) noexcept nogil:
    """As `slots_put`, at the empty slot that `slots_next` has reached in the unchanged table."""
    cdef Slot* slot = &table.slots[place & table.mask]
    slot.tag, slot.term = tag, term
    table.used += 1


cdef inline term_t slots_next(const SlotTable* table, uint32_t tag, uint32_t* place) noexcept nogil:
    """The next term with this tag, or 0; `place` starts as the tag."""
    cdef const Slot* slot
    while True:
        slot = &table.slots[place[0] & table.mask]
        if slot.term == 0:
            return 0
        place[0] += 1
        if slot.tag == tag:
            return slot.term


cdef inline void slots_remove(SlotTable* table, uint32_t tag, term_t term) noexcept nogil:
    """Remove a term that is in the table, by backward-shift deletion."""
    cdef uint32_t gap = tag & table.mask
    cdef uint32_t place
    while table.slots[gap].term != term:
        gap = (gap + 1) & table.mask
    place = (gap + 1) & table.mask
    while table.slots[place].term:
        # It may move to the gap if that is within its probe sequence.
        if ((place - table.slots[place].tag) & table.mask) >= ((place - gap) & table.mask):
            table.slots[gap] = table.slots[place]
            gap = place
        place = (place + 1) & table.mask
    table.slots[gap].term = 0
    table.used -= 1
