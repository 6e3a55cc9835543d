"""Exact sums, from which values can be removed.

Integers and decimals are added exactly. A double is added as a multiple of the least double, in
digits of 32 bits. Each limb has 64 bits, so it holds the sum of 2**31 digits without a carry, and
adding or removing a value touches three limbs. The sum is rounded once, when it is read
(`spaseq.engine.result_aggregates`).

Invariant: every number fits: an integer or decimal has fewer than 96 bits, a float or double is
finite. Cost: constant for each value.
"""

from libc.math cimport fabs, frexp, ldexp
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t

from spaseq.rdf.native._terms cimport int128
from spaseq.rdf.native._values cimport Kind

cdef enum:
    FIT_BITS = 96       # an easy number has fewer bits
    LIMBS = 67          # limbs of 32 bits from 2**-1074 on: the doubles, and room for a carry
    KINDS = 4           # INTEGER, DECIMAL, FLOAT, DOUBLE

# The number of an argument.
cdef struct Number:
    int128 exact        # INTEGER: the number; DECIMAL: times 10**18
    double real         # FLOAT, DOUBLE
    uint8_t kind        # a Kind; OTHER: bound to no number; 0 with `unbound`: without a value
    bint unbound

# The exact sum of the values of an argument, from which values can be removed.
cdef struct Total:
    int128 integers
    int128 decimals     # times 10**18
    int64_t unbound     # values that are unbound or errors
    int64_t others      # values that are not numbers
    int64_t[KINDS] kinds
    int32_t lowest      # the limbs in use
    int32_t highest
    int64_t[LIMBS] limbs


cdef inline bint fits(int128 exact) noexcept nogil:
    cdef int128 most = <int128>1 << FIT_BITS
    return -most < exact < most


cdef inline double plain(const Number* number) noexcept nogil:
    if number.kind == Kind.INTEGER:
        return <double>number.exact
    if number.kind == Kind.DECIMAL:
        return <double>number.exact / 1e18
    return number.real


cdef enum:
    LEAST_EXPONENT = 1074

cdef double[LIMBS] SCALES       # the value of one in each limb; the last ones are infinite

cdef uint32_t _limb

for _limb in range(LIMBS):
    SCALES[_limb] = ldexp(1.0, 32 * <int>_limb - LEAST_EXPONENT)


cdef int add_real(Total* total, double real, int sign) noexcept nogil:
    """Add a finite double to the limbs, or subtract it."""
    cdef int exponent, shift
    cdef int64_t digits
    cdef uint64_t whole
    cdef uint32_t limb
    cdef uint64_t low, high
    if real == 0:
        return 0
    digits = <int64_t>ldexp(frexp(real, &exponent), 53)
    exponent += LEAST_EXPONENT - 53
    if exponent < 0:                    # a subnormal number: the digits below the lowest are 0
        digits >>= -exponent
        exponent = 0
    if digits < 0:
        digits, sign = -digits, -sign
    whole = <uint64_t>digits
    limb, shift = <uint32_t>exponent >> 5, exponent & 31
    # At most 53 + 31 bits, in three limbs.
    low = (whole & 0xFFFFFFFFu) << shift
    high = (whole >> 32) << shift
    total.limbs[limb] += sign * <int64_t>(low & 0xFFFFFFFFu)
    total.limbs[limb + 1] += sign * <int64_t>((low >> 32) + (high & 0xFFFFFFFFu))
    total.limbs[limb + 2] += sign * <int64_t>(high >> 32)
    total.lowest = min(total.lowest, <int32_t>limb)
    total.highest = max(total.highest, <int32_t>limb + 2)
    return 0


cdef int add_number(Total* total, const Number* number, int sign) noexcept nogil:
    """Add a value to a total, or remove it."""
    if number.unbound:
        total.unbound += sign
    elif number.kind == Kind.INTEGER:
        total.kinds[0] += sign
        total.integers += sign * number.exact
    elif number.kind == Kind.DECIMAL:
        total.kinds[1] += sign
        total.decimals += sign * number.exact
    elif number.kind == Kind.FLOAT:
        total.kinds[2] += sign
        add_real(total, number.real, sign)
    elif number.kind == Kind.DOUBLE:
        total.kinds[3] += sign
        add_real(total, number.real, sign)
    else:
        total.others += sign
    return 0


cdef double approximate(const Total* total, double* error) noexcept nogil:
    """The sum, with a bound on its error."""
    cdef double sum, size, part
    cdef int32_t i
    sum = <double>total.integers
    size = fabs(sum)
    part = <double>total.decimals / 1e18
    sum += part
    size += fabs(part)
    i = total.highest
    while i >= total.lowest:
        part = <double>total.limbs[i] * SCALES[i] if total.limbs[i] else 0
        sum += part
        size += fabs(part)
        i -= 1
    error[0] += size * 1e-13
    return sum
