"""The stack machine that runs expression code, over rows of term numbers, without the GIL.

An `Expression` is code (`spaseq.gpm.native.bytecode`) linked to a dictionary. Linking decodes the
constants; an instruction that reads a variable decodes its term, once per batch. Texts that an
evaluation computes lie in scratch memory, which the next evaluation reuses. A result is interned
only if the caller asks for a term. Functions without a native form run in Python, with the GIL, on
`Value`s.

Two shortcuts run before the machine, which evaluates whatever they cannot decide: `_compare`, for a
comparison of two terms, and `NumericCondition`, for a condition over numbers.

Invariant: results are those of `ExpressionCompiler` (`spaseq.gpm.python.expression`). Cost: some
nanoseconds per instruction, a microsecond or more per call in Python; no allocation in steady
state. An expression evaluates one row at a time: each thread needs its own.
"""

from collections.abc import Sequence
from functools import partial
from libc.stdint cimport uint32_t
from libc.string cimport memset

from spaseq.gpm.native import bytecode
from spaseq.gpm.native._functions cimport (
    ERROR,
    Operation,
    binary,
    call_native,
    cast,
    equals,
    load_record,
    load_term,
    load_value,
    native_of,
    set_truth,
    truth_of,
    unary,
    value_of,
    write_term,
)
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.functions import FUNCTIONS
from spaseq.rdf import conversion
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.native._literals cimport decode_record, known_datatype
from spaseq.rdf.native._terms cimport (
    LOCAL,
    UNDECODED,
    Numeral,
    arena_free,
    arena_reset,
    exact_of,
    hash_of,
    is_numeral,
    known_term,
    mem_alloc,
    mem_free,
    places_of,
    record_of,
    term_of,
    written_record,
)
from spaseq.rdf.native._values cimport Kind

cdef enum:
    MAX_BOX_COLUMNS = 16    # of the argument of `may`


cdef inline void* _allocate(size_t count, size_t size) except NULL:
    """Room for `count + 1` zeroed items."""
    cdef void* block = mem_alloc((count + 1) * size)
    if block == NULL:
        raise MemoryError
    memset(block, 0, (count + 1) * size)
    return block


