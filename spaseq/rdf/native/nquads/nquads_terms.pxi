"""Tokens and terms of N-Triples and N-Quads: where they end in a buffer, and their numbers.

A token or term is accepted only if it is certainly valid. pyoxigraph checks an unusual term (an IRI
with brackets, a rare language tag), once per batch and term. Otherwise the answer is "not sure",
and pyoxigraph reads the line; nothing is an error here. A term is checked only if the table of the
batch does not have it, and entered only if some query can use it. Its text stays in the buffer,
which the batch holds, unless the text has escapes. Texts are valid UTF-8.

Cost: linear in the bytes; IRIs and strings are scanned 16 bytes at a time.
Source: RDF 1.2 N-Triples and N-Quads (grammars); RFC 3987 (IRIs); RFC 5646 (language tags).
"""

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memcmp, memcpy

import pyoxigraph as ox

from spaseq.rdf.native._terms cimport has_blank, hash_of, known_term, mem_free, mem_realloc


cdef inline const char* line_end(const char* at, const char* end) noexcept nogil:
    """The end of the line with its line feed; `end` if there is none."""
    cdef const char* feed = <const char*>memchr(at, c"\n", end - at)
    if feed == NULL:
        return end
    return feed + 1


cdef inline const char* rest_of_line(const char* at, const char* end) noexcept nogil:
    """The end of a line of which only space and a comment remain; else NULL."""
    cdef const char* following
    at = behind_space(at, end)
    if at == end:
        return end
    if at[0] == c"\n":
        return at + 1
    if at[0] != c"#":
        return NULL
    following = line_end(at, end)
    if memchr(at, c"\r", following - at) != NULL:
        return NULL
    return following


# ------------------------------------------------------------------ terms

cdef enum:
    MOST = 0x7FFFFFFF       # bytes of a token

cdef object NamedNode = ox.NamedNode

cdef object Literal = ox.Literal

cdef enum:
    MOST_TAGS = 10000       # language tags that are remembered
    MOST_DEPTH = 60         # of triple terms that are read here

cdef const char* XSD_STRING = b"<http://www.w3.org/2001/XMLSchema#string>"

cdef const char* RDF_TAGGED = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#"

cdef enum:
    XSD_STRING_SIZE = 41
    RDF_TAGGED_SIZE = 44


# ------------------------------------------------------------------ tokens


cdef uint32_t character(const char* at, int* width) noexcept nogil:
    """The character at `at`, and its width in bytes; the text is UTF-8."""
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


cdef bint begins_name(uint32_t c) noexcept nogil:
    """PN_CHARS_U."""
    return (
        _is_letter(c) or c == c"_" or 0xC0 <= c <= 0xD6 or 0xD8 <= c <= 0xF6
        or 0xF8 <= c <= 0x2FF or 0x370 <= c <= 0x37D or 0x37F <= c <= 0x1FFF
        or 0x200C <= c <= 0x200D or 0x2070 <= c <= 0x218F or 0x2C00 <= c <= 0x2FEF
        or 0x3001 <= c <= 0xD7FF or 0xF900 <= c <= 0xFDCF or 0xFDF0 <= c <= 0xFFFD
        or 0x10000 <= c <= 0xEFFFF
    )


cdef bint continues_name(uint32_t c) noexcept nogil:
    """PN_CHARS."""
    return (
        begins_name(c) or _is_digit(c) or c == c"-" or c == 0xB7
        or 0x300 <= c <= 0x36F or 0x203F <= c <= 0x2040
    )


