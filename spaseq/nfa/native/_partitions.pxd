"""Instants and skips of each partition; see _partitions.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._window cimport Window, since_of
from spaseq.nfa.native._groups cimport Groups
from spaseq.nfa.native._tecs cimport Label, Node, instant_t
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window_terms cimport WindowTerms

cdef struct Partition:
    instant_t last      # the latest instant with an event of it, -1: none
    instant_t before    # the latest instant before that
    instant_t skipped   # the least start of its matches
    instant_t* instants # if `recorded`, a ring of `room` of all instants within reach
    uint32_t room
    uint32_t first      # position of the oldest instant
    uint32_t count


@cython.final
cdef class Partitions:
    cdef readonly bint tracked      # events are recorded, for strict contiguity
    cdef bint recorded              # all instants within reach are recorded
    cdef readonly bint apart        # each skips past its own matches
    cdef Window window
    cdef WindowTerms terms
    cdef Groups keys                # partition numbers by key
    cdef Partition* partitions      # by number
    cdef uint32_t room
    cdef uint32_t sweep_at
    cdef uint32_t* column_first     # per GPM, into `columns`; NIL: no key
    cdef uint32_t* columns          # columns of its rows that hold a key
    cdef uint32_t* gpm_first        # per edge of the automaton, into `gpm_of`
    cdef uint32_t* gpm_of           # per graph pattern of its step
    cdef uint32_t* registers        # registers of an environment that hold a key
    cdef term_t* key
    cdef instant_t before           # of the current row: the last instant of its partition before
                                    # now
    cdef instant_t since            # the least start of a match of its partition

    cdef int record_event(self, EventBatch batch, uint32_t gpm, const term_t* row) except -1 nogil
    cdef int set_current(self, EventBatch batch, uint32_t gpm, const term_t* row) noexcept nogil
    cdef instant_t before_in(
        self, EventBatch batch, const term_t* env, instant_t instant
    ) noexcept nogil
    cdef instant_t last_at(self, const Label* label) noexcept nogil
    cdef instant_t since_at(self, const Label* label) noexcept nogil
    cdef int skip_at(self, const Label* label, instant_t first) except -1 nogil
    cdef uint32_t _find(self) noexcept nogil
    cdef uint32_t _find_or_create(self) except? 0xFFFFFFFF nogil
    cdef bint _is_out_of_reach(self, uint32_t number) noexcept nogil
    cdef tuple key_at(self, const Label* label)
    cdef object number_key(self, const Label* label)
    cdef bint _key_of(self, const Label* label) noexcept nogil
    cdef instant_t _before(self, const Partition* partition, instant_t instant) noexcept nogil
    cdef int _record_instant(self, Partition* partition, instant_t instant) except -1 nogil
    cdef int _grow(self, Partition* partition) except -1 nogil
    cdef int _sweep(self) except -1 nogil


cdef inline instant_t since_at(
    Window window, Partitions partitions, const Node* node
) noexcept nogil:
    """The least start of the matches that end in a node; `partitions` may be None."""
    if partitions is not None and partitions.apart:
        return partitions.since_at(node.label)
    return since_of(window)
