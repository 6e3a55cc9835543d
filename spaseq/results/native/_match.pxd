"""The declarations of _match.pyx that other modules use."""

from libc.stdint cimport int64_t, uint32_t

from spaseq.rdf.native._terms cimport TermRecord, is_triple

# match/match.pxi


cdef class Match:
    cdef readonly str query
    cdef readonly tuple variables
    cdef readonly object boolean
    cdef readonly object kb_version
    cdef readonly object results
    cdef readonly bint closed_by_end
    # None until they are first read.
    cdef object found_start, found_end, found_bindings, found_events, found_graph

    cdef int decode_times(self) except -1
    cdef int decode_bindings(self) except -1
    cdef int decode_events(self) except -1
    cdef int decode_graph(self) except -1

# match/json.pxi

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #ifdef __SSE2__
    #include <emmintrin.h>
    #endif

    /* What must be escaped: by JSON, by N-Triples, and what CSV must quote. */
    enum { SPASEQ_JSON, SPASEQ_N_TRIPLES, SPASEQ_CSV };

    static inline int spaseq_is_special(unsigned char letter, int syntax) {
        if (syntax == SPASEQ_CSV)
            return letter == '"' || letter == ',' || letter == 13 || letter == 10;
        return letter < 0x20 || letter == '"' || letter == 92
            || (syntax == SPASEQ_N_TRIPLES && (letter == 0x7F || letter == 0xEF));
    }

    /* The number of bytes before the first special one. */
    static inline size_t spaseq_plain_bytes(const char *text, size_t size, int syntax) {
        size_t at = 0;
    #ifdef __SSE2__
        const __m128i quote = _mm_set1_epi8('"'), controls = _mm_set1_epi8(0x1F);
        for (; at + 16 <= size; at += 16) {
            const __m128i some = _mm_loadu_si128((const __m128i *)(text + at));
            __m128i hits = _mm_cmpeq_epi8(some, quote);
            unsigned found;
    #define SPASEQ_OR(letter) \
            hits = _mm_or_si128(hits, _mm_cmpeq_epi8(some, _mm_set1_epi8((char)(letter))))
            if (syntax == SPASEQ_CSV) {
                SPASEQ_OR(',');
                SPASEQ_OR(13);
                SPASEQ_OR(10);
            } else {
                hits = _mm_or_si128(hits, _mm_cmpeq_epi8(_mm_min_epu8(some, controls), some));
                SPASEQ_OR(92);
                if (syntax == SPASEQ_N_TRIPLES) {
                    SPASEQ_OR(0x7F);
                    SPASEQ_OR(0xEF);
                }
            }
    #undef SPASEQ_OR
            found = (unsigned)_mm_movemask_epi8(hits);
            if (found)
                return at + (size_t)__builtin_ctz(found);
        }
    #endif
        while (at < size && !spaseq_is_special((unsigned char)text[at], syntax))
            at++;
        return at;
    }

    /* Copy bytes; most texts are short, and a call would cost more than the copy. */
    static inline void spaseq_copy(char *to, const char *from, size_t size) {
    #ifdef __SSE2__
        if (size >= 16 && size <= 128) {
            char *end = to + size - 16;
            const __m128i last = _mm_loadu_si128((const __m128i *)(from + size - 16));
            for (; to < end; to += 16, from += 16)
                _mm_storeu_si128((__m128i *)to, _mm_loadu_si128((const __m128i *)from));
            _mm_storeu_si128((__m128i *)end, last);
            return;
        }
    #endif
        if (size > 16) {
            memcpy(to, from, size);
        } else if (size >= 8) {
            memcpy(to, from, 8);
            memcpy(to + size - 8, from + size - 8, 8);
        } else if (size >= 4) {
            memcpy(to, from, 4);
            memcpy(to + size - 4, from + size - 4, 4);
        } else {
            while (size--)
                to[size] = from[size];
        }
    }
    """
    void copy_bytes "spaseq_copy"(char* to, const char* source, size_t size) noexcept nogil
    enum:
        JSON "SPASEQ_JSON"
        N_TRIPLES "SPASEQ_N_TRIPLES"
        CSV "SPASEQ_CSV"
    size_t plain_bytes "spaseq_plain_bytes"(
        const char* text, size_t size, int syntax
    ) noexcept nogil

cdef struct Text:
    char* begin
    size_t size
    size_t room


cdef char* widen(Text* text, size_t size) except NULL


cdef inline char* room_for(Text* text, size_t size) except NULL:
    """Make room for `size` more bytes, at least one, and return their address."""
    if text.size + size <= text.room:
        return text.begin + text.size
    return widen(text, size)


cdef inline int put(Text* text, const char* what, size_t size) except -1:
    """Append bytes unchanged."""
    if size == 0:
        return 0
    copy_bytes(room_for(text, size), what, size)
    text.size += size
    return 0


cdef inline int put_bytes(Text* text, bytes what) except -1:
    return put(text, what, len(what))


cdef int put_number(Text* text, int64_t number) except -1
cdef int put_name(Text* text, const char* term, size_t size) except -1
cdef int put_term(Text* text, const char* term, size_t size) except -1
cdef int put_time(Text* text, int64_t micros, bint dated) except -1
cdef int put_date(Text* text, int64_t micros) except -1

# match/term_text.pxi


cdef int put_escaped(Text* text, const char* what, size_t size) except -1
cdef int put_triple_term(Text* text, const char* term, uint32_t size) except -1
cdef int put_csv_cell(Text* text, const TermRecord* term) except -1


cdef inline int put_n_triples(Text* text, const TermRecord* term) except -1:
    """Append a term in N-Triples, as pyoxigraph writes it."""
    if is_triple(term.text):
        return put_triple_term(text, term.text, term.size)
    if term.text[0] != c'"' or plain_bytes(term.text + 1, term.lexical, N_TRIPLES) == term.lexical:
        return put(text, term.text, term.size)
    put(text, term.text, 1)
    put_escaped(text, term.text + 1, term.lexical)
    return put(text, term.text + 1 + term.lexical, term.size - 1 - term.lexical)
