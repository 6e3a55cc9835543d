"""Complete matches of the core → blocks of text, without an object for a match or a term.

A sink replaces the maker of a query's matches (`spaseq.engine.native._matches`) with one of the
makers below. Such a maker appends each match to the sink's block, from the records of its terms,
and the iterator over the matches returns None when the block is full. The caller writes the rest
after each batch of events, so no match waits for later events. Where matches are not made in the
order in which they are written, `Block.makes_objects` is set and the makers make objects.

Invariant: the bytes equal what the writers in `spaseq.io` write for `Match` objects; tests compare
them. A match that cannot be appended as a whole is not appended. Cost: linear in the bytes.
"""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset
from urllib.parse import quote

import pyoxigraph as ox

from spaseq.engine.native._matches cimport DecodedStep, MatchMaker, Origin
from spaseq.nfa.native._tecs cimport Label, Walk
from spaseq.rdf.native._terms cimport TermRecord, is_triple, mem_free
from spaseq.results import triples_text
from spaseq.results.native._match cimport (
    Match,
    Text,
    put,
    put_bytes,
    put_csv_cell,
    put_date,
    put_escaped,
    put_n_triples,
    put_number,
    put_term,
)

cdef enum:
    BLOCK_BYTES = 1 << 16       # a block is written when it has this many bytes
    MOST_POSITIONS = 16         # positions of events whose literals are prepared
    LABEL_SIZE = 32             # bytes that suffice for the label of a blank node

cdef str XSD = "http://www.w3.org/2001/XMLSchema#"

cdef bytes XSD_BYTES = XSD.encode()

cdef bytes TYPED = b"^^<" + XSD_BYTES

cdef bytes SPASEQ = b"http://w3id.org/spaseq/ontology#"

cdef uint64_t MICROS_PER_SECOND = 1000000

cdef object SOLUTIONS = frozenset(("select",))

cdef uint64_t NO_LIMIT = 0xFFFFFFFFFFFFFFFFu


# ---------------------------------------------------------------- names

cdef class Counter:
    """The matches of one query so far; `prefix` begins the names of their graphs."""

    cdef uint64_t number
    cdef bytes prefix


cdef class Names:
    """Mints the names of graphs and blank nodes of one document, for all of its writers."""

    cdef dict counters      # query → Counter
    cdef uint64_t blanks

    def __cinit__(self):
        self.counters = {}

    cdef Counter counter(self, str query):
        cdef Counter counter = self.counters.get(query)
        if counter is None:
            counter = Counter()
            counter.prefix = f"urn:spaseq:{quote(query, safe='')}:".encode()
            self.counters[query] = counter
        return counter

    def graph(self, str query not None):
        """The name of the graph of the next match of a query."""
        cdef Counter counter = self.counter(query)
        counter.number += 1
        return ox.NamedNode(f"{counter.prefix.decode()}{counter.number}")

    def blank(self):
        """A blank node that the document does not have yet."""
        self.blanks += 1
        return ox.BlankNode(f"spaseq{self.blanks}")


# The label of a blank node, `_:spaseq` and a number; the number is incremented in place.
cdef struct Blank:
    char[LABEL_SIZE] text
    uint32_t size


cdef int blank_init(Blank* blank, uint64_t number) noexcept:
    """Set the label to that of a number."""
    cdef char[LABEL_SIZE] digits
    cdef uint32_t first = LABEL_SIZE
    while True:
        first -= 1
        digits[first] = <char>(c"0" + number % 10u)
        number //= 10u
        if number == 0:
            break
    blank.size = 8 + LABEL_SIZE - first
    memcpy(blank.text, b"_:spaseq", 8)
    memcpy(blank.text + 8, digits + first, LABEL_SIZE - first)
    return 0


cdef inline int blank_next(Blank* blank) noexcept:
    """Increment the number."""
    cdef uint32_t at = blank.size - 1
    while blank.text[at] == c"9":
        blank.text[at] = c"0"
        at -= 1
    if blank.text[at] == c"q":
        blank.text[at + 1] = c"1"
        blank.text[blank.size] = c"0"
        blank.size += 1
    else:
        blank.text[at] += 1
    return 0


