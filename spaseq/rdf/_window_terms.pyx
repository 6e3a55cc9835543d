# cython: language_level=3, boundscheck=False, wraparound=False
"""The terms that matched events have brought into the window, each once.

Terms of a batch die with it. Those that a row of a match keeps are entered here: equal terms
of different events get one number and one Python object. A term belongs to the epoch that
used it last; an epoch is a stretch of the stream a quarter of the horizon long, or as much longer
as it takes to bring some hundred terms or some kilobytes, and goes, with its bytes and numbers,
when the stream is a horizon past its end. So there is never more here than those and what one and a
half horizons have brought, however long the stream is.

Invariant: a number is valid until the stream is one horizon past its last use; no reader
may hold it longer. Each epoch lists every term that it was the last to use. Cost: entering is a
look-up, and a copy of the text once per epoch; dropping an epoch is linear in those it lists. A
term of a batch remembers its number and the stamp under which that was given: the number is its
own as long as the record has the same stamp, for there are new ones whenever numbers come free.
Small integers and decimals are their own numbers, without an object (_numerals.pyx).
"""

from cpython.ref cimport Py_CLEAR, Py_INCREF, PyObject
from libc.stdint cimport INT64_MAX
from libc.string cimport memcpy, memset

from spaseq.rdf._batch cimport record_of
from spaseq.rdf._dictionary cimport term_of
from spaseq.rdf._memory cimport (
    arena_free,
    arena_piece,
    arena_reset,
    give_back,
    longer,
    no_room,
    prefetch,
    take,
)
from spaseq.rdf._numerals cimport Numeral, is_numeral, numeral_of, spell
from spaseq.rdf._terms cimport (
    LOCAL,
    PLACE,
    WINDOWED,
    TermRecord,
    hash_of,
    record_is,
    record_shape,
    slots_free,
    slots_grow,
    slots_init,
    slots_next,
    slots_put_at,
    slots_remove,
    store_free,
    store_init,
    store_new,
)

cdef enum:
    AHEAD = 8           # so many terms ahead of that which is looked for
    FAR = 1 << 14       # a table of more slots is not all near: these have 128 KB
    EPOCHS = 8      # in the ring: those of one and a half horizons, and the current one
    FEWEST = 256            # terms of an epoch that ends, or
    LEAST_BYTES = 1 << 15   # of its texts: what comes again and again is copied for each epoch

cdef uint32_t FREE = 0xFFFFFFFFu
cdef uint64_t NEVER = 1     # before any stamp

cdef uint64_t _taken = 0


cdef uint64_t _stamps():
    """The first of 2**32 stamps that no window has had."""
    global _taken
    _taken += 1
    return _taken << 32


cdef inline bint _is(WindowTerms self, uint32_t number, const TermRecord* wanted) noexcept nogil:
    """Whether a number is that of a term."""
    return record_is(&self.store.records[number], wanted.hash, wanted.text, wanted.size)


cdef inline uint32_t _find(
    WindowTerms self, const TermRecord* wanted, uint32_t* place
) noexcept nogil:
    """The number of a term by its text; or 0, and where in the table it would be."""
    cdef term_t number
    place[0] = <uint32_t>wanted.hash
    while True:
        number = slots_next(&self.known, <uint32_t>wanted.hash, place)
        if number == 0 or _is(self, number, wanted):
            return number


