"""Graph patterns that read the events of a stream; see _readers.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t

from spaseq.gpm._graph cimport SummaryGraph, present_in
from spaseq.gpm._match cimport NativeMatcher
from spaseq.nfa._core cimport AutomatonCore
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._window cimport WindowTerms

cdef enum:
    WORD = 64           # the bits of a set of readers

cdef extern from *:
    """
    #define SPASEQ_ANY_VIEW (~(uint64_t)0)
    """
    const uint64_t ANY "SPASEQ_ANY_VIEW"    # an event may have triples of any view

# GPMs that read a stream with one matcher: gpms[first:end], of which somebody waits for the rows
# of so many, that are listed in awaited[first:first + waiting].
cdef struct Reader:
    uint32_t first
    uint32_t end
    uint32_t waiting    # when that was asked last
    bint open           # some wait, or rows are read whoever waits
    uint64_t needed     # the views without which there is no row, see `bit_of`
    bint lone           # it is one triple, and nobody asks for more of an event that is one
    uint64_t read       # of the events that are not settled
    PyObject* matcher   # NativeMatcher; NULL: it is in Python or recalls, and wants every event


cdef class Readers:
    cdef readonly AutomatonCore core
    cdef SummaryGraph graph
    cdef readonly WindowTerms window
    cdef EventBatch batch           # that of the event at hand
    cdef uint32_t stream            # which stream it is of
    cdef Reader* readers            # those of a stream: readers[first[s]:first[s + 1]]
    cdef uint32_t* reader_first
    cdef uint32_t* gpms
    cdef uint32_t* awaited
    cdef bint* waits                # per GPM in `gpms`
    cdef bint attentive             # the readers of that stream know who is awaited
    cdef uint64_t unsettled         # events of the stream, see `settle`

    cdef int list_readers(self, readers, matchers) except -1
    cdef int attend(self) noexcept nogil
    cdef int settle(self) noexcept nogil
    cdef int _list_awaited(self, Reader* reader) noexcept nogil
    cdef int pass_time(self, int64_t micros) except -1 nogil


cdef inline uint64_t wanted(
    Readers self, uint64_t present, uint32_t first, uint32_t end
) noexcept nogil:
    """Which of the readers from `first` on may have rows that somebody waits for.

    A bit for each of at most 64. There is no branch for each: which of them it is cannot be
    foreseen.
    """
    cdef const Reader* reader = self.readers + first
    cdef const Reader* last = self.readers + min(end, first + WORD)
    cdef uint64_t found = 0, bit = 1, absent = ~present
    while reader < last:
        found |= bit * <uint64_t>(<int>(reader.needed & absent == 0) & reader.open)
        bit <<= 1
        reader += 1
    return found


cdef inline uint32_t pass_by(
    Readers self, uint32_t index, uint8_t domain, uint64_t* present
) except? 0xFFFFFFFF nogil:
    """The first event, from one on, that some pattern may match; those before it go by.

    Each is an instant of its own in which nothing happens, so all they leave behind is the
    time of the last of them, and not even that where the event comes later. `present` is set
    where the event has views that are looked at, else it is `ANY`.
    """
    cdef const EventRecord* event = self.batch.events + index
    cdef const EventRecord* last = self.batch.events + self.batch.event_count
    cdef const Reader* reader
    cdef const Reader* end = self.readers + self.reader_first[self.stream + 1]
    cdef int64_t micros = self.core.micros if self.core.now >= 0 else INT64_MIN
    cdef uint64_t seen
    cdef uint32_t first = index
    cdef int hit = 0
    present[0] = ANY
    if self.core.turned or not self.attentive:
        self.attend()
    while event < last and event.domain == domain and event.ordinal == 0 and (
        event.micros > micros
    ):
        seen = present_in(self.graph, self.batch, event)
        reader = self.readers + self.reader_first[self.stream]
        while reader < end:
            hit |= <int>(reader.needed & ~seen == 0) & reader.open
            reader += 1
        if hit:
            present[0] = seen
            break
        micros = event.micros
        event += 1
    index = <uint32_t>(event - self.batch.events)
    self.unsettled += index - first
    if index > first and not hit:
        self.pass_time(micros)
    return index
