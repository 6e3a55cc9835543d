"""The terms of stored rows, each stored once, freed when the window has passed.

Terms of a batch are freed with the batch. Terms of rows that the automaton stores are entered here:
equal terms of different events have one number and one Python object. A term belongs to the epoch
of its last use. An epoch is a range of the stream of a quarter of the horizon, or longer until it
has some hundred terms or some kilobytes of text. It is freed, with its texts and numbers, when the
stream is a horizon past its end. Memory is therefore bounded by the terms of one and a half
horizons plus that minimum, for streams of any length.

Invariant: a number is valid until the stream is one horizon past its last use; no reader may hold
it longer. Each epoch lists every term whose last use is in it. Cost: entering a term is a look-up,
and a copy of the text once per epoch; freeing an epoch is linear in the terms it lists. The record
of a batch's term caches its window number with the stamp under which that was assigned. The number
is valid while the window's record has the same stamp, since the stamp changes whenever numbers are
freed. Small integers and decimals are numerals (numerals.pxi).
"""

from cpython.ref cimport Py_CLEAR, Py_INCREF
from libc.string cimport memset

cdef enum:
    PREFETCH_DISTANCE = 8           # in terms
    PREFETCH_MIN_SLOTS = 1 << 14    # slots of a table (128 KB) beyond which prefetching pays
    EPOCH_RING_SIZE = 8             # epochs of one and a half horizons, and the current one
    EPOCH_MIN_TERMS = 256           # an epoch ends only with this many terms, or with so many bytes
    EPOCH_MIN_TEXT_BYTES = 1 << 15  # of texts, since recurring terms are copied once per epoch

cdef uint32_t FREED_EPOCH = 0xFFFFFFFFu

cdef uint64_t NO_STAMP = 1  # before any stamp

cdef uint64_t _stamp_ranges_issued = 0


cdef uint64_t _next_stamps():
    """The first of 2**32 unused stamps."""
    global _stamp_ranges_issued
    _stamp_ranges_issued += 1
    return _stamp_ranges_issued << 32


cdef inline bint _is_term(
    WindowTerms self, uint32_t number, const TermRecord* wanted
) noexcept nogil:
    """Whether a number is that of the wanted term."""
    return record_is(&self.store.records[number], wanted.hash, wanted.text, wanted.size)


cdef inline uint32_t _number_by_text(
    WindowTerms self, const TermRecord* wanted, uint32_t* place
) noexcept nogil:
    """The number of a term by its text, or 0; `place` is then its empty slot in the table."""
    cdef term_t number
    place[0] = <uint32_t>wanted.hash
    while True:
        number = slots_next(&self.slots, <uint32_t>wanted.hash, place)
        if number == 0 or _is_term(self, number, wanted):
            return number


