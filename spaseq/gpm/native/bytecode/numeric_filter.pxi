"""The numeric filter: conditions over numbers, decided without operands and without a stack.

Filters that correlate events and that no index serves are evaluated for every pair of events. The
filter runs the steps of a `NumericCode`: arithmetic, comparisons and their logic. A number is a
64-bit integer and the count of its decimal places, so that a product of decimals needs no division,
or a double. `may_hold` decides for all rows of a box at once, by interval arithmetic with doubles
(Moore, *Interval Analysis*, 1966).

Invariant: a decision is that of the stack machine (`bytecode.pxi`). The filter leaves every case
undecided that may differ: a variable that is unbound or not a number, a float, NaN, or a result
that does not fit in 64 bits. An interval contains every number that the machine can compute from
numbers of the operands' intervals; an error lies in no interval. Cost: some nanoseconds per step,
no allocation. A condition decides one row at a time.
"""

from libc.math cimport INFINITY, fabs, isfinite
from libc.stdint cimport uint32_t

from spaseq.gpm.native._functions cimport Operation
from spaseq.gpm.native.numeric_filter import numeric_code
from spaseq.rdf.native._literals cimport decode_record, real_at
from spaseq.rdf.native._terms cimport (
    UNDECODED,
    digits_of,
    int128,
    is_numeral,
    mem_calloc,
    mem_free,
    places_of,
    real_of,
    record_of,
)
from spaseq.rdf.native._values cimport Kind

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
    MAX_PLACES = 18        # of a decimal
    MAX_NUMBERS = 65_535    # of a condition, since 16 bits number them

# Doubles represent every integer up to this one.
cdef int64_t MAX_EXACT_DOUBLE = 1 << 53

# How far an exact result may be from that of doubles: some roundings, each of 2**-53 of the number,
# and the truncation of a decimal.
cdef double RELATIVE_ERROR = 2.0 ** -50

cdef double ABSOLUTE_ERROR = 2e-18

# The operations that a step may have; see `_apply` and `_enclose`.
cdef set OPERATIONS = {
    Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.DIVIDE, Operation.NEGATE,
    Operation.LESS, Operation.LESS_EQUAL, Operation.EQUAL, Operation.NOT_EQUAL,
    Operation.AND, Operation.OR, Operation.NOT,
}


