# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Lexical forms of literals → the numbers in their records, and timestamps, without the GIL.

The native calendar (proleptic Gregorian, as XML Schema has it) is here, and nowhere else.

A record's typed literal is decoded once, when its value is first needed. This module parses
numbers, booleans, dates and dateTimes; rare forms (durations, calendar fields, years of ten digits,
numbers whose rounding needs long arithmetic, WIDE numbers) are parsed by `_values.parse`, which
acquires the GIL.

Invariant: kind and numbers equal those of `_values.decode`; in particular unknown datatypes,
ill-formed texts, and numbers out of the range of their datatype are OTHER. Cost: linear in the
text. A double is correctly rounded by construction: at most 19 digits times a power of ten from -19
to 19 is one product or quotient of 128 bits, rounded once (compare Clinger, How to Read Floating
Point Numbers Accurately, 1990, for 53 bits).
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport INFINITY, NAN, ldexp
from libc.stdint cimport int16_t
from libc.string cimport memcpy

from spaseq.rdf.native._terms cimport NO_ZONE, EventBatch, Numeral, term_t, written_record
from spaseq.rdf.native._values cimport Value
from spaseq.rdf.native._values import BOUNDS, KINDS, XSD, parse, to_double

cdef extern from *:
    """
    static const uint64_t spaseq_tens[20] = {
        1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u,
        10000000000u, 100000000000u, 1000000000000u, 10000000000000u, 100000000000000u,
        1000000000000000u, 10000000000000000u, 100000000000000000u, 1000000000000000000u,
        10000000000000000000u};
    static inline int spaseq_leading_zeros(uint64_t number) { return __builtin_clzll(number); }
    static inline int spaseq_zeros_before(spaseq_uint128 number) {
        return number >> 64 ? __builtin_clzll((uint64_t)(number >> 64))
                            : 64 + __builtin_clzll((uint64_t)number);
    }
    /* `YYYY-MM-DDThh:mm:ss` as numbers; 0 where the text is anything else. Eight bytes are read at
       once. Each is xor-ed with what a text of zeros has there: a digit is then its value, a
       separator 0. */
    static inline int spaseq_date_time(
            const char *text, int *year, int *month, int *day, int *hour, int *minute,
            int *second) {
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        const uint64_t sixes = 0x0606060606060606ULL, high = 0xF0F0F0F0F0F0F0F0ULL;
        uint64_t date, time;
        uint32_t middle;
        memcpy(&date, text, 8);
        memcpy(&middle, text + 7, 4);
        memcpy(&time, text + 11, 8);
        date ^= 0x2D30302D30303030ULL;      /* 0000-00- */
        middle ^= 0x5430302DU;              /* -00T */
        time ^= 0x30303A30303A3030ULL;      /* 00:00:00 */
        if (((date | (date + sixes) | time | (time + sixes)) & high)
                || ((middle | (middle + (uint32_t)sixes)) & (uint32_t)high)
                || (date & 0xFF0000FF00000000ULL) || (middle & 0xFF0000FFU)
                || (time & 0x0000FF0000FF0000ULL))
            return 0;
        date = 10 * date + (date >> 8);     /* in the place of the first digit of each pair */
        middle = 10 * middle + (middle >> 8);
        time = 10 * time + (time >> 8);
        *year = 100 * (int)(date & 0xFF) + (int)(date >> 16 & 0xFF);
        *month = (int)(date >> 40 & 0xFF);
        *day = (int)(middle >> 8 & 0xFF);
        *hour = (int)(time & 0xFF);
        *minute = (int)(time >> 24 & 0xFF);
        *second = (int)(time >> 48 & 0xFF);
        return 1;
    #else
        return 0;
    #endif
    }
    #define spaseq_times(a, b, out) __builtin_mul_overflow(a, b, out)
    #define spaseq_plus(a, b, out) __builtin_add_overflow(a, b, out)
    """
    const uint64_t[20] TENS "spaseq_tens"
    bint overflows_times "spaseq_times"(int64_t a, int64_t b, int64_t* out) noexcept nogil
    bint plain_date_time "spaseq_date_time"(
        const char* text, int* year, int* month, int* day, int* hour, int* minute, int* second
    ) noexcept nogil
    const uint64_t MICROSECOND "1000000000000ULL"   # in atto-seconds
    bint overflows_plus "spaseq_plus"(int64_t a, int64_t b, int64_t* out) noexcept nogil
    int leading_zeros "spaseq_leading_zeros"(uint64_t number) noexcept nogil
    int zeros_before "spaseq_zeros_before"(uint128 number) noexcept nogil

