"""GROUP BY and aggregates of a sub-query, over the rows of one event, without the GIL.

`Grouping` makes one row per group of rows that agree in the keys. An aggregate is folded row by
row: an expression reads the value so far and the next value from two slots of a row, so SUM is the
operator `+` of the stack machine, and GROUP_CONCAT is its CONCAT. MIN and MAX compare by `<`;
values that it cannot compare are ordered in Python (`spaseq.gpm.python.aggregates.order`).

Invariant: the results are those of `spaseq.gpm.python.aggregates`. Cost: linear in the rows.
Source: SPARQL 1.1 sections 11 and 18.5.1.
"""

cimport cython
from libc.string cimport memset

import pyoxigraph as ox

from spaseq.gpm.native import flatten
from spaseq.gpm.native._bytecode cimport Expression
from spaseq.gpm.native.enums import check_enum
from spaseq.gpm.python.aggregates import order
from spaseq.rdf.native._terms cimport (
    NUMERAL,
    OFFSET,
    WINDOWED,
    check_signals_rarely,
    mem_calloc,
    mem_free,
    mem_grow,
)
from spaseq.rdf.native._values import decode

# What a column of a GROUP computes. `spaseq.gpm.native.flatten` has the same list, and is compared
# with this one when `_grouping` is imported.
cpdef enum AggregateKind:
    COUNT_ROWS
    COUNT
    SUM
    AVG
    MIN
    MAX
    SAMPLE
    GROUP_CONCAT

# One aggregate; the Expressions are kept alive by the matcher, NULL where it has none.
cdef struct Column:
    AggregateKind kind
    uint32_t slot           # of the result, and of the value so far
    int argument_slot       # -1: the argument is an expression
    PyObject* argument
    PyObject* fold          # from the value so far and the next one
    PyObject* other         # MIN, MAX: the opposite test; GROUP_CONCAT: the first value
    PyObject* final         # AVG: from the sum and the number of values
    bint distinct
    Marks seen              # DISTINCT: (group, value)

# The state of one aggregate in one group, besides the value so far.
cdef struct Tally:
    uint32_t count
    bint failed

check_enum(AggregateKind, flatten.AggregateKind)

cdef term_t ZERO = WINDOWED | NUMERAL | OFFSET


