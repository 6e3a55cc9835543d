"""The complete graphs of a stream: the names of the last 65,536 that were closed.

The set is bounded, since memory must not grow with the stream: the newest name evicts the oldest.
Names are compared by their texts. The texts are in a ring of bytes in the order of insertion,
without the prefix that most names of a stream share. Hash chains find them, as in a Lempel-Ziv
compressor: a chain leads from newer names to older ones and ends at the first evicted name, so an
eviction changes no chain. Nearly every name looked up is new, so two small bit maps, which stay in
the processor's cache, answer first.

Invariant: the names in the set have the positions `next - count` to `next - 1`, modulo 2**32. A
chain entry of an evicted name may lead to a name of another chain, but never skips a name of its
own chain that is in the set. Cost: constant per name. Memory grows with the names in the set, up to
two megabytes plus the texts, which are limited to 4 GiB.
"""

cimport cython
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf.native._terms cimport hash_of, mem_alloc, mem_free, mem_realloc, prefetch

cdef enum:
    FEWEST = 256
    TIMES = 16              # growth of the capacity; untouched memory has no pages
    REMEMBERED = 65536      # names: the greatest capacity
    WORDS = 8192            # of a bit map: 8 bits per name
    SHORTENED = 0x80000000u     # flag in the size of an entry: its text lacks the prefix
    MOST_BYTES = 0xFFFFFFFFu


