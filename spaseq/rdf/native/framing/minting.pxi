"""The numbers of events and the names of their blank nodes; terms of one batch in another.

A blank node becomes `s{source}e{event}b{node}`. The numbers follow the order in which sources are
declared, events are read, and nodes occur among the distinct stored facts, so equal input has equal
labels. The name of the graph has the last number. With the source `IN_EVENT` it becomes `b{node}`:
then the text of an event depends on the event alone, and blank nodes of two events are distinct
only as long as the events are apart. Cost: a look-up for each node or term.
"""

cimport cython
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset

from spaseq.rdf.native._terms cimport (
    FIRST_PART,
    LOCAL,
    PARTS_END,
    Numeral,
    TermRecord,
    Triple,
    has_blank,
    hash_of,
    is_numeral,
    is_triple,
    known_term,
    mem_alloc,
    mem_free,
    record_of,
    second_part,
    third_part,
    written_record,
)

cdef enum:
    IN_EVENT_ALONE = 0xFFFFFFFF     # see IN_EVENT

IN_EVENT = <uint32_t>IN_EVENT_ALONE
"""The number of a source whose blank nodes are named by their place in the event alone."""


cdef term_t moved(EventBatch source, term_t term, EventBatch target) except? 0 nogil:
    """The number in `target` of a term of `source`; 0 for 0."""
    cdef const TermRecord* record
    cdef Numeral numeral
    cdef term_t number
    # A numeral may have become a permanent term of the dictionary.
    if (
        not term & LOCAL
        and <void*>source.dictionary == <void*>target.dictionary
        and (not is_numeral(term) or source.version == target.version)
    ):
        return term
    if term == 0:
        return 0
    record = written_record(source, term, &numeral)
    number = known_term(target, record.hash, record.text, record.size)
    return number if number else target.enter(record.hash, record.text, record.size, True)


cdef bint is_blank(EventBatch batch, term_t term) noexcept nogil:
    """Whether a term of `batch` is a blank node, or a triple term with one."""
    cdef const TermRecord* record
    if is_numeral(term):
        return False
    record = record_of(batch, term)
    return has_blank(record.text, record.size)


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
        """The number of events numbered so far, and the time and the ordinal of the last one."""
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
        """The node of the event for a blank node of the file; both are terms of `batch`.

        For a triple term: the term with such nodes in place of its blank nodes.
        """
        cdef uint32_t place = (label * 0x9E3779B1u) >> 8 & self.mask
        cdef char text[64]
        cdef int size
        cdef uint64_t hash
        cdef term_t node
        if is_triple(record_of(batch, label).text):
            return self.own_triple(batch, label)
        while self.owns[place].label:
            if self.owns[place].label == label:
                return self.owns[place].node
            place = (place + 1) & self.mask
        if self.number == IN_EVENT_ALONE:
            size = snprintf(text, 64, b"_:b%u", self.known)
        else:
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

    cdef term_t own_triple(self, EventBatch batch, term_t term) except 0 nogil:
        """Like `own`, for a triple term, whose text is written again."""
        cdef const TermRecord* record = record_of(batch, term)
        cdef const char* text = record.text
        cdef uint32_t size = record.size, second, third, used = 0, depth = 0, i
        cdef uint64_t hash
        cdef term_t made
        cdef char* out
        # A level has at least 16 bytes and a node, whose new label has less than 64.
        out = <char*>mem_alloc(<size_t>size + 64 * (<size_t>size // 16 + 2))
        if out == NULL:
            with gil:
                raise MemoryError
        try:
            while is_triple(text):
                second = second_part(text)
                third = third_part(text, second)
                memcpy(out + used, text, FIRST_PART)
                used += FIRST_PART
                used += self.put_own(batch, text + FIRST_PART, second - 1 - FIRST_PART, out + used)
                memcpy(out + used, text + second - 1, third - second + 1)
                used += third - second + 1
                text += third
                size -= third + PARTS_END
                depth += 1
            used += self.put_own(batch, text, size, out + used)
            for i in range(depth):
                memcpy(out + used, b" )>>", PARTS_END)
                used += PARTS_END
            hash = hash_of(out, used)
            made = known_term(batch, hash, out, used)
            return made if made else batch.enter(hash, out, used, True)
        finally:
            mem_free(out)

    cdef uint32_t put_own(
        self, EventBatch batch, const char* text, uint32_t size, char* out
    ) except 0 nogil:
        """Write a part of a triple term, with renamed blank nodes. Returns the bytes written."""
        cdef const TermRecord* record
        cdef uint64_t hash
        cdef term_t label
        if text[0] == c"_":
            hash = hash_of(text, size)
            label = known_term(batch, hash, text, size)
            if label == 0:
                label = batch.enter(hash, text, size, True)
            record = record_of(batch, self.own(batch, label))
            text, size = record.text, record.size
        memcpy(out, text, size)
        return size

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
        """Append an event of `source` to `target`; rename its blank nodes, which are the file's."""
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
