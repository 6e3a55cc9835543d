# cython: language_level=3, boundscheck=False, wraparound=False
"""Which graphs are complete: the names of the last 65,536 that were closed, and no more.

Memory must not grow with the stream, so the oldest name is forgotten for the newest. Names
are told apart by their texts, which lie in a ring of bytes in the order they came; a table
of chains finds them by hash. Nearly every name that is asked for is new, so two small maps
of bits, which stay in the processor's cache, answer first. Cost: constant per name; memory
grows with the names held, to some megabytes.
"""

cimport cython
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf._memory cimport give_back, resized, take

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define spaseq_prefetch(place) __builtin_prefetch(place)
    #else
    #define spaseq_prefetch(place) ((void)(place))
    #endif
    """
    void prefetch "spaseq_prefetch"(const void* place) noexcept nogil

cdef enum:
    FEWEST = 256
    REMEMBERED = 65536
    WORDS = 8192            # of a map: 8 bits per name
    NONE = 0xFFFFFFFFu


@cython.final
cdef class ClosedNames:
    """A set of names that forgets the oldest."""

    def __cinit__(self):
        self.capacity = FEWEST
        self.room = 64 * FEWEST
        self.entries = <Entry*>take(FEWEST * sizeof(Entry))
        self.heads = <uint32_t*>take(2 * FEWEST * sizeof(uint32_t))
        self.bytes = <char*>take(self.room)
        self.recent = <uint64_t*>take(WORDS * sizeof(uint64_t))
        self.older = <uint64_t*>take(WORDS * sizeof(uint64_t))
        if (
            self.entries == NULL or self.heads == NULL or self.bytes == NULL
            or self.recent == NULL or self.older == NULL
        ):
            raise MemoryError
        memset(self.recent, 0, WORDS * sizeof(uint64_t))
        memset(self.older, 0, WORDS * sizeof(uint64_t))
        for i in range(2 * FEWEST):
            self.heads[i] = NONE

    def __dealloc__(self):
        give_back(self.entries)
        give_back(self.heads)
        give_back(self.bytes)
        give_back(self.recent)
        give_back(self.older)

    def __len__(self):
        return self.count

    cdef bint holds(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil:
        cdef uint32_t word = <uint32_t>(hash >> 38) & (WORDS - 1)
        cdef uint64_t bit = <uint64_t>1 << (hash >> 32 & 63)
        cdef uint32_t place
        cdef Entry* entry
        # This is where `add` will enter the name a little later.
        prefetch(&self.heads[hash & (2 * self.capacity - 1)])
        if not (self.recent[word] | self.older[word]) & bit:
            return False
        place = self.heads[hash & (2 * self.capacity - 1)]
        while place != NONE:
            entry = &self.entries[place]
            if entry.hash == hash and entry.size == size:
                if memcmp(self.bytes + entry.offset, text, size) == 0:
                    return True
            place = entry.next
        return False

    cdef int add(self, uint64_t hash, const char* text, uint32_t size) except -1 nogil:
        """Enter a name that is not held."""
        cdef uint32_t place, chain
        if self.count == self.capacity:
            if self.capacity < REMEMBERED:
                self._widen()
            else:
                self._forget()
        self._make_room(size)
        place = (self.oldest + self.count) & (self.capacity - 1)
        chain = <uint32_t>hash & (2 * self.capacity - 1)
        memcpy(self.bytes + self.write, text, size)
        self.entries[place].hash = hash
        self.entries[place].offset = self.write
        self.entries[place].size = size
        self.entries[place].next = self.heads[chain]
        self.heads[chain] = place
        self.write += size
        self.count += 1
        self._mark(hash)
        return 0

    cdef void _mark(self, uint64_t hash) noexcept nogil:
        """Note a name in the map of the recent ones."""
        if self.turn == REMEMBERED:
            self.turn = 0
            self.recent, self.older = self.older, self.recent
            memset(self.recent, 0, WORDS * sizeof(uint64_t))
        self.turn += 1
        self.recent[<uint32_t>(hash >> 38) & (WORDS - 1)] |= <uint64_t>1 << (hash >> 32 & 63)

    cdef int _widen(self) except -1 nogil:
        """Twice the capacity; nothing has been forgotten so far, so `oldest` is 0."""
        cdef uint32_t i, chain
        cdef Entry* entries = <Entry*>resized(
            self.entries, 2 * <size_t>self.capacity * sizeof(Entry)
        )
        if entries != NULL:
            self.entries = entries
        cdef uint32_t* heads = <uint32_t*>take(4 * <size_t>self.capacity * sizeof(uint32_t))
        if entries == NULL or heads == NULL:
            give_back(heads)
            with gil:
                raise MemoryError
        give_back(self.heads)
        self.heads = heads
        self.capacity *= 2
        for i in range(2 * self.capacity):
            heads[i] = NONE
        for i in range(self.count):
            chain = <uint32_t>entries[i].hash & (2 * self.capacity - 1)
            entries[i].next = heads[chain]
            heads[chain] = i
        return 0

    cdef void _forget(self) noexcept nogil:
        """Drop the oldest name."""
        cdef uint32_t* link = &self.heads[
            self.entries[self.oldest].hash & (2 * self.capacity - 1)
        ]
        while link[0] != self.oldest:
            link = &self.entries[link[0]].next
        link[0] = self.entries[self.oldest].next
        self.oldest = (self.oldest + 1) & (self.capacity - 1)
        self.count -= 1
        # The next to be forgotten lies somewhere else in the table.
        prefetch(&self.heads[self.entries[self.oldest].hash & (2 * self.capacity - 1)])

    cdef int _make_room(self, uint32_t size) except -1 nogil:
        """See to it that `size` bytes can be written at `write`."""
        cdef size_t tail, room, filled = 0
        cdef uint32_t i, place
        cdef char* moved
        if self.count == 0:
            self.write = 0
        tail = self.entries[self.oldest].offset if self.count else 0
        if self.count == 0 or self.write > tail:
            # The texts are in one piece, tail to write.
            if self.room - self.write >= size:
                return 0
            if size < tail:
                self.write = 0
                return 0
        elif tail - self.write > size:
            return 0
        room = 2 * self.room + size
        moved = <char*>take(room)
        if moved == NULL:
            with gil:
                raise MemoryError
        for i in range(self.count):
            place = (self.oldest + i) & (self.capacity - 1)
            memcpy(moved + filled, self.bytes + self.entries[place].offset, self.entries[place].size)
            self.entries[place].offset = filled
            filled += self.entries[place].size
        give_back(self.bytes)
        self.bytes = moved
        self.room = room
        self.write = filled
        return 0
