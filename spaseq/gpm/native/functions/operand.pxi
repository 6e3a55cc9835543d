"""Operands: the values of terms, and computed values, as C structs.

Loading an operand from the record of a term copies no text. A computed operand gets a text only
when a function or a result needs it, in the canonical lexical form of `_values.canonical`: this
module writes numbers and booleans, and that function writes the rest. `value_of` and `load_value`
convert an operand to a `Value` and back, without loss, for computations in Python.

Invariant: the text of an operand with `whole` is that text, and the numbers are those of
`_values.decode`. A WIDE number always has a text, since only the text holds its digits. Cost:
constant; linear for long texts. A double of at most 15 digits is written here (a float of at most
6), since no other text so short denotes the same number; so is a double of 16 or 17 digits from
0.001 to 1e15 unless two texts are equally near.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.math cimport fabs, isinf, rint, signbit
from libc.stdint cimport uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcmp, memcpy, memset

from spaseq.rdf.limits import MOST_TEXT_BYTES, LimitReached
from spaseq.rdf.native._literals cimport form_name, form_of, scaled_real
from spaseq.rdf.native._terms cimport (
    NO_ZONE,
    Numeral,
    arena_alloc_slow,
    record_shape,
    spell,
    term_of,
    text_of,
)
from spaseq.rdf.native._values import (
    KINDS,
    XSD,
    boolean,
    canonical,
    decimal,
    decode,
    double,
    float_,
    integer,
    lang_string,
    point,
    span,
    string,
)


cdef inline void set_string(Operand* to, const char* text, uint32_t size) noexcept nogil:
    set_computed(to, Kind.STRING)
    to.text = text
    to.size = size


cdef inline bint same_tag(const Operand* a, const Operand* b) noexcept nogil:
    """Whether two LANG operands have the same language and direction."""
    return a.tag_size == b.tag_size and memcmp(a.tag, b.tag, a.tag_size) == 0


cdef extern from *:
    """
    typedef unsigned __int128 spaseq_uint128;
    """
    ctypedef unsigned long long uint128 "spaseq_uint128"

ctypedef const char* name_t

cdef enum:
    MAX_EXACT_BYTES = 48    # of the text of an integer or decimal
    MAX_REAL_BYTES = 40     # of the text of a double that is written here
    MAX_PLACES = 20         # decimal places: greater powers of ten are not exact

cdef size_t LONGEST_MADE = MOST_TEXT_BYTES

cdef str RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

# The datatypes of computed values as N-Quads, by kind and by form; the list owns the texts.
cdef list NAMES = [f"<{RDF}langString>".encode(), f"<{RDF}dirLangString>".encode()]

cdef const char* LANG_STRING = NAMES[0]

cdef const char* DIRECTED_STRING = NAMES[1]

cdef name_t[12] BY_KIND

cdef name_t[12] BY_FORM

cdef tuple PLAIN = ("string", "boolean", "integer", "decimal", "float", "double")


cdef int _list_datatypes() except -1:
    cdef bytes text
    for name, kind in KINDS.items():
        text = f"<{XSD}{name}>".encode()
        if kind == Kind.POINT or kind == Kind.SPAN:
            if name != form_name(form_of(name)):
                continue
            BY_FORM[form_of(name)] = text
        elif name in PLAIN:
            BY_KIND[kind] = text
        NAMES.append(text)
    return 0


_list_datatypes()


# ------------------------------------------------------------------ loading


cdef int load_text(Operand* to, const char* whole, uint32_t size) except -2 nogil:
    """Load the value of a term from N-Quads; the text must outlive the operand."""
    cdef TermRecord record
    memset(&record, 0, sizeof(TermRecord))
    record.text = whole
    record.size = size
    record_shape(&record)
    load_record(to, &record, 0)
    return 0


cdef uint32_t language_size(const Operand* of) noexcept nogil:
    """The bytes of the language in the tag of a LANG; a direction may follow after `--`."""
    cdef uint32_t i
    for i in range(1, of.tag_size):
        if of.tag[i] == c'-' and of.tag[i - 1] == c'-':
            return i - 1
    return of.tag_size


cdef char* scratch_alloc(Arena* scratch, size_t size) except NULL nogil:
    """Memory for a text of an evaluation.

    Raises:
        LimitReached: for more than `MOST_TEXT_BYTES`.
    """
    cdef char* piece
    if size > LONGEST_MADE:
        with gil:
            raise LimitReached("text")
    piece = <char*>arena_alloc_slow(scratch, size if size else 1)
    if piece == NULL:
        with gil:
            raise MemoryError("no memory for a text that an expression makes")
    return piece


cdef Value value_of(const Operand* of):
    """The operand as a `Value`."""
    cdef int kind = of.kind
    cdef Numeral numeral
    cdef const TermRecord* record
    if kind == Kind.STRING:
        return string(PyUnicode_DecodeUTF8(of.text, of.size, NULL))
    if kind == Kind.LANG:
        return lang_string(
            PyUnicode_DecodeUTF8(of.text, of.size, NULL),
            PyUnicode_DecodeUTF8(of.tag, of.tag_size, NULL),
        )
    if of.whole != NULL:
        return decode(term_of(of.whole[:of.whole_size], of.size))
    if is_numeral(of.term):
        record = spell(&numeral, of.term)
        return decode(term_of(record.text[:record.size], record.lexical))
    if kind == Kind.BOOLEAN:
        return boolean(of.exact != 0)
    if kind == Kind.INTEGER:
        return integer(of.exact)
    if kind == Kind.DECIMAL:
        return decimal(of.exact)
    if kind == Kind.DOUBLE:
        return double(of.real)
    if kind == Kind.FLOAT:
        return float_(of.real)
    if kind == Kind.POINT:
        return point(form_name(of.form), of.exact, None if of.zone == NO_ZONE else of.zone)
    if kind == Kind.SPAN:
        return span(form_name(of.form), of.months, of.exact)
    raise SystemError(f"an operand of kind {kind} has no value")


cdef int load_value(Operand* to, Value value, Arena* scratch) except -2:
    """Load a value, ERROR for None; texts are copied into the scratch memory."""
    cdef bytes text
    cdef char* copy
    if value is None:
        to.kind = ERROR
        return 0
    cdef int kind = value.kind
    if kind == Kind.BOOLEAN:
        set_truth(to, value.number)
        return 0
    if kind == Kind.WIDE:
        return _load_wide(to, value, scratch)
    if kind == Kind.STRING or (kind == Kind.LANG and value._term is None):
        text = value.text.encode()
        copy = scratch_alloc(scratch, len(text))
        memcpy(copy, <const char*>text, len(text))
        set_string(to, copy, <uint32_t>len(text))
        if kind == Kind.LANG:
            text = value.form.encode()
            copy = scratch_alloc(scratch, len(text))
            memcpy(copy, <const char*>text, len(text))
            to.kind = kind
            to.tag = copy
            to.tag_size = <uint32_t>len(text)
        return 0
    if value._term is not None:
        text = text_of(value._term)
        copy = scratch_alloc(scratch, len(text))
        memcpy(copy, <const char*>text, len(text))
        return load_text(to, copy, <uint32_t>len(text))
    set_computed(to, kind)
    if kind == Kind.DOUBLE or kind == Kind.FLOAT:
        to.real = value.real
        return 0
    to.exact = value.number
    if kind == Kind.POINT:
        to.zone = NO_ZONE if value.extra is None else <int16_t>value.extra
        to.form = form_of(value.form)
    elif kind == Kind.SPAN:
        to.months = value.extra
        to.form = form_of(value.form)
    return 0


cdef int _load_wide(Operand* to, Value value, Arena* scratch) except -2:
    cdef object term = value.term
    cdef bytes text = text_of(term)
    cdef char* copy = scratch_alloc(scratch, len(text))
    memcpy(copy, <const char*>text, len(text))
    set_computed(to, Kind.WIDE)
    to.real = value.real
    to.whole, to.whole_size = copy, <uint32_t>len(text)
    to.text, to.size = copy + 1, <uint32_t>len(term.value)
    return 0


# ------------------------------------------------------------------ texts


cdef int _write_digits(char* to, uint128 number, int width) noexcept nogil:
    """Write a number with at least `width` digits; returns the number of digits."""
    cdef char[MAX_EXACT_BYTES] digits
    cdef int count = 0, i
    cdef uint64_t low
    while number >> 64:
        digits[count] = <char>(48 + <int>(number % 10))
        number //= 10
        count += 1
    low = <uint64_t>number
    while low or count < width:
        digits[count] = <char>(48 + <int>(low % 10))
        low //= 10
        count += 1
    for i in range(count):
        to[i] = digits[count - 1 - i]
    return count


cdef int _write_point(char* to, uint128 number, int places) noexcept nogil:
    """Write number / 10**places without trailing zeros in the fraction; returns the size."""
    cdef int size = _write_digits(to, number, places + 1)
    cdef int i
    while places and to[size - 1] == c'0':
        size -= 1
        places -= 1
    if places:
        for i in range(places):
            to[size - i] = to[size - i - 1]
        to[size - places] = c'.'
        size += 1
    return size


cdef int _write_exact(char* to, int128 number, int places) noexcept nogil:
    cdef uint128 size = <uint128>number
    if number < 0:
        to[0] = c'-'
        return 1 + _write_point(to + 1, ~size + 1, places)
    return _write_point(to, size, places)


cdef int _write_real(char* to, double real, bint narrow) noexcept nogil:
    """Write a float or double in the shortest form; the size, or 0 if it needs more digits."""
    cdef double size = fabs(real), power = 1.0, limit = 1e6 if narrow else 1e15, near, back
    cdef int places, size_written, sign = signbit(real) != 0
    if isnan(real):
        memcpy(to, b"NaN", 3)
        return 3
    to[0] = c'-'
    if isinf(real):
        memcpy(to + sign, b"INF", 3)
        return sign + 3
    for places in range(MAX_PLACES):
        near = rint(size * power)
        if near >= limit:
            break
        back = near / power
        if (<float>back if narrow else back) == size:
            return sign + _write_point(to + sign, <uint128><uint64_t>near, places)
        power *= 10.0
    if narrow or size < 1e-3 or size >= 1e15:
        return 0
    size_written = _write_long(to + sign, size)
    return sign + size_written if size_written else 0


cdef int _write_long(char* to, double size) noexcept nogil:
    """Write a double from 0.001 that needs 16 or 17 digits; the size, or 0 if there may be a
    tie."""
    cdef char[MAX_REAL_BYTES] text
    cdef int digits, exponent, i
    cdef uint64_t number
    cdef double back = 0.0
    for digits in range(16, 18):
        # One digit more than needed: unless it is a 5, both directions of rounding agree.
        snprintf(text, MAX_REAL_BYTES, b"%.*e", digits, size)
        number = 0
        i = 0
        while text[i] != c'e':
            if c'0' <= text[i] <= c'9':     # the decimal point depends on the locale
                number = 10 * number + <uint64_t>(text[i] - c'0')
            i += 1
        exponent = (text[i + 2] - c'0') * 10 + text[i + 3] - c'0'
        if text[i + 1] == c'-':
            exponent = -exponent
        if number % 10 == 5:
            return 0
        number = (number + 5) // 10
        if not scaled_real(number, exponent - digits + 1, &back):
            return 0
        if back == size:
            return _write_point(to, number, digits - 1 - exponent)
    return 0


cdef int set_canonical(Operand* to, const Operand* of, Arena* scratch) except -2 nogil:
    """Set `to` to the STRING of the canonical lexical form of a literal."""
    cdef int kind = of.kind
    cdef char* text
    cdef int size = 0
    if kind == Kind.BOOLEAN:
        if of.exact:
            set_string(to, b"true", 4)
        else:
            set_string(to, b"false", 5)
    elif kind == Kind.INTEGER or kind == Kind.DECIMAL:
        text = scratch_alloc(scratch, MAX_EXACT_BYTES)
        size = _write_exact(text, of.exact, 0 if kind == Kind.INTEGER else 18)
        set_string(to, text, size)
    elif kind == Kind.STRING or kind == Kind.LANG or kind == Kind.OTHER:
        set_string(to, of.text, of.size)
    else:
        if kind == Kind.DOUBLE or kind == Kind.FLOAT:
            text = scratch_alloc(scratch, MAX_REAL_BYTES)
            size = _write_real(text, of.real, kind == Kind.FLOAT)
            if size:
                set_string(to, text, size)
        if size == 0:
            with gil:
                load_value(to, string(canonical(value_of(of))), scratch)
    return 0


cdef int write_term(Operand* of, Arena* scratch) except -2 nogil:
    """Write the N-Quads text of a value, which is then a term.

    A numeral has the text as written, a computed value the canonical form.
    """
    cdef Operand shown
    cdef const char* suffix
    cdef uint32_t size
    cdef char* text
    if of.whole != NULL:
        return 0
    if is_numeral(of.term):
        return _write_numeral(of, scratch)
    if of.kind == Kind.STRING:
        suffix = NULL
        size = 0
    elif of.kind == Kind.LANG:
        suffix = of.tag
        size = of.tag_size + 1
    else:
        suffix = _datatype(of)
        size = _length(suffix) + 2
    set_canonical(&shown, of, scratch)
    text = scratch_alloc(scratch, <size_t>shown.size + size + 2)
    of.whole = text
    of.whole_size = shown.size + size + 2
    of.text = text + 1
    of.size = shown.size
    text[0] = c'"'
    memcpy(text + 1, shown.text, shown.size)
    text += shown.size + 1
    text[0] = c'"'
    if of.kind == Kind.LANG:
        text[1] = c'@'
        memcpy(text + 2, suffix, size - 1)
    elif size:
        text[1] = text[2] = c'^'
        memcpy(text + 3, suffix, size - 2)
    return 0


cdef int _write_numeral(Operand* of, Arena* scratch) except -2 nogil:
    cdef Numeral numeral
    cdef const TermRecord* record = spell(&numeral, of.term)
    cdef char* text = scratch_alloc(scratch, record.size)
    memcpy(text, record.text, record.size)
    of.whole, of.whole_size = text, record.size
    of.text, of.size = text + 1, record.lexical
    of.real = record.further.real
    return 0


cdef inline uint32_t _length(const char* iri) noexcept nogil:
    """The bytes of an IRI in angle brackets."""
    cdef uint32_t size = 0
    while iri[size] != c'>':
        size += 1
    return size + 1


cdef inline const char* _datatype(const Operand* of) noexcept nogil:
    """The datatype of a computed literal, in angle brackets."""
    if of.kind == Kind.POINT or of.kind == Kind.SPAN:
        return BY_FORM[of.form]
    return BY_KIND[of.kind]


cdef void set_datatype(Operand* to, const Operand* of) noexcept nogil:
    """Set `to` to the IRI of the datatype of a literal: as written, if it has a text."""
    cdef const char* name
    if of.kind <= Kind.BLANK or of.kind == ERROR:
        to.kind = ERROR
        return
    if of.kind == Kind.LANG:
        name = LANG_STRING if language_size(of) == of.tag_size else DIRECTED_STRING
    elif of.kind == Kind.STRING or of.whole == NULL:
        name = _datatype(of)
    else:
        name = of.whole + of.size + 4
    set_computed(to, Kind.IRI)
    to.whole = name
    to.whole_size = _length(name)
    to.text = name + 1
    to.size = to.whole_size - 2