cdef inline int put_blank(Text* text, const Blank* blank) except -1:
    return put(text, blank.text, blank.size)


cdef inline int put_subject(Text* text, const Blank* blank) except -1:
    put(text, blank.text, blank.size)
    return put(text, b" ", 1)


# ---------------------------------------------------------------- blocks

cdef class Block:
    """The matches of a sink that are formatted but not yet written; at most `most` in all."""

    cdef Text text
    cdef readonly uint64_t rows     # formatted since the last `clear`
    cdef uint64_t rest              # matches that are still accepted
    cdef public bint makes_objects  # its makers make objects, which the sink writes in order
    cdef public bint each           # the iterator over the matches pauses at each of them

    def __cinit__(self, most):
        memset(&self.text, 0, sizeof(Text))
        self.rest = NO_LIMIT if most is None else most

    def __dealloc__(self):
        mem_free(self.text.begin)

    def view(self) -> memoryview:
        """The bytes, which are valid until the next match or `clear`."""
        return PyMemoryView_FromMemory(self.text.begin, self.text.size, PyBUF_READ)

    def clear(self):
        """Empty the block after its bytes are written."""
        self.text.size = 0
        self.rows = 0

    cdef bint is_full(self) noexcept:
        """Whether it must be written before the next match."""
        return self.text.size >= <size_t>BLOCK_BYTES or self.rest == 0

    def count_object(self) -> bool:
        """Count a match that is written as an object; False if the limit was reached before it."""
        if self.rest == 0:
            return False
        self.rest -= 1
        return True


cdef class BlockMaker(MatchMaker):
    """Appends the matches of one query to a block. A subclass defines the format."""

    cdef Block block

    def begin(self, Block block not None, Names names):
        """Append to a block from now on; `names` are those of the document, for RDF."""
        self.block = block
        self.start(names)

    cdef int start(self, object names) except -1:
        """Prepare the texts that all matches share."""
        return 0

    cdef int put_match(self, Text* text, object version) except -1:
        """Append the match that the core's walk has reached."""
        raise TypeError(f"{type(self).__name__} has no format of matches")

    cdef Match match(self, object version):
        cdef Block block = self.block
        cdef size_t size = block.text.size
        if block.makes_objects:
            return MatchMaker.match(self, version)
        self.made += 1
        if block.rest == 0:
            return None
        try:
            self.put_match(&block.text, version)
        except BaseException:
            block.text.size = size
            raise
        block.rest -= 1
        block.rows += 1
        return None

    cdef bint pauses(self) noexcept:
        return self.block.each or self.block.is_full()

    cdef int replay(self) except -1:
        """Find the step and the column that bound each register."""
        cdef Walk walk = self.core.transitions.walk
        cdef Label* label
        cdef uint32_t i
        self.reading.begin()
        for i in range(walk.length):
            label = walk.path[walk.length - 1 - i]
            self.reading.follow_event(i, self.reading.part_of(label), label.parts, label.row)
        return 0


cdef inline const TermRecord* bound_record(BlockMaker maker, uint32_t number) except? NULL:
    """The record of a column, NULL if it is unbound; valid until the next one."""
    cdef Walk walk = maker.core.transitions.walk
    cdef uint32_t register = maker.reading.registers[number]
    cdef Origin* origin
    if register >= maker.reading.cells:
        return maker.computed_record(register - <uint32_t>maker.reading.cells)
    origin = &maker.reading.origins[register]
    if not origin.step:
        return NULL
    return maker.record(walk.path[walk.length - origin.step], origin.column + 2)


cdef class JsonLinesMaker(BlockMaker):
    """One object per line."""

    cdef int put_match(self, Text* text, object version) except -1:
        cdef DecodedStep last
        if self.gathering is not None and self.gathering.asks:
            last = self.step_of_label(self.core.transitions.walk.path[0])
            self.reading.put_answer(text, last, version, &self.ending)
        else:
            self.reading.put_json(
                text, self.steps(), version, &self.ending, self.computed, self.triples
            )
        return put(text, b"\n", 1)


