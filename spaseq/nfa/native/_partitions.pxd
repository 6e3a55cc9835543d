"""What happened in each partition; see _partitions.pyx."""

cimport cython
from libc.stdint cimport uint32_t

from spaseq.nfa.native._window cimport Window, since_of
from spaseq.nfa.native._groups cimport Groups
from spaseq.nfa.native._tecs cimport Label, Node, instant_t
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window_terms cimport WindowTerms

cdef struct Partition:
    instant_t last      # the latest instant with an event of it, -1: none
    instant_t before    # the one before that
    instant_t skipped   # no match of it may start before
    instant_t* instants # if `recorded`, a ring of `room` of all that somebody may look back to
    uint32_t room
    uint32_t first      # where they begin in the ring
    uint32_t count


@cython.final
cdef class Partitions:
    cdef readonly bint tracked      # events are noted, for strict contiguity
    cdef bint recorded              # with all their instants: somebody looks back
    cdef readonly bint apart        # each skips for itself
    cdef Window window
    cdef WindowTerms terms
    cdef Groups keys                # numbers of partitions, by their keys
    cdef Partition* partitions      # by number
    cdef uint32_t room
    cdef uint32_t sweep_at
    cdef uint32_t* column_first     # per GPM and one more, into `columns`
    cdef uint32_t* columns          # of its rows that hold a key; none: not all are bound there
    cdef uint32_t* gpm_first        # per edge of the automaton, into `gpm_of`
    cdef uint32_t* gpm_of           # per graph pattern of its step
    cdef uint32_t* registers        # where an environment holds a key
    cdef term_t* key
    cdef instant_t before           # of the row at hand: its partition's last instant before now
    cdef instant_t since            # no match of its partition may start before it

    cdef int note(self, EventBatch batch, uint32_t gpm, const term_t* row) except -1 nogil
    cdef int meet(self, EventBatch batch, uint32_t gpm, const term_t* row) noexcept nogil
    cdef instant_t before_in(
        self, EventBatch batch, const term_t* env, instant_t instant
    ) noexcept nogil
    cdef instant_t since_at(self, const Label* label) noexcept nogil
    cdef int skip_at(self, const Label* label, instant_t first) except -1 nogil
    cdef uint32_t _find(self) noexcept nogil
    cdef uint32_t _made(self) except? 0xFFFFFFFF nogil
    cdef bint _gone(self, uint32_t number) noexcept nogil
    cdef tuple key_at(self, const Label* label)
    cdef bint _key_of(self, const Label* label) noexcept nogil
    cdef instant_t _before(self, const Partition* partition, instant_t instant) noexcept nogil
    cdef int _come(self, Partition* partition, instant_t instant) except -1 nogil
    cdef int _widen(self, Partition* partition) except -1 nogil
    cdef int _sweep(self) except -1 nogil


cdef inline instant_t since_at(
    Window window, Partitions partitions, const Node* node
) noexcept nogil:
    """The least start of the matches that end in a node; `partitions` may be None."""
    if partitions is not None and partitions.apart:
        return partitions.since_at(node.label)
    return since_of(window)
