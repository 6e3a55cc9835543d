# cython: language_level=3, boundscheck=False, wraparound=False
"""RDF terms → typed values, and SPARQL's operators on them.

A `Value` is the operand of expressions: the kind of a term and its number, text or point in time,
decoded once (`decode` caches at most `CACHE_LIMIT` values). A value decoded from a term stores the
term, so that literals are output as written; a computed value builds its term, in canonical form,
when it is first needed.

Invariants: an INTEGER fits 64 bits, a DECIMAL is an int scaled by 10**18 that fits 128 bits, and
an integer or decimal that does not is WIDE, so each number has exactly one kind. Floats are stored
as the double of their 32-bit value. An operation without a value (a type error, a division by zero)
returns None, which is SPARQL's error.

Reference: SPARQL 1.1 section 17; where it leaves a choice (precision, lexical forms, unordered
values), the behaviour of pyoxigraph. Where pyoxigraph has no value but the standards do, the
standards apply: booleans are ordered, integers and decimals have any size and exact sums and
products, quotients of decimals are truncated to 18 digits (see `unbounded.quotient` for WIDE ones),
a decimal is converted to the nearest double, a literal out of the range of its datatype has no
value, and durations and points in time can be added in either order. Cost: constant, except for
long texts; operations on a WIDE number cost some microseconds plus a time that depends on its
digits.
"""

import re
from decimal import Decimal
from libc.math cimport INFINITY, NAN, copysign, isinf, isnan
from libc.stdint cimport int64_t

import pyoxigraph as ox

from spaseq.rdf import calendar, floating, unbounded
from spaseq.rdf.tagged import tag_of, tagged_datatype, tagged_literal

cdef object NamedNode = ox.NamedNode

cdef object BlankNode = ox.BlankNode

cdef object Literal = ox.Literal

cdef object TripleTerm = ox.Triple

XSD = "http://www.w3.org/2001/XMLSchema#"

# Python sees the kinds as constants of the module.
globals().update({name: int(kind) for name, kind in Kind.__members__.items()})

CACHE_LIMIT = 1 << 16

cdef object ONE = 10**18

cdef object I64 = 2**63

cdef object I128 = 2**127

KINDS = dict([
    ("string", STRING), ("boolean", BOOLEAN), ("decimal", DECIMAL),
    ("float", FLOAT), ("double", DOUBLE),
    *((name, INTEGER) for name in (
        "integer", "byte", "short", "int", "long", "unsignedByte", "unsignedShort",
        "unsignedInt", "unsignedLong", "positiveInteger", "negativeInteger",
        "nonPositiveInteger", "nonNegativeInteger")),
    *((name, POINT) for name in (
        "dateTime", "dateTimeStamp", "date", "time", "gYear", "gYearMonth", "gMonth",
        "gMonthDay", "gDay")),
    *((name, SPAN) for name in ("duration", "yearMonthDuration", "dayTimeDuration")),
])
"""The XSD datatypes whose values are understood, by local name, with their kind."""

cdef dict READERS = {ox.NamedNode(XSD + name): (kind, name) for name, kind in KINDS.items()}

cdef dict DATATYPE = {name: ox.NamedNode(XSD + name) for name in KINDS}

cdef dict DATATYPE_OF = {
    STRING: DATATYPE["string"],
    BOOLEAN: DATATYPE["boolean"],
    INTEGER: DATATYPE["integer"],
    DECIMAL: DATATYPE["decimal"],
    FLOAT: DATATYPE["float"],
    DOUBLE: DATATYPE["double"],
}

# Maximum characters of dates and durations, far more than any value needs.
cdef int LONGEST_TIME = 1000

# A text of at most this many characters is parsed as an int, a longer one as a Decimal.
cdef int LONGEST_INT = 40

BOUNDS = {
    "byte": (-2**7, 2**7 - 1),
    "short": (-2**15, 2**15 - 1),
    "int": (-2**31, 2**31 - 1),
    "long": (-I64, I64 - 1),
    "unsignedByte": (0, 2**8 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "positiveInteger": (1, None),
    "nonNegativeInteger": (0, None),
    "negativeInteger": (None, -1),
    "nonPositiveInteger": (None, 0),
}
"""The least and the greatest number of the datatypes that have one."""

cdef object INTEGER_FORM = re.compile(r"[+-]?[0-9]+").fullmatch

cdef object DECIMAL_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)").fullmatch

