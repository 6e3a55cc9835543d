# cython: language_level=3, boundscheck=False, wraparound=False
"""Records of terms, and hash tables that find them by their text.

A term is its N-Quads text with the escapes resolved; two terms are equal exactly when their
texts are. That text can be read from its end without doubt, whatever quotes the lexical
form contains: a plain literal ends in a quote, a typed one in `>`, a tag has neither.

A table maps texts to term ids by open addressing; the records lie elsewhere, maybe in
several stores, so one table can find the terms of all of them. Cost: constant per look-up.
"""

from libc.string cimport memset

from spaseq.rdf._memory cimport arena_free, give_back, resized, take


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


cdef bint store_grow(TermStore* store) noexcept nogil:
    """Twice the room; whether there is memory, and a number, for a term more."""
    cdef TermRecord* moved
    if store.room > PLACE >> 1:
        return False
    moved = <TermRecord*>resized(store.records, 2 * <size_t>store.room * sizeof(TermRecord))
    if moved == NULL:
        return False
    store.records = moved
    store.room *= 2
    return True


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
