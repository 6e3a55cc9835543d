# cython: language_level=3, boundscheck=False, wraparound=False
"""The instants of one automaton, numbered densely, and the window over them.

What `spaseq.nfa.window` is for the run in Python, with a ring over the instants inside the
window: for each its time (or its number of events), and the matches that start there and wait
for their window to close.

Invariant: `bound` never falls, and no match that ends now may start before it. Cost: amortised
constant for each instant.
"""

from spaseq.rdf._memory cimport give_back, zeroed


cdef class Clock(Tables):
    """`rows` are `CoreTables`."""

    def __cinit__(self, rows, *others):
        self.size = rows.size
        self.tumbling = rows.tumbling
        self.counted = rows.counted
        self.endless = rows.endless
        self.now = -1
        self.times_mask = 63
        self.times = <int64_t*>zeroed(64, sizeof(int64_t))
        self.awaited = <Awaited**>zeroed(64, sizeof(Awaited*))

    def __dealloc__(self):
        give_back(self.times)
        give_back(self.awaited)

    def shed(self):
        """How many groups and waiting matches went, for there were too many."""
        cdef uint64_t found = self.shed_matches
        cdef uint32_t i
        for i in range(self.place_count):
            found += self.places[i].shed
        return found

    cdef bint closes(self, int64_t micros) noexcept:
        """Whether a window with waiting matches is over when `micros` comes."""
        cdef int64_t earliest = opening_of(self, micros)
        cdef instant_t i = self.bound
        if self.awaited_count == 0:
            return False
        while i <= self.now and self.times[i & self.times_mask] < earliest:
            if self.awaited[i & self.times_mask] != NULL:
                return True
            i += 1
        return False

    cdef int _reach(self) except -1:
        """Make room in the ring for the present instant."""
        cdef int64_t* longer
        cdef Awaited** awaited
        cdef instant_t i
        cdef uint32_t mask = self.times_mask
        while self.now - self.bound > mask:
            longer = <int64_t*>zeroed(2 * (<size_t>mask + 1), sizeof(int64_t))
            awaited = <Awaited**>zeroed(2 * (<size_t>mask + 1), sizeof(Awaited*))
            for i in range(self.now - mask - 1, self.now):
                longer[i & (2 * mask + 1)] = self.times[i & mask]
                awaited[i & (2 * mask + 1)] = self.awaited[i & mask]
            give_back(self.times)
            give_back(self.awaited)
            self.times = longer
            self.awaited = awaited
            self.times_mask = mask = 2 * mask + 1
        return 0

    cdef int count(self) noexcept:
        """One more event at the open instant, for windows that count them."""
        if not self.counted or self.bound > self.now:
            return 0
        self.times[self.now & self.times_mask] += 1
        self.total += 1
        while self.total > self.size:
            self.total -= self.times[self.bound & self.times_mask]
            self.bound += 1
        return 0
