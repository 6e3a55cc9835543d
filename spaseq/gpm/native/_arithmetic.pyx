# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Arithmetic, rounding and casts on operands: `_values.add` and its like in C.

Integers have 64 bits, decimals 128 with 18 digits of fraction; products and quotients of
decimals are made with 256, the latter cut. What does not fit, and what a WIDE operand takes part
in, is left to `_values` and `conversion`, with the GIL. Invariant: results are those of these two;
what has no value there, such as a type error, is an ERROR. Cost: some nanoseconds; at most a
microsecond for quotients of long decimals; some microseconds for what is left to Python.
"""

from libc.math cimport ceil, copysign, fabs, floor, isfinite
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from spaseq.gpm.native._comparison cimport is_number, to_double, to_float, truth_of
from spaseq.gpm.native._moments cimport shift
from spaseq.gpm.native._operators cimport (
    ERROR,
    load_value,
    set_canonical,
    set_computed,
    set_string,
    set_truth,
    value_of,
)
from spaseq.rdf._literals cimport SECOND, Form, decode_text
from spaseq.rdf._terms cimport NO_ZONE, TermRecord, int128
from spaseq.rdf._values cimport Kind

from spaseq.rdf import _values, conversion

cdef enum Wide:
    ADD
    SUBTRACT
    MULTIPLY
    DIVIDE
    MINUS
    PLUS
    ABSOLUTE
    CEILING
    FLOOR
    ROUNDED

# What does it in Python, by its `Wide`.
cdef tuple IN_PYTHON = (
    _values.add, _values.subtract, _values.multiply, _values.divide, conversion.negate,
    conversion.plus, conversion.absolute, conversion.ceiling, conversion.floored,
    conversion.rounded,
)

cdef extern from *:
    """
    typedef unsigned __int128 spaseq_uint128;

    static inline int spaseq_add(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_add_overflow(a, b, to);
    }
    static inline int spaseq_subtract(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_sub_overflow(a, b, to);
    }
    static inline int spaseq_multiply(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_mul_overflow(a, b, to);
    }
    static inline int spaseq_months(int64_t a, int64_t b, int sign, int64_t *to) {
        return sign < 0 ? __builtin_sub_overflow(a, b, to) : __builtin_add_overflow(a, b, to);
    }

    static inline spaseq_uint128 spaseq_size(spaseq_int128 a) {
        return a < 0 ? -(spaseq_uint128)a : (spaseq_uint128)a;
    }

    /* a * b / d, cut; *over is set where that does not fit 128 bits. d is not zero. */
    static spaseq_uint128 spaseq_ratio(
        spaseq_uint128 a, spaseq_uint128 b, spaseq_uint128 d, int *over
    ) {
        spaseq_uint128 low = (spaseq_uint128)(uint64_t)a * (uint64_t)b;
        spaseq_uint128 middle = (spaseq_uint128)(uint64_t)a * (uint64_t)(b >> 64);
        spaseq_uint128 other = (spaseq_uint128)(uint64_t)(a >> 64) * (uint64_t)b;
        spaseq_uint128 high = (spaseq_uint128)(uint64_t)(a >> 64) * (uint64_t)(b >> 64);
        spaseq_uint128 quotient = 0;
        int bit;
        middle += low >> 64;
        high += middle >> 64;
        other += (uint64_t)middle;
        high += other >> 64;
        low = other << 64 | (uint64_t)low;
        *over = high >= d;
        if (*over) return 0;
        if (high == 0) return low / d;
        if (d >> 64 == 0) {
            spaseq_uint128 part = high << 64 | low >> 64;
            quotient = part / d << 64;
            part = part % d << 64 | (uint64_t)low;
            return quotient | part / d;
        }
        for (bit = 127; bit >= 0; bit--) {
            int carry = (int)(high >> 127);
            high = high << 1 | (low >> bit & 1);
            quotient <<= 1;
            if (carry || high >= d) {
                high -= d;
                quotient |= 1;
            }
        }
        return quotient;
    }
    """
    ctypedef unsigned long long uint128 "spaseq_uint128"
    bint add_over "spaseq_add"(int128 a, int128 b, int128* to) noexcept nogil
    bint subtract_over "spaseq_subtract"(int128 a, int128 b, int128* to) noexcept nogil
    bint multiply_over "spaseq_multiply"(int128 a, int128 b, int128* to) noexcept nogil
    bint months_over "spaseq_months"(int64_t a, int64_t b, int sign, int64_t* to) noexcept nogil
    uint128 size_of "spaseq_size"(int128 a) noexcept nogil
    uint128 ratio "spaseq_ratio"(uint128 a, uint128 b, uint128 d, int* over) noexcept nogil

cdef double LONGEST_WHOLE = 1.8e20      # no decimal is so great


# ------------------------------------------------------------------ results


cdef inline bint _set_integer(Operand* to, int128 number) noexcept nogil:
    """Whether that fits; else the operand stays."""
    if number != <int64_t>number:
        return False
    set_computed(to, Kind.INTEGER)
    to.exact = number
    return True


cdef inline bint _set_decimal(Operand* to, int128 number, bint over) noexcept nogil:
    """Whether that fits, as `over` tells; else the operand stays."""
    if over:
        return False
    set_computed(to, Kind.DECIMAL)
    to.exact = number
    return True


cdef int _ask_of_two(Wide how, Operand* a, const Operand* b, Arena* scratch) except -2 with gil:
    return load_value(a, IN_PYTHON[how](value_of(a), value_of(b)), scratch)


cdef int _ask(Wide how, Operand* a, Arena* scratch) except -2 with gil:
    return load_value(a, IN_PYTHON[how](value_of(a)), scratch)


cdef inline void _set_real(Operand* to, uint8_t kind, double real) noexcept nogil:
    set_computed(to, kind)
    to.real = <float>real if kind == Kind.FLOAT else real


cdef bint _set_ratio(Operand* to, int128 a, int128 b, int128 d, bint cut) noexcept nogil:
    """The decimal a * b / d, cut towards zero.

    Returns whether it fits and, unless it may be `cut`, is exact.
    """
    cdef int over = 0
    cdef uint128 size = ratio(size_of(a), size_of(b), size_of(d), &over)
    cdef bint negative = (a < 0) != (b < 0)
    cdef uint128 limit = <uint128>1 << 127
    if d < 0:
        negative = not negative
    if over or size > limit or (size == limit and not negative):
        return False
    # What was cut is less than d, so its lower 128 bits are all of it.
    if not cut and size * size_of(d) != size_of(a) * size_of(b):
        return False
    return _set_decimal(to, <int128>(~size + 1) if negative else <int128>size, False)


cdef inline int128 _scaled(const Operand* of) noexcept nogil:
    if of.kind == Kind.DECIMAL:
        return of.exact
    return of.exact * SECOND


# ------------------------------------------------------------------ + - * /


cdef int add(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    cdef bint over
    cdef int128 sum = 0
    if is_number(a) and is_number(b):
        if a.kind == Kind.INTEGER and b.kind == Kind.INTEGER:
            if not _set_integer(a, a.exact + b.exact):
                return _ask_of_two(Wide.ADD, a, b, scratch)
        elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
            over = add_over(_scaled(a), _scaled(b), &sum)
            if not _set_decimal(a, sum, over):
                return _ask_of_two(Wide.ADD, a, b, scratch)
        elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
            return _ask_of_two(Wide.ADD, a, b, scratch)
        elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
            _set_real(a, Kind.DOUBLE, to_double(a) + to_double(b))
        else:
            _set_real(a, Kind.FLOAT, to_float(a) + to_float(b))
        return 0
    if a.kind == Kind.SPAN and b.kind == Kind.SPAN:
        _add_spans(a, b, 1)
        return 0
    if a.kind == Kind.SPAN:
        return shift(a, b, a, 1)
    return shift(a, a, b, 1)


cdef int subtract(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    cdef bint over
    cdef int128 difference = 0
    if is_number(a) and is_number(b):
        if a.kind == Kind.INTEGER and b.kind == Kind.INTEGER:
            if not _set_integer(a, a.exact - b.exact):
                return _ask_of_two(Wide.SUBTRACT, a, b, scratch)
        elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
            over = subtract_over(_scaled(a), _scaled(b), &difference)
            if not _set_decimal(a, difference, over):
                return _ask_of_two(Wide.SUBTRACT, a, b, scratch)
        elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
            return _ask_of_two(Wide.SUBTRACT, a, b, scratch)
        elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
            _set_real(a, Kind.DOUBLE, to_double(a) - to_double(b))
        else:
            _set_real(a, Kind.FLOAT, to_float(a) - to_float(b))
    elif a.kind == Kind.SPAN and b.kind == Kind.SPAN:
        _add_spans(a, b, -1)
    elif a.kind == Kind.POINT and b.kind == Kind.POINT:
        if a.form != b.form or a.form > Form.TIME or (a.zone == NO_ZONE) != (b.zone == NO_ZONE):
            a.kind = ERROR
            return 0
        over = subtract_over(a.exact, b.exact, &difference)
        set_computed(a, ERROR if over else Kind.SPAN)
        a.exact = difference
        a.months = 0
        a.form = Form.DAY_TIME_DURATION
    else:
        return shift(a, a, b, -1)
    return 0


cdef void _add_spans(Operand* a, const Operand* b, int sign) noexcept nogil:
    cdef int64_t months = 0
    cdef int128 seconds = 0
    cdef bint over = months_over(a.months, b.months, sign, &months)
    if sign < 0:
        over = subtract_over(a.exact, b.exact, &seconds) or over
    else:
        over = add_over(a.exact, b.exact, &seconds) or over
    # A duration is all positive or all negative.
    if over or (months < 0 < seconds) or (seconds < 0 < months):
        a.kind = ERROR
        return
    set_computed(a, Kind.SPAN)
    a.months = months
    a.exact = seconds
    if a.form != b.form:
        a.form = Form.DURATION


cdef int multiply(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    if not (is_number(a) and is_number(b)):
        a.kind = ERROR
    elif a.kind == Kind.INTEGER and b.kind == Kind.INTEGER:
        if not _set_integer(a, a.exact * b.exact):
            return _ask_of_two(Wide.MULTIPLY, a, b, scratch)
    elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
        if not _set_ratio(a, _scaled(a), _scaled(b), SECOND, False):
            return _ask_of_two(Wide.MULTIPLY, a, b, scratch)
    elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
        return _ask_of_two(Wide.MULTIPLY, a, b, scratch)
    elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
        _set_real(a, Kind.DOUBLE, to_double(a) * to_double(b))
    else:
        _set_real(a, Kind.FLOAT, to_float(a) * to_float(b))
    return 0


cdef int divide(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    cdef bint fits
    if not (is_number(a) and is_number(b)):
        a.kind = ERROR
    elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
        if b.exact == 0:
            a.kind = ERROR
        else:
            if a.kind == b.kind:
                fits = _set_ratio(a, a.exact, SECOND, b.exact, True)
            else:
                fits = _set_ratio(a, _scaled(a), SECOND, _scaled(b), True)
            if not fits:
                return _ask_of_two(Wide.DIVIDE, a, b, scratch)
    elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
        return _ask_of_two(Wide.DIVIDE, a, b, scratch)
    elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
        _set_real(a, Kind.DOUBLE, to_double(a) / to_double(b))
    else:
        _set_real(a, Kind.FLOAT, to_float(a) / to_float(b))
    return 0


# ------------------------------------------------------------------ one operand


cdef int negate(Operand* a, Arena* scratch) except -2 nogil:
    """Unary `-`."""
    cdef bint over
    cdef int64_t months = 0
    cdef int128 number = 0
    if a.kind == Kind.INTEGER:
        if not _set_integer(a, -a.exact):
            return _ask(Wide.MINUS, a, scratch)
    elif a.kind == Kind.DECIMAL:
        over = subtract_over(0, a.exact, &number)
        if not _set_decimal(a, number, over):
            return _ask(Wide.MINUS, a, scratch)
    elif a.kind == Kind.WIDE:
        return _ask(Wide.MINUS, a, scratch)
    elif a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        _set_real(a, a.kind, -a.real)
    elif a.kind == Kind.SPAN:
        over = months_over(0, a.months, -1, &months)
        over = subtract_over(0, a.exact, &number) or over
        set_computed(a, ERROR if over else Kind.SPAN)
        a.months = months
        a.exact = number
    else:
        a.kind = ERROR
    return 0


cdef int plus(Operand* a, Arena* scratch) except -2 nogil:
    """Unary `+`: the value itself, of a plain numeric type."""
    if a.kind == Kind.INTEGER:
        _set_integer(a, a.exact)
    elif a.kind == Kind.WIDE:
        return _ask(Wide.PLUS, a, scratch)
    elif not is_number(a) and a.kind != Kind.SPAN:
        a.kind = ERROR
    return 0


cdef int absolute(Operand* a, Arena* scratch) except -2 nogil:
    """ABS."""
    if a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        _set_real(a, a.kind, fabs(a.real))
    elif not is_number(a):
        a.kind = ERROR
    elif a.kind == Kind.WIDE:
        return _ask(Wide.ABSOLUTE, a, scratch)
    elif a.exact < 0:
        return negate(a, scratch)
    else:
        set_computed(a, a.kind)
    return 0


cdef enum Rounding:
    UP
    DOWN
    NEAREST


cdef int ceiling(Operand* a, Arena* scratch) except -2 nogil:
    """CEIL."""
    return 0 if _round(a, Rounding.UP) else _ask(Wide.CEILING, a, scratch)


cdef int floored(Operand* a, Arena* scratch) except -2 nogil:
    """FLOOR."""
    return 0 if _round(a, Rounding.DOWN) else _ask(Wide.FLOOR, a, scratch)


cdef int rounded(Operand* a, Arena* scratch) except -2 nogil:
    """ROUND: halves go up, towards positive infinity."""
    return 0 if _round(a, Rounding.NEAREST) else _ask(Wide.ROUNDED, a, scratch)


cdef bint _round(Operand* a, Rounding how) noexcept nogil:
    """Whether that was done, with a value or an ERROR; else the operand stays."""
    cdef double real
    cdef int128 whole, rest
    cdef bint over
    if a.kind == Kind.INTEGER:
        _set_integer(a, a.exact)
    elif a.kind == Kind.DECIMAL:
        whole = a.exact // SECOND
        rest = a.exact % SECOND
        if rest < 0:
            rest = rest + SECOND
            whole = whole - 1
        if (how == Rounding.UP and rest) or (how == Rounding.NEAREST and rest >= SECOND // 2):
            whole = whole + 1
        over = multiply_over(whole, SECOND, &rest)
        return _set_decimal(a, rest, over)
    elif a.kind == Kind.WIDE:
        return False
    elif a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        real = a.real
        if isfinite(real):
            # What is not finite stays, and zero keeps the sign. The fraction is exact.
            if how == Rounding.UP:
                real = ceil(a.real)
            else:
                real = floor(a.real)
                if how == Rounding.NEAREST and a.real - real >= 0.5:
                    real += 1.0
            real = copysign(fabs(real), a.real)
        _set_real(a, a.kind, real)
    else:
        a.kind = ERROR
    return True


# ------------------------------------------------------------------ casts


cdef int cast(Operand* a, const Datatype* datatype, Arena* scratch) except -2 nogil:
    """The cast to an XSD datatype: 1, or 0 where `conversion.cast` is to be asked."""
    cdef TermRecord record
    cdef int kind = datatype.kind
    if kind == Kind.STRING:
        if a.kind == Kind.BLANK:
            a.kind = ERROR
        elif a.kind <= Kind.LANG:
            set_string(a, a.text, a.size)
        else:
            set_canonical(a, a, scratch)
    elif a.kind == Kind.STRING:
        memset(&record, 0, sizeof(TermRecord))
        decode_text(&record, datatype, a.text, a.size)
        if record.kind == Kind.WIDE:
            return 0
        set_computed(a, ERROR if record.kind == Kind.OTHER else record.kind)
        a.exact = record.exact
        a.real = record.further.real
        a.months = record.further.months
        a.form = record.form
        a.zone = record.zone
    elif kind == Kind.POINT or kind == Kind.SPAN:
        if a.kind == kind:
            return 0
        a.kind = ERROR
    elif not Kind.BOOLEAN <= a.kind <= Kind.DOUBLE:
        a.kind = ERROR
    elif kind == Kind.BOOLEAN:
        set_truth(a, truth_of(a) == 1)
    elif kind == Kind.DOUBLE:
        _set_real(a, kind, to_double(a))
    elif kind == Kind.FLOAT:
        _set_real(a, kind, to_float(a))
    elif a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        return _cut(a, kind)
    elif a.kind == Kind.WIDE:
        return 0
    elif kind == Kind.DECIMAL:
        _set_decimal(a, _scaled(a), False)
    else:
        return _set_integer(a, a.exact // SECOND if a.kind == Kind.DECIMAL else a.exact)
    return 1


cdef bint _cut(Operand* a, int kind) noexcept nogil:
    """A float or double as an integer or decimal: whether that was done; else it stays."""
    cdef int128 number = 0
    cdef bint over
    cdef double real = a.real
    if not isfinite(real):
        a.kind = ERROR
        return True
    if not fabs(real) < LONGEST_WHOLE:
        return False
    if kind == Kind.INTEGER:
        return _set_integer(a, <int128>real)
    if floor(real) == real:
        over = multiply_over(<int128>real, SECOND, &number)
        return _set_decimal(a, number, over)
    number = <int128>(real * 1e18)
    return _set_decimal(a, number, number == 0)
