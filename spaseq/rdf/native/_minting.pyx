# cython: language_level=3, boundscheck=False, wraparound=False
"""The numbers of events and the names of their blank nodes; terms of one batch in another.

A blank node becomes `s{source}e{event}b{node}`: numbers in the order in which sources are declared,
events are read and nodes occur among the distinct facts that are stored, so equal input has equal
labels. The name of the graph has the last number. Cost: a look-up for each node or term.
"""

cimport cython
from libc.stdio cimport snprintf
from libc.string cimport memset

from spaseq.rdf._batch cimport Triple, known_term, record_of, written_record
from spaseq.rdf._memory cimport mem_alloc, mem_free
from spaseq.rdf._numerals cimport Numeral, is_numeral
from spaseq.rdf._terms cimport LOCAL, TermRecord, hash_of


cdef term_t moved(EventBatch source, term_t term, EventBatch target) except? 0 nogil:
    """The number in `target` of a term of `source`; 0 for 0."""
    cdef const TermRecord* record
    cdef Numeral numeral
    cdef term_t number
    # A numeral may have become a permanent term of the dictionary.
    if not term & LOCAL and (not is_numeral(term) or source.version == target.version):
        return term
    record = written_record(source, term, &numeral)
    number = known_term(target, record.hash, record.text, record.size)
    return number if number else target.enter(record.hash, record.text, record.size, True)


cdef bint is_blank(EventBatch batch, term_t term) noexcept nogil:
    """Whether a term of `batch` is a blank node."""
    return not is_numeral(term) and record_of(batch, term).text[0] == c"_"


@cython.final
cdef class Minter:
    """Numbers the events of one stream and names their blank nodes."""

    def __cinit__(self, uint32_t number):
        self.number = number
        self.mask = 15
        self.owns = <Own*>mem_alloc(16 * sizeof(Own))
        if self.owns == NULL:
            raise MemoryError
        self.known = 1
        self.forget()

    def __dealloc__(self):
        mem_free(self.owns)

    def state(self) -> tuple:
        """How many events were numbered, and the time and the ordinal of the last one."""
        return self.made, self.last, self.ordinal

    def restore(self, uint64_t made, int64_t last, uint32_t ordinal):
        """Continue after the events that another minter has numbered; see `state`."""
        self.made, self.last, self.ordinal = made, last, ordinal

    cdef void forget(self) noexcept nogil:
        """Prepare for another event."""
        if self.known:
            memset(self.owns, 0, (<size_t>self.mask + 1) * sizeof(Own))
            self.known = 0

    cdef term_t own(self, EventBatch batch, term_t label) except 0 nogil:
        """The node of the event for a blank node of the file; both are terms of `batch`."""
        cdef uint32_t place = (label * 0x9E3779B1u) >> 8 & self.mask
        cdef char text[64]
        cdef int size
        cdef uint64_t hash
        cdef term_t node
        while self.owns[place].label:
            if self.owns[place].label == label:
                return self.owns[place].node
            place = (place + 1) & self.mask
        size = snprintf(
            text, 64, b"_:s%ue%llub%u",
            self.number, <unsigned long long>self.made + 1, self.known,
        )
        hash = hash_of(text, size)
        node = known_term(batch, hash, text, size)
        if node == 0:
            node = batch.enter(hash, text, size, True)
        self.owns[place].label = label
        self.owns[place].node = node
        self.known += 1
        if 2 * self.known > self.mask:
            self._widen()
        return node

    cdef int _widen(self) except -1 nogil:
        cdef Own* old = self.owns
        cdef uint32_t i, place, count = self.mask + 1
        cdef Own* owns = <Own*>mem_alloc(2 * <size_t>count * sizeof(Own))
        if owns == NULL:
            with gil:
                raise MemoryError
        memset(owns, 0, 2 * <size_t>count * sizeof(Own))
        self.owns = owns
        self.mask = 2 * count - 1
        for i in range(count):
            if old[i].label:
                place = (old[i].label * 0x9E3779B1u) >> 8 & self.mask
                while owns[place].label:
                    place = (place + 1) & self.mask
                owns[place] = old[i]
        mem_free(old)
        return 0

    cdef int move(self, EventBatch source, EventBatch target) except -1 nogil:
        """Continue the open event in another batch."""
        cdef Own* old = self.owns
        cdef uint32_t i, place, count = self.mask + 1
        cdef Own own
        if self.known == 0:
            return 0
        self.owns = <Own*>mem_alloc(<size_t>count * sizeof(Own))
        if self.owns == NULL:
            self.owns = old
            with gil:
                raise MemoryError
        memset(self.owns, 0, <size_t>count * sizeof(Own))
        try:
            for i in range(count):
                if old[i].label == 0:
                    continue
                own.label = moved(source, old[i].label, target)
                own.node = moved(source, old[i].node, target)
                place = (own.label * 0x9E3779B1u) >> 8 & self.mask
                while self.owns[place].label:
                    place = (place + 1) & self.mask
                self.owns[place] = own
        finally:
            mem_free(old)
        return 0

    cdef void number_event(self, EventRecord* event) noexcept nogil:
        """Set the ordinal of the next event, whose time is known."""
        if self.made and event.micros == self.last:
            self.ordinal += 1
        else:
            self.ordinal = 0
        self.last = event.micros
        self.made += 1
        event.ordinal = self.ordinal

    def copy(self, EventBatch source not None, int index, EventBatch target not None):
        """Append an event of `source`, whose blank nodes are the file's, to `target`."""
        cdef EventRecord event = source.events[index]
        cdef EventRecord* copied
        cdef Triple triple
        cdef uint32_t i, first = target.triple_count
        self.forget()
        for i in range(event.first, event.end):
            triple = source.triples[i]
            triple.subject = moved(source, triple.subject, target)
            if is_blank(target, triple.subject):
                triple.subject = self.own(target, triple.subject)
            triple.predicate = moved(source, triple.predicate, target)
            triple.object = moved(source, triple.object, target)
            if is_blank(target, triple.object):
                triple.object = self.own(target, triple.object)
            target.add_triple(triple.subject, triple.predicate, triple.object)
        event.name = moved(source, event.name, target)
        if event.name and is_blank(target, event.name):
            event.name = self.own(target, event.name)
        event.stamp = moved(source, event.stamp, target)
        event.moment = 0
        event.first = first
        event.end = target.triple_count
        copied = target.add_event()
        copied[0] = event
        self.number_event(copied)