cdef object DOUBLE_FORM = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.I | re.A
).fullmatch


cdef class Value:
    """One decoded term. `kind` determines which fields are used.

    `number`: a BOOLEAN's 0 or 1, an INTEGER, a DECIMAL times 10**18, a WIDE number as a
    `decimal.Decimal`, a POINT's or SPAN's attoseconds. `real`: a FLOAT or DOUBLE, the double
    nearest to a WIDE number. `text`: an IRI, a label, the text of a STRING, LANG or OTHER, the
    parts of a TRIPLE in N-Triples. `form`: the local name of a POINT's or SPAN's datatype, the
    lower-case tag of a LANG with its base direction (`en`, `ar--rtl`), the datatype of an OTHER,
    "integer" or "decimal" for a WIDE number.
    `extra`: the zone of a POINT (minutes or None), the months of a SPAN.
    """

    def __reduce__(self):
        return decode, (self.term,)

    def __repr__(self):
        return f"Value({self.term})"

    def __hash__(self):
        return hash((self.kind, self.number, self.real, self.text, self.form, self.extra))

    def __eq__(self, other):
        """Whether both are the same value of the same type, however written."""
        cdef Value o
        if type(other) is not Value:
            return NotImplemented
        o = other
        return (
            self.kind == o.kind and self.number == o.number and self.text == o.text
            and self.form == o.form and self.extra == o.extra
            and (self.real == o.real or isnan(self.real) and isnan(o.real))
        )

    @property
    def term(self):
        """The term from which it was decoded, otherwise a term in canonical form."""
        if self._term is None:
            self._term = _build(self)
        return self._term


cdef inline Value _new(int kind):
    cdef Value value = Value.__new__(Value)
    value.kind = kind
    return value


cdef object _build(Value v):
    if v.kind == STRING:
        return Literal(v.text)
    if v.kind == LANG:
        return tagged_literal(v.text, v.form)
    return Literal(canonical(v), datatype=datatype(v))


cpdef object datatype(Value v):
    """The datatype of a literal's value; the term's own where it has a term."""
    if v._term is not None:
        return v._term.datatype if v.kind > BLANK else None
    if v.kind == POINT or v.kind == SPAN or v.kind == WIDE:
        return DATATYPE[v.form]
    if v.kind == OTHER:
        return v.form
    if v.kind == LANG:
        return tagged_datatype(v.form)
    return DATATYPE_OF.get(v.kind)


# ------------------------------------------------------------------ making values

cdef dict _cache = {}


cpdef Value decode(term):
    """The value of a term; ill-formed literals of a known datatype are OTHER."""
    cdef object known = _cache.get(term)
    if known is not None:
        return <Value>known
    cdef Value value = _decode(term)
    value._term = term
    if len(_cache) >= CACHE_LIMIT:
        _cache.clear()
    _cache[term] = value
    return value


cdef Value _decode(term):
    cdef Value value
    cdef type cls = type(term)
    if cls is NamedNode or cls is BlankNode:
        value = _new(IRI if cls is NamedNode else BLANK)
        value.text = term.value
        return value
    if cls is TripleTerm:
        value = _new(TRIPLE)
        value.text = str(term)
        return value
    cdef str text = term.value
    cdef object name = term.datatype
    cdef object entry = READERS.get(name)
    if entry is not None:
        value = _read(<int>(<tuple>entry)[0], <str>(<tuple>entry)[1], text)
        if value is not None:
            return value
    elif term.language is not None:
        return lang_string(text, tag_of(term))
    value = _new(OTHER)
    value.text = text
    value.form = name
    return value


cpdef Value parse(str name, str text):
    """Parse a text as the XSD datatype `name`; None if it is not in its lexical space."""
    return _read(KINDS[name], name, text)