cdef const char* label_end(const char* at, const char* end) noexcept nogil:
    """The end of the blank node whose `_:` is at `at`; NULL if it has no label."""
    cdef int width
    cdef uint32_t c
    cdef const char* last
    at += 2
    if at >= end:
        return NULL
    c = character(at, &width)
    if not (begins_name(c) or _is_digit(c)):
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
        c = character(at, &width)
        if not continues_name(c):
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
    """Write a character as UTF-8. Returns the number of bytes."""
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
    """The character of an escaped letter; 0 for a letter that is not an escape."""
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
    """Write a text with its escapes resolved. Returns the number of bytes, -1 for a bad escape.

    `letters`: whether escapes of single letters are allowed (in strings, not in IRIs). The output
    is never longer than the input.
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


# ------------------------------------------------------------------ terms


cdef class TermReader:
    """Validates terms and enters them into the batch."""

    def __cinit__(self, EventReader events not None, *_):
        self.events = events
        self.tags = {}

    def __dealloc__(self):
        mem_free(self.scratch)

    cdef bint name_or_label(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil:
        """Whether an IRI or a blank node is certainly valid; its number if it is `wanted`.

        The caller has validated the label of a blank node.
        """
        cdef uint64_t hash
        cdef Py_ssize_t length
        cdef bint copied = False
        if not wanted and text[0] == c"_":
            return True
        if not wanted and is_iri(text + 1, size - 2, &self.beginning):
            return True
        hash = hash_of(text, size)
        term[0] = known_term(self.events.batch, hash, text, <uint32_t>size)
        if term[0]:
            return True
        if text[0] == c"<" and not (wanted and is_iri(text + 1, size - 2, &self.beginning)):
            if memchr(text, c"\\", size) != NULL:
                self.reserve(size)
                length = unescaped(text + 1, text + size - 1, self.scratch + 1, False)
                if length < 0 or not self.asked_iri(self.scratch + 1, length):
                    return False
                self.scratch[0] = c"<"
                self.scratch[length + 1] = c">"
                text = self.scratch
                size = length + 2
                copied = True
                hash = hash_of(text, size)
                term[0] = known_term(self.events.batch, hash, text, <uint32_t>size)
                if term[0]:
                    return True
            elif not self.asked_iri(text + 1, size - 2):
                return False
        # A term that pyoxigraph validated is entered even if unwanted, to validate it once only.
        term[0] = self.events.batch.enter(hash, text, <uint32_t>size, copied)
        return True

    cdef int enter_valid(self, Token* token, uint64_t hash) except -1 nogil:
        """Set the number of a valid token without escapes."""
        token.term = known_term(self.events.batch, hash, token.text, <uint32_t>token.size)
        if token.term == 0:
            token.term = self.events.batch.enter(hash, token.text, <uint32_t>token.size, False)
        return 0

    cdef const char* object_token(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil:
        """The end of the object at `at`; NULL if it is not certainly valid."""
        cdef const char* close
        quad.blank_object = False
        if at[0] == c'"':
            return self.literal_token(at, end, column, wanted, &quad.object)
        if at[0] == c"<":
            if end - at > 1 and at[1] == c"<":
                return self.triple_token(at, end, wanted, quad)
            close = iri_end(at, end)
        elif at[0] == c"_" and end - at > 2 and at[1] == c":":
            close = label_end(at, end)
            quad.blank_object = True
        else:
            return NULL
        if close == NULL or close - at > MOST:
            return NULL
        if (
            column.value.text != NULL and column.value.size == <size_t>(close - at)
            and same(column.value.text, at, close - at)
        ):
            quad.object = column.value.term
            return close
        column.value.text = NULL
        column.value.term = 0
        if not self.name_or_label(at, close - at, wanted, &column.value.term):
            return NULL
        column.value.text = at
        column.value.size = close - at
        quad.object = column.value.term
        return close

    cdef const char* triple_token(
        self, const char* at, const char* end, bint wanted, Quad* quad
    ) except? NULL nogil:
        """The end of the triple term at `at`; NULL if it is not certainly valid, or not canonical.

        The canonical form is that of the dictionary: one space between its parts, which have no
        escapes. Most writers use this form; pyoxigraph reads the others.
        """
        cdef const char* close = self.triple_end(at, end, 1)
        cdef uint64_t hash
        cdef uint32_t size
        if close == NULL or close - at > MOST:
            return NULL
        size = <uint32_t>(close - at)
        if has_blank(at, size):
            quad.blank_object = 2
        if wanted:
            hash = hash_of(at, size)
            quad.object = known_term(self.events.batch, hash, at, size)
            if quad.object == 0:
                quad.object = self.events.batch.enter(hash, at, size, False)
        return close

    cdef const char* triple_end(
        self, const char* at, const char* end, int depth
    ) except? NULL nogil:
        """Like `triple_token`, for a term at a depth, without its number."""
        if depth > MOST_DEPTH or end - at < 4 or memcmp(at, b"<<( ", 4) != 0:
            return NULL
        at = self.part_end(at + 4, end, True)
        if at == NULL or end - at < 2 or at[0] != c" ":
            return NULL
        at = self.part_end(at + 1, end, False)
        if at == NULL or end - at < 3 or at[0] != c" ":
            return NULL
        at += 1
        if at[0] == c'"':
            at = self.plain_literal_end(at, end)
        elif at[0] == c"<" and at[1] == c"<":
            at = self.triple_end(at, end, depth + 1)
        else:
            at = self.part_end(at, end, True)
        if at == NULL or end - at < 4 or memcmp(at, b" )>>", 4) != 0:
            return NULL
        return at + 4

    cdef const char* part_end(
        self, const char* at, const char* end, bint blank
    ) except? NULL nogil:
        """The end of the IRI, or the blank node, that is a part of a triple term."""
        cdef const char* close
        if blank and at[0] == c"_" and end - at > 2 and at[1] == c":":
            return label_end(at, end)
        if at[0] != c"<":
            return NULL
        close = iri_end(at, end)
        if close == NULL or not is_iri(at + 1, close - at - 2, &self.beginning):
            return NULL
        return close

    cdef const char* plain_literal_end(
        self, const char* at, const char* end
    ) except? NULL nogil:
        """The end of a literal that is written in the form of the dictionary."""
        cdef bint is_plain = True
        cdef const char* close = quote(at + 1, end)
        cdef const char* suffix
        if close == end or close[0] != c'"':
            return NULL
        suffix = close + 1
        if suffix == end or suffix[0] == c" ":
            return suffix
        if suffix[0] == c"@":
            close = self.language(suffix, end, &is_plain)
            return close if is_plain else NULL
        if end - suffix < 3 or suffix[0] != c"^" or suffix[1] != c"^":
            return NULL
        suffix += 2
        close = self.part_end(suffix, end, False)
        if close == NULL or (
            close - suffix > RDF_TAGGED_SIZE
            and memcmp(suffix, RDF_TAGGED, RDF_TAGGED_SIZE) == 0
        ):
            return NULL
        if close - suffix == XSD_STRING_SIZE and memcmp(suffix, XSD_STRING, XSD_STRING_SIZE) == 0:
            return NULL
        return close

    cdef const char* literal_token(
        self, const char* at, const char* end, Column* column, bint wanted, term_t* term
    ) except? NULL nogil:
        """The end of the literal at `at`; NULL if it is not certainly valid."""
        cdef const char* text = at
        cdef const char* close = at + 1
        cdef const char* suffix
        cdef size_t size
        cdef uint64_t hash
        cdef Py_ssize_t length
        cdef bint as_is = True      # its text is the text of the buffer, up to `at`
        while True:
            close = quote(close, end)
            if close == end:
                return NULL
            if close[0] == c'"':
                break
            if close[0] != c"\\" or end - close < 2:
                return NULL
            as_is = False
            close += 2
        at = close + 1
        suffix = behind_space(at, end)
        if suffix < end and (suffix[0] == c"@" or suffix[0] == c"^"):
            as_is &= suffix == at
            if suffix[0] == c"@":
                at = self.language(suffix, end, &as_is)
                size = 0 if at == NULL else at - text
            else:
                if end - suffix < 3 or suffix[1] != c"^":
                    return NULL
                at = behind_space(suffix + 2, end)
                as_is &= at == suffix + 2
                suffix = at
                at = self.datatype(suffix, end, column)
                size = 0 if at == NULL else at - text
                if at != NULL and column.is_string:
                    suffix = at
                    size = close + 1 - text
            if at == NULL:
                return NULL
        else:
            suffix = at
            size = at - text
        if at - text > MOST:
            return NULL
        if as_is:
            if not wanted:
                return at
            if (
                column.value.text != NULL and column.value.size == size
                and same(column.value.text, text, size)
            ):
                term[0] = column.value.term
                return at
        else:
            size = self.build_literal(text, close, suffix, at)
            if size == 0:
                return NULL
            if not wanted:
                return at
            text = self.scratch
        hash = hash_of(text, size)
        term[0] = known_term(self.events.batch, hash, text, <uint32_t>size)
        if term[0] == 0:
            term[0] = self.events.batch.enter(hash, text, <uint32_t>size, not as_is)
        if as_is:
            column.value.text = text
            column.value.size = size
            column.value.term = term[0]
        return at

    cdef int build_literal(
        self, const char* at, const char* close, const char* suffix, const char* end
    ) except -1 nogil:
        """Write the literal whose quotes are at `at` and `close`. Returns its size; 0: bad escape.

        `suffix`: the tag, the datatype's IRI, or nothing, up to `end`.
        """
        cdef Py_ssize_t length
        cdef char* out
        cdef const char* letter
        self.reserve((close - at) + (end - suffix) + 8)
        out = self.scratch
        out[0] = c'"'
        length = unescaped(at + 1, close, out + 1, True)
        if length < 0:
            return 0
        out += length + 1
        out[0] = c'"'
        out += 1
        if suffix < end and suffix[0] == c"<":
            memcpy(out, b"^^", 2)
            out += 2
        letter = suffix
        while letter < end:
            out[0] = letter[0]
            if suffix[0] == c"@" and c"A" <= letter[0] <= c"Z":
                out[0] += c"a" - c"A"
            out += 1
            letter += 1
        return <int>(out - self.scratch)

    cdef const char* language(
        self, const char* at, const char* end, bint* is_plain
    ) except? NULL nogil:
        """The end of the tag whose `@` is at `at`; NULL if it is not certainly valid."""
        cdef const char* close = tag_end(at + 1, end)
        cdef const char* stop = at + 1
        cdef const char* letter = at + 1
        while stop < close and not (stop[0] == c"-" and close - stop > 1 and stop[1] == c"-"):
            stop += 1
        if stop != close and (
            close - stop != 5
            or memcmp(stop, b"--ltr", 5) != 0 and memcmp(stop, b"--rtl", 5) != 0
        ):
            return NULL
        if not is_tag(at + 1, stop - at - 1) and not self.asked_tag(at + 1, stop - at - 1):
            return NULL
        while letter < stop:
            if c"A" <= letter[0] <= c"Z":
                is_plain[0] = False
            letter += 1
        return close

    cdef const char* datatype(
        self, const char* at, const char* end, Column* column
    ) except? NULL nogil:
        """The end of the datatype whose `<` is at `at`; NULL if it is not certainly valid."""
        cdef const char* close
        cdef size_t size = column.datatype_size
        cdef term_t ignored = 0
        if column.datatype != NULL and <size_t>(end - at) > size:
            if same(at, column.datatype, size):
                return at + size
        if at == end or at[0] != c"<":
            return NULL
        close = iri_end(at, end)
        if close == NULL or close - at > MOST:
            return NULL
        size = close - at
        if size > RDF_TAGGED_SIZE and memcmp(at, RDF_TAGGED, RDF_TAGGED_SIZE) == 0:
            return NULL  # rdf:langString and the like are errors, which pyoxigraph reports
        if memchr(at, c"\\", size) != NULL:
            return NULL
        if not is_iri(at + 1, size - 2, &self.beginning) and not self.name_or_label(
            at, size, True, &ignored
        ):
            return NULL
        column.datatype = at
        column.datatype_size = size
        column.tight = (at - 1)[0] == c"^" and (at - 3)[0] == c'"'
        column.is_string = size == XSD_STRING_SIZE and memcmp(at, XSD_STRING, size) == 0
        return close

    cdef int reserve(self, size_t size) except -1 nogil:
        """Grow `scratch` to at least `size` bytes."""
        cdef char* grown
        if size > self.scratch_room:
            grown = <char*>mem_realloc(self.scratch, 2 * size)
            if grown == NULL:
                with gil:
                    raise MemoryError
            self.scratch = grown
            self.scratch_room = 2 * size
        return 0

    # ------------------------------------------------------------ pyoxigraph

    cdef bint asked_iri(self, const char* text, size_t size) except -1 nogil:
        """Whether a text is an absolute IRI for pyoxigraph."""
        with gil:
            try:
                NamedNode(text[:size].decode())
            except ValueError:
                return False
            return True

    cdef bint asked_tag(self, const char* text, size_t size) except -1 nogil:
        """Whether a text is a language tag for pyoxigraph."""
        with gil:
            tag = text[:size]
            if tag not in self.tags:
                if len(self.tags) == MOST_TAGS:
                    self.tags.clear()
                try:
                    Literal("", language=tag.decode())
                    self.tags[tag] = True
                except ValueError:
                    self.tags[tag] = False
            return self.tags[tag]