cdef NumericCondition condition_of(object code, Dictionary dictionary):
    """The numeric filter of an expression's code for batches of a dictionary; None: it has none."""
    cdef TermRecord* record
    cdef Interval* interval
    found = numeric_code(code)
    if found is None or len(found.constants) + len(found.columns) + len(found.steps) > MAX_NUMBERS:
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
    """The steps of a `NumericCode`; `condition_of` sets the constants.

    Raises:
        ValueError: for a step that the filter does not know.
    """

    def __cinit__(self, code):
        cdef int i
        self.first = <int>len(code.constants)
        self.variable_count = <int>len(code.columns)
        self.step_count = <int>len(code.steps)
        count = self.first + self.variable_count + self.step_count
        self.columns = <int*>mem_calloc(self.variable_count, sizeof(int))
        self.steps = <NumericStep*>mem_calloc(self.step_count, sizeof(NumericStep))
        self.numbers = <Number*>mem_calloc(count, sizeof(Number))
        self.intervals = <Interval*>mem_calloc(count, sizeof(Interval))
        for i, column in enumerate(code.columns):
            self.columns[i] = column
        for i, (operation, left, right) in enumerate(code.steps):
            if operation not in OPERATIONS:
                raise ValueError(f"the numeric filter has no step {operation}")
            self.steps[i] = NumericStep(operation, left, right)

    def __dealloc__(self):
        mem_free(self.columns)
        mem_free(self.steps)
        mem_free(self.numbers)
        mem_free(self.intervals)

    cdef int decide(self, EventBatch batch, const term_t* row) noexcept nogil:
        """Whether the condition holds for a row: 1 or 0; -1: undecided."""
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
            if not _apply(step.operation, to, &numbers[step.left], &numbers[step.right]):
                return -1
            step += 1
            to += 1
        return <int>(to - 1).digits

    cdef bint may_hold(self, EventBatch batch, const term_t* row, const Box* box) noexcept nogil:
        """Whether the condition may hold for a row whose unbound columns have numbers of the
        box."""
        cdef Interval* intervals = self.intervals
        cdef Interval* to = intervals + self.first
        cdef const NumericStep* step = self.steps
        cdef const NumericStep* end = step + self.step_count
        cdef int i
        for i in range(self.variable_count):
            if not self._interval_of(to, batch, row, self.columns[i], box):
                return True
            to += 1
        while step < end:
            _enclose(step.operation, to, &intervals[step.left], &intervals[step.right])
            step += 1
            to += 1
        return (to - 1).high != 0

    cdef bint _interval_of(
        self, Interval* to, EventBatch batch, const term_t* row, int column, const Box* box
    ) noexcept nogil:
        """Find the interval of a column; False if it is not finite."""
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
    """Convert the number of a decoded term; False if it has none that fits."""
    if record.kind == Kind.DOUBLE:
        to.places, to.real = IS_DOUBLE, record.further.real
        return True
    if record.kind != Kind.INTEGER and record.kind != Kind.DECIMAL:
        return False
    to.digits, to.places = <int64_t>record.exact, 0
    if record.kind == Kind.INTEGER:
        return True
    to.places = MAX_PLACES
    if to.digits != record.exact:
        to.digits, to.places = <int64_t>(record.exact // TENS[9]), MAX_PLACES - 9
        if <int128>to.digits * TENS[9] != record.exact:
            return False
    # Most of the places are zeros; without them, results have more digits.
    _shorten(to, 16)
    _shorten(to, 8)
    _shorten(to, 4)
    _shorten(to, 2)
    _shorten(to, 1)
    return True


cdef inline void _shorten(Number* number, int zeros) noexcept nogil:
    """Drop the last `zeros` decimal places if all are zero."""
    if number.places >= zeros and number.digits % TENS[zeros] == 0:
        number.digits //= TENS[zeros]
        number.places -= zeros


cdef inline bint _load(Number* to, EventBatch batch, term_t term) noexcept nogil:
    """Convert the number of a term of the row; False if it has none that fits."""
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


cdef inline bint _apply(
    int operation, Number* to, const Number* a, const Number* b
) noexcept nogil:
    """Run one step; False if the result does not fit."""
    cdef double x, y
    if operation == Operation.AND:
        to.digits = a.digits & b.digits
    elif operation == Operation.OR:
        to.digits = a.digits | b.digits
    elif operation == Operation.NOT:
        to.digits = not a.digits
    elif a.places == IS_DOUBLE or b.places == IS_DOUBLE:
        return _to_double(a, &x) and _to_double(b, &y) and _apply_doubles(operation, to, x, y)
    elif operation == Operation.MULTIPLY:
        to.places = a.places + b.places
        return to.places <= MAX_PLACES and not product_over(a.digits, b.digits, &to.digits)
    elif operation == Operation.DIVIDE:
        return _divide(to, a, b)
    elif operation == Operation.NEGATE:
        to.places = a.places
        return not product_over(a.digits, -1, &to.digits)
    else:
        return _apply_exact(operation, to, a, b)
    return True


cdef inline bint _apply_exact(
    int operation, Number* to, const Number* a, const Number* b
) noexcept nogil:
    """Run a step on two exact numbers, after scaling both to the greater number of places."""
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
    elif operation == Operation.EQUAL:
        to.digits = first == second
    elif operation == Operation.NOT_EQUAL:
        to.digits = first != second
    else:
        return False
    return True


cdef inline bint _divide(Number* to, const Number* a, const Number* b) noexcept nogil:
    """The quotient, truncated to 18 places; False if it does not fit."""
    cdef int128 quotient
    cdef int64_t digits = a.digits
    cdef int more = MAX_PLACES + b.places - a.places
    if more > MAX_PLACES:
        if product_over(digits, TENS[more - MAX_PLACES], &digits):
            return False
        more = MAX_PLACES
    if b.digits == 0:
        return False
    quotient = digits
    quotient = quotient * TENS[more] // b.digits
    to.digits, to.places = <int64_t>quotient, MAX_PLACES
    return to.digits == quotient


cdef inline bint _to_double(const Number* of, double* to) noexcept nogil:
    """Convert to a double; False if that takes more than one rounding."""
    if of.places == IS_DOUBLE:
        to[0] = of.real
        return True
    to[0] = <double>of.digits / <double>TENS[of.places]
    return -MAX_EXACT_DOUBLE <= of.digits <= MAX_EXACT_DOUBLE


cdef inline bint _apply_doubles(int operation, Number* to, double x, double y) noexcept nogil:
    """Run a step on two doubles; False if the result is not a number."""
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
    elif operation == Operation.EQUAL:
        to.digits = x == y
    elif operation == Operation.NOT_EQUAL:
        to.digits = x != y
    else:
        return False
    return True


# ------------------------------------------------------------------ intervals


cdef inline bint _widen(Interval* interval) noexcept nogil:
    """Widen an interval by the rounding of its ends; False, and unbounded, if it is not finite."""
    interval.low -= fabs(interval.low) * RELATIVE_ERROR + ABSOLUTE_ERROR
    interval.high += fabs(interval.high) * RELATIVE_ERROR + ABSOLUTE_ERROR
    if isfinite(interval.low) and isfinite(interval.high):
        return True
    interval.low, interval.high = -INFINITY, INFINITY
    return False


cdef inline void _enclose(
    int operation, Interval* to, const Interval* a, const Interval* b
) noexcept nogil:
    """The interval of a step: of numbers, or of the truths 0 and 1."""
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
    elif operation == Operation.ADD:
        to.low, to.high = a.low + b.low, a.high + b.high
        _widen(to)
    elif operation == Operation.SUBTRACT:
        to.low, to.high = a.low - b.high, a.high - b.low
        _widen(to)
    elif operation == Operation.MULTIPLY:
        p, q, r, s = a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high
        to.low, to.high = min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
        _widen(to)
    elif operation == Operation.DIVIDE and not b.low <= 0 <= b.high:
        p, q, r, s = a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high
        to.low, to.high = min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
        _widen(to)
    else:
        to.low, to.high = -INFINITY, INFINITY