cdef Value _read(int kind, str name, str text):
    cdef Value value
    cdef object found, number
    if kind == STRING:
        return string(text)
    if kind == BOOLEAN:
        if text == "true" or text == "1":
            return _truth(1)
        return _truth(0) if text == "false" or text == "0" else None
    if kind == DOUBLE or kind == FLOAT:
        if DOUBLE_FORM(text) is None:
            return None
        return double(float(text)) if kind == DOUBLE else float_(float(text))
    if kind == INTEGER:
        if INTEGER_FORM(text) is None:
            return None
        value = integer(int(text)) if len(text) <= LONGEST_INT else exact("integer", Decimal(text))
        return value if _within(name, value) else None
    if kind == DECIMAL:
        found = DECIMAL_FORM(text)
        if found is None:
            return None
        number = calendar.atto_seconds(found[2]) if len(text) <= LONGEST_INT else None
        if number is None:
            return exact("decimal", Decimal(text))
        return decimal(-number if found[1] == "-" else number)
    if len(text) > LONGEST_TIME:
        return None
    if kind == POINT:
        if name == "dateTimeStamp":
            name = "dateTime"
        found = calendar.parse_point(name, text)
        return None if found is None else point(name, *found)
    found = calendar.parse_duration(name, text)
    return None if found is None else span(name, *found)


cdef bint _within(str name, Value value):
    """Whether an integer lies in the range of a datatype."""
    cdef object least, most
    cdef tuple bounds = BOUNDS.get(name)
    if bounds is None:
        return True
    least, most = bounds
    return (least is None or value.number >= least) and (most is None or value.number <= most)


cpdef Value string(str text):
    cdef Value value = _new(STRING)
    value.text = text
    return value


cpdef Value lang_string(str text, str tag):
    cdef Value value = _new(LANG)
    value.text = text
    value.form = tag
    return value


cpdef Value boolean(bint truth):
    return TRUE if truth else FALSE


cpdef Value integer(number):
    """The integer of an int: WIDE outside 64 bits."""
    if number < -I64 or number >= I64:
        return _wide("integer", Decimal(number))
    cdef Value value = _new(INTEGER)
    value.number = number
    return value


cpdef Value decimal(scaled):
    """The decimal scaled / 10**18: WIDE outside 128 bits."""
    if scaled < -I128 or scaled >= I128:
        return _wide("decimal", unbounded.scaled(scaled))
    cdef Value value = _new(DECIMAL)
    value.number = scaled
    return value


cpdef Value exact(str form, number):
    """The "integer" or "decimal" of a `decimal.Decimal`; None for None."""
    cdef object small
    if number is None:
        return None
    if form == "integer":
        return integer(int(number)) if -I64 <= number < I64 else _wide(form, number)
    small = unbounded.scaled_int(number)
    return _wide(form, number) if small is None else decimal(small)


cdef Value _wide(str form, number):
    cdef Value value = _new(WIDE)
    value.form = form
    value.number = number
    value.real = unbounded.nearest_double(number)
    return value


cpdef Value double(double real):
    cdef Value value = _new(DOUBLE)
    value.real = real
    return value


cpdef Value float_(double real):
    cdef Value value = _new(FLOAT)
    value.real = <float>real
    return value


cpdef Value point(str form, instant, zone):
    cdef Value value = _new(POINT)
    value.form = form
    value.number = instant
    value.extra = zone
    return value


cpdef Value span(str form, months, seconds):
    cdef Value value = _new(SPAN)
    value.form = form
    value.number = seconds
    value.extra = months
    return value


cdef Value _truth(int number):
    cdef Value value = _new(BOOLEAN)
    value.number = number
    return value


TRUE = _truth(1)

FALSE = _truth(0)


# ------------------------------------------------------------------ lexical forms


cpdef str canonical(Value v):
    """The canonical lexical form of a literal's value."""
    cdef str text
    if v.kind == INTEGER:
        return str(v.number)
    if v.kind == WIDE:
        return unbounded.text_of(v.number, v.form == "integer")
    if v.kind == DOUBLE or v.kind == FLOAT:
        return _real_text(v)
    if v.kind == DECIMAL:
        text = calendar.format_seconds(abs(v.number))
        return "-" + text if v.number < 0 else text
    if v.kind == BOOLEAN:
        return "true" if v.number else "false"
    if v.kind == POINT:
        return calendar.format_point(v.form, (v.number, v.extra))
    if v.kind == SPAN:
        return calendar.format_duration(v.form, (v.extra, v.number))
    return v.text


