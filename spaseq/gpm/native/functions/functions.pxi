"""The built-in functions that have a native form, on operands.

An entry of `spaseq.sparql.builtins` whose `opcode` names a member of `NativeFunction` runs here.
Every other function, and a call for which `call_native` returns 0, runs in Python
(`spaseq.gpm.python.functions`), with the same result. A function replaces its first argument with
the result, or with an ERROR if there is none; a substring is not copied. Positions count
characters.

Invariant: results are those of the Python functions; no argument of a call is an ERROR. Cost:
constant, or linear in the text for strings; a few microseconds for calls that Python computes.
Source: SPARQL 1.1 section 17.4.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.math cimport ceil, copysign, fabs, floor, isfinite
from libc.string cimport memchr, memcmp, memcpy

from spaseq.gpm.python.regular import replacer
from spaseq.rdf.native._literals cimport ATTOS_PER_SECOND
from spaseq.rdf.native._terms cimport FIRST_PART, PARTS_END, is_triple, second_part, third_part
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES
from spaseq.sparql.builtins import functions_by_name

cdef enum:
    LONGEST_TEXT = 0xFFFFFF00u      # bytes: with its tag, the size of a text fits 32 bits
    RDF_NAMES_SIZE = 43
    XSD_STRING_SIZE = 39

cdef uint32_t MAX_DEPTH = MAX_NESTED_TRIPLES

cdef const char* RDF_NAMES = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"

cdef const char* XSD_STRING = b"http://www.w3.org/2001/XMLSchema#string"


cdef dict _native_functions():
    """The native function of each built-in function that has one.

    Raises:
        ImportError: if an entry's opcode is unknown, or a member of the enum has no entry.
    """
    functions = [entry for entry in functions_by_name().values() if entry.opcode]
    different = {entry.opcode for entry in functions} ^ set(NativeFunction.__members__)
    if different != {"NO_NATIVE_FORM"}:
        names = ", ".join(sorted(different - {"NO_NATIVE_FORM"}))
        raise ImportError(f"NativeFunction and the built-in functions differ: {names}")
    return {entry.name: NativeFunction[entry.opcode] for entry in functions}


cdef dict NUMBERS = _native_functions()


cdef NativeFunction native_of(str name) except *:
    """The native form of a function; `NO_NATIVE_FORM` if it has none."""
    return NUMBERS.get(name, NativeFunction.NO_NATIVE_FORM)


# ------------------------------------------------------------------ terms


cdef int _str(Operand* a, Arena* scratch) except -2 nogil:
    """STR: an IRI, or the lexical form of a literal as written."""
    if is_numeral(a.term):
        write_term(a, scratch)
    if a.kind == Kind.BLANK or a.kind == Kind.TRIPLE:
        a.kind = ERROR
    elif a.whole != NULL or a.kind <= Kind.LANG:
        set_string(a, a.text, a.size)
    else:
        set_canonical(a, a, scratch)
    return 1


cdef void _lang(Operand* a) noexcept nogil:
    """LANG."""
    if a.kind <= Kind.BLANK:
        a.kind = ERROR
    elif a.kind == Kind.LANG:
        set_string(a, a.tag, language_size(a))
    else:
        set_string(a, b"", 0)


cdef void _direction(Operand* a) noexcept nogil:
    """LANGDIR."""
    cdef uint32_t size
    if a.kind <= Kind.BLANK:
        a.kind = ERROR
        return
    size = language_size(a) if a.kind == Kind.LANG else 0
    if size and size < a.tag_size:
        set_string(a, a.tag + size + 2, a.tag_size - size - 2)
    else:
        set_string(a, b"", 0)


cdef int _triple(Operand* a, Arena* scratch) except -2 nogil:
    """TRIPLE of the three operands from `a` on."""
    cdef const char* text
    cdef char* whole
    cdef uint32_t depth = 0
    cdef size_t size, at = FIRST_PART
    cdef int i
    if not (a.kind == Kind.IRI or a.kind == Kind.BLANK) or a[1].kind != Kind.IRI:
        a.kind = ERROR
        return 1
    for i in range(3):
        write_term(&a[i], scratch)
    size = <size_t>a.whole_size + a[1].whole_size + a[2].whole_size + FIRST_PART + PARTS_END + 2
    text = a[2].whole
    while is_triple(text):
        text += third_part(text, second_part(text))
        depth += 1
    if depth >= MAX_DEPTH or size > LONGEST_TEXT:
        a.kind = ERROR
        return 1
    whole = scratch_alloc(scratch, size)
    memcpy(whole, b"<<( ", FIRST_PART)
    for i in range(3):
        memcpy(whole + at, a[i].whole, a[i].whole_size)
        at += a[i].whole_size
        whole[at] = c" "
        at += 1
    memcpy(whole + at - 1, b" )>>", PARTS_END)
    load_text(a, whole, <uint32_t>size)
    return 1


cdef int _part(Operand* a, NativeFunction which) except -2 nogil:
    """SUBJECT, PREDICATE and OBJECT."""
    cdef const char* text = a.whole
    cdef uint32_t second, third
    if a.kind != Kind.TRIPLE:
        a.kind = ERROR
        return 1
    second = second_part(text)
    third = third_part(text, second)
    if which == NativeFunction.SUBJECT:
        load_text(a, text + FIRST_PART, second - 1 - FIRST_PART)
    elif which == NativeFunction.PREDICATE:
        load_text(a, text + second, third - 1 - second)
    else:
        load_text(a, text + third, a.whole_size - third - PARTS_END)
    return 1


cdef inline bint _alphanumeric(char c) noexcept nogil:
    return c"0" <= c <= c"9" or c"a" <= c | 0x20 <= c"z"


cdef inline bint _hexadecimal(char c) noexcept nogil:
    return c"0" <= c <= c"9" or c"a" <= c | 0x20 <= c"f"


cdef bint _is_plain_iri(const char* at, const char* end) noexcept nogil:
    """Whether a text is an IRI of a common form; other texts may be IRIs as well.

    The form is a scheme, `//` and a host, possibly with a port, and ASCII characters.
    """
    if at == end or not c"a" <= at[0] | 0x20 <= c"z":
        return False
    while at < end and _alphanumeric(at[0]):
        at += 1
    if at == end or at[0] != c":":
        return False
    at += 1
    if end - at > 1 and at[0] == c"/" and at[1] == c"/":
        at += 2
        if at == end or not _alphanumeric(at[0]):
            return False
        while at < end and (_alphanumeric(at[0]) or at[0] == c"." or at[0] == c"-"):
            at += 1
        if at < end and at[0] == c":":
            at += 1
            while at < end and c"0" <= at[0] <= c"9":
                at += 1
        if at < end and at[0] != c"/" and at[0] != c"#" and at[0] != c"?":
            return False
    while at < end and at[0] != c"#":
        if not _is_path(&at, end):
            return False
    if at < end:
        at += 1
        while at < end:
            if not _is_path(&at, end):
                return False
    return True


cdef inline bint _is_path(const char** at, const char* end) noexcept nogil:
    """Whether a character may follow the host of an IRI; `at` is moved past it."""
    cdef char c = at[0][0]
    if c == c"%":
        if end - at[0] < 3 or not (_hexadecimal(at[0][1]) and _hexadecimal(at[0][2])):
            return False
        at[0] += 3
        return True
    at[0] += 1
    return _alphanumeric(c) or (c > 0 and memchr(b"-._~/:@!$&'()*+,;=?", c, 19) != NULL)


cdef int _iri(Operand* a, Arena* scratch) except -2 nogil:
    """IRI: whether it was computed here, as all IRIs of a common form are."""
    cdef char* whole
    if a.kind == Kind.IRI:
        return 1
    if a.kind != Kind.STRING:
        a.kind = ERROR
        return 1
    if not _is_plain_iri(a.text, a.text + a.size):
        return 0
    whole = scratch_alloc(scratch, <size_t>a.size + 2)
    whole[0] = c"<"
    memcpy(whole + 1, a.text, a.size)
    whole[a.size + 1] = c">"
    set_computed(a, Kind.IRI)
    a.whole, a.whole_size = whole, a.size + 2
    a.text = whole + 1
    return 1


cdef int _typed_literal(Operand* a, const Operand* datatype, Arena* scratch) except -2 nogil:
    """STRDT: whether it was computed here, as it is for datatypes outside of the RDF namespace."""
    cdef char* whole
    cdef size_t size
    if a.kind != Kind.STRING or datatype.kind != Kind.IRI:
        a.kind = ERROR
        return 1
    if (
        datatype.size >= RDF_NAMES_SIZE
        and memcmp(datatype.text, RDF_NAMES, RDF_NAMES_SIZE) == 0
    ) or (
        datatype.size == XSD_STRING_SIZE
        and memcmp(datatype.text, XSD_STRING, XSD_STRING_SIZE) == 0
    ):
        return 0
    size = <size_t>a.size + datatype.size + 6
    if size > LONGEST_TEXT:
        return 0
    whole = scratch_alloc(scratch, size)
    whole[0] = c'"'
    memcpy(whole + 1, a.text, a.size)
    memcpy(whole + 1 + a.size, b'"^^<', 4)
    memcpy(whole + 5 + a.size, datatype.text, datatype.size)
    whole[size - 1] = c">"
    load_text(a, whole, <uint32_t>size)
    return 1


# ------------------------------------------------------------------ strings

cdef inline bint _compatible(const Operand* text, const Operand* other) noexcept nogil:
    """SPARQL's argument compatibility rules."""
    if not (is_text(text) and is_text(other)):
        return False
    return other.kind == Kind.STRING or (text.kind == Kind.LANG and same_tag(text, other))


