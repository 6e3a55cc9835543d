"""Numbers that are their own terms; see _numerals.pyx."""

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
    const int64_t[8] RESTS "spaseq_rests"       # what is left of an exact decimal's 10**18

# Behind the bits that say so, a numeral has one for a decimal; then an integer and OFFSET, or in
# three bits how many digits stand behind the point, and all digits as a number and DIGITS_OFFSET.
cdef enum:
    FRACTIONAL = 0x10000000
    OFFSET = 0x08000000
    DIGITS_OFFSET = 0x01000000
    MOST_PLACES = 7
    NUMERAL_SIZE = 64       # bytes that hold the text of any

# What a numeral would have as a record, and its text.
cdef struct Numeral:
    TermRecord record
    char[NUMERAL_SIZE] text

cdef term_t numeral_of(const char* text, uint32_t size) noexcept nogil
cdef const TermRecord* spell(Numeral* to, term_t numeral) noexcept nogil


cdef inline bint is_numeral(term_t term) noexcept nogil:
    return term >> 29 == (WINDOWED | NUMERAL) >> 29


cdef inline uint32_t places_of(term_t numeral) noexcept nogil:
    """How many digits stand behind the point: 0 of an integer."""
    return numeral >> 25 & 7 if numeral & FRACTIONAL else 0


cdef inline int64_t digits_of(term_t numeral) noexcept nogil:
    """The number without its point."""
    if numeral & FRACTIONAL:
        return <int64_t>(numeral & 2 * DIGITS_OFFSET - 1) - DIGITS_OFFSET
    return <int64_t>(numeral & 2 * OFFSET - 1) - OFFSET


@cython.cdivision(True)
cdef inline double real_of(term_t numeral) noexcept nogil:
    """The number as a double, rounded once: both are exact."""
    return <double>digits_of(numeral) / POWERS[places_of(numeral)]


cdef inline int128 exact_of(term_t numeral) noexcept nogil:
    """The number as a record has it: a decimal times 10**18."""
    if numeral & FRACTIONAL:
        return <int128>digits_of(numeral) * RESTS[places_of(numeral)]
    return digits_of(numeral)