cdef inline uint32_t _number(
    WindowTerms self, EventBatch batch, term_t term, uint32_t* place
) noexcept nogil:
    """The number of a term that is the batch's own; or 0, and where in the table it would be.

    The cache is asked for what it takes to find those that come next: terms are numbered as they
    come, so most are looked for soon. That is written here, for a call of a function that does
    nothing else may be left out by compilers.
    """
    cdef TermRecord* wanted = record_of(batch, term)
    cdef uint32_t number
    cdef uint32_t next = (term ^ LOCAL) + 1
    cdef const TermRecord* record
    if self.known.mask > FAR and next + AHEAD < batch.local.count:
        record = &batch.local.records[next + AHEAD]
        prefetch(&self.known.slots[<uint32_t>record.hash & self.known.mask])
        record = &batch.local.records[next + AHEAD // 2]
        prefetch(&self.store.records[
            self.known.slots[<uint32_t>record.hash & self.known.mask].term
        ])
    number = _find(self, wanted, place)
    if number:
        wanted.epoch, wanted.given = number, self.store.records[number].given
    return number


cdef inline int _place(WindowTerms self, uint32_t number, const char* text) except -1 nogil:
    """Let a term be of the current epoch: its text is copied there."""
    cdef TermRecord* record = &self.store.records[number]
    cdef Epoch* epoch = &self.epochs[self.current % EPOCHS]
    cdef char* kept = <char*>arena_piece(&epoch.bytes, record.size)
    if kept == NULL:
        no_room(b"the text of a term of the window")
    memcpy(kept, text, record.size)
    if epoch.count == epoch.room:
        epoch.room = 2 * epoch.room + 16
        epoch.listed = <uint32_t*>longer(
            epoch.listed, epoch.room, sizeof(uint32_t), b"another term of the window"
        )
    epoch.listed[epoch.count] = number
    epoch.count += 1
    record.text = kept
    record.epoch = self.current
    return 0


cdef inline int _use(WindowTerms self, uint32_t number) except -1 nogil:
    """A term is used again: it is of the current epoch."""
    cdef TermRecord* record = &self.store.records[number]
    if record.epoch != self.current:
        _place(self, number, record.text)
    return 0


cdef inline uint32_t _new(
    WindowTerms self, const TermRecord* wanted, uint32_t place
) except 0 nogil:
    """The number of a term that has none, from now on at a place of the table."""
    cdef uint32_t number
    number = self.unused
    if number:
        self.unused = self.store.records[number].size
    else:
        number = store_new(&self.store)
        if number == 0:
            no_room(b"another term of the window")
    self.store.records[number] = wanted[0]
    self.store.records[number].given = self.stamp
    _place(self, number, wanted.text)
    slots_put_at(&self.known, place, <uint32_t>wanted.hash, number)
    self.live += 1
    if 2 * self.known.used > self.known.mask:
        slots_grow(&self.known)
    return number


cdef class WindowTerms:
    """Terms by number, forgotten behind the window.

    `horizon` is how far back a position (a time, or a count of events) may be needed.
    """

    def __cinit__(self, int64_t horizon):
        store_init(&self.store)
        slots_init(&self.known, 256)
        # A term that was never given a number does not take this for its own.
        self.store.records[0].given = NEVER
        self.stamp = _stamps()
        self.horizon = horizon
        self.epochs = <Epoch*>take(EPOCHS * sizeof(Epoch))
        if self.epochs == NULL:
            raise MemoryError
        memset(self.epochs, 0, EPOCHS * sizeof(Epoch))

    def __dealloc__(self):
        cdef uint32_t i
        if self.epochs != NULL:
            for i in range(<uint32_t>EPOCHS):
                arena_free(&self.epochs[i].bytes)
                give_back(self.epochs[i].listed)
        give_back(self.epochs)
        for i in range(self.object_room):
            Py_CLEAR(self.objects[i])
        give_back(self.objects)
        store_free(&self.store)
        slots_free(&self.known)

    @property
    def bytes(self):
        """The bytes of texts held now."""
        return sum(self.epochs[i].bytes.used for i in range(EPOCHS))

    cdef int move_to(self, int64_t position) except -1 nogil:
        """The stream has come to a position: epochs a horizon behind it go."""
        cdef uint32_t gone
        cdef const Epoch* epoch
        if not self.begun:
            self.begun = True
            self.cut = self._end(position)
        self.epochs[self.current % EPOCHS].last = position
        if position < self.cut:
            return 0
        self.cut = self._end(position)
        gone = self.oldest
        # The ring must have room for one more epoch, whatever the positions are.
        while gone < self.current and (
            # Positions do not fall, but two may be further apart than a signed number can say.
            <uint64_t>position - <uint64_t>self.epochs[gone % EPOCHS].last
            > <uint64_t>self.horizon
            or self.current - gone >= EPOCHS - 1
        ):
            gone += 1
        if gone > self.oldest:
            self._drop(gone)
        epoch = &self.epochs[self.current % EPOCHS]
        if epoch.count < FEWEST and epoch.bytes.used < LEAST_BYTES:
            return 0
        self.current += 1
        self.epochs[self.current % EPOCHS].last = position
        return 0

    cdef int64_t _end(self, int64_t position) noexcept nogil:
        cdef int64_t length = self.horizon // 4 + 1
        return position + length if position < INT64_MAX - length else INT64_MAX

    cdef term_t give(self, EventBatch batch, term_t term, uint32_t number) except 0 nogil:
        """As `keep`, for a term of a batch with a number that it is known to have, or 0."""
        cdef TermRecord* wanted = record_of(batch, term)
        cdef uint32_t place
        if number == 0:
            number = _number(self, batch, term, &place)
        if number:
            _use(self, number)
        else:
            number = _new(self, wanted, place)
            wanted.epoch, wanted.given = number, self.stamp
        return WINDOWED | number

    cdef int use(self, uint32_t number) except -1 nogil:
        """A term is used again: it is of the current epoch."""
        return _use(self, number)

    cdef term_t enter(self, const char* text, uint32_t size) except 0 nogil:
        """The number from now on of a term that is not permanent, by its text."""
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
        number = _find(self, &wanted, &place)
        if number:
            _use(self, number)
            return WINDOWED | number
        return WINDOWED | _new(self, &wanted, place)

    cdef term_t find(self, EventBatch batch, term_t term) noexcept nogil:
        """As `seek`, for a term of a batch that is not remembered."""
        cdef uint32_t place
        cdef uint32_t number = _number(self, batch, term, &place)
        return WINDOWED | number if number else term

    cdef int _drop(self, uint32_t up_to) except -1 nogil:
        """Forget the terms of all epochs before `up_to`."""
        cdef uint32_t i, j, number
        cdef Epoch* epoch
        cdef TermRecord* record
        for i in range(self.oldest, up_to):
            epoch = &self.epochs[i % EPOCHS]
            if self.object_count:
                with gil:
                    self._drop_objects(epoch, i)
            for j in range(epoch.count):
                number = epoch.listed[j]
                record = &self.store.records[number]
                if record.epoch != i:  # a later epoch has used it
                    continue
                slots_remove(&self.known, <uint32_t>record.hash, number)
                record.epoch = FREE
                record.given, record.size = 0, self.unused
                self.unused = number
                self.live -= 1
            arena_reset(&epoch.bytes)
            epoch.count = 0
        self.oldest = up_to
        self.stamp += 1
        if <uint32_t>self.stamp == 0:
            with gil:
                self.stamp = _stamps()
        return 0

    cdef object term(self, term_t number):
        """The pyoxigraph term of a windowed number; None where the window has passed over it.

        What is dead, but not yet swept away, may still name it.
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
        if record.epoch == FREE:
            return None
        made = term_of(record.text[:record.size], record.lexical)
        if i >= self.object_room:
            self._widen_objects()
        Py_INCREF(made)
        self.objects[i] = <PyObject*>made
        self.object_count += 1
        return made

    cdef int _widen_objects(self) except -1:
        """Room for an object of each record."""
        cdef size_t room = self.store.room
        self.objects = <PyObject**>longer(
            self.objects, room, sizeof(PyObject*), b"another term of the window"
        )
        memset(
            &self.objects[self.object_room], 0, (room - self.object_room) * sizeof(PyObject*)
        )
        self.object_room = <uint32_t>room
        return 0

    cdef int _drop_objects(self, const Epoch* epoch, uint32_t present) except -1:
        """Forget the objects of the terms that an epoch was the last to use."""
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
        """See `move_to`."""
        self.move_to(position)

    def hold(self, EventBatch batch not None, term_t number):
        """The number that a term of a batch has for the window."""
        return self.keep(batch, number)

    def look(self, term_t number):
        """The pyoxigraph term of a number that `hold` gave for a term that is not permanent."""
        return self.term(number)

    def kept(self, EventBatch batch not None, term_t number):
        """The pyoxigraph term of a number of a batch, kept for the window."""
        if number & LOCAL:
            number = self.keep(batch, number)
        return self.term(number) if number & WINDOWED else batch.dictionary.term(number)