cdef enum:
    XSD_SIZE = 33
    TAIL_SIZE = 8
    LONGEST_TIME = 1000         # as in _values
    NARROW = 18                 # characters of a number that always fits 64 bits
    EXACT_DIGITS = 15           # digits of an integer that is always an exact double
    PLAIN_YEAR = 9              # maximum digits of the years that are parsed here
    DECIMAL_DIGITS = 21         # integer digits of the greatest decimal
    DAYS_OF_ERA = 146097        # in 400 years
    EPOCH_DAY = 719162          # days from 0001-01-01 to 1970-01-01
    LAST_DAY = 3652059          # days from 0001-01-01 to 10000-01-01
    STAMP_SIZE = 13             # characters of `dateTimeStamp`
    DATE_TIME_SIZE = 41         # bytes of the IRI of xsd:dateTime

cdef uint64_t EXACT_DOUBLE = <uint64_t>1 << 53     # every integer up to this one is a double

cdef tuple FORM_NAMES = (
    "", "dateTime", "date", "time", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay",
    "duration", "yearMonthDuration", "dayTimeDuration",
)

cdef dict FORM_NUMBERS = {name: number for number, name in enumerate(FORM_NAMES)}

FORM_NUMBERS["dateTimeStamp"] = Form.DATE_TIME

# The datatypes, most frequent first.
cdef tuple FREQUENT = ("integer", "decimal", "double", "dateTime", "float", "boolean", "date")

cdef list NAMES = [
    name.encode() for name in (*FREQUENT, *(name for name in KINDS if name not in FREQUENT))
]

cdef Datatype[64] DATATYPES

cdef int64_t LEAST = -0x7FFFFFFFFFFFFFFF - 1

cdef int64_t MOST = 0x7FFFFFFFFFFFFFFF

cdef int DATATYPE_COUNT = 0


cdef int _list_datatypes() except -1:
    global DATATYPE_COUNT
    cdef Datatype* entry
    for name in NAMES:
        entry = &DATATYPES[DATATYPE_COUNT]
        entry.name = name
        entry.size = <uint32_t>len(name)
        entry.tail = _tail_of(XSD.encode() + name, XSD_SIZE + entry.size)
        entry.kind = KINDS[name.decode()]
        entry.form = FORM_NUMBERS.get(name.decode(), Form.NO_FORM)
        least, most = BOUNDS.get(name.decode(), (None, None))
        entry.least = LEAST if least is None else least
        entry.most = MOST if most is None else min(most, MOST)
        DATATYPE_COUNT += 1
    return 0


_list_datatypes()


cdef object form_name(uint8_t form):
    """The local name of a POINT's or SPAN's datatype."""
    return FORM_NAMES[form]


cdef uint8_t form_of(str name):
    return FORM_NUMBERS[name]


cdef const Datatype* known_datatype(const char* name, uint32_t size) noexcept nogil:
    """The datatype with this IRI, or NULL if it is not supported."""
    cdef int i
    cdef uint64_t tail
    # The compiler inlines comparisons of constant size.
    if size <= XSD_SIZE or memcmp(name, b"http://www.w3.org/2001/XMLSchema#", XSD_SIZE) != 0:
        return NULL
    tail = _tail_of(name, size)
    name += XSD_SIZE
    size -= XSD_SIZE
    for i in range(DATATYPE_COUNT):
        if DATATYPES[i].tail == tail and DATATYPES[i].size == size and (
            size <= TAIL_SIZE or memcmp(DATATYPES[i].name, name, size) == 0
        ):
            return &DATATYPES[i]
    return NULL


