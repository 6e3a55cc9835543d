# cython: language_level=3, boundscheck=False, wraparound=False
"""Events that a program pushes one by one → the compiled core, without an object for any of them.

For runs of one query over one stream whose matches are made one by one. Events are entered into
a batch of this module's own and taken from there as those of a reader's batch are; what the run
counts for its user is brought up to date when somebody asks (`Evaluation.settle`). Whatever is
rare is not taken: an event that the run refuses, that closes a window, that needs the KB. Then the
run does what it does for any event, and begins another batch.

Invariant: an event that is not taken has changed nothing but the terms that the batch knows.
Cost: linear in the event's triples, and what the patterns and the core cost.
"""

cimport cython
from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_Check
from libc.stdint cimport int64_t, uint32_t

from spaseq.engine._alone cimport Alone, go_in, go_out
from spaseq.engine.native._matches cimport MatchMaker
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._relevance cimport Keep, Relevance, keep_of
from spaseq.rdf._terms cimport term_t

import pyoxigraph as ox

from spaseq.engine.python_graphs import facts_of, name_of
from spaseq.rdf.event import DATE_TIME
from spaseq.rdf.time import from_value

cdef object Triple = ox.Triple
cdef object Quad = ox.Quad
cdef object NamedNode = ox.NamedNode
cdef object Literal = ox.Literal

cdef uint32_t MOST = 256                        # events of a batch
cdef uint32_t MOST_TERMS = 1 << 14              # beyond which a batch takes no more events
cdef enum:
    PREDICATES = 64                             # that a batch knows by where they lie
cdef int64_t MOST_SECONDS = 9_223_372_036_853   # of which the microseconds have 64 bits


