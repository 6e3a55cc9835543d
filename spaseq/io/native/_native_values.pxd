"""Columns of native values; see _native_values.pyx."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t

from spaseq.rdf._terms cimport TermRecord, int128


# The native types of terms. The values are bits of `NativeColumn.seen`.
cpdef enum Native:
    TEXT = 1            # its IRI, label or lexical form
    BOOLEAN = 2
    INTEGER = 4
    DECIMAL = 8
    DOUBLE = 16
    INSTANT = 32        # a dateTime with a zone
    LOCAL = 64          # a dateTime without one
    DATE = 128
    DURATION = 256      # a dayTimeDuration


# BOOLEAN, INTEGER: the number; DECIMAL: times 10**18; times and durations: microseconds, dates:
# days. Neither for TEXT.
cdef union Content:
    int128 exact
    double real         # DOUBLE


@cython.final
cdef class NativeValues:
    cdef uint8_t* kinds         # the exponent of each value's `Native` plus 1; 0: unbound
    cdef Content* contents
    cdef readonly size_t count
    cdef size_t room

    cdef int add(self, const TermRecord* record) except -1
    cdef int skip(self) except -1
    cdef int _put(self, int native, Content content) except -1
