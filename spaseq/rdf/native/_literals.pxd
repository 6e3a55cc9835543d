"""The declarations of _literals.pyx that other modules use."""

from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcmp

from spaseq.rdf.native._terms cimport UNDECODED, TermRecord, int128
from spaseq.rdf.native._values cimport Kind

# literals/_literals.pyx

# The datatype of a POINT or SPAN: `form` of a TermRecord.
cdef enum Form:
    NO_FORM
    DATE_TIME           # and dateTimeStamp
    DATE
    TIME
    G_YEAR
    G_YEAR_MONTH
    G_MONTH
    G_MONTH_DAY
    G_DAY
    DURATION
    YEAR_MONTH_DURATION
    DAY_TIME_DURATION

# A datatype whose values are understood: its kind, and its form if it is a POINT or SPAN.
cdef struct Datatype:
    const char* name        # its local name in XSD
    uint32_t size
    uint8_t kind
    uint8_t form
    uint64_t tail           # the last bytes of its IRI
    int64_t least           # INTEGER: its range, as far as 64 bits reach
    int64_t most

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    typedef unsigned __int128 spaseq_uint128;
    #define SPASEQ_SECOND ((spaseq_int128)1000000000000000000LL)
    #define SPASEQ_DAY (86400 * SPASEQ_SECOND)

    /* One to eight digits as a number, -1 if another character is among them. Always reads eight
       bytes at once: for so few digits a loop would mostly mispredict its end. */
    static inline int64_t spaseq_few_digits(const char *text, uint32_t size) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        const uint64_t zeros = 0x3030303030303030ULL << (64 - 8 * size);
        uint64_t digits;
        memcpy(&digits, text, 8);
        digits = (digits << (64 - 8 * size)) - zeros;   /* shifts out the bytes after the digits */
        if ((digits | (digits + 0x0606060606060606ULL)) & 0xF0F0F0F0F0F0F0F0ULL)
            return -1;
        digits = (10 * digits + (digits >> 8)) & 0x00FF00FF00FF00FFULL;
        digits = (100 * digits + (digits >> 16)) & 0x0000FFFF0000FFFFULL;
        return (int64_t)((10000 * digits + (digits >> 32)) & 0xFFFFFFFFULL);
    #else
        int64_t number = 0;
        for (; size; size--, text++) {
            if (*text < '0' || *text > '9')
                return -1;
            number = 10 * number + (*text - '0');
        }
        return number;
    #endif
    }

    /* The same of one to sixteen digits. */
    static inline int64_t spaseq_digits(const char *text, uint32_t size) {
        int64_t high, low;
        if (size <= 8)
            return spaseq_few_digits(text, size);
        high = spaseq_few_digits(text, size - 8);
        low = spaseq_few_digits(text + size - 8, 8);
        return high < 0 || low < 0 ? -1 : 100000000 * high + low;
    }
    """
    ctypedef unsigned long long uint128 "spaseq_uint128"
    int64_t digits "spaseq_digits"(const char* text, uint32_t size) noexcept nogil
    const int128 ATTOS_PER_SECOND "SPASEQ_SECOND"     # also the 1 of scaled decimals
    const int128 ATTOS_PER_MINUTE "(60 * SPASEQ_SECOND)"
    const int128 ATTOS_PER_HOUR "(3600 * SPASEQ_SECOND)"
    const int128 ATTOS_PER_DAY "SPASEQ_DAY"


cdef void decode_typed(TermRecord* record) noexcept nogil
cdef const Datatype* known_datatype(const char* name, uint32_t size) noexcept nogil
cdef void decode_text(
    TermRecord* to, const Datatype* datatype, const char* text, uint32_t size
) noexcept nogil
cdef double ratio_of(uint128 number, uint64_t divisor) noexcept nogil
cdef bint scaled_real(uint64_t number, int exponent, double* to) noexcept nogil
cdef int64_t days_before(int64_t year, int month, int day) noexcept nogil
cdef int days_in_month(int64_t year, int month) noexcept nogil
cdef void civil(int64_t days, int64_t* year, int* month, int* day) noexcept nogil
cdef bint timestamp_of(
    const char* text, uint32_t size, uint32_t lexical, int64_t factor,
    int64_t* micros, uint8_t* dated,
) noexcept nogil
cdef object form_name(uint8_t form)
cdef uint8_t form_of(str name)

cdef enum:
    MOST_DIGITS = 16    # maximum for `digits`
    INTEGER_SIZE = 40   # bytes of the IRI of xsd:integer


cdef inline void decode_record(TermRecord* record) noexcept nogil:
    """Decode a typed literal whose kind is UNDECODED; short integers take the fast path."""
    cdef const char* datatype = record.text + record.lexical + 5
    cdef int64_t number = -1
    if (
        0 < record.lexical <= MOST_DIGITS and record.size == record.lexical + INTEGER_SIZE + 6
        and memcmp(datatype, b"http://www.w3.org/2001/XMLSchema#integer", INTEGER_SIZE) == 0
    ):
        number = digits(record.text + 1, record.lexical)
    if number < 0:
        decode_typed(record)
    else:
        record.exact, record.kind = number, Kind.INTEGER

# Intervals that contain the numbers of several rows, for zone maps.

# The bounds are doubles, to which numbers are rounded. From minus to plus infinity means that
# nothing is known, not even that the values are numbers.
cdef struct Interval:
    double low
    double high

# An interval for each of several columns.
cdef struct Box:
    const uint32_t* columns
    const Interval* intervals
    uint32_t width


cdef inline bint real_at(TermRecord* record, double* real) noexcept nogil:
    """The integer, decimal or double of a record, rounded to a double.

    False for any other value, for NaN, and for floats, since arithmetic with them rounds to float.
    """
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind == Kind.INTEGER:
        real[0] = <double>record.exact
        return True
    real[0] = record.further.real
    return (
        record.kind == Kind.DECIMAL or record.kind == Kind.WIDE or record.kind == Kind.DOUBLE
    ) and real[0] == real[0]
