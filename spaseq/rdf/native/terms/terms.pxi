"""Records of terms, and hash tables from texts to term numbers.

A term is identified by its N-Quads text with escapes resolved; two terms are equal if and only if
their texts are. The text can be parsed unambiguously from its end, even if the lexical form
contains quotes: a plain literal ends in a quote, a typed one in `>`, and a language tag contains
neither. The text of a triple term begins with `<<(`, unlike that of any IRI; its object follows the
second space between the parts.

A table maps texts to term numbers by open addressing. The records are in one or several separate
stores, so one table can index the terms of several stores. Cost: constant per look-up.
"""

from libc.string cimport memset


cdef inline uint32_t store_new(TermStore* store) noexcept nogil:
    """The number of a new record, or 0 if there is no room; records may move."""
    if store.count == store.room and not store_grow(store):
        return 0
    store.count += 1
    return store.count - 1


cdef int store_init(TermStore* store) except -1 nogil:
    memset(store, 0, sizeof(TermStore))
    store.count = 1
    store.room = 64
    store.records = <TermRecord*>mem_alloc(store.room * sizeof(TermRecord))
    if store.records == NULL:
        with gil:
            raise MemoryError
    memset(store.records, 0, sizeof(TermRecord))
    return 0


cdef void store_free(TermStore* store) noexcept nogil:
    mem_free(store.records)
    store.records = NULL
    arena_free(&store.bytes)


cdef bint store_grow(TermStore* store) noexcept nogil:
    """Double the capacity; False if there is no memory or no term number left."""
    cdef TermRecord* moved
    if store.room > PLACE >> 1:
        return False
    moved = <TermRecord*>mem_realloc(store.records, 2 * <size_t>store.room * sizeof(TermRecord))
    if moved == NULL:
        return False
    store.records = moved
    store.room *= 2
    return True


cdef int slots_init(SlotTable* table, uint32_t capacity) except -1 nogil:
    """An empty table of `capacity` slots, a power of two."""
    table.slots = <Slot*>mem_alloc(capacity * sizeof(Slot))
    if table.slots == NULL:
        with gil:
            raise MemoryError
    table.mask = capacity - 1
    slots_clear(table)
    return 0


cdef void slots_free(SlotTable* table) noexcept nogil:
    mem_free(table.slots)
    table.slots = NULL


cdef void slots_clear(SlotTable* table) noexcept nogil:
    memset(table.slots, 0, (<size_t>table.mask + 1) * sizeof(Slot))
    table.used = 0


cdef int slots_grow(SlotTable* table) except -1 nogil:
    """Double the slots; to be called when half of them are used."""
    cdef Slot* old = table.slots
    cdef uint32_t i, count = table.mask + 1
    cdef uint32_t used = table.used
    table.slots = <Slot*>mem_alloc(2 * <size_t>count * sizeof(Slot))
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
    mem_free(old)
    return 0
