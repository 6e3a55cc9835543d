"""Values of terms → Arrow columns of native types, without an object for a value.

`NativeValues` records the native type of the term of each row, beside a column of texts. `take`
returns both as a `NativeColumn`, whose `array` builds a column of one type, so the type can be
chosen when all rows are known.

A term is TEXT if its datatype has no native type, if its lexical form is not valid, or if the
native type cannot represent it exactly: integers beyond 64 bits, decimals with 21 digits or more
before the point, times finer than a microsecond. Cost: constant per value.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t, uint32_t, uint64_t
from libc.string cimport memset

import pyarrow as pa

from spaseq.rdf.native._literals cimport (
    ATTOS_PER_DAY,
    ATTOS_PER_SECOND,
    Form,
    decode_record,
    ratio_of,
    uint128,
)
from spaseq.rdf.native._terms cimport (
    NO_ZONE,
    UNDECODED,
    TermRecord,
    int128,
    mem_free,
    mem_grow,
    record_shape,
    text_of,
)
from spaseq.rdf.native._values cimport Kind

# The native types of terms. The values are bits of `NativeColumn.seen`.
cpdef enum Native:
    TEXT = 1            # its IRI, label or lexical form
    BOOLEAN = 2
    INTEGER = 4
    DECIMAL = 8
    DOUBLE = 16
    INSTANT = 32        # a dateTime with a zone
    LOCAL = 64          # a dateTime without one
    DATE = 128
    DURATION = 256      # a dayTimeDuration

# BOOLEAN, INTEGER: the number; DECIMAL: times 10**18; times and durations: microseconds, dates:
# days. Neither for TEXT.
cdef union Content:
    int128 exact
    double real         # DOUBLE

cdef const char* FOR_VALUES = b"another value of a column"

cdef enum:
    MOST_SCALE = 18         # fractional digits of an exact decimal
    PRECISION = 38          # digits of Arrow's decimals of 128 bits

cdef int128 MICROSECOND = <int128>1000000000000     # in attoseconds

cdef int128 EPOCH = 719162 * ATTOS_PER_DAY      # 1970-01-01; points count from 0001-01-01

cdef int128 TENS[MOST_SCALE + 1]                    # the powers of ten


cdef int128 powers_of_ten() noexcept:
    """Fill `TENS`. Returns the least number with more than `PRECISION` digits."""
    cdef int i
    TENS[0] = 1
    for i in range(MOST_SCALE):
        TENS[i + 1] = 10 * TENS[i]
    return TENS[18] * TENS[18] * 100


cdef int128 TOO_LONG = powers_of_ten()


@cython.final
cdef class NativeValues:
    """The native types and contents of the values of a column, in order."""

    cdef uint8_t* kinds         # the exponent of each value's `Native` plus 1; 0: unbound
    cdef Content* contents
    cdef readonly size_t count
    cdef size_t room

    def __dealloc__(self):
        mem_free(self.kinds)
        mem_free(self.contents)

    cdef int _put(self, int native, Content content) except -1:
        cdef uint8_t kind = 0
        if self.count == self.room:
            self.room = 2 * self.room if self.room else 1024
            self.kinds = <uint8_t*>mem_grow(self.kinds, self.room, 1, FOR_VALUES)
            self.contents = <Content*>mem_grow(
                self.contents, self.room, sizeof(Content), FOR_VALUES
            )
        while native:
            native >>= 1
            kind += 1
        self.kinds[self.count] = kind
        self.contents[self.count] = content
        self.count += 1
        return 0

    cdef int skip(self) except -1:
        """Add an unbound value."""
        cdef Content content
        content.exact = 0
        return self._put(0, content)

    cdef int add(self, const TermRecord* record) except -1:
        """Add the value of a term."""
        cdef Content content
        cdef TermRecord own
        cdef int native
        if record.kind == UNDECODED:
            own = record[0]
            decode_record(&own)
            native = native_of(&own, &content)
        else:
            native = native_of(record, &content)
        return self._put(native, content)

    def add_term(self, term):
        """Add the value of a pyoxigraph term; None: unbound."""
        cdef TermRecord record
        cdef bytes text
        if term is None:
            self.skip()
            return
        text = text_of(term)
        memset(&record, 0, sizeof(TermRecord))
        record.text, record.size = text, <uint32_t>len(text)
        record_shape(&record)
        self.add(&record)

    def take(self, texts):
        """The values so far as a column, beside their texts; empties the builder."""
        cdef NativeColumn column = NativeColumn(
            texts,
            PyBytes_FromStringAndSize(<char*>self.kinds, self.count),
            PyBytes_FromStringAndSize(<char*>self.contents, self.count * sizeof(Content)),
        )
        self.count = 0
        return column


cdef int native_of(const TermRecord* record, Content* content) noexcept:
    """The native type of a decoded term, with its content."""
    cdef int128 exact = record.exact
    cdef uint8_t kind = record.kind
    content.exact = exact
    if kind == Kind.INTEGER:
        return Native.INTEGER if INT64_MIN <= exact <= INT64_MAX else Native.TEXT
    if kind == Kind.DECIMAL:
        return Native.DECIMAL if -TOO_LONG < exact < TOO_LONG else Native.TEXT
    if kind == Kind.FLOAT or kind == Kind.DOUBLE:
        content.exact = 0
        content.real = record.further.real
        return Native.DOUBLE
    if kind == Kind.BOOLEAN:
        return Native.BOOLEAN
    if kind == Kind.POINT and record.form == Form.DATE and record.zone == NO_ZONE:
        content.exact = (exact - EPOCH) // ATTOS_PER_DAY
        return Native.DATE if INT32_MIN <= content.exact <= INT32_MAX else Native.TEXT
    if kind == Kind.POINT and record.form == Form.DATE_TIME:
        content.exact = exact - EPOCH
        return in_microseconds(content, Native.LOCAL if record.zone == NO_ZONE else Native.INSTANT)
    if kind == Kind.SPAN and record.form == Form.DAY_TIME_DURATION:
        return in_microseconds(content, Native.DURATION)
    return Native.TEXT


cdef int in_microseconds(Content* content, int native) noexcept:
    """Change attoseconds to microseconds; TEXT if these do not represent them."""
    if content.exact % MICROSECOND != 0:
        return Native.TEXT
    content.exact //= MICROSECOND
    return native if INT64_MIN <= content.exact <= INT64_MAX else Native.TEXT


cdef class NativeColumn:
    """Values of a column with their texts.

    Attributes:
        texts: IRIs, lexical forms and labels, as an array of strings.
        seen: the `Native`s that occur, as bits; 0 if no value is bound.
        scale: the fractional digits that the DECIMAL values need.
    """

    cdef readonly object texts
    cdef readonly int seen
    cdef readonly int scale
    cdef bytes kinds, contents

    def __cinit__(self, texts, bytes kinds not None, bytes contents not None):
        cdef const uint8_t* kind = <const uint8_t*>PyBytes_AS_STRING(kinds)
        cdef const Content* content = <const Content*>PyBytes_AS_STRING(contents)
        cdef Py_ssize_t i
        self.texts, self.kinds, self.contents = texts, kinds, contents
        for i in range(len(kinds)):
            if kind[i]:
                self.seen |= 1 << (kind[i] - 1)
                if 1 << (kind[i] - 1) == Native.DECIMAL:
                    while content[i].exact % TENS[MOST_SCALE - self.scale] != 0:
                        self.scale += 1

    def __len__(self):
        return len(self.kinds)

    def array(self, int native, int scale=0):
        """The values as an array of one native type.

        Args:
            native: a `Native` that represents all values: DECIMAL represents INTEGER, DOUBLE
                represents both, and TEXT everything.
            scale: the fractional digits of DECIMAL, at least those of `self.scale`.
        """
        cdef Py_ssize_t i, count = len(self.kinds)
        cdef const uint8_t* kind = <const uint8_t*>PyBytes_AS_STRING(self.kinds)
        cdef const Content* content = <const Content*>PyBytes_AS_STRING(self.contents)
        cdef bytes data
        cdef uint8_t* bits
        cdef int64_t* numbers
        cdef int128* exact
        cdef double* reals
        cdef int32_t* days
        if native == Native.TEXT:
            return self.texts
        if native == Native.BOOLEAN:
            data = bytes((count + 7) // 8)
            bits = <uint8_t*>PyBytes_AS_STRING(data)
            for i in range(count):
                bits[i // 8] |= <uint8_t>((kind[i] != 0 and content[i].exact != 0) << i % 8)
            return self._array(pa.bool_(), data)
        if native == Native.DECIMAL:
            data = PyBytes_FromStringAndSize(NULL, count * sizeof(int128))
            exact = <int128*>PyBytes_AS_STRING(data)
            for i in range(count):
                if kind[i] and 1 << (kind[i] - 1) == Native.DECIMAL:
                    exact[i] = content[i].exact // TENS[MOST_SCALE - scale]
                else:
                    exact[i] = content[i].exact * TENS[scale]
            return self._array(pa.decimal128(PRECISION, scale), data)
        if native == Native.DOUBLE:
            data = PyBytes_FromStringAndSize(NULL, count * sizeof(double))
            reals = <double*>PyBytes_AS_STRING(data)
            for i in range(count):
                reals[i] = real_of(kind[i], &content[i])
            return self._array(pa.float64(), data)
        if native == Native.DATE:
            data = PyBytes_FromStringAndSize(NULL, count * sizeof(int32_t))
            days = <int32_t*>PyBytes_AS_STRING(data)
            for i in range(count):
                days[i] = <int32_t>content[i].exact
            return self._array(pa.date32(), data)
        data = PyBytes_FromStringAndSize(NULL, count * sizeof(int64_t))
        numbers = <int64_t*>PyBytes_AS_STRING(data)
        for i in range(count):
            numbers[i] = <int64_t>content[i].exact
        return self._array(TYPES[native], data)

    def _array(self, kind, bytes data):
        """An array of fixed-size values, null where the texts are."""
        present = self.texts.buffers()[0]
        buffers = [present, pa.py_buffer(data)]
        return pa.Array.from_buffers(kind, len(self.kinds), buffers, self.texts.null_count)


cdef dict TYPES = {
    Native.INTEGER: pa.int64(),
    Native.INSTANT: pa.timestamp("us", "UTC"),
    Native.LOCAL: pa.timestamp("us"),
    Native.DURATION: pa.duration("us"),
}


cdef double real_of(uint8_t kind, const Content* content) noexcept:
    """A number as the nearest double."""
    cdef int128 exact
    if kind == 0:
        return 0
    if 1 << (kind - 1) == Native.DOUBLE:
        return content.real
    exact = content.exact
    if 1 << (kind - 1) == Native.INTEGER:
        return <double>exact
    if exact < 0:
        return -ratio_of(<uint128>(-exact), <uint64_t>ATTOS_PER_SECOND)
    return ratio_of(<uint128>exact, <uint64_t>ATTOS_PER_SECOND)
