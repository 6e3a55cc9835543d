"""The frontier of a search inside a guarded unit; see _frontier.pyx."""

from libc.stdint cimport int64_t, uint32_t

from spaseq.nfa.native._tecs cimport instant_t
from spaseq.rdf._terms cimport term_t


# The entries of one search; environments have `cells` terms.
cdef struct Frontier:
    uint32_t cells
    uint32_t* places
    instant_t* lasts
    int64_t* micros         # the times of the last events, or deadlines
    term_t* values          # the environments
    uint32_t* hashes
    uint32_t* heads         # chain heads by hash, `room` of them
    uint32_t* others        # the next entry of the chain
    uint32_t count
    uint32_t room
    uint32_t next           # the next entry to follow

cdef int frontier_push(
    Frontier* entries, uint32_t place, instant_t last, int64_t micros, const term_t* env,
    const uint32_t* live, uint32_t width,
) except -1 nogil
cdef int frontier_clear(Frontier* entries) noexcept nogil
cdef int frontier_free(Frontier* entries) noexcept nogil
