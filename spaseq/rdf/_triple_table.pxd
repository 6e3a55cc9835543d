"""The triples of a graph as columns of numbers; see _triple_table.pyx."""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch, Triple
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport term_t

# Sibling lists, of triples with the same end: position + 1 of the first by hash, and of the next
# by position; 0 ends a list, which is in the order of the triples. Triples with different ends may
# share a list.
cdef struct Lists:
    uint32_t* heads     # mask + 1 of them; NULL: not built
    uint32_t* next      # one for each triple of the view
    uint32_t mask

# The triples of one predicate (view 0: of all of them).
cdef struct TableView:
    uint32_t* members   # their numbers, ascending; NULL: all triples
    uint32_t count
    Lists by_subject
    Lists by_object


cdef class TripleTable:
    cdef char** texts               # per term number: its text, behind a `Head`; 0 is no term
    cdef uint32_t term_count, term_room
    cdef uint64_t* slots            # the terms by text: see `slot_of`; 0 is empty
    cdef uint32_t slot_mask
    cdef Arena bytes                # the pieces that hold the texts
    cdef char* piece                # the free part of the last piece
    cdef size_t left
    cdef Triple* triples            # of numbers of this table
    cdef uint32_t triple_count, triple_room
    cdef uint32_t* seen             # triples by hash: number + 1; NULL once the table is complete
    cdef uint32_t seen_mask
    cdef uint32_t* members          # numbers of triples by predicate, for the views
    cdef TableView* views           # NULL until the first look-up
    cdef uint32_t view_count
    cdef dict view_of               # number of a predicate: the number of its view
    cdef object lock

    cdef term_t search(self, uint64_t hash, const char* text, uint32_t size) noexcept nogil
    cdef term_t enter(self, uint64_t hash, const char* text, uint32_t size) except 0 nogil
    cdef int _grow_slots(self) except -1 nogil
    cdef int _grow_seen(self) except -1 nogil
    cdef int _reserve(self, uint32_t more) except -1 nogil
    cdef int _add_distinct(self, const Triple* triple, uint64_t hash) except -1 nogil
    cdef int _add(
        self, EventBatch batch, term_t* numbers, const char* label, uint32_t size
    ) except -1
    cdef term_t number(self, object term) except? 0
    cdef object term(self, term_t number)
    cdef TableView* view(self, object predicate) except? NULL
    cdef int _make_views(self) except -1
    cdef Lists* lists(self, TableView* view, bint by_object) except NULL


cdef inline const Triple* member(
    TripleTable table, const TableView* view, uint32_t position
) noexcept nogil:
    """The triple at a position of a view."""
    return &table.triples[position if view.members == NULL else view.members[position]]


cdef inline uint32_t end_hash(term_t term) noexcept nogil:
    return (term * 2654435769u) >> 7


cdef inline uint32_t first_of(const Lists* lists, term_t end) noexcept nogil:
    """The position + 1 of the first triple that may have this end."""
    return lists.heads[end_hash(end) & lists.mask]
