"""Events as numbers, many at a time; see _batch.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.rdf._dictionary cimport Dictionary, awaited
from spaseq.rdf._numerals cimport Numeral, is_numeral, spell
from spaseq.rdf._terms cimport (
    LOCAL,
    WINDOWED,
    SlotTable,
    TermRecord,
    TermStore,
    record_is,
    shared_records,
    slots_next,
    term_t,
)

cdef struct Triple:
    term_t subject
    term_t predicate
    term_t object

cdef struct EventRecord:
    int64_t micros          # its time
    uint64_t line           # its first line in the file, 0 if it was not read from one
    uint32_t first          # its triples are triples[first:end], possibly with duplicates
    uint32_t end
    uint32_t statements     # statements read, including pruned ones
    uint32_t ordinal
    term_t name             # of its graph, 0 for none
    term_t stamp            # the literal the time was read from, 0 for none
    term_t moment           # the time as a term, 0 until first used (see `moment`)
    uint8_t domain          # 0: the time is a number, 1: a date


cdef class EventBatch:
    cdef readonly Dictionary dictionary
    cdef TermStore local            # terms that are not permanent
    cdef SlotTable known            # the terms of the batch by text, including permanent ones
    cdef Triple* triples
    cdef uint32_t triple_count, triple_room
    cdef EventRecord* events
    cdef uint32_t event_count, event_room
    cdef list buffers               # the bytes objects that records of `local` point into
    cdef uint32_t version           # of the dictionary when the batch was started
    cdef readonly uint64_t serial   # unique to the current contents of the batch
    cdef TermStore* window          # of the run that processes the batch, else NULL
    cdef public str stream          # the IRI of the events' stream
    cdef public str file            # the file they were read from, "" for none

    cdef term_t enter(
        self, uint64_t hash, const char* text, uint32_t size, bint copied
    ) except 0 nogil
    cdef int add_triple(self, term_t subject, term_t predicate, term_t object) except -1 nogil
    cdef EventRecord* add_event(self) except NULL nogil
    cdef int prepare(self, EventBatch other) except -1
    cdef int _renew(self) noexcept
    cdef term_t encode(self, object term) except 0
    cdef term_t moment(self, uint32_t event) except 0 nogil
    cpdef object term(self, term_t number)
    cdef uint32_t _checked(self, object index) except? 0xFFFFFFFF


cdef inline TermRecord* record_of(EventBatch batch, term_t term) noexcept nogil:
    """The record of a local, permanent or window term; not for numerals.

    Interning may move the record.
    """
    if term & LOCAL:
        return &batch.local.records[term ^ LOCAL]
    if term & WINDOWED:
        return &batch.window.records[term ^ WINDOWED]
    return shared_records(&batch.dictionary.permanent) + term


cdef inline const TermRecord* written_record(
    EventBatch batch, term_t term, Numeral* numeral
) noexcept nogil:
    """Like `record_of`, but the record of a numeral is written to `numeral`."""
    return spell(numeral, term) if is_numeral(term) else record_of(batch, term)


cdef inline term_t known_term(
    EventBatch batch, uint64_t hash, const char* text, uint32_t size
) noexcept nogil:
    """The number of a term that is in the batch's table, else 0; numerals are not in it."""
    cdef uint32_t place = <uint32_t>hash
    cdef term_t term
    awaited(batch.dictionary, hash)
    while True:
        term = slots_next(&batch.known, <uint32_t>hash, &place)
        if term == 0 or record_is(record_of(batch, term), hash, text, size):
            return term
