# cython: language_level=3, boundscheck=False, wraparound=False
"""Blocks of delimited Jelly frames → statements of an `EventReader`.

A frame is a message of Protocol Buffers whose rows fill lookup tables or are statements. Terms are
entered into the batch as they are decoded; a name's entry holds its last term, so an IRI that
occurs again costs a comparison. A literal that no query can use is validated and not entered.

Invariant: a frame is decoded as a whole before its first statement is passed on, so a frame that
cannot be decoded has no statements. It ends the file with a `BrokenFrame`, since later frames refer
to its tables. A decoded statement that is not valid RDF (an IRI with a space, a literal as a
subject) is reported, and only this statement is dropped. Unknown fields are skipped. A row or a
term in two parts, which Protocol Buffers allow and no writer produces, is refused. Every length is
compared with the bytes that are left. Memory: one frame, and the tables, of at most 4,096 entries
each. Entries of tables and repeated terms may make the terms `EXPANSION` times as long as the
frames, and `FREE_BYTES` longer; terms of up to `SHORT_TERM_BYTES` are not counted.

Cost: linear in the bytes. Source: Jelly-RDF specification 1.1; Protocol Buffers encoding.
"""

import pyoxigraph as ox

cimport cython
from libc.string cimport memchr, memcmp, memcpy, memset

from spaseq.rdf.native._framing cimport moved
from spaseq.rdf.native._nquads cimport is_iri, is_tag, label_end, not_utf8
from spaseq.rdf.native._terms cimport (
    Keep,
    hash_of,
    keep_of,
    keeps_object,
    known_term,
    mem_calloc,
    mem_free,
    mem_realloc,
)
from spaseq.rdf.syntax import (
    EXPANSION as _EXPANSION,
    FREE_BYTES as _FREE_BYTES,
    SHORT_TERM_BYTES as _SHORT_TERM_BYTES,
    TABLE_IRI_MAX_BYTES as _TABLE_IRI_MAX_BYTES,
    TOO_LONG_ENTRIES,
)


cdef uint64_t EXPANSION = _EXPANSION
cdef uint64_t FREE_BYTES = _FREE_BYTES
cdef size_t SHORT_TERM_BYTES = _SHORT_TERM_BYTES
cdef size_t TABLE_IRI_MAX_BYTES = _TABLE_IRI_MAX_BYTES

cdef enum:
    MOST_BYTES = 0x7FFFFFFF         # the limit of Protocol Buffers for a message
    MOST_ENTRIES = 4096
    FEWEST_NAMES = 8
    MOST_DEPTH = 60                 # of triple terms
    AT_ONCE = 8192                  # statements delivered before a batch may be yielded
    IRI_FIELD = 1
    LABEL_FIELD = 2
    LITERAL_FIELD = 3
    TRIPLE_FIELD = 4

cdef const char* XSD_STRING = b"http://www.w3.org/2001/XMLSchema#string"
cdef const char* RDF = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"
cdef enum:
    XSD_STRING_SIZE = 39

cdef tuple SLOTS = ("subject", "predicate", "object", "graph")
cdef tuple STREAMS = ("", "triples", "quads", "graphs")
cdef object DEFAULT_GRAPH = ox.DefaultGraph()
MINTED = "jelly-"


class BrokenFrame(Exception):
    """A frame that cannot be decoded, so that later frames cannot be decoded either."""


cdef int broken(reason) except -1:
    raise BrokenFrame(reason)


cdef int misplaced(str what, int physical) except -1:
    return broken(f"{what} in a stream of {STREAMS[physical]}")


cdef int unrepeated(uint32_t slot) except -1:
    return broken(
        f"a statement repeats the {SLOTS[slot]} of the statement before it, and there is none"
    )


cdef int torn() except -1 nogil:
    with gil:
        raise BrokenFrame("the frame is not a valid protobuf message")


cdef inline const char* varint(
    const char* at, const char* end, uint64_t* value
) except NULL nogil:
    """Read a number; returns its end."""
    cdef int shift = 0
    cdef uint8_t byte
    value[0] = 0
    while at < end and shift < 70:
        byte = <uint8_t>at[0]
        at += 1
        value[0] |= <uint64_t>(byte & 0x7F) << (shift if shift < 64 else 63)
        if byte < 0x80:
            return at
        shift += 7
    torn()


