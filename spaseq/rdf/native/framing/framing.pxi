"""Statements → events in a batch: their facts, time, ordinal and blank nodes.

Six ways to cut a file into events:

* GRAPHS: a named graph is an event. Its timestamp is a default-graph triple about it, immediately
  before its first quad or after its last. Otherwise, if the user names a predicate of timestamps,
  it is a triple inside the graph. A timestamp without a graph is an event without facts. With
  `metadata`, the other default-graph triples about the name are facts of the event, and the next
  graph ends it.
* MESSAGES: the statements between two delimiters are an event, whatever their graphs. If there are
  none, and times come from the clock or a channel, the message is an event without facts.
* TRIPLES: N triples are an event; N + 1 if a timestamp predicate is named.
* SUBJECTS: a subject and its blank nodes are an event (subjects.pxi), with a timestamp among its
  triples; graph names are ignored.
* DATASET: statements are passed by graph to a collector (collector.pxi). Another reader creates
  the events of its graphs.
* WHOLE: the file is not a stream and is not cut; `drain` returns its triples a batch at a time.

Instead of a predicate, a path of predicates may lead to the timestamp. The reader follows it among
the facts of the event, from any node. It then also reads the facts of its steps that no query uses.

Blank nodes are renamed, so that their labels are unique among events (minting.pxi).

Events obey the invariant of spaseq/io/source.py. Errors and unusual timestamps are passed to a
`Questions` object (spaseq/io/framing_errors.py), which may raise. Triples that no query can use
are counted as facts and not stored. Cost: constant per statement, and the same again for the
statements of an event that is open when its batch is yielded.

Source: RSP-QL data model and RDF Messages, W3C RDF Stream Processing Community Group.
"""

cimport cython
from libc.stdlib cimport bsearch, qsort
from libc.string cimport memset

import pyoxigraph as ox

from spaseq.rdf.native._literals cimport timestamp_of
from spaseq.rdf.native._terms cimport (
    Keep,
    Numeral,
    TermRecord,
    keep_of,
    keeps_object,
    mem_alloc,
    mem_free,
    mem_realloc,
    record_of,
    written_record,
)
from spaseq.rdf.time import LONG_TIMESTAMP, TIMESTAMP_MAX_BYTES as _TIMESTAMP_MAX_BYTES

cdef uint32_t TIMESTAMP_MAX_BYTES = _TIMESTAMP_MAX_BYTES

cdef object TripleTerm = ox.Triple

cdef object BlankNode = ox.BlankNode

cdef object DefaultGraph = ox.DefaultGraph

cdef dict CUTS = {
    "graph": Cut.GRAPHS, "message": Cut.MESSAGES, "triples": Cut.TRIPLES, "subject": Cut.SUBJECTS,
    "dataset": Cut.DATASET, "whole": Cut.WHOLE,
}

cdef enum:
    PATIENCE = 4                # buffers that a batch without events may hold before a new one
    MOST_PENDING = 10000        # statements that wait for their subject
    SHOWN_BYTES = 4096          # of the name of a graph in a message


cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef term_t x = (<const term_t*>a)[0]
    cdef term_t y = (<const term_t*>b)[0]
    return (x > y) - (x < y)


cdef int push(
    Stamp** stamps, uint32_t* count, uint32_t* room, const Quad* quad, uint64_t line, uint32_t rank
) except -1 nogil:
    """Append a timestamp, the object of `quad`, unless it is the last one again."""
    cdef Stamp* grown
    if count[0] and (
        stamps[0][count[0] - 1].term == quad.object and stamps[0][count[0] - 1].rank == rank
    ):
        return 0
    if count[0] == room[0]:
        grown = <Stamp*>mem_realloc(stamps[0], (2 * <size_t>room[0] + 4) * sizeof(Stamp))
        if grown == NULL:
            with gil:
                raise MemoryError
        stamps[0] = grown
        room[0] = 2 * room[0] + 4
    stamps[0][count[0]].term = quad.object
    stamps[0][count[0]].rank = rank
    stamps[0][count[0]].line = line
    count[0] += 1
    return 0


