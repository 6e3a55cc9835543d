# cython: language_level=3, boundscheck=False, wraparound=False
"""Tokens of N-Triples and N-Quads: where they end, and what they say.

Nothing here decides that a token is wrong: a function either knows that it is right, or
says that it does not know, and then the parser of the rest of the package decides. Texts
are known to be UTF-8. Cost: linear; the long runs (IRIs, strings) sixteen bytes at a time.

Source: RDF 1.2 N-Quads, section 4 (grammar); RFC 3987 (IRIs); RFC 5646 (language tags).
"""


cdef inline uint32_t _character(const char* at, int* width) noexcept nogil:
    """The character that begins at `at`, of a text that is UTF-8."""
    cdef uint8_t lead = <uint8_t>at[0]
    if lead < 0x80:
        width[0] = 1
        return lead
    if lead < 0xE0:
        width[0] = 2
        return <uint32_t>(lead & 0x1F) << 6 | (<uint8_t>at[1] & 0x3F)
    if lead < 0xF0:
        width[0] = 3
        return (
            <uint32_t>(lead & 0x0F) << 12 | <uint32_t>(<uint8_t>at[1] & 0x3F) << 6
            | (<uint8_t>at[2] & 0x3F)
        )
    width[0] = 4
    return (
        <uint32_t>(lead & 0x07) << 18 | <uint32_t>(<uint8_t>at[1] & 0x3F) << 12
        | <uint32_t>(<uint8_t>at[2] & 0x3F) << 6 | (<uint8_t>at[3] & 0x3F)
    )


cdef inline bint _is_letter(uint32_t c) noexcept nogil:
    return c"a" <= c <= c"z" or c"A" <= c <= c"Z"


cdef inline bint _is_digit(uint32_t c) noexcept nogil:
    return c"0" <= c <= c"9"


cdef bint _begins_name(uint32_t c) noexcept nogil:
    """PN_CHARS_U."""
    return (
        _is_letter(c) or c == c"_" or 0xC0 <= c <= 0xD6 or 0xD8 <= c <= 0xF6
        or 0xF8 <= c <= 0x2FF or 0x370 <= c <= 0x37D or 0x37F <= c <= 0x1FFF
        or 0x200C <= c <= 0x200D or 0x2070 <= c <= 0x218F or 0x2C00 <= c <= 0x2FEF
        or 0x3001 <= c <= 0xD7FF or 0xF900 <= c <= 0xFDCF or 0xFDF0 <= c <= 0xFFFD
        or 0x10000 <= c <= 0xEFFFF
    )


cdef bint _continues_name(uint32_t c) noexcept nogil:
    """PN_CHARS."""
    return (
        _begins_name(c) or _is_digit(c) or c == c"-" or c == 0xB7
        or 0x300 <= c <= 0x36F or 0x203F <= c <= 0x2040
    )


cdef const char* label_end(const char* at, const char* end) noexcept nogil:
    """The end of the blank node whose `_:` is at `at`, NULL where it has no label."""
    cdef int width
    cdef uint32_t c
    cdef const char* last
    at += 2
    if at >= end:
        return NULL
    c = _character(at, &width)
    if not (_begins_name(c) or _is_digit(c)):
        return NULL
    at += width
    last = at  # a label does not end in a dot
    while at < end:
        c = <uint8_t>at[0]
        if _is_letter(c) or _is_digit(c) or c == c"_" or c == c"-":
            at += 1
            last = at
            continue
        if c == c".":
            at += 1
            continue
        if c < 0x80:
            break
        c = _character(at, &width)
        if not _continues_name(c):
            break
        at += width
        last = at
    return last


cdef const char* tag_end(const char* at, const char* end) noexcept nogil:
    """The end of the letters, digits and hyphens at `at`."""
    while at < end and (
        _is_letter(<uint8_t>at[0]) or _is_digit(<uint8_t>at[0]) or at[0] == c"-"
    ):
        at += 1
    return at


cdef bint is_tag(const char* text, size_t size) noexcept nogil:
    """Whether this is certainly a language tag: a language, maybe with a region."""
    cdef size_t i, language = size
    if size >= 5 and text[size - 3] == c"-":
        language = size - 3
    if not 2 <= language <= 3:
        return False
    for i in range(size):
        if i != language and not _is_letter(<uint8_t>text[i]):
            return False
    return True


cdef inline int _hexadecimal(char c) noexcept nogil:
    if c"0" <= c <= c"9":
        return c - c"0"
    if c"a" <= c <= c"f":
        return c - c"a" + 10
    if c"A" <= c <= c"F":
        return c - c"A" + 10
    return -1


cdef int _encoded(uint32_t c, char* out) noexcept nogil:
    """Write a character as UTF-8: how many bytes it took."""
    if c < 0x80:
        out[0] = <char>c
        return 1
    if c < 0x800:
        out[0] = <char>(0xC0 | c >> 6)
        out[1] = <char>(0x80 | c & 0x3F)
        return 2
    if c < 0x10000:
        out[0] = <char>(0xE0 | c >> 12)
        out[1] = <char>(0x80 | c >> 6 & 0x3F)
        out[2] = <char>(0x80 | c & 0x3F)
        return 3
    out[0] = <char>(0xF0 | c >> 18)
    out[1] = <char>(0x80 | c >> 12 & 0x3F)
    out[2] = <char>(0x80 | c >> 6 & 0x3F)
    out[3] = <char>(0x80 | c & 0x3F)
    return 4


cdef inline char _control(char c) noexcept nogil:
    """What an escaped letter stands for; 0 where it is none."""
    if c == c"t":
        return c"\t"
    if c == c"b":
        return c"\b"
    if c == c"n":
        return c"\n"
    if c == c"r":
        return c"\r"
    if c == c"f":
        return c"\f"
    return c if c == c'"' or c == c"'" or c == c"\\" else 0


cdef Py_ssize_t unescaped(
    const char* at, const char* end, char* out, bint letters
) noexcept nogil:
    """Write a text with its escapes resolved: how many bytes it took, -1 for a bad escape.

    `letters`: escapes of single letters count too (strings have them, IRIs do not). What is
    written is never longer than what is read.
    """
    cdef char* begin = out
    cdef uint32_t c
    cdef int i, digits, digit
    while at < end:
        if at[0] != c"\\":
            out[0] = at[0]
            out += 1
            at += 1
            continue
        at += 1
        if at >= end:
            return -1
        if at[0] == c"u" or at[0] == c"U":
            digits = 4 if at[0] == c"u" else 8
            at += 1
            if end - at < digits:
                return -1
            c = 0
            for i in range(digits):
                digit = _hexadecimal(at[i])
                if digit < 0:
                    return -1
                c = c << 4 | <uint32_t>digit
            if c > 0x10FFFF or 0xD800 <= c <= 0xDFFF:
                return -1
            out += _encoded(c, out)
            at += digits
        else:
            if not letters or _control(at[0]) == 0:
                return -1
            out[0] = _control(at[0])
            out += 1
            at += 1
    return out - begin