cdef inline void _set_like(Operand* to, const char* text, uint32_t size) noexcept nogil:
    """Set another text with the language tag of the operand, if it has one."""
    set_computed(to, to.kind)
    to.text = text
    to.size = size


cdef int64_t _position(const Operand* text, const Operand* part) noexcept nogil:
    """The byte at which a part first occurs; -1 if it does not occur."""
    cdef const char* place = text.text
    cdef const char* last = text.text + text.size - part.size
    if part.size == 0:
        return 0
    if part.size > text.size:
        return -1
    while place <= last:
        place = <const char*>memchr(place, <uint8_t>part.text[0], last - place + 1)
        if place == NULL:
            return -1
        if memcmp(place, part.text, part.size) == 0:
            return place - text.text
        place += 1
    return -1


cdef inline bint _continues(char c) noexcept nogil:
    """Whether a byte continues a character."""
    return (<uint8_t>c & 0xC0) == 0x80


cdef void _string_length(Operand* a) noexcept nogil:
    """STRLEN."""
    cdef uint32_t i, count = 0
    if not is_text(a):
        a.kind = ERROR
        return
    for i in range(a.size):
        count += not _continues(a.text[i])
    set_computed(a, Kind.INTEGER)
    a.exact = count


cdef void _contains(Operand* a, const Operand* part) noexcept nogil:
    """CONTAINS."""
    if _compatible(a, part):
        set_truth(a, _position(a, part) >= 0)
    else:
        a.kind = ERROR


