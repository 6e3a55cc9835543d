"""What the open instant has brought; see _instant.pyx."""

from libc.stdint cimport uint32_t

from spaseq.nfa._groups cimport Groups
from spaseq.nfa._guards cimport Guards
from spaseq.nfa._tables cimport Edge, Link, Place
from spaseq.nfa._tecs cimport Node
from spaseq.rdf._terms cimport term_t
from spaseq.rdf._window cimport WindowTerms

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
    cdef Pending* pending
    cdef uint32_t pending_count, pending_room
    cdef term_t* pending_values
    cdef uint32_t value_count, value_room
    cdef Touched* touched
    cdef uint32_t touched_count, touched_room
    cdef Node** accepted
    cdef uint32_t accepted_count, accepted_room

    cdef bint is_looked_at(self, uint32_t gpm) noexcept
    cdef int remember(
        self, term_t* env, const Place* place, Groups groups, uint32_t number
    ) noexcept
    cdef int touch(self, uint32_t place, uint32_t number) except -1
    cdef int arrive(self, const Edge* edge, Node* node) except -1
    cdef int accept(self, Node* node) except -1
    cdef int wait(self, uint32_t target, Node* node) except -1
