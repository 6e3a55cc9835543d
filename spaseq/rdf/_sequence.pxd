"""Events of one or several batches, in the order in which a run processes them."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t

from spaseq.rdf._batch cimport EventBatch, EventRecord

# The position of an event: a batch of the sequence, and the index in it.
cdef struct Position:
    uint32_t batch
    uint32_t index


@cython.final
cdef class EventSequence:
    cdef readonly list batches
    cdef PyObject** batch_at        # the same, as borrowed pointers
    cdef Position* positions        # NULL: all events of the only batch
    cdef uint32_t count
    cdef uint32_t room

    cdef inline Position at(self, uint32_t number) noexcept nogil:
        """The position of an event."""
        cdef Position found
        if self.positions != NULL:
            return self.positions[number]
        found.batch, found.index = 0, number
        return found
    cdef int append(self, uint32_t batch, uint32_t index) except -1
    cdef uint32_t _checked(self, object number) except? 0xFFFFFFFF
