"""The current event and the current row: terms of a batch until a label stores them.

Invariant: labels and registers, which outlive the event, hold permanent terms and terms of the
window only. A row receives its window terms once, when it is first stored.
"""

from libc.string cimport memcmp

from spaseq.rdf.limits import NO_LIMIT, LimitReached
from spaseq.rdf.native._terms cimport (
    limit_effort,
    mem_calloc,
    mem_free,
    mem_realloc,
    raise_no_memory,
)


cdef bint refuse_match(CurrentEvent current, bint waits) except -1 nogil:
    """Refuse to list a further match: raise `LimitReached`, or return False to drop the rest.

    `waits`: the bound is that on matches that wait, which counts them as groups.
    """
    if not current.sheds:
        with gil:
            raise LimitReached("groups" if waits else "matches")
    current.cut += 1
    return False


cdef class CurrentEvent:
    """The current event; `terms` are the terms of the window."""

    def __cinit__(
        self, Tables tables not None, Window window not None, WindowTerms terms not None
    ):
        self.tables, self.window, self.terms = tables, window, terms
        self.tecs, self.transient = Tecs(), Tecs()
        limit_effort(&self.effort, NO_LIMIT)
        self.most_listed = self.most_waiting = NO_LIMIT
        self.env = <term_t*>mem_calloc(tables.cells, sizeof(term_t))
        self.key = <term_t*>mem_calloc(tables.cells, sizeof(term_t))
        self.grow_row(8)

    def __dealloc__(self):
        mem_free(self.row)
        mem_free(self.env)
        mem_free(self.key)

    cdef int set_batch(self, EventBatch batch) except -1 with gil:
        """Switch to another batch of events."""
        self.batch = batch
        return 0

    cdef int grow_row(self, uint32_t width) except -1 nogil:
        """Make room for a row of `width` terms."""
        cdef term_t* longer = <term_t*>mem_realloc(self.row, 2 * width * sizeof(term_t))
        if longer == NULL:
            raise_no_memory(b"a row")
        self.row = longer
        self.row_room = 2 * width
        return 0

    cdef int store_row(self, uint32_t width) except -1 nogil:
        """Store the row and its event's terms in the window, so that they outlive their batch."""
        cdef uint32_t i
        for i in range(width):
            if not self.batch_row[i] & LOCAL:
                continue
            if self.row[i] & WINDOWED:
                self.terms.renew(self.row[i])
            else:
                self.row[i] = self.terms.intern(self.batch, self.batch_row[i])
        self.row_stored = True
        if self.event_stored:
            return 0
        self.label.name = self.terms.intern(self.batch, self.raw_name) if self.raw_name else 0
        self.label.stamp = self.terms.intern(self.batch, self.raw_stamp) if self.raw_stamp else 0
        self.event_stored = True
        return 0

    cdef int replace_batch_terms(self, Occurrence* occurrence) noexcept nogil:
        """Replace batch terms in registers by the window terms of the same columns."""
        cdef uint32_t i, j
        cdef Binding* binding
        if occurrence.flags & OccurrenceFlags.STORES_TERMS:
            return 0
        for i in range(occurrence.binding_first, occurrence.binding_end):
            binding = &self.tables.bindings[i]
            if self.env[binding.register] & LOCAL:
                self.env[binding.register] = self.row[binding.column]
            for j in range(binding.follower_first, binding.follower_end):
                if self.env[self.tables.followers[j].register] & LOCAL:
                    self.env[self.tables.followers[j].register] = self.row[binding.column]
        return 0

    cdef int label_row(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil:
        """The label of the current row and its event, valid while the window may need them."""
        cdef Occurrence* occurrence = &self.tables.occurrences[way.edge_at.occurrence]
        if not self.row_stored:
            self.store_row(width)
            self.replace_batch_terms(occurrence)
        if occurrence.flags & OccurrenceFlags.ASSIGNS:
            width += occurrence.assigned_end - occurrence.binding_end
            if label[0] != NULL and memcmp(label[0].row, self.row, width * sizeof(term_t)) != 0:
                label[0] = NULL
        return label_straight(self, self.tecs, way, width, label)