cdef class Expression:
    """The code of an expression, ready for rows of batches of one dictionary.

    `calls` has the registered functions of the run; with None, failures are not counted.

    Raises:
        ValueError: for code that no compiler wrote.
    """

    def __cinit__(self, object code, Dictionary dictionary not None, calls=None):
        self.code = code
        self.dictionary = dictionary
        self.columns = code.columns
        self.exists = code.exists
        self.functions = []
        self.length = <int>len(code.operations)
        self.program = <Instruction*>_allocate(self.length, sizeof(Instruction))
        self.constants = <Operand*>_allocate(len(code.constants), sizeof(Operand))
        self.callees = <Callee*>_allocate(len(code.functions), sizeof(Callee))
        self.stack = <Operand*>_allocate(_depth(code), sizeof(Operand))
        self.row = <term_t*>_allocate(self.columns, sizeof(term_t))
        self._link(code, Calls() if calls is None else calls)

    def __dealloc__(self):
        mem_free(self.program)
        mem_free(self.constants)
        mem_free(self.callees)
        mem_free(self.stack)
        mem_free(self.row)
        arena_free(&self.scratch)

    def __str__(self):
        return str(self.code)

    cdef int _link(self, object code, object calls) except -1:
        cdef int i
        cdef term_t term
        cdef bytes name
        for i in range(self.length):
            self.program[i].operation = code.operations[i]
            self.program[i].operand = code.operands[i]
        if self.length == 3 and (
            self.program[0].operation in (Operation.VARIABLE, Operation.CONSTANT)
            and self.program[1].operation in (Operation.VARIABLE, Operation.CONSTANT)
            and self.program[2].operation in (Operation.LESS, Operation.LESS_EQUAL)
        ):
            self.comparing = self.program[2].operation
        for i, constant in enumerate(code.constants):
            term = self.dictionary.intern(constant)
            load_record(&self.constants[i], &self.dictionary.permanent.records[term], term)
        for i, (function, count) in enumerate(code.functions):
            name = function.encode()
            self.callees[i].datatype = known_datatype(name, <uint32_t>len(name))
            self.callees[i].arguments = count
            if self.callees[i].datatype == NULL:
                self.callees[i].native = native_of(function)
                self.functions.append(FUNCTIONS.get(function) or calls.function(function))
            else:
                local = self.callees[i].datatype.name[: self.callees[i].datatype.size].decode()
                self.functions.append(partial(conversion.cast, local))
        self.numeric = condition_of(code, self.dictionary)
        return 0

    # ---------------------------------------------------------------- evaluation

    cdef int truth(
        self, EventBatch batch, const term_t* row, Existence* exists
    ) except -2 nogil:
        cdef int found
        if self.comparing:
            found = self._compare(batch, row)
            if found >= 0:
                self.has_value = True
                return found
        elif self.numeric is not None:
            found = self.numeric.decide(batch, row)
            if found >= 0:
                self.has_value = True
                return found
        self._run(batch, row, exists)
        found = truth_of(&self.stack[1])
        if found < 0:
            self.count_error(batch, row)
        else:
            self.has_value = True
        return found

    cdef bint may_hold(self, EventBatch batch, const term_t* row, const Box* box) noexcept nogil:
        return self.numeric is None or self.numeric.may_hold(batch, row, box)

    cdef int _compare(self, EventBatch batch, const term_t* row) noexcept nogil:
        """Compare two numbers of one datatype, not NaN: 1, 0, or -1 for other terms.

        Most filters are one such comparison, and need neither a stack nor steps.
        """
        cdef TermRecord[2] numerals
        cdef const TermRecord* first = self._number(batch, row, 0, numerals)
        cdef const TermRecord* second = self._number(batch, row, 1, numerals)
        cdef double one, other
        if first == NULL or second == NULL or first.kind != second.kind:
            return -1
        if first.kind == Kind.INTEGER or first.kind == Kind.DECIMAL:
            if self.comparing == Operation.LESS:
                return first.exact < second.exact
            return first.exact <= second.exact
        one, other = first.further.real, second.further.real
        if first.kind == Kind.DOUBLE and one == one and other == other:
            return one < other if self.comparing == Operation.LESS else one <= other
        return -1

    cdef const TermRecord* _number(
        self, EventBatch batch, const term_t* row, int place, TermRecord* numerals
    ) noexcept nogil:
        """The decoded record of an operand; NULL for an unbound variable."""
        cdef term_t term
        cdef TermRecord* record
        if self.program[place].operation == Operation.CONSTANT:
            term = self.constants[self.program[place].operand].term
        else:
            term = row[self.program[place].operand]
        if term == 0:
            return NULL
        if is_numeral(term):
            record = &numerals[place]
            record.kind = Kind.DECIMAL if places_of(term) else Kind.INTEGER
            record.exact = exact_of(term)
            return record
        record = record_of(batch, term)
        if record.kind == UNDECODED:
            decode_record(record)
        return record

    cdef int value(
        self, EventBatch batch, const term_t* row, Existence* exists, term_t* result
    ) except -2 nogil:
        cdef Operand* found = &self.stack[1]
        cdef uint64_t hash
        result[0] = 0
        self._run(batch, row, exists)
        if found.kind == ERROR:
            self.count_error(batch, row)
            return 0
        self.has_value = True
        if found.term == 0:
            write_term(found, &self.scratch)
            hash = hash_of(found.whole, found.whole_size)
            found.term = known_term(batch, hash, found.whole, found.whole_size)
            if found.term == 0:
                found.term = batch.enter(hash, found.whole, found.whole_size, True)
        result[0] = found.term
        return 0

    cdef int _run(self, EventBatch batch, const term_t* row, Existence* exists) except -2 nogil:
        """Run the code for a row and leave the value in stack[1]."""
        cdef Instruction* program = self.program
        cdef Operand* top = self.stack
        cdef int place = 0, length = self.length, operation, operand, found
        arena_reset(&self.scratch)
        while place < length:
            operation = program[place].operation
            operand = program[place].operand
            place += 1
            # A `switch` in C, since there are only comparisons with constants. Without ranges, the
            # order of the instructions has no meaning.
            if operation == Operation.VARIABLE:
                top += 1
                load_term(top, batch, row[operand])
            elif operation == Operation.CONSTANT:
                top += 1
                top[0] = self.constants[operand]
            elif operation == Operation.NOTHING:
                top += 1
                top.kind = ERROR
            elif operation == Operation.BOUND:
                top += 1
                set_truth(top, row[operand] != 0)
            elif operation == Operation.EXISTS:
                found = _holds(exists, operand, row)
                top += 1
                set_truth(top, found)
            elif operation == Operation.AND or operation == Operation.OR:
                top -= 1
                _combine(top, top + 1, operation == Operation.OR)
            elif (
                operation == Operation.EQUAL
                or operation == Operation.NOT_EQUAL
                or operation == Operation.LESS
                or operation == Operation.LESS_EQUAL
                or operation == Operation.ADD
                or operation == Operation.SUBTRACT
                or operation == Operation.MULTIPLY
                or operation == Operation.DIVIDE
                or operation == Operation.SAME_TERM
                or operation == Operation.IS_TEXT
            ):
                top -= 1
                if top.kind == ERROR or top[1].kind == ERROR:
                    top.kind = ERROR
                else:
                    binary(operation, top, &self.scratch)
            elif (
                operation == Operation.NOT
                or operation == Operation.TRUTH
                or operation == Operation.NEGATE
                or operation == Operation.PLUS
                or operation == Operation.IS_IRI
                or operation == Operation.IS_BLANK
                or operation == Operation.IS_LITERAL
                or operation == Operation.IS_NUMERIC
                or operation == Operation.IS_TRIPLE
            ):
                if top.kind != ERROR:
                    unary(operation, top, &self.scratch)
            elif operation == Operation.CALL or operation == Operation.CAST:
                top -= self.callees[operand].arguments - 1
                self._call(operand, top)
            elif operation == Operation.JUMP:
                place = operand
            elif operation == Operation.JUMP_IF_TRUE:
                if top.kind != ERROR and top.exact:
                    place = operand
            elif operation == Operation.JUMP_IF_FALSE:
                if top.kind != ERROR and not top.exact:
                    place = operand
            elif operation == Operation.JUMP_IF_ERROR:
                if top.kind == ERROR:
                    place = operand
            elif operation == Operation.JUMP_UNLESS:
                if not top.exact:
                    place = operand
                top -= 1
            elif operation == Operation.JUMP_IF_VALUE:
                if top.kind == ERROR:
                    top -= 1
                else:
                    place = operand
            elif operation == Operation.BEGIN_IN:
                top += 1
                if (top - 1).kind == ERROR:
                    top.kind = ERROR
                    place = operand
                else:
                    set_truth(top, False)
            elif operation == Operation.TRY_IN:
                top -= 1
                found = -1
                if top[1].kind != ERROR:
                    found = equals(top - 1, top + 1)
                if found == 1:
                    set_truth(top, True)
                    place = operand
                elif found < 0:
                    top.kind = ERROR
            elif operation == Operation.END_IN:
                top -= 1
                top[0] = top[1]
            else:
                with gil:
                    raise SystemError(f"the machine has no instruction {operation}")
        return 0

    cdef int _call(self, int number, Operand* arguments) except -2 nogil:
        cdef Callee* callee = &self.callees[number]
        cdef int i, done
        for i in range(callee.arguments):
            if arguments[i].kind == ERROR:
                arguments.kind = ERROR
                return 0
        if callee.datatype != NULL:
            done = cast(arguments, callee.datatype, &self.scratch)
        else:
            done = call_native(callee.native, arguments, callee.arguments, &self.scratch)
        if not done:
            self._call_python(number, arguments)
        return 0

    cdef int _call_python(self, int number, Operand* arguments) except -2 with gil:
        cdef int i
        values = []
        for i in range(self.callees[number].arguments):
            values.append(value_of(&arguments[i]))
        return load_value(arguments, self.functions[number](*values), &self.scratch)

    # ---------------------------------------------------------------- errors

    cdef int count_error(self, EventBatch batch, const term_t* row) except -1 nogil:
        """Count an evaluation without a value, and keep the first row that had none."""
        self.error_count += 1
        if self.error_count == 1:
            self._keep_example(batch, row)
        return 0

    cdef int _keep_example(self, EventBatch batch, const term_t* row) except -1 with gil:
        cdef int i
        cdef term_t term
        cdef Numeral numeral
        cdef const TermRecord* record
        self.example = {}
        for i in range(self.length):
            if self.program[i].operation == Operation.VARIABLE:
                term = row[self.program[i].operand]
                if term == 0:
                    self.example[self.program[i].operand] = None
                    continue
                record = written_record(batch, term, &numeral)
                self.example[self.program[i].operand] = term_of(
                    record.text[:record.size], record.lexical
                )
        return 0

    @property
    def errors(self):
        """The number of errors so far."""
        return ErrorCount(self.error_count, self.has_value, self.example)

    # ---------------------------------------------------------------- for Python

    def evaluate(self, EventBatch batch not None, row: Sequence[int], exists=None) -> int:
        """The value for a row of term numbers, as a term number; 0: an error, or unbound.

        `exists(number)` decides whether the pattern of an EXISTS has a solution.
        """
        cdef term_t result = 0
        cdef Existence existence = _existence(exists)
        self._fill(batch, row)
        self.value(batch, self.row, &existence, &result)
        return result

    def test(self, EventBatch batch not None, row: Sequence[int], exists=None):
        """The effective boolean value for a row; None: an error."""
        cdef Existence existence = _existence(exists)
        self._fill(batch, row)
        cdef int found = self.truth(batch, self.row, &existence)
        return None if found < 0 else found == 1

    @property
    def is_numeric(self):
        """Whether the numeric filter runs first; see `spaseq.gpm.native.numeric_filter`."""
        return self.numeric is not None

    def decide(self, EventBatch batch not None, row: Sequence[int]):
        """The decision of the numeric filter for a row; None where the machine decides."""
        self._fill(batch, row)
        cdef int found = self.numeric.decide(batch, self.row) if self.is_numeric else -1
        return None if found < 0 else found == 1

    def may(self, EventBatch batch not None, row: Sequence[int], box: Sequence) -> bool:
        """Whether it may be true for some row whose unbound columns lie in a box.

        Args:
            box: (column, least number, greatest number) of each of at most 16 columns.
        """
        cdef uint32_t i
        cdef Box within
        cdef uint32_t[MAX_BOX_COLUMNS] columns
        cdef Interval[MAX_BOX_COLUMNS] intervals
        if len(box) > MAX_BOX_COLUMNS:
            raise ValueError(f"a box must have at most {MAX_BOX_COLUMNS} columns, not {len(box)}")
        self._fill(batch, row)
        for i, (column, low, high) in enumerate(box):
            columns[i], intervals[i] = column, Interval(low, high)
        within.columns, within.intervals, within.width = columns, intervals, <uint32_t>len(box)
        return self.may_hold(batch, self.row, &within)

    cdef int _fill(self, EventBatch batch, object row) except -1:
        cdef int i
        if batch.dictionary is not self.dictionary:
            raise ValueError("the batch was encoded with another dictionary")
        if len(row) < self.columns:
            raise ValueError(f"a row must have {self.columns} columns, not {len(row)}")
        for i in range(self.columns):
            self.row[i] = row[i]
            if not _known(batch, self.row[i]):
                raise ValueError(f"the batch has no term {self.row[i]}")
        return 0


