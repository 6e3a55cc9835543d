"""The part that a partition key belongs to, the same in every process."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._terms cimport TermRecord, has_blank


cdef inline uint64_t key_with(uint64_t seed, const TermRecord* record) noexcept nogil:
    """The hash of a key extended by a term. The hash of the empty key is 0."""
    cdef uint64_t hash = record.hash
    if has_blank(record.text, record.size):
        hash = 0x9E3779B97F4A7C15u
    seed = (seed ^ hash) * 0x9E3779B97F4A7C15u
    return seed ^ seed >> 29


cdef inline uint32_t part_of_key(uint64_t seed, uint32_t parts) noexcept nogil:
    return <uint32_t>((seed >> 32) * parts >> 32)