cdef str _real_text(Value v):
    if isnan(v.real):
        return "NaN"
    if isinf(v.real):
        return "INF" if v.real > 0 else "-INF"
    if v.real == 0.0:
        return "-0" if copysign(1.0, v.real) < 0 else "0"
    return floating.float_text(v.real) if v.kind == FLOAT else floating.double_text(v.real)


cpdef str lexical(Value v):
    """STR(): an IRI, or a literal's lexical form as written; None for other terms."""
    if v.kind == BLANK or v.kind == TRIPLE:
        return None
    if v.kind <= LANG or v.kind == OTHER:
        return v.text
    if v._term is not None:
        return v._term.value
    return canonical(v)


# ------------------------------------------------------------------ truth, equality, order


cpdef object ebv(Value v):
    """Effective boolean value: True, False, or None for a type error."""
    if BOOLEAN <= v.kind <= WIDE:
        return v.number != 0
    if v.kind == STRING:
        return len(v.text) != 0
    if v.kind == DOUBLE or v.kind == FLOAT:
        return not (v.real == 0.0 or isnan(v.real))
    return None


cdef inline bint _numeric(Value v) noexcept:
    return INTEGER <= v.kind <= DOUBLE


cpdef double to_double(Value v) except? -1.0:
    """A number (or a boolean's 0 or 1) as the nearest double."""
    if v.kind >= WIDE:
        return v.real
    if v.kind == DECIMAL:
        return v.number / ONE   # of ints: rounded once
    return <double>(<int64_t>v.number)


cpdef double to_float(Value v) except? -1.0:
    """A number (or a boolean's 0 or 1) rounded to a float, as a double."""
    if v.kind == INTEGER or v.kind == BOOLEAN:
        return <float>(<int64_t>v.number)
    if v.kind == WIDE:
        return unbounded.nearest_float(v.number)
    return <float>to_double(v)


cpdef object scaled(Value v):
    """An INTEGER's, BOOLEAN's or DECIMAL's number times 10**18."""
    return v.number if v.kind == DECIMAL else v.number * ONE


cpdef object exact_of(Value v):
    """An integer, decimal or boolean as a `decimal.Decimal`."""
    if v.kind == WIDE:
        return v.number
    return unbounded.scaled(v.number) if v.kind == DECIMAL else Decimal(v.number)


# The order of two numbers: -1, 0, 1, or 2 for none (NaN).
cdef int _order_numbers(Value a, Value b) except? -2:
    cdef double x, y
    cdef int64_t i, j
    cdef object m, n
    if a.kind == INTEGER and b.kind == INTEGER:
        i = a.number
        j = b.number
        return (i > j) - (i < j)
    if a.kind <= DECIMAL and b.kind <= DECIMAL:
        m = scaled(a)
        n = scaled(b)
        return (m > n) - (m < n)
    if a.kind <= WIDE and b.kind <= WIDE:
        m = exact_of(a)
        n = exact_of(b)
        return (m > n) - (m < n)
    if a.kind == DOUBLE or b.kind == DOUBLE:
        x = to_double(a)
        y = to_double(b)
    else:
        x = to_float(a)
        y = to_float(b)
    if isnan(x) or isnan(y):
        # pyoxigraph compares for identity before it compares numbers.
        return 0 if isnan(x) and isnan(y) and a.kind == b.kind else 2
    return (x > y) - (x < y)


cdef int _order_points(Value a, Value b) except? -2:
    if (a.extra is None) == (b.extra is None):
        return (a.number > b.number) - (a.number < b.number)
    cdef object found = calendar.compare_points((a.number, a.extra), (b.number, b.extra))
    return 2 if found is None else found