cdef const char* group_end(
    const char* at, const char* end, uint64_t number, int depth
) except NULL nogil:
    """The end of an unknown field in the obsolete form of a group."""
    cdef uint64_t tag, value
    if depth > MOST_DEPTH:
        torn()
    while True:
        at = varint(at, end, &tag)
        if tag > 0xFFFFFFFFu or tag >> 3 == 0:
            torn()
        if tag & 7 == 4:
            if tag >> 3 != number:
                torn()
            return at
        if tag & 7 == 3:
            at = group_end(at, end, tag >> 3, depth + 1)
            continue
        if tag & 7 == 0:
            at = varint(at, end, &value)
            continue
        if tag & 7 == 2:
            at = varint(at, end, &value)
        elif tag & 7 == 1 or tag & 7 == 5:
            value = 8 if tag & 7 == 1 else 4
        else:
            torn()
        if value > <uint64_t>(end - at):
            torn()
        at += value


cdef inline const char* field(
    const char* at, const char* end, uint64_t* tag, const char** text, uint64_t* value
) except NULL nogil:
    """Read a field: its tag, and either its bytes from `text` to the result, or its number."""
    at = varint(at, end, tag)
    if tag[0] > 0xFFFFFFFFu or tag[0] >> 3 == 0:
        torn()
    text[0] = at
    if tag[0] & 7 == 2:
        at = varint(at, end, value)
        if value[0] > <uint64_t>(end - at):
            torn()
        text[0] = at
        return at + value[0]
    if tag[0] & 7 == 0:
        return varint(at, end, value)
    if tag[0] & 7 == 1 or tag[0] & 7 == 5:
        value[0] = 8 if tag[0] & 7 == 1 else 4
        if value[0] > <uint64_t>(end - at):
            torn()
        return at + value[0]
    if tag[0] & 7 == 3:
        return group_end(at, end, tag[0] >> 3, 1)
    torn()


cdef inline int split_terms(
    const char* at, const char* end, uint32_t slots, Part* parts
) except -1 nogil:
    """The bytes of each term of a statement; the field of an omitted term is 0.

    A slot (subject, predicate, object, graph) has four fields, one for each kind of term.
    """
    cdef const char* text
    cdef uint64_t tag, value
    cdef uint32_t slot, number
    memset(parts, 0, slots * sizeof(Part))
    while at < end:
        at = field(at, end, &tag, &text, &value)
        number = <uint32_t>(tag >> 3)
        if tag & 7 != 2 or number == 0 or number > 4 * slots:
            continue
        slot = (number - 1) >> 2
        if parts[slot].field:
            with gil:
                broken("a term in two parts")
        parts[slot].field = number
        parts[slot].text = text
        parts[slot].end = at
    return 0


cdef int skim(const char* at, const char* end) except -1 nogil:
    """Check a message whose fields are not used."""
    cdef const char* text
    cdef uint64_t tag, value
    while at < end:
        at = field(at, end, &tag, &text, &value)
    return 0


cdef int skim_metadata(const char* at, const char* end) except -1 nogil:
    """Check an entry of a frame's metadata, whose key is a string."""
    cdef const char* text
    cdef uint64_t tag, value
    while at < end:
        at = field(at, end, &tag, &text, &value)
        if tag == (1 << 3 | 2) and not_utf8(text, at) != at:
            torn()
    return 0


cdef int make_table(Table* table, uint32_t size) except -1:
    table.entries = <Entry*>mem_calloc(size + 1, sizeof(Entry))
    if table.entries == NULL:
        raise MemoryError
    table.size = size
    table.assigned = table.used = 0
    return 0


cdef void free_table(Table* table) noexcept:
    cdef uint32_t i
    if table.entries != NULL:
        for i in range(table.size + 1):
            mem_free(table.entries[i].text)
        mem_free(table.entries)
    table.entries = NULL
    table.size = 0


