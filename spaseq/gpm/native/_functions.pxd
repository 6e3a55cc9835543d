"""The declarations of _functions.pyx that other modules use."""

from libc.math cimport isnan
from libc.stdint cimport int16_t, int64_t, uint32_t, uint8_t

from spaseq.rdf.native._literals cimport Datatype, decode_record
from spaseq.rdf.native._terms cimport (
    UNDECODED,
    Arena,
    EventBatch,
    TermRecord,
    exact_of,
    int128,
    is_numeral,
    places_of,
    record_of,
    term_t,
)
from spaseq.rdf.native._values cimport Kind, Value

# functions/operand.pxi

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
cdef char* scratch_alloc(Arena* scratch, size_t size) except NULL nogil
cdef int set_canonical(Operand* to, const Operand* of, Arena* scratch) except -2 nogil
cdef int write_term(Operand* of, Arena* scratch) except -2 nogil
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

# functions/operators.pxi

# What an instruction does. `spaseq.gpm.native.bytecode` explains each and is compared with this
# list, name by name, when `_operators` is imported.
cpdef enum Operation:
    NOTHING
    CONSTANT
    VARIABLE
    BOUND
    EXISTS
    SAME_TERM
    EQUAL
    NOT_EQUAL
    LESS
    LESS_EQUAL
    ADD
    SUBTRACT
    MULTIPLY
    DIVIDE
    AND
    OR
    IS_TEXT
    NOT
    NEGATE
    PLUS
    TRUTH
    IS_IRI
    IS_BLANK
    IS_LITERAL
    IS_NUMERIC
    CAST
    CALL
    JUMP
    JUMP_IF_TRUE
    JUMP_IF_FALSE
    JUMP_IF_ERROR
    JUMP_UNLESS
    JUMP_IF_VALUE
    BEGIN_IN
    TRY_IN
    END_IN
    IS_TRIPLE


# Operators write the result to their first operand, or an ERROR if there is none. The text of a
# WIDE result is in the scratch memory.
cdef int binary(int operation, Operand* a, Arena* scratch) except -2 nogil
cdef int unary(int operation, Operand* a, Arena* scratch) except -2 nogil
cdef int add(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int divide(Operand* a, const Operand* b, Arena* scratch) except -2 nogil
cdef int cast(Operand* a, const Datatype* datatype, Arena* scratch) except -2 nogil
cdef int equals(const Operand* a, const Operand* b) except -2 nogil
cdef int order(const Operand* a, const Operand* b) except -2 nogil


cdef inline bint is_number(const Operand* of) noexcept nogil:
    return Kind.INTEGER <= of.kind <= Kind.DOUBLE


cdef inline int truth_of(const Operand* of) noexcept nogil:
    """The effective boolean value: 1, 0, or -1 for a type error."""
    cdef int kind = of.kind
    if Kind.BOOLEAN <= kind <= Kind.DECIMAL:
        return of.exact != 0
    if kind == Kind.WIDE:
        return True
    if kind == Kind.STRING:
        return of.size != 0
    if kind == Kind.DOUBLE or kind == Kind.FLOAT:
        return not (of.real == 0.0 or isnan(of.real))
    return -1

# functions/functions.pxi

# Each member except the first is the `opcode` of an entry of `spaseq.sparql.builtins`. The entries
# are compared with this list when `_functions` is imported; the order has no meaning.
cpdef enum NativeFunction:
    NO_NATIVE_FORM
    STR
    IRI
    STRDT
    ENCODE_FOR_URI
    LANG
    LANGMATCHES
    LANGDIR
    HASLANG
    HASLANGDIR
    TRIPLE
    SUBJECT
    PREDICATE
    OBJECT
    DATATYPE
    STRLEN
    SUBSTR
    UCASE
    LCASE
    CONTAINS
    STRSTARTS
    STRENDS
    STRBEFORE
    STRAFTER
    CONCAT
    REPLACE
    ABS
    CEIL
    FLOOR
    ROUND
    YEAR
    MONTH
    DAY
    HOURS
    MINUTES
    SECONDS
    MATH_PI
    MATH_EXP
    MATH_EXP10
    MATH_LOG
    MATH_LOG10
    MATH_POW
    MATH_SQRT
    MATH_SIN
    MATH_COS
    MATH_TAN
    MATH_ASIN
    MATH_ACOS
    MATH_ATAN
    MATH_ATAN2


cdef NativeFunction native_of(str name) except *
cdef int call_native(
    NativeFunction function, Operand* a, int count, Arena* scratch
) except -2 nogil