cdef inline uint64_t _tail_of(const char* text, uint32_t size) noexcept nogil:
    """The last TAIL_SIZE bytes of a text that is at least as long."""
    cdef uint64_t tail
    memcpy(&tail, text + size - TAIL_SIZE, TAIL_SIZE)
    return tail


cdef void decode_typed(TermRecord* record) noexcept nogil:
    """Decode a typed literal of any datatype."""
    cdef const Datatype* datatype = known_datatype(
        record.text + record.lexical + 5, record.size - record.lexical - 6
    )
    if datatype == NULL:
        record.kind = Kind.OTHER
    else:
        decode_text(record, datatype, record.text + 1, record.lexical)


cdef void decode_text(
    TermRecord* to, const Datatype* datatype, const char* text, uint32_t size
) noexcept nogil:
    """Parse a text as a datatype; sets the kind, which may be OTHER, and the value's fields."""
    cdef int kind = datatype.kind
    cdef bint good = False
    to.kind = Kind.OTHER
    if kind == Kind.FLOAT or kind == Kind.DOUBLE:
        if not is_real(text, size):
            return
        if not read_real(text, size, &to.further.real):
            _decode_slowly(to, datatype, text, size)
            return
        if kind == Kind.FLOAT:
            to.further.real = <float>to.further.real
        to.kind = kind
        return
    if size == 0:
        return
    if kind == Kind.INTEGER or kind == Kind.DECIMAL:
        if kind == Kind.DECIMAL:
            good = read_decimal(text, size, &to.exact, &to.further.real)
        elif read_integer(text, size, &to.exact):
            good = datatype.least <= to.exact <= datatype.most
        if not good and size > NARROW:
            _decode_slowly(to, datatype, text, size)
            return
    elif size > LONGEST_TIME:
        return
    elif kind == Kind.BOOLEAN:
        good = read_boolean(text, size, &to.exact)
    elif datatype.form == Form.DATE_TIME or datatype.form == Form.DATE:
        good = read_point(to, datatype, text, size)
        if not good and size > PLAIN_YEAR and _long_year(text):
            _decode_slowly(to, datatype, text, size)
            return
    else:
        _decode_slowly(to, datatype, text, size)
        return
    if good:
        to.kind = kind
        to.form = datatype.form


cdef void _decode_slowly(
    TermRecord* to, const Datatype* datatype, const char* text, uint32_t size
) noexcept with gil:
    cdef Value value = parse(
        datatype.name[:datatype.size].decode(), PyUnicode_DecodeUTF8(text, size, NULL)
    )
    if value is None:
        return
    if value.kind == Kind.POINT:
        to.exact = value.number
        to.zone = NO_ZONE if value.extra is None else <int16_t>value.extra
        to.form = datatype.form
    elif value.kind == Kind.SPAN:
        to.exact = value.number
        to.further.months = value.extra
        to.form = datatype.form
    else:
        if value.kind <= Kind.DECIMAL:
            to.exact = value.number
        to.further.real = to_double(value)
    to.kind = value.kind


# ------------------------------------------------------------------ numbers


cdef inline bint _digit(char c) noexcept nogil:
    return c'0' <= c <= c'9'


cdef bint read_boolean(const char* text, uint32_t size, int128* to) noexcept nogil:
    cdef bint true
    if size == 1 and (text[0] == c'0' or text[0] == c'1'):
        to[0] = text[0] == c'1'
        return True
    true = size == 4 and memcmp(text, b"true", 4) == 0
    to[0] = true
    return true or size == 5 and memcmp(text, b"false", 5) == 0


cdef bint read_integer(const char* text, uint32_t size, int128* to) noexcept nogil:
    """`[+-]?[0-9]+` within 64 bits."""
    cdef const char* end = text + size
    cdef bint negative = text[0] == c'-'
    cdef uint64_t number = 0
    cdef uint32_t digit
    if negative or text[0] == c'+':
        text += 1
    if text == end:
        return False
    while end - text > 19:
        if text[0] != c'0':
            return False
        text += 1
    while text < end:
        digit = <uint32_t>text[0] - <uint32_t>c'0'
        if digit > 9:
            return False
        number = 10 * number + digit
        text += 1
    # 19 digits fit; the magnitude of the least number exceeds that of the greatest by one.
    if number > <uint64_t>0x7FFFFFFFFFFFFFFF + negative:
        return False
    to[0] = number
    if negative:
        to[0] = -to[0]
    return True


