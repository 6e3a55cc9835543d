"""Graph patterns that read the events of a stream; see _dispatch.pyx."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t

from spaseq.gpm.native._summary_graph cimport SummaryGraph, present_in
from spaseq.gpm.native._matcher cimport NativeMatcher
from spaseq.nfa.native._automaton cimport Audience, AutomatonCore
from spaseq.nfa.native._program cimport EdgeRef
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._window_terms cimport WindowTerms

cdef enum:
    WORD = 64           # the bits of a set of readers

cdef extern from *:
    """
    #define SPASEQ_ANY_VIEW (~(uint64_t)0)
    #define lowest_bit(word) ((uint32_t)__builtin_ctzll(word))
    """
    const uint64_t ANY "SPASEQ_ANY_VIEW"    # unknown: the event may have triples of any view
    uint32_t lowest_bit(uint64_t word) noexcept nogil

# GPMs that read a stream with one matcher: gpms[first:end].
cdef struct Reader:
    uint32_t first
    uint32_t end
    uint32_t stream
    uint64_t places     # the places that wait for its rows, see `bit_of_place`
    Audience audience   # its awaited GPMs at the last call of `attend`
    bint open           # some GPM is awaited, or every row is tracked
    uint64_t needed     # the views without which there is no row, see `bit_of`
    bint lone           # a single triple pattern that can match an event of one triple directly
    uint64_t read       # events read since the last `settle`
    uint64_t settled    # the part of its stream's `unsettled` that is counted
    bint shared         # other queries have the matcher: `MultiDriver` counts its events
    PyObject* matcher   # NativeMatcher; NULL: in Python or recalled, and wants every event

# The readers of a stream; the bit masks are valid for at most WORD readers.
cdef struct Audible:
    Reader* first
    Reader* end
    uint64_t lone       # the lone readers
    uint64_t open       # the open readers
    uint64_t* of_view   # by the bit of the only view that has triples, or WORD for none: which
                        # have all that they need; NULL: there are more


@cython.final
cdef class Dispatch:
    cdef AutomatonCore core
    cdef SummaryGraph graph
    cdef WindowTerms window
    cdef Reader* readers            # by stream
    cdef uint32_t reader_count
    cdef Audible* streams           # per stream
    cdef uint32_t stream_count
    cdef uint64_t* unsettled_of     # per stream: its events since the last `settle`
    cdef uint64_t* of_views         # storage of all `Audible.of_view`
    cdef Audible here               # the readers of the current stream
    cdef uint32_t* gpms
    cdef uint32_t* awaited          # storage of all audiences; `ways` likewise
    cdef EdgeRef** ways
    cdef bint* waits                # per GPM in `gpms`
    # The places that `attend` has dealt with; see `OpenInstant.changed_places`.
    cdef uint64_t turned
    cdef bint attentive             # the awaited patterns of `here` are up to date
    cdef uint64_t* unsettled        # of the current stream

    cdef int _list_readers(self, readers, matchers) except -1
    cdef inline int select(self, uint32_t stream) noexcept nogil:
        """Dispatch the events of a stream from now on."""
        self.here = self.streams[stream]
        self.unsettled = &self.unsettled_of[stream]
        return 0
    cdef int attend(self) noexcept nogil
    cdef int settle(self) noexcept nogil
    cdef int settle_all(self) noexcept nogil
    cdef int _settle_reader(self, Reader* reader) noexcept nogil
    cdef int attend_to(self, Reader* reader) noexcept nogil
    cdef int pass_time(self, int64_t micros) except -1 nogil


cdef inline uint64_t wanted(
    const Reader* reader, const Reader* last, uint64_t present
) noexcept nogil:
    """The open readers, of at most WORD, that have all needed views: one bit per reader.

    The loop is free of branches because their outcome would be unpredictable.
    """
    cdef uint64_t found = 0, bit = 1, absent = ~present
    while reader < last:
        found |= bit * <uint64_t>(<int>(reader.needed & absent == 0) & reader.open)
        bit <<= 1
        reader += 1
    return found


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