cdef class ResultsJsonMaker(BlockMaker):
    """One solution per line, in SPARQL's JSON results, each behind a comma."""

    forms = SOLUTIONS

    cdef int put_match(self, Text* text, object version) except -1:
        cdef uint32_t i
        cdef const TermRecord* record
        cdef bint several = False
        self.replay()
        put(text, b",\n{", 3)
        for i in range(self.reading.column_count):
            record = bound_record(self, i)
            if record == NULL:
                continue
            if several:
                put(text, b", ", 2)
            several = True
            put_bytes(text, <bytes>self.reading.column_openings[i])
            put_term(text, record.text, record.size)
        return put(text, b"}", 1)


cdef const char* skip_digits(const char* at, const char* end) noexcept:
    while at < end and c"0" <= at[0] <= c"9":
        at += 1
    return at


cdef bint is_plain_number(const TermRecord* record) noexcept:
    """Whether Turtle writes a literal without quotes: xsd:integer, xsd:decimal or xsd:double."""
    cdef const char* at = record.text + 1
    cdef const char* end = at + record.lexical
    cdef const char* datatype = end + 1 + len(TYPED)
    cdef const char* begin
    cdef const char* point
    cdef size_t size = record.size - record.lexical - 2
    cdef bint fraction
    if record.text[0] != c'"' or size <= <size_t>len(TYPED):
        return False
    if memcmp(end + 1, <const char*>TYPED, len(TYPED)):
        return False
    size -= len(TYPED)
    if at < end and (at[0] == c"+" or at[0] == c"-"):
        at += 1
    begin = at
    at = point = skip_digits(at, end)
    if size == 8 and not memcmp(datatype, b"integer>", 8):
        return at == end and at > begin
    fraction = at < end and at[0] == c"."
    if fraction:
        at = skip_digits(at + 1, end)
    if size == 8 and not memcmp(datatype, b"decimal>", 8):
        return fraction and at == end and at > point + 1
    if size != 7 or memcmp(datatype, b"double>", 7):
        return False
    # Digits before or after the point, and an exponent.
    if at - begin == <int>fraction or at == end or (at[0] != c"e" and at[0] != c"E"):
        return False
    at += 1
    if at < end and (at[0] == c"+" or at[0] == c"-"):
        at += 1
    return at < end and skip_digits(at, end) == end


cdef int put_cells(BlockMaker maker, Text* text, bint as_values) except -1:
    """Append the projected terms: as values with commas, or in Turtle with tabs."""
    cdef uint32_t i
    cdef const TermRecord* record
    maker.replay()
    for i in range(maker.reading.column_count):
        if i:
            put(text, b"," if as_values else b"\t", 1)
        record = bound_record(maker, i)
        if record == NULL:
            continue
        if as_values:
            put_csv_cell(text, record)
        elif is_plain_number(record):
            put(text, record.text + 1, record.lexical)
        else:
            put_n_triples(text, record)
    return 0


cdef class CsvMaker(BlockMaker):
    """Rows of values in SPARQL's CSV results."""

    forms = SOLUTIONS

    cdef int put_match(self, Text* text, object version) except -1:
        put_cells(self, text, True)
        return put(text, b"\r\n", 2)


cdef class TsvMaker(BlockMaker):
    """Rows of terms in SPARQL's TSV results."""

    forms = SOLUTIONS

    cdef int put_match(self, Text* text, object version) except -1:
        put_cells(self, text, False)
        return put(text, b"\n", 1)


# ---------------------------------------------------------------- RDF

