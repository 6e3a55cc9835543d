"""Statements in any order → graphs, and the events of graphs in the order of time.

A collector holds the statements of many graphs as numbers: for each graph a chain of its facts, and
a chain of the default graph's statements about its name. Facts that no query can use are only
counted. Terms are copied into the collector's batch; a term that occurs again in a block of the
file costs one array access. `EventReader.events_of` turns the chains into events of that batch,
`sort` orders them by time, and `copy` moves them to the batches that are yielded.

Beyond the memory that the caller allows, graphs are written as blobs, sorted by name, and merged
with the blobs of the same names. The resulting events are written as blobs in the order of time.
A blob is read only by the process that wrote it, and contains terms as text.

Cost: linear in the statements, plus a sort, and two look-ups for each term of an event.
"""

cimport cython
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf.native._terms cimport (
    FIRST_PART,
    LOCAL,
    PARTS_END,
    Numeral,
    TermRecord,
    has_blank,
    hash_of,
    is_numeral,
    is_triple,
    known_term,
    mem_free,
    mem_grow,
    record_of,
    second_part,
    third_part,
    written_record,
)

# The form of a fact: flags.
cdef enum:
    IS_KEPT = 1             # a query can use it
    IS_TIMING = 2           # its predicate is one of timestamps
    IS_STAMP = 4            # it is a timestamp in the default graph
    BLANK_SUBJECT = 8
    BLANK_OBJECT = 16

cdef enum:
    NO_GROUP = 0xFFFFFFFFu

cdef struct Header:
    uint64_t order, line
    uint32_t file, statements, described, stamps, facts
    uint8_t is_event

cdef struct EventHeader:
    uint64_t order, line
    int64_t micros
    uint32_t file, statements, triples
    uint8_t domain, has_name, has_stamp


cdef int by_time(const void* a, const void* b) noexcept nogil:
    cdef const Place* x = <const Place*>a
    cdef const Place* y = <const Place*>b
    if x.micros != y.micros:
        return 1 if x.micros > y.micros else -1
    return (x.order > y.order) - (x.order < y.order)


cdef struct Named:
    const char* text
    uint32_t size
    uint32_t group


cdef int by_name(const void* a, const void* b) noexcept nogil:
    cdef const Named* x = <const Named*>a
    cdef const Named* y = <const Named*>b
    cdef int order = memcmp(x.text, y.text, min(x.size, y.size))
    return order if order else (x.size > y.size) - (x.size < y.size)


