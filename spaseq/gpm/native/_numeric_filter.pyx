# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Conditions over numbers, decided without operands: arithmetic, comparisons and their logic.

Where no index serves what correlates events, it is asked of every pair of them. Numbers are digits
and a point here, so that a product of decimals needs no division, and none of them has a text.
A condition can also be asked whether it may hold for any of several rows whose numbers lie in a
box, by interval arithmetic with doubles (Moore, *Interval Analysis*, 1966).

Invariant: a decision is that of `Expression`'s machine. Whatever may differ is not decided: a
variable that is unbound or no number, a float, NaN, a result with more digits than there is room
for. An interval holds whatever that machine makes of numbers from its operands; an error is in
none. Cost: some nanoseconds a step, no allocation. A condition decides one row at a time.
"""

from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport uint32_t

from spaseq.gpm.native._operators cimport Operation
from spaseq.rdf._batch cimport record_of
from spaseq.rdf._intervals cimport real_at
from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._memory cimport give_back, zeroed
from spaseq.rdf._numerals cimport digits_of, is_numeral, places_of, real_of
from spaseq.rdf._terms cimport UNDECODED, TermRecord, int128
from spaseq.rdf._values cimport Kind

from spaseq.gpm.native.numeric_filter import numeric_code

cdef extern from *:
    """
    static const int64_t spaseq_tens[19] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000,
        100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
        10000000000000000, 100000000000000000, 1000000000000000000
    };

    static inline int spaseq_product(int64_t a, int64_t b, int64_t *to) {
        return __builtin_mul_overflow(a, b, to);
    }
    """
    const int64_t[19] TENS "spaseq_tens"
    bint product_over "spaseq_product"(int64_t a, int64_t b, int64_t* to) noexcept nogil

cdef enum:
    IS_DOUBLE = -1          # the places of a double
    MOST_PLACES = 18        # of a decimal
    MOST_NUMBERS = 65_535

# Doubles hold every integer to this one.
cdef int64_t EXACT_DOUBLE = 1 << 53

# How far a result may be from that of doubles: some roundings, each of 2**-53, and a decimal's cut.
cdef double ROUNDED = 2.0 ** -50
cdef double CUT = 2e-18


cdef NumericCondition condition_of(object code, Dictionary dictionary):
    """A condition that is ready for rows of batches of a dictionary; None: it is no such one."""
    cdef TermRecord* record
    cdef Interval* interval
    found = numeric_code(code)
    if found is None or len(found.constants) + len(found.columns) + len(found.steps) > MOST_NUMBERS:
        return None
    condition = NumericCondition(found)
    for i, constant in enumerate(found.constants):
        record = &dictionary.permanent.records[dictionary.intern(constant)]
        interval = &condition.intervals[<int>i]
        if not (
            real_at(record, &interval.low) and _number_of(&condition.numbers[<int>i], record)
        ):
            return None
        interval.high = interval.low
        _widen(interval)
    return condition


cdef class NumericCondition:
    """The steps of a `NumericCode`; `condition_of` gives it its constants."""

    def __cinit__(self, code):
        cdef int i
        self.first = <int>len(code.constants)
        self.variable_count = <int>len(code.columns)
        self.step_count = <int>len(code.steps)
        count = self.first + self.variable_count + self.step_count
        self.columns = <int*>zeroed(self.variable_count, sizeof(int))
        self.steps = <NumericStep*>zeroed(self.step_count, sizeof(NumericStep))
        self.numbers = <Number*>zeroed(count, sizeof(Number))
        self.intervals = <Interval*>zeroed(count, sizeof(Interval))
        for i, column in enumerate(code.columns):
            self.columns[i] = column
        for i, (operation, left, right) in enumerate(code.steps):
            self.steps[i] = NumericStep(operation, left, right)

    def __dealloc__(self):
        give_back(self.columns)
        give_back(self.steps)
        give_back(self.numbers)
        give_back(self.intervals)

    cdef int decide(self, EventBatch batch, const term_t* row) noexcept nogil:
        """Whether it holds for a row: 1 or 0; -1: it is not decided here."""
        cdef Number* numbers = self.numbers
        cdef Number* to = numbers + self.first
        cdef const NumericStep* step = self.steps
        cdef const NumericStep* end = step + self.step_count
        cdef int i
        for i in range(self.variable_count):
            if not _load(to, batch, row[self.columns[i]]):
                return -1
            to += 1
        while step < end:
            if not _take(step.operation, to, &numbers[step.left], &numbers[step.right]):
                return -1
            step += 1
            to += 1
        return <int>(to - 1).digits

    cdef bint may_hold(self, EventBatch batch, const term_t* row, const Box* box) noexcept nogil:
        """Whether it may hold for a row whose unbound columns have numbers of the box."""
        cdef Interval* intervals = self.intervals
        cdef Interval* to = intervals + self.first
        cdef const NumericStep* step = self.steps
        cdef const NumericStep* end = step + self.step_count
        cdef int i
        for i in range(self.variable_count):
            if not self._place(to, batch, row, self.columns[i], box):
                return True
            to += 1
        while step < end:
            _enclose(step.operation, to, &intervals[step.left], &intervals[step.right])
            step += 1
            to += 1
        return (to - 1).high != 0

    cdef bint _place(
        self, Interval* to, EventBatch batch, const term_t* row, int column, const Box* box
    ) noexcept nogil:
        """What is known of a column; False: not that it has finite numbers."""
        cdef uint32_t i
        cdef term_t term = row[column]
        if term == 0:
            for i in range(box.width):
                if box.columns[i] == <uint32_t>column:
                    to[0] = box.intervals[i]
                    return _widen(to)
            return False
        if is_numeral(term):
            to.low = real_of(term)
        elif not real_at(record_of(batch, term), &to.low):
            return False
        to.high = to.low
        return _widen(to)


cdef bint _number_of(Number* to, const TermRecord* record) noexcept nogil:
    """The number of a decoded term: whether it has one."""
    if record.kind == Kind.DOUBLE:
        to.places, to.real = IS_DOUBLE, record.further.real
        return True
    if record.kind != Kind.INTEGER and record.kind != Kind.DECIMAL:
        return False
    to.digits, to.places = <int64_t>record.exact, 0
    if record.kind == Kind.INTEGER:
        return True
    to.places = MOST_PLACES
    if to.digits != record.exact:
        to.digits, to.places = <int64_t>(record.exact // TENS[9]), MOST_PLACES - 9
        if <int128>to.digits * TENS[9] != record.exact:
            return False
    # Of so many places most are zeros: without them there is more room.
    _shorten(to, 16)
    _shorten(to, 8)
    _shorten(to, 4)
    _shorten(to, 2)
    _shorten(to, 1)
    return True


cdef inline void _shorten(Number* number, int zeros) noexcept nogil:
    """Leave so many digits away, if they are zeros behind the point."""
    if number.places >= zeros and number.digits % TENS[zeros] == 0:
        number.digits //= TENS[zeros]
        number.places -= zeros


cdef inline bint _load(Number* to, EventBatch batch, term_t term) noexcept nogil:
    """The number of a row's term."""
    cdef TermRecord* record
    if is_numeral(term):
        to.digits, to.places = digits_of(term), <int>places_of(term)
        return True
    if term == 0:
        return False
    record = record_of(batch, term)
    if record.kind == UNDECODED:
        decode_record(record)
    return _number_of(to, record)


