# cython: language_level=3, boundscheck=False, wraparound=False
"""Columns of events → encoded batches, the parts of their events, and their pruned graphs.

The graphs of many events are in one Arrow buffer, which the compiled reader of N-Triples scans in
place (spaseq/rdf/native/nquads/nquads.pxi); it passes lines that it does not recognise to a parser.
Each pattern is matched once per event, as in a run. The part of a key is computed from the stored
hashes of its terms. No Python object is created for an event, unless its time is a number, or its
graph has a line that the reader does not recognise.

Invariant: the part of a key is a function of the texts of its terms and of the number of parts, the
same in every process. All blank nodes count as equal, since their labels differ between tasks.
Cost: linear in the bytes, plus the cost of the patterns.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from spaseq.gpm.native._matcher cimport NativeMatcher, SummaryGraph, row_at
from spaseq.io.native._events cimport key_with, part_of_key
from spaseq.io.native._columns cimport Strings
from spaseq.rdf.native._framing cimport EventReader
from spaseq.rdf.native._nquads cimport LineReader
from spaseq.rdf.native._terms cimport (
    EventBatch,
    EventRecord,
    Numeral,
    TermRecord,
    Triple,
    hash_of,
    mem_alloc,
    mem_calloc,
    mem_free,
    mem_realloc,
    record_of,
    term_t,
    text_of,
    written_record,
)
from spaseq.results.native._match cimport put, put_n_triples

cdef enum:
    EVERYWHERE = -1


def part_of(terms, uint32_t parts) -> int:
    """The part of a key, a number below `parts`."""
    cdef uint64_t seed = 0
    cdef TermRecord record
    cdef bytes text
    for term in terms:
        text = text_of(term)
        record.text = text
        record.hash = hash_of(text, len(text))
        seed = key_with(seed, &record)
    return part_of_key(seed, parts)


def instants(EventBatch batch not None) -> bytes:
    """The times of all events in microseconds, then all ordinals, as 64-bit numbers."""
    cdef uint32_t i, count = batch.event_count
    cdef bytes found = PyBytes_FromStringAndSize(NULL, 2 * count * sizeof(int64_t))
    cdef int64_t* numbers = <int64_t*><char*>found
    for i in range(count):
        numbers[i] = batch.events[i].micros
        numbers[count + i] = batch.events[i].ordinal
    return found


@cython.final
cdef class ColumnReader:
    """Reads columns of events of one stream into batches.

    `judge` parses N-Triples that the compiled reader does not recognise.
    """

    cdef EventReader events
    cdef LineReader lines
    cdef object judge

    def __cinit__(self, EventReader events not None, LineReader lines not None, judge):
        self.events = events
        self.lines = lines
        self.judge = judge

    def read(
        self, bytes graphs not None, const int32_t[::1] ends, const int64_t[::1] places,
        const int64_t[::1] micros, const int64_t[::1] ordinals, const uint8_t[::1] dated,
        bytes names, const int32_t[::1] name_ends, stamps,
    ):
        """The events at the indexes `places` of the columns, as a new batch.

        Graph i is `graphs[ends[i]:ends[i + 1]]`. Names have the same layout: N-Triples, or empty
        for no name. `names` and `stamps` may be None.

        Raises:
            ValueError: if a name is not an IRI.
        """
        cdef Py_ssize_t i, place, at, end
        cdef EventBatch batch = self.events.batch
        cdef term_t name, stamp
        if names is not None:
            batch.buffers.append(names)
        for i in range(places.shape[0]):
            place = places[i]
            self.events.open(0, 0)
            at, end = ends[place], ends[place + 1]
            if at < end:
                at = self.lines.read(graphs, at, end)
                if at < end:
                    for quad in self.judge(graphs[at:end]):
                        self.events.statement(quad, 0)
            name = stamp = 0
            if names is not None and name_ends[place] < name_ends[place + 1]:
                name = self._name(names, name_ends[place], name_ends[place + 1])
            if stamps is not None and stamps[place] is not None:
                stamp = batch.encode(stamps[place])
            self.events.end(micros[place], <uint32_t>ordinals[place], name, stamp, dated[place])
        return self.events.fresh()

    cdef term_t _name(self, bytes names, int32_t at, int32_t end) except 0:
        cdef const char* text = <const char*>names + at
        cdef term_t name = 0
        if not self.lines.name_or_label(text, end - at, True, &name):
            raise ValueError(f"the name of an event is not an IRI: {text[:end - at].decode()}")
        return name


@cython.final
cdef class PartFinder:
    """Computes the parts of the events of a batch; see spaseq/spark/keys.py.

    Args:
        graph: the summary graph that the matchers read.
        matchers: the native matcher of each pattern, with the columns of the key; -1 for a
            variable that the pattern does not bind.
        unfiltered: whether solutions that fail a pattern's own filters count.
        parts: the number of parts.
    """

    cdef SummaryGraph graph
    cdef list matchers
    cdef list columns
    cdef bint unfiltered
    cdef uint32_t parts
    cdef uint64_t* seen         # by part: the number of the last event that belongs to it
    cdef uint64_t event_count   # events so far
    cdef int64_t* found         # pairs: the event's number in its batch, and a part
    cdef size_t count, room

    def __cinit__(
        self, SummaryGraph graph not None, matchers, bint unfiltered, uint32_t parts
    ):
        self.graph = graph
        self.matchers = [matcher for matcher, _ in matchers]
        self.columns = [list(columns) for _, columns in matchers]
        self.unfiltered = unfiltered
        self.parts = parts
        self.seen = <uint64_t*>mem_calloc(parts, sizeof(uint64_t))
        self.room = 1024
        self.found = <int64_t*>mem_alloc(2 * self.room * sizeof(int64_t))
        if self.seen == NULL or self.found == NULL:
            raise MemoryError

    def __dealloc__(self):
        mem_free(self.seen)
        mem_free(self.found)

    def find(self, EventBatch batch not None):
        """Pairs of 64-bit numbers: the index of an event, and one of its parts (-1: all parts)."""
        cdef uint32_t event
        batch.refit()
        self.count = 0
        for event in range(batch.event_count):
            self._find_parts(batch, event)
        return PyBytes_FromStringAndSize(
            <const char*>self.found, 2 * self.count * sizeof(int64_t)
        )

    cdef int _find_parts(self, EventBatch batch, uint32_t event) except -1:
        cdef NativeMatcher matcher
        cdef uint32_t i, part
        cdef size_t first = self.count
        cdef size_t number
        self.event_count += 1
        if batch.events[event].statements == 0:
            return 0
        self.graph.load(batch, event)
        for number in range(<size_t>len(self.matchers)):
            matcher = <NativeMatcher>self.matchers[number]
            matcher.match_event(batch, event)
            for i in range(matcher.result.count):
                if not self.unfiltered and not matcher.passed[i]:
                    continue
                part = self._part(batch, row_at(matcher.result, i), <list>self.columns[number])
                if part == self.parts:
                    self.count = first
                    return self._put(event, EVERYWHERE)
                if self.seen[part] != self.event_count:
                    self.seen[part] = self.event_count
                    self._put(event, part)
        return 0

    cdef uint32_t _part(self, EventBatch batch, const term_t* row, list columns) except? 0:
        """The part of a row's key; `parts` if the row does not bind the whole key."""
        cdef uint64_t seed = 0
        cdef Numeral numeral
        cdef int column
        for column in columns:
            if column < 0 or row[column] == 0:
                return self.parts
            seed = key_with(seed, written_record(batch, row[column], &numeral))
        return part_of_key(seed, self.parts)

    cdef int _put(self, int64_t event, int64_t part) except -1:
        cdef int64_t* grown
        if self.count == self.room:
            grown = <int64_t*>mem_realloc(self.found, 4 * self.room * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError
            self.found = grown
            self.room *= 2
        self.found[2 * self.count] = event
        self.found[2 * self.count + 1] = part
        self.count += 1
        return 0


@cython.final
cdef class GraphWriter:
    """Concatenates graphs as N-Triples, without the triples that no query can use."""

    cdef Strings graphs

    def __cinit__(self):
        self.graphs = Strings()

    def add(
        self, EventBatch batch not None, const int64_t[::1] events, const int64_t[::1] places,
        bytes graphs not None, const int32_t[::1] ends,
    ):
        """Add the graphs of events of a batch, whose texts are at the indexes `places` of a column.

        The text is copied if the reader dropped no triple of the event; otherwise the remaining
        triples are written.
        """
        cdef Py_ssize_t i
        cdef int64_t place
        cdef EventRecord* event
        cdef uint32_t retained
        for i in range(events.shape[0]):
            event = &batch.events[events[i]]
            place = places[i]
            retained = event.end - event.first
            if 0 < retained < event.statements:
                self._triples(batch, event)
            else:
                put(
                    &self.graphs.text, <const char*>graphs + ends[place],
                    ends[place + 1] - ends[place],
                )
            self.graphs.close()

    def add_all(self, EventBatch batch not None):
        """Add the graphs of all events of a batch, without the triples that the reader dropped."""
        cdef uint32_t event
        for event in range(batch.event_count):
            self._triples(batch, &batch.events[event])
            self.graphs.close()

    def add_names(self, EventBatch batch not None):
        """Add the names of all events in place of graphs: IRIs without brackets; empty for a blank
        node or no name.
        """
        cdef uint32_t event
        cdef TermRecord* record
        for event in range(batch.event_count):
            if batch.events[event].name:
                record = record_of(batch, batch.events[event].name)
                if record.text[0] == c"<":
                    put(&self.graphs.text, record.text + 1, record.size - 2)
            self.graphs.close()

    def written(self) -> tuple[bytes, bytes]:
        """The concatenated texts, and their offsets as 32-bit numbers; empties the writer."""
        return self.graphs.buffers()

    cdef int _triples(self, EventBatch batch, const EventRecord* event) except -1:
        cdef Triple* triple
        cdef Numeral numeral
        cdef uint32_t i
        for i in range(event.first, event.end):
            triple = &batch.triples[i]
            put_n_triples(&self.graphs.text, record_of(batch, triple.subject))
            put(&self.graphs.text, " ", 1)
            put_n_triples(&self.graphs.text, record_of(batch, triple.predicate))
            put(&self.graphs.text, " ", 1)
            put_n_triples(&self.graphs.text, written_record(batch, triple.object, &numeral))
            put(&self.graphs.text, " .\n", 3)
        return 0
