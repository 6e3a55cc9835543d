"""What the open instant has brought; see _instant.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._groups cimport Group, Groups
from spaseq.nfa.native._negation cimport Guards
from spaseq.nfa.native._program cimport Edge, Link, Origin, Place, Source, open_to
from spaseq.nfa.native._tecs cimport Node
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window_terms cimport WindowTerms

# A partial match that waits from the close of the instant on; its registers lie beside it.
cdef struct Pending:
    uint32_t target
    uint32_t values
    Node* node

cdef struct Touched:
    uint32_t place
    uint32_t group


cdef class OpenInstant(Guards):
    cdef list groups            # per place, its Groups; None at the start
    cdef PyObject** groups_at   # the same
    cdef uint64_t turned        # places where the first came or the last went, by `bit_of_place`;
                                # all bits: how rows are joined has changed
    cdef Pending* pending
    cdef uint32_t pending_count, pending_room
    cdef term_t* pending_values
    cdef uint32_t value_count, value_room
    cdef Touched* touched
    cdef uint32_t touched_count, touched_room
    cdef Node** accepted
    cdef uint32_t accepted_count, accepted_room

    cdef bint is_looked_at(self, uint32_t gpm) noexcept nogil
    cdef int remember(
        self, term_t* env, const Place* place, Groups groups, uint32_t number
    ) noexcept nogil
    cdef int more_touched(self) except -1 nogil
    cdef int accept(self, Node* node) except -1 nogil
    cdef int make_room(self) except -1 nogil


cdef inline uint64_t bit_of_place(uint32_t place) noexcept nogil:
    """A place in a set of places; those that lie a word apart share it."""
    return <uint64_t>1 << (place & 63)


cdef inline int touch(
    OpenInstant brought, uint32_t place, uint32_t number, Group* group
) except -1 nogil:
    """A `;` place has taken a group: it goes when the instant closes."""
    cdef Touched* touched
    group.taken = brought.now
    if brought.touched_count == brought.touched_room:
        brought.more_touched()
    touched = &brought.touched[brought.touched_count]
    touched.place, touched.group = place, number
    brought.touched_count += 1
    return 0


cdef inline term_t* waiting(OpenInstant brought, uint32_t target, Node* node) except NULL nogil:
    """Someone waits in a place when the instant has closed; where its registers are to be put.

    There is such a place even if it has none: to tell NULL from an error takes the lock.
    """
    cdef Pending* pending
    if brought.pending_count == brought.pending_room or (
        brought.value_count + brought.cells >= brought.value_room
    ):
        brought.make_room()
    pending = &brought.pending[brought.pending_count]
    pending.target, pending.values, pending.node = target, brought.value_count, node
    brought.pending_count += 1
    return brought.pending_values + brought.value_count


cdef inline int wait(OpenInstant brought, uint32_t target, Node* node) except -1 nogil:
    """The partial match at hand waits in a place when the instant has closed."""
    cdef Place* place = &brought.places[target]
    cdef term_t* values = waiting(brought, target, node)
    cdef uint32_t i
    for i in range(place.live_first, place.live_end):
        values[i - place.live_first] = brought.env[brought.numbers[i]]
    brought.value_count += place.live_end - place.live_first
    return 0


cdef inline int arrive(OpenInstant brought, const Edge* edge, Node* node) except -1 nogil:
    """Follow the links of an edge that was taken."""
    cdef const Link* link = edge.link
    while link < edge.link_end:
        if open_to(brought, link, brought.env):
            if link.target >= 0:
                wait(brought, link.target, node)
            else:
                brought.accept(node)
        link += 1
    return 0


cdef inline int arrive_straight(
    OpenInstant brought, const Edge* edge, const term_t* remembered, Node* node
) except -1 nogil:
    """Follow the links of a straight edge that was taken from a group with these registers."""
    cdef const Link* link = edge.link
    cdef const Link* last = edge.link_end
    cdef const Source* source
    cdef term_t* values
    while link < last:
        if link.target < 0:
            brought.accept(node)
            link += 1
            continue
        values = waiting(brought, link.target, node)
        source = link.source
        brought.value_count += <uint32_t>(link.source_end - source)
        while source < link.source_end:
            if source.origin == Origin.ROW:
                values[0] = brought.row[source.number]
            elif source.origin == Origin.GROUP:
                values[0] = remembered[source.number]
            else:
                values[0] = source.number
            values += 1
            source += 1
        link += 1
    return 0
