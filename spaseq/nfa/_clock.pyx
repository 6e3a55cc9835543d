# cython: language_level=3, boundscheck=False, wraparound=False
"""Instants, and the first one that is still inside the window: `spaseq.nfa.window` compiled.

Instants are numbered densely as they open; what is known of those inside the window lies in a
ring, with the matches that wait for the windows that begin there. Cost: amortised constant.
"""

from libc.stdint cimport INT64_MIN

from spaseq.rdf._memory cimport give_back, zeroed


cdef class Clock(Tables):
    """`rows` are `CoreTables`."""

    def __cinit__(self, rows, *others):
        self.tecs = Tecs()
        self.size = rows.size
        self.tumbling = rows.tumbling
        self.counted = rows.counted
        self.now = -1
        self.times_mask = 63
        self.times = <int64_t*>zeroed(64, sizeof(int64_t))
        self.awaited = <Awaited**>zeroed(64, sizeof(Awaited*))

    def __dealloc__(self):
        give_back(self.times)
        give_back(self.awaited)

    cdef int64_t _opening(self, int64_t micros) noexcept nogil:
        """The earliest time of a match that ends at `micros`."""
        if self.counted or micros < INT64_MIN + self.size:
            return INT64_MIN
        return micros // self.size * self.size if self.tumbling else micros - self.size

    cdef bint closes(self, int64_t micros) noexcept:
        """Whether a window with waiting matches is over when `micros` comes."""
        cdef int64_t earliest = self._opening(micros)
        cdef instant_t i = self.bound
        if self.awaited_count == 0:
            return False
        while i <= self.now and self.times[i & self.times_mask] < earliest:
            if self.awaited[i & self.times_mask] != NULL:
                return True
            i += 1
        return False

    cpdef int open(self, int64_t micros) except -1:
        """The next instant begins, at a time not before the last one's."""
        cdef int64_t earliest = self._opening(micros)
        self.now += 1
        self.turn += 1
        if self.now == 0 or self.micros != micros:
            self.timestamp_start = self.now
            self.micros = micros
        self._reach()
        self.times[self.now & self.times_mask] = 0 if self.counted else micros
        self.awaited[self.now & self.times_mask] = NULL
        if not self.counted:
            while self.times[self.bound & self.times_mask] < earliest:
                self.bound += 1
        self.tecs.begin(self.now, self.bound)
        return 0

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

    cpdef int skip(self) except -1:
        """Only what starts after the present instant may still match."""
        self.skipped = self.now + 1
        return 0
