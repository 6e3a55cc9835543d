# cython: language_level=3, boundscheck=False, wraparound=False
"""The permanent terms of a run: those of its queries and of its knowledge base.

Interning gives a term a number, the same for equal terms, so that the engine compares
numbers. The terms of events are not interned here: each batch has a store of its own (see
_batch), which begins with a look-up of this one; so an event's term has the number of the
permanent term wherever there is one, and memory does not grow with the stream.

Most terms of events are not here, and a knowledge base makes the table large. So two filters say
first what is surely not here (`permanent_of`): a bit for each datatype and each namespace
(`family_of`), as no number or time of an event is here where the knowledge base has none of its
kind, and the IRIs of events are mostly not named as what is known of things; and some bits for
each term, one word to look at, which is fetched (`awaited`) while a batch looks among its own
terms. Else reading would wait for memory at each new term. Where there are so few terms that the
words are always near, they are looked at alone, which is less work.

A look-up that finds its term waits for a slot and then for the term's text, and for nothing else:
a slot holds where the text lies, with some bits of its hash, and the term's number lies in front
of the text. The record is for those who ask for more.

Invariant: terms are only ever added; a batch remembers how many there were (`version`), and is
made to fit again (`EventBatch.refit`) where there are more. Source of the filter: Putze, Sanders
and Singler, *Cache-, hash- and space-efficient Bloom filters* (2009).
"""

import pyoxigraph as ox

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf._memory cimport arena_take, give_back, zeroed
from spaseq.rdf._terms cimport (
    TermRecord,
    hash_of,
    record_shape,
    store_free,
    store_init,
    store_new,
)

from spaseq.rdf.tagged import tag_of, tagged_literal

cdef object NamedNode = ox.NamedNode
cdef object BlankNode = ox.BlankNode
cdef object Literal = ox.Literal
cdef str XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


cdef inline uint64_t slot_of(const Entry* entry, uint64_t hash) noexcept nogil:
    """Where an entry is, of addresses the lower 52 bits, above the highest 16 bits of its hash.

    Pieces of an arena are aligned to 16 bytes: the four bits that are lost are zero.
    """
    return <uint64_t><size_t>entry << 12 | hash >> 48


cdef inline const Entry* entry_of(uint64_t slot) noexcept nogil:
    return <const Entry*><size_t>(slot >> 16 << 4)


