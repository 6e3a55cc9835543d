"""Tables from terms of a batch to numbers, which are cleared and used again.

A table begins with no slots; `map_resize` gives it some. Cost: constant, amortised.
"""

from libc.string cimport memset

from spaseq.rdf.native._terms cimport mem_alloc, mem_free

cdef enum:
    MAP_SLOTS = 16      # of an empty table


cdef inline Mapped* map_slot(const TermMap* map, term_t term) noexcept nogil:
    """The slot of a term, or the empty one where it belongs."""
    cdef uint32_t place = (term * 0x9E3779B1u) >> 7 & map.mask
    while map.slots[place].term and map.slots[place].term != term:
        place = (place + 1) & map.mask
    return &map.slots[place]


cdef inline Mapped* map_find(const TermMap* map, term_t term) noexcept nogil:
    """The entry of a term; NULL: none."""
    cdef Mapped* entry
    if map.used == 0:
        return NULL
    entry = map_slot(map, term)
    return entry if entry.term else NULL


cdef enum:
    SPARSE = 1024       # a larger table that is nearly empty when it is cleared shrinks


cdef int map_resize(TermMap* map, uint32_t count) except -1 nogil:
    """Continue with a table of `count` slots, a power of two."""
    cdef Mapped* old = map.slots
    cdef uint32_t i, slots = map.mask + 1
    cdef Mapped* fresh = <Mapped*>mem_alloc(count * sizeof(Mapped))
    if fresh == NULL:
        with gil:
            raise MemoryError
    memset(fresh, 0, count * sizeof(Mapped))
    map.slots = fresh
    map.mask = count - 1
    if map.used:
        for i in range(slots):
            if old[i].term:
                map_slot(map, old[i].term)[0] = old[i]
    mem_free(old)
    return 0


cdef Mapped* map_entry(TermMap* map, term_t term, uint32_t value) except NULL nogil:
    """The entry of a term, which has `value` if it is new."""
    cdef Mapped* entry = map_slot(map, term)
    if entry.term:
        return entry
    if 2 * map.used >= map.mask:
        map_resize(map, 2 * (map.mask + 1))
        entry = map_slot(map, term)
    map.used += 1
    entry.term = term
    entry.value = value
    return entry


cdef void map_clear(TermMap* map) noexcept nogil:
    """Remove all entries. Cost: linear in the entries added since the last call, amortised."""
    if map.used == 0:
        return
    if map.mask >= SPARSE and 8 * map.used < map.mask:
        map.mask >>= 1      # the block keeps its size until the table grows again
    memset(map.slots, 0, (<size_t>map.mask + 1) * sizeof(Mapped))
    map.used = 0
