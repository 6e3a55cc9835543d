"""Lexical forms → values, without Python objects; see _literals.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.rdf._terms cimport TermRecord, int128

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

cdef extern from *:
    """
    #define SPASEQ_SECOND ((spaseq_int128)1000000000000000000LL)
    #define SPASEQ_DAY (86400 * SPASEQ_SECOND)
    """
    const int128 SECOND "SPASEQ_SECOND"     # in atto-seconds; also the 1 of scaled decimals
    const int128 MINUTE "(60 * SPASEQ_SECOND)"
    const int128 HOUR "(3600 * SPASEQ_SECOND)"
    const int128 DAY "SPASEQ_DAY"

cdef void decode_record(TermRecord* record) noexcept nogil
cdef const Datatype* known_datatype(const char* name, uint32_t size) noexcept nogil
cdef void decode_text(
    TermRecord* to, const Datatype* datatype, const char* text, uint32_t size
) noexcept nogil
cdef bint scaled_real(uint64_t number, int exponent, double* to) noexcept nogil
cdef int64_t days_before(int64_t year, int month, int day) noexcept nogil
cdef int days_in_month(int64_t year, int month) noexcept nogil
cdef object form_name(uint8_t form)
cdef uint8_t form_of(str name)