@cython.final
cdef class Pushing:
    """A batch of events of one stream that stays open.

    Args:
        alone: the lock of the run.
        maker: what makes the matches of the run's query.
        batch: an empty one; it is this object's.
        relevance: what the query can use of an event.
        kb: the run's, for its version and its changes.
        skip: whether what follows a match starts after it.
        stream, file: the numbers by which the core knows them.
        events: how many events the run had before.
        dated: whether its timestamps are dates.
        micros, ordinal: the time of its last event, and the number the next at that time has.
        closed: the earliest time that is not over.
        precision: what a time finer than a microsecond becomes.
    """

    cdef Alone alone
    cdef MatchMaker maker
    cdef bint overtaken                         # the run goes on in another way
    cdef readonly EventBatch batch
    cdef Relevance relevance
    cdef object kb
    cdef bint skip, dated
    cdef uint32_t stream, file, ordinal
    cdef int64_t events, micros, closed
    cdef str precision
    cdef list predicates                        # kept, so that none can lie where another did
    cdef term_t numbers[PREDICATES]
    cdef readonly uint32_t after    # events of the batch that the run has taken
    cdef readonly bint failed       # in the midst of the last one

    def __cinit__(
        self, Alone alone not None, MatchMaker maker not None, EventBatch batch not None,
        Relevance relevance not None, kb, bint skip, uint32_t stream, uint32_t file,
        int64_t events, bint dated, int64_t micros, uint32_t ordinal, int64_t closed,
        str precision,
    ):
        self.alone = alone
        self.maker = maker
        self.batch = batch
        self.relevance = relevance
        self.kb = kb
        self.skip = skip
        self.stream = stream
        self.file = file
        self.events = events
        self.dated = dated
        self.micros = micros
        self.ordinal = ordinal
        self.closed = closed
        self.precision = precision
        self.predicates = [None] * PREDICATES

    def overtake(self):
        """The run goes on in another way: what was found was handed out already."""
        self.overtaken = True

    def push(self, stream, timestamp, graph, name):
        """The matches that an event completes; None where the event was not taken.

        Raises:
            EventError: as `Evaluation.push` does; the event was not taken.
            LimitReached: in the midst of the event, which `failed` says.
            RuntimeError: where another thread is at work with the run.

        The thread stays alone where the event has failed: the run is to be told first.
        """
        go_in(self.alone)
        try:
            return self._push(stream, timestamp, graph, name)
        finally:
            if not self.failed:
                go_out(self.alone)

    cdef list _push(self, object stream, object timestamp, object graph, object name):
        cdef AutomatonCore core = self.maker.core
        cdef EventBatch batch = self.batch
        cdef uint32_t number = batch.event_count, triples = batch.triple_count
        if (
            self.overtaken or number == MOST or batch.local.count > MOST_TERMS or self.kb.changes
            or batch.version != batch.dictionary.permanent.count or stream != batch.stream
        ):
            return None
        self.maker.step.at_rest()
        try:
            taken = self._enter(timestamp, graph, name, number, triples)
        except BaseException:
            batch.triple_count, batch.event_count = triples, number
            raise
        if not taken:
            batch.triple_count, batch.event_count = triples, number
            return None
        self.after = number + 1
        self.failed = True
        if self.maker.step.run(
            batch, number, self.stream, self.file, self.events + number
        ) == number:
            self.failed = False
            self.after = number
            batch.triple_count, batch.event_count = triples, number
            return None
        self.micros = self.closed = batch.events[number].micros
        self.ordinal = batch.events[number].ordinal + 1
        found = []
        if core.instant.accepted_count:
            found = list(self.maker.take(self.skip, self.kb.version))
        self.failed = False
        return found

    cdef bint _enter(
        self, object timestamp, object graph, object name, uint32_t number, uint32_t first
    ) except -1:
        """Enter an event into the batch: whether the run may take it."""
        cdef EventBatch batch = self.batch
        cdef EventRecord* event
        cdef int64_t micros
        cdef term_t named = 0, stamp = 0
        cdef uint32_t statements
        if PyLong_Check(timestamp) and not PyBool_Check(timestamp):
            if self.dated or not -MOST_SECONDS <= timestamp <= MOST_SECONDS:
                return False
            # Whole seconds are written as their number is: `AT` binds what was given.
            micros = <int64_t>timestamp * 1_000_000
        else:
            time = from_value(timestamp, "s", self.precision)
            if (time.domain == DATE_TIME) != self.dated:
                return False
            micros = time.micros
            if not self.dated:
                stamp = batch.encode(time.term)
        if micros < self.closed:
            return False
        statements = self._triples(graph, first)
        if name is not None:
            named = batch.encode(name_of(name))
        event = batch.add_event()
        event.first = first
        event.statements = statements
        event.domain = self.dated
        event.micros = micros
        event.ordinal = self.ordinal if micros == self.micros else 0
        event.name = named
        event.stamp = stamp
        return True

    cdef uint32_t _triples(self, object graph, uint32_t first) except? 0xFFFFFFFF:
        """Enter the triples of a graph that are of use; how many it has."""
        cdef uint32_t statements
        if isinstance(graph, list | tuple):
            statements = <uint32_t>len(graph)
            if statements > 1:
                graph = dict.fromkeys(graph)
                statements = <uint32_t>len(graph)
            for item in graph:
                if not self._plain(item):
                    break
            else:
                return statements
            self.batch.triple_count = first
        facts = facts_of(graph, f"e{self.events + self.batch.event_count}")
        for subject, predicate, value in facts:
            self._triple(subject, predicate, value)
        return <uint32_t>len(facts)

    cdef bint _plain(self, object item) except -1:
        """Enter a triple of terms of pyoxigraph's, none a blank node; whether it is one."""
        if type(item) is Triple or type(item) is Quad:
            subject, predicate, value = item.subject, item.predicate, item.object
        elif type(item) is tuple and len(<tuple>item) == 3:
            subject, predicate, value = <tuple>item
        else:
            return False
        if type(subject) is not NamedNode or type(predicate) is not NamedNode:
            return False
        if type(value) is not NamedNode and type(value) is not Literal:
            return False
        self._triple(subject, predicate, value)
        return True

    cdef int _triple(self, object subject, object predicate, object value) except -1:
        cdef EventBatch batch = self.batch
        cdef term_t known = self._predicate(predicate), start
        if keep_of(self.relevance, known) == Keep.NOTHING:
            return 0
        start = batch.encode(subject)
        batch.add_triple(start, known, batch.encode(value))
        return 0

    cdef term_t _predicate(self, object predicate) except 0:
        """The number of a predicate; programs mostly use the same few objects."""
        cdef uint32_t place = (<size_t><void*>predicate >> 4) % PREDICATES
        if self.predicates[place] is not predicate:
            self.numbers[place] = self.batch.encode(predicate)
            self.predicates[place] = predicate
        return self.numbers[place]
