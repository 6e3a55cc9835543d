"""`PARTITION BY` in machine integers: the instants of each partition, and its skips.

An event belongs to a partition iff some GPM that reads its stream has a row with that key, before
local filters. A strict join needs only the latest instant before the current one with an event of
the partition: a partial match that waits under `,` ended at that instant, or has been passed over.
A step that began earlier, a guard that looks back, and `EMIT STRICT` beside either need the latest
such instant before an earlier one, so all instants of a partition within reach are recorded for
them. `AFTER MATCH SKIP PAST LAST EVENT` raises the least start of one partition.

Invariant: the data of a partition out of reach is never read, since the terms of its key may have
been renumbered. Cost: constant for each row; logarithmic in the instants of a partition for each
query about an earlier one.
"""

from itertools import accumulate, pairwise
from libc.string cimport memset

from spaseq.nfa.native._tecs cimport (
    NIL,
    create_group,
    find_group,
    numbers_of,
    remove_group,
    values_of,
)
from spaseq.rdf.native._terms cimport Dictionary, mem_calloc, mem_free, mem_realloc

cdef uint32_t SWEEP_MIN_PARTITIONS = 256


cdef class Partitions:
    """The partitions of one run; `tables` are `CoreTables`."""

    def __cinit__(
        self, tables, Window window not None, WindowTerms terms not None,
        Dictionary dictionary not None,
    ):
        cdef uint32_t i
        self.tracked, self.apart = tables.tracked, tables.apart
        self.recorded = tables.recorded
        self.window = window
        self.terms = terms
        self.keys = Groups(tables.width, [], TermResolver(terms, dictionary))
        self.sweep_at = SWEEP_MIN_PARTITIONS
        self.key = <term_t*>mem_calloc(tables.width, sizeof(term_t))
        self.column_first = <uint32_t*>mem_calloc(len(tables.partition), sizeof(uint32_t))
        self.columns = <uint32_t*>mem_calloc(
            len(tables.partition) * tables.width, sizeof(uint32_t)
        )
        self.registers = numbers_of(tables.partition_registers)
        self.gpm_first = numbers_of(
            [0, *accumulate(len(gpms) for gpms in tables.edge_gpms)]
        )
        self.gpm_of = numbers_of([gpm for gpms in tables.edge_gpms for gpm in gpms])
        for i, columns in enumerate(tables.partition):
            self.column_first[i] = i * self.keys.width if columns else NIL
            for j, column in enumerate(columns):
                self.columns[i * self.keys.width + <uint32_t>j] = column

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.room):
            mem_free(self.partitions[i].instants)
        mem_free(self.partitions)
        mem_free(self.column_first)
        mem_free(self.columns)
        mem_free(self.registers)
        mem_free(self.gpm_first)
        mem_free(self.gpm_of)
        mem_free(self.key)

    cdef int record_event(self, EventBatch batch, uint32_t gpm, const term_t* row) except -1 nogil:
        """Record that the current event has a row of a GPM, before any filter."""
        cdef uint32_t i
        cdef uint32_t* columns
        if self.column_first[gpm] == NIL:
            return 0
        columns = self.columns + self.column_first[gpm]
        for i in range(self.keys.width):
            if row[columns[i]] == 0:
                return 0
        for i in range(self.keys.width):
            self.key[i] = self.terms.intern(batch, row[columns[i]])
        return self._record_instant(&self.partitions[self._find_or_create()], self.window.now)

    cdef int set_current(self, EventBatch batch, uint32_t gpm, const term_t* row) noexcept nogil:
        """Set `before` and `since` to those of the partition of a row, if it has one."""
        cdef uint32_t* columns = self.columns + self.column_first[gpm]
        cdef uint32_t i, number
        cdef Partition* partition
        self.before = -1
        self.since = self.window.bound
        if self.column_first[gpm] == NIL:
            return 0
        for i in range(self.keys.width):
            self.key[i] = self.terms.lookup(batch, row[columns[i]])
        number = self._find()
        if number == NIL:
            return 0
        partition = &self.partitions[number]
        self.before = partition.before if partition.last == self.window.now else partition.last
        if partition.skipped > self.since:
            self.since = partition.skipped
        return 0

    cdef instant_t before_in(
        self, EventBatch batch, const term_t* env, instant_t instant
    ) noexcept nogil:
        """The latest instant before `instant` with an event of the partition of `env`, or -1."""
        cdef uint32_t i, number
        for i in range(self.keys.width):
            self.key[i] = self.terms.lookup(batch, env[self.registers[i]])
        number = self._find()
        return -1 if number == NIL else self._before(&self.partitions[number], instant)

    cdef instant_t _before(self, const Partition* partition, instant_t instant) noexcept nogil:
        """The latest recorded instant of a partition before `instant`, or -1."""
        cdef uint32_t low = 0, high = partition.count, middle
        if partition.last < instant:
            return partition.last
        if partition.before < instant:
            return partition.before
        while low < high:
            middle = (low + high) // 2
            if partition.instants[(partition.first + middle) & (partition.room - 1)] < instant:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return -1
        return partition.instants[(partition.first + low - 1) & (partition.room - 1)]

    cdef int _record_instant(self, Partition* partition, instant_t instant) except -1 nogil:
        """Record an event of a partition at an instant, not before its last one."""
        if partition.last >= instant:
            return 0
        partition.before = partition.last
        partition.last = instant
        if not self.recorded:
            return 0
        while partition.count and (
            partition.instants[partition.first & (partition.room - 1)] < self.window.reach
        ):
            partition.first += 1
            partition.count -= 1
        if partition.count == partition.room:
            self._grow(partition)
        partition.instants[(partition.first + partition.count) & (partition.room - 1)] = instant
        partition.count += 1
        return 0

    cdef int _grow(self, Partition* partition) except -1 nogil:
        """Double the ring of instants."""
        cdef uint32_t i, room = 2 * partition.room if partition.room else 8
        cdef instant_t* wider = <instant_t*>mem_calloc(room, sizeof(instant_t))
        for i in range(partition.count):
            wider[i] = partition.instants[(partition.first + i) & (partition.room - 1)]
        mem_free(partition.instants)
        partition.instants, partition.room, partition.first = wider, room, 0
        return 0

    cdef instant_t last_at(self, const Label* label) noexcept nogil:
        """The instant of a label, or the latest one before it with an event of its partition, if
        it is the label of a deadline, which is no event."""
        cdef uint32_t number
        if label.parts:
            return label.instant
        self._key_of(label)
        number = self._find()
        return -1 if number == NIL else self._before(&self.partitions[number], label.instant + 1)

    cdef instant_t since_at(self, const Label* label) noexcept nogil:
        """The least start of a match that contains a label."""
        cdef uint32_t number
        if not self.apart:
            return self.window.bound
        self._key_of(label)
        number = self._find()
        if number == NIL or self.partitions[number].skipped < self.window.bound:
            return self.window.bound
        return self.partitions[number].skipped

    cdef int skip_at(self, const Label* label, instant_t first) except -1 nogil:
        """Raise the least start in a label's partition to `first`."""
        cdef Partition* partition
        self._key_of(label)
        partition = &self.partitions[self._find_or_create()]
        partition.skipped = max(partition.skipped, first)
        return 0

    cdef tuple key_at(self, const Label* label):
        """The key of a match that contains a label."""
        cdef uint32_t i
        self._key_of(label)
        return tuple([self.key[i] for i in range(self.keys.width)])

    cdef object number_key(self, const Label* label):
        """The key as `key_at` returns it, or as one number if it has at most two terms."""
        self._key_of(label)
        if self.keys.width == 1:
            return self.key[0]
        if self.keys.width == 2:
            return <uint64_t>self.key[0] << 32 | self.key[1]
        return self.key_at(label)

    cdef bint _key_of(self, const Label* label) noexcept nogil:
        cdef uint32_t gpm
        cdef uint32_t* columns
        cdef uint32_t i
        if label.parts == 0:
            for i in range(self.keys.width):
                self.key[i] = label.row[i]
            return True
        gpm = self.gpm_of[self.gpm_first[label.edge] + label.part]
        columns = self.columns + self.column_first[gpm]
        for i in range(self.keys.width):
            self.key[i] = label.row[columns[i]]
        return True

    cdef bint _is_out_of_reach(self, uint32_t number) noexcept nogil:
        """Whether a partition is out of reach."""
        cdef Partition* partition = &self.partitions[number]
        return partition.last < self.window.reach and partition.skipped <= self.window.bound

    cdef uint32_t _find(self) noexcept nogil:
        """The partition of `key`, or NIL."""
        cdef uint32_t number = find_group(self.keys, self.key)
        return NIL if number != NIL and self._is_out_of_reach(number) else number

    cdef uint32_t _find_or_create(self) except? 0xFFFFFFFF nogil:
        """The partition of `key`, created if necessary."""
        cdef uint32_t number = find_group(self.keys, self.key)
        cdef Partition* longer
        if number == NIL:
            if self.keys.live_count > self.sweep_at:
                self._sweep()
            number = create_group(self.keys, self.key)
            if self.keys.room > self.room:
                longer = <Partition*>mem_realloc(
                    self.partitions, self.keys.room * sizeof(Partition)
                )
                if longer == NULL:
                    raise MemoryError("no room for another partition")
                self.partitions = longer
                memset(&longer[self.room], 0, (self.keys.room - self.room) * sizeof(Partition))
                self.room = self.keys.room
        elif not self._is_out_of_reach(number):
            return number
        self.partitions[number].last = self.partitions[number].before = -1
        self.partitions[number].skipped = self.partitions[number].count = 0
        return number

    cdef int _sweep(self) except -1 nogil:
        cdef uint32_t i = self.keys.live_count
        while i:
            i -= 1
            if self._is_out_of_reach(self.keys.alive[i]):
                remove_group(self.keys, self.keys.alive[i])
        self.sweep_at = 2 * self.keys.live_count + SWEEP_MIN_PARTITIONS
        return 0

    # ---------------------------------------------------------------- for Python

    def skip(self, size_t label, instant_t first):
        """Like `skip_at`, by the address of a label."""
        self.skip_at(<const Label*>label, first)

    def since_label(self, size_t label):
        """The least start of a match that contains the label at an address."""
        return self.since_at(<const Label*>label)

    def contiguous(self, size_t label, instants):
        """Whether the partition of a label has no event between successive instants of a list."""
        cdef uint32_t number
        self._key_of(<const Label*>label)
        number = self._find()
        return number == NIL or all(
            self._before(&self.partitions[number], later) <= earlier
            for earlier, later in pairwise(instants)
        )

    def dump(self):
        """(key, instants, least start) of each partition within reach."""
        cdef uint32_t i, j, number
        cdef Partition* at
        for i in range(self.keys.live_count):
            number = self.keys.alive[i]
            if not self._is_out_of_reach(number):
                key = [values_of(self.keys, number)[j] for j in range(self.keys.width)]
                at = &self.partitions[number]
                some = [at.before, at.last]
                if self.recorded:
                    some = [
                        at.instants[(at.first + j) & (at.room - 1)] for j in range(at.count)
                    ]
                yield key, [instant for instant in some if instant >= self.window.reach], at.skipped

    def load(self, key, instants, instant_t skipped):
        """Load one item of `dump`; 0 marks unknown terms."""
        cdef uint32_t i, number
        for i, term in enumerate(key):
            self.key[i] = term
        number = self._find_or_create()
        for instant in instants:
            self._record_instant(&self.partitions[number], instant)
        if skipped > self.partitions[number].skipped:
            self.partitions[number].skipped = skipped
