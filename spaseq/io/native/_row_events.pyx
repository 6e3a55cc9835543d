# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Rows of Arrow buffers → events, by the plan of a mapping (spaseq/io/rows/plan.py).

A group of rows at a time becomes a matrix of term numbers with one line per row: first the row's
columns, then the results of the BINDs, evaluated one expression at a time. A row that no filter
drops becomes an event, whose triples the template makes by copying numbers. A value is written as
the text of a term, hashed and looked up in the batch. The texts are in canonical form, like those
of casts.

Columns repeat values, so the value of an expression is cached by the numbers of the terms that it
read. Each step has a table with one line per value; a collision costs one evaluation.

Invariant: a term number belongs to the batch that the reader of events fills; `read` leaves the
numbers of no earlier batch. Cost: linear in the bytes of the columns that the plan reads, and one
evaluation of each expression per row or per distinct combination of what it reads. There is no
Python object per row, unless an expression has no native form.
"""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from spaseq.gpm.native._bytecode cimport Expression
from spaseq.gpm.native._functions cimport Operand, set_canonical
from spaseq.gpm.python.entry import Scope
from spaseq.io.rows.columns import Kind as PythonKind
from spaseq.rdf.native._framing cimport EventReader, Quad, Stamp, is_blank
from spaseq.rdf.native._literals cimport ATTOS_PER_SECOND, Form, civil
from spaseq.rdf.native._terms cimport (
    NO_ZONE,
    Arena,
    Dictionary,
    EventBatch,
    Keep,
    Numeral,
    Relevance,
    TermRecord,
    arena_free,
    arena_reset,
    hash_of,
    int128,
    is_numeral,
    is_triple,
    keep_of,
    keeps_object,
    known_term,
    mem_alloc,
    mem_free,
    mem_realloc,
    record_of,
    term_t,
    written_record,
)
from spaseq.rdf.native._values cimport Kind as ValueKind

import pyoxigraph as ox


cdef extern from *:
    """
    typedef unsigned __int128 spaseq_uint128;
    """
    ctypedef unsigned long long uint128 "spaseq_uint128"

cdef int _compare_kinds() except -1:
    members = set(Kind.__members__)
    if {(each.name, int(each)) for each in PythonKind} != {(n, int(Kind[n])) for n in members}:
        raise ImportError("the kinds of columns of _matcher.pxd and of columns.py differ")
    return 0


_compare_kinds()

cdef enum:
    MEMO_LINES = 1024       # of the table of each step, a power of two
    MEMO_INPUTS = 4         # the most inputs of a step whose results are cached
    EPOCH_DAY = 719162      # days from 0001-01-01 to 1970-01-01
    FORM_ROOM = 96          # bytes that suffice for the lexical form of all but texts

cdef int64_t NO_ORDINAL = INT64_MIN

cdef str XSD = "http://www.w3.org/2001/XMLSchema#"

# The text that follows the lexical form of each kind; the list owns the texts.
cdef struct Ending:
    const char* text
    uint32_t size

cdef Ending[14] ENDINGS
cdef list ENDING_TEXTS = []


cdef int _list_endings() except -1:
    cdef bytes text
    names = {
        PythonKind.INTEGER: "integer",
        PythonKind.UNSIGNED: "integer",
        PythonKind.DECIMAL: "decimal",
        PythonKind.DOUBLE: "double",
        PythonKind.FLOAT: "float",
        PythonKind.BOOLEAN: "boolean",
        PythonKind.DATE_TIME: "dateTime",
        PythonKind.DATE: "date",
        PythonKind.TIME: "time",
        PythonKind.DURATION: "dayTimeDuration",
        PythonKind.HEX: "hexBinary",
    }
    for kind in PythonKind:
        text = f'"^^<{XSD}{names[kind]}>'.encode() if kind in names else b'"'
        ENDING_TEXTS.append(text)
        ENDINGS[<int>kind].text = text
        ENDINGS[<int>kind].size = <uint32_t>len(text)
    return 0


_list_endings()

# The values of a column in the current Arrow batch.
cdef struct Values:
    int kind
    bint computed               # whether the plan uses its terms
    int64_t offset              # of its first row in the buffers
    const uint8_t* validity     # a bit for each row; NULL: no value is null
    const char* values
    const char* data            # the bytes of texts
    int64_t scale
    bint zoned

# A cached result.
cdef struct Memo:
    uint64_t serial             # of the batch whose numbers it has
    term_t[MEMO_INPUTS] inputs
    term_t result

cdef struct StepPlan:
    int target                  # the slot of a BIND; -1: a filter
    int count                   # of inputs
    int* inputs
    Memo* memos                 # NULL: results are not cached
    uint64_t rows               # for which it was evaluated
    uint64_t erred              # rows without a value although all inputs are bound
    uint64_t unbound            # rows without a value, an input of which is unbound
    uint64_t position           # in the file of the first of `erred`

# The results of a filter; a BIND that errs has the term 0.
cdef enum:
    UNTRUE = 0
    TRUE = 1
    ERRED = 2

# A term of the template: a slot of the row, or a constant.
cdef struct Term:
    int slot
    term_t term
    bint blank

cdef struct Template:
    Term subject, predicate, object
    uint64_t misplaced          # rows that lack it, since a term is no subject or predicate
    uint64_t position           # in the file of the first of them


def is_of_use(Relevance relevance not None, predicate, value) -> bool:
    """Whether a query can use triples with a predicate, and with an object if it is not None."""
    cdef Dictionary dictionary = relevance.dictionary
    cdef Keep keep = keep_of(relevance, dictionary.intern(predicate))
    if keep != Keep.SOME or value is None:
        return keep != Keep.NOTHING
    return keeps_object(relevance, dictionary.intern(predicate), dictionary.intern(value))


# ------------------------------------------------------------------ lexical forms


cdef inline char* _digits(char* end, uint128 number, int width) noexcept nogil:
    """Write a number with at least `width` digits so that it ends at `end`; returns its start."""
    cdef uint64_t low
    while number >> 64:
        end -= 1
        end[0] = <char>(48 + <int>(number % 10))
        number = number // 10
        width -= 1
    low = <uint64_t>number
    while low or width > 0:
        end -= 1
        end[0] = <char>(48 + <int>(low % 10))
        low //= 10
        width -= 1
    return end


cdef inline char* _padded(char* to, int64_t number, int width) noexcept nogil:
    """Write a number with exactly `width` digits; returns its end."""
    _digits(to + width, <uint128><uint64_t>number, width)
    return to + width


cdef char* _fraction(char* to, int64_t ticks, int64_t per_second) noexcept nogil:
    """Write the fraction of a second, without zeros at its end; returns its end."""
    if ticks == 0:
        return to
    to[0] = c"."
    to += 1
    while ticks:
        per_second //= 10
        to[0] = <char>(48 + ticks // per_second)
        ticks %= per_second
        to += 1
    return to


cdef char* _date(char* to, int64_t days) noexcept nogil:
    """Write the date that is `days` days after 1970-01-01; returns its end."""
    cdef int64_t year
    cdef int month, day
    cdef char[24] text
    cdef char* begin
    civil(days + EPOCH_DAY, &year, &month, &day)
    if year < 0:
        to[0] = c"-"
        to += 1
        year = -year
    begin = _digits(text + 24, <uint128><uint64_t>year, 4)
    memcpy(to, begin, text + 24 - begin)
    to += text + 24 - begin
    to[0] = c"-"
    to = _padded(to + 1, month, 2)
    to[0] = c"-"
    return _padded(to + 1, day, 2)


cdef char* _time_of_day(char* to, int64_t ticks, int64_t per_second) noexcept nogil:
    cdef int64_t seconds = ticks // per_second
    to = _padded(to, seconds // 3600, 2)
    to[0] = c":"
    to = _padded(to + 1, seconds // 60 % 60, 2)
    to[0] = c":"
    to = _padded(to + 1, seconds % 60, 2)
    return _fraction(to, ticks % per_second, per_second)


cdef char* _date_time(char* to, int64_t ticks, int64_t per_second, bint zoned) noexcept nogil:
    cdef int64_t per_day = 86400 * per_second
    cdef int64_t days = ticks // per_day, rest = ticks % per_day
    if rest < 0:
        rest += per_day
        days -= 1
    to = _date(to, days)
    to[0] = c"T"
    to = _time_of_day(to + 1, rest, per_second)
    if zoned:
        to[0] = c"Z"
        to += 1
    return to


cdef char* _decimal(char* to, int128 number, int64_t scale) noexcept nogil:
    """Write number / 10**scale without zeros at the end of its fraction; returns its end."""
    cdef char[FORM_ROOM] text
    cdef char* end = text + FORM_ROOM
    cdef char* begin
    cdef uint128 size = <uint128>number
    cdef int64_t whole
    if number < 0:
        to[0] = c"-"
        to += 1
        size = ~size + 1
    begin = _digits(end, size, <int>scale + 1 if scale > 0 else 1)
    while scale > 0 and (end - 1)[0] == c"0":
        end -= 1
        scale -= 1
    if scale <= 0:
        memcpy(to, begin, end - begin)
        to += end - begin
        while scale < 0 and number:
            to[0] = c"0"
            to += 1
            scale += 1
        return to
    whole = end - begin - scale
    memcpy(to, begin, whole)
    to[whole] = c"."
    memcpy(to + whole + 1, begin + whole, scale)
    return to + whole + 1 + scale


@cython.final
cdef class RowReader:
    """Reads rows of one table into the batches of a reader of events.

    Args:
        events: the reader of events, which this object adds events to.
        relevance: the triples that queries can use.
        plan: a `RowPlan`.
        questions: takes the reports of rows without a time, and of names that are not IRIs.
    """

    cdef EventReader events
    cdef Relevance relevance
    cdef object questions
    cdef list owners            # objects that keep the buffers of the columns alive
    cdef list evaluators        # per step an Expression, or a function of Python
    cdef uint32_t width         # slots of a row
    cdef uint32_t column_count
    cdef Values* columns
    cdef int row_slot, time_slot, column_time_slot, graph_slot, ordinal_slot
    cdef int64_t* ordinals      # by row of the table, if there is a slot for them
    cdef size_t ordinal_room
    cdef StepPlan* steps
    cdef uint32_t step_count
    cdef Template* triples
    cdef uint32_t triple_count
    cdef list examples          # per step: the inputs of the first row for which it erred
    cdef list misplaced         # per triple of the template: the first term that is out of place
    cdef uint64_t rows          # that were read
    cdef uint64_t empty         # events without triples although the template has some
    cdef uint64_t empty_position    # in the file of the first of them
    cdef uint64_t first         # the number of the first row of the batch
    cdef const uint64_t* lines  # of the rows of the batch; NULL: messages have the row's number
    cdef term_t* matrix         # width numbers for each row
    cdef uint8_t* dropped       # per row: whether a filter drops it
    cdef size_t room            # rows of the matrix
    cdef char* text             # a term that is being written
    cdef size_t text_room
    cdef Arena scratch
    cdef object scope

    def __cinit__(
        self, EventReader events not None, Relevance relevance not None, plan, questions
    ):
        cdef uint32_t i
        cdef Dictionary dictionary = relevance.dictionary
        self.events = events
        self.relevance = relevance
        self.questions = questions
        self.scope = Scope()
        self.width = max(plan.width, 1)
        self.column_count = len(plan.columns)
        self.row_slot, self.graph_slot = plan.row_slot, plan.graph_slot
        self.ordinal_slot = plan.ordinal_slot
        self.time_slot, self.column_time_slot = plan.time_slot, plan.column_time_slot
        self.columns = <Values*>_zeros(self.column_count, sizeof(Values))
        self.steps = <StepPlan*>_zeros(len(plan.steps), sizeof(StepPlan))
        self.triples = <Template*>_zeros(len(plan.triples), sizeof(Template))
        self.evaluators = []
        for i in range(self.column_count):
            self.columns[i].computed = plan.computed[i]
        for step in plan.steps:
            self._add_step(step, dictionary)
        for i, (subject, predicate, value) in enumerate(plan.triples):
            self.triples[i].subject = _placed(subject, dictionary)
            self.triples[i].predicate = _placed(predicate, dictionary)
            self.triples[i].object = _placed(value, dictionary)
        self.triple_count = len(plan.triples)
        self.examples = [None] * len(plan.steps)
        self.misplaced = [None] * len(plan.triples)
        self.text_room = 1024
        self.text = <char*>mem_alloc(self.text_room)
        if self.text == NULL:
            raise MemoryError

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.step_count):
            mem_free(self.steps[i].inputs)
            mem_free(self.steps[i].memos)
        mem_free(self.columns)
        mem_free(self.steps)
        mem_free(self.triples)
        mem_free(self.matrix)
        mem_free(self.dropped)
        mem_free(self.ordinals)
        mem_free(self.text)
        arena_free(&self.scratch)

    cdef int _add_step(self, object step, Dictionary dictionary) except -1:
        cdef StepPlan* to = &self.steps[self.step_count]
        cdef int i
        to.target = step.target
        to.count = len(step.inputs)
        to.inputs = <int*>_zeros(to.count, sizeof(int))
        self.step_count += 1
        for i in range(to.count):
            to.inputs[i] = step.inputs[i]
        if step.cached and 0 < to.count <= MEMO_INPUTS:
            to.memos = <Memo*>_zeros(MEMO_LINES, sizeof(Memo))
        if step.code is None:
            self.evaluators.append(step.evaluate)
        else:
            self.evaluators.append(Expression(step.code, dictionary))
        return 0

    # ---------------------------------------------------------------- rows

    def start(self, list columns not None, uint64_t first, size_t lines=0):
        """Continue with a batch, given by the `Buffers` of the plan's columns.

        `first` is the number of its first row. `lines` is the address of the lines of the rows, if
        messages name lines and not rows; a column keeps them alive.
        """
        cdef uint32_t i
        cdef Values* to
        self.owners = columns
        self.first = first
        self.lines = <const uint64_t*>lines
        for i, buffers in enumerate(columns):
            to = &self.columns[i]
            to.kind = buffers.kind
            to.offset = buffers.offset
            to.validity = <const uint8_t*><size_t>buffers.validity
            to.values = <const char*><size_t>buffers.values
            to.data = <const char*><size_t>buffers.data
            to.scale = buffers.scale
            to.zoned = buffers.zoned

    def read(self, int64_t start, int64_t stop):
        """Add the events of rows [start, stop) of the Arrow batch."""
        cdef uint32_t i
        cdef int64_t row
        cdef size_t count = <size_t>(stop - start)
        if self.events.batch.event_count == 0 and self.events.batch.local.count > 1:
            self.events.fresh()
        if count > self.room:
            self.matrix = <term_t*>_grown(self.matrix, count * self.width * sizeof(term_t))
            self.dropped = <uint8_t*>_grown(self.dropped, count)
            self.room = count
        if self.ordinal_slot >= 0 and self.first + stop > self.ordinal_room:
            self.ordinal_room = self.first + 2 * stop
            self.ordinals = <int64_t*>_grown(self.ordinals, self.ordinal_room * sizeof(int64_t))
        memset(self.matrix, 0, count * self.width * sizeof(term_t))
        memset(self.dropped, 0, count)
        with nogil:
            for i in range(self.column_count):
                if self.columns[i].computed:
                    self._fill(&self.columns[i], i, start, count)
            if self.row_slot >= 0:
                for row in range(<int64_t>count):
                    self.matrix[row * self.width + self.row_slot] = self._integer(
                        <uint128>(self.first + start + row), False
                    )
        for i in range(self.step_count):
            evaluator = self.evaluators[i]
            if isinstance(evaluator, Expression):
                self._run(i, <Expression>evaluator, start, count)
            else:
                self._run_in_python(i, evaluator, start, count)
        self.rows += count
        with nogil:
            for row in range(<int64_t>count):
                if not self.dropped[row]:
                    self._emit(self.matrix + row * self.width, start + row)

    # ---------------------------------------------------------------- columns

    cdef int _fill(
        self, Values* column, uint32_t slot, int64_t start, size_t count
    ) except -1 nogil:
        """Write the terms of a column into its slot."""
        cdef size_t i
        cdef int64_t at = column.offset + start
        cdef term_t* to = self.matrix + slot
        for i in range(count):
            if _is_valid(column, at):
                to[0] = self._term(column, at)
            to += self.width
            at += 1
        return 0

    cdef term_t _term(self, Values* column, int64_t at) except 0 nogil:
        """The term of a value."""
        cdef int kind = column.kind
        cdef int64_t number
        cdef char* end
        cdef const Cell* cell
        if kind == Kind.TERM:
            cell = _cell(column, at)
            return self._enter(cell.text, <uint32_t>cell.size)
        if kind == Kind.TEXT or kind == Kind.HEX:
            return self._text(column, at)
        if kind == Kind.INTEGER:
            number = (<const int64_t*>column.values)[at]
            return self._integer(
                ~<uint128>number + 1 if number < 0 else <uint128>number, number < 0
            )
        self.text[0] = c'"'
        end = self.text + 1
        if kind == Kind.DECIMAL:
            end = _decimal(end, (<const int128*>column.values)[at], column.scale)
        elif kind == Kind.UNSIGNED:
            return self._integer(<uint128>(<const uint64_t*>column.values)[at], False)
        elif kind == Kind.DOUBLE or kind == Kind.FLOAT:
            end = self._real((<const double*>column.values)[at], kind == Kind.FLOAT)
        elif kind == Kind.BOOLEAN:
            if (<const uint8_t*>column.values)[at >> 3] >> (at & 7) & 1:
                memcpy(end, b"true", 4)
                end += 4
            else:
                memcpy(end, b"false", 5)
                end += 5
        elif kind == Kind.DATE_TIME:
            end = _date_time(end, (<const int64_t*>column.values)[at], column.scale, column.zoned)
        elif kind == Kind.DATE:
            end = _date(end, (<const int64_t*>column.values)[at])
        elif kind == Kind.TIME:
            end = _time_of_day(end, (<const int64_t*>column.values)[at], column.scale)
        else:
            end = self._duration((<const int64_t*>column.values)[at], column.scale)
        memcpy(end, ENDINGS[kind].text, ENDINGS[kind].size)
        return self._enter(self.text, <uint32_t>(end + ENDINGS[kind].size - self.text))

    cdef term_t _integer(self, uint128 size, bint negative) except 0 nogil:
        cdef const Ending* ending = &ENDINGS[<int>Kind.INTEGER]
        cdef char* end = self.text + FORM_ROOM
        cdef char* begin = _digits(end, size, 1)
        if negative:
            begin -= 1
            begin[0] = c"-"
        begin -= 1
        begin[0] = c'"'
        memcpy(end, ending.text, ending.size)
        return self._enter(begin, <uint32_t>(end + ending.size - begin))

    cdef term_t _text(self, Values* column, int64_t at) except 0 nogil:
        cdef const int32_t* ends = <const int32_t*>column.values
        cdef const char* begin = column.data + ends[at]
        cdef uint32_t size = <uint32_t>(ends[at + 1] - ends[at]), i
        cdef const char* letters = b"0123456789ABCDEF"
        cdef const Ending* ending = &ENDINGS[column.kind]
        cdef char* to
        self._reserve(2 * <size_t>size)
        to = self.text
        to[0] = c'"'
        to += 1
        if column.kind == Kind.TEXT:
            memcpy(to, begin, size)
            to += size
        else:
            for i in range(size):
                to[0] = letters[<uint8_t>begin[i] >> 4]
                to[1] = letters[<uint8_t>begin[i] & 15]
                to += 2
        memcpy(to, ending.text, ending.size)
        return self._enter(self.text, <uint32_t>(to + ending.size - self.text))

    cdef int _reserve(self, size_t size) except -1 nogil:
        """Reserve memory for a term with a lexical form of `size` bytes."""
        size += FORM_ROOM
        if size > self.text_room:
            with gil:
                self.text = <char*>_grown(self.text, 2 * size)
            self.text_room = 2 * size
        return 0

    cdef char* _real(self, double real, bint narrow) except NULL nogil:
        cdef Operand given, form
        given.kind = ValueKind.FLOAT if narrow else ValueKind.DOUBLE
        given.real = real
        return self._canonical(&given, &form)

    cdef char* _duration(self, int64_t ticks, int64_t per_second) except NULL nogil:
        cdef Operand given, form
        given.kind = ValueKind.SPAN
        given.form = Form.DAY_TIME_DURATION
        given.zone = NO_ZONE
        given.months = 0
        given.exact = <int128>ticks * (<int64_t>ATTOS_PER_SECOND // per_second)
        return self._canonical(&given, &form)

    cdef char* _canonical(self, Operand* given, Operand* form) except NULL nogil:
        """Write the lexical form of a computed value; returns its end."""
        cdef char* to
        given.whole = NULL
        given.term = 0
        arena_reset(&self.scratch)
        set_canonical(form, given, &self.scratch)
        self._reserve(form.size)
        to = self.text + 1
        memcpy(to, form.text, form.size)
        return to + form.size

    cdef inline term_t _enter(self, const char* text, uint32_t size) except 0 nogil:
        cdef uint64_t hash = hash_of(text, size)
        cdef term_t term = known_term(self.events.batch, hash, text, size)
        return term if term else self.events.batch.enter(hash, text, size, True)

    def ordinals_of(self, rows):
        """The values of `?_ordinal` of rows of the table, given by their numbers; None: unbound."""
        cdef int64_t ordinal
        found = []
        for row in rows:
            if self.ordinal_slot < 0 or <size_t>row >= self.ordinal_room:
                found.append(None)
            else:
                ordinal = self.ordinals[<size_t>row]
                found.append(None if ordinal == NO_ORDINAL else ordinal)
        return found

    # ---------------------------------------------------------------- expressions

    cdef Memo* _memo(self, StepPlan* step, const term_t* row, bint* known) noexcept nogil:
        """The line of the table for the inputs of a step; `known`: whether it has the result."""
        cdef uint64_t mixed = 0
        cdef Memo* memo
        cdef int i
        for i in range(step.count):
            mixed = (mixed ^ row[step.inputs[i]]) * <uint64_t>0x9E3779B97F4A7C15
            mixed ^= mixed >> 32
        memo = &step.memos[mixed & (MEMO_LINES - 1)]
        known[0] = memo.serial == self.events.batch.serial
        for i in range(step.count):
            known[0] = known[0] and memo.inputs[i] == row[step.inputs[i]]
        return memo

    cdef void _remember(
        self, StepPlan* step, Memo* memo, const term_t* row, term_t result
    ) noexcept nogil:
        cdef int i
        memo.serial = self.events.batch.serial
        memo.result = result
        for i in range(step.count):
            memo.inputs[i] = row[step.inputs[i]]

    cdef inline int _take(
        self, uint32_t number, term_t* row, size_t i, term_t result, int64_t start
    ) except -1 nogil:
        """Take the result of an expression for the row `start + i`: its term, or its truth."""
        cdef int target = self.steps[number].target
        if target >= 0:
            row[target] = result
        elif result != TRUE:
            self.dropped[i] = True
        if result == <term_t>(0 if target >= 0 else ERRED):
            self._count_error(number, row, start + <int64_t>i)
        return 0

    cdef int _count_error(
        self, uint32_t number, const term_t* row, int64_t place
    ) except -1 nogil:
        """Count a row for which an expression has no value, by whether its inputs have one."""
        cdef StepPlan* step = &self.steps[number]
        cdef int i
        for i in range(step.count):
            if row[step.inputs[i]] == 0:
                step.unbound += 1
                return 0
        step.erred += 1
        if step.erred == 1:
            step.position = self._position(place)
            with gil:
                self.examples[number] = [
                    self.events.batch.term(row[step.inputs[i]]) for i in range(step.count)
                ]
        return 0

    def step_errors(self):
        """Per step: the rows, those that erred, those with unbound inputs, the position of the
        first one that erred, and its inputs.
        """
        cdef uint32_t i
        return [
            (
                self.steps[i].rows, self.steps[i].erred, self.steps[i].unbound,
                self.steps[i].position, self.examples[i],
            )
            for i in range(self.step_count)
        ]  # fmt: skip

    def misplaced_terms(self):
        """Per triple of the template: the rows in which a term is out of place, the position of
        the first one, and the term.
        """
        cdef uint32_t i
        return [
            (self.triples[i].misplaced, self.triples[i].position, self.misplaced[i])
            for i in range(self.triple_count)
        ]

    def row_counts(self):
        """The rows that were read, the events without triples, and the position of the first."""
        return self.rows, self.empty, self.empty_position

    cdef int _run(
        self, uint32_t number, Expression expression, int64_t start, size_t count
    ) except -1:
        """Evaluate an expression for each row: its term, or whether a filter is true."""
        cdef StepPlan* step = &self.steps[number]
        cdef EventBatch batch = self.events.batch
        cdef term_t* row = self.matrix
        cdef Memo* memo = NULL
        cdef term_t result
        cdef bint known = False
        cdef int truth
        cdef size_t i
        with nogil:
            for i in range(count):
                if not self.dropped[i]:
                    step.rows += 1
                    if step.memos != NULL:
                        memo = self._memo(step, row, &known)
                    if known:
                        result = memo.result
                    elif step.target >= 0:
                        expression.value(batch, row, NULL, &result)
                    else:
                        truth = expression.truth(batch, row, NULL)
                        result = <term_t>truth if truth >= 0 else ERRED
                    if memo != NULL and not known:
                        self._remember(step, memo, row, result)
                    self._take(number, row, i, result, start)
                row += self.width
        return 0

    cdef int _run_in_python(
        self, uint32_t number, object evaluate, int64_t start, size_t count
    ) except -1:
        """Evaluate an expression without a native form for each row; see `_run`."""
        cdef StepPlan* step = &self.steps[number]
        cdef EventBatch batch = self.events.batch
        cdef term_t* row = self.matrix
        cdef Memo* memo = NULL
        cdef term_t result
        cdef bint known = False
        cdef size_t i
        cdef uint32_t slot
        cdef int j
        cdef list terms = [None] * self.width
        for i in range(count):
            if not self.dropped[i]:
                step.rows += 1
                if step.memos != NULL:
                    memo = self._memo(step, row, &known)
                if known:
                    result = memo.result
                else:
                    for j in range(step.count):
                        slot = step.inputs[j]
                        terms[slot] = batch.term(row[slot]) if row[slot] else None
                    value = evaluate(terms, self.scope)
                    if step.target < 0:
                        result = ERRED if value is None else TRUE if value == _TRUE else UNTRUE
                    else:
                        result = 0 if value is None else batch.encode(value)
                    if memo != NULL:
                        self._remember(step, memo, row, result)
                self._take(number, row, i, result, start)
            row += self.width
        return 0

    # ---------------------------------------------------------------- events

    cdef int _emit(self, const term_t* row, int64_t place) except -1 nogil:
        """Add the event of a row of the Arrow batch."""
        cdef uint64_t number = self._position(place)
        cdef uint32_t i
        cdef int added = 0
        cdef term_t stamp = 0, name = 0
        cdef int64_t micros = 0
        cdef bint direct = False
        cdef int slot = self.time_slot
        cdef Stamp time
        if self.events.timed:
            if not self._has_time(slot, row, place):
                slot = self.column_time_slot
                if not self._has_time(slot, row, place):
                    with gil:
                        self.questions.untimed_row(number)
                    return 0
            direct = self._instant(slot, place, &micros)
            if not direct:
                stamp = row[slot]
                if stamp == 0:
                    stamp = self._term(
                        &self.columns[slot], self.columns[slot].offset + place
                    )
                stamp = self._stamp(stamp)
        if self.graph_slot >= 0:
            name = row[self.graph_slot]
            if name and _initial(self.events.batch, name) != c"<":
                with gil:
                    self.questions.no_name(self.events.batch.term(name), number)
                return 0
        if self.ordinal_slot >= 0 and not self._number(row[self.ordinal_slot], number):
            with gil:
                self.questions.no_ordinal(
                    self.events.batch.term(row[self.ordinal_slot]), number
                )
            return 0
        self.events.open(number, name)
        for i in range(self.triple_count):
            added += self._add(i, row, number)
        if added == 0 and self.triple_count:
            if self.empty == 0:
                self.empty_position = number
            self.empty += 1
        self.events.is_open = False
        if direct:
            return self.events.emit_at(micros, 1, 0, True)
        time.term = stamp
        time.rank = 0
        time.line = number
        return self.events.emit(&time, 1)

    cdef inline uint64_t _position(self, int64_t place) noexcept nogil:
        """The position of a row in the file: its number, or its line."""
        return self.first + <uint64_t>place if self.lines == NULL else self.lines[place]

    cdef bint _number(self, term_t term, uint64_t row) noexcept nogil:
        """Set the ordinal of a row; False if the term is not an xsd:integer of 64 bits."""
        cdef const Ending* ending = &ENDINGS[<int>Kind.INTEGER]
        cdef const TermRecord* record
        cdef Numeral numeral
        cdef int128 value = 0
        cdef uint32_t i = 1
        cdef bint negative
        if term == 0:
            self.ordinals[row] = NO_ORDINAL
            return True
        record = written_record(self.events.batch, term, &numeral)
        if record.size <= ending.size + 1 or record.size > ending.size + 21 or memcmp(
            record.text + record.size - ending.size, ending.text, ending.size
        ):
            return False
        negative = record.text[1] == c"-"
        if negative or record.text[1] == c"+":
            i = 2
        for i in range(i, record.size - ending.size):
            if not c"0" <= record.text[i] <= c"9":
                return False
            value = 10 * value + (record.text[i] - c"0")
        if negative:
            value = -value
        if not -INT64_MAX <= value <= INT64_MAX:
            return False
        self.ordinals[row] = <int64_t>value
        return True

    cdef bint _has_time(self, int slot, const term_t* row, int64_t place) noexcept nogil:
        """Whether a slot has a value, even if the term of its column is not computed."""
        if slot < 0:
            return False
        if slot < <int>self.column_count:
            return _is_valid(&self.columns[slot], self.columns[slot].offset + place)
        return row[slot] != 0

    cdef bint _instant(self, int slot, int64_t place, int64_t* micros) noexcept nogil:
        """Set the time from a column of timestamps, if it is a whole number of microseconds."""
        cdef Values* column
        cdef int64_t ticks, factor
        if slot >= <int>self.column_count or self.columns[slot].kind != Kind.DATE_TIME:
            return False
        column = &self.columns[slot]
        ticks = (<const int64_t*>column.values)[column.offset + place]
        if column.scale > 1000000:
            factor = column.scale // 1000000
            micros[0] = ticks // factor
            return ticks % factor == 0
        factor = 1000000 // column.scale
        if factor > 1 and not -(INT64_MAX // factor) <= ticks <= INT64_MAX // factor:
            return False
        micros[0] = ticks * factor
        return True

    cdef int _misplace(self, uint32_t number, term_t term, uint64_t position) except -1 nogil:
        """Count a triple that is omitted since a term cannot be where it is."""
        cdef Template* triple = &self.triples[number]
        triple.misplaced += 1
        if triple.misplaced == 1:
            triple.position = position
            with gil:
                self.misplaced[number] = self.events.batch.term(term)
        return 0

    cdef int _add(self, uint32_t place, const term_t* row, uint64_t number) except -1 nogil:
        """Add a triple of the template, unless a term is unbound or out of place: 1 or 0."""
        cdef const Template* triple = &self.triples[place]
        cdef Quad quad
        cdef char initial
        quad.subject = _at(&triple.subject, row)
        quad.predicate = _at(&triple.predicate, row)
        quad.object = _at(&triple.object, row)
        if not quad.subject or not quad.predicate or not quad.object:
            return 0
        quad.blank_subject, quad.blank_object = triple.subject.blank, triple.object.blank
        if triple.subject.slot >= 0:
            initial = _initial(self.events.batch, quad.subject)
            if initial == c'"' or initial == c"(":
                return self._misplace(place, quad.subject, number)
            quad.blank_subject = initial == c"_"
        if triple.predicate.slot >= 0 and _initial(self.events.batch, quad.predicate) != c"<":
            return self._misplace(place, quad.predicate, number)
        if triple.object.slot >= 0:
            quad.blank_object = is_blank(self.events.batch, quad.object)
        quad.graph = 0
        quad.line = number
        quad.timing = False
        quad.kept = keep_of(self.relevance, quad.predicate) == Keep.EVERY or (
            keep_of(self.relevance, quad.predicate) == Keep.SOME
            and keeps_object(self.relevance, quad.predicate, quad.object)
        )
        self.events.add(&quad)
        return 1

    cdef term_t _stamp(self, term_t term) except 0 nogil:
        """A time as a typed literal, even if it is a text with the lexical form of one."""
        cdef const TermRecord* record
        cdef Kind kind = Kind.INTEGER
        cdef uint32_t i, size
        if is_numeral(term):
            return term
        record = record_of(self.events.batch, term)
        if record.kind != ValueKind.STRING:
            return term
        size = record.lexical
        self._reserve(size)
        memcpy(self.text, record.text, size + 1)
        if size >= 10 and record.text[5] == c"-" and record.text[8] == c"-":
            kind = Kind.DATE if size == 10 else Kind.DATE_TIME
            if size > 10 and record.text[11] == c" ":
                self.text[11] = c"T"
        else:
            for i in range(1, size + 1):
                if record.text[i] == c"." and kind == Kind.INTEGER:
                    kind = Kind.DECIMAL
                elif record.text[i] | 0x20 == c"e":
                    kind = Kind.DOUBLE
                elif not (c"0" <= record.text[i] <= c"9" or c"+" <= record.text[i] <= c"."):
                    return term
        memcpy(self.text + size + 1, ENDINGS[<int>kind].text, ENDINGS[<int>kind].size)
        return self._enter(self.text, size + 1 + ENDINGS[<int>kind].size)


cdef object _TRUE = ox.Literal(True)


cdef inline bint _is_valid(const Values* column, int64_t at) noexcept nogil:
    """Whether a value is not null."""
    if column.kind == Kind.TERM:
        return _cell(column, at).text != NULL
    return column.kind != Kind.NOTHING and (
        column.validity == NULL or column.validity[at >> 3] >> (at & 7) & 1
    )


cdef inline const Cell* _cell(const Values* column, int64_t at) noexcept nogil:
    return <const Cell*>column.values + at * column.scale


cdef inline term_t _at(const Term* term, const term_t* row) noexcept nogil:
    return row[term.slot] if term.slot >= 0 else term.term


cdef inline char _initial(EventBatch batch, term_t term) noexcept nogil:
    """The first byte of a term's text, which determines its kind; `(` for a triple term."""
    cdef const TermRecord* record
    if is_numeral(term):
        return c'"'
    record = record_of(batch, term)
    return c"(" if is_triple(record.text) else record.text[0]


cdef Term _placed(object place, Dictionary dictionary) except *:
    cdef Term term
    term.slot, term.term, term.blank = -1, 0, False
    if isinstance(place, int):
        term.slot = place
    else:
        term.term = dictionary.intern(place)
        term.blank = isinstance(place, ox.BlankNode)
    return term


cdef void* _grown(void* block, size_t size) except NULL:
    block = mem_realloc(block, size)
    if block == NULL:
        raise MemoryError("no room for the rows of a table")
    return block


cdef void* _zeros(size_t count, size_t size) except NULL:
    cdef void* block = mem_alloc((count + 1) * size)
    if block == NULL:
        raise MemoryError
    memset(block, 0, (count + 1) * size)
    return block
