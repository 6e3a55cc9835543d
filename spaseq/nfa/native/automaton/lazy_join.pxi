"""Lazy joins: the rows of a chain are joined when the last one arrives, rarest step first.

The eager strategy compares each row with every waiting partial match, which is wasted work if none
of them completes. The lazy strategy stores the rows of the window instead. When a row of the last
step arrives, the other steps are joined to it one by one: the step with the fewest rows in range
first, by an index where a column is bound. A filter is evaluated as soon as its variables are bound
(Kolchinsky, Sharfman, Schuster: *Lazy evaluation methods for detecting complex events*, DEBS 2015).
Such a chain matches wherever its rows agree, so the join order is free. Blocks of rows that no
filter can satisfy are skipped (`spaseq/nfa/native/tecs/ranges.pxi`); a block counts as one examined
row.

The cheaper strategy depends on the rates of the rows. The run switches between the two by the
number of rows and groups each examines. The active strategy's cost is counted. The inactive one's
is sampled, spending at most 1/8 of the active work, or taken from its last active period. A lazy
search that would examine more than the groups would have cost is abandoned, and the groups are
built (`switch_to_eager`).

Invariants: the rows of the window are stored under either strategy; a search changes only its own
scratch memory before it finds a match. Cost: storing a row is constant; a search costs the rows
examined.
"""

from libc.string cimport memcpy, memset

from spaseq.nfa.native._tecs cimport (
    UNINDEXED,
    ZONE_LEVELS,
    bind,
    block_start,
    box_of,
    chain_newest,
    chain_older,
    ends_block,
    filter_holds,
    new_node,
    place_at,
    ranges_add,
    ranges_alloc,
    ranges_free,
    row_before,
    rows_add,
    rows_alloc,
    rows_expire,
    rows_free,
    size_of_label,
    union_add,
)
from spaseq.rdf.limits import NO_LIMIT
from spaseq.rdf.native._literals cimport Box
from spaseq.rdf.native._terms cimport (
    Dictionary,
    count_step,
    mem_calloc,
    mem_free,
    resume_effort,
    steps_of,
)

cdef uint64_t UNLIMITED = NO_LIMIT

# The lazy strategy is chosen if it examines this many times fewer rows.
cdef double LAZY_MIN_GAIN = 4

# The share of the eager work that trials may spend.
cdef double SAMPLING_SHARE = 0.125

# Decay of the counts per window.
cdef double COUNT_DECAY_PER_WINDOW = 7.0 / 8

# Decay per window of the eager cost while it is inactive, so that it is tried again.
cdef double EAGER_DECAY_PER_WINDOW = 63.0 / 64


