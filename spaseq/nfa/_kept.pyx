# cython: language_level=3, boundscheck=False, wraparound=False
"""The rows of one graph pattern that guards and conjunctions look back at, by age and by term.

Rows are numbered from 1 in the order of their instants and lie in a ring. An index is chains of
the rows whose terms in one column fall into one bucket, the newest first; nothing is ever taken
out of a chain: it ends at the first row that is not kept any more.

Invariants: a row below `first`, or of an instant below the bound of the window, is never
followed; rows of one bucket come with falling numbers. Cost: keeping and forgetting are
constant (amortised), finding where a stretch begins is logarithmic.
"""

from spaseq.rdf._memory cimport give_back, zeroed


cdef class KeptRows:
    """`columns` are those that an index is kept for."""

    def __cinit__(self, columns):
        cdef uint32_t i
        self.first = self.end = 1
        self.index_count = <uint32_t>len(columns)
        self.indexes = <Index*>zeroed(self.index_count, sizeof(Index))
        for i, column in enumerate(columns):
            self.indexes[i].column = column

    def __dealloc__(self):
        cdef uint32_t i
        if self.indexes != NULL:
            for i in range(self.index_count):
                give_back(self.indexes[i].newest)
                give_back(self.indexes[i].older)
        give_back(self.indexes)
        give_back(self.labels)
        give_back(self.instants)
        give_back(self.keyed)

    cdef int add(self, Label* label, bint keyed) except -1:
        """One more row, of an instant not before that of the last one."""
        cdef uint64_t number = self.end
        cdef uint32_t slot, i
        if number - self.first == self.room:
            self._grow()
        assert number == self.first or (
            self.instants[(number - 1) & (self.room - 1)] <= label.instant
        )
        slot = number & (self.room - 1)
        self.labels[slot] = label
        self.instants[slot] = label.instant
        self.keyed[slot] = keyed
        self.end += 1
        for i in range(self.index_count):
            self._enter(&self.indexes[i], number)
        return 0

    cdef int _enter(self, Index* index, uint64_t number) noexcept nogil:
        cdef uint32_t slot = number & (self.room - 1)
        cdef uint32_t bucket = _bucket(self.labels[slot].row[index.column]) & (self.room - 1)
        index.older[slot] = index.newest[bucket]
        index.newest[bucket] = number
        return 0

    cdef int _grow(self) except -1:
        """Room for twice as many rows; the chains are made anew."""
        cdef uint32_t room = 2 * self.room if self.room else 64
        cdef Label** labels = <Label**>zeroed(room, sizeof(Label*))
        cdef instant_t* instants = <instant_t*>zeroed(room, sizeof(instant_t))
        cdef uint8_t* keyed = <uint8_t*>zeroed(room, sizeof(uint8_t))
        cdef uint64_t number
        cdef uint32_t i, old, new
        for number in range(self.first, self.end):
            old, new = number & (self.room - 1), number & (room - 1)
            labels[new] = self.labels[old]
            instants[new] = self.instants[old]
            keyed[new] = self.keyed[old]
        give_back(self.labels)
        give_back(self.instants)
        give_back(self.keyed)
        self.labels, self.instants, self.keyed = labels, instants, keyed
        self.room = room
        for i in range(self.index_count):
            give_back(self.indexes[i].newest)
            give_back(self.indexes[i].older)
            self.indexes[i].newest = self.indexes[i].older = NULL
            self.indexes[i].newest = <uint64_t*>zeroed(room, sizeof(uint64_t))
            self.indexes[i].older = <uint64_t*>zeroed(room, sizeof(uint64_t))
            for number in range(self.first, self.end):
                self._enter(&self.indexes[i], number)
        return 0

    cdef int forget(self, instant_t bound) noexcept nogil:
        """Rows of instants before `bound` go."""
        while self.first < self.end and self.instants[self.first & (self.room - 1)] < bound:
            self.first += 1
        return 0

    cdef uint64_t before(self, instant_t high) noexcept nogil:
        """The number of the newest row of an instant before `high`, or one below `first`."""
        cdef uint64_t low = self.first, above = self.end, middle
        if low < above and self.instants[(above - 1) & (self.room - 1)] < high:
            return above - 1
        while low < above:
            middle = (low + above) // 2
            if self.instants[middle & (self.room - 1)] < high:
                low = middle + 1
            else:
                above = middle
        return low - 1

    cdef uint64_t until(self, int64_t micros) noexcept nogil:
        """The number of the newest row of a time or an earlier one, or one below `first`."""
        cdef uint64_t low = self.first, above = self.end, middle
        while low < above:
            middle = (low + above) // 2
            if self.labels[middle & (self.room - 1)].micros <= micros:
                low = middle + 1
            else:
                above = middle
        return low - 1

    cdef uint64_t newest_like(self, uint32_t index, term_t term) noexcept nogil:
        """The newest row that may have a term in the column of an index; 0: there is none."""
        if self.room == 0:
            return 0
        return self.indexes[index].newest[_bucket(term) & (self.room - 1)]

    cdef uint64_t older_like(self, uint32_t index, uint64_t number) noexcept nogil:
        """The one before a row that `newest_like` or `older_like` gave."""
        return self.indexes[index].older[number & (self.room - 1)]


cdef inline uint32_t _bucket(term_t term) noexcept nogil:
    return <uint32_t>((<uint64_t>term * 0x9E3779B97F4A7C15u) >> 32)