# The digits on both sides of a decimal point, as pointers into a text.
cdef struct Digits:
    const char* whole
    const char* fraction
    int64_t wholes
    int64_t fractions


cdef const char* split_digits(const char* text, const char* end, Digits* to) noexcept nogil:
    """The end of `[0-9]+(\.[0-9]*)?|\.[0-9]+` at the beginning of a text, or NULL."""
    to.whole = text
    while text < end and _digit(text[0]):
        text += 1
    to.wholes = text - to.whole
    if text < end and text[0] == c'.':
        text += 1
    to.fraction = text
    while text < end and _digit(text[0]):
        text += 1
    to.fractions = text - to.fraction
    return text if to.wholes or to.fractions else NULL


cdef bint read_decimal(const char* text, uint32_t size, int128* to, double* real) noexcept nogil:
    """`[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)` with at most 18 fractional digits and 128 bits.

    `real` is the nearest double.
    """
    cdef const char* end = text + size
    cdef bint negative = text[0] == c'-'
    if negative or text[0] == c'+':
        text += 1
    if end - text > EXACT_DIGITS or not _read_short(text, end, to, real):
        return _read_long(text, end, negative, to, real)
    if negative and to[0]:
        to[0] = -to[0]
        real[0] = -real[0]
    return True


cdef bint _read_short(const char* text, const char* end, int128* to, double* real) noexcept nogil:
    """A short decimal that begins with a digit; its numerator and denominator are exact doubles."""
    cdef const char* fraction = end
    cdef int64_t joined = 0
    cdef uint32_t digit
    if text == end or not _digit(text[0]):
        return False
    while text < end:
        digit = <uint32_t>text[0] - <uint32_t>c'0'
        text += 1
        if digit <= 9:
            joined = 10 * joined + digit
        elif (text - 1)[0] == c'.' and fraction == end:
            fraction = text
        else:
            return False
    real[0] = <double>joined / <double>TENS[end - fraction]
    to[0] = <int128>joined * <int128>TENS[18 - (end - fraction)]
    return True


cdef bint _read_long(
    const char* text, const char* end, bint negative, int128* to, double* real
) noexcept nogil:
    cdef Digits digits
    cdef uint128 whole = 0, fraction = 0, limit
    cdef int i
    if split_digits(text, end, &digits) != end:
        return False
    while digits.wholes and digits.whole[0] == c'0':
        digits.whole += 1
        digits.wholes -= 1
    while digits.fractions and digits.fraction[digits.fractions - 1] == c'0':
        digits.fractions -= 1
    if digits.wholes > DECIMAL_DIGITS or digits.fractions > 18:
        return False
    for i in range(digits.wholes):
        whole = 10 * whole + <uint64_t>(digits.whole[i] - c'0')
    for i in range(digits.fractions):
        fraction = 10 * fraction + <uint64_t>(digits.fraction[i] - c'0')
    limit = <uint128>1 << 127
    if whole > limit // <uint128>ATTOS_PER_SECOND:
        return False
    real[0] = ratio_of(whole * TENS[digits.fractions] + fraction, TENS[digits.fractions])
    whole = whole * <uint128>ATTOS_PER_SECOND + fraction * TENS[18 - digits.fractions]
    if not negative:
        limit -= 1
    if whole > limit:
        return False
    to[0] = <int128>whole
    if negative and whole:
        to[0] = <int128>(~whole + 1)
        real[0] = -real[0]
    return True


cdef double ratio_of(uint128 number, uint64_t divisor) noexcept nogil:
    """number / divisor, a power of ten below 2**63, rounded once."""
    cdef int shift
    cdef uint128 quotient
    if number <= EXACT_DOUBLE:
        return <double><uint64_t>number / <double>divisor
    shift = zeros_before(number)
    number <<= shift
    quotient = number // divisor
    # The lowest bit, beyond a double's precision, records whether the quotient is inexact.
    return ldexp(<double>(quotient | (quotient * divisor != number)), -shift)