cdef class LazyJoin:
    """The steps of a chain, and the choice between the eager and the lazy strategy."""

    def __cinit__(self, rows, Transitions transitions not None, Dictionary dictionary not None):
        cdef uint32_t i
        found = rows.chain
        self.transitions, self.instant = transitions, transitions.instant
        self.partitions, self.tecs = transitions.partitions, transitions.tecs
        self.tables, self.window, self.event = (
            transitions.tables, transitions.window, transitions.event
        )
        self.chain_length = <uint32_t>len(found.steps)
        if not self.chain_length:
            return
        self.chain = <ChainStep*>mem_calloc(self.chain_length, sizeof(ChainStep))
        self.step_at = <uint32_t*>mem_calloc(self.tables.place_count, sizeof(uint32_t))
        for i, (place, occurrence) in enumerate(found.steps):
            way = [taken[0] for taken in rows.ways].index(place)
            self.chain[i] = ChainStep(place, occurrence, way)
            self.step_at[<uint32_t>place] = i
        self.chain_test_count = <uint32_t>len(found.tests)
        self.chain_tests = <ChainTest*>mem_calloc(self.chain_test_count, sizeof(ChainTest))
        for i, (number, needs) in enumerate(found.tests):
            self.chain_tests[i] = ChainTest(number, needs)
        self.step_rows = <RowBuffer**>mem_calloc(self.chain_length, sizeof(RowBuffer*))
        self.registers = TermResolver(self.event.terms, dictionary)
        self.step_ranges = <Ranges**>mem_calloc(self.chain_length, sizeof(Ranges*))
        for i, columns in enumerate(found.ranged[: self.chain_length - 1]):
            if columns:
                first = self.tables.occurrences[self.chain[i].occurrence].binding_first
                registers = [self.tables.bindings[<uint32_t>(first + c)].register for c in columns]
                self.step_ranges[i] = ranges_alloc(columns, registers)
        self.replay_next = <uint64_t*>mem_calloc(self.chain_length, sizeof(uint64_t))
        for i, columns in enumerate(found.columns[: self.chain_length - 1]):
            self.step_rows[i] = rows_alloc(columns)
        self.chain_env = <term_t*>mem_calloc(
            (self.chain_length + 1) * self.tables.cells, sizeof(term_t)
        )
        self.chain_labels = <Label**>mem_calloc(self.chain_length, sizeof(Label*))
        self.one, self.match_rows = found.one, found.match_rows
        self.weights.settled, self.min_rows = -1, 1024

    def __dealloc__(self):
        cdef uint32_t i
        if self.step_rows != NULL:
            for i in range(self.chain_length):
                rows_free(self.step_rows[i])
        if self.step_ranges != NULL:
            for i in range(self.chain_length):
                ranges_free(self.step_ranges[i])
        mem_free(self.step_rows)
        mem_free(self.step_ranges)
        mem_free(self.replay_next)
        mem_free(self.chain)
        mem_free(self.step_at)
        mem_free(self.chain_tests)
        mem_free(self.chain_env)
        mem_free(self.chain_labels)

    # ---------------------------------------------------------------- rows

    cdef bint may_follow(self, uint32_t gpm) noexcept nogil:
        """Whether a row of a GPM may be part of a match, because the preceding step has a row."""
        cdef uint32_t i, step
        cdef RowBuffer* before
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            step = self.step_at[self.tables.ways[i].place]
            if step == 0:
                return True
            before = self.rows_before(step)
            if before.first < before.end:
                return True
        return False

    cdef RowBuffer* rows_before(self, uint32_t step) noexcept nogil:
        """The number of unexpired rows of the step before one."""
        cdef RowBuffer* rows = self.step_rows[step - 1]
        rows_expire(rows, self.window.bound)
        return rows

    cdef int store_step(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil:
        """Store the current row with those of its step."""
        cdef uint32_t step = self.step_at[way.place]
        cdef RowBuffer* rows
        if not self.event.row_stored:
            self.event.store_row(width)
        label[0] = self.tecs.label(width)
        memcpy(label[0], &self.event.label, size_of_label(0))
        label[0].edge, label[0].width = way.edge, width
        memcpy(label[0].row, self.event.row, width * sizeof(term_t))
        rows = self.step_rows[step]
        rows_expire(rows, self.window.bound)
        if self.lazy and step == 0:
            place_at(self.tables, way.place).joined += 1
            place_at(self.tables, self.chain[1].place).reached += 1
        return self._add_row(step, label[0])

    cdef int _add_row(self, uint32_t step, Label* label) except -1 nogil:
        rows_add(self.step_rows[step], label, True)
        if self.step_ranges[step] != NULL:
            ranges_add(self.step_ranges[step], self.step_rows[step], self.registers)
        return 0

    cdef int load_step(self, uint32_t gpm, Label* label) except -1 nogil:
        """Restore a saved row, of an instant not before that of the last one."""
        cdef uint32_t i, step
        cdef Label* copy
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            step = self.step_at[self.tables.ways[i].place]
            if step + 1 < self.chain_length:
                copy = self.tecs.label(label.width)
                memcpy(copy, label, size_of_label(label.width))
                copy.edge = self.tables.ways[i].edge
                self._add_row(step, copy)
        return 0

    # ---------------------------------------------------------------- searching

    cdef int search(self, EdgeRef* way, uint32_t width, bint trial, uint64_t most) except -1 nogil:
        """Join the current row, of the last step, examining at most `most` rows; 0 if abandoned.

        Its results are complete matches; an abandoned search yields none.
        """
        cdef uint64_t charged = self.charged
        cdef uint32_t i, last = self.chain_length - 1
        cdef uint32_t accepted = self.instant.accepted_count
        cdef Occurrence* occurrence = &self.tables.occurrences[self.chain[last].occurrence]
        cdef term_t* env = self.chain_env + self.tables.cells
        cdef int status
        for i in range(1, self.chain_length):
            if self.rows_before(i).first == self.rows_before(i).end:
                return 1
        if not self.event.row_stored:
            self.event.store_row(width)
        self.chain_way, self.chain_width = way, width
        self.trial, self.left = trial, most
        memset(self.chain_labels, 0, self.chain_length * sizeof(Label*))
        memset(env, 0, self.tables.cells * sizeof(term_t))
        status = bind(self.tables, occurrence, self.event.row, env)
        if status <= 0:
            return _raised() if status < 0 else 1
        self.tables.conditions.uncounted = trial
        try:
            if self._agrees(<uint64_t>1 << last, last, env):
                status = self._join_more(1, <uint64_t>1 << last)
        finally:
            self.tables.conditions.uncounted = False
            if trial:
                self.sampled += most - self.left - (self.charged - charged)
            else:
                self.searched += most - self.left - (self.charged - charged)
        if status == 0:
            self.instant.accepted_count = accepted
        return status != 0

    cdef int _join_more(self, uint32_t depth, uint64_t joined) except -1 nogil:
        """Join the remaining steps; 1, 0 if the budget is spent, or 2 if one match suffices."""
        cdef int status
        cdef uint32_t step, index
        cdef uint64_t number
        cdef uint32_t slot
        cdef instant_t low, high
        cdef term_t term
        cdef RowBuffer* rows
        if depth == self.chain_length:
            return self._complete_match()
        step = self._next_step(joined)
        rows = self.step_rows[step]
        self._instant_range(step, &low, &high)
        index = self._index(step, self.chain_env + depth * self.tables.cells, &term)
        if index == <uint32_t>UNINDEXED:
            return self._join_between(depth, joined, step, low, high)
        number = chain_newest(rows, index, term)
        while number >= rows.first:
            slot = number & (rows.room - 1)
            if rows.instants[slot] <= low:
                break
            if rows.instants[slot] < high:
                if self.left == 0:
                    return 0
                self.left -= 1
                count_step(&self.event.effort)
                status = self._try_row(depth, joined, step, rows.labels[slot])
                if status != 1:
                    return status
            number = chain_older(rows, index, number)
        return 1

    cdef int _join_between(
        self, uint32_t depth, uint64_t joined, uint32_t step, instant_t low, instant_t high
    ) except -1 nogil:
        """Join the rows of a step between two instants; as `_join_more`."""
        cdef RowBuffer* rows = self.step_rows[step]
        cdef uint64_t number = row_before(rows, high), last = row_before(rows, low + 1), passed
        cdef bint ranged = self.step_ranges[step] != NULL and self._filtered(joined, step)
        cdef bint first = ranged
        cdef int status
        while number > last:
            if self.left == 0:
                return 0
            self.left -= 1
            count_step(&self.event.effort)
            if first or (ranged and ends_block(number, 0)):
                passed = self._excluded_rows(depth, joined, step, number, last, first)
                first = False
                if passed:
                    number -= passed
                    continue
            status = self._try_row(depth, joined, step, rows.labels[number & (rows.room - 1)])
            if status != 1:
                return status
            number -= 1
        return 1

    cdef uint64_t _excluded_rows(
        self, uint32_t depth, uint64_t joined, uint32_t step, uint64_t number, uint64_t last,
        bint first,
    ) noexcept nogil:
        """The number of rows, from `number` back through its block, that some filter excludes.

        Blocks are tested at their newest row; `first`: at this row, wherever it lies in them.
        """
        cdef uint64_t own = <uint64_t>1 << step, rows
        cdef uint32_t level = ZONE_LEVELS, i
        cdef ChainTest* test
        cdef Box box
        while level:
            level -= 1
            if not (first or ends_block(number, level)):
                continue
            box = box_of(self.step_ranges[step], number, level)
            rows = number - max(block_start(number, level), last + 1) + 1
            for i in range(self.chain_test_count):
                test = &self.chain_tests[i]
                if test.needs & own and not test.needs & ~(joined | own) and (
                    not self.tables.conditions.may(
                        self.tables.conditions.context, test.number,
                        self.chain_env + depth * self.tables.cells, &box, rows,
                    )
                ):
                    return rows
        return 0

    cdef uint32_t _next_step(self, uint64_t joined) noexcept nogil:
        """The remaining step with the fewest rows between the joined ones."""
        cdef uint32_t depth = 0, step, best = 0
        cdef uint64_t count, fewest = <uint64_t>-1
        cdef instant_t low, high
        cdef term_t term
        cdef RowBuffer* rows
        for step in range(self.chain_length):
            if (joined >> step) & 1:
                depth += 1
            else:
                best = step
        if depth + 1 == self.chain_length:
            return best
        for step in range(self.chain_length - 1):
            if (joined >> step) & 1:
                continue
            rows = self.step_rows[step]
            self._instant_range(step, &low, &high)
            count = row_before(rows, high) - row_before(rows, low + 1)
            if self._index(step, self.chain_env + depth * self.tables.cells, &term) != (
                <uint32_t>UNINDEXED
            ) or self._filtered(joined, step):
                count //= ROWS_PER_SELECTED_ROW
            if count < fewest:
                fewest, best = count, step
        return best

    cdef bint _filtered(self, uint64_t joined, uint32_t step) noexcept nogil:
        """Whether some filter becomes ready when a step is joined."""
        cdef uint32_t i
        cdef uint64_t own = <uint64_t>1 << step
        for i in range(self.chain_test_count):
            if self.chain_tests[i].needs & own and not (
                self.chain_tests[i].needs & ~(joined | own)
            ):
                return True
        return False

    cdef int _instant_range(self, uint32_t step, instant_t* low, instant_t* high) noexcept nogil:
        """The instants that a row of a step must lie strictly between."""
        cdef uint32_t i = step
        low[0] = self.event.since - 1
        high[0] = self.window.now
        while i:
            i -= 1
            if self.chain_labels[i] != NULL:
                low[0] = self.chain_labels[i].instant
                break
        for i in range(step + 1, self.chain_length - 1):
            if self.chain_labels[i] != NULL:
                high[0] = self.chain_labels[i].instant
                break
        if not step and high[0] > self.window.last_start:
            high[0] = self.window.last_start + 1
        return 0

    cdef uint32_t _index(self, uint32_t step, const term_t* env, term_t* term) noexcept nogil:
        """An index of a step's rows by a bound term, or UNINDEXED."""
        cdef RowBuffer* rows = self.step_rows[step]
        cdef uint32_t columns = self.tables.occurrences[self.chain[step].occurrence].binding_first
        cdef uint32_t i
        for i in range(rows.index_count):
            term[0] = env[self.tables.bindings[columns + rows.indexes[i].column].register]
            if term[0]:
                return i
        return UNINDEXED

    cdef int _try_row(
        self, uint32_t depth, uint64_t joined, uint32_t step, Label* label
    ) except -1 nogil:
        """Join one row, if it fits, and continue; as `_join_more`."""
        cdef const term_t* env = self.chain_env + depth * self.tables.cells
        cdef term_t* after = self.chain_env + (depth + 1) * self.tables.cells
        cdef Occurrence* occurrence = &self.tables.occurrences[self.chain[step].occurrence]
        cdef int status
        memcpy(after, env, self.tables.cells * sizeof(term_t))
        status = bind(self.tables, occurrence, label.row, after)
        if status <= 0:
            occurrence.disagreed += not self.trial
            return _raised() if status < 0 else 1
        joined |= <uint64_t>1 << step
        if not self._agrees(joined, step, after):
            return 1
        self.chain_labels[step] = label
        status = self._join_more(depth + 1, joined)
        self.chain_labels[step] = NULL
        return status

    cdef bint _agrees(self, uint64_t joined, uint32_t step, term_t* env) except -1 nogil:
        """Whether the filters that become ready with a step are true."""
        cdef uint32_t i
        cdef uint64_t own = <uint64_t>1 << step
        cdef ChainTest* test
        cdef int status
        for i in range(self.chain_test_count):
            test = &self.chain_tests[i]
            if test.needs & own and not test.needs & ~joined:
                status = filter_holds(self.tables, test.number, env)
                if status <= 0:
                    return _raised() if status < 0 else False
        return True

    cdef int _complete_match(self) except -1 nogil:
        """Complete a match, since all steps are joined."""
        cdef uint32_t i, last = self.chain_length - 1
        cdef uint64_t charged = min(self.left, self.match_rows)
        cdef Node* node
        self.left -= charged
        self.charged += charged
        if self.trial:
            return 2 if self.one else 1
        if self.chain_labels[last] == NULL:
            self.event.label_row(self.chain_way, self.chain_width, &self.chain_labels[last])
        node = new_node(self.tecs, self.chain_labels[0], 0, self.chain_labels[0].instant)
        for i in range(1, self.chain_length):
            node = new_node(
                self.tecs,
                self.chain_labels[i],
                union_add(self.tecs, 0, -1, node, self.window.bound),
                node.latest,
            )
        self.instant.accept(node)
        for i in range(self.chain_length):
            place_at(self.tables, self.chain[i].place).reached += i > 1
            place_at(self.tables, self.chain[i].place).joined += i > 0
        return 2 if self.one else 1

    # ---------------------------------------------------------------- switching

    cdef int join_chained(self, EdgeRef* way, uint32_t width) except -1 nogil:
        """Process the current row of a chain: store it, and join it by the active strategy."""
        cdef uint32_t step = self.step_at[way.place]
        cdef bint last = step + 1 == self.chain_length
        cdef uint64_t before = 0, seen = self.searched + self.charged
        cdef Label* label = NULL
        if self.lazy and self.strategy_fixed and not self.fixed_lazy:
            self.switch_to_eager(width)
        if step:
            before = self.rows_before(step).end - self.rows_before(step).first
        if not last and (before or not step) and (self.lazy or not self.bounded):
            self.store_step(way, width, &label)
        if self.lazy:
            self.weights.eager += self.weights.each * before
            if not last or self.search(way, width, False, self.row_budget()):
                self.weights.lazy += self.searched + self.charged - seen
                return 0
            self.switch_to_eager(width)
        elif last and not self.strategy_fixed:
            self.sample_lazy_cost(way, width)
        seen = self.tables.places[way.place].visited
        self.transitions.join_place(way, width, &label)
        if step:
            self.weights.rows += before
            self.weights.eager += self.tables.places[way.place].visited - seen
        return 0

    cdef int switch_to_eager(self, uint32_t width) except -1 nogil:
        """Switch to the eager strategy: build the groups of the earlier rows of the window."""
        cdef instant_t now = self.window.now, since = self.event.since
        cdef const term_t* given = self.event.batch_row
        cdef uint64_t steps = steps_of(&self.event.effort), most = self.event.effort.max_steps
        self.lazy, self.event.effort.max_steps = False, UNLIMITED
        self.instant.changed_places = ~<uint64_t>0
        self._make_groups()
        if self.window.now != now:
            self.transitions.show_pending(0)
        self.window.now, self.event.since, self.event.effort.max_steps = now, since, most
        resume_effort(&self.event.effort, steps)
        set_row(self.event, given, width)
        self.event.store_row(width)
        self.switches += 1
        self.weights.settled = now
        self.weights.eager = self.weights.lazy = self.weights.rows = self.weights.trial = 0
        return 0

    cdef int _make_groups(self) except -1 nogil:
        """Replay the stored rows, instant by instant, as if they arrived now."""
        cdef uint32_t i, step = 0
        cdef uint64_t number
        cdef instant_t instant
        cdef RowBuffer* rows
        cdef Label* label
        cdef uint64_t* taken = self.replay_next
        for i in range(self.chain_length - 1):
            taken[i] = self.step_rows[i].first
        while True:
            instant = -1
            for i in range(self.chain_length - 1):
                rows, number = self.step_rows[i], taken[i]
                if number < rows.end and (
                    instant < 0 or rows.instants[number & (rows.room - 1)] < instant
                ):
                    instant, step = rows.instants[number & (rows.room - 1)], i
            if instant < 0:
                return 0
            if instant != self.window.now:
                self.transitions.show_pending(0)
                self.window.now = instant
            rows, number = self.step_rows[step], taken[step]
            taken[step] = number + 1
            if instant < self.window.bound:
                continue
            label = rows.labels[number & (rows.room - 1)]
            set_row(self.event, label.row, label.width)
            self.event.row_stored = True
            self.event.since = since_of(self.window)
            if self.tables.apart:
                self.event.since = self.partitions.since_at(label)
            self.transitions.join_place(
                &self.tables.ways[self.chain[step].way], label.width, &label
            )

    cdef int switch_to_lazy(self) except -1 nogil:
        """Switch to the lazy strategy: remove the groups, since the rows are stored."""
        cdef uint32_t i
        for i in range(1, self.chain_length):
            (<Groups>self.instant.groups_at[self.chain[i].place]).clear()
        self.instant.pending_count = self.instant.value_count = 0
        self.lazy, self.instant.changed_places = True, ~<uint64_t>0
        self.switches += 1
        if self.weights.rows:
            self.weights.each = self.weights.eager / self.weights.rows
        return 0

    def join(self, lazily):
        """Fix the strategy: lazy or eager; None: choose by cost."""
        self.strategy_fixed = lazily is not None
        self.fixed_lazy = bool(lazily)
        if self.fixed_lazy and self.chain_length and not self.lazy:
            self.switch_to_lazy()

    # ---------------------------------------------------------------- comparing costs

    cdef int sample_lazy_cost(self, EdgeRef* way, uint32_t width) except -1 nogil:
        """Sample the cost of joining the current row, of the last step, lazily."""
        cdef Weights* weights = &self.weights
        cdef double most = SAMPLING_SHARE * weights.eager + self.min_rows, spent
        cdef bint fits
        cdef uint64_t before = self.sampled + self.charged, tried
        if weights.trial >= most:
            weights.lazy += weights.mean
            return 0
        fits = self.search(way, width, True, <uint64_t>(most - weights.trial) + 1)
        tried = self.sampled + self.charged - before
        weights.trial += tried
        spent = tried if fits else LAZY_MIN_GAIN * tried # a lower bound
        weights.mean = spent if weights.mean == 0 else (3 * weights.mean + spent) / 4
        weights.lazy += spent
        return 0

    cdef uint64_t row_budget(self) noexcept nogil:
        """The number of rows that a search may examine before it exceeds the eager cost."""
        if self.strategy_fixed:
            return <uint64_t>-1
        return <uint64_t>max(self.weights.eager + self.min_rows - self.weights.lazy, 0)

    cdef bint prefers_lazy(self) noexcept nogil:
        """Whether to switch to the lazy strategy now."""
        cdef Weights* weights = &self.weights
        return (
            not self.strategy_fixed and not self.lazy and weights.settled < self.window.bound
            and weights.eager >= self.min_rows and LAZY_MIN_GAIN * weights.lazy <= weights.eager
        )

    cdef int decay_counts(self) noexcept nogil:
        """Decay the counts once per window."""
        cdef Weights* weights = &self.weights
        if self.window.bound <= weights.since:
            return 0
        weights.since = self.window.now
        weights.eager *= COUNT_DECAY_PER_WINDOW
        weights.lazy *= COUNT_DECAY_PER_WINDOW
        weights.rows *= COUNT_DECAY_PER_WINDOW
        weights.trial *= COUNT_DECAY_PER_WINDOW
        if self.lazy:
            weights.each *= EAGER_DECAY_PER_WINDOW
        return 0
