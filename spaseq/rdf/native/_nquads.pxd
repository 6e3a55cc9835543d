"""The declarations of _nquads.pyx that other modules use."""

cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.rdf.native._framing cimport EventReader, Quad
from spaseq.rdf.native._terms cimport term_t

# nquads/nquads_terms.pxi

# ------------------------------------------------------------------ tokens

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
    #include <immintrin.h>
    /* A function for processors with AVX2; the functions that it calls are inlined. */
    #define SPASEQ_WIDE __attribute__((target("avx2"), flatten))
    static inline int spaseq_is_wide(void) {
        static int known = -1;
        if (known < 0)
            known = __builtin_cpu_supports("avx2") != 0;
        return known;
    }
    #endif

    /* Characters that are valid anywhere in an IRI after its scheme. */
    #define SPASEQ_WORD(c) (((c) >= 'a' && (c) <= 'z') || ((c) >= 'A' && (c) <= 'Z') \\
        || ((c) >= '0' && (c) <= '9'))
    #define SPASEQ_HOST(c) (SPASEQ_WORD(c) || (c) == '-' || (c) == '.' || (c) == '_' || (c) == '~')
    #define SPASEQ_HEX(c) (((c) >= '0' && (c) <= '9') || ((c) >= 'a' && (c) <= 'f') \\
        || ((c) >= 'A' && (c) <= 'F'))

    /* The first '>' or line feed, else end. */
    static inline const char *spaseq_angle(const char *at, const char *end) {
    #ifdef __SSE2__
        const __m128i angle = _mm_set1_epi8('>'), feed = _mm_set1_epi8('\\n');
        while (end - at >= 16) {
            __m128i block = _mm_loadu_si128((const __m128i *)at);
            int found = _mm_movemask_epi8(
                _mm_or_si128(_mm_cmpeq_epi8(block, angle), _mm_cmpeq_epi8(block, feed)));
            if (found)
                return at + __builtin_ctz(found);
            at += 16;
        }
    #endif
        while (at < end && *at != '>' && *at != '\\n')
            at++;
        return at;
    }

    /* The first quote, backslash or end of line, else end. */
    static inline const char *spaseq_quote(const char *at, const char *end) {
    #ifdef __SSE2__
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\\\');
        const __m128i feed = _mm_set1_epi8('\\n'), carriage = _mm_set1_epi8('\\r');
        while (end - at >= 16) {
            __m128i block = _mm_loadu_si128((const __m128i *)at);
            __m128i mark = _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, slash));
            __m128i line =
                _mm_or_si128(_mm_cmpeq_epi8(block, feed), _mm_cmpeq_epi8(block, carriage));
            int found = _mm_movemask_epi8(_mm_or_si128(mark, line));
            if (found)
                return at + __builtin_ctz(found);
            at += 16;
        }
    #endif
        while (at < end && *at != '"' && *at != '\\\\' && *at != '\\n' && *at != '\\r')
            at++;
        return at;
    }

    /* Whether two texts of the same size are equal; mostly between 16 and 64 bytes. */
    static inline int spaseq_same(const char *a, const char *b, size_t size) {
    #ifdef __SSE2__
    #define SPASEQ_PAIR(i) _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(a + (i))), \
        _mm_loadu_si128((const __m128i *)(b + (i))))
        __m128i equal;
        if (size < 16)
            return memcmp(a, b, size) == 0;
        equal = _mm_and_si128(SPASEQ_PAIR(0), SPASEQ_PAIR(size - 16));
        if (size > 32) {
            equal = _mm_and_si128(equal, _mm_and_si128(SPASEQ_PAIR(16), SPASEQ_PAIR(size - 32)));
            if (size > 64)
                return _mm_movemask_epi8(equal) == 0xFFFF && memcmp(a + 32, b + 32, size - 64) == 0;
        }
        return _mm_movemask_epi8(equal) == 0xFFFF;
    #else
        return memcmp(a, b, size) == 0;
    #endif
    }

    #ifdef SPASEQ_WIDE
    /* The same, 32 bytes at once. */
    __attribute__((target("avx2"))) static inline int spaseq_same_wide(
            const char *a, const char *b, size_t size) {
    #define SPASEQ_WIDE_PAIR(i) _mm256_cmpeq_epi8( \\
        _mm256_loadu_si256((const __m256i *)(a + (i))), \\
        _mm256_loadu_si256((const __m256i *)(b + (i))))
        __m256i equal;
        if (size < 32)
            return spaseq_same(a, b, size);
        equal = _mm256_and_si256(SPASEQ_WIDE_PAIR(0), SPASEQ_WIDE_PAIR(size - 32));
        return _mm256_movemask_epi8(equal) == -1
            && (size <= 64 || memcmp(a + 32, b + 32, size - 64) == 0);
    }
    #endif

    #ifdef __SSE2__
    /* A bit for each of sixteen bytes that is plain: words and -._~!$&'()*+,;=:@/? */
    static inline unsigned spaseq_plain_bits(const char *at) {
        __m128i c = _mm_loadu_si128((const __m128i *)at);
        /* Signed comparisons: bytes of 128 and more are below all bounds. */
        __m128i low = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('%')),
            _mm_cmplt_epi8(c, _mm_set1_epi8('<')));
        __m128i upper = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('>')),
            _mm_cmplt_epi8(c, _mm_set1_epi8('[')));
        __m128i lower = _mm_and_si128(_mm_cmpgt_epi8(c, _mm_set1_epi8('`')),
            _mm_cmplt_epi8(c, _mm_set1_epi8('{')));
        __m128i other = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('_')),
            _mm_cmpeq_epi8(c, _mm_set1_epi8('=')));
        return (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_or_si128(low, upper), _mm_or_si128(lower, other)));
    }
    #endif

    /* The end of the longest prefix of whole 16-byte blocks that are plain. */
    static inline const char *spaseq_plain(const char *at, const char *end) {
    #ifdef __SSE2__
        while (end - at >= 16 && spaseq_plain_bits(at) == 0xFFFF)
            at += 16;
    #endif
        return at;
    }

    /* A valid prefix of IRIs: scheme, authority and slash. */
    typedef struct {
        const char *text;
        size_t size;
    } spaseq_beginning;

    /* The end of the IRI whose '<' is at `at` if it is certainly one: a known prefix and plain
       characters. Else NULL, and it may still be an IRI. */
    static inline const char *spaseq_iri_close(
            const char *at, const char *end, const spaseq_beginning *known) {
    #ifdef __SSE2__
        at++;
        if (known->size && end - at > (ptrdiff_t)known->size
                && spaseq_same(at, known->text, known->size)) {
            at += known->size;
            while (end - at >= 16) {
                unsigned bits = spaseq_plain_bits(at);
                if (bits != 0xFFFF) {
                    at += __builtin_ctz(~bits);
                    return *at == '>' ? at + 1 : NULL;
                }
                at += 16;
            }
        }
    #endif
        return NULL;
    }

    /* Whether text[:size] is certainly an absolute IRI; if it is not, it may still be one. */
    static inline int spaseq_iri(const char *text, size_t size, spaseq_beginning *known) {
        const char *at = text, *end = text + size, *sure;
        int fragment = 0;
        if (known->size && known->size <= size && spaseq_same(text, known->text, known->size)) {
            at += known->size;
            goto path;
        }
        if (size == 0 || SPASEQ_WORD(*at) == 0 || (*at >= '0' && *at <= '9'))
            return 0;
        while (at < end && (SPASEQ_WORD(*at) || *at == '+' || *at == '-' || *at == '.'))
            at++;
        if (at == end || *at++ != ':')
            return 0;
        if (end - at >= 2 && at[0] == '/' && at[1] == '/') {
            at += 2;
            while (at < end && SPASEQ_HOST(*at))
                at++;
            if (at < end && *at == ':') {
                at++;
                while (at < end && *at >= '0' && *at <= '9')
                    at++;
            }
            if (at < end && *at != '/' && *at != '?' && *at != '#')
                return 0;
            if (at < end && *at == '/') {
                known->text = text;
                known->size = at + 1 - text;
            }
        }
    path:
        for (;;) {
            uint8_t c;
            sure = spaseq_plain(at, end);
            at = sure;
            if (at == end || (end - at < 16 && size >= 16 && spaseq_plain(end - 16, end) == end))
                return 1;
            c = (uint8_t)*at;
            if (SPASEQ_HOST(c) || c == '/' || c == '?' || c == ':' || c == '@' || c == '!'
                || c == '$' || c == '=' || (c >= '&' && c <= ';')) {
                at++;
            } else if (c == '#' && !fragment) {
                fragment = 1;
                at++;
            } else if (c == '%') {
                if (end - at < 3 || !SPASEQ_HEX(at[1]) || !SPASEQ_HEX(at[2]))
                    return 0;
                at += 3;
            } else if (c == 0xC2) {
                /* U+00A0 to U+00BF; the text is known to be UTF-8. */
                if ((uint8_t)at[1] < 0xA0)
                    return 0;
                at += 2;
            } else if (c >= 0xC3 && c <= 0xDF) {
                at += 2;
            } else if (c >= 0xE0 && c <= 0xED) {
                at += 3;
            } else {
                return 0;
            }
        }
    }

    /* The end of the longest prefix of whole 64-byte blocks that are ASCII. */
    static inline const char *spaseq_ascii_any(const char *at, const char *end) {
    #ifdef __SSE2__
        for (; end - at >= 64; at += 64) {
            const __m128i *four = (const __m128i *)at;
            __m128i all = _mm_or_si128(
                _mm_or_si128(_mm_loadu_si128(four), _mm_loadu_si128(four + 1)),
                _mm_or_si128(_mm_loadu_si128(four + 2), _mm_loadu_si128(four + 3)));
            if (_mm_movemask_epi8(all))
                break;
        }
    #endif
        return at;
    }

    #ifdef SPASEQ_WIDE
    SPASEQ_WIDE static const char *spaseq_ascii_wide(const char *at, const char *end) {
        for (; end - at >= 128; at += 128) {
            const __m256i *four = (const __m256i *)at;
            __m256i all = _mm256_or_si256(
                _mm256_or_si256(_mm256_loadu_si256(four), _mm256_loadu_si256(four + 1)),
                _mm256_or_si256(_mm256_loadu_si256(four + 2), _mm256_loadu_si256(four + 3)));
            if (_mm256_movemask_epi8(all))
                break;
        }
        return spaseq_ascii_any(at, end);
    }
    #endif

    static inline const char *spaseq_ascii(const char *at, const char *end) {
    #ifdef SPASEQ_WIDE
        if (spaseq_is_wide())
            return spaseq_ascii_wide(at, end);
    #endif
        return spaseq_ascii_any(at, end);
    }

    /* The first byte that belongs to no valid UTF-8 sequence, else end. */
    static inline const char *spaseq_utf8(const char *at, const char *end) {
        while (at < end) {
            uint8_t c;
            if (end - at >= 64) {
                at = spaseq_ascii(at, end);
                if (at == end)
                    break;
            }
            c = (uint8_t)*at;
            if (c < 0x80) {
                at++;
            } else if (c >= 0xC2 && c <= 0xDF) {
                if (end - at < 2 || ((uint8_t)at[1] & 0xC0) != 0x80)
                    return at;
                at += 2;
            } else if (c >= 0xE0 && c <= 0xEF) {
                uint8_t d;
                if (end - at < 3 || ((uint8_t)at[2] & 0xC0) != 0x80)
                    return at;
                d = (uint8_t)at[1];
                if ((d & 0xC0) != 0x80 || (c == 0xE0 && d < 0xA0) || (c == 0xED && d > 0x9F))
                    return at;
                at += 3;
            } else if (c >= 0xF0 && c <= 0xF4) {
                uint8_t d;
                if (end - at < 4 || ((uint8_t)at[2] & 0xC0) != 0x80
                        || ((uint8_t)at[3] & 0xC0) != 0x80)
                    return at;
                d = (uint8_t)at[1];
                if ((d & 0xC0) != 0x80 || (c == 0xF0 && d < 0x90) || (c == 0xF4 && d > 0x8F))
                    return at;
                at += 4;
            } else {
                return at;
            }
        }
        return end;
    }
    """
    const char* angle "spaseq_angle"(const char* at, const char* end) noexcept nogil
    const char* quote "spaseq_quote"(const char* at, const char* end) noexcept nogil
    bint same "spaseq_same"(const char* a, const char* b, size_t size) noexcept nogil
    ctypedef struct Beginning "spaseq_beginning":
        const char* text
        size_t size
    bint is_iri "spaseq_iri"(const char* text, size_t size, Beginning* known) noexcept nogil
    const char* iri_close "spaseq_iri_close"(
        const char* at, const char* end, const Beginning* known
    ) noexcept nogil
    const char* not_utf8 "spaseq_utf8"(const char* at, const char* end) noexcept nogil


cdef uint32_t character(const char* at, int* width) noexcept nogil
cdef bint begins_name(uint32_t c) noexcept nogil
cdef bint continues_name(uint32_t c) noexcept nogil
cdef const char* label_end(const char* at, const char* end) noexcept nogil
cdef bint is_tag(const char* text, size_t size) noexcept nogil
cdef Py_ssize_t unescaped(
    const char* at, const char* end, char* out, bint letters
) noexcept nogil


cdef inline bint is_space(char c) noexcept nogil:
    return c == c" " or c == c"\t"


cdef inline const char* behind_space(const char* at, const char* end) noexcept nogil:
    while at < end and is_space(at[0]):
        at += 1
    return at


cdef inline const char* iri_end(const char* at, const char* end) noexcept nogil:
    """The end of the IRI whose `<` is at `at`; NULL if the line ends before it."""
    at = angle(at + 1, end)
    if at == end or at[0] != c">":
        return NULL
    return at + 1

# ------------------------------------------------------------------ usual lines

# A usual line is a fact of the open graph with the predicted subject (of the line before),
# predicate (the one that followed last time) and graph, and an object of the usual form. Most lines
# of most streams are usual, and a few comparisons validate one. The loop over them is compiled
# twice if the compiler supports it: for any processor, and for processors with AVX2, which compare
# 32 bytes at once. The choice is made at run time.
cdef extern from *:
    """
    /* A term in the buffer, and its number; 0 if it is valid and not entered. */
    typedef struct {
        const char *text;       /* NULL: none so far */
        size_t size;
        uint32_t term;
    } spaseq_token;

    /* A predicate, and the form of the last triples with it. */
    typedef struct spaseq_column {
        uint64_t hash;
        spaseq_token predicate;
        struct spaseq_column *next; /* the predicate that followed it last */
        int spaced;                 /* the predicate has a space on both sides */
        int usual;                  /* spaced, and its objects are no timestamps */
        int unused;                 /* usual, and no query can use its triples */
        spaseq_token value;         /* the last object */
        const char *datatype;       /* the last datatype, known to be valid: <...> */
        size_t datatype_size;
        int tight;                  /* it follows the quote without space */
        int is_string;              /* it is xsd:string */
        unsigned char keep;         /* a Keep: which of its triples a query can use */
        int timing;                 /* its objects are timestamps */
    } spaseq_column;

    /* The prediction for the next line. */
    typedef struct {
        spaseq_token subject;
        const char *tail;           /* the last line from the end of its object on, or NULL */
        size_t tail_size;
        spaseq_column *column;      /* the last predicate */
        /* The result of a loop over usual lines: */
        uint32_t count;             /* consecutive facts that no query can use */
        const char *line;           /* after them a fact that a query may use, or NULL */
        const char *object, *close; /* its object: beginning and end */
    } spaseq_usual;

    typedef int (*spaseq_comparison)(const char *a, const char *b, size_t size);

    #if defined(__GNUC__)
    #define SPASEQ_ALWAYS inline __attribute__((always_inline))
    #else
    #define SPASEQ_ALWAYS inline
    #endif

    /* The end of the object at `at` if it is certainly right, whatever follows it; else NULL. */
    static SPASEQ_ALWAYS const char *spaseq_usual_object(
            const char *at, const char *end, const spaseq_column *column,
            spaseq_beginning *known, spaseq_comparison same) {
        const char *close;
        size_t size;
        if (*at == '"') {
            at = spaseq_quote(at + 1, end);
            if (end - at < 2 || *at != '"')
                return NULL;
            if (*++at != '^')
                return at;
            size = column->datatype_size + 2;
            if (column->datatype == NULL || !column->tight || (size_t)(end - at) <= size
                    || (column->is_string && !column->unused)
                    || !same(at, column->datatype - 2, size))
                return NULL;
            return at + size;
        }
        if (*at != '<')
            return NULL;
        size = column->value.size;
        if (column->value.text != NULL && (size_t)(end - at) > size
                && same(at, column->value.text, size))
            return at + size;
        if (column->unused && (close = spaseq_iri_close(at, end, known)) != NULL)
            return close;
        close = spaseq_angle(at + 1, end);
        if (close == end || *close != '>')
            return NULL;
        /* An IRI that a query may use is validated when it is entered. */
        if (column->unused && !spaseq_iri(at + 1, close - at - 1, known))
            return NULL;
        return close + 1;
    }

    /* The end of all usual lines that no query can use, and of one more that a query may use. */
    static SPASEQ_ALWAYS const char *spaseq_usual_run(
            const char *at, const char *end, spaseq_usual *usual, spaseq_beginning *known,
            spaseq_comparison same) {
        const spaseq_token subject = usual->subject;
        const char *tail = usual->tail;
        const size_t tail_size = usual->tail_size;
        spaseq_column *column = usual->column->next;
        usual->count = 0;
        usual->line = NULL;
        while (column->usual) {
            const size_t size = column->predicate.size + 2;
            const char *object, *close;
            if ((size_t)(end - at) <= subject.size + size || !same(at, subject.text, subject.size)
                    || !same(at + subject.size, column->predicate.text - 1, size))
                break;
            object = at + subject.size + size;
            close = spaseq_usual_object(object, end, column, known, same);
            if (close == NULL || (size_t)(end - close) < tail_size || !same(close, tail, tail_size))
                break;
            usual->column = column;
            if (!column->unused) {
                usual->line = at;
                usual->object = object;
                usual->close = close;
                return close + tail_size;
            }
            at = close + tail_size;
            usual->count++;
            column = column->next;
        }
        return at;
    }

    static const char *spaseq_usual_any(
            const char *at, const char *end, spaseq_usual *usual, spaseq_beginning *known) {
        return spaseq_usual_run(at, end, usual, known, spaseq_same);
    }

    #ifdef SPASEQ_WIDE
    SPASEQ_WIDE static const char *spaseq_usual_wide(
            const char *at, const char *end, spaseq_usual *usual, spaseq_beginning *known) {
        return spaseq_usual_run(at, end, usual, known, spaseq_same_wide);
    }
    #endif

    static inline const char *spaseq_usual_lines(
            const char *at, const char *end, spaseq_usual *usual, spaseq_beginning *known) {
    #ifdef SPASEQ_WIDE
        if (spaseq_is_wide())
            return spaseq_usual_wide(at, end, usual, known);
    #endif
        return spaseq_usual_any(at, end, usual, known);
    }
    """
    ctypedef struct Token "spaseq_token":
        const char* text
        size_t size
        term_t term

    ctypedef struct Column "spaseq_column":
        uint64_t hash
        Token predicate
        Column* next
        bint spaced
        bint usual
        bint unused
        Token value
        const char* datatype
        size_t datatype_size
        bint tight
        bint is_string
        unsigned char keep
        bint timing

    ctypedef struct Usual "spaseq_usual":
        Token subject
        const char* tail
        size_t tail_size
        Column* column
        uint32_t count
        const char* line
        const char* object
        const char* close

    const char* usual_lines "spaseq_usual_lines"(
        const char* at, const char* end, Usual* usual, Beginning* known
    ) noexcept nogil


cdef class TermReader:
    cdef EventReader events
    cdef Beginning beginning    # the prefix of the last IRIs that were validated
    cdef char* scratch          # for terms whose text in the buffer has escapes or other spellings
    cdef size_t scratch_room
    cdef dict tags              # whether a language tag is valid

    cdef const char* object_token(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil
    cdef const char* triple_token(
        self, const char* at, const char* end, bint wanted, Quad* quad
    ) except? NULL nogil
    cdef const char* triple_end(
        self, const char* at, const char* end, int depth
    ) except? NULL nogil
    cdef const char* part_end(
        self, const char* at, const char* end, bint blank
    ) except? NULL nogil
    cdef const char* plain_literal_end(
        self, const char* at, const char* end
    ) except? NULL nogil
    cdef const char* literal_token(
        self, const char* at, const char* end, Column* column, bint wanted, term_t* term
    ) except? NULL nogil
    cdef const char* language(
        self, const char* at, const char* end, bint* is_plain
    ) except? NULL nogil
    cdef const char* datatype(
        self, const char* at, const char* end, Column* column
    ) except? NULL nogil
    cdef int build_literal(
        self, const char* at, const char* close, const char* suffix, const char* end
    ) except -1 nogil
    cdef int reserve(self, size_t size) except -1 nogil
    cdef bint name_or_label(
        self, const char* text, size_t size, bint wanted, term_t* term
    ) except -1 nogil
    cdef int enter_valid(self, Token* token, uint64_t hash) except -1 nogil
    cdef bint asked_iri(self, const char* text, size_t size) except -1 nogil
    cdef bint asked_tag(self, const char* text, size_t size) except -1 nogil

# nquads/nquads.pxi

cdef enum:
    COLUMNS = 64        # slots for predicates
    TRIED = 8           # slots probed from that of the hash on, before one is reused


@cython.final
cdef class LineReader(TermReader):
    cdef bint quads             # N-Quads, not N-Triples
    cdef readonly uint64_t line     # the number of the next line
    cdef uint32_t generation    # of the batch of the tokens below
    cdef Usual usual            # the prediction; its subject is the last line's
    cdef term_t tail_graph      # the graph in its tail; 0: the default graph
    cdef bint blank_subject
    cdef Token graph            # the last graph name
    cdef Column columns[COLUMNS]
    cdef object sound_block     # a block that is valid UTF-8 up to `sound`
    cdef const char* sound

    cpdef Py_ssize_t read(self, bytes block, Py_ssize_t start, Py_ssize_t end) except -1
    cdef int attach(self, block) except -1
    cdef bint is_steady(self) noexcept nogil
    cdef const char* behind_usual(
        self, const char* at, const char* end, Quad* quad
    ) except NULL nogil
    cdef bint fact(self, Quad* quad) except -1 nogil
    cdef const char* object_of(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
    ) except? NULL nogil
    cdef int statement(
        self, const char* at, const char* end, const char** next, Quad* quad
    ) except -1 nogil
    cdef const char* rest(self, const char* at, const char* end, Quad* quad) except? NULL nogil
    cdef Column* predicate_column(self, const char* text, size_t size) except? NULL nogil