cdef void _begins(Operand* a, const Operand* part) noexcept nogil:
    """STRSTARTS."""
    if _compatible(a, part):
        set_truth(a, a.size >= part.size and memcmp(a.text, part.text, part.size) == 0)
    else:
        a.kind = ERROR


cdef void _ends(Operand* a, const Operand* part) noexcept nogil:
    """STRENDS."""
    cdef const char* rest = a.text + a.size - part.size
    if _compatible(a, part):
        set_truth(a, a.size >= part.size and memcmp(rest, part.text, part.size) == 0)
    else:
        a.kind = ERROR


cdef void _before(Operand* a, const Operand* part) noexcept nogil:
    """STRBEFORE."""
    cdef int64_t place
    if not _compatible(a, part):
        a.kind = ERROR
        return
    place = _position(a, part)
    if place < 0:
        set_string(a, a.text, 0)
    else:
        _set_like(a, a.text, <uint32_t>place)


cdef void _after(Operand* a, const Operand* part) noexcept nogil:
    """STRAFTER."""
    cdef int64_t place
    if not _compatible(a, part):
        a.kind = ERROR
        return
    place = _position(a, part)
    if place < 0:
        set_string(a, a.text, 0)
    else:
        place += part.size
        _set_like(a, a.text + place, a.size - <uint32_t>place)


