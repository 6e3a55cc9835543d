"""The distinct triples of a graph that a run does not change, as columns of term numbers.

A graph of a knowledge base may have millions of triples, of which queries use few, so nothing
becomes a Python object before a look-up returns it. A term has one number and one text (N-Quads
with escapes resolved). The readers of statements fill batches; `add` copies their triples, and
`complete` ends that.

The triples are in their original order. The views of predicates, and their sibling lists by
subject or object, are built by the first look-up that needs them. Invariant: after `complete` only
these indexes change, under a lock.

Memory: 12 bytes for each triple, and 4 to 16 for each index in use; for each term its text and 30
to 45 bytes. Cost: adding a triple is constant; building an index is linear in its triples; a
look-up is linear in its result.
"""

from threading import Lock

# Sibling lists, of triples with the same end: position + 1 of the first by hash, and of the next
# by position; 0 ends a list, which is in the order of the triples. Triples with different ends may
# share a list.
cdef struct Lists:
    uint32_t* heads     # mask + 1 of them; NULL: not built
    uint32_t* next      # one for each triple of the view
    uint32_t mask

# The triples of one predicate (view 0: of all of them).
cdef struct TableView:
    uint32_t* members   # their numbers, ascending; NULL: all triples
    uint32_t count
    Lists by_subject
    Lists by_object


cdef inline uint32_t end_hash(term_t term) noexcept nogil:
    return (term * 2654435769u) >> 7


cdef inline uint32_t first_of(const Lists* lists, term_t end) noexcept nogil:
    """The position + 1 of the first triple that may have this end."""
    return lists.heads[end_hash(end) & lists.mask]


cdef enum:
    PIECE_BYTES = 1 << 18       # of texts that are allocated at once
    AHEAD = 8                   # look-ups whose memory is prefetched
    MIN_SLOTS = 1 << 8

cdef const char* FOR_TERMS = b"another term of a graph"

cdef const char* FOR_TRIPLES = b"another triple of a graph"

# What precedes the text of a term.
cdef struct Head:
    term_t term
    uint32_t size       # bytes of the text


cdef inline uint64_t _packed_slot(const char* text, uint64_t hash) noexcept nogil:
    """The slot of a text: its address, which has 48 bits, and the highest 16 bits of its hash."""
    return <uint64_t><size_t>text << 16 | hash >> 48


cdef inline const char* text_at(uint64_t slot) noexcept nogil:
    return <const char*><size_t>(slot >> 16)


cdef inline const Head* head_of(const char* text) noexcept nogil:
    return <const Head*>text - 1


cdef inline uint64_t triple_hash(const Triple* triple) noexcept nogil:
    cdef uint64_t hash = triple.subject * <uint64_t>0x9E3779B97F4A7C15u
    hash = (hash ^ hash >> 29 ^ triple.object) * <uint64_t>0xBF58476D1CE4E5B9u
    hash = (hash ^ hash >> 32 ^ triple.predicate) * <uint64_t>0x94D049BB133111EBu
    return hash >> 20


cdef uint32_t put_labelled(
    char* out, const char* text, uint32_t size, const char* label, uint32_t label_size
) noexcept nogil:
    """Write a term with `label` in place of the `_:` of its blank nodes; returns its size."""
    cdef uint32_t second, third, used = 0, depth = 0, i
    while is_triple(text):
        second = second_part(text)
        third = third_part(text, second)
        memcpy(out + used, text, FIRST_PART)
        used += FIRST_PART
        used += put_labelled(
            out + used, text + FIRST_PART, second - 1 - FIRST_PART, label, label_size
        )
        memcpy(out + used, text + second - 1, third - second + 1)
        used += third - second + 1
        text += third
        size -= third + PARTS_END
        depth += 1
    if text[0] == c"_":
        memcpy(out + used, label, label_size)
        memcpy(out + used + label_size, text + 2, size - 2)
        used += label_size + size - 2
    else:
        memcpy(out + used, text, size)
        used += size
    for i in range(depth):
        memcpy(out + used, b" )>>", PARTS_END)
        used += PARTS_END
    return used


