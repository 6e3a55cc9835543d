"""Dispatch: which graph patterns an event is matched against.

A reader is a distinct pattern over a stream, with all GPMs that have this pattern. An event is
dispatched to a reader if it has triples in every view that the pattern needs and some partial match
waits for the pattern's rows. An event without a reader only advances the time, and one loop passes
a run of such events. If an event is one triple and its readers are single triple patterns, they
match it without the summary graph.

Invariant: the set of awaited patterns does not change between two calls of `attend`. `settle`
updates the counters of patterns before that set changes, and before other code reads them.
Cost of an event: one step per triple and one comparison per reader; a table look-up replaces the
comparisons if all relevant triples are in one view and there are at most `WORD` readers.
"""

from libc.stdint cimport INT64_MIN

from spaseq.gpm.native._matcher cimport bit_of, present_in
from spaseq.nfa.native._tecs cimport tick
from spaseq.rdf.native._terms cimport mem_calloc, mem_free

cdef enum:
    WORD = 64           # the bits of a set of readers


cdef class Dispatch:
    """The readers of a query.

    Args:
        core: the automaton of the query.
        graph: the summary graph of the matchers.
        window: the terms that the automaton holds.
        readers: per stream, the GPMs that read it.
        matchers: per GPM, its NativeMatcher; None if Python also reads the event.
    """

    def __cinit__(
        self, AutomatonCore core not None, SummaryGraph graph not None,
        WindowTerms window not None, readers, matchers,
    ):
        self.core = core
        self.graph = graph
        self.window = window
        self._list_readers(readers, matchers)

    def __dealloc__(self):
        mem_free(self.readers)
        mem_free(self.streams)
        mem_free(self.of_views)
        mem_free(self.unsettled_of)
        mem_free(self.gpms)
        mem_free(self.awaited)
        mem_free(self.ways)
        mem_free(self.waits)

    cdef int _list_readers(self, readers, matchers) except -1:
        cdef uint32_t i, bit, listed = 0, ways = 0
        cdef uint64_t present
        cdef Reader* reader
        cdef Audible* stream
        cdef size_t most = sum(map(len, readers))
        self.stream_count = <uint32_t>len(readers)
        self.unsettled_of = <uint64_t*>mem_calloc(self.stream_count, sizeof(uint64_t))
        self.readers = <Reader*>mem_calloc(most, sizeof(Reader))
        self.streams = <Audible*>mem_calloc(len(readers), sizeof(Audible))
        self.of_views = <uint64_t*>mem_calloc(len(readers) * (WORD + 1), sizeof(uint64_t))
        self.gpms = <uint32_t*>mem_calloc(most, sizeof(uint32_t))
        self.awaited = <uint32_t*>mem_calloc(most, sizeof(uint32_t))
        self.ways = <EdgeRef**>mem_calloc(
            sum([self.core.way_count(gpm) for gpms in readers for gpm in gpms]), sizeof(EdgeRef*)
        )
        self.waits = <bint*>mem_calloc(most, sizeof(bint))
        reader = self.readers
        for i, gpms in enumerate(readers):
            stream = &self.streams[i]
            stream.first = reader
            alike = {}
            for gpm in gpms:
                matcher = matchers[gpm]
                alike.setdefault(gpm if matcher is None else matcher, []).append(gpm)
            for together in alike.values():
                matcher = matchers[together[0]]
                if matcher is not None:
                    reader.matcher = <PyObject*>matcher
                    reader.needed = (<NativeMatcher>matcher).needed
                    reader.lone = (
                        not self.core.tables.tracked and (<NativeMatcher>matcher).single_step
                    )
                reader.first, reader.stream = listed, i
                reader.audience.gpms = self.awaited + listed
                reader.audience.ways = self.ways + ways
                for gpm in together:
                    self.gpms[listed] = gpm
                    reader.places |= self.core.places_of(gpm)
                    listed += 1
                    ways += self.core.way_count(gpm)
                reader.end = listed
                if reader - stream.first < WORD:
                    stream.lone |= <uint64_t>reader.lone << (reader - stream.first)
                reader += 1
            stream.end = reader
            self.reader_count = <uint32_t>(reader - self.readers)
            if stream.end - stream.first > WORD:
                stream.lone = 0
                continue
            stream.of_view = self.of_views + i * (WORD + 1)
            for bit in range(WORD + 1):
                present = self.graph.whole
                if bit < WORD:
                    present |= bit_of(bit)
                for place in range(stream.end - stream.first):
                    if stream.first[<uint32_t>place].needed & ~present == 0:
                        stream.of_view[bit] |= bit_of(place)
        return 0

    cdef int attend(self) noexcept nogil:
        """Update the awaited patterns after partial matches have begun or ceased to wait."""
        cdef Reader* reader = self.here.first
        cdef uint64_t bit = 1
        cdef bint all = self.core.lazy_join.lazy or not self.attentive
        while reader < self.here.end:
            if all or reader.places & self.core.instant.changed_places:
                self.attend_to(reader)
                self.here.open = self.here.open & ~bit | bit * <uint64_t>reader.open
            bit <<= 1
            reader += 1
        self.turned |= self.core.instant.changed_places
        self.core.instant.changed_places, self.attentive = 0, True
        return 0

    cdef int attend_to(self, Reader* reader) noexcept nogil:
        """List the GPMs of a reader that partial matches wait for, with their transitions."""
        cdef uint32_t i
        cdef bint waits
        reader.audience.count = reader.audience.way_count = 0
        for i in range(reader.first, reader.end):
            waits = self.core.waits(self.gpms[i])
            if waits != self.waits[i]:
                self._settle_reader(reader)
                self.waits[i] = waits
            if waits:
                reader.audience.gpms[reader.audience.count] = self.gpms[i]
                reader.audience.count += 1
                reader.audience.way_count += self.core.list_ways(
                    self.gpms[i], reader.audience.ways + reader.audience.way_count
                )
        reader.open = reader.audience.count != 0 or self.core.tables.tracked
        return 0

    cdef int settle(self) noexcept nogil:
        """Count the events since the last call for the patterns that did not read them."""
        cdef Reader* reader = self.here.first
        while reader < self.here.end:
            self._settle_reader(reader)
            reader.settled = 0
            reader += 1
        self.unsettled[0] = 0
        return 0

    cdef int settle_all(self) noexcept nogil:
        """As `settle`, for all streams."""
        cdef uint32_t i
        for i in range(self.stream_count):
            self.select(i)
            self.settle()
        return 0

    cdef int _settle_reader(self, Reader* reader) noexcept nogil:
        """Count the events that were not dispatched to a reader.

        They lack a view that the pattern needs, or no partial match waited for its rows.
        """
        cdef uint32_t i
        cdef uint64_t unsettled = self.unsettled_of[reader.stream]
        cdef uint64_t events = unsettled - reader.settled
        for i in range(reader.first, reader.end):
            if not self.waits[i]:
                self.core.count_early_events(self.gpms[i], events)
        if reader.matcher != NULL and reader.open and not reader.shared:
            (<NativeMatcher>reader.matcher).count_skipped(events - reader.read)
        reader.read, reader.settled = 0, unsettled
        return 0

    cdef int pass_time(self, int64_t micros) except -1 nogil:
        """Advance the time over a run of events that no reader wants, to the last one's."""
        self.window.advance_to(micros)
        tick(self.core.window, micros)
        self.core.event.match_generation += 1
        self.core.tecs.begin(self.core.window.now, self.core.window.reach)
        return 0