@cython.final
cdef class JellyReader(TermReader):
    """Reads the frames of one file.

    `marked`: whether a frame is a message. `troubles` receives the statements that are not valid
    RDF.
    """

    def __cinit__(self, EventReader events not None, troubles, str file, bint marked):
        self.troubles = troubles
        self.file = file
        self.marked = marked
        self.batch = events.batch
        self.reasons, self.triples, self.quads = [], [], []

    def __dealloc__(self):
        free_table(&self.names)
        free_table(&self.prefixes)
        free_table(&self.datatypes)
        mem_free(self.found)

    # ------------------------------------------------------------ frames

    def read(self, bytes block not None, Py_ssize_t start, uint32_t events):
        """Read the frames of block[start:] up to `events` events in the batch.

        Returns the position of the first byte that is not read. `missing` is 0, or the number of
        bytes of the frame at that position that the block lacks.

        Raises:
            BrokenFrame: for a frame that cannot be decoded; `frame` is its number.
        """
        cdef const char* begin = block
        cdef const char* end = begin + len(block)
        cdef const char* at = begin + start
        cdef const char* body
        cdef uint64_t size
        cdef int shift
        self.missing = 0
        while True:
            if self.at_end:
                self.deliver(AT_ONCE)
                if self.at_end:
                    return at - begin
            if at == end or self.events.batch.event_count >= events:
                return at - begin
            # The length, a varint that may be cut off.
            body = at
            size = 0
            shift = 0
            while True:
                if body == end:
                    self.missing = 1
                    return at - begin
                size |= <uint64_t>(<uint8_t>body[0] & 0x7F) << (shift if shift < 64 else 63)
                if size > MOST_BYTES or shift > 63:
                    self.frame += 1
                    broken(f"the frame's length is more than {MOST_BYTES} bytes")
                body += 1
                if not <uint8_t>(body - 1)[0] & 0x80:
                    break
                shift += 7
            if size > <uint64_t>(end - body):
                self.missing = size - (end - body)
                return at - begin
            self.frame += 1
            self.bytes_read += size
            self.begin()
            with nogil:
                self.decode(body, body + size)
            self.at_end = True
            at = body + size

    def read_whole(self, bytes block not None, uint32_t events):
        """Read a file of one frame without its length; call until it returns False."""
        cdef const char* at = block
        cdef Py_ssize_t size = len(block)
        if self.frame == 0:
            self.frame = 1
            self.bytes_read = size
            self.begin()
            with nogil:
                self.decode(at, at + size)
            self.at_end = True
        self.deliver(AT_ONCE)
        return self.at_end

    cdef int begin(self) except -1:
        """Prepare for a frame: enter the terms that it may repeat into the batch."""
        cdef int i
        cdef list reasons = [], triples = []
        cdef Term* term
        self.move()
        for i in range(5):
            term = &self.slots[i] if i < 4 else &self.graph
            if term.kind == Kind.FAULT:
                reasons.append(self.reasons[term.other])
                term.other = <int32_t>len(reasons) - 1
            elif term.kind == Kind.TRIPLE:
                triples.append(self.triples[term.other])
                term.other = <int32_t>len(triples) - 1
        self.reasons, self.triples = reasons, triples
        self.quads = []
        self.found_count = self.delivered = 0
        return 0

    cdef int move(self) except -1:
        """Translate the numbers of terms to the current batch."""
        cdef EventBatch old = self.batch
        cdef EventBatch new = self.events.batch
        cdef uint32_t i
        if old is new:
            return 0
        for i in range(4):
            self.slots[i].term = moved(old, self.slots[i].term, new)
        self.graph.term = moved(old, self.graph.term, new)
        for i in range(self.delivered, self.found_count):
            self.found[i].quad.subject = moved(old, self.found[i].quad.subject, new)
            self.found[i].quad.predicate = moved(old, self.found[i].quad.predicate, new)
            self.found[i].quad.object = moved(old, self.found[i].quad.object, new)
            self.found[i].quad.graph = moved(old, self.found[i].quad.graph, new)
        self.batch = new
        return 0

    cdef int decode(self, const char* at, const char* end) except -1 nogil:
        """Decode the rows of a frame."""
        cdef const char* text
        cdef uint64_t tag, value
        cdef bint first = True
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag == (1 << 3 | 2):
                self.row(text, at, first)
                first = False
            elif tag == (15 << 3 | 2):
                skim_metadata(text, at)
        return self.settle()

    cdef int row(self, const char* at, const char* end, bint first) except -1 nogil:
        cdef const char* text
        cdef const char* its_text = NULL
        cdef const char* its_end = NULL
        cdef uint64_t tag, value
        cdef uint32_t kind = 0
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag & 7 != 2 or tag >> 3 == 7 or tag >> 3 == 8 or tag >> 3 > 11 or tag >> 3 == 0:
                continue
            if kind:
                with gil:
                    broken("a row in two parts")
            kind = <uint32_t>(tag >> 3)
            its_text = text
            its_end = at
        if first and self.options is None and kind != 1:
            with gil:
                broken("the first row does not give the options of the stream")
        if kind == 2 or kind == 3:
            if kind != 2 and self.physical != 2 or kind == 2 and self.physical == 2:
                with gil:
                    misplaced("a triple" if kind == 2 else "a quad", self.physical)
            return self.statement(its_text, its_end, kind == 3)
        if kind == 9:
            return self.assign(&self.names, its_text, its_end)
        if kind == 10:
            return self.assign(&self.prefixes, its_text, its_end)
        if kind == 11:
            self.settle()
            return self.assign(&self.datatypes, its_text, its_end)
        if kind == 4:
            return self.graph_start(its_text, its_end)
        if kind == 5:
            if self.physical != 3 or not self.in_graph:
                with gil:
                    broken("a graph ends that has not begun")
            self.in_graph = False
            return skim(its_text, its_end)
        if kind == 6:
            return self.namespace(its_text, its_end)
        with gil:
            if kind == 1:
                return self.read_options(its_text, its_end)
            return misplaced("a row of an unknown kind", self.physical)

    cdef int read_options(self, const char* at, const char* end) except -1:
        """Read the options of the stream, or compare them with those that have been read."""
        cdef bytes message = at[:end - at]
        cdef const char* text
        cdef uint64_t tag, value
        cdef dict fields = {}
        if message == self.options:
            return 0
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag == (1 << 3 | 2):
                if not_utf8(text, at) != at:
                    torn()
                fields[1] = text[:at - text]
            elif tag & 7 == 0 and tag >> 3 in (2, 3, 4, 9, 10, 11, 14, 15):
                number = tag >> 3
                fields[number] = (value != 0) if number in (3, 4) else value & 0xFFFFFFFFu
        parsed = tuple([(number, known) for number, known in sorted(fields.items()) if known])
        if self.options is not None:
            return 0 if parsed == self.parsed else broken("the options of the stream change")
        version, physical = fields.get(15, 0), fields.get(2, 0)
        logical, names = fields.get(14, 0), fields.get(9, 0)
        if version not in (1, 2):
            broken(f"version {version} is not supported (1 and 2 are)")
        if physical not in (1, 2, 3):
            broken("the stream does not say whether it is of triples, quads or graphs")
        if logical and (physical == 1) != (logical in (1, 3, 13)):
            broken(f"a stream of {STREAMS[physical]} cannot have the logical type {logical}")
        if names < FEWEST_NAMES:
            broken(f"name lookup size must be at least {FEWEST_NAMES}")
        if max(names, fields.get(10, 0), fields.get(11, 0)) > MOST_ENTRIES:
            broken(f"lookup size cannot be larger than {MOST_ENTRIES}")
        self.physical = physical
        make_table(&self.names, names)
        make_table(&self.prefixes, fields.get(10, 0))
        make_table(&self.datatypes, fields.get(11, 0))
        self.options, self.parsed = message, parsed
        return 0

    # ------------------------------------------------------------ tables

    cdef int assign(self, Table* table, const char* at, const char* end) except -1 nogil:
        """Set an entry of a table."""
        cdef const char* text
        cdef const char* its_text = at
        cdef uint64_t tag, value
        cdef uint32_t index = 0, size = 0
        cdef Entry* entry
        cdef char* grown
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag == 1 << 3:
                index = <uint32_t>value
            elif tag == (2 << 3 | 2):
                its_text = text
                size = <uint32_t>value
        if not_utf8(its_text, its_text + size) != its_text + size:
            torn()
        if index == 0:
            index = table.assigned + 1
        if index > table.size:
            with gil:
                broken("a term refers to an entry of a table that is not there")
        table.assigned = index
        entry = &table.entries[index]
        if entry.text == NULL or size > entry.room:
            grown = <char*>mem_realloc(entry.text, size + 32)
            if grown == NULL:
                with gil:
                    raise MemoryError
            entry.text = grown
            entry.room = size + 32
        memcpy(entry.text, its_text, size)
        entry.size = size
        entry.version += 1
        entry.generation = self.events.generation - 1
        entry.valid = 0
        return 0

    # ------------------------------------------------------------ statements

    cdef int statement(self, const char* at, const char* end, bint is_quad) except -1 nogil:
        cdef Part parts[4]
        cdef Term* term
        cdef uint32_t slot, number
        cdef uint32_t slots = 4 if is_quad else 3
        cdef bint wanted = True, timing = False
        cdef term_t predicate
        split_terms(at, end, slots, parts)
        for slot in range(slots):
            term = &self.slots[slot]
            if slot == 2 and self.slots[1].kind == Kind.IRI:
                predicate = self.slots[1].term
                timing = (
                    predicate == self.events.about[0] or predicate == self.events.about[1]
                    or predicate == self.events.about[2]
                )
                wanted = timing or keep_of(self.events.relevance, predicate) != Keep.NOTHING
            if parts[slot].field:
                number = ((parts[slot].field - 1) & 3) + 1
                if slot == 3 and number == 3:
                    skim(parts[slot].text, parts[slot].end)
                    term.kind = Kind.DEFAULT
                    term.term = 0
                elif slot == 3 and number == 4:
                    self.literal(parts[slot].text, parts[slot].end, True, term)
                else:
                    self.term(number, parts[slot].text, parts[slot].end, wanted or slot != 2, term)
            elif term.kind == Kind.NONE:
                with gil:
                    unrepeated(slot)
            elif slot == 2 and wanted and term.kind == Kind.LITERAL and term.term == 0:
                self.settle()
        if self.physical == 3:
            if not self.in_graph:
                with gil:
                    broken("a triple outside of graphs")
            return self.add(self.slots, &self.graph, wanted, timing)
        return self.add(self.slots, &self.slots[3] if is_quad else NULL, wanted, timing)

    cdef int graph_start(self, const char* at, const char* end) except -1 nogil:
        cdef const char* text
        cdef const char* its_text = NULL
        cdef const char* its_end = NULL
        cdef uint64_t tag, value
        cdef uint32_t kind = 0
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag & 7 != 2 or tag >> 3 > 4 or tag >> 3 == 0:
                continue
            if kind:
                with gil:
                    broken("a term in two parts")
            kind = <uint32_t>(tag >> 3)
            its_text = text
            its_end = at
        if kind == 0:
            with gil:
                broken("a graph without a name")
        if kind == 3:
            skim(its_text, its_end)
            self.graph.kind = Kind.DEFAULT
            self.graph.term = 0
        elif kind == 4:
            self.literal(its_text, its_end, True, &self.graph)
        else:
            self.term(kind, its_text, its_end, True, &self.graph)
        if self.physical != 3:
            with gil:
                broken("a graph begins in a stream that is not of graphs")
        self.in_graph = True
        return 0

    cdef int namespace(self, const char* at, const char* end) except -1 nogil:
        """Read a prefix declaration, whose only effect is that its IRI advances table indexes."""
        cdef const char* text
        cdef const char* its_text = end
        cdef const char* its_end = end
        cdef uint64_t tag, value
        cdef Term ignored
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag == (1 << 3 | 2) and not_utf8(text, at) != at:
                torn()
            elif tag == (2 << 3 | 2):
                its_text = text
                its_end = at
        memset(&ignored, 0, sizeof(Term))
        return self.iri(its_text, its_end, &ignored)

    cdef int add(self, Term* terms, const Term* graph, bint wanted, bint timing) except -1 nogil:
        """Append a statement of the frame, or the reason why it is not valid RDF."""
        cdef Found* found
        cdef Term none
        cdef int i
        cdef bint plain
        if graph == NULL:
            memset(&none, 0, sizeof(Term))
            none.kind = Kind.DEFAULT
            graph = &none
        if self.found_count == self.found_room:
            found = <Found*>mem_realloc(
                self.found, (2 * <size_t>self.found_room + 64) * sizeof(Found)
            )
            if found == NULL:
                with gil:
                    raise MemoryError
            self.found = found
            self.found_room = 2 * self.found_room + 64
        found = &self.found[self.found_count]
        self.found_count += 1
        found.fault = -1
        plain = (
            (terms[0].kind == Kind.IRI or terms[0].kind == Kind.BLANK)
            and terms[1].kind == Kind.IRI
            and (terms[2].kind == Kind.IRI or terms[2].kind == Kind.BLANK
                 or terms[2].kind == Kind.LITERAL)
            and (graph.kind == Kind.IRI or graph.kind == Kind.BLANK
                 or graph.kind == Kind.DEFAULT)
        )
        if not plain:
            with gil:
                return self.unusual(found, terms, graph)
        found.quad.line = self.frame
        found.quad.subject = terms[0].term
        found.quad.predicate = terms[1].term
        found.quad.object = terms[2].term if wanted else 0
        found.quad.graph = graph.term
        found.quad.timing = timing
        found.quad.blank_subject = terms[0].kind == Kind.BLANK
        found.quad.blank_object = terms[2].kind == Kind.BLANK
        found.quad.kept = wanted and (
            keep_of(self.events.relevance, terms[1].term) == Keep.EVERY
            or keep_of(self.events.relevance, terms[1].term) == Keep.SOME
            and keeps_object(self.events.relevance, terms[1].term, terms[2].term)
        )
        return 0

    cdef int unusual(self, Found* found, Term* terms, const Term* graph) except -1:
        """A statement with a triple term, or the reason why a statement is not valid RDF."""
        cdef int i
        cdef const Term* term
        found.quad.subject = found.quad.predicate = found.quad.object = found.quad.graph = 0
        reason = None
        for i in range(4):
            term = &terms[i] if i < 3 else graph
            if term.kind == Kind.FAULT:
                reason = self.reasons[term.other]
                break
        if terms[2].kind == Kind.LITERAL:
            self.settle()
        if reason is None and not (terms[0].kind == Kind.IRI or terms[0].kind == Kind.BLANK):
            shown = self.value(&terms[0])
            reason = f"the subject of a triple must be an IRI or a blank node, not {shown}"
        if reason is None and terms[1].kind != Kind.IRI:
            reason = f"the predicate of a triple must be an IRI, not {self.value(&terms[1])}"
        if reason is None and not (
            graph.kind == Kind.IRI or graph.kind == Kind.BLANK or graph.kind == Kind.DEFAULT
        ):
            shown = self.value(graph)
            reason = f"the name of a graph must be an IRI or a blank node, not {shown}"
        if reason is not None:
            self.expand(len(reason))
            found.fault = <int32_t>len(self.reasons)
            self.reasons.append(reason)
            return 0
        found.fault = -2 - <int32_t>len(self.quads)
        quad = ox.Quad(*[self.value(&terms[i]) for i in range(3)], self.value(graph))
        self.expand(len(str(quad)))
        self.quads.append(quad)
        return 0

    cdef int expand(self, size_t size) except -1 nogil:
        """Count a term or a message that may be longer than its bytes in the frame."""
        if size > SHORT_TERM_BYTES:
            self.bytes_written += size - SHORT_TERM_BYTES
            if self.bytes_written > FREE_BYTES + EXPANSION * self.bytes_read:
                with gil:
                    broken(TOO_LONG_ENTRIES)
        return 0

    cdef object value(self, const Term* term):
        """The pyoxigraph term, for messages and triple terms."""
        if term.kind == Kind.TRIPLE:
            return self.triples[term.other]
        if term.kind == Kind.DEFAULT:
            return DEFAULT_GRAPH
        return self.events.batch.term(term.term)

    cdef int deliver(self, uint32_t most) except -1:
        """Deliver the next statements of the frame, at most `most`; at its end, the delimiter."""
        cdef EventReader events = self.events
        cdef uint32_t stop = min(self.found_count, self.delivered + most)
        cdef uint32_t at
        self.move()
        while self.delivered < stop:
            at = self.delivered
            with nogil:
                while at < stop and self.found[at].fault == -1:
                    self.delivered = at + 1
                    events.read_statement(&self.found[at].quad)
                    at += 1
            if at < stop:
                self.delivered = at + 1
                if self.found[at].fault >= 0:
                    self.troubles.report(
                        self.reasons[self.found[at].fault], self.file, self.frame
                    )
                else:
                    events.statement(self.quads[-2 - self.found[at].fault], self.frame)
        if self.delivered == self.found_count:
            self.at_end = False
            # A frame without statements may hold options alone, so it is not a message.
            if self.marked and self.found_count:
                events.delimit(self.frame)
        return 0

    # ------------------------------------------------------------ terms

    cdef int term(
        self, uint32_t kind, const char* at, const char* end, bint wanted, Term* term
    ) except -1 nogil:
        """Decode a term; `kind` is one of the field numbers of a subject."""
        if kind == IRI_FIELD:
            return self.iri(at, end, term)
        if kind == LABEL_FIELD:
            return self.label(at, end, term)
        if kind == LITERAL_FIELD:
            return self.literal(at, end, wanted, term)
        return self.triple_term(at, end, 1, term)

    cdef int iri(self, const char* at, const char* end, Term* term) except -1 nogil:
        cdef const char* text
        cdef uint64_t tag, value
        cdef uint32_t name = 0, prefix = 0, prefix_version = 0
        cdef size_t size, front = 0
        cdef Entry* entry
        cdef Entry* beginning = NULL
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag == 1 << 3:
                prefix = <uint32_t>value
            elif tag == 2 << 3:
                name = <uint32_t>value
        if name == 0:
            name = self.names.used + 1
        if prefix == 0:
            prefix = self.prefixes.used
        if (
            name > self.names.size or self.names.entries[name].text == NULL
            or prefix > self.prefixes.size
            or prefix and self.prefixes.entries[prefix].text == NULL
        ):
            with gil:
                broken("a term refers to an entry of a table that is not there")
        self.names.used = name
        self.prefixes.used = prefix
        entry = &self.names.entries[name]
        if prefix:
            beginning = &self.prefixes.entries[prefix]
            front = beginning.size
            prefix_version = beginning.version
        term.kind = Kind.IRI
        if entry.prefix == prefix and entry.prefix_version == prefix_version:
            if entry.generation == self.events.generation:
                term.term = entry.term
                return 0
        else:
            entry.valid = 0
        size = front + entry.size + 2
        if size > TABLE_IRI_MAX_BYTES + 2:
            with gil:
                broken(f"an IRI of more than {TABLE_IRI_MAX_BYTES:,} bytes")
        self.expand(size)
        self.reserve(size)
        self.scratch[0] = c"<"
        if front:
            memcpy(self.scratch + 1, beginning.text, front)
        memcpy(self.scratch + 1 + front, entry.text, entry.size)
        self.scratch[size - 1] = c">"
        if not entry.valid:
            self.beginning.size = 0
            if not is_iri(self.scratch + 1, size - 2, &self.beginning) or memchr(
                self.scratch, c"\\", size
            ) != NULL:
                with gil:
                    if self.refuse(term, iri_fault(self.scratch[1:size - 1].decode())):
                        return 0
            self.beginning.size = 0
        self.enter_text(size, term)
        entry.term = term.term
        entry.generation = self.events.generation
        entry.prefix = prefix
        entry.prefix_version = prefix_version
        entry.valid = 1
        return 0

    cdef int label(self, const char* at, const char* end, Term* term) except -1 nogil:
        cdef size_t size = end - at + 2
        if not_utf8(at, end) != end:
            torn()
        self.reserve(size)
        self.scratch[0] = c"_"
        self.scratch[1] = c":"
        memcpy(self.scratch + 2, at, end - at)
        term.kind = Kind.BLANK
        if (
            size > 2 and (size < 8 or memcmp(at, b"jelly-", 6) != 0)
            and label_end(self.scratch, self.scratch + size) == self.scratch + size
        ):
            return self.enter_text(size, term)
        with gil:
            term.term = self.events.batch.encode(blank_node(at[:end - at].decode()))
        return 0

    cdef int literal(
        self, const char* at, const char* end, bint wanted, Term* term
    ) except -1 nogil:
        cdef const char* begin = at
        cdef const char* text
        cdef const char* form = at
        cdef const char* tag_text = at
        cdef uint64_t tag, value, datatype = 0
        cdef size_t size = 0, tag_size = 0, used
        cdef bint typed = False
        cdef Entry* entry = NULL
        while at < end:
            at = field(at, end, &tag, &text, &value)
            if tag == (1 << 3 | 2):
                form = text
                size = <size_t>value
                if not_utf8(text, at) != at:
                    torn()
            elif tag == (2 << 3 | 2):
                tag_text = text
                tag_size = <size_t>value
                typed = False
                if not_utf8(text, at) != at:
                    torn()
            elif tag == 3 << 3:
                datatype = value & 0xFFFFFFFFu
                typed = True
                tag_size = 0
        if tag_size:
            if not is_tag(tag_text, tag_size) and not self.asked_tag(tag_text, tag_size):
                with gil:
                    self.refuse(term, tag_fault(tag_text[:tag_size].decode()))
                    return 0
        elif typed and self.datatypes.size:
            if datatype == 0:
                with gil:
                    broken("0 is not a valid datatype term index")
            if datatype > self.datatypes.size or self.datatypes.entries[datatype].text == NULL:
                with gil:
                    broken("a term refers to an entry of a table that is not there")
            entry = &self.datatypes.entries[datatype]
            if entry.size > TABLE_IRI_MAX_BYTES:
                with gil:
                    broken(f"an IRI of more than {TABLE_IRI_MAX_BYTES:,} bytes")
            self.expand(entry.size)
            if entry.valid != 1:
                with gil:
                    if self.refuse(term, datatype_fault(entry.text[:entry.size].decode())):
                        return 0
                entry.valid = 1
        term.kind = Kind.LITERAL
        term.term = 0
        if not wanted:
            term.text = begin
            term.end = end
            return 0
        self.reserve(size + tag_size + (0 if entry == NULL else entry.size) + 8)
        self.scratch[0] = c'"'
        memcpy(self.scratch + 1, form, size)
        self.scratch[size + 1] = c'"'
        used = size + 2
        if tag_size:
            self.scratch[used] = c"@"
            used += 1
            for size in range(tag_size):
                self.scratch[used] = tag_text[size]
                if c"A" <= tag_text[size] <= c"Z":
                    self.scratch[used] += c"a" - c"A"
                used += 1
        elif entry != NULL and not (
            entry.size == XSD_STRING_SIZE and memcmp(entry.text, XSD_STRING, XSD_STRING_SIZE) == 0
        ):
            memcpy(self.scratch + used, b"^^<", 3)
            memcpy(self.scratch + used + 3, entry.text, entry.size)
            used += entry.size + 4
            self.scratch[used - 1] = c">"
        return self.enter_text(used, term)

    cdef int triple_term(
        self, const char* at, const char* end, int depth, Term* term
    ) except -1 nogil:
        """Decode a triple term, as a Python object, since few streams have any."""
        cdef Part parts[3]
        cdef Term terms[3]
        cdef Term* faulty = NULL
        cdef uint32_t slot, number
        if depth > MOST_DEPTH:
            torn()
        memset(terms, 0, sizeof(terms))
        split_terms(at, end, 3, parts)
        for slot in range(3):
            if parts[slot].field == 0:
                with gil:
                    broken("repeated terms are not allowed in quoted triples")
            number = ((parts[slot].field - 1) & 3) + 1
            if number == TRIPLE_FIELD:
                self.triple_term(parts[slot].text, parts[slot].end, depth + 1, &terms[slot])
            else:
                self.term(number, parts[slot].text, parts[slot].end, True, &terms[slot])
            if terms[slot].kind == Kind.FAULT and faulty == NULL:
                faulty = &terms[slot]
        if faulty != NULL:
            term[0] = faulty[0]
            return 0
        with gil:
            return self.make_triple(terms, term)

    cdef int make_triple(self, const Term* terms, Term* term) except -1:
        """Make a triple term from three terms."""
        cdef list values = [self.value(&terms[0]), self.value(&terms[1]), self.value(&terms[2])]
        if terms[0].kind != Kind.IRI and terms[0].kind != Kind.BLANK:
            self.refuse(
                term, f"the subject of a triple must be an IRI or a blank node, not {values[0]}"
            )
            return 0
        if terms[1].kind != Kind.IRI:
            self.refuse(term, f"the predicate of a triple must be an IRI, not {values[1]}")
            return 0
        term.kind = Kind.TRIPLE
        term.term = 0
        triple = ox.Triple(*values)
        self.expand(len(str(triple)))
        term.other = <int32_t>len(self.triples)
        self.triples.append(triple)
        return 0

    cdef int settle(self) except -1 nogil:
        """Enter the object of the last statement, before its message or its datatype change."""
        cdef Term* term = &self.slots[2]
        if term.kind == Kind.LITERAL and term.term == 0:
            self.literal(term.text, term.end, True, term)
        return 0

    cdef int enter_text(self, size_t size, Term* term) except -1 nogil:
        """Set the number of the term whose text is in `scratch`."""
        cdef uint64_t hash = hash_of(self.scratch, size)
        term.term = known_term(self.events.batch, hash, self.scratch, <uint32_t>size)
        if term.term == 0:
            term.term = self.events.batch.enter(hash, self.scratch, <uint32_t>size, True)
        return 0

    cdef bint refuse(self, Term* term, object reason) except -1:
        """Mark the term as a fault if there is a reason; returns whether it is a fault."""
        if reason is None:
            return False
        term.kind = Kind.FAULT
        term.term = 0
        term.other = <int32_t>len(self.reasons)
        self.reasons.append(reason)
        return True


cdef object iri_fault(str iri):
    """Why a text is not an IRI; None if it is one."""
    try:
        ox.NamedNode(iri)
    except ValueError as error:
        return f"{iri!r} is not an IRI: {error}"
    return None


cdef str tag_fault(str tag):
    return f"{tag!r} is not a language tag"


cdef object datatype_fault(str iri):
    """Why an IRI cannot be the datatype of a literal without a language; None if it can."""
    if iri in (RDF.decode() + "langString", RDF.decode() + "dirLangString"):
        return f"a literal of datatype <{iri}> without a language"
    return iri_fault(iri)


def blank_node(str label):
    """The node of a label. Jelly allows any string, so some labels become hexadecimal."""
    if not label.startswith(MINTED):
        try:
            return ox.BlankNode(label)
        except ValueError:
            pass
    return ox.BlankNode(MINTED + label.encode().hex())