cdef inline bint _take(
    int operation, Number* to, const Number* a, const Number* b
) noexcept nogil:
    """Do one step: whether that was possible."""
    cdef double x, y
    if operation == Operation.AND:
        to.digits = a.digits & b.digits
    elif operation == Operation.OR:
        to.digits = a.digits | b.digits
    elif operation == Operation.NOT:
        to.digits = not a.digits
    elif a.places == IS_DOUBLE or b.places == IS_DOUBLE:
        return _to_double(a, &x) and _to_double(b, &y) and _take_doubles(operation, to, x, y)
    elif operation == Operation.MULTIPLY:
        to.places = a.places + b.places
        return to.places <= MOST_PLACES and not product_over(a.digits, b.digits, &to.digits)
    elif operation == Operation.DIVIDE:
        return _divide(to, a, b)
    elif operation == Operation.NEGATE:
        to.places = a.places
        return not product_over(a.digits, -1, &to.digits)
    else:
        return _take_alike(operation, to, a, b)
    return True


cdef inline bint _take_alike(
    int operation, Number* to, const Number* a, const Number* b
) noexcept nogil:
    """An operation on numbers with as many places each."""
    cdef int128 first = a.digits, second = b.digits
    to.places = a.places
    if a.places < b.places:
        first = first * TENS[b.places - a.places]
        to.places = b.places
    elif a.places > b.places:
        second = second * TENS[a.places - b.places]
    if operation == Operation.LESS:
        to.digits = first < second
    elif operation == Operation.LESS_EQUAL:
        to.digits = first <= second
    elif operation == Operation.ADD or operation == Operation.SUBTRACT:
        first = first + second if operation == Operation.ADD else first - second
        to.digits = <int64_t>first
        return to.digits == first
    else:
        to.digits = (first == second) == (operation == Operation.EQUAL)
    return True


