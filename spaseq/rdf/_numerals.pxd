"""Numerals: term numbers that encode the number's value; see _numerals.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from spaseq.rdf._terms cimport NUMERAL, WINDOWED, TermRecord, int128, term_t

cdef extern from *:
    """
    static const double spaseq_powers[8] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    static const int64_t spaseq_rests[8] = {
        1000000000000000000, 100000000000000000, 10000000000000000, 1000000000000000,
        100000000000000, 10000000000000, 1000000000000, 100000000000
    };
    """
    const double[8] POWERS "spaseq_powers"
    const int64_t[8] RESTS "spaseq_rests"       # 10**18 / 10**places, for exact decimals

# After the tag bits of numerals, one bit says whether it is a decimal. An integer follows as its
# value plus OFFSET; a decimal as the number of fractional digits (3 bits), and all digits as a
# number plus DIGITS_OFFSET.
cdef enum:
    FRACTIONAL = 0x10000000
    OFFSET = 0x08000000
    DIGITS_OFFSET = 0x01000000
    MOST_PLACES = 7
    NUMERAL_SIZE = 64       # bytes that suffice for the text of any numeral

# The record of a numeral, and its text.
cdef struct Numeral:
    TermRecord record
    char[NUMERAL_SIZE] text

cdef term_t numeral_of(const char* text, uint32_t size) noexcept nogil
cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil


cdef inline bint is_numeral(term_t term) noexcept nogil:
    return term >> 29 == (WINDOWED | NUMERAL) >> 29


cdef inline uint32_t places_of(term_t numeral) noexcept nogil:
    """The number of fractional digits, 0 for an integer."""
    return numeral >> 25 & 7 if numeral & FRACTIONAL else 0


cdef inline int64_t digits_of(term_t numeral) noexcept nogil:
    """The number without its decimal point."""
    if numeral & FRACTIONAL:
        return <int64_t>(numeral & 2 * DIGITS_OFFSET - 1) - DIGITS_OFFSET
    return <int64_t>(numeral & 2 * OFFSET - 1) - OFFSET


@cython.cdivision(True)
cdef inline double real_of(term_t numeral) noexcept nogil:
    """The number as a double, rounded once, since both operands are exact."""
    return <double>digits_of(numeral) / POWERS[places_of(numeral)]


cdef inline int128 exact_of(term_t numeral) noexcept nogil:
    """The number as stored in records: a decimal times 10**18."""
    if numeral & FRACTIONAL:
        return <int128>digits_of(numeral) * RESTS[places_of(numeral)]
    return digits_of(numeral)
