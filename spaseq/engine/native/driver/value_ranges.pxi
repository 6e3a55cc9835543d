"""Which of many intervals hold a number: a segment tree over the ends of the intervals.

Every interval is the union of a few nodes of the tree, and a number lies in an interval iff one of
these nodes is on the path from the number's leaf to the root. So an interval is listed under its
nodes, and a look-up reads the lists on one path: its cost depends on the intervals that hold the
number, and not on the others. Intervals that all begin at different numbers cost as much as
equalities, `[c, c]`.

Numbers are doubles. The value of a term is an interval, too. An `xsd:float` is compared with other
numbers in single precision, so its interval ends at the neighbouring floats. The interval of a
number of more than 18 digits ends at the neighbours of its nearest double. For all other numbers it
is the nearest double alone. See `constant_conditions`.

Cost: an interval has at most two nodes on each level; a look-up takes a binary search and one step
per level.
Source: Bentley, Solutions to Klee's rectangle problems (1977).
"""

from libc.math cimport INFINITY, fabs, isinf, isnan

from spaseq.rdf.native._literals cimport decode_record
from spaseq.rdf.native._terms cimport (
    UNDECODED,
    TermRecord,
    is_numeral,
    mem_calloc,
    mem_free,
    real_of,
    record_of,
)
from spaseq.rdf.native._values cimport Kind


cdef inline uint32_t leaf_of(const Ranges* of, double number) noexcept nogil:
    """The leaf of a number. Cost: logarithmic in the number of ends, without a branch per step."""
    cdef const double* first = of.ends
    cdef uint32_t left = of.count, half, at
    while left > 1:
        half = left >> 1
        first += half if first[half - 1] < number else 0
        left -= half
    at = <uint32_t>(first - of.ends)
    if left and first[0] < number:
        at += 1
    return 2 * at + (at < of.count and of.ends[at] == number)


cdef double FLOAT_STEP = 2.0 ** -23         # the greatest relative distance of neighbouring floats

cdef double FLOAT_LEAST = 2.0 ** -149       # the distance between the floats around zero

cdef double FLOAT_MOST = (2.0 - 2.0 ** -23) * 2.0 ** 127

cdef double WIDE_STEP = 2.0 ** -52


cdef int ranges_init(Ranges* to, ends) except -1:
    """Set the places of intervals; `ends` are their finite ends."""
    cdef list ordered = sorted(set(ends))
    cdef uint32_t i
    to.count = <uint32_t>len(ordered)
    to.leaves = 2 * to.count + 1
    to.ends = <double*>mem_calloc(to.count + 1, sizeof(double))
    for i in range(to.count):
        to.ends[i] = ordered[i]
    return 0


cdef void ranges_free(Ranges* of) noexcept nogil:
    mem_free(of.ends)
    of.ends = NULL


cdef list nodes_within(const Ranges* of, double low, double high):
    """The nodes of an interval: none if it is empty.

    An end that is not in the set is replaced by the next end outside the interval.
    """
    cdef uint32_t first = of.leaves + (leaf_of(of, low) if low > -INFINITY else 0)
    cdef uint32_t end = of.leaves + (leaf_of(of, high) if high < INFINITY else 2 * of.count) + 1
    cdef list found = []
    if low > high:
        return found
    while first < end:
        if first & 1:
            found.append(first)
            first += 1
        if end & 1:
            end -= 1
            found.append(end)
        first >>= 1
        end >>= 1
    return found


cdef bint reach_of(EventBatch batch, term_t term, double* low, double* high) noexcept nogil:
    """Find the interval of the numbers that a term may equal; False if it is not a number."""
    cdef TermRecord* record
    cdef double margin, real
    if is_numeral(term):
        low[0] = high[0] = real_of(term)
        return True
    record = record_of(batch, term)
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind == Kind.INTEGER:
        low[0] = high[0] = <double>record.exact
        return True
    if record.kind < Kind.DECIMAL or record.kind > Kind.DOUBLE:
        return False
    real = record.further.real
    if isnan(real):
        return False
    low[0] = high[0] = real
    if record.kind == Kind.FLOAT or record.kind == Kind.WIDE:
        if isinf(real):
            low[0], high[0] = min(real, FLOAT_MOST), max(real, -FLOAT_MOST)
            return True
        margin = fabs(real) * (FLOAT_STEP if record.kind == Kind.FLOAT else WIDE_STEP) + FLOAT_LEAST
        low[0], high[0] = real - margin, real + margin
    return True
