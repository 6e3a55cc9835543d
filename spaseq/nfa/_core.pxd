"""The automaton over term numbers; see _core.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa._chain cimport Chain
from spaseq.nfa._groups cimport Groups
from spaseq.nfa._tables cimport Edge, Occurrence, Place, Sighting, Way
from spaseq.nfa._tecs cimport Label, Node, Walk, instant_t
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t


@cython.final
cdef class AutomatonCore(Chain):
    cdef Walk walk
    cdef term_t* key
    cdef bint passes            # some place only waits for the next instant
    # Bounds, see spaseq.nfa.limits; and how much was there before the event at hand.
    cdef uint64_t most_groups, kept_groups, sweep_at
    cdef uint64_t most_living   # there are no more groups and waiting matches than these
    cdef bint sheds
    cdef uint32_t pending_before, values_before, touched_before, accepted_before
    cdef public uint64_t forbidden  # waiting matches that were gone when their window closed
    cdef public uint64_t waited     # waiting matches there have been

    cdef int _await(self, uint32_t place, uint32_t group, Node* node) except -1
    cdef int _put_awaited(self, uint32_t place, uint32_t group, Walk walk) except -1
    cdef bint waits(self, uint32_t gpm) noexcept
    cdef int feed(self, uint32_t gpm, const term_t* row, uint32_t width) except -1
    cpdef int open(self, int64_t micros) except -1
    cpdef int skip(self) except -1
    cdef int skip_past(self, uint32_t count) except -1
    cpdef int close(self) except -1
    cdef int _take_ordered(self, Way* way, uint32_t width, Label** label) except -1
    cdef int _take_whole(
        self, Way* way, uint32_t width, Label** label, double least, double most
    ) except -1
    cdef int _see(self, Sighting* sighting, uint32_t width) except -1
    cdef int _end(
        self, Sighting* sighting, Groups groups, uint32_t number, uint32_t width
    ) except -1
    cdef int _take(self, Way* way, uint32_t group, uint32_t width, Label** label) except -1
    cdef uint64_t _living(self) noexcept
    cdef int _sweep(self) except -1
    cdef int relieve(self) except -1
    cdef int _pass_over(self, Groups groups) except -1
    cdef int _enter(self, uint32_t target, const term_t* values, Node* node) except -1