cdef inline uint64_t _wanted_by_any(Dispatch self, uint64_t present) noexcept nogil:
    """As `wanted` for all readers of a stream; beyond WORD, several readers share a bit."""
    cdef Reader* first = self.here.first
    cdef Reader* last
    cdef uint64_t found = 0
    while first < self.here.end:
        last = first + min(WORD, self.here.end - first)
        found |= wanted(first, last, present)
        first = last
    return found


cdef inline uint32_t pass_by(
    Dispatch self, EventBatch batch, uint32_t index, uint8_t domain, uint64_t* present,
    uint64_t* readers,
) except? 0xFFFFFFFF nogil:
    """The index of the first event, from `index` on, that some reader wants.

    The events before it are instants without effect: only the time of the last one matters, and
    not even that if a later instant follows. If the result is the next instant, `present` receives
    its views and `readers` the result of `wanted` (for at most WORD readers); otherwise they
    receive `ANY` and 0.
    """
    cdef const EventRecord* event = batch.events + index
    cdef const EventRecord* last = batch.events + batch.event_count
    cdef int64_t micros = self.core.window.micros if self.core.window.now >= 0 else INT64_MIN
    cdef uint64_t view, found = 0
    cdef uint32_t first = index
    if self.core.instant.changed_places or not self.attentive:
        self.attend()
    while event < last and event.domain == domain and event.ordinal == 0 and (
        event.micros > micros
    ):
        found = present_in(self.graph, batch, event)
        present[0] = found
        view = found & ~<uint64_t>self.graph.whole
        if view & (view - 1) == 0 and self.here.of_view != NULL:
            found = self.here.open & self.here.of_view[lowest_bit(view) if view else WORD]
        else:
            found = _wanted_by_any(self, found)
        if found:
            break
        micros = event.micros
        event += 1
    if not found:
        present[0] = ANY
    readers[0] = found
    index = <uint32_t>(event - batch.events)
    self.unsettled[0] += index - first
    if index > first and not found:
        self.pass_time(micros)
    return index


cdef inline bint are_lone(Dispatch self, uint64_t readers, const EventRecord* event) noexcept nogil:
    """Whether there are readers, all lone, and the event is one triple."""
    return readers != 0 and readers & ~self.here.lone == 0 and (
        event.end - event.first == 1
    )
