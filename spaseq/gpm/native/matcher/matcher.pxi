"""One encoded event → the rows of a graph pattern, without the GIL.

`NativeMatcher` runs the operators of `spaseq.gpm.algebra` over rows of term numbers: every variable
and blank node has a slot, 0 is unbound. Each operator fills a table of its own.

`BasicJoin` joins basic graph patterns by backtracking: each step searches a view of the summary
graph for triples that agree with the bound slots, and extends the one row in `work`; there are no
intermediate tables. A view is scanned a few times before sibling lists are built for it, so small
events do not pay for lists, and star-, path- and cycle-shaped patterns over large events take time
linear in the rows that they touch. The order of the steps is chosen at compile time, and again
during the run from the observed sizes of the views.

Invariants: rows of the result are distinct in the variables of the pattern; after an event, only
memory, counters and the tables of VALUES and of the KB remain. The memory is that of the largest
result so far: matching allocates nothing in steady state.
Cost: linear in the rows of all steps and operators, since two operators are joined by a hash index
over the slots that both always bind.
Source: SPARQL 1.1 section 18.5; SPECTRA (Gillani et al. 2016), section 5.
"""

from libc.stdint cimport SIZE_MAX
from libc.string cimport memcmp, memcpy, memset

from spaseq.gpm.native import flatten
from spaseq.gpm.native._bytecode cimport Expression
from spaseq.gpm.native.enums import check_enum
from spaseq.gpm.native.order import cost, ordered
from spaseq.rdf.limits import LimitReached
from spaseq.rdf.native._terms cimport (
    ENDLESS,
    FIRST_PART,
    PARTS_END,
    TermRecord,
    arena_free,
    arena_reset,
    begin_event,
    check_signals_rarely,
    count_step,
    count_steps,
    hash_of,
    is_numeral,
    known_term,
    limit_effort,
    mem_calloc,
    mem_free,
    mem_grow,
    record_of,
    second_part,
    third_part,
)
from spaseq.rdf.native._values cimport Kind
from spaseq.rules import enabled


cdef inline bint agrees(const End* end, term_t term, term_t* row) noexcept nogil:
    """Whether an end agrees with a term; an unbound slot is bound to it."""
    if not end.is_slot:
        return end.number == term
    if row[end.number] == 0:
        row[end.number] = term
    return row[end.number] == term


check_enum(Operator, flatten.Operator)

# A view of up to MAX_SCANNED triples is always scanned. A larger view is scanned SCANS times before
# a join builds sibling lists, which costs about as much as these scans.
cdef uint32_t MAX_SCANNED = 4

cdef uint32_t SCANS = 2


# ------------------------------------------------------------------ basic patterns


cdef int refuse_step(BasicJoin join) except -1 nogil:
    with gil:
        raise LimitReached("pattern", join.pattern)


