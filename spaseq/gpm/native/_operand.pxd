"""The values that expressions compute with, of terms or computed; see _operand.pyx."""

from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from spaseq.rdf._batch cimport EventBatch, record_of
from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._numerals cimport exact_of, is_numeral, places_of
from spaseq.rdf._terms cimport UNDECODED, TermRecord, int128, term_t
from spaseq.rdf._values cimport Kind, Value

cdef enum:
    ERROR = 101     # the kind of an operand without a value: an error, or an unbound variable

# Texts lie in a batch, in the dictionary, in the scratch memory of an evaluation or in the program;
# none of it moves during an evaluation. The kinds that TermRecord names beside a numeric field have
# it; `real` of a DECIMAL is set only if the operand has a text.
cdef struct Operand:
    int128 exact
    double real
    int64_t months
    const char* whole       # the N-Quads text of the term as written; NULL: a computed value, or
                            # `term` is a numeral. Code that changes the value must clear it
    const char* text        # its IRI, label or lexical form; computed: of a STRING or LANG
    const char* tag         # LANG: the language, with the direction that may follow it after `--`
    uint32_t whole_size
    uint32_t size           # bytes of `text`
    uint32_t tag_size
    term_t term             # its number in the batch; 0: not looked up
    uint8_t kind            # a Kind, or ERROR
    uint8_t form
    int16_t zone

cdef int load_text(Operand* to, const char* whole, uint32_t size) except -2 nogil
cdef uint32_t language_size(const Operand* of) noexcept nogil
cdef char* scratch_alloc(Arena* scratch, size_t size) except NULL nogil
cdef int set_canonical(Operand* to, const Operand* of, Arena* scratch) except -2 nogil
cdef int write_term(Operand* of, Arena* scratch) except -2 nogil
cdef void set_datatype(Operand* to, const Operand* of) noexcept nogil
cdef Value value_of(const Operand* of)
cdef int load_value(Operand* to, Value value, Arena* scratch) except -2


cdef inline void load_record(Operand* to, TermRecord* record, term_t term) noexcept nogil:
    """The value of a term of the batch."""
    if record.kind == UNDECODED:
        decode_record(record)
    to.exact = record.exact
    to.real = record.further.real
    to.months = record.further.months
    to.whole = record.text
    to.text = record.text + (2 if record.kind == Kind.BLANK else 1)
    to.whole_size = record.size
    to.size = record.lexical
    to.term = term
    to.kind = record.kind
    to.form = record.form
    to.zone = record.zone
    if record.kind == Kind.LANG:
        to.tag = to.whole + to.size + 3
        to.tag_size = to.whole_size - to.size - 3


cdef inline void set_computed(Operand* to, uint8_t kind) noexcept nogil:
    to.kind = kind
    to.term = 0
    to.whole = NULL


cdef inline void load_term(Operand* to, EventBatch batch, term_t term) noexcept nogil:
    """The value of a term of the batch; ERROR for 0."""
    if term == 0:
        to.kind = ERROR
    elif is_numeral(term):
        set_computed(to, Kind.DECIMAL if places_of(term) else Kind.INTEGER)
        to.exact, to.term = exact_of(term), term
    else:
        load_record(to, record_of(batch, term), term)


cdef inline void set_truth(Operand* to, bint truth) noexcept nogil:
    set_computed(to, Kind.BOOLEAN)
    to.exact = truth


cdef inline void set_string(Operand* to, const char* text, uint32_t size) noexcept nogil:
    set_computed(to, Kind.STRING)
    to.text = text
    to.size = size


cdef inline bint same_tag(const Operand* a, const Operand* b) noexcept nogil:
    """Whether two LANG operands have the same language and direction."""
    return a.tag_size == b.tag_size and memcmp(a.tag, b.tag, a.tag_size) == 0
