"""Consecutive events of one stream, with terms encoded as numbers.

A permanent term has its number in the dictionary; a small number is a numeral (numerals.pxi);
every other term has a number local to the batch (with the LOCAL bit). Within a batch, equal terms
have equal numbers. The batch's table of terms is small and discarded with the batch, so it stays
in the processor's cache for streams of any length: interning into one growing table costs five
times as much (docs/decisions/0003-four-kinds-of-term-number.md).

Texts of local terms may lie in the buffers that the events were read from, which live as long as
the batch. `clear` empties the batch and retains its memory, so a reused batch allocates nothing.
"""

from collections.abc import Iterable
from libc.string cimport memset

from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.rdf.time import from_micros

cdef extern from *:
    """
    /* Threads number batches without a lock. */
    static unsigned long long spaseq_serials = 0;
    #define spaseq_next_serial() __atomic_add_fetch(&spaseq_serials, 1, __ATOMIC_RELAXED)
    """
    uint64_t next_serial "spaseq_next_serial"() noexcept nogil


cdef inline term_t _refitted(EventBatch self, const term_t* numbers, term_t term) noexcept nogil:
    """The number of a term in the current dictionary; `numbers` maps local terms."""
    cdef Numeral numeral
    cdef const TermRecord* record
    cdef term_t known
    if term & LOCAL:
        return numbers[term ^ LOCAL]
    if not is_numeral(term):
        return term
    record = spell(&numeral, term)
    known = permanent_of(self.dictionary, record.hash, record.text, record.size)
    return known if known else term


cdef bytes _written(EventBatch batch, term_t term):
    """A term in N-Triples: its text, with the escapes that literals need."""
    cdef Numeral numeral
    cdef const TermRecord* record = written_record(batch, term, &numeral)
    return _escaped(record.text[:record.size])


cdef bytes _escaped(bytes text):
    cdef bytes form
    cdef uint32_t end
    if is_triple(text):
        end = third_part(text, second_part(text))
        return text[:end] + _escaped(text[end:len(text) - PARTS_END]) + text[len(text) - PARTS_END:]
    if text[0] != 34:  # "
        return text
    end = last_quote(text, <uint32_t>len(text))
    form = text[1:end]
    if b"\\" not in form and b'"' not in form and b"\n" not in form and b"\r" not in form:
        return text
    form = form.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    form = form.replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return b'"' + form + text[end:]


