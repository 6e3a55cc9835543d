"""Divides a batch of events by key into parts, each a separate batch.

The key of an event is the value at some ends of its triples (spaseq/gpm/key_ends.py). An event with
several keys may belong to several parts, and an event without a key to none. Each part has its own
copy of the records of all terms, since matching changes them, and shares the texts of the whole
batch.

Invariant: the dictionaries of all parts have the same terms under the same numbers as that of the
whole batch. Cost: one step per triple, and a copy of the records of terms for each part.
"""

from libc.string cimport memcpy

from spaseq.rdf.native._terms cimport (
    LOCAL,
    WINDOWED,
    Dictionary,
    EventRecord,
    Numeral,
    Slot,
    Triple,
    mem_calloc,
    mem_free,
    mem_realloc,
    raise_no_memory,
    term_t,
    written_record,
)

cdef enum:
    SUBJECT = 1
    OBJECT = 2

MOST_PARTS = 64     # the bits of a set of parts


cdef void* sized(void* block, size_t size) except NULL nogil:
    """Reallocate a block with another size."""
    cdef void* moved = mem_realloc(block, size)
    if moved == NULL:
        raise_no_memory(b"the parts of a batch")
    return moved


cdef class EventPart:
    """The events of a batch that belong to one part; `places` has their indexes in the batch."""

    def __dealloc__(self):
        mem_free(self.places)
        mem_free(self.shared)


cdef class EventParts:
    """Divides batches.

    Args:
        dictionary: the permanent terms of the batches.
        ends: (predicate, whether it is the object) of the ends that have keys.
        dictionaries: for each part, the permanent terms of the run that receives it.

    Raises:
        ValueError: if the dictionaries differ, or there are more than 64.
    """

    cdef Dictionary dictionary
    cdef list dictionaries
    cdef uint32_t parts
    cdef uint32_t known         # permanent terms
    cdef uint8_t* wanted        # per permanent term: which ends of its triples have keys
    cdef uint64_t* of_event     # per event of the batch: its parts
    cdef uint32_t room

    def __cinit__(self, Dictionary dictionary not None, ends, list dictionaries not None):
        cdef Dictionary other
        cdef term_t number
        self.dictionary, self.dictionaries = dictionary, dictionaries
        self.parts, self.known = <uint32_t>len(dictionaries), dictionary.permanent.count
        if self.parts > MOST_PARTS:
            raise ValueError(f"events are divided into at most {MOST_PARTS} parts")
        for other in dictionaries:
            if not same_terms(dictionary, other):
                raise ValueError("the runs number permanent terms differently")
        self.wanted = <uint8_t*>mem_calloc(self.known, 1)
        for predicate, is_object in ends:
            number = dictionary.intern(predicate)
            if number >= self.known:
                raise ValueError(f"{predicate} is not a term of the run")
            self.wanted[number] |= <uint8_t>(OBJECT if is_object else SUBJECT)

    def __dealloc__(self):
        mem_free(self.wanted)
        mem_free(self.of_event)

    def divide(self, EventBatch batch not None) -> list:
        """The parts of a batch, which other threads may process."""
        cdef uint32_t part
        cdef EventPart made
        batch.refit()
        if batch.event_count > self.room:
            self.room = 2 * batch.event_count
            self.of_event = <uint64_t*>sized(self.of_event, self.room * sizeof(uint64_t))
        found = []
        with nogil:
            self._find(batch)
        for part in range(self.parts):
            made = EventPart.__new__(EventPart)
            made.part = part
            made.batch = EventBatch(self.dictionaries[part], batch.stream, batch.file)
            made.batch.buffers.append(batch)
            with nogil:
                self._copy(batch, made, made.batch)
            found.append(made)
        return found

    cdef int _find(self, EventBatch batch) except -1 nogil:
        """Find the parts of each event."""
        cdef uint32_t i, j
        cdef uint64_t found
        cdef uint8_t ends
        cdef const Triple* triple
        for i in range(batch.event_count):
            found = 0
            for j in range(batch.events[i].first, batch.events[i].end):
                triple = &batch.triples[j]
                if triple.predicate & (LOCAL | WINDOWED) or triple.predicate >= self.known:
                    continue
                ends = self.wanted[triple.predicate]
                if ends & SUBJECT:
                    found |= self._part(batch, triple.subject)
                if ends & OBJECT:
                    found |= self._part(batch, triple.object)
            self.of_event[i] = found
        return 0

    cdef inline uint64_t _part(self, EventBatch batch, term_t term) noexcept nogil:
        """The part of a key, as a bit."""
        cdef Numeral numeral
        return <uint64_t>1 << part_of_term(written_record(batch, term, &numeral), self.parts)

    cdef int _copy(self, EventBatch batch, EventPart made, EventBatch part) except -1 nogil:
        """Copy the terms, and the events that belong to a part."""
        cdef uint32_t i, triples = 0
        cdef size_t events = 0, slots = <size_t>batch.known.mask + 1
        cdef uint64_t bit = <uint64_t>1 << made.part
        cdef EventRecord* event
        for i in range(batch.event_count):
            if self.of_event[i] & bit:
                events += 1
                triples += batch.events[i].end - batch.events[i].first
        if events == 0:
            return 0
        made.places = <uint32_t*>sized(NULL, events * sizeof(uint32_t))
        made.shared = <uint8_t*>mem_calloc(events, 1)
        part.local.records = <TermRecord*>sized(
            part.local.records, batch.local.count * sizeof(TermRecord)
        )
        part.local.room = part.local.count = batch.local.count
        memcpy(part.local.records, batch.local.records, batch.local.count * sizeof(TermRecord))
        part.known.slots = <Slot*>sized(part.known.slots, slots * sizeof(Slot))
        part.known.mask, part.known.used = batch.known.mask, batch.known.used
        memcpy(part.known.slots, batch.known.slots, slots * sizeof(Slot))
        part.triples = <Triple*>sized(part.triples, (triples + 1) * sizeof(Triple))
        part.triple_room = triples + 1
        part.events = <EventRecord*>sized(part.events, events * sizeof(EventRecord))
        part.event_room = events
        for i in range(batch.event_count):
            if not self.of_event[i] & bit:
                continue
            event = &part.events[part.event_count]
            event[0] = batch.events[i]
            event.first = part.triple_count
            triples = batch.events[i].end - batch.events[i].first
            memcpy(
                part.triples + event.first, batch.triples + batch.events[i].first,
                triples * sizeof(Triple),
            )
            part.triple_count += triples
            event.end = part.triple_count
            made.places[part.event_count] = i
            made.shared[part.event_count] = self.of_event[i] != bit
            part.event_count += 1
        return 0


cdef uint32_t part_of_term(const TermRecord* record, uint32_t parts) noexcept nogil:
    """The part of a key of one term."""
    return part_of_key(key_with(0, record), parts)


cdef bint same_terms(Dictionary one, Dictionary other) noexcept:
    """Whether two dictionaries have the same terms under the same numbers."""
    cdef uint32_t i
    cdef const TermRecord* left
    cdef const TermRecord* right
    if one.permanent.count != other.permanent.count:
        return False
    for i in range(1, one.permanent.count):
        left, right = &one.permanent.records[i], &other.permanent.records[i]
        if left.hash != right.hash or left.size != right.size:
            return False
        if left.text[:left.size] != right.text[:right.size]:
            return False
    return True
