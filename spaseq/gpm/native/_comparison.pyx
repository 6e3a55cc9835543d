# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""SPARQL's truth, `=` and `<` on operands: `_values.equals` and `_values.less` in C.

Nothing is interned and no text is made. Invariant: the answers are those of `_values`, the
unordered and incomparable pairs included. Cost: constant, but for long texts. Two durations
that differ in months and in seconds are compared by `calendar.compare_spans`, with the GIL; so
are WIDE numbers by `_values.compare`, where the nearest doubles do not tell them apart.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from spaseq.gpm.native._operators cimport value_of
from spaseq.rdf._literals cimport HOUR, SECOND, ratio_of, uint128
from spaseq.rdf._terms cimport NO_ZONE, int128

from spaseq.rdf._values import compare
from spaseq.rdf._values import to_float as wide_to_float
from spaseq.rdf.calendar import compare_spans

cdef extern from *:
    """
    /* a + b, as far as 128 bits go. */
    static inline spaseq_int128 spaseq_clamped(spaseq_int128 a, spaseq_int128 b) {
        spaseq_int128 sum;
        if (!__builtin_add_overflow(a, b, &sum)) return sum;
        return (spaseq_int128)(((unsigned __int128)1 << 127) - (b > 0));
    }
    """
    const uint64_t SHIFT "1000000000000000000u"     # of a decimal
    int128 clamped "spaseq_clamped"(int128 a, int128 b) noexcept nogil


cdef inline int _sign(const Operand* a, const Operand* b) noexcept nogil:
    return (a.exact > b.exact) - (a.exact < b.exact)


cdef inline bint _same_text(const Operand* a, const Operand* b) noexcept nogil:
    return a.size == b.size and memcmp(a.text, b.text, a.size) == 0


cdef inline bint _same_tag(const Operand* a, const Operand* b) noexcept nogil:
    return a.tag_size == b.tag_size and memcmp(a.tag, b.tag, a.tag_size) == 0


cdef inline bint _same_whole(const Operand* a, const Operand* b) noexcept nogil:
    return a.whole_size == b.whole_size and memcmp(a.whole, b.whole, a.whole_size) == 0


cdef int same_term(const Operand* a, const Operand* b) noexcept nogil:
    """SAMETERM of two operands that have their texts."""
    if a.term and b.term:
        return a.term == b.term
    return _same_whole(a, b)


# ------------------------------------------------------------------ numbers


cdef double to_double(const Operand* of) noexcept nogil:
    """A number (or a boolean's 0 or 1) as the nearest double."""
    if of.kind >= Kind.WIDE:
        return of.real
    if of.kind != Kind.DECIMAL:
        return <double><int64_t>of.exact
    if of.whole != NULL:
        return of.real
    if of.exact < 0:
        return -ratio_of(<uint128>0 - <uint128>of.exact, SHIFT)
    return ratio_of(<uint128>of.exact, SHIFT)


cdef double to_float(const Operand* of) except? -1 nogil:
    """A number (or a boolean's 0 or 1) as a float, kept as a double."""
    if of.kind == Kind.INTEGER or of.kind == Kind.BOOLEAN:
        return <float><int64_t>of.exact
    if of.kind == Kind.WIDE:
        with gil:
            return wide_to_float(value_of(of))
    return <float>to_double(of)


cdef int _order_wide(const Operand* a, const Operand* b) except -2 nogil:
    """Of two exact numbers, one of them WIDE. Rounding keeps their order, but not what is equal."""
    cdef double x = to_double(a)
    cdef double y = to_double(b)
    if x != y:
        return (x > y) - (x < y)
    if a.whole != NULL and b.whole != NULL and _same_whole(a, b):
        return 0
    with gil:
        return compare(value_of(a), value_of(b))


cdef int _order_numbers(const Operand* a, const Operand* b) except -2 nogil:
    """-1, 0, 1, or 2 for none (NaN)."""
    cdef double x, y
    cdef int128 m, n
    if a.kind == b.kind and a.kind <= Kind.DECIMAL:
        return _sign(a, b)
    if a.kind <= Kind.DECIMAL and b.kind <= Kind.DECIMAL:
        m = a.exact
        n = b.exact
        if a.kind == Kind.INTEGER:
            m = m * SECOND
        else:
            n = n * SECOND
        return (m > n) - (m < n)
    if a.kind <= Kind.WIDE and b.kind <= Kind.WIDE:
        return _order_wide(a, b)
    if a.kind == Kind.DOUBLE or b.kind == Kind.DOUBLE:
        x = to_double(a)
        y = to_double(b)
    else:
        x = to_float(a)
        y = to_float(b)
    if isnan(x) or isnan(y):
        # The reference compares a value with itself before it looks at numbers.
        return 0 if isnan(x) and isnan(y) and a.kind == b.kind else 2
    return (x > y) - (x < y)


# ------------------------------------------------------------------ points and spans


cdef int _order_points(const Operand* a, const Operand* b) noexcept nogil:
    """-1, 0, 1, or 2: a missing zone leaves 14 hours either way open."""
    if (a.zone == NO_ZONE) == (b.zone == NO_ZONE):
        return _sign(a, b)
    if a.exact < clamped(b.exact, -14 * HOUR):
        return -1
    if a.exact > clamped(b.exact, 14 * HOUR):
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
    """`=`: 1, 0, or -1 where the values are incomparable."""
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
            return _same_text(a, b) and _same_tag(a, b)
        if kind == Kind.BOOLEAN:
            return a.exact == b.exact
        if kind == Kind.POINT:
            return a.form == b.form and _order_points(a, b) == 0
        if kind == Kind.SPAN:
            return a.exact == b.exact and a.months == b.months
        return 1 if _same_whole(a, b) else -1
    # Two kinds are different values, unless one is a literal nobody can interpret.
    return -1 if _opaque(a, b) or _opaque(b, a) else 0


cdef inline bint _opaque(const Operand* a, const Operand* b) noexcept nogil:
    return a.kind == Kind.OTHER and b.kind > Kind.BLANK and b.kind != Kind.LANG


cdef int order(const Operand* a, const Operand* b) except -2 nogil:
    """-1, 0, 1, or 2 for none."""
    cdef int kind = a.kind, found
    if is_number(a):
        return _order_numbers(a, b) if is_number(b) else 2
    if kind != b.kind:
        return 2
    if kind == Kind.STRING or (kind == Kind.LANG and _same_tag(a, b)):
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
    return 0 if kind != Kind.LANG and _same_text(a, b) else 2