# ------------------------------------------------------------------ framing


@cython.final
cdef class EventReader:
    """Builds the events of one stream, a batch at a time."""

    def __cinit__(
        self, Relevance relevance not None, questions, str stream, Minter minter, int64_t factor
    ):
        """`minter`: None if the events are unsorted and retain the blank nodes of the file."""
        self.relevance = self.used = relevance
        self.questions = questions
        self.minter = minter
        self.sorted = minter is not None
        self.factor = factor
        self.closed, self.closed_blanks = ClosedNames(), ClosedNames()
        self.files = []
        self.predicates = ()
        self.patience = PATIENCE
        self.most_pending = MOST_PENDING
        self.begin(EventBatch(relevance.dictionary, stream, ""))

    def __dealloc__(self):
        mem_free(self.stamps)
        mem_free(self.inner)
        mem_free(self.path)
        mem_free(self.prelude)

    # ------------------------------------------------------------ files and batches

    def start_file(
        self, str file, str kind, uint32_t size, tuple predicates, bint timed, bint inside,
        bint reuse=False, bint metadata=False, tuple steps=(),
    ):
        """Continue with another file, after the current batch has been yielded.

        `size`: the N of `triples:N`; `predicates`: those of timestamps; `timed`: whether timestamps
        are read; `inside`: whether the timestamp of a graph may be one of its triples; `reuse`:
        whether an IRI may name several graphs; `metadata`: whether default-graph triples about the
        name of a graph are facts of its event; `steps`: the path to the timestamp, if any.
        """
        if len(steps) > MOST_STEPS:
            raise ValueError("too many steps")
        self.cut = CUTS[kind]
        self.needs_nodes = self.cut == Cut.SUBJECTS
        if self.needs_nodes:
            if self.subjects is None:
                self.subjects = Subjects()
            self.subjects.most = self.most_pending
            self.subjects.clear()
        self.size = size
        self.predicates = tuple(map(ox.NamedNode, predicates))
        self.timed = timed
        self.inside = inside
        self.reuse = reuse
        self.metadata = metadata
        self.steps = tuple([(ox.NamedNode(iri), inverse) for iri, inverse in steps])
        self.step_count = len(steps) if timed else 0
        self.sifts = metadata or self.step_count != 0
        # Steps and metadata need the terms of all facts.
        self.relevance = Relevance(self.used.dictionary) if self.sifts else self.used
        self.prelude_count = 0
        self.is_open = False
        self.refused = 0
        self.unused = self.untimed = 0
        self.filled = False
        self.labelled = False
        self.file_number = len(self.files)
        self.files.append(file)
        if len(self.closed_blanks):
            # The scope of a label is its file.
            self.closed_blanks = ClosedNames()
        self.fresh(file)

    cdef int begin(self, EventBatch batch) except -1:
        """Fill another batch from now on."""
        cdef int i
        self.batch = batch
        self.generation += 1
        for i in range(3):
            self.about[i] = batch.encode(self.predicates[i]) if i < len(self.predicates) else 0
        for i in range(<int>self.step_count):
            self.step_terms[i] = batch.encode(self.steps[i][0])
            self.step_inverse[i] = self.steps[i][1]
        return 0

    def fresh(self, str file=None):
        """Return the batch, and continue the open event in a new one."""
        cdef EventBatch old = self.batch
        cdef EventBatch new = EventBatch(
            self.relevance.dictionary, old.stream, old.file if file is None else file
        )
        cdef uint32_t i
        new.prepare(old)
        self.last_stamp = moved(old, self.last_stamp, new)
        self.refused = moved(old, self.refused, new)
        if self.is_open:
            self.name = moved(old, self.name, new)
            for i in range(self.first, old.triple_count):
                new.add_triple(
                    moved(old, old.triples[i].subject, new),
                    moved(old, old.triples[i].predicate, new),
                    moved(old, old.triples[i].object, new),
                )
            old.triple_count = self.first
            self.first = 0
            for i in range(self.stamp_count):
                self.stamps[i].term = moved(old, self.stamps[i].term, new)
            for i in range(self.inner_count):
                self.inner[i].term = moved(old, self.inner[i].term, new)
            for i in range(self.path_count):
                self.path[i].source = moved(old, self.path[i].source, new)
                self.path[i].target = moved(old, self.path[i].target, new)
            if self.minter is not None:
                self.minter.move(old, new)
        if self.follower is not None:
            self.follower.move(old, new)
        if self.needs_nodes:
            self.subjects.move(old, new)
        for i in range(self.prelude_count):
            self.prelude[i].subject = moved(old, self.prelude[i].subject, new)
            self.prelude[i].predicate = moved(old, self.prelude[i].predicate, new)
            self.prelude[i].object = moved(old, self.prelude[i].object, new)
        self.begin(new)
        self.patience = PATIENCE + 2 * new.local.bytes.used // (1 << 16)
        return old

    def drain(self):
        """Return the batch with the triples of a WHOLE file since the last call."""
        self.is_open = False
        return self.fresh()

    def refresh(self):
        """Between two blocks, free unused memory and look up new permanent terms.

        A batch without events is replaced as soon as it holds so many buffers that copying the open
        event costs no more than reading these buffers did.
        """
        cdef EventBatch batch = self.batch
        self.known_domain = self.questions.known_domain()
        if batch.event_count == 0 and (
            len(batch.buffers) >= self.patience
            or batch.version != batch.dictionary.permanent.count
        ):
            self.fresh()

    def finish(self, bint torn=False):
        """The end of the file: close the open event.

        `torn`: an error ends the file, so statements that wait for their subject are left out.
        """
        if self.cut == Cut.SUBJECTS:
            if not torn:
                self.subjects.rest()
                self.by_subject()
            self.close()
        elif self.cut == Cut.DATASET:
            self.leave()
        elif self.cut == Cut.GRAPHS:
            self.unused += self.prelude_count
            self.prelude_count = 0
            self.close()
        elif self.cut == Cut.MESSAGES:
            self.delimit(0)
        elif self.is_open:
            self.is_open = False
            self.batch.triple_count = self.first
            self.questions.incomplete(self.statements, self.size, self.line)

    def finish_whole(self) -> bool:
        """Close the open graph of a quiet source if it has facts and any timestamp that it needs.

        Returns whether it was closed.
        """
        if self.cut != Cut.GRAPHS or not self.is_open or self.statements == 0:
            return False
        if self.timed and not (self.stamp_count or self.inner_count or self.path_count):
            return False
        self.close()
        return True

    @property
    def open_line(self) -> int:
        """The line of the first statement that the next event may need; 0 if none was read."""
        if self.prelude_count:
            return self.prelude[0].line
        return self.line if self.is_open else 0

    def state(self) -> tuple:
        """How many events were read, and the time of the last one or None."""
        return self.place, self.last_micros if self.begun else None

    def restore(self, uint64_t place, last):
        """Continue after the events that another reader has read; see `state`."""
        self.place = place
        self.begun = last is not None
        self.last_micros = last if self.begun else 0
        self.last_stamp = 0

    cdef int end(
        self, int64_t micros, uint32_t ordinal, term_t name, term_t stamp, bint dated
    ) except -1:
        """Close an event that the caller opened, with everything but its facts given.

        Its blank nodes are named by its number among the events of this reader.
        """
        cdef EventRecord* event
        self.is_open = False
        event = self.batch.add_event()
        event.first = self.first
        event.micros = micros
        event.statements = self.statements
        event.name = name
        event.stamp = stamp
        event.domain = dated
        self.minter.number_event(event)
        event.ordinal = ordinal
        return 0

    def heartbeat(self):
        """Read a message of a channel that has no content."""
        self.empty_message(1)

    def whole(self):
        """The name of the open graph if it has facts and, if timed, a timestamp; else None."""
        if self.cut != Cut.GRAPHS and self.cut != Cut.SUBJECTS:
            return None
        if not self.is_open or self.statements == 0:
            return None
        if self.timed and self.stamp_count == 0:
            return None
        return self.batch.term(self.name)

    # ------------------------------------------------------------ statements

    def statement(self, quad, uint64_t line):
        """Read a quad of pyoxigraph; None is a message delimiter."""
        cdef Quad given
        cdef EventBatch batch = self.batch
        if quad is None:
            self.delimit(line)
            return
        subject, predicate, value, graph = quad
        given.line = line
        given.predicate = batch.encode(predicate)
        given.timing = predicate in self.predicates
        given.graph = 0 if type(graph) is DefaultGraph else batch.encode(graph)
        given.subject = batch.encode(subject)
        given.blank_subject = type(subject) is BlankNode
        given.object = batch.encode(value)
        given.blank_object = type(value) is BlankNode
        if type(value) is TripleTerm and is_blank(batch, given.object):
            given.blank_object = 2
        given.kept = keep_of(self.relevance, given.predicate) == Keep.EVERY or (
            keep_of(self.relevance, given.predicate) == Keep.SOME
            and keeps_object(self.relevance, given.predicate, given.object)
        )
        self.read_statement(&given)

    cdef int read_statement(self, const Quad* quad) except -1 nogil:
        """Read the next statement of the file."""
        if self.cut == Cut.GRAPHS:
            if quad.graph:
                if not self.is_open or quad.graph != self.name:
                    self.enter(quad.graph, quad.line)
                    if not self.is_open:
                        return 0
                return self.add(quad)
            if quad.timing:
                return self.time(quad)
            if self.metadata:
                return self.describe(quad)
            self.unused += 1
            return 0
        if self.cut == Cut.SUBJECTS:
            self.subjects.take(quad)
            return self.by_subject()
        if self.cut == Cut.DATASET:
            return self.collect(quad)
        if self.cut == Cut.TRIPLES and quad.graph:
            with gil:
                self.questions.among_triples("a graph name", quad.line)
            return 0
        if not self.is_open:
            self.open(quad.line, 0)
        self.add(quad)
        if self.cut == Cut.TRIPLES and self.statements == self.size:
            self.close_triples()
        return 0

    cdef int by_subject(self) except -1 nogil:
        """Read the statements whose subjects are known; the graph of each is its subject."""
        cdef uint32_t i
        cdef Quad* quad
        for i in range(self.subjects.ready_count):
            quad = &self.subjects.ready[i]
            if not self.is_open or quad.graph != self.name:
                self.enter(quad.graph, quad.line)
                if not self.is_open:
                    continue
            self.add(quad)
        return 0

    cdef int add(self, const Quad* quad) except -1 nogil:
        """Add a fact to the open event."""
        cdef term_t subject, value
        cdef uint32_t rank
        if self.cut == Cut.DATASET:
            return self.keep(quad)
        self.statements += 1
        if quad.timing:
            self.about_inside = True
            if self.timed and (self.inside or self.cut != Cut.GRAPHS):
                for rank in range(3):
                    if quad.predicate == self.about[rank]:
                        push(
                            &self.inner, &self.inner_count, &self.inner_room, quad, self.line,
                            rank,
                        )
        if not quad.kept:
            return 0
        if self.sifts:
            if self.step_count:
                self.step(quad)
            if not self.is_used(quad):
                return 0
        subject, value = quad.subject, quad.object
        if self.sorted:
            if quad.blank_subject:
                subject = self.minter.own(self.batch, subject)
            if quad.blank_object:
                value = self.minter.own(self.batch, value)
        elif quad.blank_subject or quad.blank_object:
            self.has_labels = self.labelled = True
        return self.batch.add_triple(subject, quad.predicate, value)

    cdef void open(self, uint64_t line, term_t name) noexcept nogil:
        self.is_open = True
        self.line = line
        self.name = name
        self.first = self.batch.triple_count
        self.statements = 0
        self.about_inside = False
        self.has_labels = False
        self.stamp_count = 0
        self.inner_count = 0
        self.path_count = 0
        if self.sorted:
            self.minter.forget()

    cdef const Entry* closed_as(self, term_t name) noexcept nogil:
        """The entry of a complete graph; NULL: the graph is not complete."""
        cdef TermRecord* record = record_of(self.batch, name)
        if record.text[0] == c"_":
            return self.closed_blanks.find(record.hash, record.text, record.size)
        return self.closed.find(record.hash, record.text, record.size)

    cdef object shown(self, term_t name):
        """The name of a graph for messages; a very long one, which may be repeated, is cut off."""
        cdef const TermRecord* record = record_of(self.batch, name)
        if record.size <= SHOWN_BYTES:
            return self.batch.term(name)
        return record.text[:SHOWN_BYTES].decode("utf-8", "ignore") + "…"

    cdef object begin_of(self, const Entry* entry):
        """The file and the line where a complete graph began."""
        return self.files[entry.file], entry.line

    cdef int enter(self, term_t name, uint64_t line) except -1 nogil:
        """Open the graph of a quad, after closing the open one."""
        cdef const Entry* closed
        if name == self.refused:
            return 0
        self.closed.expect(record_of(self.batch, name).hash)
        self.close()
        closed = self.closed_as(name)
        if closed != NULL:
            self.refused = name
            with gil:
                self.questions.closed_graph(self.shown(name), self.begin_of(closed), line)
            return 0
        self.open(line, name)
        return self.adopt()

    cdef int time(self, const Quad* quad) except -1 nogil:
        """Read a default-graph triple that is the timestamp of a graph."""
        cdef const Entry* closed
        if self.is_open and self.name == quad.subject and not (
            # Under `reuse`, another time is that of the next graph of this name.
            self.reuse and self.statements and self.stamp_count
            and self.stamps[0].term != quad.object
        ):
            push(&self.stamps, &self.stamp_count, &self.stamp_room, quad, quad.line, 0)
            if self.statements and not self.metadata:
                self.close()
            return 0
        self.closed.expect(record_of(self.batch, quad.subject).hash)
        self.close()
        closed = self.closed_as(quad.subject)
        if closed != NULL:
            with gil:
                self.questions.closed_time(
                    self.shown(quad.subject), self.begin_of(closed), quad.line
                )
            return 0
        self.open(quad.line, quad.subject)
        push(&self.stamps, &self.stamp_count, &self.stamp_room, quad, quad.line, 0)
        return self.adopt()

    # ------------------------------------------------------------ data sets

    cdef int collect(self, const Quad* quad) except -1 nogil:
        """Pass a statement to its graph, or to the statements about the graph's name."""
        if quad.graph:
            if not self.is_open or quad.graph != self.name:
                self.leave()
                self.group = self.collector.group(self.batch, quad.graph, quad.line)
                self.collector.groups[self.group].is_event = True
                self.open(quad.line, quad.graph)
            return self.keep(quad)
        if quad.timing or self.metadata:
            return self.collector.describe(self.batch, quad, self.is_collected(quad))
        self.unused += 1
        return 0

    cdef int keep(self, const Quad* quad) except -1 nogil:
        """Store a fact of the current graph, or count it."""
        if self.is_collected(quad):
            return self.collector.add(self.batch, self.group, quad, False)
        self.statements += 1
        return 0

    cdef bint is_collected(self, const Quad* quad) noexcept nogil:
        """Whether the fact is stored: a query can use it, or the timestamp needs it."""
        cdef uint32_t i
        if quad.timing:
            return True
        if not quad.kept or not self.sifts:
            return quad.kept
        for i in range(self.step_count):
            if quad.predicate == self.step_terms[i]:
                return True
        return self.is_used(quad)

    cdef bint is_used(self, const Quad* quad) noexcept nogil:
        """Whether a query can use the fact."""
        cdef Keep keep = keep_of(self.used, quad.predicate)
        return keep == Keep.EVERY or (
            keep == Keep.SOME and keeps_object(self.used, quad.predicate, quad.object)
        )

    cdef int leave(self) except -1 nogil:
        """Leave the current graph."""
        cdef Group* group
        if self.is_open:
            group = &self.collector.groups[self.group]
            group.statements += self.statements
            self.is_open = False
        return 0

    def events_of(self, Collector collector not None):
        """Read the graphs of a collector, whose batch becomes the batch of this reader.

        The events are appended to the batch, in the order of the graphs.
        """
        cdef Group* group
        cdef uint32_t count, file = 0xFFFFFFFFu
        if self.batch is not collector.batch:
            self.begin(collector.batch)
        self.known_domain = self.questions.known_domain()
        while collector.done < collector.count:
            group = &collector.groups[collector.done]
            collector.done += 1
            if not group.is_event:
                collector.unused += group.described
                continue
            if group.file != file:
                file = group.file
                self.questions.at(collector.files[file], None)
            count = collector.batch.event_count
            self.open(group.line, group.name)
            self.statements = group.statements
            self.collected(collector, group.first_stamp)
            self.collected(collector, group.first_fact)
            self.is_open = False
            self.conclude()
            if collector.batch.event_count != count:
                collector.place(group)

    cdef int collected(self, Collector collector, uint32_t fact) except -1 nogil:
        """Read the facts of a chain, which begins with `fact`."""
        cdef Quad quad
        while fact:
            collector.quad_of(fact, &quad, self.line)
            if collector.facts[fact].form & IS_STAMP:
                push(&self.stamps, &self.stamp_count, &self.stamp_room, &quad, self.line, 0)
            else:
                self.add(&quad)
            fact = collector.facts[fact].next
        return 0

    # ------------------------------------------------------------ metadata and paths

    cdef int describe(self, const Quad* quad) except -1 nogil:
        """Read a default-graph triple that may be about the name of a graph."""
        cdef Quad* grown
        if self.is_open and self.name == quad.subject:
            return self.add(quad)
        if self.prelude_count and self.prelude[0].subject != quad.subject:
            self.unused += self.prelude_count
            self.prelude_count = 0
        if self.prelude_count == self.prelude_room:
            grown = <Quad*>mem_realloc(
                self.prelude, (2 * <size_t>self.prelude_room + 4) * sizeof(Quad)
            )
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.prelude = grown
            self.prelude_room = 2 * self.prelude_room + 4
        self.prelude[self.prelude_count] = quad[0]
        self.prelude_count += 1
        return 0

    cdef int adopt(self) except -1 nogil:
        """Add the metadata read before the graph that was just opened."""
        cdef uint32_t i, count = self.prelude_count
        if count == 0 or self.prelude[0].subject != self.name:
            return 0
        self.prelude_count = 0
        for i in range(count):
            self.add(&self.prelude[i])
        return 0

    cdef int step(self, const Quad* quad) except -1 nogil:
        """Store a fact that is a step of the path to the timestamp."""
        cdef PathFact* grown
        cdef uint32_t i
        for i in range(self.step_count):
            if quad.predicate != self.step_terms[i]:
                continue
            if self.path_count == self.path_room:
                grown = <PathFact*>mem_realloc(
                    self.path, (2 * <size_t>self.path_room + 8) * sizeof(PathFact)
                )
                if grown == NULL:
                    with gil:
                        raise MemoryError
                self.path = grown
                self.path_room = 2 * self.path_room + 8
            self.path[self.path_count].step = i
            self.path[self.path_count].line = quad.line
            if self.step_inverse[i]:
                self.path[self.path_count].source = quad.object
                self.path[self.path_count].target = quad.subject
            else:
                self.path[self.path_count].source = quad.subject
                self.path[self.path_count].target = quad.object
            self.path_count += 1
        return 0

    cdef int follow(self) except -1 nogil:
        """Set `inner` to the ends of the path, if there is one; a sort and searches per step."""
        cdef term_t* nodes
        cdef Quad end
        cdef uint32_t i, step, count = 0, next
        if self.step_count == 0 or self.path_count == 0:
            return 0
        nodes = <term_t*>mem_alloc(2 * <size_t>self.path_count * sizeof(term_t))
        if nodes == NULL:
            with gil:
                raise MemoryError
        for step in range(self.step_count):
            next = self.path_count
            for i in range(self.path_count):
                if self.path[i].step != step or step and bsearch(
                    &self.path[i].source, nodes, count, sizeof(term_t), by_number
                ) == NULL:
                    continue
                if step == self.step_count - 1:
                    memset(&end, 0, sizeof(Quad))
                    end.object = self.path[i].target
                    push(
                        &self.inner, &self.inner_count, &self.inner_room, &end,
                        self.path[i].line, 0,
                    )
                else:
                    nodes[next] = self.path[i].target
                    next += 1
            count = next - self.path_count
            for i in range(count):
                nodes[i] = nodes[self.path_count + i]
            qsort(nodes, count, sizeof(term_t), by_number)
        mem_free(nodes)
        return 0

    # ------------------------------------------------------------ ends of events

    cdef int close(self) except -1 nogil:
        """Close the open graph, if there is one."""
        cdef TermRecord* record
        self.refused = 0
        if not self.is_open:
            return 0
        self.is_open = False
        record = record_of(self.batch, self.name)
        if record.text[0] == c"_":
            self.closed_blanks.add(
                record.hash, record.text, record.size, self.line, self.file_number
            )
        elif not self.reuse:
            self.closed.add(record.hash, record.text, record.size, self.line, self.file_number)
        return self.conclude()

    cdef int conclude(self) except -1 nogil:
        """Create the event of the graph that was closed."""
        cdef Stamp* stamps = self.stamps
        cdef uint32_t count = self.stamp_count
        if self.timed and count == 0:
            self.follow()
            stamps = self.preferred(&count)
            if count == 0:
                self.batch.triple_count = self.first
                with gil:
                    self.questions.untimed_graph(
                        self.shown(self.name), self.about_inside, self.line
                    )
                return 0
        return self.emit(stamps, count)

    cdef int delimit(self, uint64_t line) except -1 nogil:
        """Read a message delimiter, or the end of a file of messages."""
        cdef Stamp* stamps
        cdef uint32_t count
        if self.needs_nodes or self.cut == Cut.DATASET:
            return 0
        if self.cut != Cut.MESSAGES:
            with gil:
                if self.cut == Cut.GRAPHS:
                    self.questions.delimiter_among_graphs(line)
                else:
                    self.questions.among_triples("a message delimiter", line)
            return 0
        if not self.is_open:
            # The end of a file ends no empty message.
            return self.empty_message(line) if line else 0
        self.is_open = False
        self.follow()
        stamps = self.preferred(&count)
        if self.timed and count == 0:
            self.batch.triple_count = self.first
            with gil:
                self.questions.untimed_message(self.line)
            return 0
        return self.emit(stamps, count)

    cdef int empty_message(self, uint64_t line) except -1 nogil:
        """Create an event without facts for a message without statements, if it has a time."""
        if self.timed:
            self.untimed += 1
            return 0
        self.open(line, 0)
        self.is_open = False
        return self.emit(NULL, 0)

    cdef int close_triples(self) except -1 nogil:
        cdef Stamp* stamps
        cdef uint32_t count
        self.is_open = False
        self.follow()
        stamps = self.preferred(&count)
        if self.timed and (self.about[0] or self.step_count) and count == 0:
            self.batch.triple_count = self.first
            with gil:
                self.questions.untimed_triples(self.size, self.line)
            return 0
        return self.emit(stamps, count)

    cdef Stamp* preferred(self, uint32_t* count) noexcept nogil:
        """The timestamps among the facts whose predicate ranks first."""
        cdef uint32_t i, best = 3
        count[0] = 0
        for i in range(self.inner_count):
            if self.inner[i].rank < best:
                best = self.inner[i].rank
        for i in range(self.inner_count):
            if self.inner[i].rank == best:
                self.inner[count[0]] = self.inner[i]
                count[0] += 1
        return self.inner

    cdef int emit(self, Stamp* stamps, uint32_t count) except -1 nogil:
        """Add the closed event to the batch, unless it is malformed."""
        cdef int64_t micros = 0
        cdef uint8_t domain = 0
        cdef term_t stamp = stamps[count - 1].term if self.timed and count else 0
        cdef bint usable
        self.filled |= self.statements != 0
        usable = self.when(stamps, count, &micros, &domain)
        self.place += 1
        return self.emit_at(micros, domain, stamp, usable)

    cdef int emit_at(
        self, int64_t micros, uint8_t domain, term_t stamp, bint usable
    ) except -1 nogil:
        """Like `emit`, for an event whose time is known; `usable`: whether the time is valid."""
        cdef EventRecord* event
        if usable and (
            domain != self.known_domain
            or self.sorted and self.begun and micros < self.last_micros
        ):
            with gil:
                usable = self.is_usable(micros, domain, stamp)
        if not usable:
            self.batch.triple_count = self.first
            return 0
        if self.sorted:
            self.begun = True
            self.last_micros = micros
            self.last_stamp = stamp
            if self.name and is_blank(self.batch, self.name):
                self.name = self.minter.own(self.batch, self.name)
        event = self.batch.add_event()
        event.first = self.first
        event.micros = micros
        event.line = self.line
        event.statements = self.statements
        event.name = self.name
        event.stamp = stamp
        event.domain = domain
        if self.sorted:
            self.minter.number_event(event)
        return 0

    cdef bint when(
        self, Stamp* stamps, uint32_t count, int64_t* micros, uint8_t* domain
    ) except -1 nogil:
        """Compute the time of the event; False if it has no valid time."""
        cdef const TermRecord* record
        cdef Numeral numeral
        cdef int64_t other
        cdef uint8_t its
        cdef uint32_t i
        if not self.timed:
            domain[0] = 1
            with gil:
                micros[0] = self.questions.now()
            return True
        if count == 0:
            micros[0] = <int64_t>self.place * 1000000
            return True
        for i in range(count):
            record = written_record(self.batch, stamps[i].term, &numeral)
            if not timestamp_of(
                record.text, record.size, record.lexical, self.factor, &other, &its
            ):
                break
            if i == 0:
                micros[0] = other
                domain[0] = its
            elif other != micros[0] or its != domain[0]:
                break
        else:
            return True
        with gil:
            return self.asked_time(stamps, count, micros, domain)

    cdef bint asked_time(
        self, Stamp* stamps, uint32_t count, int64_t* micros, uint8_t* domain
    ) except -1:
        """Like `when`, for times of an unusual form, which Python reads."""
        cdef uint32_t i
        cdef const TermRecord* record
        cdef Numeral numeral
        said = []
        for i in range(count):
            record = written_record(self.batch, stamps[i].term, &numeral)
            if record.size > TIMESTAMP_MAX_BYTES:
                self.questions.report(LONG_TIMESTAMP, stamps[i].line)
                return False
            said.append((self.batch.term(stamps[i].term), stamps[i].line))
            if record.text[0] != c'"':
                break   # the first one that is no literal is an error
        found = self.questions.time(said)
        if found is None:
            return False
        micros[0], domain[0] = found
        return True

    cdef bint is_usable(self, int64_t micros, uint8_t domain, term_t stamp) except -1:
        """Whether an event with this time may follow; errors are reported."""
        if not self.questions.is_usable(domain, self.line):
            return False
        self.known_domain = domain
        if self.sorted and self.begun and micros < self.last_micros:
            self.questions.backwards(
                self.batch.term(stamp) if stamp else None, micros,
                self.batch.term(self.last_stamp) if self.last_stamp else None, self.last_micros,
                domain, self.line,
            )
            return False
        return True