@cython.final
cdef class Grouping:
    """
    Args:
        flat: a `FlatGrouping`.
        expressions: those that the numbers of `flat` name.
        width: the slots of a row.
        dictionary: of the run.
    """

    cdef uint32_t* keys
    cdef uint32_t key_count
    cdef Column* columns
    cdef uint32_t column_count
    cdef uint32_t value_slot    # of the next value, in `work`
    cdef term_t* work           # a row for `fold`, `other` and `final`
    cdef term_t empty_text
    cdef uint32_t* slots        # groups by the hash of their keys, + 1; 0: free
    cdef uint32_t slot_room     # a power of two
    cdef Tally* tallies         # per group and column
    cdef uint32_t tally_room    # groups

    def __cinit__(self, flat, list expressions, uint32_t width, Dictionary dictionary not None):
        cdef Column* column
        cdef uint32_t i
        self.key_count = <uint32_t>len(flat.keys)
        self.keys = <uint32_t*>mem_calloc(self.key_count, sizeof(uint32_t))
        for i in range(self.key_count):
            self.keys[i] = flat.keys[i]
        self.column_count = <uint32_t>len(flat.columns)
        self.columns = <Column*>mem_calloc(self.column_count, sizeof(Column))
        for i in range(self.column_count):
            column, said = &self.columns[i], flat.columns[i]
            column.kind = said.kind
            column.slot = said.slot
            column.argument_slot = said.argument_slot
            column.argument = _expression(expressions, said.argument)
            column.fold = _expression(expressions, said.fold)
            column.other = _expression(expressions, said.other)
            column.final = _expression(expressions, said.final)
            column.distinct = said.distinct
        self.value_slot = flat.value_slot
        self.work = <term_t*>mem_calloc(width, sizeof(term_t))
        self.empty_text = dictionary.intern(ox.Literal(""))

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.column_count):
            marks_free(&self.columns[i].seen)
        mem_free(self.keys)
        mem_free(self.columns)
        mem_free(self.work)
        mem_free(self.slots)
        mem_free(self.tallies)

    cdef int group(self, EventBatch batch, const Rows* left, Rows* out) except -1 nogil:
        """Append one row per group: the keys, and the results of the aggregates."""
        cdef uint32_t i, j, group, mask
        cdef Tally* tallies
        self._reserve(left.count)
        mask = self.slot_room - 1
        if self.key_count == 0:
            self._begin(out, NULL)
        for i in range(left.count):
            check_signals_rarely(i)
            group = 0
            if self.key_count:
                group = self._group_of(out, row_at(left, i), mask)
            tallies = &self.tallies[<size_t>group * self.column_count]
            for j in range(self.column_count):
                self._fold(
                    batch, &self.columns[j], &tallies[j], row_at(left, i), group,
                    &row_at(out, group)[self.columns[j].slot],
                )
        for group in range(out.count):
            check_signals_rarely(group)
            tallies = &self.tallies[<size_t>group * self.column_count]
            for j in range(self.column_count):
                self._finish(
                    batch, &self.columns[j], &tallies[j],
                    &row_at(out, group)[self.columns[j].slot],
                )
        return 0

    cdef int _reserve(self, uint32_t rows) except -1 nogil:
        """Make room for as many groups as there are rows, and empty all tables."""
        cdef uint32_t i, room = 16
        while room < 2 * <uint64_t>rows and room < 0x80000000u:
            room *= 2
        if room > self.slot_room:
            self.slots = <uint32_t*>mem_grow(self.slots, room, sizeof(uint32_t), b"groups")
            self.slot_room = room
        memset(self.slots, 0, self.slot_room * sizeof(uint32_t))
        if rows + 1 > self.tally_room:
            self.tallies = <Tally*>mem_grow(
                self.tallies, 2 * (<size_t>rows + 1) * (self.column_count or 1), sizeof(Tally),
                b"groups",
            )
            self.tally_room = 2 * (rows + 1)
        for i in range(self.column_count):
            if self.columns[i].distinct:
                marks_reserve(&self.columns[i].seen, rows)
                marks_empty(&self.columns[i].seen)
        return 0

    cdef int _begin(self, Rows* out, const term_t* row) except -1 nogil:
        """Append a group with the keys of a row; NULL: without keys."""
        cdef term_t* begun = row_new(out)
        cdef uint32_t i
        memset(begun, 0, out.width * sizeof(term_t))
        for i in range(self.key_count):
            begun[self.keys[i]] = row[self.keys[i]]
        memset(
            &self.tallies[<size_t>(out.count - 1) * self.column_count], 0,
            self.column_count * sizeof(Tally),
        )
        return 0

    cdef uint32_t _group_of(
        self, Rows* out, const term_t* row, uint32_t mask
    ) except? 0xFFFFFFFF nogil:
        """The group of a row; unbound keys are equal."""
        cdef uint32_t at = key_hash(row, self.keys, self.key_count) & mask
        cdef uint32_t i
        cdef const term_t* known
        while self.slots[at]:
            known = row_at(out, self.slots[at] - 1)
            for i in range(self.key_count):
                if known[self.keys[i]] != row[self.keys[i]]:
                    break
            else:
                return self.slots[at] - 1
            at = (at + 1) & mask
        self._begin(out, row)
        self.slots[at] = out.count
        return out.count - 1

    cdef int _fold(
        self, EventBatch batch, Column* column, Tally* tally, const term_t* row, uint32_t group,
        term_t* so_far,
    ) except -1 nogil:
        """Add the value of a row to an aggregate of its group."""
        cdef term_t value = 0
        if column.kind == COUNT_ROWS:
            tally.count += 1
            return 0
        if column.argument_slot >= 0:
            value = row[column.argument_slot]
        else:
            (<Expression>column.argument).value(batch, row, NULL, &value)
        if value == 0:
            # COUNT and SAMPLE skip rows without a value; for other aggregates such rows are errors.
            tally.failed |= column.kind != COUNT and column.kind != SAMPLE
            return 0
        if tally.failed or column.distinct and not mark(&column.seen, group, value):
            return 0
        tally.count += 1
        if column.kind == COUNT:
            return 0
        if column.kind == SUM or column.kind == AVG:
            so_far[0] = self._applied(
                batch, column.fold, column.slot, so_far[0] if so_far[0] else ZERO, value
            )
            tally.failed = so_far[0] == 0
        elif column.kind == GROUP_CONCAT:
            so_far[0] = self._applied(
                batch, column.fold if so_far[0] else column.other, column.slot, so_far[0], value
            )
            tally.failed = so_far[0] == 0
        elif so_far[0] == 0:
            so_far[0] = value
        elif column.kind == MIN or column.kind == MAX:
            if so_far[0] != value and self._replaces(batch, column, value, so_far[0]):
                so_far[0] = value
        return 0

    cdef int _replaces(
        self, EventBatch batch, Column* column, term_t value, term_t so_far
    ) except -1 nogil:
        """Whether a value replaces the least or greatest one so far."""
        cdef int found
        self.work[column.slot], self.work[self.value_slot] = so_far, value
        found = (<Expression>column.fold).truth(batch, self.work, NULL)
        if found == 1:
            return True
        if found == 0 and (<Expression>column.other).truth(batch, self.work, NULL) == 1:
            return False
        with gil:   # equal, NaN, or not comparable
            found = order(decode(batch.term(value)), decode(batch.term(so_far)))
            return found < 0 if column.kind == MIN else found > 0

    cdef int _finish(
        self, EventBatch batch, Column* column, const Tally* tally, term_t* result
    ) except -1 nogil:
        """Replace the value so far by the result; 0: an error, or unbound."""
        if column.kind == COUNT or column.kind == COUNT_ROWS:
            result[0] = self._integer(batch, tally.count)
        elif tally.failed:
            result[0] = 0
        elif column.kind == GROUP_CONCAT and result[0] == 0:
            result[0] = self.empty_text
        elif (column.kind == SUM or column.kind == AVG) and result[0] == 0:
            result[0] = ZERO
        elif column.kind == AVG:
            result[0] = self._applied(
                batch, column.final, column.slot, result[0], self._integer(batch, tally.count)
            )
        return 0

    cdef term_t _applied(
        self, EventBatch batch, PyObject* expression, uint32_t slot, term_t so_far, term_t value
    ) except? 0 nogil:
        """The value of an expression over the value so far and another one; 0: an error."""
        cdef term_t result = 0
        self.work[slot], self.work[self.value_slot] = so_far, value
        (<Expression>expression).value(batch, self.work, NULL, &result)
        return result

    cdef term_t _integer(self, EventBatch batch, uint32_t number) except 0 nogil:
        """The term of a count."""
        if number < OFFSET:
            return ZERO + number
        with gil:
            return batch.encode(ox.Literal(number))


cdef PyObject* _expression(list expressions, int number) except? NULL:
    return <PyObject*>expressions[number] if number >= 0 else NULL
