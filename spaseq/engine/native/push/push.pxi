"""Pushed events → the compiled core, without an object per event.

For runs of one query over one stream whose matches have a `MatchMaker`. A pushed event is appended
to an open batch and processed like an event of a reader's batch. `Run.settle` updates the counters
of the run on demand. The batch does not accept some rare events: those that the run refuses, that
close a window, or that need the KB. The run processes these like any other event and opens another
batch.

Invariant: an event that is not accepted changes nothing but the terms of the batch.
Cost: linear in the event's triples, plus the cost of the patterns and the core.
"""

cimport cython
from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_Check
from libc.stdint cimport int64_t, uint32_t

import pyoxigraph as ox

from spaseq.engine.native._matches cimport MatchMaker
from spaseq.engine.python_graphs import facts_of, name_of
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.rdf.event import DATE_TIME
from spaseq.rdf.native._terms cimport EventBatch, EventRecord, Keep, Relevance, keep_of, term_t
from spaseq.rdf.time import from_value

cdef object Triple = ox.Triple

cdef object Quad = ox.Quad

cdef object NamedNode = ox.NamedNode

cdef object Literal = ox.Literal

cdef uint32_t BATCH_MAX_EVENTS = 256

cdef uint32_t BATCH_MAX_TERMS = 1 << 14         # a batch with more accepts no further events

cdef enum:
    PREDICATES = 64                             # entries of the cache of predicates, by address

cdef int64_t TIME_MAX_SECONDS = 9_223_372_036_853   # its microseconds fit in 64 bits


@cython.final
cdef class Pushing:
    """An open batch of events of one stream.

    Args:
        alone: the lock of the run.
        maker: makes the matches of the run's query.
        batch: an empty batch, which this object owns.
        relevance: the triples that the query can use.
        kb: the knowledge base of the run.
        skip: whether later matches start after the end of a match.
        stream, file: the numbers of the stream and the file in the core.
        events: the number of earlier events of the run.
        dated: whether timestamps are dates.
        micros, ordinal: the time of the last event, and the next ordinal at that time.
        closed: the earliest time that is not closed.
        precision: how to treat a time finer than a microsecond.
    """

    cdef Alone alone
    cdef MatchMaker maker
    cdef bint is_invalid                         # the batch accepts no further events
    cdef readonly EventBatch batch
    cdef Relevance relevance
    cdef object kb
    cdef bint skip, dated
    cdef uint32_t stream, file, ordinal
    cdef int64_t events, micros, closed
    cdef str precision
    cdef list predicates                        # owned, so that no address is reused
    cdef term_t numbers[PREDICATES]
    cdef readonly uint32_t after    # the number of processed events of the batch
    cdef bint is_within             # an event, or the last one failed
    cdef GraphReader reader         # of text and of rdflib graphs

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
        self.reader = GraphReader(batch, relevance)

    def invalidate(self):
        """Accept no further events; all matches have been returned."""
        self.is_invalid = True

    @property
    def failed(self):
        """Whether the calling thread still holds the lock, because its event failed."""
        return self.is_within and is_held(self.alone)

    def push(self, stream, timestamp, graph, name):
        """The matches that an event completes; None if the batch does not accept the event.

        After an error within the event (`failed`) the lock remains held; the caller marks the run
        as failed and releases it.

        Raises:
            EventError: as `Run.push`; the event was not processed.
            LimitReached: within the event; `failed` is set.
            RuntimeError: if another thread uses the run.
        """
        go_in(self.alone)
        try:
            return self._push(stream, timestamp, graph, name)
        finally:
            if not self.is_within:
                go_out(self.alone)

    cdef list _push(self, object stream, object timestamp, object graph, object name):
        cdef AutomatonCore core = self.maker.core
        cdef EventBatch batch = self.batch
        cdef uint32_t number = batch.event_count, triples = batch.triple_count
        if (
            self.is_invalid or number == BATCH_MAX_EVENTS
            or batch.local.count > BATCH_MAX_TERMS or self.kb.changes
            or batch.version != batch.dictionary.permanent.count or stream != batch.stream
        ):
            return None
        self.maker.step.check_exclusive()
        try:
            taken = self._enter(timestamp, graph, name, number, triples)
        except BaseException:
            batch.triple_count, batch.event_count = triples, number
            raise
        if not taken:
            batch.triple_count, batch.event_count = triples, number
            return None
        self.after = number + 1
        self.is_within = True
        if self.maker.step.run(
            batch, number, self.stream, self.file, self.events + number
        ) == number:
            self.is_within = False
            self.after = number
            batch.triple_count, batch.event_count = triples, number
            return None
        self.micros = self.closed = batch.events[number].micros
        self.ordinal = batch.events[number].ordinal + 1
        found = []
        if core.instant.accepted_count:
            found = list(self.maker.take(self.skip, self.kb.version))
        self.is_within = False
        return found

    cdef bint _enter(
        self, object timestamp, object graph, object name, uint32_t number, uint32_t first
    ) except -1:
        """Append an event to the batch; False if the batch does not accept it."""
        cdef EventBatch batch = self.batch
        cdef EventRecord* event
        cdef int64_t micros
        cdef term_t named = 0, stamp = 0
        cdef uint32_t statements
        if PyLong_Check(timestamp) and not PyBool_Check(timestamp):
            if self.dated or not -TIME_MAX_SECONDS <= timestamp <= TIME_MAX_SECONDS:
                return False
            # The literal of whole seconds can be derived from the number, so `AT` needs no stamp.
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
        """Append the relevant triples of a graph; returns the number of all its triples."""
        cdef uint32_t statements
        cdef int64_t found
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
        else:
            found = self.reader.read(graph, self.events + self.batch.event_count)
            if found >= 0:
                return <uint32_t>found
            self.batch.triple_count = first
        facts = facts_of(graph, f"e{self.events + self.batch.event_count}")
        for subject, predicate, value in facts:
            self._triple(subject, predicate, value)
        return <uint32_t>len(facts)

    cdef bint _plain(self, object item) except -1:
        """Append a triple of pyoxigraph terms without blank nodes; False for another item."""
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
        """The number of a predicate, cached by the address of the object."""
        cdef uint32_t place = (<size_t><void*>predicate >> 4) % PREDICATES
        if self.predicates[place] is not predicate:
            self.numbers[place] = self.batch.encode(predicate)
            self.predicates[place] = predicate
        return self.numbers[place]