cdef inline uint32_t _number_in_window(
    WindowTerms self, EventBatch batch, term_t term, uint32_t* place
) noexcept nogil:
    """The number of a local term of the batch, or 0; `place` is then its empty slot in the table.

    Prefetches the slots and records of the next terms, most of which are looked up soon, since
    terms are numbered in input order. The prefetch is inlined here, because compilers may drop a
    call to a function that only prefetches.
    """
    cdef TermRecord* wanted = record_of(batch, term)
    cdef uint32_t number
    cdef uint32_t next = (term ^ LOCAL) + 1
    cdef const TermRecord* record
    if self.slots.mask > PREFETCH_MIN_SLOTS and next + PREFETCH_DISTANCE < batch.local.count:
        record = &batch.local.records[next + PREFETCH_DISTANCE]
        prefetch(&self.slots.slots[<uint32_t>record.hash & self.slots.mask])
        record = &batch.local.records[next + PREFETCH_DISTANCE // 2]
        prefetch(&self.store.records[
            self.slots.slots[<uint32_t>record.hash & self.slots.mask].term
        ])
    number = _number_by_text(self, wanted, place)
    if number:
        wanted.epoch, wanted.given = number, self.store.records[number].given
    return number


cdef inline int _copy_to_current_epoch(
    WindowTerms self, uint32_t number, const char* text
) except -1 nogil:
    """Move a term to the current epoch, and copy its text there."""
    cdef TermRecord* record = &self.store.records[number]
    cdef Epoch* epoch = &self.epochs[self.current % EPOCH_RING_SIZE]
    cdef char* kept = <char*>arena_alloc(&epoch.bytes, record.size)
    if kept == NULL:
        raise_no_memory(b"the text of a term of the window")
    memcpy(kept, text, record.size)
    if epoch.count == epoch.room:
        epoch.room = 2 * epoch.room + 16
        epoch.listed = <uint32_t*>mem_grow(
            epoch.listed, epoch.room, sizeof(uint32_t), b"another term of the window"
        )
    epoch.listed[epoch.count] = number
    epoch.count += 1
    record.text = kept
    record.epoch = self.current
    return 0


cdef inline int _renew(WindowTerms self, uint32_t number) except -1 nogil:
    """Use a term again, which moves it to the current epoch."""
    cdef TermRecord* record = &self.store.records[number]
    if record.epoch != self.current:
        _copy_to_current_epoch(self, number, record.text)
    return 0


cdef inline uint32_t _insert(
    WindowTerms self, const TermRecord* wanted, uint32_t place
) except 0 nogil:
    """Enter a term at an empty slot of the table, and return its number."""
    cdef uint32_t number
    number = self.free_record
    if number:
        self.free_record = self.store.records[number].size
    else:
        number = store_new(&self.store)
        if number == 0:
            raise_no_memory(b"another term of the window")
    self.store.records[number] = wanted[0]
    self.store.records[number].given = self.stamp
    _copy_to_current_epoch(self, number, wanted.text)
    slots_put_at(&self.slots, place, <uint32_t>wanted.hash, number)
    self.live += 1
    if 2 * self.slots.used > self.slots.mask:
        slots_grow(&self.slots)
    return number


cdef class WindowTerms:
    """The terms of stored rows, freed behind the window.

    `horizon` is the maximum distance of positions that may be needed, in the unit of positions:
    microseconds, or events.
    """

    def __cinit__(self, int64_t horizon):
        store_init(&self.store)
        slots_init(&self.slots, 256)
        # A record without a cached number (0, stamp 0) must not match this record.
        self.store.records[0].given = NO_STAMP
        self.stamp = _next_stamps()
        self.horizon = horizon
        self.epochs = <Epoch*>mem_alloc(EPOCH_RING_SIZE * sizeof(Epoch))
        if self.epochs == NULL:
            raise MemoryError
        memset(self.epochs, 0, EPOCH_RING_SIZE * sizeof(Epoch))

    def __dealloc__(self):
        cdef uint32_t i
        if self.epochs != NULL:
            for i in range(<uint32_t>EPOCH_RING_SIZE):
                arena_free(&self.epochs[i].bytes)
                mem_free(self.epochs[i].listed)
        mem_free(self.epochs)
        for i in range(self.object_room):
            Py_CLEAR(self.objects[i])
        mem_free(self.objects)
        store_free(&self.store)
        slots_free(&self.slots)

    def widen(self, int64_t horizon):
        """Keep the terms of later events for this distance, if it is greater than that so far.

        An epoch that has ended is as long as before. Where the ring is full of short epochs that
        are still needed, the current one grows longer instead.
        """
        self.horizon = max(self.horizon, horizon)

    def has(self, bytes text not None) -> bool:
        """Whether the window may hold a term with this text; it holds any small number."""
        cdef TermRecord wanted
        cdef uint32_t place
        if numeral_of(text, <uint32_t>len(text)):
            return True
        memset(&wanted, 0, sizeof(TermRecord))
        wanted.text, wanted.size = text, <uint32_t>len(text)
        wanted.hash = hash_of(wanted.text, wanted.size)
        return _number_by_text(self, &wanted, &place) != 0

    @property
    def bytes(self):
        """The bytes of the texts."""
        return sum(self.epochs[i].bytes.used for i in range(EPOCH_RING_SIZE))

    cdef int advance_epochs(self, int64_t position) except -1 nogil:
        """Advance to a position of the stream, and free epochs more than a horizon before it."""
        cdef uint32_t gone
        cdef const Epoch* epoch
        if not self.started:
            self.started = True
            self.epoch_end = self._end_of_epoch(position)
        self.epochs[self.current % EPOCH_RING_SIZE].last = position
        if position < self.epoch_end:
            return 0
        self.epoch_end = self._end_of_epoch(position)
        gone = self.oldest
        while gone < self.current and (
            # Positions never decrease, but their distance may exceed a signed 64-bit number.
            <uint64_t>position - <uint64_t>self.epochs[gone % EPOCH_RING_SIZE].last
            > <uint64_t>self.horizon
        ):
            gone += 1
        if gone > self.oldest:
            self._free_epochs(gone)
        epoch = &self.epochs[self.current % EPOCH_RING_SIZE]
        if epoch.count < EPOCH_MIN_TERMS and epoch.bytes.used < EPOCH_MIN_TEXT_BYTES:
            return 0
        if self.current - self.oldest >= EPOCH_RING_SIZE - 1:
            return 0    # no room: the horizon was widened
        self.current += 1
        self.epochs[self.current % EPOCH_RING_SIZE].last = position
        return 0

    cdef int64_t _end_of_epoch(self, int64_t position) noexcept nogil:
        cdef int64_t length = self.horizon // 4 + 1
        return position + length if position < INT64_MAX - length else INT64_MAX

    cdef term_t intern_uncached(
        self, EventBatch batch, term_t term, uint32_t number
    ) except 0 nogil:
        """As `intern`, for a local term of a batch and its cached number, or 0."""
        cdef TermRecord* wanted = record_of(batch, term)
        cdef uint32_t place
        if number == 0:
            number = _number_in_window(self, batch, term, &place)
        if number:
            _renew(self, number)
        else:
            number = _insert(self, wanted, place)
            wanted.epoch, wanted.given = number, self.stamp
        return WINDOWED | number

    cdef int move_to_current(self, uint32_t number) except -1 nogil:
        """Use a term again, which moves it to the current epoch."""
        return _renew(self, number)

    cdef term_t intern_text(self, const char* text, uint32_t size) except 0 nogil:
        """Use a term that is not permanent, by its text, and return its number."""
        cdef TermRecord wanted
        cdef term_t numeral = numeral_of(text, size)
        cdef uint32_t number, place
        self.entered += 1
        if numeral:
            return numeral
        memset(&wanted, 0, sizeof(TermRecord))
        wanted.hash = hash_of(text, size)
        wanted.text = text
        wanted.size = size
        record_shape(&wanted)
        number = _number_by_text(self, &wanted, &place)
        if number:
            _renew(self, number)
            return WINDOWED | number
        return WINDOWED | _insert(self, &wanted, place)

    cdef term_t lookup_uncached(self, EventBatch batch, term_t term) noexcept nogil:
        """As `lookup`, for a local term of a batch without a cached number."""
        cdef uint32_t place
        cdef uint32_t number = _number_in_window(self, batch, term, &place)
        return WINDOWED | number if number else term

    cdef int _free_epochs(self, uint32_t up_to) except -1 nogil:
        """Free the epochs before `up_to` and their terms."""
        cdef uint32_t i, j, number
        cdef Epoch* epoch
        cdef TermRecord* record
        for i in range(self.oldest, up_to):
            epoch = &self.epochs[i % EPOCH_RING_SIZE]
            if self.object_count:
                with gil:
                    self._free_objects(epoch, i)
            for j in range(epoch.count):
                number = epoch.listed[j]
                record = &self.store.records[number]
                if record.epoch != i:  # a later epoch has used it
                    continue
                slots_remove(&self.slots, <uint32_t>record.hash, number)
                record.epoch = FREED_EPOCH
                record.given, record.size = 0, self.free_record
                self.free_record = number
                self.live -= 1
            arena_reset(&epoch.bytes)
            epoch.count = 0
        self.oldest = up_to
        self.stamp += 1
        if <uint32_t>self.stamp == 0:
            with gil:
                self.stamp = _next_stamps()
        return 0

    cdef object term(self, term_t number):
        """The pyoxigraph term of a window number; None if the term has been freed.

        Expired groups that are not yet removed may still refer to freed terms.
        """
        cdef uint32_t i = number & PLACE
        cdef const TermRecord* record
        cdef Numeral numeral
        if is_numeral(number):
            record = spell(&numeral, number)
            return term_of(record.text[:record.size], record.lexical)
        if i < self.object_room and self.objects[i] != NULL:
            return <object>self.objects[i]
        record = &self.store.records[i]
        if record.epoch == FREED_EPOCH:
            return None
        made = term_of(record.text[:record.size], record.lexical)
        if i >= self.object_room:
            self._grow_objects()
        Py_INCREF(made)
        self.objects[i] = <PyObject*>made
        self.object_count += 1
        return made

    cdef int _grow_objects(self) except -1:
        """Make room for an object of each record."""
        cdef size_t room = self.store.room
        self.objects = <PyObject**>mem_grow(
            self.objects, room, sizeof(PyObject*), b"another term of the window"
        )
        memset(
            &self.objects[self.object_room], 0, (room - self.object_room) * sizeof(PyObject*)
        )
        self.object_room = <uint32_t>room
        return 0

    cdef int _free_objects(self, const Epoch* epoch, uint32_t present) except -1:
        """Drop the objects of the terms whose last use is in an epoch."""
        cdef uint32_t i, number
        for i in range(epoch.count):
            number = epoch.listed[i]
            if (
                self.store.records[number].epoch == present and number < self.object_room
                and self.objects[number] != NULL
            ):
                Py_CLEAR(self.objects[number])
                self.object_count -= 1
        return 0

    def advance(self, int64_t position):
        """See `advance_epochs`."""
        self.advance_epochs(position)

    def py_intern(self, EventBatch batch not None, term_t number):
        """See `intern`."""
        return self.intern(batch, number)

    def py_term(self, term_t number):
        """The pyoxigraph term of a number that `py_intern` returned, unless it is permanent."""
        return self.term(number)

    def intern_term(self, EventBatch batch not None, term_t number):
        """The pyoxigraph term of a number of a batch, after `py_intern`."""
        if number & LOCAL:
            number = self.intern(batch, number)
        return self.term(number) if number & WINDOWED else batch.dictionary.term(number)
