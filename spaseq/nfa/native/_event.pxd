"""The current event and row; see _event.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa.native._window cimport Window
from spaseq.nfa.native._program cimport Binding, OccurrenceFlags, Occurrence, Tables, EdgeRef
from spaseq.nfa.native._tecs cimport Label, Tecs, instant_t, tecs_alloc, size_of_label
from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._effort cimport Effort, begin_event, check_signals, count_step
from spaseq.rdf._terms cimport LOCAL, copy_row, term_t
from spaseq.rdf._window_terms cimport WindowTerms


@cython.final
cdef class CurrentEvent:
    cdef Tables tables
    cdef Window window
    cdef readonly Tecs tecs
    cdef readonly Tecs transient # nodes that only end matches, freed with the next event
    cdef bint stores_final_nodes # final nodes are in `tecs` too, since their addresses are stored
    cdef WindowTerms terms
    cdef uint64_t match_generation # changes whenever complete matches may be freed
    cdef const term_t* batch_row # the current row
    cdef term_t* row            # its copy: window terms once `row_stored`; then the values of its
                                # BINDs
    cdef bint row_stored
    cdef uint32_t row_room
    cdef term_t* env            # the environment of the current partial match
    cdef Label label            # the fields of the event's labels
    cdef term_t raw_name, raw_stamp
    cdef bint event_stored
    cdef EventBatch batch
    cdef Effort effort          # the steps of the event, see spaseq.rdf.limits
    cdef uint64_t most_listed   # the most matches that may be listed at once
    cdef uint64_t most_waiting  # the most that may begin to wait at one event
    cdef bint sheds             # beyond these, the rest is dropped
    cdef uint64_t cut           # how often the rest was dropped
    cdef uint64_t listed        # the matches of the event that now wait for their window to close
    cdef bint out_of_steps      # the event ran out of steps
    cdef uint32_t out_of_steps_place
    cdef instant_t since        # the least start of a match that the current row joins
    cdef term_t* key            # scratch: the key of an index lookup

    cdef int set_batch(self, EventBatch batch) except -1 with gil
    cdef int grow_row(self, uint32_t width) except -1 nogil
    cdef int store_row(self, uint32_t width) except -1 nogil
    cdef int replace_batch_terms(self, Occurrence* occurrence) noexcept nogil
    cdef int label_row(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil


cdef inline bint count_group_step(CurrentEvent current, uint32_t place) except -1 nogil:
    """Spend one step of the event on a group of a place; False if none is left."""
    if not count_step(&current.effort):
        current.out_of_steps, current.out_of_steps_place = True, place
        return False
    return True


cdef bint refuse_match(CurrentEvent current, bint waits) except -1 nogil


cdef inline bint count_match(CurrentEvent current, uint64_t* listed) except -1 nogil:
    """Count a match that is listed; every 64 matches, check for signals.

    Returns False if there are too many, and the rest is to be dropped.

    Raises:
        LimitReached: if there are too many, and the query is to stop.
    """
    if listed[0] >= current.most_listed:
        return refuse_match(current, False)
    listed[0] += 1
    if not listed[0] & 0x3F:
        check_signals()
    return True


cdef inline int set_event(
    CurrentEvent current, EventBatch batch, uint32_t number, uint32_t stream, uint32_t file
) except -1 nogil:
    """Make an event of a batch current."""
    cdef const EventRecord* event = batch.events + number
    current.match_generation += 1
    begin_event(&current.effort)
    current.out_of_steps = False
    current.listed = 0
    if current.batch is not batch:
        current.set_batch(batch)
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
    current.event_stored = False
    return 0


cdef inline int set_row(CurrentEvent current, const term_t* row, uint32_t width) except -1 nogil:
    """Make a row of the event current, with the terms of its batch."""
    if width + current.tables.most_assigned > current.row_room:
        current.grow_row(width + current.tables.most_assigned)
    current.batch_row, current.row_stored = row, False
    copy_row(current.row, row, width)
    return 0


cdef inline int resolve_compared_columns(CurrentEvent current, uint32_t gpm) except -1 nogil:
    """Replace compared columns of the current row by window terms; a label replaces the rest.

    Called only while the row is not stored.
    """
    cdef uint32_t i, j
    for i in range(current.tables.compared_first[gpm], current.tables.compared_first[gpm + 1]):
        j = current.tables.compared[i]
        if current.row[j] & LOCAL:
            current.row[j] = current.terms.lookup(current.batch, current.row[j])
    return 0


cdef inline int label_straight(
    CurrentEvent current, Tecs tecs, const EdgeRef* way, uint32_t width, Label** label
) except -1 nogil:
    """As `label_row`, if no register has been bound and the row has no BINDs."""
    if not current.row_stored:
        current.store_row(width)
    if label[0] == NULL:
        # A whole Label is copied, so allocate at least its size.
        label[0] = <Label*>tecs_alloc(tecs, size_of_label(max(width, 2)))
        label[0][0] = current.label
        label[0].edge, label[0].width = way.edge, width
        copy_row(label[0].row, current.row, width)
    return 0
