"""The running aggregates of partial matches as numbers: equal states are equal numbers.

Partial matches with equal registers form one group, so the state of an aggregate must be one
number: the count of COUNT; the term of MIN, MAX and SAMPLE; the term so far of SUM and
GROUP_CONCAT; FAILED after an error. A state of several numbers is a text of the window with eight
hexadecimal digits per number: the sum and the count of AVG; under DISTINCT the state without
DISTINCT, then the distinct values in order. The window stores, shares and frees states like terms,
since each value comes from an event of the same partial match.

Invariant: values are those of `spaseq.gpm.python.aggregates`, to the last character. Cost:
some hundred nanoseconds per value; linear in the values under DISTINCT and for GROUP_CONCAT.
"""

from libc.stdio cimport snprintf
from libc.string cimport memcpy

import pyoxigraph as ox

from spaseq.engine.aggregates import heeds_distinct
from spaseq.gpm.native._functions cimport (
    ERROR,
    STR,
    Operand,
    add,
    call_native,
    divide,
    is_number,
    load_term,
    order,
    scratch_alloc,
    set_computed,
    value_of,
    write_term,
)
from spaseq.gpm.python.aggregates import order as order_of_all
from spaseq.nfa.native._tecs cimport FAILED
from spaseq.rdf.native._terms cimport (
    TermRecord,
    arena_free,
    arena_reset,
    hash_of,
    mem_calloc,
    mem_free,
    permanent_of,
    record_of,
)
from spaseq.rdf.native._values cimport Kind

cdef enum:
    DIGITS = 8              # of a number in a state's text
    COUNT_MAX_BYTES = 64    # of the text of a count

cdef dict FOLDS = {
    "COUNT": Fold.COUNTED, "SUM": Fold.SUMMED, "AVG": Fold.AVERAGED, "MIN": Fold.LEAST,
    "MAX": Fold.GREATEST, "SAMPLE": Fold.SAMPLED, "GROUP_CONCAT": Fold.JOINED,
}


