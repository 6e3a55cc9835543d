"""Which of many intervals hold a number; see _value_ranges.pyx."""

from libc.stdint cimport uint32_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t

# The places of a set of intervals: their ends in ascending order. There is a leaf for each end and
# for each gap around the ends; `leaves` of them are the lower level of a tree whose root is 1.
cdef struct Ranges:
    double* ends
    uint32_t count
    uint32_t leaves

cdef int ranges_init(Ranges* to, ends) except -1
cdef void ranges_free(Ranges* of) noexcept nogil
cdef list nodes_within(const Ranges* of, double low, double high)
cdef bint reach_of(EventBatch batch, term_t term, double* low, double* high) noexcept nogil


cdef inline uint32_t leaf_of(const Ranges* of, double number) noexcept nogil:
    """The leaf of a number. Cost: logarithmic in the number of ends, without a branch per step."""
    cdef const double* first = of.ends
    cdef uint32_t left = of.count, half, at
    while left > 1:
        half = left >> 1
        first += half if first[half - 1] < number else 0
        left -= half
    at = <uint32_t>(first - of.ends)
    if left and first[0] < number:
        at += 1
    return 2 * at + (at < of.count and of.ends[at] == number)
