# cython: language_level=3, boundscheck=False, wraparound=False
"""Rows → the rows that also match some triples of the event: a backtracking join.

Each step looks its triples up in a view of the summary graph by whatever is bound by then,
and extends the one row at hand; no intermediate table is made. A view is scanned a few
times before sibling lists are built for it, so small events pay for none, and star-, path-
and cycle-shaped patterns over large ones take time linear in the rows they touch.
Source: SPECTRA (Gillani et al. 2016), section 5.
"""

from libc.string cimport memcpy, memset

from spaseq.gpm.native._summary_graph cimport (
    BY_BOTH,
    BY_OBJECT,
    BY_SUBJECT,
    Side,
    View,
    both_hash,
    end_hash,
)
from spaseq.gpm.native._rows cimport row_at, row_new
from spaseq.rdf._effort cimport ENDLESS, bound_effort, take_steps
from spaseq.rdf._memory cimport give_back, zeroed

from spaseq.rdf.limits import LimitReached

# Views of up to this many triples are always scanned; others are scanned this many times
# before sibling lists are built, which costs about as much.
cdef uint32_t FEW = 4
cdef uint32_t SCANS = 2


cdef int refuse_step(BasicJoin join) except -1 nogil:
    with gil:
        raise LimitReached("pattern", join.pattern)