cdef inline bint _known(EventBatch batch, term_t term) noexcept nogil:
    if term & LOCAL:
        return 0 < term ^ LOCAL < batch.local.count
    if is_numeral(term):
        return True
    return term < batch.dictionary.permanent.count


ctypedef int (*holds_t)(void* context, int number, const term_t* row) noexcept nogil


cdef Existence _existence(object exists) except *:
    """Let a Python function decide EXISTS; the caller must hold a reference to it."""
    cdef Existence existence
    existence.holds = NULL if exists is None else <holds_t>_exists_in_python
    existence.context = <void*>exists
    return existence


cdef int _exists_in_python(void* context, int number, const term_t* row) except -2 with gil:
    return bool((<object>context)(number))


cdef int _holds(Existence* exists, int number, const term_t* row) except -2 nogil:
    if exists == NULL or exists.holds == NULL:
        with gil:
            raise ValueError("the expression has an EXISTS, but no function that decides it")
    return exists.holds(exists.context, number, row)


cdef inline void _combine(Operand* a, const Operand* b, bint disjunction) noexcept nogil:
    """AND and OR: one operand can decide the result even if the other is an error."""
    cdef bint first = a.kind != ERROR and (a.exact != 0) == disjunction
    cdef bint second = b.kind != ERROR and (b.exact != 0) == disjunction
    if first or second:
        set_truth(a, disjunction)
    elif a.kind == ERROR or b.kind == ERROR:
        a.kind = ERROR
    else:
        set_truth(a, not disjunction)


