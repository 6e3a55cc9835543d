"""Small tables from terms of a batch to numbers; see _term_map.pyx."""

from libc.stdint cimport uint32_t

from spaseq.rdf._terms cimport term_t

cdef enum:
    MAP_SLOTS = 16      # of an empty table

cdef struct Mapped:
    term_t term         # 0: an empty slot
    uint32_t value

# Open addressing; never more than half full.
cdef struct TermMap:
    Mapped* slots
    uint32_t mask
    uint32_t used

cdef int map_resize(TermMap* map, uint32_t count) except -1 nogil
cdef Mapped* map_entry(TermMap* map, term_t term, uint32_t value) except NULL nogil
cdef void map_clear(TermMap* map) noexcept nogil


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
