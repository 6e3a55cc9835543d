"""The frontier of a search inside a guarded unit.

Its entries are distinct by place, last instant, its time, and registers: two paths that agree in
these continue alike. Entries are numbered in order of insertion and followed in that order. Cost:
constant for each.
"""

from libc.string cimport memcpy

from spaseq.rdf.native._terms cimport mem_free, mem_grow

cdef const char* FOR_FRONTIER = b"what a guard looks for"


cdef uint32_t _hash(
    uint32_t place, instant_t last, const term_t* env, const uint32_t* live, uint32_t width
) noexcept nogil:
    cdef size_t hash = (place * 31 + <size_t>last) * 0x9E3779B97F4A7C15u
    cdef uint32_t i
    for i in range(width):
        hash = (hash ^ env[live[i]]) * 0x9E3779B97F4A7C15u
    return <uint32_t>(hash >> 32)


cdef int _grow_frontier(Frontier* entries) except -1 nogil:
    cdef uint32_t i, head, room = 2 * entries.room if entries.room else 16
    entries.places = <uint32_t*>mem_grow(entries.places, room, sizeof(uint32_t), FOR_FRONTIER)
    entries.lasts = <instant_t*>mem_grow(entries.lasts, room, sizeof(instant_t), FOR_FRONTIER)
    entries.micros = <int64_t*>mem_grow(entries.micros, room, sizeof(int64_t), FOR_FRONTIER)
    entries.hashes = <uint32_t*>mem_grow(entries.hashes, room, sizeof(uint32_t), FOR_FRONTIER)
    entries.others = <uint32_t*>mem_grow(entries.others, room, sizeof(uint32_t), FOR_FRONTIER)
    entries.heads = <uint32_t*>mem_grow(entries.heads, room, sizeof(uint32_t), FOR_FRONTIER)
    entries.values = <term_t*>mem_grow(
        entries.values, room, entries.cells * sizeof(term_t), FOR_FRONTIER
    )
    entries.room = room
    memset(entries.heads, 0xFF, room * sizeof(uint32_t))
    for i in range(entries.count):
        head = entries.hashes[i] & (room - 1)
        entries.others[i] = entries.heads[head]
        entries.heads[head] = i
    return 0


cdef int frontier_push(
    Frontier* entries, uint32_t place, instant_t last, int64_t micros, const term_t* env,
    const uint32_t* live, uint32_t width,
) except -1 nogil:
    """Add an entry, unless there is an equal one."""
    cdef uint32_t i, j, hash = _hash(place, last, env, live, width)
    cdef const term_t* other
    cdef bint same
    if entries.count == entries.room:
        _grow_frontier(entries)
    i = entries.heads[hash & (entries.room - 1)]
    while i != NIL:
        if entries.hashes[i] == hash and entries.places[i] == place and (
            entries.lasts[i] == last and entries.micros[i] == micros
        ):
            other = entries.values + <size_t>i * entries.cells
            same = True
            for j in range(width):
                same &= other[live[j]] == env[live[j]]
            if same:
                return 0
        i = entries.others[i]
    i = entries.count
    entries.count += 1
    entries.places[i], entries.hashes[i] = place, hash
    entries.lasts[i], entries.micros[i] = last, micros
    memcpy(entries.values + <size_t>i * entries.cells, env, entries.cells * sizeof(term_t))
    entries.others[i] = entries.heads[hash & (entries.room - 1)]
    entries.heads[hash & (entries.room - 1)] = i
    return 0


cdef int frontier_clear(Frontier* entries) noexcept nogil:
    if entries.count:
        memset(entries.heads, 0xFF, entries.room * sizeof(uint32_t))
    entries.count = entries.next = 0
    return 0


cdef int frontier_free(Frontier* entries) noexcept nogil:
    """Free the arrays of a frontier, not the frontier itself."""
    mem_free(entries.places)
    mem_free(entries.lasts)
    mem_free(entries.micros)
    mem_free(entries.values)
    mem_free(entries.hashes)
    mem_free(entries.heads)
    mem_free(entries.others)
    return 0