cdef inline bint _divide(Number* to, const Number* a, const Number* b) noexcept nogil:
    """A quotient, cut behind its 18th place."""
    cdef int128 quotient
    cdef int64_t digits = a.digits
    cdef int more = MOST_PLACES + b.places - a.places
    if more > MOST_PLACES:
        if product_over(digits, TENS[more - MOST_PLACES], &digits):
            return False
        more = MOST_PLACES
    if b.digits == 0:
        return False
    quotient = digits
    quotient = quotient * TENS[more] // b.digits
    to.digits, to.places = <int64_t>quotient, MOST_PLACES
    return to.digits == quotient


cdef inline bint _to_double(const Number* of, double* to) noexcept nogil:
    """The number as a double, if it is rounded once."""
    if of.places == IS_DOUBLE:
        to[0] = of.real
        return True
    to[0] = <double>of.digits / <double>TENS[of.places]
    return -EXACT_DOUBLE <= of.digits <= EXACT_DOUBLE


cdef inline bint _take_doubles(int operation, Number* to, double x, double y) noexcept nogil:
    """As `_take_alike`."""
    to.places = IS_DOUBLE
    if operation == Operation.ADD:
        to.real = x + y
    elif operation == Operation.SUBTRACT:
        to.real = x - y
    elif operation == Operation.MULTIPLY:
        to.real = x * y
    elif operation == Operation.DIVIDE:
        to.real = x / y
    elif operation == Operation.NEGATE:
        to.real = -x
    elif x != x or y != y:
        return False
    elif operation == Operation.LESS:
        to.digits = x < y
    elif operation == Operation.LESS_EQUAL:
        to.digits = x <= y
    else:
        to.digits = (x == y) == (operation == Operation.EQUAL)
    return True


# ------------------------------------------------------------------ intervals


cdef inline bint _widen(Interval* interval) noexcept nogil:
    """Let it hold what its ends have been rounded from: whether something is known of that."""
    interval.low -= fabs(interval.low) * ROUNDED + CUT
    interval.high += fabs(interval.high) * ROUNDED + CUT
    if isfinite(interval.low) and isfinite(interval.high):
        return True
    interval.low, interval.high = -INFINITY, INFINITY
    return False


cdef inline void _enclose(
    int operation, Interval* to, const Interval* a, const Interval* b
) noexcept nogil:
    """What a step may give: numbers, or of the truths 0 and 1 the least and the greatest."""
    cdef double p, q, r, s
    if operation == Operation.AND:
        to.low, to.high = min(a.low, b.low), min(a.high, b.high)
    elif operation == Operation.OR:
        to.low, to.high = max(a.low, b.low), max(a.high, b.high)
    elif operation == Operation.NOT:
        to.low, to.high = 1 - a.high, 1 - a.low
    elif operation == Operation.LESS:
        to.low, to.high = a.high < b.low, a.low < b.high
    elif operation == Operation.LESS_EQUAL:
        to.low, to.high = a.high <= b.low, a.low <= b.high
    elif operation == Operation.EQUAL:
        to.low, to.high = 0, a.low <= b.high and b.low <= a.high
    elif operation == Operation.NOT_EQUAL:
        to.low, to.high = a.high < b.low or b.high < a.low, 1
    elif operation == Operation.NEGATE:
        to.low, to.high = -a.high, -a.low
    else:
        if operation == Operation.ADD:
            to.low, to.high = a.low + b.low, a.high + b.high
        elif operation == Operation.SUBTRACT:
            to.low, to.high = a.low - b.high, a.high - b.low
        elif operation == Operation.DIVIDE and b.low <= 0 <= b.high:
            to.low, to.high = -INFINITY, INFINITY
        else:
            if operation == Operation.MULTIPLY:
                p, q, r, s = a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high
            else:
                p, q, r, s = a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high
            to.low, to.high = min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
        _widen(to)
