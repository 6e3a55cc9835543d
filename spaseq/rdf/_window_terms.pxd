"""The terms of a window; see _window_terms.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch, record_of
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._numerals cimport is_numeral
from spaseq.rdf._terms cimport LOCAL, WINDOWED, SlotTable, TermRecord, TermStore, term_t

# A range of the stream, and the texts of the terms whose last use is in it.
cdef struct Epoch:
    Arena bytes
    int64_t last        # the greatest position in it
    uint32_t* listed    # `count` terms: at least those whose last use is in this epoch
    uint32_t count
    uint32_t room


cdef class WindowTerms:
    cdef TermStore store
    cdef SlotTable slots
    cdef uint32_t free_record       # first of the free records, linked by `size`; 0: none
    cdef PyObject** objects         # per record: its pyoxigraph term; NULL until first used
    cdef uint32_t object_room
    cdef uint32_t object_count      # the number of objects that are not NULL
    cdef Epoch* epochs              # a ring: epoch e is at e % EPOCH_RING_SIZE, oldest to current
    cdef uint32_t oldest
    cdef uint32_t current
    cdef int64_t horizon
    cdef int64_t epoch_end          # the position at which the current epoch ends
    cdef bint started
    cdef readonly uint64_t entered  # uses of terms so far
    cdef readonly uint32_t live     # terms currently in the window
    cdef uint64_t stamp             # under one stamp, no number is assigned to two terms

    cdef int advance_epochs(self, int64_t position) except -1 nogil
    cdef inline int advance_to(self, int64_t position) except -1 nogil:
        """Like `advance_epochs`, with a fast path for positions in the current epoch."""
        if position < self.epoch_end and self.started:
            return 0
        return self.advance_epochs(position)
    cdef inline uint32_t cached_number(self, const TermRecord* wanted) noexcept nogil:
        """The last window number of a term of a batch, if it is still valid; else 0."""
        cdef uint32_t number = wanted.epoch
        if number < self.store.count and self.store.records[number].given == wanted.given:
            return number
        return 0
    cdef inline term_t intern(self, EventBatch batch, term_t term) except 0 nogil:
        """Use a term of a batch in the window and return its number there.

        Numbers of permanent terms and numerals do not change.
        """
        cdef uint32_t number
        if not term & LOCAL:
            return term
        self.entered += 1
        number = self.cached_number(record_of(batch, term))
        if number and self.store.records[number].epoch == self.current:
            return WINDOWED | number
        return self.intern_uncached(batch, term, number)
    cdef term_t intern_uncached(self, EventBatch batch, term_t term, uint32_t number) except 0 nogil
    cdef inline int renew(self, term_t term) except -1 nogil:
        """As `intern`, for a number that `lookup` has just returned for a term of the event."""
        self.entered += 1
        if is_numeral(term) or self.store.records[term ^ WINDOWED].epoch == self.current:
            return 0
        return self.move_to_current(term ^ WINDOWED)
    cdef int move_to_current(self, uint32_t number) except -1 nogil
    cdef term_t intern_text(self, const char* text, uint32_t size) except 0 nogil
    cdef inline term_t lookup(self, EventBatch batch, term_t term) noexcept nogil:
        """The number that `intern` would return if the window has the term; else the batch's one.

        For comparisons within the current event: different terms have different numbers.
        """
        cdef uint32_t number
        if not term & LOCAL:
            return term
        number = self.cached_number(record_of(batch, term))
        return WINDOWED | number if number else self.lookup_uncached(batch, term)
    cdef term_t lookup_uncached(self, EventBatch batch, term_t term) noexcept nogil
    cdef int _grow_objects(self) except -1
    cdef int _free_objects(self, const Epoch* epoch, uint32_t present) except -1
    cdef int64_t _end_of_epoch(self, int64_t position) noexcept nogil
    cdef int _free_epochs(self, uint32_t up_to) except -1 nogil
    cdef object term(self, term_t number)