cdef class EventBatch:
    """A batch of encoded events; `len()` is their number."""

    def __cinit__(self, Dictionary dictionary not None, str stream="", str file=""):
        self.dictionary = dictionary
        self.stream = stream
        self.file = file
        self.buffers = []
        store_init(&self.local)
        slots_init(&self.known, 1024)
        self.triple_room = 256
        self.triples = <Triple*>mem_alloc(self.triple_room * sizeof(Triple))
        self.event_room = 64
        self.events = <EventRecord*>mem_alloc(self.event_room * sizeof(EventRecord))
        if self.triples == NULL or self.events == NULL:
            raise MemoryError
        self.version = dictionary.permanent.count
        self._renew()

    cdef int prepare(self, EventBatch other) except -1:
        """Reserve memory in this empty batch for the contents of another one, plus an eighth."""
        cdef uint32_t terms = other.local.count + other.local.count // 8
        cdef uint32_t triples = other.triple_count + other.triple_count // 8
        cdef uint32_t events = other.event_count + other.event_count // 8
        cdef void* taken
        if terms > self.local.room:
            taken = mem_realloc(self.local.records, terms * sizeof(TermRecord))
            if taken == NULL:
                raise MemoryError
            self.local.records = <TermRecord*>taken
            self.local.room = terms
        if triples > self.triple_room:
            taken = mem_realloc(self.triples, triples * sizeof(Triple))
            if taken == NULL:
                raise MemoryError
            self.triples = <Triple*>taken
            self.triple_room = triples
        if events > self.event_room:
            taken = mem_realloc(self.events, events * sizeof(EventRecord))
            if taken == NULL:
                raise MemoryError
            self.events = <EventRecord*>taken
            self.event_room = events
        if 2 * other.known.used > self.known.mask:
            slots_free(&self.known)
            slots_init(&self.known, other.known.mask + 1)
        return 0

    cdef int _renew(self) noexcept:
        self.serial = next_serial()
        return 0

    def __dealloc__(self):
        store_free(&self.local)
        slots_free(&self.known)
        mem_free(self.triples)
        mem_free(self.events)

    def __len__(self):
        return self.event_count

    def clear(self):
        """Remove the events and their terms, and retain the memory."""
        self.local.count = 1
        arena_reset(&self.local.bytes)
        slots_clear(&self.known)
        self.triple_count = 0
        self.event_count = 0
        self.buffers.clear()
        self.version = self.dictionary.permanent.count
        self._renew()

    # ---------------------------------------------------------------- terms

    cdef term_t enter(
        self, uint64_t hash, const char* text, uint32_t size, bint copied
    ) except 0 nogil:
        """Enter a term that `known_term` has not found, and return its number.

        `copied` says whether to copy the text, because it is in no buffer of the batch.
        """
        cdef term_t term = permanent_of(self.dictionary, hash, text, size)
        cdef term_t numeral
        cdef TermRecord* record
        cdef char* kept
        if term == 0 or term >= self.version:
            # A term that became permanent after the start of the batch may be a numeral in it.
            numeral = numeral_of(text, size)
            if numeral:
                return numeral
        if 2 * self.known.used > self.known.mask:
            slots_grow(&self.known)
        if term == 0:
            if copied:
                kept = <char*>arena_alloc_slow(&self.local.bytes, size)
                if kept != NULL:
                    memcpy(kept, text, size)
                text = kept
            term = store_new(&self.local) if text != NULL else 0
            if term == 0:
                with gil:
                    raise MemoryError("no room for another term in a batch of events")
            record = &self.local.records[term]
            memset(record, 0, sizeof(TermRecord))
            record.hash = hash
            record.text = text
            record.size = size
            record_shape(record)
            term |= LOCAL
        slots_put(&self.known, <uint32_t>hash, term)
        return term

    cdef term_t encode(self, object term) except 0:
        """The number of a pyoxigraph term."""
        cdef bytes text = text_of(term)
        cdef uint32_t size = <uint32_t>len(text)
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t number = known_term(self, hash, text, size)
        return number if number else self.enter(hash, text, size, True)

    cpdef object term(self, term_t number):
        """The pyoxigraph term of a number of the batch."""
        cdef const TermRecord* record
        cdef Numeral numeral
        if not number & LOCAL and not is_numeral(number):
            return self.dictionary.term(number)
        if number & LOCAL and not 0 < number ^ LOCAL < self.local.count:
            raise IndexError(f"no term of the batch has the number {number}")
        record = written_record(self, number, &numeral)
        return term_of(record.text[:record.size], record.lexical)

    def number(self, term) -> int:
        """The number of a pyoxigraph term, which is entered if it is new."""
        return self.encode(term)

    def refit(self):
        """Update the batch after the dictionary has grown.

        Terms of the batch that have become permanent get their permanent numbers.
        """
        cdef uint32_t i, count = self.local.count
        cdef TermRecord* record
        cdef term_t* numbers
        cdef term_t known
        if self.version == self.dictionary.permanent.count:
            return
        numbers = <term_t*>mem_alloc(count * sizeof(term_t))
        if numbers == NULL:
            raise MemoryError
        slots_clear(&self.known)
        for i in range(1, count):
            record = &self.local.records[i]
            known = permanent_of(self.dictionary, record.hash, record.text, record.size)
            numbers[i] = known if known else i | LOCAL
            slots_put(&self.known, <uint32_t>record.hash, numbers[i])
        for i in range(self.triple_count):
            self.triples[i].subject = _refitted(self, numbers, self.triples[i].subject)
            self.triples[i].predicate = _refitted(self, numbers, self.triples[i].predicate)
            self.triples[i].object = _refitted(self, numbers, self.triples[i].object)
        for i in range(self.event_count):
            self.events[i].name = _refitted(self, numbers, self.events[i].name)
            self.events[i].stamp = _refitted(self, numbers, self.events[i].stamp)
            self.events[i].moment = _refitted(self, numbers, self.events[i].moment)
        mem_free(numbers)
        self.version = self.dictionary.permanent.count
        self._renew()

    # ---------------------------------------------------------------- events

    cdef term_t moment(self, uint32_t event) except 0 nogil:
        """The time of an event as a term: a number as written, a date in canonical form."""
        cdef EventRecord* record = &self.events[event]
        if record.moment == 0:
            if record.stamp and not record.domain:
                record.moment = record.stamp
            else:
                with gil:
                    record.moment = self.encode(
                        from_micros(record.micros, DATE_TIME if record.domain else NUMBER).term
                    )
        return record.moment

    cdef int add_triple(self, term_t subject, term_t predicate, term_t object) except -1 nogil:
        cdef Triple* moved
        cdef Triple* triple
        if self.triple_count == self.triple_room:
            moved = <Triple*>mem_realloc(
                self.triples, 2 * <size_t>self.triple_room * sizeof(Triple)
            )
            if moved == NULL:
                with gil:
                    raise MemoryError
            self.triples = moved
            self.triple_room *= 2
        triple = &self.triples[self.triple_count]
        triple.subject = subject
        triple.predicate = predicate
        triple.object = object
        self.triple_count += 1
        return 0

    cdef EventRecord* add_event(self) except NULL nogil:
        """Append an event without triples; earlier records may move."""
        cdef EventRecord* moved
        cdef EventRecord* event
        if self.event_count == self.event_room:
            moved = <EventRecord*>mem_realloc(
                self.events, 2 * <size_t>self.event_room * sizeof(EventRecord)
            )
            if moved == NULL:
                with gil:
                    raise MemoryError
            self.events = moved
            self.event_room *= 2
        event = &self.events[self.event_count]
        memset(event, 0, sizeof(EventRecord))
        event.first = event.end = self.triple_count
        self.event_count += 1
        return event

    def add(
        self,
        facts: Iterable,
        micros: int = 0,
        ordinal: int = 0,
        name=None,
        stamp=None,
        dated: bool = False,
        statements: int | None = None,
        line: int = 0,
    ):
        """Append an event given as pyoxigraph terms.

        Args:
            facts: Its triples, possibly without those that no query can use.
            micros: Its time in microseconds.
            ordinal: The number of earlier events of the stream with the same time.
            name: The name of its graph.
            stamp: The term its time was read from.
            dated: Whether the time is a date.
            statements: The number of its statements; None: the number of `facts`.
            line: Its first line in the file.
        """
        cdef term_t subject, predicate, value
        cdef EventRecord* event
        cdef term_t named = 0 if name is None else self.encode(name)
        cdef term_t stamped = 0 if stamp is None else self.encode(stamp)
        cdef uint32_t first = self.triple_count
        try:
            for s, p, o in facts:
                subject = self.encode(s)
                predicate = self.encode(p)
                value = self.encode(o)
                self.add_triple(subject, predicate, value)
            event = self.add_event()
        except BaseException:
            self.triple_count = first  # no partial event remains
            raise
        event.first = first
        event.statements = event.end - first if statements is None else statements
        event.domain = dated
        event.line = line
        event.micros = micros
        event.ordinal = ordinal
        event.name = named
        event.stamp = stamped

    def facts(self, index: int) -> list:
        """The distinct triples of an event as pyoxigraph terms, in input order."""
        cdef EventRecord* event = &self.events[self._checked(index)]
        cdef uint32_t i
        distinct = {}
        for i in range(event.first, event.end):
            key = (self.triples[i].subject, self.triples[i].predicate, self.triples[i].object)
            if key not in distinct:
                distinct[key] = (self.term(key[0]), self.term(key[1]), self.term(key[2]))
        return list(distinct.values())

    def n_triples(self, index: int) -> bytes:
        """The stored triples of an event in N-Triples, one per line."""
        cdef EventRecord* event = &self.events[self._checked(index)]
        cdef uint32_t i
        parts = []
        for i in range(event.first, event.end):
            parts.append(_written(self, self.triples[i].subject))
            parts.append(b" ")
            parts.append(_written(self, self.triples[i].predicate))
            parts.append(b" ")
            parts.append(_written(self, self.triples[i].object))
            parts.append(b" .\n")
        return b"".join(parts)

    def has(self, index: int, predicates) -> bool:
        """Whether an event has triples of all the predicates, given as numbers."""
        cdef EventRecord* event = &self.events[self._checked(index)]
        cdef term_t predicate
        cdef uint32_t i
        for predicate in predicates:
            i = event.first
            while i < event.end and self.triples[i].predicate != predicate:
                i += 1
            if i == event.end:
                return False
        return True

    def name(self, index: int):
        """The name of an event's graph, or None."""
        cdef term_t name = self.events[self._checked(index)].name
        return self.term(name) if name else None

    def micros(self, index: int) -> int:
        """The time of an event in microseconds."""
        return self.events[self._checked(index)].micros

    def ordinal(self, index: int) -> int:
        """The number of earlier events of the stream with the same time."""
        return self.events[self._checked(index)].ordinal

    def time(self, index: int):
        """The time of an event as a Timestamp."""
        cdef uint32_t event = self._checked(index)
        cdef EventRecord* record = &self.events[event]
        if record.domain:
            return Timestamp(record.micros, DATE_TIME)
        return Timestamp(record.micros, NUMBER, self.term(self.moment(event)))

    def line(self, index: int) -> int:
        """The first line of an event in its file, 0 if it was not read from one."""
        return self.events[self._checked(index)].line

    def kept(self, index: int) -> int:
        """The number of stored statements of an event."""
        cdef uint32_t event = self._checked(index)
        return self.events[event].end - self.events[event].first

    def size(self, index: int) -> int:
        """The number of statements of an event, including pruned ones."""
        return self.events[self._checked(index)].statements

    def total_kept(self) -> int:
        """The number of stored statements of all events."""
        cdef uint64_t kept = 0
        cdef uint32_t i
        for i in range(self.event_count):
            kept += self.events[i].end - self.events[i].first
        return kept

    def total(self, uint32_t first = 0, uint32_t end = 0xFFFFFFFFu) -> int:
        """The number of statements, including pruned ones, of events[first:end]."""
        cdef uint64_t total = 0
        cdef uint32_t i
        for i in range(first, min(end, self.event_count)):
            total += self.events[i].statements
        return total

    @property
    def terms(self):
        """The number of local terms."""
        return self.local.count - 1

    @property
    def statements(self):
        """The number of stored triples of all events."""
        return self.triple_count

    cdef uint32_t _checked(self, object index) except? 0xFFFFFFFF:
        if not 0 <= index < self.event_count:
            raise IndexError(f"the batch has {self.event_count} events, not one at {index}")
        return index