# The change of the stack's depth by instructions that change it. That of CALL depends on its
# arguments.
cdef dict PUSHED = {
    Operation.NOTHING: 1,
    Operation.CONSTANT: 1,
    Operation.VARIABLE: 1,
    Operation.BOUND: 1,
    Operation.EXISTS: 1,
    Operation.SAME_TERM: -1,
    Operation.EQUAL: -1,
    Operation.NOT_EQUAL: -1,
    Operation.LESS: -1,
    Operation.LESS_EQUAL: -1,
    Operation.ADD: -1,
    Operation.SUBTRACT: -1,
    Operation.MULTIPLY: -1,
    Operation.DIVIDE: -1,
    Operation.AND: -1,
    Operation.OR: -1,
    Operation.IS_TEXT: -1,
    Operation.JUMP_UNLESS: -1,
    Operation.JUMP_IF_VALUE: -1,
    Operation.BEGIN_IN: 1,
    Operation.TRY_IN: -1,
    Operation.END_IN: -1,
}

# How many operands an instruction must leave, if not at least one.
cdef dict MIN_OPERANDS = {
    Operation.JUMP_UNLESS: 0,
    Operation.JUMP_IF_VALUE: 0,
    Operation.BEGIN_IN: 2,
    Operation.TRY_IN: 2,
}