cdef class Dictionary:
    """Permanent terms and their numbers."""

    def __cinit__(self):
        store_init(&self.permanent)
        self.slot_mask = 255
        self.slots = <uint64_t*>zeroed(256, sizeof(uint64_t))
        self.hint_mask = 31
        self.hints = <uint64_t*>zeroed(32, sizeof(uint64_t))
        self.objects = [None]

    def __dealloc__(self):
        give_back(self.hints)
        store_free(&self.permanent)
        give_back(self.slots)

    def __len__(self):
        return self.permanent.count - 1

    @property
    def version(self):
        """How many terms there are: a batch fits the dictionary it was encoded with."""
        return self.permanent.count

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil:
        """The number of a term that the filters do not rule out, 0 where there is none."""
        cdef uint32_t place = <uint32_t>hash & self.slot_mask
        cdef uint64_t slot
        cdef const Entry* entry
        while True:
            slot = self.slots[place]
            if slot == 0:
                return 0
            if slot & 0xFFFF == hash >> 48:
                entry = entry_of(slot)
                if entry.size == size and memcmp(<const char*>(entry + 1), text, size) == 0:
                    return entry.term
            place = (place + 1) & self.slot_mask

    cdef term_t enter(self, bytes text) except 0:
        """The number of the term with this text, which becomes permanent."""
        cdef uint32_t size = <uint32_t>len(text)
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t term = permanent_of(self, hash, text, size)
        cdef TermRecord* record
        cdef Entry* entry
        cdef uint32_t family
        if term:
            return term
        if 2 * <uint64_t>self.permanent.count > self.slot_mask:
            self._grow_slots()
        entry = <Entry*>arena_take(&self.permanent.bytes, sizeof(Entry) + size)
        term = store_new(&self.permanent) if entry != NULL else 0
        if term == 0:
            raise MemoryError("no room for another permanent term")
        entry.term = term
        entry.size = size
        record = &self.permanent.records[term]
        memset(record, 0, sizeof(TermRecord))
        record.hash = hash
        record.text = <const char*>memcpy(entry + 1, <const char*>text, size)
        record.size = size
        record_shape(record)
        self._put(slot_of(entry, hash), hash)
        if term > 8 * (<uint64_t>self.hint_mask + 1):
            self._grow_hints()
        self.hints[(hash >> 40) & self.hint_mask] |= hint_of(hash)
        family = family_of(text, size)
        self.families[family >> 6] |= <uint64_t>1 << (family & 63)
        self.objects.append(None)
        return term

    cdef void _put(self, uint64_t slot, uint64_t hash) noexcept nogil:
        """Enter what is not there; there must be room."""
        cdef uint32_t place = <uint32_t>hash & self.slot_mask
        while self.slots[place]:
            place = (place + 1) & self.slot_mask
        self.slots[place] = slot

    cdef int _grow_slots(self) except -1:
        """Twice the slots, and the terms so far entered again."""
        cdef uint64_t count = 2 * (<uint64_t>self.slot_mask + 1)
        cdef uint64_t* slots = <uint64_t*>zeroed(count, sizeof(uint64_t))
        cdef const TermRecord* record
        cdef uint32_t i
        give_back(self.slots)
        self.slots = slots
        self.slot_mask = <uint32_t>(count - 1)
        for i in range(1, self.permanent.count):
            record = &self.permanent.records[i]
            self._put(slot_of(<const Entry*>record.text - 1, record.hash), record.hash)
        return 0

    cdef int _grow_hints(self) except -1:
        """Twice the words, and the terms so far entered again."""
        cdef uint64_t words = 2 * (<uint64_t>self.hint_mask + 1)
        cdef uint64_t* hints = <uint64_t*>zeroed(words, sizeof(uint64_t))
        cdef uint64_t hash
        cdef uint32_t i
        give_back(self.hints)
        self.hints = hints
        self.hint_mask = <uint32_t>(words - 1)
        for i in range(1, self.permanent.count):
            hash = self.permanent.records[i].hash
            hints[(hash >> 40) & self.hint_mask] |= hint_of(hash)
        return 0

    cpdef term_t intern(self, object term) except 0:
        """The number of a pyoxigraph term, which becomes permanent."""
        return self.enter(text_of(term))

    cpdef object term(self, term_t number):
        """The pyoxigraph term of a permanent number."""
        cdef TermRecord* record
        if not 0 < number < self.permanent.count:
            raise IndexError(f"no permanent term has the number {number}")
        known = self.objects[number]
        if known is None:
            record = &self.permanent.records[number]
            known = term_of(record.text[:record.size], record.lexical)
            self.objects[number] = known
        return known


cpdef bytes text_of(object term):
    """A pyoxigraph term as records have it: N-Quads without escapes."""
    cdef type cls = type(term)
    cdef str value = term.value
    if cls is NamedNode:
        return f"<{value}>".encode()
    if cls is BlankNode:
        return f"_:{value}".encode()
    if term.language is not None:
        return f'"{value}"@{tag_of(term)}'.encode()
    cdef str datatype = term.datatype.value
    if datatype == XSD_STRING:
        return f'"{value}"'.encode()
    return f'"{value}"^^<{datatype}>'.encode()


cdef dict datatypes = {}
cdef Py_ssize_t MOST_DATATYPES = 1024


cdef object _datatype(str iri):
    """The IRI of a datatype: streams have few of them, in every literal."""
    known = datatypes.get(iri)
    if known is None:
        known = NamedNode(iri)
        if len(datatypes) < MOST_DATATYPES:
            datatypes[iri] = known
    return known


cpdef object term_of(bytes text, uint32_t lexical):
    """The pyoxigraph term with this text; `lexical` is the size of its form alone."""
    cdef str suffix, value
    if text[0] == 60:  # <
        return NamedNode(text[1 : len(text) - 1].decode())
    if text[0] == 95:  # _
        return BlankNode(text[2:].decode())
    value = text[1 : lexical + 1].decode()
    suffix = text[lexical + 2 :].decode()
    if not suffix:
        return Literal(value)
    if suffix[0] == "^":
        return Literal(value, datatype=_datatype(suffix[3 : len(suffix) - 1]))
    return tagged_literal(value, suffix[1:])


cdef object written_term(bytes text):
    """The pyoxigraph term with this text."""
    # No suffix has a quote: neither IRIs nor languages may.
    return term_of(text, <uint32_t>(text.rindex(b'"') - 1) if text[0] == 34 else 0)
