"""The instants of one automaton, numbered densely, and the window over them.

For each instant inside the window, a ring holds the time (or the number of events) and the matches
that start there and wait for their window to close. A step skipped before an earlier start is
searched in the window of that start. If the query needs that, the ring reaches several windows
back, and further by the time that an absence before a match looks back.

Invariant: `bound` never falls, and no match that ends now may start before it; `reach` never falls
and never exceeds `bound`. Cost: amortised constant for each instant.
"""

from libc.stdint cimport INT64_MAX

from spaseq.rdf.native._terms cimport mem_calloc, mem_free, mem_grow

cdef const char* FOR_INSTANTS = b"another instant of the window"


cdef class Window:
    """The window of one run; `rows` are `CoreTables`."""

    def __cinit__(self, rows):
        self.size = rows.size
        self.tumbling = rows.tumbling
        self.counted = rows.counted
        self.endless = rows.endless
        self.now = -1
        self.last_start = INT64_MAX
        self.times_mask = 63
        self.times = <int64_t*>mem_calloc(64, sizeof(int64_t))
        self.awaited = <Awaited**>mem_calloc(64, sizeof(Awaited*))
        self.windows = rows.windows
        self.lookback = rows.lookback
        if rows.clocked:
            self.clock = <int64_t*>mem_calloc(64, sizeof(int64_t))
        if self.windows > 1 and not self.endless:
            self.past_bounds = <instant_t*>mem_calloc(64, sizeof(instant_t))

    def __dealloc__(self):
        mem_free(self.times)
        mem_free(self.clock)
        mem_free(self.past_bounds)
        mem_free(self.awaited)

    cdef bint closes(self, int64_t micros) noexcept nogil:
        """Whether the window of a waiting match is over at time `micros`, in microseconds."""
        cdef int64_t earliest = opening_of(self, micros)
        cdef instant_t i = self.bound
        if self.awaited_count == 0:
            return False
        while i <= self.now and self.times[i & self.times_mask] < earliest:
            if self.awaited[i & self.times_mask] != NULL:
                return True
            i += 1
        return False

    cdef int extend_reach(self) noexcept nogil:
        """Let `reach` precede `bound` as the query needs; called when `bound` is that of `now`."""
        cdef instant_t before = self.reach
        cdef uint32_t i
        self.reach = self.bound
        if self.lookback >= 0:
            self._look_back()
        if self.past_bounds != NULL:
            self.past_bounds[self.now & self.times_mask] = self.bound
            for i in range(1, self.windows):
                if self.reach > self.now:
                    break
                self.reach = self.past_bounds[self.reach & self.times_mask]
        if self.counted and self.lookback >= 0:
            while before < self.reach:
                self.reached -= self.times[before & self.times_mask]
                before += 1
        return 0

    cdef int _look_back(self) noexcept nogil:
        """Extend the reach as far as absences before a match look back."""
        cdef int64_t first = time_of(self, min(self.bound, self.now))
        while self.back < self.reach and time_of(self, self.back) < earlier(first, self.lookback):
            self.back += 1
        self.reach = min(self.reach, self.back)
        return 0

    cdef int grow_ring(self) except -1 nogil:
        """Make room in the ring for the open instant; its entry is not initialised."""
        cdef uint32_t count = self.times_mask + 1
        cdef uint32_t place
        cdef instant_t i
        while self.now - self.reach >= count:
            self.times = <int64_t*>mem_grow(
                self.times, 2 * <size_t>count, sizeof(int64_t), FOR_INSTANTS
            )
            self.awaited = <Awaited**>mem_grow(
                self.awaited, 2 * <size_t>count, sizeof(Awaited*), FOR_INSTANTS
            )
            if self.clock != NULL:
                self.clock = <int64_t*>mem_grow(
                    self.clock, 2 * <size_t>count, sizeof(int64_t), FOR_INSTANTS
                )
            if self.past_bounds != NULL:
                self.past_bounds = <instant_t*>mem_grow(
                    self.past_bounds, 2 * <size_t>count, sizeof(instant_t), FOR_INSTANTS
                )
            for i in range(self.now - count, self.now):
                if not i & count:
                    continue
                place = <uint32_t>(i & (count - 1))
                self.times[count + place] = self.times[place]
                self.awaited[count + place] = self.awaited[place]
                if self.clock != NULL:
                    self.clock[count + place] = self.clock[place]
                if self.past_bounds != NULL:
                    self.past_bounds[count + place] = self.past_bounds[place]
            self.times_mask = 2 * count - 1
            count = 2 * count
        return 0

    cdef int count_event(self) noexcept nogil:
        """Count one more event at the open instant, for windows that count events."""
        if not self.counted:
            return 0
        self.times[self.now & self.times_mask] += 1
        self.reached += self.lookback >= 0
        if self.bound > self.now:
            return 0
        self.total += 1
        while self.total > self.size:
            self.total -= self.times[self.bound & self.times_mask]
            self.bound += 1
        return self.extend_reach()