cdef class BasicJoin:
    """The steps of all basic patterns of one matcher, over rows of `width` slots."""

    def __cinit__(self, SummaryGraph graph not None, dict views not None, uint32_t width, steps):
        self.graph = graph
        self.views = views
        self.width = width
        limit_effort(&self.effort, ENDLESS)
        self.count = <uint32_t>len(steps)
        self.steps = <Step*>mem_calloc(self.count, sizeof(Step))
        self.cursors = <Cursor*>mem_calloc(self.count, sizeof(Cursor))
        self.work = <term_t*>mem_calloc(width, sizeof(term_t))
        self.set_steps(0, steps)

    def __dealloc__(self):
        mem_free(self.steps)
        mem_free(self.cursors)
        mem_free(self.work)

    cdef End _end(self, end) except *:
        cdef End flat
        flat.is_slot = isinstance(end, int)
        flat.number = end if flat.is_slot else self.graph.dictionary.intern(end)
        return flat

    cdef int set_steps(self, uint32_t first, steps) except -1:
        """Set the steps from `first` on."""
        cdef Step* flat
        for i, step in enumerate(steps):
            flat = &self.steps[first + <uint32_t>i]
            memset(flat, 0, sizeof(Step))
            flat.view = 0 if isinstance(step.key, int) else self.views[step.key]
            flat.whole = -1 if step.whole is None else step.whole
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
        """Append to `out` each row of `left`, extended in all ways that match a range of steps."""
        cdef Step* steps = &self.steps[first]
        cdef Cursor* cursors = &self.cursors[first]
        cdef int depth, last = <int>(end - first) - 1
        cdef uint32_t i, count, most = 0
        for depth in range(last + 1):
            if steps[depth].whole >= 0:
                most = 2
                continue
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
                if steps[depth].whole >= 0:
                    if not self._take_apart(&steps[depth], &cursors[depth]):
                        depth -= 1
                        continue
                elif not self._advance(&steps[depth], &cursors[depth]):
                    depth -= 1
                    continue
                spend(self)
                if depth == last:
                    memcpy(row_new(out), self.work, self.width * sizeof(term_t))
                    continue
                depth += 1
                self._open(&steps[depth], &cursors[depth])
                if cursors[depth].chain == NULL and steps[depth].whole < 0:
                    self._charge_scan(self.graph.views[steps[depth].view].count)
        return 0

    cdef bint match_singly(self, uint32_t first, uint32_t end, Rows* out) except -1 nogil:
        """Like `extend` from a row without bindings, if each step has at most one candidate.

        Returns False, and does nothing, if some step has more.
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
        """Like `extend` if each step has one candidate, so that there is no backtracking."""
        cdef term_t* row
        cdef uint32_t i
        for i in range(left.count):
            row = row_new(out)
            memcpy(row, row_at(left, i), self.width * sizeof(term_t))
            out.count -= not self._fits_singly(row, first, end)
        return 0

    cdef bint _fits_singly(self, term_t* row, uint32_t first, uint32_t end) noexcept nogil:
        """Extend a row by the only candidate of each of some steps; False if one does not match."""
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
        """Set the cursor before the first candidate for the row in `work`."""
        cdef View* view = &self.graph.views[step.view]
        cdef term_t subject, object
        cdef Side side
        cdef uint32_t hash
        step.tried += 1
        cursor.chain = NULL
        cursor.bound_subject = cursor.bound_predicate = cursor.bound_object = False
        cursor.position = 1
        if view.count <= MAX_SCANNED or step.whole >= 0:
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
        if count > MAX_SCANNED and not count_steps(&self.effort, count):
            refuse_step(self)
        return 0

    cdef bint _advance(self, Step* step, Cursor* cursor) noexcept nogil:
        """Bind the row in `work` to the next triple that matches; False if there is none."""
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
        """Whether an end agrees with a term; an unbound slot is bound to it."""
        if not end.is_slot:
            return end.number == term
        if self.work[end.number]:
            return self.work[end.number] == term
        self.work[end.number] = term
        bound[0] = True
        return True

    cdef void _unbind(self, Step* step, Cursor* cursor) noexcept nogil:
        """Unbind the slots in `work` that the step has bound."""
        if cursor.bound_subject:
            self.work[step.subject.number] = 0
        if cursor.bound_predicate:
            self.work[step.predicate.number] = 0
        if cursor.bound_object:
            self.work[step.object.number] = 0
        cursor.bound_subject = cursor.bound_predicate = cursor.bound_object = False

    cdef bint _take_apart(self, Step* step, Cursor* cursor) except -1 nogil:
        """Bind the row in `work` to the parts of a triple term; False if they do not match."""
        cdef term_t whole = self.work[step.whole]
        cdef const TermRecord* record
        cdef const char* text
        cdef uint32_t size, second, third
        self._unbind(step, cursor)
        if cursor.position == 0 or whole == 0 or is_numeral(whole):
            return False
        cursor.position = 0
        record = record_of(<EventBatch>self.batch[0], whole)
        if record.kind != Kind.TRIPLE:
            return False
        text, size = record.text, record.size
        second = second_part(text)
        third = third_part(text, second)
        if (
            self._fits_part(
                &step.predicate, text + second, third - 1 - second, &cursor.bound_predicate
            )
            and self._fits_part(
                &step.subject, text + FIRST_PART, second - 1 - FIRST_PART, &cursor.bound_subject
            )
            and self._fits_part(
                &step.object, text + third, size - third - PARTS_END, &cursor.bound_object
            )
        ):
            step.found += 1
            return True
        self._unbind(step, cursor)
        return False

    cdef bint _fits_part(
        self, const End* end, const char* text, uint32_t size, bint* bound
    ) except -1 nogil:
        """Whether an end agrees with a part of a triple term; an unbound slot is bound to it."""
        cdef const TermRecord* record
        cdef uint64_t hash
        cdef term_t part
        if not end.is_slot:
            record = record_of(<EventBatch>self.batch[0], end.number)
            return record.size == size and memcmp(record.text, text, size) == 0
        hash = hash_of(text, size)
        part = known_term(<EventBatch>self.batch[0], hash, text, size)
        if part == 0:
            part = (<EventBatch>self.batch[0]).enter(hash, text, size, True)
        return self._fits(end, part, bound)


cdef inline int spend(BasicJoin join) except -1 nogil:
    """Count one more step of the event.

    Raises:
        LimitReached: if the bound leaves none.
    """
    if not count_step(&join.effort):
        refuse_step(join)
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


# ------------------------------------------------------------------ operators


# The order of the steps is reconsidered after this many events, then after 8 times as many, and so
# on.
cdef uint64_t FIRST_REORDER = 64

cdef uint64_t NEVER = ~<uint64_t>0

# A new order must reduce the expected cost to this share.
cdef double WORTHWHILE = 0.5

cdef set OPERATORS = {int(each) for each in flatten.Operator}

ctypedef int (*EvaluateFn)(NativeMatcher, int) noexcept nogil


cdef int _evaluate(NativeMatcher matcher, int number) except -1 nogil:
    return matcher.evaluate(number)


cdef int _exists(void* context, int number, const term_t* row) noexcept nogil:
    """Whether the pattern of an EXISTS has a solution that agrees with the row."""
    cdef ExistsNodes* exists_nodes = <ExistsNodes*>context
    cdef int node = exists_nodes.nodes[number]
    cdef const term_t* outside = (<NativeMatcher>exists_nodes.matcher).seed
    cdef int status
    (<NativeMatcher>exists_nodes.matcher).seed = row
    # A Python exception stays set; the expression passes it on.
    status = (<EvaluateFn>_evaluate)(<NativeMatcher>exists_nodes.matcher, node)
    (<NativeMatcher>exists_nodes.matcher).seed = outside
    if status < 0:
        return -2
    return (<NativeMatcher>exists_nodes.matcher).nodes[node].rows.count > 0


cdef class NativeMatcher:
    """The matcher of one graph pattern within a run.

    Args:
        graph: the summary graph that it reads, with a view for every predicate of the steps.
        views: the number of each predicate's view.
        flat: the pattern (`FlatPattern`).
        codes: the expressions of the pattern (`Compiled`), local filters last.
        local: the number of local filters.
        slots: the number of slots of a row.
        columns: the number of variables, which are the first slots.
        at: the slot of the AT variable, -1 without one.
        pattern: the number of the graph pattern, for the errors of bounds.
        steps: the most steps of an event.
        memory: the most bytes of all tables of rows.
        calls: the registered functions of the run.

    Raises:
        ValueError: for an operator that does not exist.
    """

    def __cinit__(
        self, SummaryGraph graph not None, views, flat, codes, int local, int slots, int columns,
        int at, int pattern=0, uint64_t steps=ENDLESS, size_t memory=SIZE_MAX, calls=None,
    ):
        self.budget.left, self.budget.pattern = memory, pattern
        self.graph = graph
        self.views = views
        self.flat = flat
        self.width = slots
        self.columns = columns
        self.at = at
        self.next_order = FIRST_REORDER if enabled("observed_order") else NEVER
        self.local_first = <uint32_t>(len(codes) - local)
        self.local_end = <uint32_t>len(codes)
        self.expressions = [Expression(code.code, graph.dictionary, calls) for code in codes]
        self._allocate(len(flat.nodes), len(flat.operands), len(codes))
        self.basic = BasicJoin(graph, views, slots, flat.steps)
        self.basic.pattern = pattern
        self.basic.batch = &self.batch
        limit_effort(&self.basic.effort, steps)
        for i, operand in enumerate(flat.operands):
            self.operands[<uint32_t>i] = operand
        self.parts = [
            *(PathJoin(graph, views, path) for path in flat.paths),
            *(Grouping(each, self.expressions, slots, graph.dictionary) for each in flat.groupings),
        ]
        for i, node in enumerate(flat.nodes):
            self._set_node(&self.nodes[<uint32_t>i], node)
        for i, code in enumerate(codes):
            self._set_expression(<uint32_t>i, code)
        self.needed = self._needed(<int>self.node_count - 1)
        self.basic_only = self._is_basic_only(&self.nodes[self.node_count - 1])
        # Beyond 64 views some share a bit of `present`, which then does not name one view.
        self.single_step = (
            enabled("single_triples") and self.basic_only and len(flat.steps) == 1
            and graph.view_count <= 64
            and not any(code.exists for code in codes)
        )

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.node_count):
            rows_free(&self.nodes[i].rows)
            arena_free(&self.nodes[i].memory)
        if self.exists_nodes != NULL:
            for i in range(self.local_end):
                mem_free(self.exists_nodes[i].nodes)
        mem_free(self.nodes)
        mem_free(self.operands)
        mem_free(self.tests)
        mem_free(self.existences)
        mem_free(self.exists_nodes)
        mem_free(self.empty)
        mem_free(self.timed)
        mem_free(self.passed)
        mem_free(self.untrue)
        arena_free(&self.scratch)

    # ---------------------------------------------------------------- linking

    cdef int _allocate(
        self, uint32_t nodes, uint32_t operands, uint32_t tests
    ) except -1:
        self.nodes = <Node*>mem_calloc(nodes, sizeof(Node))
        self.node_count = nodes
        self.result = &self.nodes[nodes - 1].rows
        self.operands = <uint32_t*>mem_calloc(operands, sizeof(uint32_t))
        self.tests = <PyObject**>mem_calloc(tests, sizeof(PyObject*))
        self.existences = <Existence*>mem_calloc(tests, sizeof(Existence))
        self.exists_nodes = <ExistsNodes*>mem_calloc(tests, sizeof(ExistsNodes))
        self.empty = <term_t*>mem_calloc(self.width, sizeof(term_t))
        self.timed = <term_t*>mem_calloc(self.width, sizeof(term_t))
        self.untrue = <uint64_t*>mem_calloc(self.local_end, sizeof(uint64_t))
        return 0

    cdef int _set_node(self, Node* flat, node) except -1:
        if node.operator not in OPERATORS:
            raise ValueError(f"there is no operator {node.operator}")
        flat.operator = node.operator
        flat.left = node.left
        flat.right = node.right
        flat.first = node.first
        flat.end = node.end
        flat.test_first = node.test_first
        flat.test_end = node.test_end
        flat.slot = node.slot
        flat.flag = node.flag
        if node.part >= 0:
            number = node.part + (len(self.flat.paths) if flat.operator == GROUP else 0)
            flat.part = <PyObject*>self.parts[number]
        rows_init(&flat.rows, self.width, &self.budget)
        if flat.operator != TABLE:
            return 0
        slots, rows = self.flat.tables[flat.first]
        return self._set_rows(flat, slots, rows, None)

    cdef uint64_t _needed(self, int number) noexcept:
        """The views that an event must fill for an operator to have a row; see `bit_of`."""
        cdef Node* node = &self.nodes[number]
        cdef uint64_t found
        cdef uint32_t i
        if node.operator == SEED or node.operator == TABLE:
            return 0
        if node.operator == GROUP and node.first == node.end:
            return 0    # without keys, it has a row for an event without rows
        if node.operator == UNION:
            found = ~<uint64_t>0
            for i in range(node.first, node.end):
                found &= self._needed(self.operands[i])
            return found
        found = self._needed(node.left)
        if node.operator == BASIC:
            for i in range(node.first, node.end):
                if self.basic.steps[i].whole < 0:
                    found |= bit_of(self.basic.steps[i].view)
        elif node.operator == REACH:
            found |= (<PathJoin>node.part).needed
        elif node.operator == JOIN:
            found |= self._needed(node.right)
        # The other operators have rows only where their left side does.
        return found

    cdef bint _is_basic_only(self, Node* root) noexcept:
        """Whether the pattern is one basic pattern of constant predicates, without AT."""
        cdef uint32_t i
        if root.operator != BASIC or self.nodes[root.left].operator != SEED or self.at >= 0:
            return False
        for i in range(root.first, root.end):
            if self.basic.steps[i].open or self.basic.steps[i].whole >= 0:
                return False
        return True

    cdef int _set_rows(self, Node* flat, slots, rows, EventBatch batch) except -1:
        cdef term_t* row
        cdef uint32_t width = <uint32_t>len(slots)
        cdef uint32_t i
        cdef list places = list(slots)
        flat.rows.count = 0
        flat.indexed = False
        arena_reset(&flat.memory)
        for cells in rows:
            row = row_new(&flat.rows)
            memset(row, 0, self.width * sizeof(term_t))
            for i in range(width):
                cell = cells[i]
                if cell is None:
                    continue
                if batch is None:
                    row[<uint32_t>places[i]] = self.graph.dictionary.intern(cell)
                else:
                    row[<uint32_t>places[i]] = batch.encode(cell)
        return 0

    def fill(self, uint32_t number, rows, EventBatch batch=None):
        """Set the rows of a TABLE, terms in the order of its slots.

        The terms become permanent, or terms of the batch, which must be the next one to be matched.
        """
        cdef RowIndex index
        cdef uint32_t i
        if number >= self.node_count or self.nodes[number].operator != TABLE:
            raise ValueError(f"operator {number} is not a table")
        slots, _ = self.flat.tables[self.nodes[number].first]
        self.serial = 0
        self._set_rows(&self.nodes[number], slots, rows, batch)
        if batch is None:
            # Indexing a large table takes time, and no event should wait for it.
            for i in range(self.node_count):
                if self.nodes[i].operator in (JOIN, LEFT_JOIN, MINUS) and (
                    self.nodes[i].right == <int>number
                ):
                    self.index_right(&self.nodes[i], &index)

    def bindings(self, EventBatch batch not None, uint32_t first, uint32_t end, slots):
        """The distinct bindings of some slots in the rows of events.

        Only rows that bind all of the slots and pass the local filters count. The bindings are the
        keys of a dict, in the order of the rows.
        """
        cdef uint32_t event, i
        cdef dict found = {}
        cdef term_t* row
        cdef list places = list(slots)
        cdef uint32_t only = <uint32_t>places[0]
        self.serial = 0
        self.batch = <PyObject*>batch
        for event in range(first, end):
            with nogil:
                self.graph.load(batch, event)
                self.run(event)
                self.filter_rows()
            for i in range(self.result.count):
                if not self.passed[i]:
                    continue
                row = row_at(self.result, i)
                if len(places) == 1:
                    if row[only]:
                        found[(row[only],)] = None
                    continue
                key = tuple([row[<uint32_t>place] for place in places])
                if 0 not in key:
                    found[key] = None
        return found

    cdef int _set_expression(self, uint32_t number, code) except -1:
        self.tests[number] = <PyObject*>self.expressions[number]
        nodes = [self.flat.exists[exists] for exists in code.exists]
        self.exists_nodes[number].matcher = <PyObject*>self
        self.exists_nodes[number].nodes = <uint32_t*>mem_calloc(len(nodes), sizeof(uint32_t))
        for i, node in enumerate(nodes):
            self.exists_nodes[number].nodes[<uint32_t>i] = node
        self.existences[number].holds = _exists
        self.existences[number].context = &self.exists_nodes[number]
        return 0

    # ---------------------------------------------------------------- an event

    def match(self, EventBatch batch not None, uint32_t event):
        """Match the event that the summary graph holds: the number of its rows."""
        self.match_event(batch, event)
        return self.result.count

    cdef int _match_event(self, EventBatch batch, uint32_t event) except -1 nogil:
        self.serial = 0
        self.batch = <PyObject*>batch
        self.run(event)
        self.filter_rows()
        self.serial = batch.serial
        self.event = event
        return 0

    cdef int _match_single_triple(self, EventBatch batch, uint32_t event) except -1 nogil:
        cdef const Triple* triple = &batch.triples[batch.events[event].first]
        cdef Node* root = &self.nodes[self.node_count - 1]
        self.serial, self.batch = 0, <PyObject*>batch
        self.tried += 1
        root.rows.count = 0
        self.found += match_triple(self.basic, root.first, triple, &root.rows)
        if self.local_first < self.local_end or self.passed_room == 0:
            self.filter_rows()
        else:
            self.passed[0] = True
            # `passed` has room for a row from now on.
            self.ends_only = self.width == 2 and self.basic.steps[root.first].apart
        self.serial, self.event = batch.serial, event
        return 0

    cdef bint accepts(self, EventBatch batch, const term_t* row) except -1 nogil:
        """Whether a row passes the local filters, at the event that the summary graph holds."""
        self.serial = 0
        arena_reset(&self.scratch)
        self.seed = self.empty
        self.batch = <PyObject*>batch
        return self.holds(self.local_first, self.local_end, row)

    def row(self, uint32_t i):
        """The terms of a row of the last event, by column; 0 is unbound."""
        cdef term_t* row = row_at(self.result, i)
        return [row[column] for column in range(self.columns)]

    def passed_filters(self, uint32_t i):
        """Whether a row of the last event passed the local filters."""
        return self.passed[i] != 0

    def count(self, EventBatch batch not None):
        """The number of rows of the events of a batch that pass the local filters."""
        cdef uint32_t event, i
        cdef uint64_t total = 0
        self.serial = 0
        self.batch = <PyObject*>batch
        with nogil:
            for event in range(batch.event_count):
                self.graph.load(batch, event)
                self.run(event)
                self.filter_rows()
                for i in range(self.result.count):
                    total += self.passed[i]
        return total

    @property
    def untrue_counts(self):
        """Per local filter: the number of rows for which it was the first one that was not true."""
        return [self.untrue[i] for i in range(self.local_end - self.local_first)]

    @property
    def errors(self):
        """The numbers of errors of the pattern's expressions, and of each local filter."""
        inner = {}
        counts = [expression.errors for expression in self.expressions]
        for expression, count in zip(self.flat.expressions, counts):
            inner[expression] = inner[expression] + count if expression in inner else count
        return inner, counts[self.local_first:]

    @property
    def has_erred(self):
        """Whether an expression of the pattern, or a local filter, has erred."""
        return any(expression.errors for expression in self.expressions)

    @property
    def observed(self):
        """Per step, in order: (text, rows extended, rows made) since the order last changed."""
        return [
            (step.text, self.basic.steps[<uint32_t>i].tried, self.basic.steps[<uint32_t>i].found)
            for i, step in enumerate(self.flat.steps)
        ]

    cdef int run(self, uint32_t event) except -1 nogil:
        """Compute the distinct rows of the event in `result`."""
        cdef Rows* rows = self.result
        cdef term_t* row
        cdef uint32_t i, kept = 0
        cdef Node* root = &self.nodes[self.node_count - 1]
        self.tried += 1
        begin_event(&self.basic.effort)
        self.made = 0
        arena_reset(&self.scratch)
        if self.basic_only:
            rows.count = 0
            if self.basic.match_singly(root.first, root.end, rows):
                self.found += rows.count
                return 0
        if self.tried >= self.next_order:
            with gil:
                self.reorder()
        self.seed = self.empty
        if self.needed & ~self.graph.present or (
            (<EventBatch>self.batch).events[event].statements == 0
        ):
            rows.count = 0
            return 0
        if self.at >= 0:
            self.time = (<EventBatch>self.batch).moment(event)
        self.evaluate(self.node_count - 1)
        if self.at >= 0:
            for i in range(rows.count):
                row = row_at(rows, i)
                if row[self.at] and row[self.at] != self.time:
                    continue
                row[self.at] = self.time
                if kept != i:
                    memcpy(row_at(rows, kept), row, self.width * sizeof(term_t))
                kept += 1
            rows.count = kept
        drop_duplicates(rows, self.columns, &self.scratch)
        self.found += rows.count
        return 0

    cdef int filter_rows(self) except -1 nogil:
        """Test the local filters on the rows of the result."""
        cdef uint32_t i, test
        if self.result.count > self.passed_room:
            self.passed = <uint8_t*>mem_grow(
                self.passed, 2 * <size_t>self.result.count, 1, b"what passed the filters"
            )
            self.passed_room = 2 * self.result.count
        for i in range(self.result.count):
            check_signals_rarely(i)
            self.passed[i] = 1
            for test in range(self.local_first, self.local_end):
                if not self.holds(test, test + 1, row_at(self.result, i)):
                    self.passed[i] = 0
                    self.untrue[test - self.local_first] += 1
                    break
        return 0

    cdef int reorder(self) except -1:
        """Reorder the steps by the observed sizes of views, if that is worthwhile."""
        sizes = self.graph.sizes()

        def size(step):
            return sizes[self.views.get(step.key, 0)]

        self.next_order *= 8
        for first, steps, bound in self.flat.orders:
            end = first + len(steps)
            present = self.flat.steps[first:end]
            better = ordered(steps, bound, size)
            if cost(better, bound, size) < WORTHWHILE * cost(present, bound, size):
                self.flat.steps[first:end] = better
                self.basic.set_steps(first, better)
        return 0

    # ---------------------------------------------------------------- operators

    cdef int evaluate(self, int number) except -1 nogil:
        """Compute the rows of an operator, into its table."""
        cdef Node* node = &self.nodes[number]
        cdef Rows* part
        cdef uint32_t i, j
        if node.operator == TABLE:
            return 0
        node.rows.count = 0
        if node.operator == SEED:
            memcpy(row_new(&node.rows), self.seed, self.width * sizeof(term_t))
        elif node.operator == BASIC:
            self.evaluate(node.left)
            self.basic.extend(&self.nodes[node.left].rows, &node.rows, node.first, node.end)
        elif node.operator == ALTERNATIVES:
            self.evaluate(node.left)
            part = &self.nodes[node.left].rows
            for j in range(node.first, node.end - 1):
                self.basic.extend(part, &node.rows, self.operands[j], self.operands[j + 1])
        elif node.operator == REACH:
            self.evaluate(node.left)
            self.reach(node)
        elif node.operator == GROUP:
            self.evaluate(node.left)
            (<Grouping>node.part).group(
                <EventBatch>self.batch, &self.nodes[node.left].rows, &node.rows
            )
        elif node.operator == FILTER:
            self.evaluate(node.left)
            part = &self.nodes[node.left].rows
            for i in range(part.count):
                check_signals_rarely(i)
                if self.holds(node.test_first, node.test_end, row_at(part, i)):
                    self._copy_row(&node.rows, row_at(part, i))
        elif node.operator == UNION:
            for j in range(node.first, node.end):
                self.evaluate(self.operands[j])
                part = &self.nodes[self.operands[j]].rows
                for i in range(part.count):
                    self._copy_row(&node.rows, row_at(part, i))
        elif node.operator == EXTEND:
            self.evaluate(node.left)
            self.extend(node)
        elif (
            node.operator == JOIN or node.operator == LEFT_JOIN or node.operator == MINUS
        ):
            self.evaluate(node.left)
            if self.nodes[node.left].rows.count == 0:
                return 0
            if node.operator == LEFT_JOIN and node.flag:
                self.seeded(node)
            else:
                self.evaluate(node.right)
                self.join(node)
        else:
            with gil:
                raise SystemError(f"the matcher has no operator {<int>node.operator}")
        return 0

    cdef int _copy_row(self, Rows* rows, const term_t* row) except -1 nogil:
        memcpy(row_new(rows), row, self.width * sizeof(term_t))
        return 0

    cdef int holds(self, uint32_t first, uint32_t end, const term_t* row) except -1 nogil:
        """Whether some expressions are all true for a row."""
        cdef uint32_t i
        for i in range(first, end):
            if (<Expression>self.tests[i]).truth(
                <EventBatch>self.batch, row, &self.existences[i]
            ) != 1:
                return 0
        return 1

    cdef int reach(self, Node* node) except -1 nogil:
        """REACH: extend the rows along a property path."""
        cdef Rows* left = &self.nodes[node.left].rows
        cdef Step* counted = &self.basic.steps[node.first]
        if not (<PathJoin>node.part).extend(&self.basic.effort, left, &node.rows):
            refuse_step(self.basic)
        counted.tried += left.count
        counted.found += node.rows.count
        return 0

    cdef int extend(self, Node* node) except -1 nogil:
        """EXTEND: bind a slot to the value of an expression; a bound slot must agree with it."""
        cdef Rows* rows = &self.nodes[node.left].rows
        cdef term_t* row
        cdef const term_t* seen
        cdef term_t value
        cdef uint32_t i, test = node.test_first
        for i in range(rows.count):
            check_signals_rarely(i)
            row = row_at(rows, i)
            seen = row
            if node.flag and self.at >= 0:
                memcpy(self.timed, row, self.width * sizeof(term_t))
                self.timed[self.at] = self.time
                seen = self.timed
            value = 0
            (<Expression>self.tests[test]).value(
                <EventBatch>self.batch, seen, &self.existences[test], &value
            )
            if value and not is_numeral(value):
                self.made += record_of(<EventBatch>self.batch, value).size
                require(&self.budget, self.made)
            if value and row[node.slot] and row[node.slot] != value:
                continue
            self._copy_row(&node.rows, row)
            if value:
                row_at(&node.rows, node.rows.count - 1)[node.slot] = value
        return 0

    cdef int seeded(self, Node* node) except -1 nogil:
        """LEFT_JOIN whose right side starts from each row of the left."""
        cdef Rows* left = &self.nodes[node.left].rows
        cdef Rows* right = &self.nodes[node.right].rows
        cdef const term_t* outside = self.seed
        cdef uint32_t i, j, before
        for i in range(left.count):
            self.seed = row_at(left, i)
            self.evaluate(node.right)
            self.seed = outside
            before = node.rows.count
            for j in range(right.count):
                spend(self.basic)
                if self.holds(node.test_first, node.test_end, row_at(right, j)):
                    self._copy_row(&node.rows, row_at(right, j))
            if node.rows.count == before:
                self._copy_row(&node.rows, row_at(left, i))
        return 0

    cdef int index_right(self, Node* node, RowIndex* index) except -1 nogil:
        """Index the right side of a join by its keys; a table is indexed once."""
        cdef Node* right = &self.nodes[node.right]
        cdef uint32_t* keys = &self.operands[node.first]
        cdef uint32_t count = node.end - node.first
        if right.operator != TABLE:
            return index_rows(index, &right.rows, keys, count, &self.scratch)
        if not right.indexed:
            index_rows(&right.index, &right.rows, keys, count, &right.memory)
            right.indexed = True
        index[0] = right.index
        return 0

    cdef int join(self, Node* node) except -1 nogil:
        """JOIN, LEFT_JOIN and MINUS of two tables."""
        cdef Rows* left = &self.nodes[node.left].rows
        cdef Rows* right = &self.nodes[node.right].rows
        cdef RowIndex index
        cdef uint32_t i, j, partner, before
        cdef uint32_t* keys = &self.operands[node.first]
        cdef bint excluded
        self.index_right(node, &index)
        for i in range(left.count):
            before = node.rows.count
            excluded = False
            if index.heads != NULL:
                j = key_hash(row_at(left, i), keys, node.end - node.first) & index.mask
                j = index.heads[j]
            else:
                j = right.count > 0
            while j:
                spend(self.basic)
                partner = (j & ~<uint32_t>MORE) - 1
                if node.operator == MINUS:
                    excluded = overlap(row_at(left, i), row_at(right, partner), self.width)
                    if excluded:
                        break
                else:
                    self._join_rows(node, row_at(left, i), row_at(right, partner))
                if index.heads != NULL:
                    j = index.next[partner] if j & MORE else 0
                else:
                    j = j + 1 if j < right.count else 0
            if node.operator == JOIN or excluded:
                continue
            if node.rows.count == before:
                self._copy_row(&node.rows, row_at(left, i))
        return 0

    cdef int _join_rows(self, Node* node, const term_t* left, const term_t* right) except -1 nogil:
        """Append the union of two rows if they are compatible and it satisfies the conditions."""
        cdef uint32_t slot
        cdef term_t* row
        for slot in range(self.width):
            if left[slot] and right[slot] and left[slot] != right[slot]:
                return 0
        row = row_new(&node.rows)
        for slot in range(self.width):
            row[slot] = left[slot] if left[slot] else right[slot]
        if not self.holds(node.test_first, node.test_end, row):
            node.rows.count -= 1
        return 0