@cython.final
cdef class ClosedNames:
    """A set of names that evicts the oldest."""

    def __cinit__(self):
        self.capacity = FEWEST
        self.room = 16 * FEWEST
        self.next = 1
        self.entries = <Entry*>mem_alloc(FEWEST * sizeof(Entry))
        self.heads = <uint32_t*>mem_alloc(2 * FEWEST * sizeof(uint32_t))
        self.bytes = <char*>mem_alloc(self.room)
        self.recent = <uint64_t*>mem_alloc(WORDS * sizeof(uint64_t))
        self.older = <uint64_t*>mem_alloc(WORDS * sizeof(uint64_t))
        if (
            self.entries == NULL or self.heads == NULL or self.bytes == NULL
            or self.recent == NULL or self.older == NULL
        ):
            raise MemoryError
        memset(self.recent, 0, WORDS * sizeof(uint64_t))
        memset(self.older, 0, WORDS * sizeof(uint64_t))
        memset(self.heads, 0, 2 * FEWEST * sizeof(uint32_t))

    def __dealloc__(self):
        mem_free(self.entries)
        mem_free(self.heads)
        mem_free(self.bytes)
        mem_free(self.recent)
        mem_free(self.older)
        mem_free(self.beginning)

    def __len__(self):
        return self.count

    def py_holds(self, bytes name not None):
        """Whether a name is in the set; for tests."""
        return self.find(hash_of(name, len(name)), name, <uint32_t>len(name)) != NULL

    def py_add(self, bytes name not None):
        """Insert a name that is not in the set; for tests."""
        self.add(hash_of(name, len(name)), name, <uint32_t>len(name), 0, 0)

    cdef void expect(self, uint64_t hash) noexcept nogil:
        """Prefetch what `find` and `add` will read for a name with this hash."""
        cdef uint32_t word = <uint32_t>(hash >> 38) & (WORDS - 1)
        prefetch(&self.recent[word])
        prefetch(&self.older[word])
        prefetch(&self.heads[<uint32_t>hash & (2 * self.capacity - 1)])

    cdef const Entry* find(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil:
        """The entry of a name, valid until the next `add`; NULL: the name is not in the set."""
        cdef uint32_t word = <uint32_t>(hash >> 38) & (WORDS - 1)
        cdef uint64_t bit = <uint64_t>1 << (hash >> 32 & 63)
        cdef uint32_t position, age, last = 0
        cdef Entry* entry
        if not (self.recent[word] | self.older[word]) & bit:
            return NULL
        if self._begins(text, size):
            text += self.beginning_size
            size = (size - self.beginning_size) | SHORTENED
        position = self.heads[<uint32_t>hash & (2 * self.capacity - 1)]
        while True:
            age = self.next - position
            if age <= last or age > self.count:
                return NULL
            entry = &self.entries[(position - 1) & (self.capacity - 1)]
            if entry.tag == <uint32_t>hash and entry.size == size:
                if memcmp(self.bytes + entry.offset, text, size & ~SHORTENED) == 0:
                    return entry
            last = age
            position = entry.before

    cdef bint _begins(self, const char* text, uint32_t size) noexcept nogil:
        """Whether the name has the common prefix, and more."""
        return (
            self.beginning_size != 0 and size > self.beginning_size
            and memcmp(text, self.beginning, self.beginning_size) == 0
        )

    cdef int add(
        self, uint64_t hash, const char* text, uint32_t size, uint64_t line, uint32_t file
    ) except -1 nogil:
        """Insert a name that is not in the set, and where its graph began."""
        cdef uint32_t chain, shortened = 0
        cdef Entry* entry
        if self.beginning == NULL:
            self._begin(text, size)
        if self._begins(text, size):
            text += self.beginning_size
            size -= self.beginning_size
            shortened = SHORTENED
        if self.count == self.capacity:
            if self.capacity < REMEMBERED:
                self._widen()
            else:
                self._forget()
        while self.held + size > MOST_BYTES:
            self._forget()
        self._make_room(size)
        memcpy(self.bytes + self.write, text, size)
        chain = <uint32_t>hash & (2 * self.capacity - 1)
        entry = &self.entries[(self.next - 1) & (self.capacity - 1)]
        entry.tag = <uint32_t>hash
        entry.offset = <uint32_t>self.write
        entry.size = size | shortened
        entry.before = self.heads[chain]
        entry.line = <uint32_t>min(line, <uint64_t>0xFFFFFFFFu)
        entry.file = file
        self.heads[chain] = self.next
        self.next += 1
        self.count += 1
        self.write += size
        self.held += size
        self._mark(hash)
        return 0

    cdef int _begin(self, const char* text, uint32_t size) except -1 nogil:
        """Set the common prefix: the first name up to its last `/`, `#` or `:`."""
        cdef uint32_t end = size
        while end and text[end - 1] != c"/" and text[end - 1] != c"#" and text[end - 1] != c":":
            end -= 1
        self.beginning = <char*>mem_alloc(end + 1)
        if self.beginning == NULL:
            with gil:
                raise MemoryError
        memcpy(self.beginning, text, end)
        self.beginning_size = end
        return 0

    cdef void _mark(self, uint64_t hash) noexcept nogil:
        """Set the bit of a name in the map of recent names."""
        if self.turn == REMEMBERED:
            self.turn = 0
            self.recent, self.older = self.older, self.recent
            memset(self.recent, 0, WORDS * sizeof(uint64_t))
        self.turn += 1
        self.recent[<uint32_t>(hash >> 38) & (WORDS - 1)] |= <uint64_t>1 << (hash >> 32 & 63)

    cdef void _forget(self) noexcept nogil:
        """Evict the oldest name."""
        self.held -= self._oldest(0).size & ~SHORTENED
        self.count -= 1

    cdef Entry* _oldest(self, uint32_t i) noexcept nogil:
        """The entry of the `i`-th name after the oldest."""
        return &self.entries[(self.next - self.count + i - 1) & (self.capacity - 1)]

    cdef int _widen(self) except -1 nogil:
        """Grow the capacity. No name has been evicted so far, so positions begin at 1."""
        cdef uint32_t position, chain
        cdef Entry* entries = <Entry*>mem_realloc(
            self.entries, TIMES * <size_t>self.capacity * sizeof(Entry)
        )
        if entries != NULL:
            self.entries = entries
        cdef uint32_t* heads = <uint32_t*>mem_realloc(
            self.heads, 2 * TIMES * <size_t>self.capacity * sizeof(uint32_t)
        )
        if heads != NULL:
            self.heads = heads
        if entries == NULL or heads == NULL:
            with gil:
                raise MemoryError
        self.capacity *= TIMES
        memset(heads, 0, 2 * <size_t>self.capacity * sizeof(uint32_t))
        for position in range(1, self.count + 1):
            chain = entries[position - 1].tag & (2 * self.capacity - 1)
            entries[position - 1].before = heads[chain]
            heads[chain] = position
        return 0

    cdef int _make_room(self, uint32_t size) except -1 nogil:
        """Make room for `size` bytes at `write`."""
        cdef size_t tail, room, filled = 0
        cdef uint32_t i
        cdef Entry* entry
        cdef char* moved
        if self.count == 0:
            self.write = 0
        tail = self._oldest(0).offset if self.count else 0
        if self.count == 0 or self.write > tail:
            # The texts are one piece, from `tail` to `write`.
            if self.room - self.write >= size:
                return 0
            if size < tail:
                self.write = 0
                return 0
        elif tail - self.write > size:
            return 0
        room = 2 * self.room + size
        if self.count >= FEWEST:
            # Room for REMEMBERED names of the average size so far.
            room = max(room, self.held // self.count * (REMEMBERED + REMEMBERED // 8))
        room = min(room, <size_t>MOST_BYTES)
        if self.write > tail == 0:
            # No text moves within the ring, so it is grown in place.
            moved = <char*>mem_realloc(self.bytes, room)
            filled = self.write
        else:
            moved = <char*>mem_alloc(room)
        if moved == NULL:
            with gil:
                raise MemoryError
        if filled == 0:
            for i in range(self.count):
                entry = self._oldest(i)
                memcpy(moved + filled, self.bytes + entry.offset, entry.size & ~SHORTENED)
                entry.offset = <uint32_t>filled
                filled += entry.size & ~SHORTENED
            mem_free(self.bytes)
        self.bytes = moved
        self.room = room
        self.write = filled
        return 0
