"""The declarations of _events.pyx that other modules use."""

from libc.stdint cimport uint32_t, uint64_t, uint8_t

from spaseq.rdf.native._terms cimport EventBatch, TermRecord, has_blank

# The part that a partition key belongs to, the same in every process.


cdef inline uint64_t key_with(uint64_t seed, const TermRecord* record) noexcept nogil:
    """The hash of a key extended by a term. The hash of the empty key is 0."""
    cdef uint64_t hash = record.hash
    if has_blank(record.text, record.size):
        hash = 0x9E3779B97F4A7C15u
    seed = (seed ^ hash) * 0x9E3779B97F4A7C15u
    return seed ^ seed >> 29


cdef inline uint32_t part_of_key(uint64_t seed, uint32_t parts) noexcept nogil:
    return <uint32_t>((seed >> 32) * parts >> 32)

# events/event_parts.pxi


cdef class EventPart:
    cdef readonly EventBatch batch
    cdef readonly uint32_t part
    cdef uint32_t* places       # per event, its index in the whole batch
    cdef uint8_t* shared        # per event, whether it belongs to other parts, too


cdef uint32_t part_of_term(const TermRecord* record, uint32_t parts) noexcept nogil
