"""The terms of a window; see _window.pyx."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport SlotTable, TermRecord, TermStore, term_t

# Some stretch of the stream, and the bytes of the terms it used last.
cdef struct Epoch:
    Arena bytes
    int64_t last        # the greatest position in it
    uint32_t* listed    # `count` terms: those it was the last to use, and others
    uint32_t count
    uint32_t room


cdef class WindowTerms:
    cdef TermStore store
    cdef SlotTable known
    cdef uint32_t unused            # first of the free records, linked by `months`; 0: none
    cdef PyObject** objects         # per record: its pyoxigraph term; NULL: nobody asked for it
    cdef uint32_t object_room
    cdef uint32_t object_count      # how many are not NULL
    cdef Epoch* epochs              # a ring: epoch e is at e % EPOCHS, oldest to current
    cdef uint32_t oldest
    cdef uint32_t current
    cdef int64_t horizon
    cdef int64_t cut                # the position at which the current epoch ends
    cdef bint begun
    cdef readonly uint64_t entered  # terms so far, each time one came (again)
    cdef readonly uint32_t live     # terms now

    cdef int move_to(self, int64_t position) except -1 nogil
    cdef inline int reach(self, int64_t position) except -1 nogil:
        """As `move_to`, for a position that may be within the current epoch."""
        if position < self.cut and self.begun:
            return 0
        return self.move_to(position)
    cdef term_t keep(self, EventBatch batch, term_t term) except 0 nogil
    cdef term_t enter(self, const char* text, uint32_t size) except 0 nogil
    cdef term_t seek(self, EventBatch batch, term_t term) noexcept nogil
    cdef int _widen_objects(self) except -1
    cdef int _drop_objects(self, const Epoch* epoch, uint32_t present) except -1
    cdef int64_t _end(self, int64_t position) noexcept nogil
    cdef uint32_t _number(self, EventBatch batch, term_t term) noexcept nogil
    cdef void _fetch(self, EventBatch batch, uint32_t next) noexcept nogil
    cdef bint _is(self, uint32_t number, const TermRecord* wanted) noexcept nogil
    cdef uint32_t _find(self, const TermRecord* wanted) noexcept nogil
    cdef int _use(self, uint32_t number) except -1 nogil
    cdef uint32_t _new(self, const TermRecord* wanted) except 0 nogil
    cdef int _place(self, uint32_t number, const char* text) except -1 nogil
    cdef int _drop(self, uint32_t up_to) except -1 nogil
    cdef object term(self, term_t number)
