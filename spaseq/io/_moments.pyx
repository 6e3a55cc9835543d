# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The texts of timestamps to microseconds, for the forms that nearly all of them have.

What this module knows it reads exactly as spaseq/rdf/time.py does; it says so where it does
not know (white space, exponents, years beyond four digits, what is wrong anyway), and that
module is asked. Cost: linear in the text.
"""

from libc.string cimport memcmp

from spaseq.io.native._tokens cimport same

cdef extern from *:
    """
    #define spaseq_times(a, b, out) __builtin_mul_overflow(a, b, out)
    #define spaseq_plus(a, b, out) __builtin_add_overflow(a, b, out)
    """
    bint overflows_times "spaseq_times"(int64_t a, int64_t b, int64_t* out) noexcept nogil
    bint overflows_plus "spaseq_plus"(int64_t a, int64_t b, int64_t* out) noexcept nogil

cdef const char* XSD = b'"^^<http://www.w3.org/2001/XMLSchema#'
cdef enum:
    XSD_SIZE = 37
    MOST_DIGITS = 18

cdef enum Form:
    UNKNOWN
    DATED
    ZONED       # a dateTimeStamp: not without a zone
    WHOLE
    BROKEN      # maybe with a fraction


cdef bint moment_of(
    const char* text, uint32_t size, uint32_t lexical, int64_t factor,
    int64_t* micros, uint8_t* domain,
) noexcept nogil:
    """The time that a term's text says, a number in units of `factor` microseconds.

    False where it is not known.
    """
    cdef Form form
    cdef const char* end
    if size < lexical + 2 + XSD_SIZE or text[0] != c'"':
        return False
    end = text + 1 + lexical
    if not same(end, XSD, XSD_SIZE):
        return False
    form = _form(end + XSD_SIZE, size - lexical - 2 - XSD_SIZE)
    if form == Form.UNKNOWN:
        return False
    domain[0] = form == Form.DATED or form == Form.ZONED
    if domain[0]:
        return _date_time(text + 1, end, form == Form.ZONED, micros)
    return _number(text + 1, end, form == Form.BROKEN, factor, micros)


cdef Form _form(const char* name, uint32_t size) noexcept nogil:
    """The form that texts of the datatype with this local name have."""
    if size == 8 and memcmp(name, b"dateTime", 8) == 0:
        return Form.DATED
    if size == 13 and memcmp(name, b"dateTimeStamp", 13) == 0:
        return Form.ZONED
    if (
        size == 7 and memcmp(name, b"integer", 7) == 0
        or size == 4 and memcmp(name, b"long", 4) == 0
        or size == 3 and memcmp(name, b"int", 3) == 0
    ):
        return Form.WHOLE
    if (
        size == 7 and memcmp(name, b"decimal", 7) == 0
        or size == 6 and memcmp(name, b"double", 6) == 0
        or size == 5 and memcmp(name, b"float", 5) == 0
    ):
        return Form.BROKEN
    return Form.UNKNOWN


cdef bint _number(
    const char* at, const char* end, bint broken, int64_t factor, int64_t* micros
) noexcept nogil:
    cdef bint negative = False
    cdef int64_t whole = 0, part = 0, scale = 1
    cdef const char* begin
    if at < end and (at[0] == c"-" or at[0] == c"+"):
        negative = at[0] == c"-"
        at += 1
    begin = at
    while at < end and c"0" <= at[0] <= c"9":
        if at - begin == MOST_DIGITS:
            return False
        whole = 10 * whole + (at[0] - c"0")
        at += 1
    if at == begin:
        return False
    if broken and at < end and at[0] == c".":
        at += 1
        begin = at
        while at < end and c"0" <= at[0] <= c"9":
            if at - begin == MOST_DIGITS:
                return False
            part = 10 * part + (at[0] - c"0")
            scale *= 10
            at += 1
    if at != end:
        return False
    if overflows_times(part, factor, &part) or part % scale != 0:
        return False
    part //= scale
    if overflows_times(whole, factor, &whole) or overflows_plus(whole, part, &whole):
        return False
    micros[0] = -whole if negative else whole
    return True


cdef inline int _digits(const char* at, int count) noexcept nogil:
    """A number of exactly so many digits, -1 where there are others characters."""
    cdef int i, number = 0
    for i in range(count):
        if not c"0" <= at[i] <= c"9":
            return -1
        number = 10 * number + (at[i] - c"0")
    return number


cdef inline bint _is_leap(int year) noexcept nogil:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


cdef int64_t _days(int year, int month, int day) noexcept nogil:
    """Days from 1970-01-01 to a date of the years 1 to 9999."""
    cdef int past = year - 1
    cdef int before = (367 * month - 362) // 12  # as if February had 30 days
    if month > 2:
        before -= 1 if _is_leap(year) else 2
    return <int64_t>365 * past + past // 4 - past // 100 + past // 400 + before + day - 1 - 719162


cdef bint _date_time(
    const char* at, const char* end, bint zoned, int64_t* micros
) noexcept nogil:
    """`YYYY-MM-DDThh:mm:ss`, maybe with a fraction and a zone."""
    cdef int year, month, day, hour, minute, second, longest, ahead = 0, places = 0
    cdef int64_t fraction = 0
    if end - at < 19:
        return False
    year = _digits(at, 4)
    month = _digits(at + 5, 2)
    day = _digits(at + 8, 2)
    hour = _digits(at + 11, 2)
    minute = _digits(at + 14, 2)
    second = _digits(at + 17, 2)
    if (
        at[4] != c"-" or at[7] != c"-" or at[10] != c"T" or at[13] != c":" or at[16] != c":"
        or year < 1 or not 1 <= month <= 12 or day < 1
        or not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59
    ):
        return False
    longest = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if month == 2:
        longest = 29 if _is_leap(year) else 28
    if day > longest:
        return False
    at += 19
    if at < end and at[0] == c".":
        at += 1
        while at < end and c"0" <= at[0] <= c"9":
            if places == 6:
                return False
            fraction = 10 * fraction + (at[0] - c"0")
            places += 1
            at += 1
        if places == 0:
            return False
        while places < 6:
            fraction *= 10
            places += 1
    if at == end:
        if zoned:
            return False
    elif at[0] != c"Z":
        if end - at != 6 or at[3] != c":" or at[0] != c"+" and at[0] != c"-":
            return False
        ahead = _digits(at + 1, 2)
        longest = _digits(at + 4, 2)
        if not 0 <= ahead <= 13 or not 0 <= longest <= 59:
            return False
        ahead = 60 * ahead + longest
        if at[0] == c"-":
            ahead = -ahead
    elif at + 1 != end:
        return False
    micros[0] = (
        _days(year, month, day) * 86400 + hour * 3600 + (minute - ahead) * 60 + second
    ) * 1000000 + fraction
    return True