cdef bint _is_word(const char* text, const char* end, const char* word, int size) noexcept nogil:
    """Whether a text equals a lower-case word, ignoring case."""
    cdef int i
    if end - text != size:
        return False
    for i in range(size):
        if (text[i] | 0x20) != word[i]:
            return False
    return True


cdef bint is_real(const char* text, uint32_t size) noexcept nogil:
    """Whether a text is a float or double in pyoxigraph's lenient syntax."""
    cdef const char* end = text + size
    cdef Digits digits
    if size and (text[0] == c'-' or text[0] == c'+'):
        text += 1
    if _is_word(text, end, b"inf", 3) or _is_word(text, end, b"nan", 3):
        return True
    if _is_word(text, end, b"infinity", 8):
        return True
    text = split_digits(text, end, &digits)
    if text == NULL:
        return False
    if text == end:
        return True
    if text[0] != c'e' and text[0] != c'E':
        return False
    text += 1
    if text < end and (text[0] == c'-' or text[0] == c'+'):
        text += 1
    if text == end:
        return False
    while text < end and _digit(text[0]):
        text += 1
    return text == end


cdef bint read_real(const char* text, uint32_t size, double* to) noexcept nogil:
    """Parse a text for which `is_real` is true; False if 128 bits do not suffice to round it."""
    cdef const char* end = text + size
    cdef bint negative = text[0] == c'-'
    cdef Digits digits
    cdef uint64_t number = 0
    cdef int exponent = 0, i
    if negative or text[0] == c'+':
        text += 1
    if (text[0] | 0x20) == c'n':
        to[0] = NAN
        return True
    if (text[0] | 0x20) == c'i':
        to[0] = -INFINITY if negative else INFINITY
        return True
    text = split_digits(text, end, &digits)
    while digits.wholes and digits.whole[0] == c'0':
        digits.whole += 1
        digits.wholes -= 1
    while digits.fractions and digits.fraction[digits.fractions - 1] == c'0':
        digits.fractions -= 1
    if digits.wholes + digits.fractions > 19:
        return False
    for i in range(digits.wholes):
        number = 10 * number + <uint64_t>(digits.whole[i] - c'0')
    for i in range(digits.fractions):
        number = 10 * number + <uint64_t>(digits.fraction[i] - c'0')
    if text < end and not _read_exponent(text + 1, end, &exponent):
        return False
    if number == 0:
        to[0] = 0.0
    elif not scaled_real(number, exponent - <int>digits.fractions, to):
        return False
    if negative:
        to[0] = -to[0]
    return True


cdef bint _read_exponent(const char* text, const char* end, int* to) noexcept nogil:
    cdef bint negative = text[0] == c'-'
    if negative or text[0] == c'+':
        text += 1
    while text < end and text[0] == c'0':
        text += 1
    if end - text > 4:
        return False
    to[0] = 0
    while text < end:
        to[0] = 10 * to[0] + text[0] - c'0'
        text += 1
    if negative:
        to[0] = -to[0]
    return True


cdef bint scaled_real(uint64_t number, int exponent, double* to) noexcept nogil:
    """number * 10**exponent, rounded once; False for exponents beyond 19."""
    cdef uint128 wide, quotient
    cdef int shift
    if exponent < -19 or exponent > 19:
        return False
    if exponent >= 0:
        wide = <uint128>number * TENS[exponent]
        to[0] = <double>wide
        return True
    if number <= <uint64_t>1 << 53 and exponent >= -15:
        to[0] = <double>number / <double>TENS[-exponent]    # both are exact
        return True
    # The quotient has at least 64 bits; the lost bits only decide ties.
    shift = 64 + leading_zeros(number)
    wide = <uint128>number << shift
    quotient = wide // TENS[-exponent]
    if quotient * TENS[-exponent] != wide:
        quotient |= 1
    to[0] = ldexp(<double>quotient, -shift)
    return True


# ------------------------------------------------------------------ calendar


cdef inline bint _is_leap(int64_t year) noexcept nogil:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


