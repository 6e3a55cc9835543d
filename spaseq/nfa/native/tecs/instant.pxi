"""Additions of the open instant: partial matches, joined groups, complete matches.

Nothing follows an event of its own instant, so none of them is visible before the instant closes.
"""

from spaseq.rdf.native._terms cimport mem_calloc, mem_free, mem_grow

cdef const char* FOR_PARTIAL_MATCHES = b"another partial match"


cdef class OpenInstant:
    """The groups of each place, and the additions of the open instant.

    Args:
        rows: the `CoreTables`.
        event: registers hold its terms and those of `dictionary`.
    """

    def __cinit__(self, rows, CurrentEvent event not None, Dictionary dictionary not None):
        kept = TermResolver(event.terms, dictionary)
        self.tables, self.window, self.event = event.tables, event.window, event
        self.cells = event.tables.cells
        self.groups = [
            None if operator is None else Groups(
                end - first, indexes, kept, manner & DATED, number in rows.floors
            )
            for number, ((operator, first, end, indexes, _), manner) in enumerate(
                zip(rows.places, rows.search.manners)
            )
        ]
        self.groups_at = <PyObject**>mem_calloc(len(self.groups), sizeof(PyObject*))
        for i, groups in enumerate(self.groups):
            self.groups_at[<size_t>i] = <PyObject*>groups
            if groups is not None:
                (<Groups>groups).changed_places = &self.changed_places
                (<Groups>groups).bit = bit_of_place(<uint32_t>i)

    def __dealloc__(self):
        mem_free(self.groups_at)
        mem_free(self.pending)
        mem_free(self.pending_values)
        mem_free(self.touched)
        mem_free(self.accepted)

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
        self.touched = <Touched*>mem_grow(
            self.touched, self.touched_room, sizeof(Touched), FOR_PARTIAL_MATCHES
        )
        return 0

    cdef int accept(self, Node* node) except -1 nogil:
        """Record a node that ends complete matches."""
        if self.traced:
            self._trace_accepted(node)
        if self.accepted_count == self.accepted_room:
            self.accepted_room = 2 * self.accepted_room + 16
            self.accepted = <Node**>mem_grow(
                self.accepted, self.accepted_room, sizeof(Node*), FOR_PARTIAL_MATCHES
            )
        self.accepted[self.accepted_count] = node
        self.accepted_count += 1
        return 0

    def trace(self, tracer):
        """Call `tracer` for every transition, in the order in which they take effect.

        Its arguments are the address of the label of the step's last event, the number of the place
        that the transition leads to (-1: the match is complete), and the registers there. Without a
        tracer, tracing costs one branch per instant and per accepted node.
        """
        self.tracer, self.traced = tracer, tracer is not None

    cdef int trace_pending(self) except -1 with gil:
        """Report the transitions of the open instant that lead to a place."""
        cdef uint32_t i, j
        cdef const Pending* pending
        cdef const Place* place
        for i in range(self.pending_count):
            pending = &self.pending[i]
            place = &self.tables.places[pending.target]
            values = [
                self.pending_values[pending.values + j]
                for j in range(place.live_end - place.live_first)
            ]
            self.tracer(<size_t>pending.node.label, pending.target, values)
        return 0

    cdef int _trace_accepted(self, const Node* node) except -1 with gil:
        self.tracer(<size_t>node.label, -1, [])
        return 0

    cdef int make_room(self) except -1 nogil:
        """Make room for another pending partial match."""
        if self.pending_count == self.pending_room:
            self.pending_room = 2 * self.pending_room + 16
            self.pending = <Pending*>mem_grow(
                self.pending, self.pending_room, sizeof(Pending), FOR_PARTIAL_MATCHES
            )
        if self.value_count + self.cells >= self.value_room:
            self.value_room = 2 * (self.value_room + self.cells) + 16
            self.pending_values = <term_t*>mem_grow(
                self.pending_values, self.value_room, sizeof(term_t), FOR_PARTIAL_MATCHES
            )
        return 0
