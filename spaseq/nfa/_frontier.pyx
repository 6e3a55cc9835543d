# cython: language_level=3, boundscheck=False, wraparound=False
"""What is still to be followed inside a guarded unit: (place, instant, environment), once each.

Two ways that wait in one place since one instant with equal registers go on alike. Entries are
numbered as they come and are followed in that order. Cost: constant for each.
"""

from libc.string cimport memcpy, memset

from spaseq.rdf._memory cimport give_back, resized

cdef uint32_t NOWHERE = 0xFFFFFFFFu


cdef class Frontier:
    """The entries of one search; environments have `cells` terms."""

    def __cinit__(self, uint32_t cells):
        self.cells = cells

    def __dealloc__(self):
        give_back(self.places)
        give_back(self.lasts)
        give_back(self.values)
        give_back(self.heads)
        give_back(self.others)

    cdef int push(
        self, uint32_t place, instant_t last, const term_t* env, const uint32_t* live,
        uint32_t width,
    ) except -1:
        """A place that is waited in since an instant, unless that is known."""
        cdef uint32_t i, j, hash = _hash(place, last, env, live, width)
        cdef const term_t* other
        cdef bint same
        if self.count == self.room:
            self._grow()
        i = self.heads[hash & (self.room - 1)]
        while i != NOWHERE:
            if self.hashes[i] == hash and self.places[i] == place and self.lasts[i] == last:
                other = self.values + <size_t>i * self.cells
                same = True
                for j in range(width):
                    same &= other[live[j]] == env[live[j]]
                if same:
                    return 0
            i = self.others[i]
        i = self.count
        self.count += 1
        self.places[i], self.lasts[i], self.hashes[i] = place, last, hash
        memcpy(self.values + <size_t>i * self.cells, env, self.cells * sizeof(term_t))
        self.others[i] = self.heads[hash & (self.room - 1)]
        self.heads[hash & (self.room - 1)] = i
        return 0

    cdef int clear(self) noexcept:
        if self.count:
            memset(self.heads, 0xFF, self.room * sizeof(uint32_t))
        self.count = self.next = 0
        return 0

    cdef int _grow(self) except -1:
        cdef uint32_t i, head, room = 2 * self.room if self.room else 16
        self.places = <uint32_t*>_longer(self.places, room * sizeof(uint32_t))
        self.lasts = <instant_t*>_longer(self.lasts, room * sizeof(instant_t))
        self.hashes = <uint32_t*>_longer(self.hashes, room * sizeof(uint32_t))
        self.others = <uint32_t*>_longer(self.others, room * sizeof(uint32_t))
        self.heads = <uint32_t*>_longer(self.heads, room * sizeof(uint32_t))
        self.values = <term_t*>_longer(self.values, room * self.cells * sizeof(term_t))
        self.room = room
        memset(self.heads, 0xFF, room * sizeof(uint32_t))
        for i in range(self.count):
            head = self.hashes[i] & (room - 1)
            self.others[i] = self.heads[head]
            self.heads[head] = i
        return 0


cdef uint32_t _hash(
    uint32_t place, instant_t last, const term_t* env, const uint32_t* live, uint32_t width
) noexcept:
    cdef size_t hash = (place * 31 + <size_t>last) * 0x9E3779B97F4A7C15u
    cdef uint32_t i
    for i in range(width):
        hash = (hash ^ env[live[i]]) * 0x9E3779B97F4A7C15u
    return <uint32_t>(hash >> 32)


cdef void* _longer(void* block, size_t size) except NULL:
    cdef void* moved = resized(block, size)
    if moved == NULL:
        raise MemoryError("no room to look for what a guard forbids")
    return moved
