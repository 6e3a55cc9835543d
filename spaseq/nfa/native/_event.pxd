"""The event and the row at hand; see _event.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._window cimport Window
from spaseq.nfa.native._program cimport Binding, More, Occurrence, Tables, Way
from spaseq.nfa.native._tecs cimport Label, Tecs, instant_t, piece_of, size_of_label
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._effort cimport Effort, begin_event, take_step
from spaseq.rdf._terms cimport LOCAL, copy_row, term_t
from spaseq.rdf._window_terms cimport WindowTerms


@cython.final
cdef class CurrentEvent:
    cdef Tables tables
    cdef Window window
    cdef readonly Tecs tecs
    cdef readonly Tecs passing  # nodes that only end matches, freed with the next event
    cdef bint lasting           # final nodes are in `tecs` too, since their addresses are stored
    cdef WindowTerms terms
    cdef uint64_t turn          # changes whenever complete matches may be freed
    cdef const term_t* given    # the current row
    cdef term_t* row            # its copy: window terms once `row_kept`; then the values of its
                                # BINDs
    cdef bint row_kept
    cdef uint32_t row_room
    cdef term_t* env            # the environment of the current partial match
    cdef Label label            # the fields of the event's labels
    cdef term_t raw_name, raw_stamp
    cdef bint event_kept
    cdef EventBatch batch
    cdef Effort effort          # the steps of the event, see spaseq.rdf.limits
    cdef bint spent             # the event ran out of steps
    cdef uint32_t spent_place
    cdef instant_t since        # the least start of a match that the current row joins
    cdef term_t* key            # scratch: the key of an index lookup

    cdef int take_batch(self, EventBatch batch) except -1 with gil
    cdef int widen(self, uint32_t width) except -1 nogil
    cdef int keep_row(self, uint32_t width) except -1 nogil
    cdef int settle(self, Occurrence* occurrence) noexcept nogil
    cdef int label_row(self, Way* way, uint32_t width, Label** label) except -1 nogil


cdef inline bint spend(CurrentEvent current, uint32_t place) except -1 nogil:
    """Spend one step of the event on a group of a place; False if none is left."""
    if not take_step(&current.effort):
        current.spent, current.spent_place = True, place
        return False
    return True


cdef inline int show_event(
    CurrentEvent current, EventBatch batch, uint32_t number, uint32_t stream, uint32_t file
) except -1 nogil:
    """Make an event of a batch current."""
    cdef const EventRecord* event = batch.events + number
    current.turn += 1
    begin_event(&current.effort)
    current.spent = False
    if current.batch is not batch:
        current.take_batch(batch)
    current.label.micros = event.micros
    current.label.line = event.line
    current.label.ordinal = event.ordinal
    current.label.domain = event.domain
    current.label.parts = 1
    current.label.instant = current.window.now
    current.label.stream = stream
    current.label.file = file
    current.raw_name = event.name
    current.raw_stamp = 0 if event.domain else event.stamp
    current.event_kept = False
    return 0


cdef inline int take_row(CurrentEvent current, const term_t* row, uint32_t width) except -1 nogil:
    """Make a row of the event current, with the terms of its batch."""
    if width + current.tables.most_assigned > current.row_room:
        current.widen(width + current.tables.most_assigned)
    current.given, current.row_kept = row, False
    copy_row(current.row, row, width)
    return 0


cdef inline int compare_row(CurrentEvent current, uint32_t gpm) except -1 nogil:
    """Replace compared columns of the current row by window terms; a label replaces the rest.

    Called only while the row is not stored.
    """
    cdef uint32_t i, j
    for i in range(current.tables.compared_first[gpm], current.tables.compared_first[gpm + 1]):
        j = current.tables.compared[i]
        if current.row[j] & LOCAL:
            current.row[j] = current.terms.seek(current.batch, current.row[j])
    return 0


cdef inline int label_straight(
    CurrentEvent current, Tecs tecs, const Way* way, uint32_t width, Label** label
) except -1 nogil:
    """As `label_row`, if no register has been bound and the row has no BINDs."""
    if not current.row_kept:
        current.keep_row(width)
    if label[0] == NULL:
        # A whole Label is copied, so allocate at least its size.
        label[0] = <Label*>piece_of(tecs, size_of_label(max(width, 2)))
        label[0][0] = current.label
        label[0].edge, label[0].width = way.edge, width
        copy_row(label[0].row, current.row, width)
    return 0
