"""The permanent terms of a run: those of its queries and of its knowledge base.

Interning assigns a number to a term, the same for equal terms, so that the engine compares
numbers. Terms of events are not interned here. Each batch has its own store (see _batch), which
first looks a term up here; an event's term thus has the number of the equal permanent term, and
memory does not grow with the stream.

Most terms of events are not permanent, and a knowledge base makes the table large, so that every
new term would cost cache misses. Two filters rule out most terms first (`permanent_of`): a bit for
each datatype and each namespace (`family_of`), since a knowledge base rarely has literals and IRIs
of the same families as the events; and a blocked Bloom filter, one word per look-up, which is
prefetched (`awaited`) while a batch searches its own table. If the Bloom filter is small enough for
the L1 cache, it is used alone, which is cheaper.

A look-up that finds its term has two dependent memory accesses, the slot and the entry: a slot
holds the address of the entry with some bits of the hash, and the entry holds the term's number
and text. The record is read only for other attributes.

Invariant: terms are never removed. A batch stores the number of terms (`version`), and must be
updated (`EventBatch.refit`) when there are more. Source of the filter: Putze, Sanders and Singler,
*Cache-, hash- and space-efficient Bloom filters* (2009).

While one thread runs queries and enters terms, other threads may encode batches (`share`). They
only look terms up, and read the hash and the text of records. So a table that grows is copied and
published as a whole, and the old one is kept until no other thread reads. A term is published by
its slot, after its entry and its record. A thread that misses a term just entered encodes it as a
term of its batch, and the batch is updated before it is processed, since its version is older.
"""

from libc.string cimport memset

import pyoxigraph as ox

from spaseq.rdf.tagged import tag_of, tagged_literal

# An entry of the table of texts: a look-up reads a term's number, size and text in one place.
cdef struct Entry:
    term_t term
    uint32_t size       # bytes of the text, which follows the entry

cdef object NamedNode = ox.NamedNode

cdef object BlankNode = ox.BlankNode

cdef object Literal = ox.Literal

cdef object TripleTerm = ox.Triple

cdef str XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


cdef inline uint64_t slot_of(const Entry* entry, uint64_t hash) noexcept nogil:
    """The slot of an entry: its address shifted by 12 bits, and the highest 16 bits of its hash.

    Pieces of an arena are aligned to 16 bytes, so the four lowest bits of the address are zero.
    """
    return <uint64_t><size_t>entry << 12 | hash >> 48


cdef inline const Entry* entry_of(uint64_t slot) noexcept nogil:
    return <const Entry*><size_t>(slot >> 16 << 4)


cdef Words* words_new(uint64_t count) except NULL:
    """A table of `count` words that are zero."""
    cdef Words* table = <Words*>mem_calloc(count + 1, sizeof(uint64_t))
    table.mask = count - 1
    return table


cdef void put_slot(Words* slots, uint64_t slot, uint64_t hash) noexcept nogil:
    """Insert a slot that is not in the table; there must be room."""
    cdef uint32_t place = <uint32_t>(hash & slots.mask)
    while slots.at[place]:
        place = <uint32_t>((place + 1) & slots.mask)
    set_word(&slots.at[place], slot)


