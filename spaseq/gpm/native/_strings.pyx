# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""SPARQL's functions on strings, on UTF-8 operands: those of `strings` that need no table.

Each puts its result in the place of its first operand; parts of a text are not copied.
Positions are counted in characters. Where letters beyond ASCII would change, the answer is
0: ask Python. Invariant: results are those of `spaseq.gpm.python.strings`. Cost: linear in the
text.
Source: SPARQL 1.1 section 17.4.3.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

from spaseq.gpm.native._operators cimport ERROR, scratch_take, set_computed, set_string, set_truth
from spaseq.rdf._terms cimport int128

cdef size_t LONGEST = 0xFFFFFF00u       # bytes of a text: with its tag its size fits 32 bits


cdef inline bint _same_tag(const Operand* a, const Operand* b) noexcept nogil:
    return a.tag_size == b.tag_size and memcmp(a.tag, b.tag, a.tag_size) == 0


cdef inline bint _compatible(const Operand* text, const Operand* other) noexcept nogil:
    """SPARQL's argument compatibility rules."""
    if not (is_text(text) and is_text(other)):
        return False
    return other.kind == Kind.STRING or (text.kind == Kind.LANG and _same_tag(text, other))


cdef inline void _set_like(Operand* to, const char* text, uint32_t size) noexcept nogil:
    """Another text of the same language, if there is one."""
    set_computed(to, to.kind)
    to.text = text
    to.size = size


cdef int64_t _position(const Operand* text, const Operand* part) noexcept nogil:
    """Where a part begins first, -1 where it does not occur."""
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


cdef void string_length(Operand* a) noexcept nogil:
    """STRLEN."""
    cdef uint32_t i, count = 0
    if not is_text(a):
        a.kind = ERROR
        return
    for i in range(a.size):
        count += not _continues(a.text[i])
    set_computed(a, Kind.INTEGER)
    a.exact = count


cdef void contains(Operand* a, const Operand* part) noexcept nogil:
    """CONTAINS."""
    if _compatible(a, part):
        set_truth(a, _position(a, part) >= 0)
    else:
        a.kind = ERROR


cdef void begins(Operand* a, const Operand* part) noexcept nogil:
    """STRSTARTS."""
    if _compatible(a, part):
        set_truth(a, a.size >= part.size and memcmp(a.text, part.text, part.size) == 0)
    else:
        a.kind = ERROR


cdef void ends(Operand* a, const Operand* part) noexcept nogil:
    """STRENDS."""
    cdef const char* rest = a.text + a.size - part.size
    if _compatible(a, part):
        set_truth(a, a.size >= part.size and memcmp(rest, part.text, part.size) == 0)
    else:
        a.kind = ERROR


cdef void text_is(Operand* a, const Operand* part) noexcept nogil:
    """Whether a text, of whatever language, is another."""
    if _compatible(a, part):
        set_truth(a, a.size == part.size and memcmp(a.text, part.text, part.size) == 0)
    else:
        a.kind = ERROR


cdef void before(Operand* a, const Operand* part) noexcept nogil:
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


cdef void after(Operand* a, const Operand* part) noexcept nogil:
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


cdef uint32_t _offset(const Operand* text, int128 count) noexcept nogil:
    """The byte that `count` characters lie before; the end where there are not so many."""
    cdef uint32_t i = 0
    while i < text.size:
        if not _continues(text.text[i]):
            if count <= 0:
                break
            count = count - 1
        i += 1
    return i


cdef void substring(Operand* a, const Operand* start, const Operand* length) noexcept nogil:
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
    begin = _offset(a, first)
    end = a.size if length == NULL else _offset(a, first + length.exact)
    if end < begin:
        end = begin
    _set_like(a, a.text + begin, end - begin)


cdef int concatenate(Operand* a, int count, Arena* scratch) except -2 nogil:
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
        tagged = tagged and a[i].kind == Kind.LANG and _same_tag(a, &a[i])
    if size > LONGEST:
        with gil:
            raise MemoryError("a text of more than 4 GB")
    text = scratch_take(scratch, size)
    size = 0
    for i in range(count):
        memcpy(text + size, a[i].text, a[i].size)
        size += a[i].size
    if tagged:
        _set_like(a, text, <uint32_t>size)
    else:
        set_string(a, text, <uint32_t>size)
    return 0


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


cdef int change_case(Operand* a, bint upper, Arena* scratch) except -2 nogil:
    """UCASE and LCASE: 1, or 0 where Python must be asked."""
    cdef char* text
    cdef uint32_t i
    if not is_text(a):
        a.kind = ERROR
        return 1
    if not _ascii(a):
        return 0
    text = scratch_take(scratch, a.size)
    for i in range(a.size):
        text[i] = _upper(a.text[i]) if upper else _lower(a.text[i])
    _set_like(a, text, a.size)
    return 1


cdef int language_matches(Operand* a, const Operand* wanted) noexcept nogil:
    """LANGMATCHES: 1, or 0 where Python must be asked."""
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
