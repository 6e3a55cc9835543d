"""Numbers of events, names of blank nodes; see _minting.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.rdf._batch cimport EventBatch, EventRecord
from spaseq.rdf._terms cimport term_t

cdef enum:
    IN_EVENT_ALONE = 0xFFFFFFFF     # see IN_EVENT

cdef struct Own:
    term_t label        # a blank node of the file; 0: an empty slot
    term_t node         # the blank node of the event


cdef term_t moved(EventBatch source, term_t term, EventBatch target) except? 0 nogil
cdef bint is_blank(EventBatch batch, term_t term) noexcept nogil


@cython.final
cdef class Minter:
    cdef uint32_t number        # of the source in its run
    cdef uint64_t made          # events so far
    cdef int64_t last           # the time of the last event
    cdef uint32_t ordinal
    cdef Own* owns              # the blank nodes of the open event: a hash table
    cdef uint32_t mask, known

    cdef void forget(self) noexcept nogil
    cdef term_t own(self, EventBatch batch, term_t label) except 0 nogil
    cdef term_t own_triple(self, EventBatch batch, term_t term) except 0 nogil
    cdef uint32_t put_own(
        self, EventBatch batch, const char* text, uint32_t size, char* out
    ) except 0 nogil
    cdef int _widen(self) except -1 nogil
    cdef void number_event(self, EventRecord* event) noexcept nogil
    cdef int move(self, EventBatch source, EventBatch target) except -1 nogil