cdef int days_in_month(int64_t year, int month) noexcept nogil:
    """The days of a month of the proleptic Gregorian calendar."""
    if month == 2:
        return 29 if _is_leap(year) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef int64_t days_before(int64_t year, int month, int day) noexcept nogil:
    """Days from 0001-01-01 to a date; the year has at most 17 digits."""
    return _days_before(year, month, day)


cdef inline int64_t _days_before(int64_t year, int month, int day) noexcept nogil:
    cdef int64_t past = year - 1
    cdef int64_t eras = past // 400
    cdef int64_t days
    if past % 400 < 0:
        eras -= 1
    past -= 400 * eras
    days = DAYS_OF_ERA * eras + 365 * past + past // 4 - past // 100
    days += (367 * month - 362) // 12   # the days of the earlier months if February had 30
    if month > 2:
        days -= 1 if _is_leap(year) else 2
    return days + day - 1


cdef void civil(int64_t days, int64_t* year, int* month, int* day) noexcept nogil:
    """The date `days` after 0001-01-01: the inverse of `days_before`."""
    cdef int64_t era = days // DAYS_OF_ERA, rest = days % DAYS_OF_ERA
    cdef int64_t century, four, single
    if rest < 0:
        rest += DAYS_OF_ERA
        era -= 1
    century = rest // 36524
    if century > 3:
        century = 3
    rest -= century * 36524
    four = rest // 1461
    rest -= four * 1461
    single = rest // 365
    if single > 3:
        single = 3
    rest -= single * 365
    year[0] = 400 * era + 100 * century + 4 * four + single + 1
    month[0] = 1
    while rest >= days_in_month(year[0], month[0]):
        rest -= days_in_month(year[0], month[0])
        month[0] += 1
    day[0] = <int>rest + 1


# ------------------------------------------------------------------ dates and times


cdef struct DateTime:
    int64_t days        # from 0001-01-01 to the date
    int seconds         # of the day: 86400 at 24:00:00
    uint64_t fraction   # of a second, in atto-seconds
    int16_t zone        # in minutes; NO_ZONE without one


cdef bint _long_year(const char* text) noexcept nogil:
    """Whether a text begins with a year of PLAIN_YEAR or more digits."""
    cdef int i
    if text[0] == c'-':
        text += 1
    for i in range(PLAIN_YEAR):
        if not _digit(text[i]):
            return False
    return True


cdef inline int _two(const char* text) noexcept nogil:
    """The value of two characters; -1 if one is no digit."""
    if not _digit(text[0]) or not _digit(text[1]):
        return -1
    return 10 * (text[0] - c'0') + text[1] - c'0'


cdef inline bint _scan(
    const char* text, const char* end, bint timed, DateTime* to
) noexcept nogil:
    """Read a date, or with `timed` a dateTime, whose year has at most PLAIN_YEAR digits."""
    cdef const char* rest = _scan_plain(text, end, to) if timed else NULL
    if rest == NULL:
        return _scan_any(text, end, timed, to)
    return _scan_zone(rest, end, &to.zone)


cdef inline const char* _scan_plain(
    const char* text, const char* end, DateTime* to
) noexcept nogil:
    """Read `YYYY-MM-DDThh:mm:ss[.s+]`: its end, NULL if `_scan_any` decides."""
    cdef int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0
    if end - text < 19 or not plain_date_time(
        text, &year, &month, &day, &hour, &minute, &second
    ):
        return NULL
    if (
        month < 1 or month > 12 or day < 1 or hour > 23 or minute > 59 or second > 59
        or day > 28 and day > days_in_month(year, month)
    ):
        return NULL
    to.days = _days_before(year, month, day)
    to.seconds = 3600 * hour + 60 * minute + second
    return _scan_fraction(text + 19, end, &to.fraction)


