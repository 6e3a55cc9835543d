"""Integers that are their own numbers; see _numerals.pyx."""

from libc.stdint cimport int64_t, uint32_t

from spaseq.rdf._terms cimport NUMERAL, WINDOWED, TermRecord, term_t

cdef enum:
    OFFSET = 0x10000000         # of 0 among the numerals; the least is -OFFSET
    NUMERAL_SIZE = 64           # bytes that hold the text of any

# What a numeral would have as a record, and its text.
cdef struct Numeral:
    TermRecord record
    char[NUMERAL_SIZE] text

cdef term_t numeral_of(TermRecord* record) noexcept nogil
cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil


cdef inline bint is_numeral(term_t term) noexcept nogil:
    return term >> 29 == (WINDOWED | NUMERAL) >> 29


cdef inline int64_t integer_of(term_t numeral) noexcept nogil:
    return <int64_t>(numeral & NUMERAL - 1) - OFFSET