cdef uint32_t _offset_of(const Operand* text, int128 count) noexcept nogil:
    """The byte after the first `count` characters, or the end of a shorter text."""
    cdef uint32_t i = 0
    while i < text.size:
        if not _continues(text.text[i]):
            if count <= 0:
                break
            count = count - 1
        i += 1
    return i


cdef void _substring(Operand* a, const Operand* start, const Operand* length) noexcept nogil:
    """SUBSTR; `length` may be NULL."""
    cdef int128 first
    cdef uint32_t begin, end
    if not is_text(a) or start.kind != Kind.INTEGER:
        a.kind = ERROR
        return
    if length != NULL and length.kind != Kind.INTEGER:
        a.kind = ERROR
        return
    first = start.exact - 1
    begin = _offset_of(a, first)
    end = a.size if length == NULL else _offset_of(a, first + length.exact)
    if end < begin:
        end = begin
    _set_like(a, a.text + begin, end - begin)


cdef int _concatenate(Operand* a, int count, Arena* scratch) except -2 nogil:
    """CONCAT of `count` operands."""
    cdef size_t size = 0
    cdef bint tagged
    cdef char* text
    cdef int i
    for i in range(count):
        if not is_text(&a[i]):
            a.kind = ERROR
            return 0
        size += a[i].size
    tagged = count > 0 and a.kind == Kind.LANG
    for i in range(1, count):
        tagged = tagged and a[i].kind == Kind.LANG and same_tag(a, &a[i])
    if size > LONGEST_TEXT:
        with gil:
            raise MemoryError("a text of more than 4 GB")
    text = scratch_alloc(scratch, size)
    size = 0
    for i in range(count):
        memcpy(text + size, a[i].text, a[i].size)
        size += a[i].size
    if tagged:
        _set_like(a, text, <uint32_t>size)
    else:
        set_string(a, text, <uint32_t>size)
    return 0


cdef int _encode_for_uri(Operand* a, Arena* scratch) except -2 nogil:
    """ENCODE_FOR_URI: every byte in hexadecimal digits, except those of unreserved characters."""
    cdef const char* digits = b"0123456789ABCDEF"
    cdef char* text
    cdef uint32_t i
    cdef size_t size = 0
    if not is_text(a):
        a.kind = ERROR
        return 1
    if 3 * <size_t>a.size > LONGEST_TEXT:
        return 0
    text = scratch_alloc(scratch, 3 * <size_t>a.size)
    for i in range(a.size):
        if _alphanumeric(a.text[i]) or (
            a.text[i] > 0 and memchr(b"-_.~", a.text[i], 4) != NULL
        ):
            text[size] = a.text[i]
            size += 1
        else:
            text[size] = c"%"
            text[size + 1] = digits[<uint8_t>a.text[i] >> 4]
            text[size + 2] = digits[<uint8_t>a.text[i] & 15]
            size += 3
    set_string(a, text, <uint32_t>size)
    return 1


cdef bint _ascii(const Operand* of) noexcept nogil:
    cdef uint32_t i
    for i in range(of.size):
        if <uint8_t>of.text[i] & 0x80:
            return False
    return True


cdef inline char _lower(char c) noexcept nogil:
    return c | 0x20 if c'A' <= c <= c'Z' else c


cdef inline char _upper(char c) noexcept nogil:
    return c ^ 0x20 if c'a' <= c <= c'z' else c


cdef int _set_changed(Operand* a, str changed, Arena* scratch) except -2:
    """Set another text with the language tag of the operand: 1, or 0 if it is too long."""
    cdef Py_ssize_t size
    cdef const char* utf8 = PyUnicode_AsUTF8AndSize(changed, &size)
    cdef char* text
    if size > LONGEST_TEXT:
        return 0
    text = scratch_alloc(scratch, size)
    memcpy(text, utf8, size)
    _set_like(a, text, <uint32_t>size)
    return 1


