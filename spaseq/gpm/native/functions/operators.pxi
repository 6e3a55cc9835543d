"""The operators of expressions, in C on operands: `_values.equals`, `_values.add` and the like.

`binary` and `unary` run one instruction of the stack machine. Integers have 64 bits, decimals 128
with 18 fraction digits; products and quotients of decimals are computed with 256 bits, and
quotients are truncated. With the GIL, `_values`, `conversion` and `calendar` compute results that
do not fit and operations with a WIDE operand: arithmetic, the order of WIDE numbers whose nearest
doubles are equal, and the order of durations that differ in both months and seconds.

Invariant: results are those of the Python functions, even for unordered and incomparable pairs. A
type error, or an error of the Python function, is an ERROR. Comparisons intern no term and create
no text. Cost: some nanoseconds; up to a microsecond for quotients of long decimals; linear in the
size of long texts; some microseconds for computations in Python.
Source: SPARQL 1.1 section 17.3; XPath and XQuery Functions and Operators 3.1, sections 4 and 10.
"""

from libc.math cimport fabs, floor, isfinite
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memset

from spaseq.gpm.native import bytecode
from spaseq.gpm.native.enums import check_enum
from spaseq.rdf import conversion
from spaseq.rdf.calendar import compare_spans
from spaseq.rdf.native import _values
from spaseq.rdf.native._literals cimport (
    ATTOS_PER_HOUR,
    ATTOS_PER_SECOND,
    Form,
    decode_text,
    ratio_of,
    uint128,
)
from spaseq.rdf.native._terms cimport NO_ZONE, PARTS_END, is_triple, second_part, third_part

cdef extern from *:
    """
    static inline int spaseq_add(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_add_overflow(a, b, to);
    }
    static inline int spaseq_subtract(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_sub_overflow(a, b, to);
    }
    static inline int spaseq_multiply(spaseq_int128 a, spaseq_int128 b, spaseq_int128 *to) {
        return __builtin_mul_overflow(a, b, to);
    }
    """
    # The result in `to`; true if it does not fit in 128 bits.
    bint add_over "spaseq_add"(int128 a, int128 b, int128* to) noexcept nogil
    bint subtract_over "spaseq_subtract"(int128 a, int128 b, int128* to) noexcept nogil
    bint multiply_over "spaseq_multiply"(int128 a, int128 b, int128* to) noexcept nogil


cdef inline bint is_text(const Operand* of) noexcept nogil:
    return of.kind == Kind.STRING or of.kind == Kind.LANG


cdef inline bint set_integer(Operand* to, int128 number) noexcept nogil:
    """Set an INTEGER; False, with the operand unchanged, if it does not fit in 64 bits."""
    if number != <int64_t>number:
        return False
    set_computed(to, Kind.INTEGER)
    to.exact = number
    return True


cdef inline bint set_decimal(Operand* to, int128 number, bint over) noexcept nogil:
    """Set a DECIMAL; if its computation overflowed, the operand is unchanged."""
    if over:
        return False
    set_computed(to, Kind.DECIMAL)
    to.exact = number
    return True


cdef inline void set_real(Operand* to, uint8_t kind, double real) noexcept nogil:
    """Set a FLOAT or DOUBLE."""
    set_computed(to, kind)
    to.real = <float>real if kind == Kind.FLOAT else real


check_enum(Operation, bytecode.Operation)

# The Python functions that compute results that do not fit, by operation.
cdef dict IN_PYTHON = {
    Operation.ADD: _values.add,
    Operation.SUBTRACT: _values.subtract,
    Operation.MULTIPLY: _values.multiply,
    Operation.DIVIDE: _values.divide,
    Operation.NEGATE: conversion.negate,
    Operation.PLUS: conversion.plus,
}

