"""`DelayedEvents`: the events that queries process when their timestamp closes.

Only when a timestamp closes are all events of a registered stream at that timestamp known. A query
that reads such a stream therefore also delays the events of its input streams, and processes the
events of all its streams in the order of their instants. Events of one instant keep the order of
their arrival.

Invariant: a batch is retained before its events are added, and as long as they are delayed; no
run's terms are set in it between two calls of the driver.
Cost: constant time for an event that arrives in order; n log n for n events of a timestamp that
arrive out of order.
"""

from libc.stdlib cimport qsort
from libc.string cimport memmove

from spaseq.rdf.native._terms cimport mem_calloc, mem_free, mem_grow


cdef int _compare(const void* one, const void* other) noexcept nogil:
    """The order of two delayed events."""
    cdef const Delayed* a = <const Delayed*>one
    cdef const Delayed* b = <const Delayed*>other
    if a.micros != b.micros:
        return 1 if a.micros > b.micros else -1
    if a.ordinal != b.ordinal:
        return 1 if a.ordinal > b.ordinal else -1
    if a.arrival != b.arrival:
        return 1 if a.arrival > b.arrival else -1
    return 1 if a.number > b.number else -1


cdef class DelayedEvents:
    """The delayed events of several queries."""

    def __cinit__(self, uint32_t query_count):
        self.query_count = query_count
        self.lists = <DelayedList*>mem_calloc(query_count, sizeof(DelayedList))
        self.queries = <uint32_t*>mem_calloc(query_count, sizeof(uint32_t))
        self.is_listed = <bint*>mem_calloc(query_count, sizeof(bint))
        self.batches = {}

    def __dealloc__(self):
        cdef uint32_t i
        if self.lists != NULL:
            for i in range(self.query_count):
                mem_free(self.lists[i].events)
        mem_free(self.lists)
        mem_free(self.queries)
        mem_free(self.is_listed)

    cdef int add(
        self, uint32_t query, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file,
        uint64_t arrival,
    ) except -1 nogil:
        """Add an event of a retained batch to those of a query."""
        cdef DelayedList* delayed = &self.lists[query]
        cdef Delayed* event
        if delayed.end == delayed.room:
            delayed.room = 2 * delayed.room + 16
            delayed.events = <Delayed*>mem_grow(
                delayed.events, delayed.room, sizeof(Delayed), b"events that wait for others"
            )
        event = &delayed.events[delayed.end]
        event.batch, event.index = <PyObject*>batch, index
        event.stream, event.file = stream, file
        event.ordinal, event.micros = batch.events[index].ordinal, batch.events[index].micros
        event.arrival, event.number = arrival, self.added
        self.added += 1
        delayed.sorted = delayed.first == delayed.end or (
            delayed.sorted and _compare(event - 1, event) < 0
        )
        delayed.end += 1
        self.count += 1
        if not self.is_listed[query]:
            self.is_listed[query] = True
            self.queries[self.listed] = query
            self.listed += 1
        return 0

    cdef int retain(self, EventBatch batch) except -1:
        """Keep a batch alive until `prune` finds no events of it."""
        self.batches[<size_t><PyObject*>batch] = batch
        return 0

    cdef int prune(self) except -1:
        """Release the batches without delayed events."""
        cdef uint32_t i, j
        cdef DelayedList* delayed
        cdef dict used = {}
        for i in range(self.listed):
            delayed = &self.lists[self.queries[i]]
            for j in range(delayed.first, delayed.end):
                used[<size_t>delayed.events[j].batch] = <EventBatch>delayed.events[j].batch
        self.batches = used
        return 0

    cdef const Delayed* first_before(self, uint32_t query, int64_t micros) noexcept nogil:
        """The first event of a query, if it is before a time; otherwise NULL."""
        cdef DelayedList* delayed = &self.lists[query]
        if delayed.first == delayed.end:
            return NULL
        if not delayed.sorted:
            qsort(
                delayed.events + delayed.first, delayed.end - delayed.first, sizeof(Delayed),
                _compare,
            )
            delayed.sorted = True
        if delayed.events[delayed.first].micros >= micros:
            return NULL
        return &delayed.events[delayed.first]

    cdef int remove_first(self, uint32_t query) noexcept nogil:
        """Remove the first event of a query."""
        cdef DelayedList* delayed = &self.lists[query]
        delayed.first += 1
        self.count -= 1
        if delayed.first == delayed.end:
            delayed.first = delayed.end = 0
        return 0

    cdef int drop_unlisted(self) noexcept nogil:
        """Remove the queries without events from `queries`, and the gaps from their lists."""
        cdef uint32_t i, query, count = 0
        cdef DelayedList* delayed
        for i in range(self.listed):
            query = self.queries[i]
            delayed = &self.lists[query]
            if delayed.first == delayed.end:
                self.is_listed[query] = False
                continue
            if delayed.first:
                memmove(
                    delayed.events, delayed.events + delayed.first,
                    (delayed.end - delayed.first) * sizeof(Delayed),
                )
                delayed.first, delayed.end = 0, delayed.end - delayed.first
            self.queries[count] = query
            count += 1
        self.listed = count
        return 0

    cdef int refit(self) except -1:
        """Update the batches after the dictionary has grown."""
        for batch in self.batches.values():
            (<EventBatch>batch).refit()
        return 0

    cdef int rest(self) except -1:
        """Remove the run's terms from the batches."""
        for batch in self.batches.values():
            (<EventBatch>batch).window = NULL
        return 0

    cdef int clear(self) except -1:
        """Remove all events."""
        cdef uint32_t i
        for i in range(self.query_count):
            self.lists[i].first = self.lists[i].end = 0
            self.is_listed[i] = False
        self.listed = self.count = 0
        self.rest()
        self.batches.clear()
        return 0

    cdef list of(self, uint32_t query):
        """The events of a query in their order, as (batch, index)."""
        cdef uint32_t i
        cdef DelayedList* delayed = &self.lists[query]
        self.first_before(query, 0)  # sorts them
        return [
            (<EventBatch>delayed.events[i].batch, delayed.events[i].index)
            for i in range(delayed.first, delayed.end)
        ]
