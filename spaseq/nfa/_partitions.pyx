# cython: language_level=3, boundscheck=False, wraparound=False
"""`PARTITION BY` in machine integers: when each partition had events, and what it has skipped.

An event belongs to a partition iff some GPM that reads its stream has a row with that key, its
local filters left out. Of strict contiguity all that joining asks is the latest instant with an
event of the partition before the present one: who waits under `,` came at it, or has been passed
over. `AFTER MATCH SKIP PAST LAST EVENT` raises the least start of one partition.

Invariant: what is known of a partition that the window has passed over is not looked at: the
numbers of its key may stand for other terms by then. Cost: constant for each row.
"""

from spaseq.nfa._groups cimport NOBODY, values_of
from spaseq.nfa._order cimport Registers
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport give_back, resized, zeroed

cdef uint32_t FEWEST_SWEPT = 256


cdef class Partitions:
    """`tables` are `CoreTables`."""

    def __cinit__(
        self, tables, Clock clock not None, WindowTerms window not None,
        Dictionary dictionary not None,
    ):
        cdef uint32_t i
        self.tracked, self.apart = tables.tracked, tables.apart
        self.clock = clock
        self.window = window
        self.keys = Groups(tables.width, [], Registers(window, dictionary))
        self.sweep_at = FEWEST_SWEPT
        self.key = <term_t*>zeroed(tables.width, sizeof(term_t))
        self.column_first = <uint32_t*>zeroed(len(tables.partition), sizeof(uint32_t))
        self.columns = <uint32_t*>zeroed(
            len(tables.partition) * tables.width, sizeof(uint32_t)
        )
        self.gpm_of = <uint32_t*>zeroed(len(tables.edge_gpms), sizeof(uint32_t))
        for i, gpm in enumerate(tables.edge_gpms):
            self.gpm_of[i] = gpm
        for i, columns in enumerate(tables.partition):
            self.column_first[i] = i * self.keys.width if columns else NOBODY
            for j, column in enumerate(columns):
                self.columns[i * self.keys.width + <uint32_t>j] = column

    def __dealloc__(self):
        give_back(self.partitions)
        give_back(self.column_first)
        give_back(self.columns)
        give_back(self.gpm_of)
        give_back(self.key)

    cdef int note(self, EventBatch batch, uint32_t gpm, const term_t* row) except -1:
        """The event at hand has a row of a GPM, before any filter."""
        cdef uint32_t i, number
        cdef uint32_t* columns
        cdef Partition* partition
        if self.column_first[gpm] == NOBODY:
            return 0
        columns = self.columns + self.column_first[gpm]
        for i in range(self.keys.width):
            if row[columns[i]] == 0:
                return 0
        for i in range(self.keys.width):
            self.key[i] = self.window.keep(batch, row[columns[i]])
        number = self._made()
        partition = &self.partitions[number]
        if partition.last < self.clock.now:
            partition.before = partition.last
            partition.last = self.clock.now
        return 0

    cdef int meet(self, EventBatch batch, uint32_t gpm, const term_t* row) noexcept:
        """Come to a row: `before` and `since` are those of its partition, if it has one."""
        cdef uint32_t* columns = self.columns + self.column_first[gpm]
        cdef uint32_t i, number
        cdef Partition* partition
        self.before = -1
        self.since = self.clock.bound
        if self.column_first[gpm] == NOBODY:
            return 0
        for i in range(self.keys.width):
            self.key[i] = self.window.seek(batch, row[columns[i]])
        number = self._find()
        if number == NOBODY:
            return 0
        partition = &self.partitions[number]
        self.before = partition.before if partition.last == self.clock.now else partition.last
        if partition.skipped > self.since:
            self.since = partition.skipped
        return 0

    cdef instant_t since_at(self, const Label* label) noexcept:
        """The least start of a match that a label is part of."""
        cdef uint32_t number
        if not self.apart:
            return self.clock.bound
        self._key_of(label)
        number = self._find()
        if number == NOBODY or self.partitions[number].skipped < self.clock.bound:
            return self.clock.bound
        return self.partitions[number].skipped

    cdef int skip_at(self, const Label* label) except -1:
        """Only what starts after the present instant may still match in a label's partition."""
        self._key_of(label)
        self.partitions[self._made()].skipped = self.clock.now + 1
        return 0

    cdef tuple key_at(self, const Label* label):
        """The key of a match that a label is part of."""
        cdef uint32_t i
        self._key_of(label)
        return tuple([self.key[i] for i in range(self.keys.width)])

    cdef bint _key_of(self, const Label* label) noexcept:
        cdef uint32_t edge = self.clock.places[label.place].edge_first + label.position
        cdef uint32_t* columns = self.columns + self.column_first[self.gpm_of[edge]]
        cdef uint32_t i
        for i in range(self.keys.width):
            self.key[i] = label.row[columns[i]]
        return True

    cdef bint _gone(self, uint32_t number) noexcept:
        """Whether the window has passed over all that is known of a partition."""
        cdef Partition* partition = &self.partitions[number]
        return partition.last < self.clock.bound and partition.skipped <= self.clock.bound

    cdef uint32_t _find(self) noexcept:
        """The partition of `key`, or NOBODY."""
        cdef uint32_t number = self.keys.find(self.key)
        return NOBODY if number != NOBODY and self._gone(number) else number

    cdef uint32_t _made(self) except? 0xFFFFFFFF:
        """The partition of `key`, from now on."""
        cdef uint32_t number = self.keys.find(self.key)
        cdef Partition* longer
        if number == NOBODY:
            if self.keys.living > self.sweep_at:
                self._sweep()
            number = self.keys.make(self.key)
            if self.keys.room > self.room:
                longer = <Partition*>resized(
                    self.partitions, self.keys.room * sizeof(Partition)
                )
                if longer == NULL:
                    raise MemoryError("no room for another partition")
                self.partitions = longer
                self.room = self.keys.room
        elif not self._gone(number):
            return number
        self.partitions[number].last = self.partitions[number].before = -1
        self.partitions[number].skipped = 0
        return number

    cdef int _sweep(self) except -1:
        cdef uint32_t i = self.keys.living
        while i:
            i -= 1
            if self._gone(self.keys.alive[i]):
                self.keys.drop(self.keys.alive[i])
        self.sweep_at = 2 * self.keys.living + FEWEST_SWEPT
        return 0

    # ---------------------------------------------------------------- for Python

    def skip(self, size_t label):
        """The same by the address of a label."""
        self.skip_at(<const Label*>label)

    def since_label(self, size_t label):
        """The least start of a match that the label at an address is part of."""
        return self.since_at(<const Label*>label)

    def known(self):
        """(key, instant before the last, last instant, least start) of each partition."""
        cdef uint32_t i, j, number
        for i in range(self.keys.living):
            number = self.keys.alive[i]
            if not self._gone(number):
                key = [values_of(self.keys, number)[j] for j in range(self.keys.width)]
                at = self.partitions[number]
                yield key, at.before, at.last, at.skipped

    def put(self, key, instant_t before, instant_t last, instant_t skipped):
        """What `known` says of one partition; -1 and 0 are for what is not known."""
        cdef uint32_t i, number
        for i, term in enumerate(key):
            self.key[i] = term
        number = self._made()
        if last >= 0:
            self.partitions[number].before, self.partitions[number].last = before, last
        if skipped > self.partitions[number].skipped:
            self.partitions[number].skipped = skipped