cdef int _change_characters(Operand* a, bint upper, Arena* scratch) except -2:
    """UCASE and LCASE of any text, as Python converts it."""
    cdef str text = a.text[:a.size].decode()
    return _set_changed(a, text.upper() if upper else text.lower(), scratch)


cdef int _replace(Operand* a, int count, Arena* scratch) except -2:
    """REPLACE: 1, or 0 for arguments and patterns that are left to `strings.replace`."""
    cdef int i
    if not is_text(a):
        return 0
    for i in range(1, count):
        if a[i].kind != Kind.STRING:
            return 0
    change = replacer(
        a[1].text[:a[1].size].decode(),
        a[3].text[:a[3].size].decode() if count == 4 else "",
        a[2].text[:a[2].size].decode(),
    )
    if change is None:
        return 0
    return _set_changed(a, change(a.text[:a.size].decode()), scratch)


cdef int _change_case(Operand* a, bint upper, Arena* scratch) except -2 nogil:
    """UCASE and LCASE: 1, or 0 for a text that Python converts."""
    cdef char* text
    cdef uint32_t i
    if not is_text(a):
        a.kind = ERROR
        return 1
    if not _ascii(a):
        with gil:
            return _change_characters(a, upper, scratch)
    text = scratch_alloc(scratch, a.size)
    for i in range(a.size):
        text[i] = _upper(a.text[i]) if upper else _lower(a.text[i])
    _set_like(a, text, a.size)
    return 1


cdef int _language_matches(Operand* a, const Operand* wanted) noexcept nogil:
    """LANGMATCHES: 1, or 0 for tags that are not ASCII, which Python compares."""
    cdef uint32_t i
    if a.kind != Kind.STRING or wanted.kind != Kind.STRING:
        a.kind = ERROR
        return 1
    if not (_ascii(a) and _ascii(wanted)):
        return 0
    if wanted.size == 1 and wanted.text[0] == c'*':
        set_truth(a, a.size != 0)
        return 1
    if a.size < wanted.size:
        set_truth(a, False)
        return 1
    for i in range(wanted.size):
        if _lower(a.text[i]) != _lower(wanted.text[i]):
            set_truth(a, False)
            return 1
    set_truth(a, a.size == wanted.size or a.text[wanted.size] == c'-')
    return 1


# ------------------------------------------------------------------ numbers

cdef enum Rounding:
    UP
    DOWN
    NEAREST


cdef bint _absolute(Operand* a) noexcept nogil:
    """ABS: whether it was computed; False: the operand is unchanged and Python computes it."""
    if a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        set_real(a, a.kind, fabs(a.real))
    elif not is_number(a):
        a.kind = ERROR
    elif a.kind == Kind.WIDE:
        return False
    elif a.exact < 0:
        return negate_exact(a)
    else:
        set_computed(a, a.kind)
    return True


cdef bint _round(Operand* a, Rounding direction) noexcept nogil:
    """CEIL, FLOOR and ROUND: whether it was computed, as in `_absolute`.

    ROUND rounds halves up, towards positive infinity.
    """
    cdef double real
    cdef int128 whole, rest
    cdef bint over
    if a.kind == Kind.INTEGER:
        set_integer(a, a.exact)
    elif a.kind == Kind.DECIMAL:
        whole = a.exact // ATTOS_PER_SECOND
        rest = a.exact % ATTOS_PER_SECOND
        if rest < 0:
            rest = rest + ATTOS_PER_SECOND
            whole = whole - 1
        if (direction == Rounding.UP and rest) or (
            direction == Rounding.NEAREST and rest >= ATTOS_PER_SECOND // 2
        ):
            whole = whole + 1
        over = multiply_over(whole, ATTOS_PER_SECOND, &rest)
        return set_decimal(a, rest, over)
    elif a.kind == Kind.WIDE:
        return False
    elif a.kind == Kind.FLOAT or a.kind == Kind.DOUBLE:
        real = a.real
        if isfinite(real):
            # A zero keeps the sign. The fraction is exact.
            if direction == Rounding.UP:
                real = ceil(a.real)
            else:
                real = floor(a.real)
                if direction == Rounding.NEAREST and a.real - real >= 0.5:
                    real += 1.0
            real = copysign(fabs(real), a.real)
        set_real(a, a.kind, real)
    else:
        a.kind = ERROR
    return True