cdef set JUMPS = {
    Operation.JUMP,
    Operation.JUMP_IF_TRUE,
    Operation.JUMP_IF_FALSE,
    Operation.JUMP_IF_ERROR,
    Operation.JUMP_UNLESS,
    Operation.JUMP_IF_VALUE,
    Operation.BEGIN_IN,
    Operation.TRY_IN,
}

cdef set KNOWN = {int(each) for each in bytecode.Operation}


def _depth(code) -> int:
    """The depth of the stack that code needs; ValueError for code that no compiler wrote."""
    cdef int place, operation, operand, deepest = 0, length = <int>len(code.operations)
    reached = {0: 0}
    for place in range(length):
        operation, operand = code.operations[place], code.operands[place]
        depth = reached.get(place)
        limits = {
            Operation.CONSTANT: len(code.constants),
            Operation.VARIABLE: code.columns,
            Operation.BOUND: code.columns,
            Operation.EXISTS: code.exists,
            Operation.CALL: len(code.functions),
            Operation.CAST: len(code.functions),
        }
        jumps = operation in JUMPS
        if depth is None or operation not in KNOWN:
            raise ValueError(f"instruction {place} is out of place")
        if not (place < operand <= length if jumps else 0 <= operand < limits.get(operation, 1)):
            raise ValueError(f"instruction {place} has the operand {operand}")
        if operation == Operation.CALL:
            after = depth + 1 - code.functions[operand][1]
        else:
            after = depth + PUSHED.get(operation, 0)
        if after < MIN_OPERANDS.get(operation, 1):
            raise ValueError(f"instruction {place} lacks operands")
        if jumps:
            beyond = depth if operation == Operation.JUMP_IF_VALUE else after
            if reached.setdefault(operand, beyond) != beyond:
                raise ValueError(f"instruction {place} jumps to another depth")
        if operation != Operation.JUMP and reached.setdefault(place + 1, after) != after:
            raise ValueError(f"instruction {place} leaves another depth")
        deepest = max(deepest, after, depth)
    if reached.get(length) != 1:
        raise ValueError("the code does not leave one value")
    return deepest
