"""Parts of batches of events; see _event_parts.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport TermRecord


cdef class EventPart:
    cdef readonly EventBatch batch
    cdef readonly uint32_t part
    cdef uint32_t* places       # per event, its index in the whole batch
    cdef uint8_t* shared        # per event, whether it belongs to other parts, too

cdef uint32_t part_of_term(const TermRecord* record, uint32_t parts) noexcept nogil