cdef class TripleTable:
    """Distinct triples in their original order, as a sequence of tuples of pyoxigraph terms."""

    cdef char** texts               # per term number: its text, behind a `Head`; 0 is no term
    cdef uint32_t term_count, term_room
    cdef uint64_t* slots            # the terms by text: see `_packed_slot`; 0 is empty
    cdef uint32_t slot_mask
    cdef Arena bytes                # the pieces that hold the texts
    cdef char* piece                # the free part of the last piece
    cdef size_t left
    cdef Triple* triples            # of numbers of this table
    cdef uint32_t triple_count, triple_room
    cdef uint32_t* seen             # triples by hash: number + 1; NULL once the table is complete
    cdef uint32_t seen_mask
    cdef uint32_t* members          # numbers of triples by predicate, for the views
    cdef TableView* views           # NULL until the first look-up
    cdef uint32_t view_count
    cdef dict view_of               # number of a predicate: the number of its view
    cdef object lock

    def __cinit__(self):
        self.term_count = 1
        self.term_room = 256
        self.texts = <char**>mem_grow(NULL, self.term_room, sizeof(char*), FOR_TERMS)
        self.slot_mask = MIN_SLOTS - 1
        self.slots = <uint64_t*>mem_calloc(MIN_SLOTS, sizeof(uint64_t))
        self.triple_room = 256
        self.triples = <Triple*>mem_grow(NULL, self.triple_room, sizeof(Triple), FOR_TRIPLES)
        self.seen_mask = MIN_SLOTS - 1
        self.seen = <uint32_t*>mem_calloc(MIN_SLOTS, sizeof(uint32_t))
        self.lock = Lock()

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.view_count):
            mem_free(self.views[i].by_subject.heads)
            mem_free(self.views[i].by_subject.next)
            mem_free(self.views[i].by_object.heads)
            mem_free(self.views[i].by_object.next)
        mem_free(self.views)
        mem_free(self.members)
        mem_free(self.texts)
        mem_free(self.slots)
        mem_free(self.triples)
        mem_free(self.seen)
        arena_free(&self.bytes)

    def __reduce__(self):
        """Pickle the texts and the numbers, and no index."""
        cdef uint32_t i
        cdef const char* text
        texts = []
        for i in range(1, self.term_count):
            text = self.texts[i]
            texts.append(text[:head_of(text).size])
        triples = (<char*>self.triples)[:self.triple_count * sizeof(Triple)]
        return _restored, (texts, triples)

    # ------------------------------------------------------------------ terms

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil:
        """The number of the term with this text, or 0."""
        cdef uint32_t place = <uint32_t>hash & self.slot_mask
        cdef uint64_t slot
        cdef const char* other
        while True:
            slot = self.slots[place]
            if slot == 0:
                return 0
            if slot & 0xFFFF == hash >> 48:
                other = text_at(slot)
                if head_of(other).size == size and memcmp(other, text, size) == 0:
                    return head_of(other).term
            place = (place + 1) & self.slot_mask

    cdef term_t enter(self, uint64_t hash, const char* text, uint32_t size) except 0 nogil:
        """The number of the term with this text, which is entered if it is new."""
        cdef term_t term = self.search(hash, text, size)
        cdef uint32_t place
        cdef size_t needed
        cdef Head* head
        cdef char* copied
        if term:
            return term
        if self.term_count > PLACE:
            raise_no_memory(FOR_TERMS)
        if 4 * <uint64_t>self.term_count > 3 * <uint64_t>self.slot_mask:
            self._grow_slots()
        if self.term_count == self.term_room:
            self.texts = <char**>mem_grow(
                self.texts, 2 * <size_t>self.term_room, sizeof(char*), FOR_TERMS
            )
            self.term_room *= 2
        needed = (sizeof(Head) + size + 3) & ~<size_t>3
        if needed > self.left:
            self.left = max(needed, <size_t>PIECE_BYTES)
            self.piece = <char*>arena_alloc_slow(&self.bytes, self.left)
            if self.piece == NULL:
                self.left = 0
                raise_no_memory(FOR_TERMS)
        head = <Head*>self.piece
        self.piece += needed
        self.left -= needed
        term = self.term_count
        head.term, head.size = term, size
        copied = <char*>memcpy(head + 1, text, size)
        self.texts[term] = copied
        self.term_count += 1
        place = <uint32_t>hash & self.slot_mask
        while self.slots[place]:
            place = (place + 1) & self.slot_mask
        self.slots[place] = _packed_slot(copied, hash)
        return term

    cdef int _grow_slots(self) except -1 nogil:
        """Double the slots and reinsert all terms."""
        cdef uint64_t count = 2 * (<uint64_t>self.slot_mask + 1)
        cdef uint64_t* slots = <uint64_t*>mem_calloc(count, sizeof(uint64_t))
        cdef uint64_t hash
        cdef uint32_t i, place, mask = <uint32_t>(count - 1)
        for i in range(1, self.term_count):
            hash = hash_of(self.texts[i], head_of(self.texts[i]).size)
            place = <uint32_t>hash & mask
            while slots[place]:
                place = (place + 1) & mask
            slots[place] = _packed_slot(self.texts[i], hash)
        mem_free(self.slots)
        self.slots = slots
        self.slot_mask = mask
        return 0

    cdef term_t number(self, object term) except? 0:
        """The number of a pyoxigraph term, or 0."""
        cdef bytes text
        if term is None:
            return 0
        text = text_of(term)
        return self.search(hash_of(text, len(text)), text, <uint32_t>len(text))

    cdef object term(self, term_t number):
        """The pyoxigraph term with a number."""
        cdef const char* text = self.texts[number]
        return written_term(text[:head_of(text).size])

    # ------------------------------------------------------------------ filling

    def add(self, EventBatch batch not None, str prefix not None):
        """Add the triples of a batch; its blank nodes get the prefix, which ends in a dot."""
        cdef term_t* numbers = <term_t*>mem_calloc(batch.local.count, sizeof(term_t))
        cdef bytes label = f"_:{prefix}".encode()
        if self.seen == NULL:
            mem_free(numbers)
            raise ValueError("the table is complete")
        try:
            self._add(batch, numbers, label, <uint32_t>len(label))
        finally:
            mem_free(numbers)

    cdef int _add(
        self, EventBatch batch, term_t* numbers, const char* label, uint32_t size
    ) except -1:
        cdef uint32_t i, k, width, first = 0, count = 0
        cdef uint32_t* used
        cdef term_t* cells
        cdef const TermRecord* record
        cdef Numeral numeral
        cdef uint64_t hashes[AHEAD]
        cdef Triple found[AHEAD]
        cdef bytearray scratch = bytearray(size)
        cdef char* text = scratch
        self._reserve(batch.triple_count)
        used = <uint32_t*>mem_alloc((<size_t>batch.local.count + 1) * sizeof(uint32_t))
        if used == NULL:
            raise MemoryError
        try:
            # The local terms that occur in triples, in order; not the names of graphs.
            for i in range(batch.triple_count):
                cells = <term_t*>&batch.triples[i]
                for k in range(3):
                    if cells[k] & LOCAL and numbers[cells[k] ^ LOCAL] == 0:
                        numbers[cells[k] ^ LOCAL] = 1
                        used[count] = cells[k] ^ LOCAL
                        count += 1
            for i in range(count):
                if i + AHEAD < count:
                    prefetch(
                        &self.slots[
                            <uint32_t>batch.local.records[used[i + AHEAD]].hash & self.slot_mask
                        ]
                    )
                record = &batch.local.records[used[i]]
                if has_blank(record.text, record.size):
                    # A triple term has at most one blank node in 16 bytes, and one more.
                    width = record.size + size * (record.size // 16 + 2)
                    if <size_t>len(scratch) < width:
                        scratch = bytearray(2 * width)
                        text = scratch
                    width = put_labelled(text, record.text, record.size, label, size)
                    numbers[used[i]] = self.enter(hash_of(text, width), text, width)
                else:
                    numbers[used[i]] = self.enter(record.hash, record.text, record.size)
            while first < batch.triple_count:
                width = min(<uint32_t>AHEAD, batch.triple_count - first)
                for i in range(width):
                    found[i] = batch.triples[first + i]
                    cells = <term_t*>&found[i]
                    for k in range(3):
                        if cells[k] & LOCAL:
                            cells[k] = numbers[cells[k] ^ LOCAL]
                        else:
                            record = written_record(batch, cells[k], &numeral)
                            cells[k] = self.enter(
                                hash_of(record.text, record.size), record.text, record.size
                            )
                    hashes[i] = triple_hash(&found[i])
                    prefetch(&self.seen[<uint32_t>hashes[i] & self.seen_mask])
                for i in range(width):
                    self._add_distinct(&found[i], hashes[i])
                first += width
        finally:
            mem_free(used)
        return 0

    cdef int _reserve(self, uint32_t more) except -1 nogil:
        """Make room for `more` further distinct triples."""
        cdef uint64_t wanted = <uint64_t>self.triple_count + more
        if wanted > PLACE:
            raise_no_memory(FOR_TRIPLES)
        if wanted > self.triple_room:
            wanted = max(wanted, 2 * <uint64_t>self.triple_room)
            self.triples = <Triple*>mem_grow(self.triples, wanted, sizeof(Triple), FOR_TRIPLES)
            self.triple_room = <uint32_t>wanted
        while 2 * (<uint64_t>self.triple_count + more) > self.seen_mask:
            self._grow_seen()
        return 0

    cdef int _grow_seen(self) except -1 nogil:
        """Double the table of the triples by hash and reinsert them."""
        cdef uint64_t count = 2 * (<uint64_t>self.seen_mask + 1)
        cdef uint32_t i, place, mask = <uint32_t>(count - 1)
        mem_free(self.seen)
        self.seen = NULL
        self.seen = <uint32_t*>mem_calloc(count, sizeof(uint32_t))
        for i in range(self.triple_count):
            place = <uint32_t>triple_hash(&self.triples[i]) & mask
            while self.seen[place]:
                place = (place + 1) & mask
            self.seen[place] = i + 1
        self.seen_mask = mask
        return 0

    cdef int _add_distinct(self, const Triple* triple, uint64_t hash) except -1 nogil:
        """Append a triple unless the table has it; there must be room."""
        cdef uint32_t place = <uint32_t>hash & self.seen_mask
        while self.seen[place]:
            if memcmp(&self.triples[self.seen[place] - 1], triple, sizeof(Triple)) == 0:
                return 0
            place = (place + 1) & self.seen_mask
        self.triples[self.triple_count] = triple[0]
        self.triple_count += 1
        self.seen[place] = self.triple_count
        return 0

    def complete(self):
        """End the filling, and free the memory that only filling needs."""
        mem_free(self.seen)
        self.seen = NULL

    # ------------------------------------------------------------------ look-ups

    cdef int _make_views(self) except -1:
        """Sort the triples by predicate, stably: count, then place."""
        cdef uint32_t i, view, count = 0
        cdef uint32_t* counts = <uint32_t*>mem_calloc(self.term_count, sizeof(uint32_t))
        cdef uint32_t* ends = NULL
        cdef dict view_of = {}
        cdef TableView* views = NULL
        try:
            for i in range(self.triple_count):
                counts[self.triples[i].predicate] += 1
            for i in range(1, self.term_count):
                if counts[i]:
                    count += 1
                    view_of[i] = count
            views = <TableView*>mem_calloc(<size_t>count + 1, sizeof(TableView))
            ends = <uint32_t*>mem_calloc(<size_t>count + 1, sizeof(uint32_t))
            self.members = <uint32_t*>mem_calloc(self.triple_count, sizeof(uint32_t))
            views[0].count = self.triple_count
            count = 0
            for i in range(1, self.term_count):
                if counts[i]:
                    view = view_of[i]
                    views[view].members = self.members + count
                    views[view].count = counts[i]
                    ends[view] = count
                    count += counts[i]
                    counts[i] = view
            for i in range(self.triple_count):
                view = counts[self.triples[i].predicate]
                self.members[ends[view]] = i
                ends[view] += 1
        except BaseException:
            mem_free(views)
            raise
        finally:
            mem_free(counts)
            mem_free(ends)
        self.view_of = view_of
        self.view_count = <uint32_t>len(view_of) + 1
        self.views = views
        return 0

    cdef TableView* view(self, object predicate) except? NULL:
        """The triples of a predicate, of all for None; NULL if there are none."""
        if self.views == NULL:
            with self.lock:
                if self.views == NULL:
                    self._make_views()
        if predicate is None:
            return &self.views[0]
        found = self.view_of.get(self.number(predicate))
        if found is None:
            return NULL
        return &self.views[<uint32_t>found]

    cdef Lists* lists(self, TableView* view, bint by_object) except NULL:
        """The sibling lists of a view, by subject or by object."""
        cdef Lists* found = &view.by_object if by_object else &view.by_subject
        cdef const Triple* triple
        cdef uint32_t i, place
        cdef uint64_t size = 16
        cdef uint32_t* heads
        if found.heads != NULL:
            return found
        with self.lock:
            if found.heads != NULL:
                return found
            while size < view.count:
                size *= 2
            heads = <uint32_t*>mem_calloc(size, sizeof(uint32_t))
            try:
                found.next = <uint32_t*>mem_calloc(view.count, sizeof(uint32_t))
            except BaseException:
                mem_free(heads)
                raise
            found.mask = <uint32_t>(size - 1)
            for i in range(view.count, 0, -1):
                triple = member(self, view, i - 1)
                place = end_hash(triple.object if by_object else triple.subject) & found.mask
                found.next[i - 1] = heads[place]
                heads[place] = i
            found.heads = heads
        return found

    def __len__(self):
        return self.triple_count

    def __getitem__(self, Py_ssize_t place):
        cdef const Triple* triple
        if place < 0:
            place += self.triple_count
        if not 0 <= place < self.triple_count:
            raise IndexError("there is no such triple")
        triple = &self.triples[place]
        return self.term(triple.subject), self.term(triple.predicate), self.term(triple.object)

    def __iter__(self):
        cdef uint32_t i
        for i in range(self.triple_count):
            yield self[i]

    def predicates(self) -> list:
        """The distinct predicates."""
        self.view(None)
        return [self.term(number) for number in self.view_of]

    def pairs(self, predicate not None) -> list:
        """The (subject, object) pairs of a predicate."""
        cdef TableView* view = self.view(predicate)
        cdef const Triple* triple
        cdef uint32_t i
        found = []
        if view != NULL:
            for i in range(view.count):
                triple = member(self, view, i)
                found.append((self.term(triple.subject), self.term(triple.object)))
        return found

    def ends(self, predicate not None, bint forwards, term) -> list:
        """The objects of a subject, or the subjects of an object, of one predicate."""
        cdef TableView* view = self.view(predicate)
        cdef term_t number = self.number(term)
        cdef const Triple* triple
        cdef Lists* lists
        cdef uint32_t i
        found = []
        if view == NULL or number == 0:
            return found
        lists = self.lists(view, not forwards)
        i = first_of(lists, number)
        while i:
            triple = member(self, view, i - 1)
            if (triple.subject if forwards else triple.object) == number:
                found.append(self.term(triple.object if forwards else triple.subject))
            i = lists.next[i - 1]
        return found

    def match(self, subject, predicate, object) -> list:
        """The triples that have the given terms (None: any)."""
        cdef TableView* view
        cdef term_t s = self.number(subject), o = self.number(object)
        cdef const Triple* triple
        cdef Lists* lists
        cdef uint32_t i
        found = []
        if (s == 0 and subject is not None) or (o == 0 and object is not None):
            return found
        view = self.view(predicate)
        if view == NULL:
            return found
        if s == 0 and o == 0:
            for i in range(view.count):
                triple = member(self, view, i)
                found.append(
                    (self.term(triple.subject), self.term(triple.predicate),
                     self.term(triple.object))
                )
            return found
        lists = self.lists(view, s == 0)
        i = first_of(lists, s if s else o)
        while i:
            triple = member(self, view, i - 1)
            if (s == 0 or triple.subject == s) and (o == 0 or triple.object == o):
                found.append(
                    (self.term(triple.subject), self.term(triple.predicate),
                     self.term(triple.object))
                )
            i = lists.next[i - 1]
        return found

    @property
    def terms(self):
        """The number of distinct terms."""
        return self.term_count - 1


cdef inline const Triple* member(
    TripleTable table, const TableView* view, uint32_t position
) noexcept nogil:
    """The triple at a position of a view."""
    return &table.triples[position if view.members == NULL else view.members[position]]


def _restored(list texts not None, bytes triples not None):
    """The table with these terms and triples of their numbers."""
    cdef TripleTable table = TripleTable()
    cdef bytes text
    cdef const Triple* given = <const Triple*><const char*>triples
    cdef uint32_t i, count = <uint32_t>(len(triples) // sizeof(Triple))
    for text in texts:
        table.enter(hash_of(text, len(text)), text, <uint32_t>len(text))
    table._reserve(count)
    for i in range(count):
        if not (
            0 < given[i].subject < table.term_count and 0 < given[i].predicate < table.term_count
            and 0 < given[i].object < table.term_count
        ):
            raise ValueError("a triple has no such term")
        table._add_distinct(&given[i], triple_hash(&given[i]))
    table.complete()
    return table
