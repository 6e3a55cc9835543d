"""The automaton over term numbers; see _core.pyx."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from spaseq.nfa._clock cimport Awaited, Clock
from spaseq.nfa._groups cimport Groups
from spaseq.nfa._partitions cimport Partitions
from spaseq.nfa._tables cimport (
    Binding, Bound, Change, Edge, Effect, Link, Occurrence, Place, Sighting, Way,
)
from spaseq.nfa._tecs cimport Label, Node, Tecs, Walk, instant_t
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window cimport WindowTerms

# Whether the residual filters of an occurrence are true of what a partial match and a row
# bind: 1 or 0, or -1 with a Python exception set.
cdef struct Conditions:
    int (*hold)(void* context, uint32_t occurrence, const term_t* env) noexcept nogil
    void* context

# A partial match that waits from the close of the instant on; its registers lie beside it.
cdef struct Pending:
    uint32_t target
    uint32_t values
    Node* node

cdef struct Touched:
    uint32_t place
    uint32_t group


@cython.final
cdef class AutomatonCore(Clock):
    cdef readonly Tecs tecs
    cdef Walk walk
    cdef readonly Partitions partitions
    cdef readonly bint tracked  # events are noted in their partitions
    cdef bint apart             # each partition skips for itself
    cdef instant_t since        # no match of the row at hand may start before it
    cdef list groups            # per place, its Groups; None at the start
    cdef WindowTerms window
    cdef Conditions* conditions
    cdef uint32_t cells         # of an environment: registers, then views
    cdef term_t* env
    cdef term_t truth, falsehood
    cdef const term_t* given    # the row at hand, and a copy of it whose terms
    cdef term_t* row            # are kept for the window, once `row_kept`
    cdef bint row_kept
    cdef uint32_t row_room
    cdef term_t* key
    # The event at hand.
    cdef Label event
    cdef term_t raw_name, raw_stamp
    cdef bint event_kept
    cdef EventBatch batch
    # What the open instant has brought.
    cdef Pending* pending
    cdef uint32_t pending_count, pending_room
    cdef term_t* pending_values
    cdef uint32_t value_count, value_room
    cdef Touched* touched
    cdef uint32_t touched_count, touched_room
    cdef Node** accepted
    cdef uint32_t accepted_count, accepted_room
    cdef uint64_t sweep_at
    # Bounds, see spaseq.nfa.limits; and how much was there before the event at hand.
    cdef uint64_t most_groups, kept_groups, most_steps
    cdef bint sheds
    cdef uint64_t steps_left
    cdef bint spent             # the event had no steps left
    cdef uint32_t spent_place
    cdef uint32_t pending_before, values_before, touched_before, accepted_before
    cdef public uint64_t forbidden  # waiting matches that were gone when their window closed
    cdef public uint64_t waited     # waiting matches there have been
    cdef uint64_t turn          # changes whenever what `accepted` refers to may

    cdef int _await(self, uint32_t place, uint32_t group, Node* node) except -1
    cdef int _put_awaited(self, uint32_t place, uint32_t group, Walk walk) except -1
    cpdef int open(self, int64_t micros) except -1
    cpdef int skip(self) except -1
    cdef instant_t since_at(self, const Node* node) noexcept
    cdef int present(self, EventBatch batch, uint32_t event, uint32_t stream, uint32_t file) except -1
    cdef bint waits(self, uint32_t gpm) noexcept
    cdef int feed(self, uint32_t gpm, const term_t* row, uint32_t width) except -1
    cpdef int close(self) except -1
    cdef int _keep_row(self, uint32_t width) except -1
    cdef int _settle(self, Occurrence* occurrence) noexcept
    cdef bint _environment(self, Place* place, Groups groups, uint32_t number) noexcept
    cdef int _take_ordered(self, Way* way, uint32_t width, Label** label) except -1
    cdef int _see(self, Sighting* sighting, uint32_t width) except -1
    cdef int _end(self, Sighting* sighting, Groups groups, uint32_t number, uint32_t width) except -1
    cdef int _take(self, Way* way, uint32_t group, uint32_t width, Label** label) except -1
    cdef int _complete(self, Edge* edge, Node* node) except -1
    cdef int _accept(self, Node* node) except -1
    cdef int _touch(self, uint32_t place, uint32_t number) except -1
    cdef int _wait(self, uint32_t target, Node* node) except -1
    cdef int _sweep(self) except -1
    cdef int relieve(self) except -1
    cdef int _pass_over(self, Groups groups) except -1
    cdef int _enter(self, uint32_t target, const term_t* values, Node* node) except -1
    cdef bint _bind(self, Occurrence* occurrence, uint32_t width) noexcept
