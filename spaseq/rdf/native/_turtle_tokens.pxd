"""Tokens of Turtle and TriG that N-Quads does not have; see _turtle_tokens.pyx."""

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

cdef const char* prefix_end(const char* at, const char* end) noexcept nogil
cdef const char* local_end(const char* at, const char* end, bint* escaped) noexcept nogil
cdef const char* number_end(const char* at, const char* end, NumberKind* kind) noexcept nogil
cdef const char* short_string_end(const char* at, const char* end, bint* escaped) noexcept nogil
cdef const char* word_end(const char* at, const char* end) noexcept nogil
cdef bint is_word(const char* at, const char* end, const char* word) noexcept nogil
cdef bint is_relative(const char* text, size_t size) noexcept nogil
cdef bint is_simple_path(const char* text, size_t size) noexcept nogil


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