# ------------------------------------------------------------------ calls


cdef int call_native(
    NativeFunction function, Operand* a, int count, Arena* scratch
) except -2 nogil:
    """Call a function with `count` arguments: 1, or 0 where Python computes the result."""
    if function == NativeFunction.NO_NATIVE_FORM:
        return 0
    elif function == NativeFunction.STR:
        return _str(a, scratch)
    elif function == NativeFunction.IRI:
        return _iri(a, scratch)
    elif function == NativeFunction.STRDT:
        return _typed_literal(a, a + 1, scratch)
    elif function == NativeFunction.ENCODE_FOR_URI:
        return _encode_for_uri(a, scratch)
    elif function == NativeFunction.LANG:
        _lang(a)
    elif function == NativeFunction.LANGMATCHES:
        return _language_matches(a, a + 1)
    elif function == NativeFunction.LANGDIR:
        _direction(a)
    elif function == NativeFunction.HASLANG:
        set_truth(a, a.kind == Kind.LANG)
    elif function == NativeFunction.HASLANGDIR:
        set_truth(a, a.kind == Kind.LANG and language_size(a) != a.tag_size)
    elif function == NativeFunction.TRIPLE:
        return _triple(a, scratch)
    elif (
        function == NativeFunction.SUBJECT or function == NativeFunction.PREDICATE
        or function == NativeFunction.OBJECT
    ):
        return _part(a, function)
    elif function == NativeFunction.DATATYPE:
        set_datatype(a, a)
    elif function == NativeFunction.STRLEN:
        _string_length(a)
    elif function == NativeFunction.SUBSTR:
        if (a + 1).kind == Kind.WIDE or (a + count - 1).kind == Kind.WIDE:
            return 0
        _substring(a, a + 1, a + 2 if count == 3 else NULL)
    elif function == NativeFunction.UCASE:
        return _change_case(a, True, scratch)
    elif function == NativeFunction.LCASE:
        return _change_case(a, False, scratch)
    elif function == NativeFunction.CONTAINS:
        _contains(a, a + 1)
    elif function == NativeFunction.STRSTARTS:
        _begins(a, a + 1)
    elif function == NativeFunction.STRENDS:
        _ends(a, a + 1)
    elif function == NativeFunction.STRBEFORE:
        _before(a, a + 1)
    elif function == NativeFunction.STRAFTER:
        _after(a, a + 1)
    elif function == NativeFunction.CONCAT:
        _concatenate(a, count, scratch)
    elif function == NativeFunction.REPLACE:
        with gil:
            return _replace(a, count, scratch)
    elif function == NativeFunction.ABS:
        return _absolute(a)
    elif function == NativeFunction.CEIL:
        return _round(a, Rounding.UP)
    elif function == NativeFunction.FLOOR:
        return _round(a, Rounding.DOWN)
    elif function == NativeFunction.ROUND:
        return _round(a, Rounding.NEAREST)
    elif function == NativeFunction.YEAR:
        return calendar_field(a, Field.YEAR_FIELD)
    elif function == NativeFunction.MONTH:
        return calendar_field(a, Field.MONTH_FIELD)
    elif function == NativeFunction.DAY:
        return calendar_field(a, Field.DAY_FIELD)
    elif function == NativeFunction.HOURS:
        return calendar_field(a, Field.HOURS_FIELD)
    elif function == NativeFunction.MINUTES:
        return calendar_field(a, Field.MINUTES_FIELD)
    elif function == NativeFunction.SECONDS:
        return calendar_field(a, Field.SECONDS_FIELD)
    else:
        return call_math(function, a, count)
    return 1