@cython.final
cdef class Collector:
    """Collects the graphs of some files; their events belong to one stream.

    Args:
        dictionary: The dictionary of the run.
        stream: The stream of the events.
        files: The names of the files so far.
        before: The number of groups before the first one of this collector.
    """

    def __cinit__(self, dictionary, str stream, list files, uint64_t before=0):
        self.batch = EventBatch(dictionary, stream, "")
        self.files = files
        self.before = before
        self.start_file(b"")
        self.fact_count = 1
        map_resize(&self.names, MAP_SLOTS)

    def __dealloc__(self):
        mem_free(self.facts)
        mem_free(self.groups)
        mem_free(self.names.slots)
        mem_free(self.places)
        mem_free(self.copies)
        mem_free(self.text)

    def start_file(self, bytes scope not None):
        """Begin the last of `files`; `scope` precedes the labels of its blank nodes."""
        self.scope = scope
        self.scope_text = scope
        self.scope_size = len(scope)

    @property
    def size(self):
        """The approximate memory of the collector, in bytes."""
        cdef EventBatch batch = self.batch
        return (
            self.fact_count * sizeof(Fact) + self.count * (sizeof(Group) + 2 * sizeof(Mapped))
            + self.placed * sizeof(Place) + batch.triple_count * 3 * sizeof(term_t)
            + batch.event_count * sizeof(EventRecord) + batch.local.bytes.used
            + batch.local.count * (sizeof(TermRecord) + 16)
        )

    def __len__(self):
        return self.count

    # ------------------------------------------------------------ terms

    cdef term_t stored(self, EventBatch source, term_t term) except? 0 nogil:
        """The number in `batch` of a term of `source`; 0 for 0."""
        cdef const TermRecord* record
        cdef Numeral numeral
        cdef term_t number
        cdef uint32_t place = term ^ LOCAL
        cdef size_t size
        if not term & LOCAL and (
            source.version == self.batch.version
            or not is_numeral(term) and term < self.batch.version
        ):
            return term
        if source is not self.source:
            with gil:
                self.new_source(source)
        if term & LOCAL and place < self.copy_room and self.copies[place]:
            return self.copies[place]
        record = written_record(source, term, &numeral)
        if self.scope_size and has_blank(record.text, record.size):
            self.text_size = 0
            self.write_scoped(record.text, record.size)
            number = self.enter(self.text, <uint32_t>self.text_size)
        else:
            number = known_term(self.batch, record.hash, record.text, record.size)
            if number == 0:
                number = self.batch.enter(record.hash, record.text, record.size, True)
        if term & LOCAL:
            if place >= self.copy_room:
                size = 2 * <size_t>place + 1024
                self.copies = <term_t*>mem_grow(
                    self.copies, size, sizeof(term_t), "the terms of graphs"
                )
                memset(self.copies + self.copy_room, 0, (size - self.copy_room) * sizeof(term_t))
                self.copy_room = <uint32_t>size
            self.copies[place] = number
        return number

    cdef int new_source(self, EventBatch source) except -1:
        cdef uint32_t used
        if self.source is not None:
            used = min(self.source.local.count, self.copy_room)
            memset(self.copies, 0, used * sizeof(term_t))
        self.source = source
        return 0

    cdef int write_scoped(self, const char* text, uint32_t size) except -1 nogil:
        """Write a term with the scope before the labels of its blank nodes."""
        cdef uint32_t at, second, third, depth = 0
        while is_triple(text):
            second = second_part(text)
            third = third_part(text, second)
            self.write(text, FIRST_PART)
            self.write_scoped(text + FIRST_PART, second - 1 - FIRST_PART)
            self.write(text + second - 1, third - second + 1)
            text += third
            size -= third + PARTS_END
            depth += 1
        if text[0] == c"_":
            self.write(text, 2)
            self.write(self.scope_text, self.scope_size)
            self.write(text + 2, size - 2)
        else:
            self.write(text, size)
        for at in range(depth):
            self.write(b" )>>", PARTS_END)
        return 0

    cdef term_t enter(self, const char* text, uint32_t size) except 0 nogil:
        """The number of a term by its text, which is copied."""
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t term = known_term(self.batch, hash, text, size)
        return term if term else self.batch.enter(hash, text, size, True)

    # ------------------------------------------------------------ statements

    cdef uint32_t group(self, EventBatch source, term_t name, uint64_t line) except? 0 nogil:
        """The number of the group of a name; a new group begins at the line."""
        return self.group_of(self.stored(source, name), line)

    cdef uint32_t group_of(self, term_t name, uint64_t line) except? 0 nogil:
        cdef uint32_t number = map_entry(&self.names, name, NO_GROUP).value
        cdef Group* group
        if number != NO_GROUP:
            return number
        if self.count == self.room:
            self.groups = <Group*>mem_grow(
                self.groups, 2 * <size_t>self.room + 64, sizeof(Group), "the graphs"
            )
            self.room = 2 * self.room + 64
        number = self.count
        group = &self.groups[number]
        memset(group, 0, sizeof(Group))
        group.name = name
        group.line = line
        group.order = self.before + number
        with gil:
            group.file = <uint32_t>len(self.files) - 1
        map_entry(&self.names, name, NO_GROUP).value = number
        self.count += 1
        return number

    cdef int describe(
        self, EventBatch source, const Quad* quad, bint is_stored
    ) except -1 nogil:
        """Add a statement of the default graph about the name of a graph."""
        cdef uint32_t number = self.group(source, quad.subject, quad.line)
        cdef Group* group = &self.groups[number]
        if quad.timing:
            group.is_event = True
        else:
            group.described += 1
        if is_stored:
            return self.add(source, number, quad, True)
        group.statements += 1
        return 0

    cdef int add(
        self, EventBatch source, uint32_t number, const Quad* quad, bint about
    ) except -1 nogil:
        """Store a statement of a group, or about its name."""
        cdef uint32_t place, form = 0
        cdef Fact* fact
        if quad.kept:
            form |= IS_KEPT
        if quad.timing:
            form |= IS_TIMING
            if about:
                form |= IS_STAMP
        if quad.blank_subject:
            form |= BLANK_SUBJECT
        if quad.blank_object:
            form |= BLANK_OBJECT
        place = self.link(&self.groups[number], about, form)
        fact = &self.facts[place]
        fact.subject = self.stored(source, quad.subject)
        fact.predicate = self.stored(source, quad.predicate)
        fact.object = self.stored(source, quad.object)
        return 0

    cdef uint32_t link(self, Group* group, bint about, uint32_t form) except 0 nogil:
        """The place of a new fact at the end of a chain."""
        cdef uint32_t place = self.fact_count
        if place >= self.fact_room:
            self.facts = <Fact*>mem_grow(
                self.facts, 2 * <size_t>self.fact_room + 256, sizeof(Fact), "the facts of graphs"
            )
            self.fact_room = 2 * self.fact_room + 256
        self.facts[place].next = 0
        self.facts[place].form = form
        self.fact_count += 1
        if about:
            if group.last_stamp:
                self.facts[group.last_stamp].next = place
            else:
                group.first_stamp = place
            group.last_stamp = place
        else:
            if group.last_fact:
                self.facts[group.last_fact].next = place
            else:
                group.first_fact = place
            group.last_fact = place
        return place

    cdef void quad_of(self, uint32_t place, Quad* quad, uint64_t line) noexcept nogil:
        """Set a quad to a fact; it has no graph."""
        cdef const Fact* fact = &self.facts[place]
        memset(quad, 0, sizeof(Quad))
        quad.subject = fact.subject
        quad.predicate = fact.predicate
        quad.object = fact.object
        quad.line = line
        quad.kept = fact.form & IS_KEPT != 0
        quad.timing = fact.form & IS_TIMING != 0
        quad.blank_subject = fact.form & BLANK_SUBJECT != 0
        quad.blank_object = fact.form & BLANK_OBJECT != 0

    # ------------------------------------------------------------ events

    cdef int place(self, const Group* group) except -1 nogil:
        """Record the sort key of the last event of the batch."""
        cdef Place* place
        if self.placed == self.place_room:
            self.places = <Place*>mem_grow(
                self.places, 2 * <size_t>self.place_room + 64, sizeof(Place), "the events"
            )
            self.place_room = 2 * self.place_room + 64
        place = &self.places[self.placed]
        place.event = self.batch.event_count - 1
        place.micros = self.batch.events[place.event].micros
        place.order = group.order
        place.file = group.file
        self.placed += 1
        return 0

    @property
    def events(self):
        """The number of events."""
        return self.placed

    def sort(self):
        """Order the events by time, and events of the same time by their first statements.

        The facts are no longer needed, and their memory is freed.
        """
        cdef uint32_t i
        mem_free(self.facts)
        self.facts = NULL
        self.fact_count, self.fact_room = 1, 0
        with nogil:
            for i in range(1, self.placed):
                if by_time(&self.places[i - 1], &self.places[i]) > 0:
                    qsort(self.places, self.placed, sizeof(Place), by_time)
                    break

    def copy(self, Minter minter not None, uint32_t first, uint32_t most):
        """A batch with the events from `first` on: at most `most`, and all of one file."""
        cdef EventBatch target
        cdef uint32_t i, end = min(self.placed, first + most)
        cdef uint32_t file = self.places[first].file
        target = EventBatch(self.batch.dictionary, self.batch.stream, self.files[file])
        for i in range(first, end):
            if self.places[i].file != file:
                break
            minter.copy(self.batch, self.places[i].event, target)
        return target

    # ------------------------------------------------------------ blobs

    cdef int write(self, const void* bytes, size_t size) except -1 nogil:
        if self.text_size + size > self.text_room:
            self.text_room = 2 * (self.text_size + size) + 256
            self.text = <char*>mem_grow(self.text, self.text_room, 1, "a graph")
        memcpy(self.text + self.text_size, bytes, size)
        self.text_size += size
        return 0

    cdef int write_term(self, term_t term) except -1 nogil:
        cdef Numeral numeral
        cdef const TermRecord* record
        cdef uint32_t none = 0
        if term == 0:
            return self.write(&none, sizeof(uint32_t))
        record = written_record(self.batch, term, &numeral)
        self.write(&record.size, sizeof(uint32_t))
        return self.write(record.text, record.size)

    cdef uint32_t length(self, uint32_t place) noexcept nogil:
        """The number of facts in a chain."""
        cdef uint32_t count = 0
        while place:
            count += 1
            place = self.facts[place].next
        return count

    cdef int write_chain(self, uint32_t place) except -1:
        cdef const Fact* fact
        while place:
            fact = &self.facts[place]
            self.write(&fact.form, sizeof(uint32_t))
            self.write_term(fact.subject)
            self.write_term(fact.predicate)
            self.write_term(fact.object)
            place = fact.next
        return 0

    def graphs(self):
        """(name, blob) of each group, sorted by name."""
        cdef Named* named = <Named*>mem_grow(NULL, self.count + 1, sizeof(Named), "the graphs")
        cdef uint32_t i
        cdef Group* group
        cdef Header header
        try:
            for i in range(self.count):
                named[i].text = record_of(self.batch, self.groups[i].name).text
                named[i].size = record_of(self.batch, self.groups[i].name).size
                named[i].group = i
            qsort(named, self.count, sizeof(Named), by_name)
            for i in range(self.count):
                group = &self.groups[named[i].group]
                memset(&header, 0, sizeof(Header))
                header.order, header.line, header.file = group.order, group.line, group.file
                header.statements, header.described = group.statements, group.described
                header.is_event = group.is_event
                header.stamps = self.length(group.first_stamp)
                header.facts = self.length(group.first_fact)
                self.text_size = 0
                self.write(&header, sizeof(Header))
                self.write_chain(group.first_stamp)
                self.write_chain(group.first_fact)
                yield named[i].text[:named[i].size], self.text[:self.text_size]
        finally:
            mem_free(named)

    def add_graph(self, bytes name not None, bytes blob not None):
        """Add a part of a group from the blob of another collector."""
        cdef _Reading reading = _Reading(blob)
        cdef Header header
        cdef Group* group
        cdef Fact fact
        cdef uint32_t number, i, place
        memcpy(&header, reading.take(sizeof(Header)), sizeof(Header))
        i = self.count
        number = self.group_of(self.enter(name, <uint32_t>len(name)), header.line)
        group = &self.groups[number]
        if self.count != i:
            group.order, group.file = header.order, header.file
        group.statements += header.statements
        group.described += header.described
        group.is_event |= header.is_event
        for i in range(header.stamps + header.facts):
            memcpy(&fact.form, reading.take(sizeof(uint32_t)), sizeof(uint32_t))
            fact.subject = reading.term(self)
            fact.predicate = reading.term(self)
            fact.object = reading.term(self)
            place = self.link(group, i < header.stamps, fact.form)
            self.facts[place].subject = fact.subject
            self.facts[place].predicate = fact.predicate
            self.facts[place].object = fact.object

    def blobs(self):
        """((time, order), blob) of each event, in the order of `sort`."""
        cdef uint32_t i, j
        cdef EventHeader header
        cdef EventRecord* event
        cdef Place* place
        for i in range(self.placed):
            place = &self.places[i]
            event = &self.batch.events[place.event]
            memset(&header, 0, sizeof(EventHeader))
            header.order, header.line, header.micros = place.order, event.line, event.micros
            header.file, header.statements = place.file, event.statements
            header.triples = event.end - event.first
            header.domain = event.domain
            header.has_name, header.has_stamp = event.name != 0, event.stamp != 0
            self.text_size = 0
            self.write(&header, sizeof(EventHeader))
            if event.name:
                self.write_term(event.name)
            if event.stamp:
                self.write_term(event.stamp)
            for j in range(event.first, event.end):
                self.write_term(self.batch.triples[j].subject)
                self.write_term(self.batch.triples[j].predicate)
                self.write_term(self.batch.triples[j].object)
            yield (place.micros, place.order), self.text[:self.text_size]

    def add_event(self, bytes blob not None):
        """Append an event from the blob of another collector."""
        cdef _Reading reading = _Reading(blob)
        cdef EventBatch batch = self.batch
        cdef EventHeader header
        cdef EventRecord* event
        cdef Group group
        cdef term_t name, stamp, subject, predicate
        cdef uint32_t i, first = batch.triple_count
        memcpy(&header, reading.take(sizeof(EventHeader)), sizeof(EventHeader))
        name = reading.term(self) if header.has_name else 0
        stamp = reading.term(self) if header.has_stamp else 0
        for i in range(header.triples):
            subject = reading.term(self)
            predicate = reading.term(self)
            batch.add_triple(subject, predicate, reading.term(self))
        event = batch.add_event()
        event.first = first
        event.micros, event.line, event.domain = header.micros, header.line, header.domain
        event.statements = header.statements
        event.name, event.stamp = name, stamp
        group.order, group.file = header.order, header.file
        self.place(&group)


@cython.final
cdef class _Reading:
    """A position in a blob; `size` is the size of the last piece read."""

    cdef bytes blob
    cdef size_t at, size

    def __cinit__(self, bytes blob):
        self.blob = blob

    cdef const char* take(self, size_t size) except NULL:
        cdef const char* text = <const char*>self.blob + self.at
        if size > <size_t>len(self.blob) - self.at:
            raise ValueError("a blob is too short")
        self.at += size
        return text

    cdef const char* text(self) except NULL:
        cdef uint32_t size
        memcpy(&size, self.take(sizeof(uint32_t)), sizeof(uint32_t))
        self.size = size
        return self.take(size)

    cdef term_t term(self, Collector collector) except? 0:
        cdef const char* text = self.text()
        return 0 if self.size == 0 else collector.enter(text, <uint32_t>self.size)