cdef class NQuadsMaker(BlockMaker):
    """Each match as a named graph that describes it; see spaseq/io/rdf_writer.py.

    The end of a statement is written when the next one begins, since TriG then either repeats the
    subject or begins another one.
    """

    cdef Names names
    cdef Counter counter
    cdef bint is_trig
    cdef Text graph             # the name of the match's graph, followed by a space
    cdef Text tail              # N-Quads: the end of each line
    cdef bytes generated, match_type, event_type, query, begin_time, end, time
    cdef bytes binding, value, event, ordinal, named, answer
    cdef object statements      # the triples of a CONSTRUCT → their text in TriG
    cdef bytes integer, decimal, date       # the texts that follow a lexical form
    cdef list variables         # per projected variable: `variable "name"`
    cdef list part_variables    # per part of a step: the same for its rows; None: not shown
    cdef list gpms, streams     # per part of a step, and per stream
    cdef list positions         # the first ones
    cdef bytes position

    def __dealloc__(self):
        mem_free(self.graph.begin)
        mem_free(self.tail.begin)

    cdef bint writes_trig(self) noexcept:
        return False

    cdef int start(self, object names) except -1:
        from spaseq.io.rdf_writer import (
            GENERATED_AT, TYPE, VOCABULARY, short, short_predicate, statements,
        )

        cdef object predicate, term
        self.is_trig = self.writes_trig()
        predicate = short_predicate if self.is_trig else str
        term = short if self.is_trig else str

        def text(name, value=None):
            named = ox.NamedNode(VOCABULARY + name) if isinstance(name, str) else name
            shown = predicate(named)
            return f"{shown} ".encode() if value is None else f"{shown} {term(value)}".encode()

        def ending(name):
            literal = term(ox.Literal("", datatype=ox.NamedNode(XSD + name)))
            return literal[1:].encode()

        def named(name):
            return text("variable", ox.Literal(name))

        self.names = names
        self.counter = self.names.counter(self.reading.query)
        steps = self.reading.steps
        # TriG needs the prefix of PROV for this predicate only.
        self.generated = b"prov:generatedAtTime " if self.is_trig else text(GENERATED_AT)
        self.match_type = text(TYPE, ox.NamedNode(VOCABULARY + "Match"))
        self.event_type = text(TYPE, ox.NamedNode(VOCABULARY + "EventMatch"))
        self.query = text("query", ox.Literal(self.reading.query))
        self.begin_time, self.end, self.time = text("start"), text("end"), text("time")
        self.binding, self.value, self.event = text("binding"), text("value"), text("hasEvent")
        self.ordinal, self.named = text("ordinal"), text("graph")
        self.integer, self.decimal = ending("integer"), ending("decimal")
        self.date = ending("dateTime")
        self.answer = text("boolean", ox.Literal("true", datatype=ox.NamedNode(XSD + "boolean")))
        self.statements = statements
        self.variables = [named(name) for name in self.reading.names]
        self.part_variables = [
            [None if name is None else named(name) for name in variables] for _, variables in steps
        ]
        self.gpms = [text("gpm", ox.Literal(name)) for name, _ in steps]
        self.streams = [text("stream", ox.NamedNode(iri)) for iri in self.reading.streams]
        self.positions = [
            text("position", ox.Literal(str(i), datatype=ox.NamedNode(XSD + "integer")))
            for i in range(MOST_POSITIONS)
        ]
        self.position = text("position")
        return 0

    cdef int put_match(self, Text* text, object version) except -1:
        cdef Walk walk = self.core.transitions.walk
        cdef Label* last = walk.path[0]
        cdef Label* first = walk.path[walk.length - 1]
        cdef Text* graph = &self.graph
        cdef Blank events, node, bound
        cdef uint64_t blanks = self.names.blanks
        cdef const TermRecord* record
        cdef uint32_t i, count = 0
        self._name_graph()
        if self.is_trig:
            put(text, b"\n", 1)
        put(text, graph.begin, graph.size)
        put_bytes(text, self.generated)
        self._put_end(text, last)
        put(text, b" .\n", 3)
        if self.triples is not None:
            self._put_triples(text)
            self.counter.number += 1
            return 0
        self.replay()
        if self.is_trig:
            put(text, graph.begin, graph.size)
            put(text, b"{\n    ", 6)
        put(text, graph.begin, graph.size)
        put_bytes(text, self.match_type)
        self._same(text)
        put_bytes(text, self.query)
        self._same(text)
        put_bytes(text, self.begin_time)
        self._put_time(text, first)
        self._same(text)
        put_bytes(text, self.end)
        self._put_end(text, last)
        if self.gathering is not None and self.gathering.asks:
            self._same(text)
            put_bytes(text, self.answer)
        # The nodes of the bindings, the events, and the bindings of each event are numbered.
        blank_init(&node, blanks + 1)
        bound = node
        for i in range(self.reading.column_count):
            if bound_record(self, i) != NULL:
                self._same(text)
                put_bytes(text, self.binding)
                put_blank(text, &node)
                blank_next(&node)
                count += 1
        events = node
        for i in range(walk.length):
            self._same(text)
            put_bytes(text, self.event)
            put_blank(text, &node)
            blank_next(&node)
        count += walk.length
        for i in range(self.reading.column_count):
            record = bound_record(self, i)
            if record != NULL:
                self._put_binding(text, &bound, <bytes>self.variables[i], record)
                blank_next(&bound)
        for i in range(walk.length):
            count += self._put_event(text, &events, &node, walk.path[walk.length - 1 - i], i)
            blank_next(&events)
        if self.is_trig:
            put(text, b" .\n}\n", 5)
        else:
            put(text, self.tail.begin, self.tail.size)
        self.counter.number += 1
        self.names.blanks = blanks + count
        return 0

    cdef int _put_triples(self, Text* text) except -1:
        """Append the graph of a CONSTRUCT."""
        cdef str lines
        if not self.is_trig:
            name = ox.NamedNode(self.graph.begin[1 : self.graph.size - 2].decode())
            return put_bytes(text, triples_text(self.triples, name).encode())
        put(text, self.graph.begin, self.graph.size)
        put(text, b"{\n", 2)
        lines = self.statements(self.triples, "    ")
        put_bytes(text, lines.encode())
        return put(text, b" .\n}\n", 5) if lines else put(text, b"}\n", 2)

    cdef int _put_event(
        self, Text* text, const Blank* event, Blank* node, Label* label, uint32_t number
    ) except -1:
        """Append the description of an event; returns the number of its bindings."""
        cdef Blank bound = node[0]
        cdef uint32_t part = self.reading.part_of(label)
        cdef list variables = <list>self.part_variables[part]
        cdef uint32_t i, count = 0
        self._other(text, event)
        put_bytes(text, self.event_type)
        self._again(text, event)
        if number < <uint32_t>MOST_POSITIONS:
            put_bytes(text, <bytes>self.positions[number])
        else:
            put_bytes(text, self.position)
            self._put_integer(text, number)
        self._again(text, event)
        put_bytes(text, <bytes>self.gpms[part])
        self._again(text, event)
        put_bytes(text, <bytes>self.streams[label.stream])
        self._again(text, event)
        put_bytes(text, self.time)
        self._put_time(text, label)
        self._again(text, event)
        put_bytes(text, self.ordinal)
        self._put_integer(text, label.ordinal)
        if label.name:
            self._again(text, event)
            put_bytes(text, self.named)
            self._put_term(text, self.record(label, 1))
        for i in range(label.width):
            if label.row[i] and variables[i] is not None:
                self._again(text, event)
                put_bytes(text, self.binding)
                put_blank(text, node)
                blank_next(node)
                count += 1
        for i in range(label.width):
            if label.row[i] and variables[i] is not None:
                self._put_binding(text, &bound, <bytes>variables[i], self.record(label, i + 2))
                blank_next(&bound)
        return count

    cdef int _put_binding(
        self, Text* text, const Blank* node, bytes variable, const TermRecord* record
    ) except -1:
        self._other(text, node)
        put_bytes(text, variable)
        self._again(text, node)
        put_bytes(text, self.value)
        return self._put_term(text, record)

    cdef inline int _same(self, Text* text) except -1:
        """End a statement and begin another one of the match."""
        if self.is_trig:
            return put(text, b" ;\n        ", 11)
        put(text, self.tail.begin, self.tail.size)
        return put(text, self.graph.begin, self.graph.size)

    cdef inline int _again(self, Text* text, const Blank* subject) except -1:
        """End a statement and begin another one of its subject."""
        if self.is_trig:
            return put(text, b" ;\n        ", 11)
        put(text, self.tail.begin, self.tail.size)
        return put_subject(text, subject)

    cdef inline int _other(self, Text* text, const Blank* subject) except -1:
        """End a statement and begin one of another subject."""
        if self.is_trig:
            put(text, b" .\n    ", 7)
        else:
            put(text, self.tail.begin, self.tail.size)
        return put_subject(text, subject)

    cdef int _name_graph(self) except -1:
        """Spell the name of the match's graph."""
        self.graph.size = 0
        put(&self.graph, b"<", 1)
        put_bytes(&self.graph, self.counter.prefix)
        put_number(&self.graph, self.counter.number + 1)
        put(&self.graph, b"> ", 2)
        self.tail.size = 0
        put(&self.tail, b" ", 1)
        put(&self.tail, self.graph.begin, self.graph.size)
        return put(&self.tail, b".\n", 2)

    cdef int _put_integer(self, Text* text, int64_t number) except -1:
        put(text, b'"', 1)
        put_number(text, number)
        return put_bytes(text, self.integer)

    cdef int _put_end(self, Text* text, Label* last) except -1:
        """Append the time at which the match comes out."""
        if self.ending.later:
            return self._put_micros(text, self.ending.micros, last.domain)
        return self._put_time(text, last)

    cdef int _put_time(self, Text* text, Label* label) except -1:
        """Append the time of an event."""
        if label.domain and label.stamp:
            return self._put_term(text, self.record(label, 0))
        return self._put_micros(text, label.micros, label.domain)

    cdef int _put_micros(self, Text* text, int64_t micros, bint dated) except -1:
        """Append a time as `spaseq.rdf.time.canonical_literal` does."""
        cdef uint64_t size = <uint64_t>micros if micros >= 0 else 0 - <uint64_t>micros
        cdef uint32_t fraction = <uint32_t>(size % MICROS_PER_SECOND)
        cdef char[7] digits
        cdef int i, length = 6
        if dated:
            put(text, b'"', 1)
            put_date(text, micros)
            return put_bytes(text, self.date)
        put(text, b'"-' if micros < 0 else b'"', 2 if micros < 0 else 1)
        put_number(text, <int64_t>(size // MICROS_PER_SECOND))
        if not fraction:
            return put_bytes(text, self.integer)
        for i in range(6):
            digits[5 - i] = <char>(c"0" + fraction % 10)
            fraction //= 10
        while digits[length - 1] == c"0":
            length -= 1
        put(text, b".", 1)
        put(text, digits, length)
        return put_bytes(text, self.decimal)

    cdef int _put_term(self, Text* text, const TermRecord* record) except -1:
        """Append a term; in TriG with the prefixes that the document declares."""
        cdef const char* name
        cdef uint32_t size
        if self.is_trig and record.text[0] == c"<" and not is_triple(record.text):
            size = record.lexical - min(record.lexical, <uint32_t>len(SPASEQ))
            name = record.text + 1 + len(SPASEQ)
            if is_name(name, size) and memcmp(
                record.text + 1, <const char*>SPASEQ, len(SPASEQ)
            ) == 0:
                put(text, b"spaseq:", 7)
                return put(text, name, size)
        elif self.is_trig and record.text[0] == c'"':
            name = record.text + record.lexical + 5 + len(XSD_BYTES)
            size = record.lexical + 6 + <uint32_t>len(XSD_BYTES)    # all but the name
            size = record.size - min(record.size, size)
            if is_name(name, size) and memcmp(
                name - len(XSD_BYTES) - 3, <const char*>TYPED, len(TYPED)
            ) == 0:
                put(text, b'"', 1)
                put_escaped(text, record.text + 1, record.lexical)
                put(text, b'"^^xsd:', 7)
                return put(text, name, size)
        return put_n_triples(text, record)


cdef class TriGMaker(NQuadsMaker):
    """The same in TriG."""

    cdef bint writes_trig(self) noexcept:
        return True


cdef class MessagesMaker(NQuadsMaker):
    """RDF Messages in N-Quads, each with its delimiter."""

    cdef int put_match(self, Text* text, object version) except -1:
        NQuadsMaker.put_match(self, text, version)
        return put(text, b"MESSAGE\n", 8)


cdef inline bint is_name(const char* name, uint32_t size) noexcept:
    """Whether a text consists of letters of ASCII, at least one."""
    cdef uint32_t i
    for i in range(size):
        if not (c"a" <= (name[i] | 0x20) <= c"z"):
            return False
    return size > 0
