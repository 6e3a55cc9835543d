"""The summary graph of an event; see _summary_graph.pyx."""

from libc.stdint cimport uint16_t, uint32_t, uint64_t

from spaseq.gpm.native._entailed_views cimport Deriver
from spaseq.rdf._batch cimport EventBatch, EventRecord, Triple
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport term_t

cdef enum Side:
    BY_SUBJECT
    BY_OBJECT
    BY_BOTH
    SIDES           # how many there are

# Sibling lists, of triples with the same ends: position + 1 of the first by hash, and of the next
# by position; 0 ends a list. Triples of different ends may share a list.
cdef struct Siblings:
    uint32_t* heads     # mask + 1 of them; NULL: not built for this event
    uint32_t* next      # one per triple of the view
    uint32_t mask

# The triples of one predicate (view 0: of all of them), at [first:first + count] of the columns.
cdef struct View:
    uint32_t first
    uint32_t count
    uint32_t scanned        # triples that scans have read
    Siblings siblings[3]    # by Side
    uint64_t seen           # triples so far, of all events


cdef class SummaryGraph:
    cdef readonly Dictionary dictionary
    cdef term_t* subjects
    cdef term_t* predicates
    cdef term_t* objects
    cdef uint16_t* kinds        # per triple of the event: its view, while the views are filled
    cdef uint32_t room          # half of the triples for which the columns have room
    cdef View* views
    cdef readonly uint32_t view_count
    cdef uint16_t* filled       # the views that the last event filled
    cdef uint32_t filled_count
    cdef uint16_t* view_of      # per permanent term below `known`: the view of this predicate, or 0
    cdef term_t known
    cdef readonly bint whole    # whether view 0 is filled
    cdef Deriver deriver        # fills the last views, by entailment; None without such views
    cdef Arena scratch
    cdef uint64_t present           # the views that have triples, see `bit_of`
    cdef readonly uint64_t built    # events so far
    cdef uint64_t serial            # of the batch whose event the views hold
    cdef uint32_t event

    cdef inline int load(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Fill the views with the triples of an event, unless they hold it already."""
        if self.serial == batch.serial and self.event == event:
            return 0
        return self._load(batch, event)
    cdef int _load(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef inline int fills(self, uint32_t view, uint32_t triples) noexcept nogil:
        """Count `triples` more triples of the event in a view."""
        if self.views[view].count == 0 and triples:
            self.filled[self.filled_count] = <uint16_t>view
            self.filled_count += 1
            self.present |= bit_of(view)
        self.views[view].count += triples
        return 0
    cdef int empty(self) noexcept nogil
    cdef uint32_t _fill(self, const Triple* triple, const Triple* end) noexcept nogil
    cdef uint32_t _fill_sorted(self, const Triple* first, const Triple* end) noexcept nogil
    cdef uint32_t fill_derived(self, uint32_t place) noexcept nogil
    cdef int grow(self, uint32_t triples) except -1 nogil
    cdef int link(self, uint32_t view, Side side) except -1 nogil


cdef inline uint64_t bit_of(uint32_t view) noexcept nogil:
    """The bit of a view in `present`; beyond 64 views, several share a bit."""
    return <uint64_t>1 << (view & 63)


cdef inline uint64_t present_in(
    SummaryGraph graph, EventBatch batch, const EventRecord* event
) noexcept nogil:
    """The views that the triples of an event would fill, without derived ones; see `bit_of`."""
    cdef const Triple* triple = batch.triples + event.first
    cdef const Triple* end = batch.triples + event.end
    cdef uint64_t present = graph.whole
    cdef uint32_t view
    while triple < end:
        if triple.predicate < graph.known:
            view = graph.view_of[triple.predicate]
            present |= <uint64_t>(view != 0) << (view & 63)     # `bit_of`; none for view 0
        triple += 1
    return present


cdef inline uint32_t end_hash(term_t term) noexcept nogil:
    return (term * 2654435769u) >> 7


cdef inline uint32_t both_hash(term_t subject, term_t object) noexcept nogil:
    return ((subject * 2654435769u) ^ (object * 2246822519u)) >> 7
