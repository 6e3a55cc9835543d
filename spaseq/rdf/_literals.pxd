"""Lexical forms → values, without Python objects; see _literals.pyx."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from spaseq.rdf._terms cimport TermRecord, int128
from spaseq.rdf._values cimport Kind

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

cdef bint read_integer(const char* text, uint32_t size, int128* to) noexcept nogil
cdef void decode_typed(TermRecord* record) noexcept nogil
cdef const Datatype* known_datatype(const char* name, uint32_t size) noexcept nogil
cdef void decode_text(
    TermRecord* to, const Datatype* datatype, const char* text, uint32_t size
) noexcept nogil
cdef bint scaled_real(uint64_t number, int exponent, double* to) noexcept nogil
cdef int64_t days_before(int64_t year, int month, int day) noexcept nogil
cdef int days_in_month(int64_t year, int month) noexcept nogil
cdef object form_name(uint8_t form)
cdef uint8_t form_of(str name)


cdef enum:
    FEW_DIGITS = 18     # any so many are a number of 64 bits
    INTEGER_SIZE = 40   # bytes of the IRI of xsd:integer


cdef inline void decode_record(TermRecord* record) noexcept nogil:
    """Decode a typed literal whose kind is UNDECODED, at once what streams are full of."""
    cdef const char* datatype = record.text + record.lexical + 5
    if (
        0 < record.lexical <= FEW_DIGITS and record.size == record.lexical + INTEGER_SIZE + 6
        and memcmp(datatype, b"http://www.w3.org/2001/XMLSchema#integer", INTEGER_SIZE) == 0
        and read_integer(record.text + 1, record.lexical, &record.exact)
    ):
        record.kind, record.form = Kind.INTEGER, Form.NO_FORM
    else:
        decode_typed(record)
