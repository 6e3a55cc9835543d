"""Events that wait until their timestamp closes; see _delayed.pyx."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch

# An event that a query processes when its timestamp closes.
cdef struct Delayed:
    PyObject* batch
    uint32_t index
    uint32_t stream
    uint32_t file
    uint32_t ordinal
    int64_t micros
    uint64_t arrival    # orders the events of one instant, before `number`
    uint64_t number

# The events of one query: events[first:end].
cdef struct DelayedList:
    Delayed* events
    uint32_t first
    uint32_t end
    uint32_t room
    bint sorted


@cython.final
cdef class DelayedEvents:
    cdef DelayedList* lists
    cdef uint32_t query_count
    cdef uint32_t* queries      # the queries that have, or had, events
    cdef uint32_t listed
    cdef bint* is_listed        # per query
    cdef uint64_t arrivals      # of input events
    cdef uint64_t count         # the events of all queries
    cdef uint64_t added         # the events ever added
    cdef dict batches           # address → batch, including batches that contain others

    cdef int add(
        self, uint32_t query, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file,
        uint64_t arrival,
    ) except -1 nogil
    cdef int retain(self, EventBatch batch) except -1
    cdef int prune(self) except -1
    cdef const Delayed* first_before(self, uint32_t query, int64_t micros) noexcept nogil
    cdef int remove_first(self, uint32_t query) noexcept nogil
    cdef int drop_unlisted(self) noexcept nogil
    cdef int refit(self) except -1
    cdef int rest(self) except -1
    cdef int clear(self) except -1
    cdef list of(self, uint32_t query)