cdef bint _scan_any(
    const char* text, const char* end, bint timed, DateTime* to
) noexcept nogil:
    cdef const char* start
    cdef bint negative = text < end and text[0] == c'-'
    cdef int64_t year = 0
    cdef int month, day
    if negative:
        text += 1
    start = text
    while text < end and _digit(text[0]):
        if text - start == PLAIN_YEAR:
            return False
        year = 10 * year + text[0] - c'0'
        text += 1
    if text - start < 4 or (start[0] == c'0' and text - start > 4):
        return False
    if negative:
        year = -year
    if end - text < 6 or text[0] != c'-' or text[3] != c'-':
        return False
    month = _two(text + 1)
    day = _two(text + 4)
    if month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return False
    to.days = _days_before(year, month, day)
    to.seconds = 0
    to.fraction = 0
    text += 6
    if timed:
        text = _scan_clock(text, end, to)
    return text != NULL and _scan_zone(text, end, &to.zone)


cdef inline const char* _scan_clock(
    const char* text, const char* end, DateTime* to
) noexcept nogil:
    """Parse `Thh:mm:ss[.s+]`; returns its end, or NULL if it is ill-formed or below 10⁻¹⁸ s."""
    cdef int hour, minute, second
    if end - text < 9 or text[0] != c'T' or text[3] != c':' or text[6] != c':':
        return NULL
    hour = _two(text + 1)
    minute = _two(text + 4)
    second = _two(text + 7)
    if not (0 <= hour <= 24 and 0 <= minute < 60 and 0 <= second < 60):
        return NULL
    text = _scan_fraction(text + 9, end, &to.fraction)
    if hour == 24 and (minute or second or to.fraction):
        return NULL
    to.seconds = 3600 * hour + 60 * minute + second
    return text


cdef inline const char* _scan_fraction(
    const char* text, const char* end, uint64_t* to
) noexcept nogil:
    """Read `.s+` or nothing: its end, NULL if there is no digit or it is finer than 10⁻¹⁸ s."""
    cdef const char* start
    cdef int places
    to[0] = 0
    if text == end or text[0] != c'.':
        return text
    text += 1
    start = text
    while text < end and _digit(text[0]):
        if text - start < 18:
            to[0] = 10 * to[0] + <uint64_t>(text[0] - c'0')
        elif text[0] != c'0':
            return NULL
        text += 1
    if text == start:
        return NULL
    places = <int>(text - start) if text - start < 18 else 18
    to[0] *= TENS[18 - places]
    return text


cdef inline bint _scan_zone(const char* text, const char* end, int16_t* to) noexcept nogil:
    """Parse the rest of a text as `Z`, `+hh:mm`, `-hh:mm` or nothing."""
    cdef int hour, minute
    if text == end:
        to[0] = NO_ZONE
        return True
    if end - text == 1 and text[0] == c'Z':
        to[0] = 0
        return True
    if end - text != 6 or text[3] != c':' or (text[0] != c'+' and text[0] != c'-'):
        return False
    hour = _two(text + 1)
    minute = _two(text + 4)
    if hour < 0 or minute < 0 or minute > 59 or 60 * hour + minute > 14 * 60:
        return False
    to[0] = <int16_t>(60 * hour + minute)
    if text[0] == c'-':
        to[0] = -to[0]
    return True


cdef bint read_point(
    TermRecord* to, const Datatype* datatype, const char* text, uint32_t size
) noexcept nogil:
    """A dateTime or date whose year has at most PLAIN_YEAR digits."""
    cdef DateTime found
    if not _scan(text, text + size, datatype.form == Form.DATE_TIME, &found):
        return False
    to.exact = found.days * ATTOS_PER_DAY + found.seconds * ATTOS_PER_SECOND + found.fraction
    to.zone = found.zone
    if to.zone != NO_ZONE:
        to.exact -= to.zone * ATTOS_PER_MINUTE
    return True


# ------------------------------------------------------------------ timestamps