cpdef object equals(Value a, Value b):
    """SPARQL's `=`: True, False, or None if the values are incomparable."""
    if _numeric(a):
        if _numeric(b):
            return _order_numbers(a, b) == 0 and not (isnan(a.real) and isnan(b.real))
    elif a.kind == b.kind:
        if a.kind == STRING or a.kind == IRI or a.kind == BLANK:
            return a.text == b.text
        if a.kind == LANG:
            return a.text == b.text and a.form == b.form
        if a.kind == BOOLEAN:
            return a.number == b.number
        if a.kind == POINT:
            return a.form == b.form and _order_points(a, b) == 0
        if a.kind == SPAN:
            return a.number == b.number and a.extra == b.extra
        if a.kind == TRIPLE:
            return _equal_triples(a._term, b._term)
        return True if a.text == b.text and a.form == b.form else None
    # Values of two kinds differ, unless one is a literal of an unknown datatype.
    return None if _opaque(a, b) or _opaque(b, a) else False


cdef object _equal_triples(object a, object b):
    """Whether two triple terms have equal parts; objects are compared as values."""
    while True:
        if a.subject != b.subject or a.predicate != b.predicate:
            return False
        a, b = a.object, b.object
        if type(a) is not TripleTerm or type(b) is not TripleTerm:
            return equals(decode(a), decode(b))


cdef inline bint _opaque(Value a, Value b) noexcept:
    return a.kind == OTHER and b.kind > BLANK and b.kind != LANG


# The order of two values: -1, 0, 1, or 2 for none.
cdef int _order(Value a, Value b) except? -2:
    cdef object found
    if _numeric(a):
        if not _numeric(b):
            return 2
        return _order_numbers(a, b)
    if a.kind != b.kind:
        return 2
    if a.kind == STRING or (a.kind == LANG and a.form == b.form):
        return (a.text > b.text) - (a.text < b.text)
    if a.kind == BOOLEAN:
        return (a.number > b.number) - (a.number < b.number)
    if a.kind == POINT:
        return _order_points(a, b) if a.form == b.form else 2
    if a.kind == SPAN:
        found = calendar.compare_spans((a.extra, a.number), (b.extra, b.number))
        return 2 if found is None else found
    if a.text == b.text and a.form == b.form and a.kind != LANG:
        return 0
    return _order_triples(a._term, b._term) if a.kind == TRIPLE else 2


cdef int _order_triples(object a, object b) except? -2:
    """The order of the objects of two triple terms whose other parts are equal."""
    while True:
        if a.subject != b.subject or a.predicate != b.predicate:
            return 2
        a, b = a.object, b.object
        if type(a) is not TripleTerm or type(b) is not TripleTerm:
            return _order(decode(a), decode(b))


cpdef object less(Value a, Value b):
    """SPARQL's `<`: True, False, or None."""
    cdef int found = _order(a, b)
    return None if found == 2 else found < 0


cpdef object less_equal(Value a, Value b):
    """SPARQL's `<=`: True, False, or None."""
    cdef int found = _order(a, b)
    return None if found == 2 else found <= 0


cpdef object compare(Value a, Value b):
    """-1, 0, 1, or None."""
    cdef int found = _order(a, b)
    return None if found == 2 else found


# ------------------------------------------------------------------ arithmetic

cdef frozenset MOVABLE = frozenset(("dateTime", "date", "time"))


cdef inline bint _whole(Value v):
    """Whether an exact number is an integer by its datatype."""
    return v.kind == INTEGER or (v.kind == WIDE and v.form == "integer")


cdef inline str _common(Value a, Value b):
    """The datatype of the sum or product of two exact numbers."""
    return "integer" if _whole(a) and _whole(b) else "decimal"


cpdef Value add(Value a, Value b):
    if _numeric(a) and _numeric(b):
        if a.kind == INTEGER and b.kind == INTEGER:
            return integer(a.number + b.number)
        if a.kind <= DECIMAL and b.kind <= DECIMAL:
            return decimal(scaled(a) + scaled(b))
        if a.kind <= WIDE and b.kind <= WIDE:
            return exact(_common(a, b), unbounded.total(exact_of(a), exact_of(b)))
        if a.kind == DOUBLE or b.kind == DOUBLE:
            return double(to_double(a) + to_double(b))
        return float_(to_float(a) + to_float(b))
    if a.kind == SPAN:
        if b.kind == SPAN:
            return _spans(a, b, a.extra + b.extra, a.number + b.number)
        return _shift(b, a, 1)
    return _shift(a, b, 1)