cdef class Dictionary:
    """Permanent terms and their numbers."""

    def __cinit__(self):
        store_init(&self.permanent)
        self.slots = words_new(256)
        self.hints = words_new(32)
        self.objects = [None]

    def __dealloc__(self):
        cdef uint32_t i
        mem_free(self.hints)
        store_free(&self.permanent)
        mem_free(self.slots)
        for i in range(self.retired_count):
            mem_free(self.retired[i])
        mem_free(self.retired)

    def __len__(self):
        return self.permanent.count - 1

    @property
    def version(self):
        """The number of terms plus one; a batch stores the version it was encoded with."""
        return self.permanent.count

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil:
        """The number of a term, or 0, without the filters."""
        cdef Words* slots = loaded(&self.slots)
        cdef uint32_t place = <uint32_t>hash & <uint32_t>slots.mask
        cdef uint64_t slot
        cdef const Entry* entry
        while True:
            slot = word_at(&slots.at[place])
            if slot == 0:
                return 0
            if slot & 0xFFFF == hash >> 48:
                entry = entry_of(slot)
                if entry.size == size and memcmp(<const char*>(entry + 1), text, size) == 0:
                    return entry.term
            place = (place + 1) & <uint32_t>slots.mask

    cdef term_t enter(self, bytes text) except 0:
        """Make the term with this text permanent and return its number."""
        cdef uint32_t size = <uint32_t>len(text)
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t term = permanent_of(self, hash, text, size)
        cdef TermRecord* record
        cdef Entry* entry
        cdef uint32_t family
        cdef uint64_t* word
        if term:
            return term
        if 2 * <uint64_t>self.permanent.count > self.slots.mask:
            self._grow_slots()
        if self.readers and self.permanent.count == self.permanent.room:
            self._grow_records()
        entry = <Entry*>arena_alloc_slow(&self.permanent.bytes, sizeof(Entry) + size)
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
        put_slot(self.slots, slot_of(entry, hash), hash)
        if term > 8 * (self.hints.mask + 1):
            self._grow_hints()
        word = &self.hints.at[(hash >> 40) & self.hints.mask]
        set_word(word, word[0] | hint_of(hash))
        family = family_of(text, size)
        word = &self.families[family >> 6]
        set_word(word, word[0] | <uint64_t>1 << (family & 63))
        self.objects.append(None)
        return term

    cdef int _grow_slots(self) except -1:
        """Double the slots and reinsert all terms."""
        cdef Words* old = self.slots
        cdef Words* slots = words_new(2 * (old.mask + 1))
        cdef const TermRecord* record
        cdef uint32_t i
        for i in range(1, self.permanent.count):
            record = &self.permanent.records[i]
            put_slot(slots, slot_of(<const Entry*>record.text - 1, record.hash), record.hash)
        publish(&self.slots, slots)
        return self._retire(old)

    cdef int _grow_hints(self) except -1:
        """Double the Bloom filter and reinsert all terms."""
        cdef Words* old = self.hints
        cdef Words* hints = words_new(2 * (old.mask + 1))
        cdef uint64_t hash
        cdef uint32_t i
        for i in range(1, self.permanent.count):
            hash = self.permanent.records[i].hash
            hints.at[(hash >> 40) & hints.mask] |= hint_of(hash)
        publish(&self.hints, hints)
        return self._retire(old)

    cdef int _grow_records(self) except -1:
        """Double the room for records, which other threads read."""
        cdef TermRecord* old = self.permanent.records
        cdef TermRecord* records
        if self.permanent.room > PLACE >> 1:
            raise MemoryError("no room for another permanent term")
        records = <TermRecord*>mem_alloc(2 * <size_t>self.permanent.room * sizeof(TermRecord))
        if records == NULL:
            raise MemoryError("no room for another permanent term")
        memcpy(records, old, self.permanent.count * sizeof(TermRecord))
        publish_records(&self.permanent, records)
        self.permanent.room *= 2
        return self._retire(old)

    # ---------------------------------------------------------------- threads

    cdef int _retire(self, void* block) except -1:
        """Free a block when no other thread reads it."""
        if not self.readers:
            mem_free(block)
            return 0
        if self.retired_count == self.retired_room:
            self.retired_room = 2 * self.retired_room + 8
            self.retired = <void**>mem_grow(
                self.retired, self.retired_room, sizeof(void*), b"the tables of permanent terms"
            )
        self.retired[self.retired_count] = block
        self.retired_count += 1
        return 0

    def share(self):
        """Another thread begins to encode batches; it calls `unshare` at its end.

        Such threads enter no permanent terms, and at most one thread enters some meanwhile.
        """
        self.readers += 1

    def unshare(self):
        """A thread that called `share` no longer reads."""
        cdef uint32_t i
        self.readers -= 1
        if not self.readers:
            for i in range(self.retired_count):
                mem_free(self.retired[i])
            self.retired_count = 0

    # ---------------------------------------------------------------- terms

    cpdef term_t intern(self, object term) except 0:
        """Make a pyoxigraph term permanent and return its number."""
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
    """The text of a pyoxigraph term as stored in records: N-Quads with escapes resolved."""
    cdef type cls = type(term)
    cdef str value
    if cls is TripleTerm:
        return b"<<( " + b" ".join([text_of(part) for part in term]) + b" )>>"
    value = term.value
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
    """The IRI of a datatype, cached: streams have few datatypes, in every literal."""
    known = datatypes.get(iri)
    if known is None:
        known = NamedNode(iri)
        if len(datatypes) < MOST_DATATYPES:
            datatypes[iri] = known
    return known


cpdef object term_of(bytes text, uint32_t lexical):
    """The pyoxigraph term with this text; `lexical` is the size of its lexical form."""
    cdef str suffix, value
    if text[:2] == b"<<":
        return _triple_of(text)
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


cdef object _triple_of(bytes text):
    """The triple term with this text."""
    cdef uint32_t second = second_part(text), third = third_part(text, second)
    return TripleTerm(
        written_term(text[FIRST_PART:second - 1]),
        written_term(text[second:third - 1]),
        written_term(text[third:len(text) - PARTS_END]),
    )


cdef object written_term(bytes text):
    """The pyoxigraph term with this text."""
    # The last quote ends the lexical form: IRIs and language tags contain none.
    return term_of(text, <uint32_t>(text.rindex(b'"') - 1) if text[0] == 34 else 0)
