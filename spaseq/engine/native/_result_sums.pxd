"""Exact sums of the values of an argument; see _result_sums.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from spaseq.rdf._terms cimport int128
from spaseq.rdf._values cimport Kind

cdef enum:
    FIT_BITS = 96       # an easy number has fewer bits
    LIMBS = 67          # limbs of 32 bits from 2**-1074 on: the doubles, and room for a carry
    KINDS = 4           # INTEGER, DECIMAL, FLOAT, DOUBLE

# The number of an argument.
cdef struct Number:
    int128 exact        # INTEGER: the number; DECIMAL: times 10**18
    double real         # FLOAT, DOUBLE
    uint8_t kind        # a Kind; OTHER: bound to no number; 0 with `unbound`: without a value
    bint unbound

# The exact sum of the values of an argument, from which values can be removed.
cdef struct Total:
    int128 integers
    int128 decimals     # times 10**18
    int64_t unbound     # values that are unbound or errors
    int64_t others      # values that are not numbers
    int64_t[KINDS] kinds
    int32_t lowest      # the limbs in use
    int32_t highest
    int64_t[LIMBS] limbs


cdef int add_number(Total* total, const Number* number, int sign) noexcept nogil
cdef double approximate(const Total* total, double* error) noexcept nogil


cdef inline bint fits(int128 exact) noexcept nogil:
    cdef int128 most = <int128>1 << FIT_BITS
    return -most < exact < most


cdef inline double plain(const Number* number) noexcept nogil:
    if number.kind == Kind.INTEGER:
        return <double>number.exact
    if number.kind == Kind.DECIMAL:
        return <double>number.exact / 1e18
    return number.real