cpdef Value subtract(Value a, Value b):
    if _numeric(a) and _numeric(b):
        if a.kind == INTEGER and b.kind == INTEGER:
            return integer(a.number - b.number)
        if a.kind <= DECIMAL and b.kind <= DECIMAL:
            return decimal(scaled(a) - scaled(b))
        if a.kind <= WIDE and b.kind <= WIDE:
            return exact(_common(a, b), unbounded.difference(exact_of(a), exact_of(b)))
        if a.kind == DOUBLE or b.kind == DOUBLE:
            return double(to_double(a) - to_double(b))
        return float_(to_float(a) - to_float(b))
    if a.kind == SPAN and b.kind == SPAN:
        return _spans(a, b, a.extra - b.extra, a.number - b.number)
    if a.kind == POINT and b.kind == POINT:
        if a.form != b.form or a.form not in MOVABLE or (a.extra is None) != (b.extra is None):
            return None
        if calendar.checked_span(0, a.number - b.number) is None:
            return None
        return span("dayTimeDuration", 0, a.number - b.number)
    return _shift(a, b, -1)


cdef Value _spans(Value a, Value b, months, seconds):
    # The months and seconds of a duration have the same sign.
    if calendar.checked_span(months, seconds) is None or months * seconds < 0:
        return None
    return span(a.form if a.form == b.form else "duration", months, seconds)


cdef Value _shift(Value a, Value b, int sign):
    if a.kind != POINT or b.kind != SPAN or a.form not in MOVABLE:
        return None
    if a.form == "time" and b.form == "yearMonthDuration":
        return None
    cdef tuple moved = (sign * b.extra, sign * b.number)
    cdef object found = calendar.add(a.form, (a.number, a.extra), moved)
    return None if found is None else point(a.form, *found)


cdef object _truncated(numerator, denominator):
    quotient = abs(numerator) // abs(denominator)
    return -quotient if (numerator < 0) != (denominator < 0) else quotient


cpdef Value multiply(Value a, Value b):
    cdef object whole, rest
    if not (_numeric(a) and _numeric(b)):
        return None
    if a.kind == INTEGER and b.kind == INTEGER:
        return integer(a.number * b.number)
    if a.kind <= DECIMAL and b.kind <= DECIMAL:
        whole, rest = divmod(scaled(a) * scaled(b), ONE)
        if rest == 0:
            return decimal(whole)
    if a.kind <= WIDE and b.kind <= WIDE:
        return exact(_common(a, b), unbounded.product(exact_of(a), exact_of(b)))
    if a.kind == DOUBLE or b.kind == DOUBLE:
        return double(to_double(a) * to_double(b))
    return float_(to_float(a) * to_float(b))


cpdef Value divide(Value a, Value b):
    cdef double x, y
    if not (_numeric(a) and _numeric(b)):
        return None
    if a.kind <= DECIMAL and b.kind <= DECIMAL:
        if b.number == 0:
            return None
        return decimal(_truncated(scaled(a) * ONE, scaled(b)))
    if a.kind <= WIDE and b.kind <= WIDE:
        if b.number == 0:
            return None
        return exact("decimal", unbounded.quotient(exact_of(a), exact_of(b)))
    if a.kind == DOUBLE or b.kind == DOUBLE:
        x = to_double(a)
        y = to_double(b)
        return double(_quotient(x, y))
    x = to_float(a)
    y = to_float(b)
    return float_(_quotient(x, y))


cdef double _quotient(double x, double y) noexcept:
    # Cython would raise on a division by zero; IEEE 754 has a result.
    if y != 0.0:
        return x / y
    if x == 0.0 or isnan(x):
        return NAN
    return copysign(1.0, x) * copysign(1.0, y) * INFINITY