cdef extern from *:
    """
    static inline int spaseq_months(int64_t a, int64_t b, int sign, int64_t *to) {
        return sign < 0 ? __builtin_sub_overflow(a, b, to) : __builtin_add_overflow(a, b, to);
    }

    static inline spaseq_uint128 spaseq_size(spaseq_int128 a) {
        return a < 0 ? -(spaseq_uint128)a : (spaseq_uint128)a;
    }

    /* a + b, or the nearest number of 128 bits. */
    static inline spaseq_int128 spaseq_clamped(spaseq_int128 a, spaseq_int128 b) {
        spaseq_int128 sum;
        if (!__builtin_add_overflow(a, b, &sum)) return sum;
        return (spaseq_int128)(((unsigned __int128)1 << 127) - (b > 0));
    }

    /* a * b / d, truncated; *over is set where 128 bits do not hold it. d is not zero. */
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
    bint months_over "spaseq_months"(int64_t a, int64_t b, int sign, int64_t* to) noexcept nogil
    uint128 size_of "spaseq_size"(int128 a) noexcept nogil
    uint128 ratio "spaseq_ratio"(uint128 a, uint128 b, uint128 d, int* over) noexcept nogil
    const uint64_t DECIMAL_UNIT "1000000000000000000u"     # of a decimal: 10**18
    int128 clamped "spaseq_clamped"(int128 a, int128 b) noexcept nogil

# Greater than every decimal of 128 bits with 18 fraction digits.
cdef double DECIMAL_BOUND = 1.8e20


cdef inline int _sign(const Operand* a, const Operand* b) noexcept nogil:
    return (a.exact > b.exact) - (a.exact < b.exact)


cdef inline bint _same_text(const Operand* a, const Operand* b) noexcept nogil:
    return a.size == b.size and memcmp(a.text, b.text, a.size) == 0


cdef inline bint _same_whole(const Operand* a, const Operand* b) noexcept nogil:
    return a.whole_size == b.whole_size and memcmp(a.whole, b.whole, a.whole_size) == 0


cdef int _same_term(const Operand* a, const Operand* b) noexcept nogil:
    """sameTerm of two operands that have their N-Quads texts."""
    if a.term and b.term:
        return a.term == b.term
    return _same_whole(a, b)


# ------------------------------------------------------------------ order of numbers


cdef double to_double(const Operand* of) noexcept nogil:
    """A number (or a boolean's 0 or 1) as the nearest double."""
    if of.kind >= Kind.WIDE:
        return of.real
    if of.kind != Kind.DECIMAL:
        return <double><int64_t>of.exact
    if of.whole != NULL:
        return of.real
    if of.exact < 0:
        return -ratio_of(<uint128>0 - <uint128>of.exact, DECIMAL_UNIT)
    return ratio_of(<uint128>of.exact, DECIMAL_UNIT)


cdef double _to_float(const Operand* of) except? -1 nogil:
    """A number (or a boolean's 0 or 1) as the nearest float, in a double."""
    if of.kind == Kind.INTEGER or of.kind == Kind.BOOLEAN:
        return <float><int64_t>of.exact
    if of.kind == Kind.WIDE:
        with gil:
            return _values.to_float(value_of(of))
    return <float>to_double(of)


cdef int _order_wide(const Operand* a, const Operand* b) except -2 nogil:
    """Order two exact numbers of which one is WIDE: by the nearest doubles, then exactly."""
    cdef double x = to_double(a)
    cdef double y = to_double(b)
    if x != y:
        return (x > y) - (x < y)
    if a.whole != NULL and b.whole != NULL and _same_whole(a, b):
        return 0
    with gil:
        return _values.compare(value_of(a), value_of(b))


cdef int _order_numbers(const Operand* a, const Operand* b) except -2 nogil:
    """-1, 0 or 1; 2 for a NaN, which has no order."""
    cdef double x, y
    cdef int128 m, n
    if a.kind == b.kind and a.kind <= Kind.DECIMAL:
        return _sign(a, b)
    if a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
        m = a.exact
        n = b.exact
        if a.kind == Kind.INTEGER:
            m = m * ATTOS_PER_SECOND
        else:
            n = n * ATTOS_PER_SECOND
        return (m > n) - (m < n)
    if a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
        return _order_wide(a, b)
    if a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
        x = to_double(a)
        y = to_double(b)
    else:
        x = _to_float(a)
        y = _to_float(b)
    if isnan(x) or isnan(y):
        # pyoxigraph compares a value with itself before it compares numbers.
        return 0 if isnan(x) and isnan(y) and a.kind == b.kind else 2
    return (x > y) - (x < y)


# ------------------------------------------------------------------ order of points and spans


cdef int _order_points(const Operand* a, const Operand* b) noexcept nogil:
    """-1, 0 or 1; 2 if it depends on a missing time zone of up to 14 hours either way."""
    if (a.zone == NO_ZONE) == (b.zone == NO_ZONE):
        return _sign(a, b)
    if a.exact < clamped(b.exact, -14 * ATTOS_PER_HOUR):
        return -1
    if a.exact > clamped(b.exact, 14 * ATTOS_PER_HOUR):
        return 1
    return 2


cdef int _order_spans(const Operand* a, const Operand* b) except -2 nogil:
    if a.months == b.months:
        return _sign(a, b)
    if a.exact == b.exact:
        return 1 if a.months > b.months else -1
    with gil:
        found = compare_spans((a.months, <object>a.exact), (b.months, <object>b.exact))
        return 2 if found is None else found


# ------------------------------------------------------------------ all values


cdef int equals(const Operand* a, const Operand* b) except -2 nogil:
    """`=`: 1, 0, or -1 if the values are incomparable."""
    cdef int kind = a.kind, found
    if is_number(a):
        if is_number(b):
            found = _order_numbers(a, b)
            if found != 0:
                return 0
            return not (kind >= Kind.FLOAT and isnan(a.real))
    elif kind == b.kind:
        if kind == Kind.STRING or kind == Kind.IRI or kind == Kind.BLANK:
            if a.term and b.term:
                return a.term == b.term
            return _same_text(a, b)
        if kind == Kind.LANG:
            return _same_text(a, b) and same_tag(a, b)
        if kind == Kind.BOOLEAN:
            return a.exact == b.exact
        if kind == Kind.POINT:
            return a.form == b.form and _order_points(a, b) == 0
        if kind == Kind.SPAN:
            return a.exact == b.exact and a.months == b.months
        if kind == Kind.TRIPLE:
            return _equal_triples(a, b)
        return 1 if _same_whole(a, b) else -1
    # Values of two kinds differ, unless one is a literal of an unknown datatype.
    return -1 if _opaque(a, b) or _opaque(b, a) else 0


cdef bint _load_objects(
    const Operand* a, const Operand* b, Operand* first, Operand* second
) except -2 nogil:
    """Load the objects of two triple terms: whether their subjects and predicates are equal.

    Objects that are triple terms themselves are taken apart as well.
    """
    cdef const char* text = a.whole
    cdef const char* other = b.whole
    cdef uint32_t size = a.whole_size, other_size = b.whole_size, at
    while is_triple(text) and is_triple(other):
        at = third_part(text, second_part(text))
        # No text of two parts is a prefix of another one, since spaces end the parts.
        if other_size < at or memcmp(text, other, at) != 0:
            return False
        text += at
        other += at
        size -= at + PARTS_END
        other_size -= at + PARTS_END
    load_text(first, text, size)
    load_text(second, other, other_size)
    return True


cdef int _equal_triples(const Operand* a, const Operand* b) except -2 nogil:
    """`=` of triple terms: their objects are compared as values, the other parts as terms."""
    cdef Operand first, second
    return equals(&first, &second) if _load_objects(a, b, &first, &second) else 0


cdef int _order_triples(const Operand* a, const Operand* b) except -2 nogil:
    """`<` of triple terms: the order of their objects, if their other parts are equal."""
    cdef Operand first, second
    return order(&first, &second) if _load_objects(a, b, &first, &second) else 2


cdef inline bint _opaque(const Operand* a, const Operand* b) noexcept nogil:
    """Whether `a` has an unknown datatype, so that it may equal the literal `b`."""
    return a.kind == Kind.OTHER and b.kind > Kind.BLANK and b.kind != Kind.LANG


cdef int order(const Operand* a, const Operand* b) except -2 nogil:
    """`<`: -1, 0 or 1; 2 if the values have no order."""
    cdef int kind = a.kind, found
    if is_number(a):
        return _order_numbers(a, b) if is_number(b) else 2
    if kind != b.kind:
        return 2
    if kind == Kind.STRING or (kind == Kind.LANG and same_tag(a, b)):
        found = memcmp(a.text, b.text, a.size if a.size < b.size else b.size)
        if found == 0:
            return (a.size > b.size) - (a.size < b.size)
        return 1 if found > 0 else -1
    if kind == Kind.BOOLEAN:
        return _sign(a, b)
    if kind == Kind.POINT:
        return _order_points(a, b) if a.form == b.form else 2
    if kind == Kind.SPAN:
        return _order_spans(a, b)
    if kind == Kind.OTHER:
        return 0 if _same_whole(a, b) else 2
    if kind == Kind.TRIPLE:
        return _order_triples(a, b)
    return 0 if kind != Kind.LANG and _same_text(a, b) else 2


# ------------------------------------------------------------------ results


cdef int _compute_two_in_python(
    Operation operation, Operand* a, const Operand* b, Arena* scratch
) except -2 with gil:
    return load_value(a, IN_PYTHON[operation](value_of(a), value_of(b)), scratch)


cdef int _compute_in_python(Operation operation, Operand* a, Arena* scratch) except -2 with gil:
    return load_value(a, IN_PYTHON[operation](value_of(a)), scratch)


cdef bint _set_ratio(Operand* to, int128 a, int128 b, int128 d, bint truncated) noexcept nogil:
    """Set the decimal a * b / d, truncated towards zero; False if it does not fit.

    Unless `truncated` is set, it fits only if it is exact.
    """
    cdef int over = 0
    cdef uint128 size = ratio(size_of(a), size_of(b), size_of(d), &over)
    cdef bint negative = (a < 0) != (b < 0)
    cdef uint128 limit = <uint128>1 << 127
    if d < 0:
        negative = not negative
    if over or size > limit or (size == limit and not negative):
        return False
    # The truncated part is less than d, so 128 bits hold it.
    if not truncated and size * size_of(d) != size_of(a) * size_of(b):
        return False
    return set_decimal(to, <int128>(~size + 1) if negative else <int128>size, False)


cdef inline int128 _scaled(const Operand* of) noexcept nogil:
    """An INTEGER or DECIMAL in units of 10**-18."""
    if of.kind == Kind.DECIMAL:
        return of.exact
    return of.exact * ATTOS_PER_SECOND


# ------------------------------------------------------------------ + - * /


cdef int add(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    cdef bint over
    cdef int128 sum = 0
    if is_number(a) and is_number(b):
        if a.kind == Kind.INTEGER and b.kind == Kind.INTEGER:
            if not set_integer(a, a.exact + b.exact):
                return _compute_two_in_python(Operation.ADD, a, b, scratch)
        elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
            over = add_over(_scaled(a), _scaled(b), &sum)
            if not set_decimal(a, sum, over):
                return _compute_two_in_python(Operation.ADD, a, b, scratch)
        elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
            return _compute_two_in_python(Operation.ADD, a, b, scratch)
        elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
            set_real(a, Kind.DOUBLE, to_double(a) + to_double(b))
        else:
            set_real(a, Kind.FLOAT, _to_float(a) + _to_float(b))
        return 0
    if a.kind == Kind.SPAN and b.kind == Kind.SPAN:
        _add_spans(a, b, 1)
        return 0
    if a.kind == Kind.SPAN:
        return shift(a, b, a, 1)
    return shift(a, a, b, 1)


cdef int _subtract(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    cdef bint over
    cdef int128 difference = 0
    if is_number(a) and is_number(b):
        if a.kind == Kind.INTEGER and b.kind == Kind.INTEGER:
            if not set_integer(a, a.exact - b.exact):
                return _compute_two_in_python(Operation.SUBTRACT, a, b, scratch)
        elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
            over = subtract_over(_scaled(a), _scaled(b), &difference)
            if not set_decimal(a, difference, over):
                return _compute_two_in_python(Operation.SUBTRACT, a, b, scratch)
        elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
            return _compute_two_in_python(Operation.SUBTRACT, a, b, scratch)
        elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
            set_real(a, Kind.DOUBLE, to_double(a) - to_double(b))
        else:
            set_real(a, Kind.FLOAT, _to_float(a) - _to_float(b))
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


cdef int _multiply(Operand* a, const Operand* b, Arena* scratch) except -2 nogil:
    if not (is_number(a) and is_number(b)):
        a.kind = ERROR
    elif a.kind == Kind.INTEGER and b.kind == Kind.INTEGER:
        if not set_integer(a, a.exact * b.exact):
            return _compute_two_in_python(Operation.MULTIPLY, a, b, scratch)
    elif a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
        if not _set_ratio(a, _scaled(a), _scaled(b), ATTOS_PER_SECOND, False):
            return _compute_two_in_python(Operation.MULTIPLY, a, b, scratch)
    elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
        return _compute_two_in_python(Operation.MULTIPLY, a, b, scratch)
    elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
        set_real(a, Kind.DOUBLE, to_double(a) * to_double(b))
    else:
        set_real(a, Kind.FLOAT, _to_float(a) * _to_float(b))
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
                fits = _set_ratio(a, a.exact, ATTOS_PER_SECOND, b.exact, True)
            else:
                fits = _set_ratio(a, _scaled(a), ATTOS_PER_SECOND, _scaled(b), True)
            if not fits:
                return _compute_two_in_python(Operation.DIVIDE, a, b, scratch)
    elif a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
        return _compute_two_in_python(Operation.DIVIDE, a, b, scratch)
    elif a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
        set_real(a, Kind.DOUBLE, to_double(a) / to_double(b))
    else:
        set_real(a, Kind.FLOAT, _to_float(a) / _to_float(b))
    return 0


# ------------------------------------------------------------------ one operand


cdef bint negate_exact(Operand* a) noexcept nogil:
    """Negate an INTEGER or DECIMAL; False, with the operand unchanged, if it does not fit."""
    cdef int128 number = 0
    if a.kind == Kind.INTEGER:
        return set_integer(a, -a.exact)
    cdef bint over = subtract_over(0, a.exact, &number)
    return set_decimal(a, number, over)


cdef int _negate(Operand* a, Arena* scratch) except -2 nogil:
    """Unary `-`."""
    cdef bint over
    cdef int64_t months = 0
    cdef int128 seconds = 0
    if a.kind == Kind.INTEGER or a.kind == Kind.DECIMAL:
        if not negate_exact(a):
            return _compute_in_python(Operation.NEGATE, a, scratch)
    elif a.kind == Kind.WIDE:
        return _compute_in_python(Operation.NEGATE, a, scratch)
    elif a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        set_real(a, a.kind, -a.real)
    elif a.kind == Kind.SPAN:
        over = months_over(0, a.months, -1, &months)
        over = subtract_over(0, a.exact, &seconds) or over
        set_computed(a, ERROR if over else Kind.SPAN)
        a.months = months
        a.exact = seconds
    else:
        a.kind = ERROR
    return 0


cdef int _plus(Operand* a, Arena* scratch) except -2 nogil:
    """Unary `+`: the value; a value of a type derived from integer becomes an integer."""
    if a.kind == Kind.INTEGER:
        set_integer(a, a.exact)
    elif a.kind == Kind.WIDE:
        return _compute_in_python(Operation.PLUS, a, scratch)
    elif not is_number(a) and a.kind != Kind.SPAN:
        a.kind = ERROR
    return 0


# ------------------------------------------------------------------ casts


cdef int cast(Operand* a, const Datatype* datatype, Arena* scratch) except -2 nogil:
    """Cast to an XSD datatype: 1, or 0 where `conversion.cast` computes the result."""
    cdef TermRecord record
    cdef int kind = datatype.kind
    if kind == Kind.STRING:
        if a.kind == Kind.BLANK or a.kind == Kind.TRIPLE:
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
        set_real(a, kind, to_double(a))
    elif kind == Kind.FLOAT:
        set_real(a, kind, _to_float(a))
    elif a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        return _truncate(a, kind)
    elif a.kind == Kind.WIDE:
        return 0
    elif kind == Kind.DECIMAL:
        set_decimal(a, _scaled(a), False)
    elif kind == Kind.INTEGER:
        return set_integer(a, a.exact // ATTOS_PER_SECOND if a.kind == Kind.DECIMAL else a.exact)
    else:
        with gil:
            raise SystemError(f"no cast to a value of kind {kind}")
    return 1


cdef bint _truncate(Operand* a, int kind) noexcept nogil:
    """Truncate a float or double to an INTEGER or DECIMAL; False: unchanged, Python computes it."""
    cdef int128 number = 0
    cdef bint over
    cdef double real = a.real
    if not isfinite(real):
        a.kind = ERROR
        return True
    if not fabs(real) < DECIMAL_BOUND:
        return False
    if kind == Kind.INTEGER:
        return set_integer(a, <int128>real)
    if floor(real) == real:
        over = multiply_over(<int128>real, ATTOS_PER_SECOND, &number)
        return set_decimal(a, number, over)
    number = <int128>(real * 1e18)
    return set_decimal(a, number, number == 0)


# ------------------------------------------------------------------ instructions


cdef int binary(int operation, Operand* a, Arena* scratch) except -2 nogil:
    """Run an operator on the values a[0] and a[1]; the result is in a[0]."""
    cdef Operand* b = a + 1
    cdef int found
    if operation == Operation.EQUAL or operation == Operation.NOT_EQUAL:
        found = equals(a, b)
        if found < 0:
            a.kind = ERROR
        else:
            set_truth(a, found == (operation == Operation.EQUAL))
    elif operation == Operation.LESS or operation == Operation.LESS_EQUAL:
        found = order(a, b)
        if found == 2:
            a.kind = ERROR
        else:
            set_truth(a, found < 0 or (found == 0 and operation == Operation.LESS_EQUAL))
    elif operation == Operation.ADD:
        add(a, b, scratch)
    elif operation == Operation.SUBTRACT:
        _subtract(a, b, scratch)
    elif operation == Operation.MULTIPLY:
        _multiply(a, b, scratch)
    elif operation == Operation.DIVIDE:
        divide(a, b, scratch)
    elif operation == Operation.IS_TEXT:
        if is_text(a) and b.kind == Kind.STRING:
            set_truth(a, _same_text(a, b))
        else:
            a.kind = ERROR
    elif operation == Operation.SAME_TERM:
        write_term(a, scratch)
        write_term(b, scratch)
        set_truth(a, _same_term(a, b))
    else:
        with gil:
            raise SystemError(f"instruction {operation} is not an operator of two operands")
    return 0


cdef int unary(int operation, Operand* a, Arena* scratch) except -2 nogil:
    """Run an operator on the value a[0], which the result replaces."""
    cdef int found
    if operation == Operation.NOT:
        set_truth(a, a.exact == 0)
    elif operation == Operation.TRUTH:
        found = truth_of(a)
        if found < 0:
            a.kind = ERROR
        else:
            set_truth(a, found)
    elif operation == Operation.NEGATE:
        _negate(a, scratch)
    elif operation == Operation.PLUS:
        _plus(a, scratch)
    elif operation == Operation.IS_IRI:
        set_truth(a, a.kind == Kind.IRI)
    elif operation == Operation.IS_BLANK:
        set_truth(a, a.kind == Kind.BLANK)
    elif operation == Operation.IS_LITERAL:
        set_truth(a, a.kind > Kind.BLANK)
    elif operation == Operation.IS_NUMERIC:
        set_truth(a, is_number(a))
    elif operation == Operation.IS_TRIPLE:
        set_truth(a, a.kind == Kind.TRIPLE)
    else:
        with gil:
            raise SystemError(f"instruction {operation} is not an operator of one operand")
    return 0
