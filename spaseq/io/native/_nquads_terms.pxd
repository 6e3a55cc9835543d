"""Terms of lines; see _nquads_terms.pyx."""

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t, uint64_t

from spaseq.io.native._framing cimport EventReader, Quad
from spaseq.io.native._tokens cimport Beginning
from spaseq.rdf._terms cimport term_t

# A usual line is a fact of the open graph that has the subject of the line before, the predicate
# that followed last time, an object of the usual form and the same graph: most lines of most
# streams are, and a few comparisons say that one is right. The loop over them is compiled twice
# where the compiler can do that: for any processor, and for those that compare 32 bytes at once,
# which is found out at run time.
cdef extern from *:
    """
    /* A term as it stands in the buffer, and its number; 0 where it is valid and not entered. */
    typedef struct {
        const char *text;       /* NULL: none so far */
        size_t size;
        uint32_t term;
    } spaseq_token;

    /* A predicate, and what the last triples with it looked like. */
    typedef struct spaseq_column {
        uint64_t hash;
        spaseq_token predicate;
        struct spaseq_column *next; /* the predicate that followed it last */
        int spaced;                 /* the predicate has a space on both sides */
        int usual;                  /* and its objects are no timestamps */
        int unused;                 /* and no query can use its triples */
        spaseq_token value;         /* the last object */
        const char *datatype;       /* the last datatype, known to be valid: <...> */
        size_t datatype_size;
        int tight;                  /* and it stands right behind its quote */
        int is_string;              /* it is xsd:string */
        unsigned char keep;         /* a Keep: which of its triples some query can use */
        int timing;                 /* its objects are timestamps */
    } spaseq_column;

    /* What the next line is compared with. */
    typedef struct {
        spaseq_token subject;
        const char *tail;           /* the last line from behind its object to its end, or NULL */
        size_t tail_size;
        spaseq_column *column;      /* the last predicate */
        /* What was found: */
        uint32_t count;             /* facts without use, one after the other */
        const char *line;           /* behind them a fact that may be of use, or NULL */
        const char *object, *close; /* where its object stands */
    } spaseq_usual;

    typedef int (*spaseq_comparison)(const char *a, const char *b, size_t size);

    #if defined(__GNUC__)
    #define SPASEQ_ALWAYS inline __attribute__((always_inline))
    #else
    #define SPASEQ_ALWAYS inline
    #endif

    /* Behind the object at `at`, if it is certainly right, whatever stands behind it; else NULL. */
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
        /* One that may be of use is checked where it is entered. */
        if (column->unused && !spaseq_iri(at + 1, close - at - 1, known))
            return NULL;
        return close + 1;
    }

    /* Behind all usual lines without use, and behind one more that may be of use. */
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

cdef enum:
    MOST = 0x7FFFFFFF       # bytes of a token


cdef class TermReader:
    cdef EventReader events
    cdef Beginning beginning    # of the last IRIs that were checked
    cdef char* scratch          # for terms that do not stand in the buffer as they are
    cdef size_t scratch_room
    cdef dict tags              # language tags by whether they are valid

    cdef const char* object_token(
        self, const char* at, const char* end, Column* column, bint wanted, Quad* quad
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
