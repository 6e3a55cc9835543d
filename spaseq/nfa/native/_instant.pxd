"""Additions of the open instant; see _instant.pyx."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._groups cimport Group, Groups
from spaseq.nfa.native._event cimport CurrentEvent
from spaseq.nfa.native._program cimport Edge, Link, Origin, Place, Source, Tables, bounds_admit
from spaseq.nfa.native._tecs cimport Node
from spaseq.nfa.native._window cimport Window
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window_terms cimport WindowTerms

# A partial match that enters `target` when the instant closes; `values` is the offset of its
# registers.
cdef struct Pending:
    uint32_t target
    uint32_t values
    Node* node

cdef struct Touched:
    uint32_t place
    uint32_t group


@cython.final
cdef class OpenInstant:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef uint32_t cells         # of an environment
    cdef list groups            # per place, its Groups; None at a start
    cdef PyObject** groups_at   # the same, as pointers
    cdef uint64_t changed_places # places whose first group arrived or whose last one left, by
                                # `bit_of_place`; all bits: the join strategy has changed
    cdef Pending* pending
    cdef uint32_t pending_count, pending_room
    cdef term_t* pending_values
    cdef uint32_t value_count, value_room
    cdef Touched* touched
    cdef uint32_t touched_count, touched_room
    cdef Node** accepted
    cdef uint32_t accepted_count, accepted_room
    cdef bint traced            # `tracer` receives every transition
    cdef object tracer

    cdef int remember(
        self, term_t* env, const Place* place, Groups groups, uint32_t number
    ) noexcept nogil
    cdef int more_touched(self) except -1 nogil
    cdef int accept(self, Node* node) except -1 nogil
    cdef int trace_pending(self) except -1 with gil
    cdef int _trace_accepted(self, const Node* node) except -1 with gil
    cdef int make_room(self) except -1 nogil


cdef inline uint64_t bit_of_place(uint32_t place) noexcept nogil:
    """The bit of a place in a set of places; places 64 apart share a bit."""
    return <uint64_t>1 << (place & 63)


cdef inline int mark_joined(
    OpenInstant instant, uint32_t place, uint32_t number, Group* group
) except -1 nogil:
    """Mark a group that `;` joined, or that nothing can join any more: the close removes it."""
    cdef Touched* touched
    group.joined_at = instant.window.now
    if instant.touched_count == instant.touched_room:
        instant.more_touched()
    touched = &instant.touched[instant.touched_count]
    touched.place, touched.group = place, number
    instant.touched_count += 1
    return 0


cdef inline term_t* add_pending(OpenInstant instant, uint32_t target, Node* node) except NULL nogil:
    """Add a pending partial match; the address for its registers.

    The address is valid even without registers: NULL would be ambiguous with an error, and checking
    for an error needs the GIL.
    """
    cdef Pending* pending
    if instant.pending_count == instant.pending_room or (
        instant.value_count + instant.cells >= instant.value_room
    ):
        instant.make_room()
    pending = &instant.pending[instant.pending_count]
    pending.target, pending.values, pending.node = target, instant.value_count, node
    instant.pending_count += 1
    return instant.pending_values + instant.value_count


cdef inline int add_pending_env(OpenInstant instant, uint32_t target, Node* node) except -1 nogil:
    """Let the current partial match wait in a place when the instant has closed."""
    cdef Place* place = &instant.tables.places[target]
    cdef term_t* values = add_pending(instant, target, node)
    cdef uint32_t i
    for i in range(place.live_first, place.live_end):
        values[i - place.live_first] = instant.event.env[instant.tables.numbers[i]]
    instant.value_count += place.live_end - place.live_first
    return 0


cdef inline int follow_links(OpenInstant instant, const Edge* edge, Node* node) except -1 nogil:
    """Follow the links of an edge after the current row has been bound."""
    cdef const Link* link = edge.link
    while link < edge.link_end:
        if bounds_admit(instant.tables, link, instant.event.env):
            if link.target >= 0:
                add_pending_env(instant, link.target, node)
            else:
                instant.accept(node)
        link += 1
    return 0


cdef inline int follow_straight_links(
    OpenInstant instant, const term_t* row, const Edge* edge, const term_t* remembered, Node* node
) except -1 nogil:
    """Follow the links of a straight edge from a group with registers `remembered`."""
    cdef const Link* link = edge.link
    cdef const Link* last = edge.link_end
    cdef const Source* source
    cdef term_t* values
    while link < last:
        if link.target < 0:
            instant.accept(node)
            link += 1
            continue
        values = add_pending(instant, link.target, node)
        source = link.source
        instant.value_count += <uint32_t>(link.source_end - source)
        while source < link.source_end:
            if source.origin == Origin.ROW:
                values[0] = row[source.number]
            elif source.origin == Origin.GROUP:
                values[0] = remembered[source.number]
            else:
                values[0] = source.number
            values += 1
            source += 1
        link += 1
    return 0
