"""Tokens of Turtle and TriG that N-Quads does not have: names, numbers, keywords, long strings.

As in nquads_terms.pxi, a function finds the end of a token that is certainly valid; NULL means
"not sure". Texts are valid UTF-8, and end at the end of a line, so only a long string can continue
in the next text.

Cost: linear in the bytes. Source: RDF 1.2 Turtle and TriG (grammars).
"""

from libc.stdint cimport uint32_t, uint8_t

from spaseq.rdf.native._nquads cimport begins_name, character, continues_name, quote

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* Classes of the characters of local names. */
    enum { SPASEQ_END, SPASEQ_NAME, SPASEQ_HYPHEN, SPASEQ_DOT, SPASEQ_PERCENT, SPASEQ_SLASH,
           SPASEQ_WIDE_CHARACTER };

    static inline int spaseq_local_class(uint8_t c) {
        static const uint8_t classes[128] = {
            ['0'] = SPASEQ_NAME, ['1'] = SPASEQ_NAME, ['2'] = SPASEQ_NAME, ['3'] = SPASEQ_NAME,
            ['4'] = SPASEQ_NAME, ['5'] = SPASEQ_NAME, ['6'] = SPASEQ_NAME, ['7'] = SPASEQ_NAME,
            ['8'] = SPASEQ_NAME, ['9'] = SPASEQ_NAME, ['_'] = SPASEQ_NAME, [':'] = SPASEQ_NAME,
            ['a'] = SPASEQ_NAME, ['b'] = SPASEQ_NAME, ['c'] = SPASEQ_NAME, ['d'] = SPASEQ_NAME,
            ['e'] = SPASEQ_NAME, ['f'] = SPASEQ_NAME, ['g'] = SPASEQ_NAME, ['h'] = SPASEQ_NAME,
            ['i'] = SPASEQ_NAME, ['j'] = SPASEQ_NAME, ['k'] = SPASEQ_NAME, ['l'] = SPASEQ_NAME,
            ['m'] = SPASEQ_NAME, ['n'] = SPASEQ_NAME, ['o'] = SPASEQ_NAME, ['p'] = SPASEQ_NAME,
            ['q'] = SPASEQ_NAME, ['r'] = SPASEQ_NAME, ['s'] = SPASEQ_NAME, ['t'] = SPASEQ_NAME,
            ['u'] = SPASEQ_NAME, ['v'] = SPASEQ_NAME, ['w'] = SPASEQ_NAME, ['x'] = SPASEQ_NAME,
            ['y'] = SPASEQ_NAME, ['z'] = SPASEQ_NAME,
            ['A'] = SPASEQ_NAME, ['B'] = SPASEQ_NAME, ['C'] = SPASEQ_NAME, ['D'] = SPASEQ_NAME,
            ['E'] = SPASEQ_NAME, ['F'] = SPASEQ_NAME, ['G'] = SPASEQ_NAME, ['H'] = SPASEQ_NAME,
            ['I'] = SPASEQ_NAME, ['J'] = SPASEQ_NAME, ['K'] = SPASEQ_NAME, ['L'] = SPASEQ_NAME,
            ['M'] = SPASEQ_NAME, ['N'] = SPASEQ_NAME, ['O'] = SPASEQ_NAME, ['P'] = SPASEQ_NAME,
            ['Q'] = SPASEQ_NAME, ['R'] = SPASEQ_NAME, ['S'] = SPASEQ_NAME, ['T'] = SPASEQ_NAME,
            ['U'] = SPASEQ_NAME, ['V'] = SPASEQ_NAME, ['W'] = SPASEQ_NAME, ['X'] = SPASEQ_NAME,
            ['Y'] = SPASEQ_NAME, ['Z'] = SPASEQ_NAME,
            ['-'] = SPASEQ_HYPHEN, ['.'] = SPASEQ_DOT, ['%'] = SPASEQ_PERCENT,
            ['\\\\'] = SPASEQ_SLASH,
        };
        return c < 128 ? classes[c] : SPASEQ_WIDE_CHARACTER;
    }

    /* Whether a character may follow a name, a number or a keyword without a space. */
    static inline int spaseq_separates(uint8_t c) {
        static const uint8_t separators[128] = {
            [' '] = 1, ['\\t'] = 1, ['\\n'] = 1, ['\\r'] = 1, [';'] = 1, [','] = 1, [')'] = 1,
            [']'] = 1, ['}'] = 1, ['('] = 1, ['['] = 1, ['{'] = 1, ['<'] = 1, ['"'] = 1,
            ['\\''] = 1, ['#'] = 1,
        };
        return c < 128 && separators[c];
    }

    static inline int spaseq_is_escaped(uint8_t c) {
        return c && strchr("_~.-!$&'()*+,;=/?#@%", c) != NULL;
    }

    /* The first line feed or carriage return, else end. */
    static inline const char *spaseq_line_stop(const char *at, const char *end) {
        const char *feed = (const char *)memchr(at, '\\n', end - at);
        const char *stop = feed == NULL ? end : feed;
        const char *carriage = (const char *)memchr(at, '\\r', stop - at);
        return carriage == NULL ? stop : carriage;
    }

    /* How many lines end in a text: after each \\n, \\r\\n and lone \\r. */
    static inline uint64_t spaseq_line_count(const char *at, const char *end) {
        uint64_t count = 0;
        const char *next;
        int has_carriage = at < end && memchr(at, '\\r', end - at) != NULL;
        for (next = at; next < end; next++) {
            next = (const char *)memchr(next, '\\n', end - next);
            if (next == NULL)
                break;
            count++;
        }
        if (has_carriage)
            for (next = at; next < end; next++)
                if (*next == '\\r' && (next + 1 == end || next[1] != '\\n'))
                    count++;
        return count;
    }

    /* The end of the long string whose content is at[:end - at], behind its quotes; else NULL. */
    static inline const char *spaseq_long_end(const char *at, const char *end, char quote) {
        const char *begin = at, *first;
        while (end - at >= 3) {
            at = (const char *)memchr(at, quote, end - at - 2);
            if (at == NULL)
                return NULL;
            if (at[1] == quote && at[2] == quote) {
                /* An even number of backslashes does not escape the quotes. */
                for (first = at; first > begin && first[-1] == '\\\\'; first--)
                    ;
                if ((at - first) % 2 == 0)
                    return at + 3;
            }
            at++;
        }
        return NULL;
    }
    """
    bint separates "spaseq_separates"(unsigned char c) noexcept nogil
    const char* line_stop "spaseq_line_stop"(const char* at, const char* end) noexcept nogil
    unsigned long long line_count "spaseq_line_count"(
        const char* at, const char* end
    ) noexcept nogil
    const char* long_end "spaseq_long_end"(
        const char* at, const char* end, char quote
    ) noexcept nogil
    int local_class "spaseq_local_class"(unsigned char c) noexcept nogil
    bint is_escaped "spaseq_is_escaped"(unsigned char c) noexcept nogil
    enum:
        END "SPASEQ_END"
        NAME "SPASEQ_NAME"
        HYPHEN "SPASEQ_HYPHEN"
        DOT "SPASEQ_DOT"
        PERCENT "SPASEQ_PERCENT"
        SLASH "SPASEQ_SLASH"

cdef enum NumberKind:
    NO_NUMBER
    INTEGER
    DECIMAL
    DOUBLE


cdef inline bint name_ends(const char* at, const char* end) noexcept nogil:
    """Whether a name may end before `at`: certainly, whatever the grammar of names says."""
    return at == end or separates(<unsigned char>at[0]) or at[0] == c"."


cdef inline bint label_ends(const char* at, const char* end) noexcept nogil:
    """The same for labels, which contain no colon."""
    return name_ends(at, end) or at[0] == c":"


cdef inline bint word_ends(const char* at, const char* end) noexcept nogil:
    """The same for numbers and keywords, which a dot and a name may not follow."""
    return at == end or separates(<unsigned char>at[0]) or (
        at[0] == c"." and (at + 1 == end or separates(<unsigned char>at[1]))
    )


cdef inline bint _is_letter(char c) noexcept nogil:
    return c"a" <= c <= c"z" or c"A" <= c <= c"Z"


cdef inline bint _is_digit(char c) noexcept nogil:
    return c"0" <= c <= c"9"


cdef inline bint _is_hexadecimal(char c) noexcept nogil:
    return _is_digit(c) or c"a" <= c <= c"f" or c"A" <= c <= c"F"


cdef const char* prefix_end(const char* at, const char* end) noexcept nogil:
    """The colon after the prefix at `at`, which may be empty; NULL: not a prefixed name."""
    cdef const char* begin = at
    cdef int width
    cdef uint32_t c
    while at < end:
        c = <uint8_t>at[0]
        if c == c":":
            return at if at == begin or (at - 1)[0] != c"." else NULL
        if _is_letter(<char>c):
            at += 1
        elif c < 0x80:
            if at == begin or not (_is_digit(<char>c) or c == c"_" or c == c"-" or c == c"."):
                return NULL
            at += 1
        else:
            c = character(at, &width)
            if not (begins_name(c) if at == begin else continues_name(c)):
                return NULL
            at += width
    return NULL


cdef const char* local_end(const char* at, const char* end, bint* escaped) noexcept nogil:
    """The end of the local name at `at`, which may be empty; NULL for a bad escape."""
    cdef const char* begin = at
    cdef const char* last = at      # a local name does not end in a dot
    cdef int width, kind
    cdef uint32_t c
    escaped[0] = False
    while at < end:
        kind = local_class(<uint8_t>at[0])
        if kind == NAME:
            at += 1
            last = at
        elif kind == END:
            break
        elif kind == HYPHEN:
            if at == begin:
                break
            at += 1
            last = at
        elif kind == DOT:
            if at == begin:
                break
            at += 1
        elif kind == PERCENT:
            if end - at < 3 or not _is_hexadecimal(at[1]) or not _is_hexadecimal(at[2]):
                return NULL
            at += 3
            last = at
        elif kind == SLASH:
            if end - at < 2 or not is_escaped(<uint8_t>at[1]):
                return NULL
            escaped[0] = True
            at += 2
            last = at
        else:
            c = character(at, &width)
            if not (begins_name(c) if at == begin else continues_name(c)):
                return NULL
            at += width
            last = at
    return last


cdef const char* number_end(const char* at, const char* end, NumberKind* kind) noexcept nogil:
    """The end of the number at `at`, and its kind; NULL if it is not certainly one."""
    cdef const char* digits
    cdef bint has_digits
    kind[0] = NumberKind.INTEGER
    if at < end and (at[0] == c"+" or at[0] == c"-"):
        at += 1
    digits = at
    while at < end and _is_digit(at[0]):
        at += 1
    has_digits = at > digits
    if end - at >= 2 and at[0] == c"." and (
        _is_digit(at[1]) or has_digits and (at[1] == c"e" or at[1] == c"E")
    ):
        kind[0] = NumberKind.DECIMAL
        at += 1
        while at < end and _is_digit(at[0]):
            at += 1
    elif not has_digits:
        return NULL
    if at < end and (at[0] == c"e" or at[0] == c"E"):
        kind[0] = NumberKind.DOUBLE
        at += 1
        if at < end and (at[0] == c"+" or at[0] == c"-"):
            at += 1
        digits = at
        while at < end and _is_digit(at[0]):
            at += 1
        if at == digits:
            return NULL
    return at if word_ends(at, end) else NULL


cdef const char* short_string_end(const char* at, const char* end, bint* escaped) noexcept nogil:
    """The closing quote of the string on one line whose opening quote is at `at`; NULL: none."""
    cdef char mark = at[0]
    at += 1
    escaped[0] = False
    while True:
        if mark == c'"':
            at = quote(at, end)
        else:
            while at < end and at[0] != mark and (
                at[0] != c"\\" and at[0] != c"\n" and at[0] != c"\r"
            ):
                at += 1
        if at == end:
            return NULL
        if at[0] == mark:
            return at
        if at[0] != c"\\" or end - at < 2:
            return NULL
        escaped[0] = True
        at += 2


cdef const char* word_end(const char* at, const char* end) noexcept nogil:
    """The end of the letters at `at`."""
    while at < end and _is_letter(at[0]):
        at += 1
    return at


cdef bint is_word(const char* at, const char* end, const char* word) noexcept nogil:
    """Whether at[:end - at] is a word, given in lower case, in letters of either case."""
    while at < end:
        if word[0] == 0 or (at[0] | 0x20) != word[0]:
            return False
        at += 1
        word += 1
    return word[0] == 0


cdef bint is_relative(const char* text, size_t size) noexcept nogil:
    """Whether an IRI reference has no scheme."""
    cdef size_t i
    for i in range(size):
        if text[i] == c":":
            return i == 0
        if not (
            _is_letter(text[i]) or _is_digit(text[i])
            or text[i] == c"+" or text[i] == c"-" or text[i] == c"."
        ):
            return True
    return True


cdef bint is_simple_path(const char* text, size_t size) noexcept nogil:
    """Whether a reference is a path that is resolved by appending it to the path of the base.

    Its segments are letters, digits, `_`, `-` and dots that are not their first characters.
    """
    cdef size_t i
    cdef bint begins = True     # a segment
    for i in range(size):
        if _is_letter(text[i]) or _is_digit(text[i]) or text[i] == c"_" or text[i] == c"-":
            begins = False
        elif begins or not (text[i] == c"/" or text[i] == c"."):
            return False
        else:
            begins = text[i] == c"/"
    return size > 0
