"""The join of basic graph patterns; see _basic.pyx."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from spaseq.gpm.native._summary_graph cimport SummaryGraph
from spaseq.gpm.native._rows cimport Rows, row_new
from spaseq.rdf._batch cimport Triple
from spaseq.rdf._effort cimport Effort, take_step
from spaseq.rdf._terms cimport term_t

# One end of a triple pattern.
cdef struct End:
    bint is_slot
    uint32_t number     # the slot of a variable, or a term

cdef struct Step:
    uint32_t view
    bint open           # the predicate is a variable
    bint apart          # subject and object have a slot each
    End subject
    End predicate
    End object
    uint64_t tried      # rows the step was given so far
    uint64_t found      # rows it made of them

# Where a step is in its candidates, and what it has bound in the row at hand.
cdef struct Cursor:
    uint32_t position   # the next candidate of the view, plus 1; 0: none is left
    uint32_t* chain     # sibling lists that lead on from it; NULL: the one behind it
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
    cdef term_t* work       # the row being made
    cdef uint32_t width
    cdef Effort effort      # the steps of the event
    cdef int pattern        # the number of the graph pattern, for the error

    cdef int enter(self, uint32_t first, steps) except -1
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
    cdef bint _fits(self, const End* end, term_t term, bint* bound) noexcept nogil


cdef int refuse_step(BasicJoin join) except -1 nogil


cdef inline int spend(BasicJoin join) except -1 nogil:
    """Count one more step of the event.

    Raises:
        LimitReached: if the bound leaves none.
    """
    if not take_step(&join.effort):
        refuse_step(join)
    return 0


cdef inline bint agrees(const End* end, term_t term, term_t* row) noexcept nogil:
    """Whether an end of a row agrees with a term; a slot without one takes it."""
    if not end.is_slot:
        return end.number == term
    if row[end.number] == 0:
        row[end.number] = term
    return row[end.number] == term


cdef inline int take_both(Step* step, const Triple* triple, term_t* row) noexcept nogil:
    """The row of a step with a slot for each end over its only triple."""
    row[step.subject.number], row[step.object.number] = triple.subject, triple.object
    step.tried += 1
    step.found += 1
    return 0


cdef inline bint match_one(
    BasicJoin join, uint32_t number, const Triple* triple, Rows* out
) except -1 nogil:
    """The row of a step over its only triple, where nothing is bound; whether it fits.

    The same that `extend` does, without looking for others.
    """
    cdef Step* step = &join.steps[number]
    cdef term_t* row = row_new(out)
    cdef uint32_t i
    for i in range(join.width):
        row[i] = 0
    if step.apart:
        take_both(step, triple, row)
        return True
    step.tried += 1
    if not (
        agrees(&step.subject, triple.subject, row) and agrees(&step.object, triple.object, row)
    ):
        out.count -= 1
        return False
    step.found += 1
    return True