cdef bint timestamp_of(
    const char* text, uint32_t size, uint32_t lexical, int64_t factor,
    int64_t* micros, uint8_t* dated,
) noexcept nogil:
    """The microseconds that a literal gives as a timestamp, as `time.from_literal` reads it.

    `text` is the whole literal, its lexical form of `lexical` bytes. A number counts units of
    `factor` microseconds from zero, a dateTime is relative to 1970-01-01T00:00:00Z. False where
    `time` decides: white space, exponents, years outside of 1 to 9999, times finer than a
    microsecond, numbers beyond 64 bits, and whatever is no timestamp. Cost: linear in the text.
    """
    cdef const Datatype* datatype
    cdef const char* end = text + 1 + lexical
    if text[0] != c'"' or size < lexical + 6 or end[1] != c'^':
        return False
    if size == lexical + DATE_TIME_SIZE + 6 and memcmp(
        end + 4, b"http://www.w3.org/2001/XMLSchema#dateTime", DATE_TIME_SIZE
    ) == 0:
        dated[0] = True
        return _date_micros(text + 1, end, False, micros)
    datatype = known_datatype(end + 4, size - lexical - 6)
    if datatype == NULL:
        return False
    dated[0] = datatype.form == Form.DATE_TIME
    if dated[0]:
        return _date_micros(text + 1, end, datatype.size == STAMP_SIZE, micros)
    if datatype.kind == Kind.INTEGER and datatype.size == 7:  # integer: others have a range
        return _number_micros(text + 1, end, False, factor, micros)
    if Kind.DECIMAL <= datatype.kind <= Kind.DOUBLE:
        return _number_micros(text + 1, end, True, factor, micros)
    return False


cdef bint _date_micros(
    const char* text, const char* end, bint needs_zone, int64_t* micros
) noexcept nogil:
    cdef DateTime found
    cdef int zone = 0
    if not _scan(text, end, True, &found):
        return False
    if not 0 <= found.days < LAST_DAY or found.fraction % MICROSECOND:
        return False
    if found.zone != NO_ZONE:
        zone = found.zone
    elif needs_zone:
        return False
    micros[0] = (
        ((found.days - EPOCH_DAY) * 86400 + found.seconds - 60 * zone) * 1000000
        + <int64_t>(found.fraction // MICROSECOND)
    )
    return True


cdef bint _number_micros(
    const char* at, const char* end, bint broken, int64_t factor, int64_t* micros
) noexcept nogil:
    """`broken`: the number may have a fraction."""
    cdef bint negative = False
    cdef int64_t whole = 0, part = 0, scale = 1
    cdef const char* begin
    if at < end and (at[0] == c'-' or at[0] == c'+'):
        negative = at[0] == c'-'
        at += 1
    begin = at
    while at < end and _digit(at[0]):
        if at - begin == NARROW:
            return False
        whole = 10 * whole + (at[0] - c'0')
        at += 1
    if at == begin:
        return False
    if broken and at < end and at[0] == c'.':
        at += 1
        begin = at
        while at < end and _digit(at[0]):
            if at - begin == NARROW:
                return False
            part = 10 * part + (at[0] - c'0')
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


# ------------------------------------------------------------------ for tests


def py_timestamp(bytes text not None, uint32_t lexical, int64_t factor=1000000):
    """`timestamp_of`: (microseconds, whether of a date), None where `time` decides."""
    cdef int64_t micros = 0
    cdef uint8_t dated = 0
    if not timestamp_of(text, <uint32_t>len(text), lexical, factor, &micros, &dated):
        return None
    return micros, bool(dated)


def py_days(int64_t year, int month, int day):
    """`days_before`."""
    return days_before(year, month, day)


def py_civil(int64_t days):
    """`civil`: (year, month, day)."""
    cdef int64_t year
    cdef int month, day
    civil(days, &year, &month, &day)
    return year, month, day


def decoded(EventBatch batch not None, term_t term):
    """(kind, exact, real, form, zone, months) of a batch's term; None for fields it lacks."""
    cdef Numeral numeral
    cdef TermRecord* record = <TermRecord*>written_record(batch, term, &numeral)
    cdef int kind
    if record.kind == UNDECODED:
        decode_record(record)
    kind = record.kind
    timed = kind == Kind.POINT or kind == Kind.SPAN
    return (
        kind,
        <object>record.exact if timed or Kind.BOOLEAN <= kind <= Kind.DECIMAL else None,
        record.further.real if kind == Kind.FLOAT or kind == Kind.DOUBLE else None,
        form_name(record.form) if timed else None,
        record.zone if kind == Kind.POINT and record.zone != NO_ZONE else None,
        record.further.months if kind == Kind.SPAN else None,
    )
