"""The native matcher; see _matcher.pyx."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cimport cython
from cpython.ref cimport PyObject

from spaseq.gpm.native._bytecode cimport Existence
from spaseq.gpm.native._summary_graph cimport SummaryGraph
from spaseq.gpm.native._rows cimport RowBudget, RowIndex, Rows, row_new
from spaseq.rdf._batch cimport EventBatch, Triple
from spaseq.rdf._effort cimport Effort, count_step
from spaseq.rdf._memory cimport Arena
from spaseq.rdf._terms cimport term_t

# The operators. `spaseq.gpm.native.flatten` has the same list, and is compared with this one when
# `_matcher` is imported.
cpdef enum Operator:
    SEED
    BASIC
    JOIN
    LEFT_JOIN
    UNION
    MINUS
    FILTER
    EXTEND
    TABLE
    ALTERNATIVES
    REACH
    GROUP

# One end of a triple pattern.
cdef struct End:
    bint is_slot
    uint32_t number     # the slot of a variable, or a term

cdef struct Step:
    uint32_t view
    bint open           # the predicate is a variable
    bint apart          # subject and object have different slots
    int whole           # -1, or the slot of the triple term whose parts the ends are: no view
    End subject
    End predicate
    End object
    uint64_t tried      # rows that the step has extended
    uint64_t found      # rows that it has made of them

# The position of a step among its candidates, and the slots that it has bound in `work`.
cdef struct Cursor:
    uint32_t position   # the next candidate of the view, plus 1; 0: none
    uint32_t* chain     # the sibling lists that it follows; NULL: it scans
    bint bound_subject
    bint bound_predicate
    bint bound_object


@cython.final
cdef class BasicJoin:
    cdef SummaryGraph graph
    cdef dict views         # the number of each predicate's view
    cdef Step* steps
    cdef uint32_t count
    cdef Cursor* cursors    # one per step
    cdef term_t* work       # the row that the steps extend
    cdef uint32_t width
    cdef Effort effort      # the steps of the event
    cdef int pattern        # the number of the graph pattern, for the error
    cdef PyObject** batch   # the field of the matcher that holds the batch of the current event

    cdef int set_steps(self, uint32_t first, steps) except -1
    cdef End _end(self, end) except *
    cdef int extend(self, const Rows* left, Rows* out, uint32_t first, uint32_t end) except -1 nogil
    cdef bint match_singly(self, uint32_t first, uint32_t end, Rows* out) except -1 nogil
    cdef int _extend_singly(
        self, const Rows* left, Rows* out, uint32_t first, uint32_t end
    ) except -1 nogil
    cdef bint _fits_singly(self, term_t* row, uint32_t first, uint32_t end) noexcept nogil
    cdef int _open(self, Step* step, Cursor* cursor) except -1 nogil
    cdef int _charge_scan(self, uint32_t count) except -1 nogil
    cdef bint _advance(self, Step* step, Cursor* cursor) noexcept nogil
    cdef bint _take_apart(self, Step* step, Cursor* cursor) except -1 nogil
    cdef void _unbind(self, Step* step, Cursor* cursor) noexcept nogil
    cdef bint _fits_part(
        self, const End* end, const char* text, uint32_t size, bint* bound
    ) except -1 nogil
    cdef bint _fits(self, const End* end, term_t term, bint* bound) noexcept nogil


cdef int refuse_step(BasicJoin join) except -1 nogil


cdef inline int spend(BasicJoin join) except -1 nogil:
    """Count one more step of the event.

    Raises:
        LimitReached: if the bound leaves none.
    """
    if not count_step(&join.effort):
        refuse_step(join)
    return 0


cdef inline bint agrees(const End* end, term_t term, term_t* row) noexcept nogil:
    """Whether an end agrees with a term; an unbound slot is bound to it."""
    if not end.is_slot:
        return end.number == term
    if row[end.number] == 0:
        row[end.number] = term
    return row[end.number] == term


cdef inline int bind_ends(Step* step, const Triple* triple, term_t* row) noexcept nogil:
    """Bind the two ends of a step, which are different slots, to those of a triple."""
    row[step.subject.number], row[step.object.number] = triple.subject, triple.object
    step.tried += 1
    step.found += 1
    return 0


cdef inline bint match_triple(
    BasicJoin join, uint32_t number, const Triple* triple, Rows* out
) except -1 nogil:
    """Append the row of a step over a triple, with nothing bound before; False if none matches.

    Equals `extend` over a view of this one triple.
    """
    cdef Step* step = &join.steps[number]
    cdef term_t* row = row_new(out)
    cdef uint32_t i
    for i in range(join.width):
        row[i] = 0
    if step.apart:
        bind_ends(step, triple, row)
        return True
    step.tried += 1
    if not (
        agrees(&step.subject, triple.subject, row) and agrees(&step.object, triple.object, row)
    ):
        out.count -= 1
        return False
    step.found += 1
    return True


# An operator of `spaseq.gpm.algebra`; see `FlatNode` in `spaseq.gpm.native.flatten`.
cdef struct Node:
    Operator operator
    int left
    int right
    uint32_t first      # steps, operands or table
    uint32_t end
    uint32_t test_first # expressions
    uint32_t test_end
    int slot
    bint flag
    PyObject* part      # REACH: its PathJoin; GROUP: its Grouping; kept alive by `parts`
    Rows rows           # the result of the last evaluation
    RowIndex index      # TABLE: by the keys of the join that reads it, if `indexed`
    bint indexed
    Arena memory        # TABLE: memory of that index

# The operator of each EXISTS of an expression, by number: the context of `Existence`.
cdef struct ExistsNodes:
    PyObject* matcher
    uint32_t* nodes


@cython.final
cdef class NativeMatcher:
    cdef readonly SummaryGraph graph
    cdef readonly uint32_t columns      # variables: the first slots of a row
    cdef uint32_t width                 # all slots
    cdef int at                         # the slot of the AT variable, -1 without one
    cdef Node* nodes
    cdef uint32_t node_count
    cdef BasicJoin basic
    cdef uint32_t* operands
    cdef PyObject** tests               # the Expressions, kept alive by `expressions`
    cdef Existence* existences          # one per expression
    cdef ExistsNodes* exists_nodes      # one per expression
    cdef uint32_t local_first, local_end    # the local filters among the expressions
    cdef readonly list expressions
    cdef list parts
    cdef object flat                    # the FlatPattern, its steps in their current order
    cdef dict views                     # the number of each predicate's view
    cdef uint64_t needed                # the views that an event must fill for there to be a row
    # Shortcuts; each yields the same rows as the operators.
    cdef bint basic_only                # the pattern is one basic pattern of constant predicates
    cdef readonly bint single_step      # and one step, whose view and triple are all it reads
    cdef bint ends_only                 # and without filters, subject and object being all slots
    cdef PyObject* batch                # of the event being matched, borrowed
    cdef term_t* empty                  # a row without bindings
    cdef term_t* timed                  # a row with the event's time
    cdef const term_t* seed
    cdef term_t time
    cdef Arena scratch                  # the indexes of one evaluation
    cdef Rows* result                   # the rows of the last event: those of the last node
    cdef uint64_t serial                # of the batch of that event; 0: there is no result
    cdef uint32_t event
    cdef uint8_t* passed                # per row: whether it passed the local filters
    cdef uint32_t passed_room
    cdef RowBudget budget               # of the tables of rows
    cdef size_t made                    # bytes of the texts that BINDs have made for the event
    cdef uint64_t* untrue
    cdef readonly uint64_t tried        # events so far
    cdef readonly uint64_t found        # rows so far
    cdef uint64_t next_order            # the number of events after which `reorder` runs

    cdef int _allocate(self, uint32_t nodes, uint32_t operands, uint32_t tests) except -1
    cdef int _set_node(self, Node* flat, node) except -1
    cdef int _set_rows(self, Node* flat, slots, rows, EventBatch batch) except -1
    cdef int _set_expression(self, uint32_t number, code) except -1
    cdef uint64_t _needed(self, int number) noexcept
    cdef bint _is_basic_only(self, Node* root) noexcept
    cdef inline int match_event(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Match an event, once: its rows in `result`, and in `passed` which pass the filters."""
        if self.serial == batch.serial and self.event == event:
            return 0
        return self._match_event(batch, event)
    cdef int _match_event(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef inline int count_skipped(self, uint64_t events) noexcept nogil:
        """Count events that were skipped since they lack a predicate."""
        self.tried += events
        return 0
    cdef inline bint match_single_triple(self, EventBatch batch, uint32_t event) except -1 nogil:
        """Whether an event of one triple, in the only view of the pattern, has a row that passes.

        Equals `match_event`, without a summary graph.
        """
        if self.serial == batch.serial and self.event == event:
            return self.result.count > 0 and self.passed[0]
        if not self.ends_only:
            self._match_single_triple(batch, event)
            return self.result.count > 0 and self.passed[0]
        self.result.count = 1
        bind_ends(
            &self.basic.steps[self.nodes[self.node_count - 1].first],
            &batch.triples[batch.events[event].first], self.result.cells,
        )
        self.passed[0] = True
        self.tried += 1
        self.found += 1
        self.serial, self.event = batch.serial, event
        return True
    cdef int _match_single_triple(self, EventBatch batch, uint32_t event) except -1 nogil
    cdef bint accepts(self, EventBatch batch, const term_t* row) except -1 nogil
    cdef int run(self, uint32_t event) except -1 nogil
    cdef int filter_rows(self) except -1 nogil
    cdef int evaluate(self, int number) except -1 nogil
    cdef int join(self, Node* node) except -1 nogil
    cdef int seeded(self, Node* node) except -1 nogil
    cdef int index_right(self, Node* node, RowIndex* index) except -1 nogil
    cdef int _join_rows(self, Node* node, const term_t* left, const term_t* right) except -1 nogil
    cdef int _copy_row(self, Rows* rows, const term_t* row) except -1 nogil
    cdef int extend(self, Node* node) except -1 nogil
    cdef int reach(self, Node* node) except -1 nogil
    cdef int holds(self, uint32_t first, uint32_t end, const term_t* row) except -1 nogil
    cdef int reorder(self) except -1