cdef class BasicJoin:
    """The steps of all basic patterns of one matcher, over rows of `width` slots."""

    def __cinit__(self, SummaryGraph graph not None, dict views not None, uint32_t width, steps):
        self.graph = graph
        self.views = views
        self.width = width
        bound_effort(&self.effort, ENDLESS)
        self.count = <uint32_t>len(steps)
        self.steps = <Step*>zeroed(self.count, sizeof(Step))
        self.cursors = <Cursor*>zeroed(self.count, sizeof(Cursor))
        self.work = <term_t*>zeroed(width, sizeof(term_t))
        self.enter(0, steps)

    def __dealloc__(self):
        give_back(self.steps)
        give_back(self.cursors)
        give_back(self.work)

    cdef End _end(self, end) except *:
        cdef End flat
        flat.is_slot = isinstance(end, int)
        flat.number = end if flat.is_slot else self.graph.dictionary.intern(end)
        return flat

    cdef int enter(self, uint32_t first, steps) except -1:
        """Put these steps at `first`, in their order."""
        cdef Step* flat
        for i, step in enumerate(steps):
            flat = &self.steps[first + <uint32_t>i]
            memset(flat, 0, sizeof(Step))
            flat.view = 0 if isinstance(step.key, int) else self.views[step.key]
            flat.open = isinstance(step.predicate, int)
            flat.subject = self._end(step.subject)
            flat.predicate = self._end(step.predicate)
            flat.object = self._end(step.object)
            flat.apart = (
                flat.subject.is_slot and flat.object.is_slot
                and flat.subject.number != flat.object.number
            )
        return 0

    cdef int extend(
        self, const Rows* left, Rows* out, uint32_t first, uint32_t end
    ) except -1 nogil:
        """Append to `out` each row of `left` extended by all ways to match a range of steps."""
        cdef Step* steps = &self.steps[first]
        cdef Cursor* cursors = &self.cursors[first]
        cdef int depth, last = <int>(end - first) - 1
        cdef uint32_t i, count, most = 0
        for depth in range(last + 1):
            count = self.graph.views[steps[depth].view].count
            if count == 0:
                return 0
            most = max(most, count)
        if most == 1:
            return self._extend_singly(left, out, first, end)
        for i in range(left.count):
            memcpy(self.work, row_at(left, i), self.width * sizeof(term_t))
            depth = 0
            self._open(&steps[0], &cursors[0])
            while depth >= 0:
                if not self._advance(&steps[depth], &cursors[depth]):
                    depth -= 1
                    continue
                spend(self)
                if depth == last:
                    memcpy(row_new(out), self.work, self.width * sizeof(term_t))
                    continue
                depth += 1
                self._open(&steps[depth], &cursors[depth])
                if cursors[depth].chain == NULL:
                    self._charge_scan(self.graph.views[steps[depth].view].count)
        return 0

    cdef bint match_singly(self, uint32_t first, uint32_t end, Rows* out) except -1 nogil:
        """What `extend` makes of a row in which nothing is bound, of one candidate for each step.

        False, and nothing is done, where some step has more.
        """
        cdef const View* views = self.graph.views
        cdef uint32_t i
        cdef bint lacking = False
        cdef term_t* row
        for i in range(first, end):
            if views[self.steps[i].view].count > 1:
                return False
            lacking |= views[self.steps[i].view].count == 0
        if not lacking:
            row = row_new(out)
            memset(row, 0, self.width * sizeof(term_t))
            out.count -= not self._fits_singly(row, first, end)
        return True

    cdef int _extend_singly(
        self, const Rows* left, Rows* out, uint32_t first, uint32_t end
    ) except -1 nogil:
        """The same where each step has one candidate, so that there is no way back."""
        cdef term_t* row
        cdef uint32_t i
        for i in range(left.count):
            row = row_new(out)
            memcpy(row, row_at(left, i), self.width * sizeof(term_t))
            out.count -= not self._fits_singly(row, first, end)
        return 0

    cdef bint _fits_singly(self, term_t* row, uint32_t first, uint32_t end) noexcept nogil:
        """Extend a row by the only candidate of each of a range of steps; whether all fit."""
        cdef const View* views = self.graph.views
        cdef const term_t* subjects = self.graph.subjects
        cdef const term_t* predicates = self.graph.predicates
        cdef const term_t* objects = self.graph.objects
        cdef Step* step = self.steps + first
        cdef uint32_t at
        while step < self.steps + end:
            step.tried += 1
            at = views[step.view].first
            if not (
                agrees(&step.subject, subjects[at], row)
                and (not step.open or agrees(&step.predicate, predicates[at], row))
                and agrees(&step.object, objects[at], row)
            ):
                return False
            step.found += 1
            step += 1
        return True

    cdef int _open(self, Step* step, Cursor* cursor) except -1 nogil:
        """Set the cursor before the first candidate for the row at hand."""
        cdef View* view = &self.graph.views[step.view]
        cdef term_t subject, object
        cdef Side side
        cdef uint32_t hash
        step.tried += 1
        cursor.chain = NULL
        cursor.bound_subject = cursor.bound_predicate = cursor.bound_object = False
        cursor.position = 1
        if view.count <= FEW:
            return 0
        subject = self.work[step.subject.number] if step.subject.is_slot else step.subject.number
        object = self.work[step.object.number] if step.object.is_slot else step.object.number
        if subject:
            side = BY_BOTH if object else BY_SUBJECT
            hash = both_hash(subject, object) if object else end_hash(subject)
        elif object:
            side = BY_OBJECT
            hash = end_hash(object)
        else:
            return 0
        if view.siblings[<int>side].heads == NULL:
            if view.scanned < SCANS * view.count:
                view.scanned += view.count
                return 0
            self.graph.link(step.view, side)
        cursor.chain = view.siblings[<int>side].next
        cursor.position = view.siblings[<int>side].heads[hash & view.siblings[<int>side].mask]
        return 0

    cdef int _charge_scan(self, uint32_t count) except -1 nogil:
        """Count the triples of a view that a later step scans, as steps of the event."""
        if count > FEW and not take_steps(&self.effort, count):
            refuse_step(self)
        return 0

    cdef bint _advance(self, Step* step, Cursor* cursor) noexcept nogil:
        """Bind the row at hand to the next triple that fits; False where there is none."""
        cdef View* view = &self.graph.views[step.view]
        cdef uint32_t at, position
        if cursor.bound_subject:
            self.work[step.subject.number] = 0
            cursor.bound_subject = False
        if cursor.bound_predicate:
            self.work[step.predicate.number] = 0
            cursor.bound_predicate = False
        if cursor.bound_object:
            self.work[step.object.number] = 0
            cursor.bound_object = False
        while cursor.position:
            position = cursor.position - 1
            if cursor.chain != NULL:
                cursor.position = cursor.chain[position]
            else:
                cursor.position = position + 2 if position + 1 < view.count else 0
            at = view.first + position
            if self._fits(&step.subject, self.graph.subjects[at], &cursor.bound_subject):
                if not step.open or self._fits(
                    &step.predicate, self.graph.predicates[at], &cursor.bound_predicate
                ):
                    if self._fits(&step.object, self.graph.objects[at], &cursor.bound_object):
                        step.found += 1
                        return True
                    if cursor.bound_predicate:
                        self.work[step.predicate.number] = 0
                        cursor.bound_predicate = False
                if cursor.bound_subject:
                    self.work[step.subject.number] = 0
                    cursor.bound_subject = False
        return False

    cdef bint _fits(self, const End* end, term_t term, bint* bound) noexcept nogil:
        """Whether an end agrees with a term; a slot without one takes it."""
        if not end.is_slot:
            return end.number == term
        if self.work[end.number]:
            return self.work[end.number] == term
        self.work[end.number] = term
        bound[0] = True
        return True
