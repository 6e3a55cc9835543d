# cython: language_level=3, boundscheck=False, wraparound=False
"""Records of terms, and hash tables that find them by their text.

A term is its N-Quads text with the escapes resolved; two terms are equal exactly when their
texts are. That text can be read from its end without doubt, whatever quotes the lexical
form contains: a plain literal ends in a quote, a typed one in `>`, a tag has neither.

A table maps texts to term ids by open addressing; the records lie elsewhere, maybe in
several stores, so one table can find the terms of all of them. Cost: constant per look-up.
"""

from libc.string cimport memset

cdef extern from *:
    """
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif

    /* Where the last quote of a text stands that has one. */
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
    """
    uint32_t last_quote "spaseq_last_quote"(const char* text, uint32_t size) noexcept nogil

from spaseq.rdf._memory cimport arena_free, give_back, resized, take
from spaseq.rdf._values cimport Kind


cdef int store_init(TermStore* store) except -1 nogil:
    memset(store, 0, sizeof(TermStore))
    store.count = 1
    store.room = 64
    store.records = <TermRecord*>take(store.room * sizeof(TermRecord))
    if store.records == NULL:
        with gil:
            raise MemoryError
    memset(store.records, 0, sizeof(TermRecord))
    return 0


cdef void store_free(TermStore* store) noexcept nogil:
    give_back(store.records)
    store.records = NULL
    arena_free(&store.bytes)


cdef uint32_t store_new(TermStore* store) noexcept nogil:
    """The number of a new record, 0 where there is no room; records may have moved."""
    cdef TermRecord* moved
    cdef uint32_t number = store.count
    if number == store.room:
        if number > PLACE >> 1:
            return 0
        moved = <TermRecord*>resized(store.records, 2 * <size_t>number * sizeof(TermRecord))
        if moved == NULL:
            return 0
        store.records = moved
        store.room = 2 * number
    store.count = number + 1
    return number


cdef int slots_init(SlotTable* table, uint32_t capacity) except -1 nogil:
    """An empty table of `capacity` slots, a power of two."""
    table.slots = <Slot*>take(capacity * sizeof(Slot))
    if table.slots == NULL:
        with gil:
            raise MemoryError
    table.mask = capacity - 1
    slots_clear(table)
    return 0


cdef void slots_free(SlotTable* table) noexcept nogil:
    give_back(table.slots)
    table.slots = NULL


cdef void slots_clear(SlotTable* table) noexcept nogil:
    memset(table.slots, 0, (<size_t>table.mask + 1) * sizeof(Slot))
    table.used = 0


cdef void record_shape(TermRecord* record) noexcept nogil:
    """Set `lexical` and `kind` from the text; a typed literal stays UNDECODED."""
    cdef const char* text = record.text
    cdef uint32_t end = record.size
    if text[0] == c'<':
        record.kind = Kind.IRI
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


cdef int slots_grow(SlotTable* table) except -1 nogil:
    """Twice the slots; call it when half of them are used."""
    cdef Slot* old = table.slots
    cdef uint32_t i, count = table.mask + 1
    cdef uint32_t used = table.used
    table.slots = <Slot*>take(2 * <size_t>count * sizeof(Slot))
    if table.slots == NULL:
        table.slots = old
        with gil:
            raise MemoryError
    table.mask = 2 * count - 1
    slots_clear(table)
    for i in range(count):
        if old[i].term:
            slots_put(table, old[i].tag, old[i].term)
    table.used = used
    give_back(old)
    return 0