cdef class NativeAggregates:
    """The aggregates among the `registers` of a plan."""

    def __cinit__(self, WindowTerms window not None, Dictionary dictionary not None, registers):
        cdef uint32_t i
        cdef bytes separator
        self.window, self.dictionary = window, dictionary
        self.zero = dictionary.intern(ox.Literal(0))
        self.empty = dictionary.intern(ox.Literal(""))
        self.separators = []
        self.aggregates = <Aggregate*>mem_calloc(len(registers), sizeof(Aggregate))
        for i, register in enumerate(registers):
            if register.kind != "aggregate":
                continue
            separator = (" " if register.separator is None else register.separator).encode()
            self.separators.append(separator)
            self.aggregates[i].fold = <Fold><int>FOLDS[register.function]
            self.aggregates[i].distinct = register.distinct and heeds_distinct(register.function)
            self.aggregates[i].separator = separator
            self.aggregates[i].separator_size = <uint32_t>len(separator)

    def __dealloc__(self):
        mem_free(self.aggregates)
        arena_free(&self.scratch)

    # ---------------------------------------------------------------- one more value

    cdef term_t add(
        self, EventBatch batch, uint32_t register, term_t state, term_t value
    ) except 0 nogil:
        cdef const Aggregate* how = &self.aggregates[register]
        cdef const char* before = NULL
        cdef char* text
        cdef uint32_t i, count = 1
        cdef term_t inner = 0
        arena_reset(&self.scratch)
        if state == FAILED:
            return state
        if not how.distinct:
            return self._fold(batch, how, state, value)
        if state:
            before = _numbers(batch, state, &count)
            inner = _read_word(before)
            for i in range(1, count):
                if _read_word(before + i * DIGITS) == value:
                    return state
        inner = self._fold(batch, how, inner, value)
        if inner == FAILED:
            return FAILED
        text = scratch_alloc(&self.scratch, (count + 1) * DIGITS + 2)
        text[0] = text[(count + 1) * DIGITS + 1] = c'"'
        _write(text + 1, inner)
        if count > 1:
            memcpy(text + 1 + DIGITS, before + DIGITS, (count - 1) * DIGITS)
        _write(text + 1 + count * DIGITS, value)
        return self.known(text, (count + 1) * DIGITS + 2)

    cdef term_t _fold(
        self, EventBatch batch, const Aggregate* how, term_t state, term_t value
    ) except 0 nogil:
        """The state after one more value, without regard to DISTINCT."""
        cdef char[2 * DIGITS + 2] text
        cdef const char* before
        cdef uint32_t count = 0
        cdef term_t total = 0
        if how.fold == Fold.COUNTED:
            return state + 1
        if how.fold == Fold.SAMPLED:
            return state if state else value
        if how.fold == Fold.SUMMED:
            return self._sum(batch, state, value)
        if how.fold == Fold.JOINED:
            return self._joined(batch, how, state, value)
        if how.fold == Fold.LEAST:
            return self._better(batch, state, value, -1)
        if how.fold == Fold.GREATEST:
            return self._better(batch, state, value, 1)
        if state:
            before = _numbers(batch, state, &count)
            total, count = _read_word(before), _read_word(before + DIGITS)
        total = self._sum(batch, total, value)
        if total == FAILED:
            return FAILED
        text[0] = text[2 * DIGITS + 1] = c'"'
        _write(text + 1, total)
        _write(text + 1 + DIGITS, count + 1)
        return self.known(text, 2 * DIGITS + 2)

    cdef term_t _sum(self, EventBatch batch, term_t total, term_t value) except 0 nogil:
        cdef Operand sum, more
        load_term(&more, batch, value)
        if not is_number(&more):
            return FAILED
        load_term(&sum, batch, total if total else self.zero)
        add(&sum, &more, &self.scratch)
        if sum.kind == ERROR:
            return FAILED
        write_term(&sum, &self.scratch)
        return self.known(sum.whole, sum.whole_size)

    cdef term_t _better(
        self, EventBatch batch, term_t best, term_t value, int wanted
    ) except 0 nogil:
        """The better of two values: `value` if `order(value, best)` is `wanted`, else `best`."""
        cdef Operand one, other
        cdef int found
        if best == 0:
            return value
        load_term(&one, batch, value)
        load_term(&other, batch, best)
        found = order(&one, &other)
        if found == 2:
            with gil:
                found = order_of_all(value_of(&one), value_of(&other))
        return value if found == wanted else best

    cdef term_t _joined(
        self, EventBatch batch, const Aggregate* how, term_t state, term_t value
    ) except 0 nogil:
        cdef Operand more
        cdef const TermRecord* record
        cdef char* text
        cdef uint32_t size = 0
        load_term(&more, batch, value)
        call_native(STR, &more, 1, &self.scratch)
        if more.kind == ERROR:
            return FAILED
        if state:
            record = record_of(batch, state)
            size = record.size - 2 + how.separator_size
        text = scratch_alloc(&self.scratch, <size_t>size + more.size + 2)
        if state:
            memcpy(text + 1, record.text + 1, record.size - 2)
            memcpy(text + record.size - 1, how.separator, how.separator_size)
        memcpy(text + 1 + size, more.text, more.size)
        text[0] = text[size + more.size + 1] = c'"'
        return self.known(text, size + more.size + 2)

    # ---------------------------------------------------------------- values for expressions

    cdef int finish(
        self, EventBatch batch, uint32_t register, term_t state, term_t* value
    ) except -1 nogil:
        cdef const Aggregate* how = &self.aggregates[register]
        cdef uint32_t count
        value[0] = 0
        if state == FAILED:
            return 0
        if how.distinct and state:
            state = _read_word(_numbers(batch, state, &count))
        if how.fold == Fold.COUNTED:
            value[0] = self.number(state)
        elif how.fold == Fold.AVERAGED and state:
            self._mean(batch, state, value)
        elif how.fold == Fold.AVERAGED or how.fold == Fold.SUMMED:
            value[0] = state if state else self.zero
        elif how.fold == Fold.JOINED:
            value[0] = state if state else self.empty
        else:
            value[0] = state
        return 0

    cdef int _mean(self, EventBatch batch, term_t state, term_t* value) except -1 nogil:
        cdef Operand sum, number
        cdef uint32_t count
        cdef const char* text = _numbers(batch, state, &count)
        arena_reset(&self.scratch)
        load_term(&sum, batch, _read_word(text))
        set_computed(&number, Kind.INTEGER)
        number.exact = _read_word(text + DIGITS)
        divide(&sum, &number, &self.scratch)
        if sum.kind != ERROR:
            write_term(&sum, &self.scratch)
            value[0] = self.known(sum.whole, sum.whole_size)
        return 0

    cdef term_t number(self, uint32_t count) except 0 nogil:
        """The integer of a count."""
        cdef char[COUNT_MAX_BYTES] text
        cdef int size = snprintf(
            text, COUNT_MAX_BYTES, b'"%u"^^<http://www.w3.org/2001/XMLSchema#integer>', count
        )
        return self.known(text, <uint32_t>size)

    cdef term_t known(self, const char* text, uint32_t size) except 0 nogil:
        """The number of a term by its text; the window stores a term that is not permanent."""
        cdef term_t term = permanent_of(self.dictionary, hash_of(text, size), text, size)
        return term if term else self.window.intern_text(text, size)


cdef const char* _numbers(EventBatch batch, term_t state, uint32_t* count) noexcept nogil:
    """The digits in a state's text; `count` receives how many numbers they encode."""
    cdef const TermRecord* record = record_of(batch, state)
    count[0] = (record.size - 2) // DIGITS
    return record.text + 1


cdef inline uint32_t _read_word(const char* text) noexcept nogil:
    cdef uint32_t number = 0
    cdef int i
    for i in range(DIGITS):
        number = number << 4 | <uint32_t>(
            text[i] - c'0' if text[i] <= c'9' else text[i] - c'a' + 10
        )
    return number


cdef inline int _write(char* text, uint32_t number) noexcept nogil:
    cdef int i
    cdef uint32_t digit
    for i in range(DIGITS):
        digit = number >> 4 * (DIGITS - 1 - i) & 15
        text[i] = <char>(c'0' + digit if digit < 10 else c'a' + digit - 10)
    return 0
