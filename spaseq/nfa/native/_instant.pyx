# cython: language_level=3, boundscheck=False, wraparound=False
"""Additions of the open instant: partial matches, joined groups, complete matches.

Nothing follows an event of its own instant, so none of them is visible before the instant closes.
"""

from cpython.ref cimport PyObject
from libc.string cimport memset

from spaseq.nfa.native._groups cimport values_of
from spaseq.nfa.native._range_index cimport Registers
from spaseq.nfa.native._program cimport DATED
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport give_back, longer, zeroed

cdef const char* LACKING = b"another partial match"


cdef class OpenInstant:
    """The groups of each place, and the additions of the open instant.

    Args:
        rows: the `CoreTables`.
        event: registers hold its terms and those of `dictionary`.
    """

    def __cinit__(self, rows, CurrentEvent event not None, Dictionary dictionary not None):
        kept = Registers(event.terms, dictionary)
        self.tables, self.window, self.event = event.tables, event.window, event
        self.cells = event.tables.cells
        self.groups = [
            None if operator is None else Groups(end - first, indexes, kept, manner & DATED)
            for (operator, first, end, indexes, _), manner in zip(
                rows.places, rows.search.manners
            )
        ]
        self.groups_at = <PyObject**>zeroed(len(self.groups), sizeof(PyObject*))
        for i, groups in enumerate(self.groups):
            self.groups_at[<size_t>i] = <PyObject*>groups
            if groups is not None:
                (<Groups>groups).turned = &self.turned
                (<Groups>groups).bit = bit_of_place(<uint32_t>i)

    def __dealloc__(self):
        give_back(self.groups_at)
        give_back(self.pending)
        give_back(self.pending_values)
        give_back(self.touched)
        give_back(self.accepted)

    cdef int remember(
        self, term_t* env, const Place* place, Groups groups, uint32_t number
    ) noexcept nogil:
        """Load the registers of a group into an environment."""
        cdef term_t* values = values_of(groups, number)
        cdef uint32_t i
        memset(env, 0, self.cells * sizeof(term_t))
        for i in range(place.live_first, place.live_end):
            env[self.tables.numbers[i]] = values[i - place.live_first]
        return 0

    cdef int more_touched(self) except -1 nogil:
        """Make room for another joined group."""
        self.touched_room = 2 * self.touched_room + 16
        self.touched = <Touched*>longer(self.touched, self.touched_room, sizeof(Touched), LACKING)
        return 0

    cdef int accept(self, Node* node) except -1 nogil:
        """Record a node that ends complete matches."""
        if self.accepted_count == self.accepted_room:
            self.accepted_room = 2 * self.accepted_room + 16
            self.accepted = <Node**>longer(
                self.accepted, self.accepted_room, sizeof(Node*), LACKING
            )
        self.accepted[self.accepted_count] = node
        self.accepted_count += 1
        return 0

    cdef int make_room(self) except -1 nogil:
        """Make room for another pending partial match."""
        if self.pending_count == self.pending_room:
            self.pending_room = 2 * self.pending_room + 16
            self.pending = <Pending*>longer(
                self.pending, self.pending_room, sizeof(Pending), LACKING
            )
        if self.value_count + self.cells >= self.value_room:
            self.value_room = 2 * (self.value_room + self.cells) + 16
            self.pending_values = <term_t*>longer(
                self.pending_values, self.value_room, sizeof(term_t), LACKING
            )
        return 0
