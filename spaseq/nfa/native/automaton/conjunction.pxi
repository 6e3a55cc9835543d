"""Conjunctions: the combinations of buffered rows that an edge may consume.

The search over an edge with several graph patterns starts once every pattern has a row. It begins
with the pattern that has the fewest rows, and uses an index for each further pattern that has a
bound column (Kolchinsky, Sharfman, Schuster: *Lazy evaluation methods for detecting complex
events*, DEBS 2015). A filter is evaluated as soon as its variables are bound. Patterns that an
index or such a filter makes selective are joined first.

Invariants: a search changes only its own scratch memory; rows are scanned newest first, so the
first combination for an edge of one pattern is the latest. Cost: the rows examined, counted in
`looked`, and as steps of the event (`spaseq.rdf.limits`).
"""

from libc.string cimport memcpy, memset

from spaseq.nfa.native._tecs cimport (
    UNINDEXED,
    assign,
    begin_iterations,
    bind,
    chain_newest,
    chain_older,
    filter_holds,
    filters_hold,
    numbers_of,
    row_before,
    row_until,
    rows_add,
    rows_alloc,
    rows_expire,
    rows_free,
    size_of_label,
)
from spaseq.rdf.limits import LimitReached
from spaseq.rdf.native._terms cimport count_step, is_beyond, mem_calloc, mem_free, mem_grow


cdef inline int64_t least_micros(const RowSearch* seek) noexcept nogil:
    """The least time, in microseconds, of the rows of a combination."""
    cdef uint32_t i
    cdef int64_t least = seek.labels[0].micros
    for i in range(seek.count):
        if seek.labels[i].micros < least:
            least = seek.labels[i].micros
    return least


cdef inline int64_t greatest_micros(const RowSearch* seek) noexcept nogil:
    """The greatest time, in microseconds, of the rows of a combination."""
    cdef uint32_t i
    cdef int64_t greatest = seek.labels[0].micros
    for i in range(seek.count):
        if seek.labels[i].micros > greatest:
            greatest = seek.labels[i].micros
    return greatest


cdef inline bint in_time(Tables tables, const RowSearch* seek, int64_t since) noexcept nogil:
    """Whether the rows of a combination respect the bound of its edge, counted from a time."""
    cdef int64_t within = tables.edges[seek.edge].within
    cdef uint32_t i
    if within >= 0:
        for i in range(seek.count):
            if is_beyond(seek.labels[i].micros, since, within):
                return False
    return True


cdef const char* FOR_GUARDS = b"what a guard looks for"

# Estimated selectivity of an index or a filter: one row in this many.
cdef uint64_t ROWS_PER_SELECTED_ROW = 8

# Exceeds the number of registers that a filter reads.
cdef uint32_t UNBINDABLE = 1 << 16


cdef class Conjunction:
    """The row buffers and the search over them; `rows` are `CoreTables`, with their `search`."""

    def __cinit__(
        self, rows, Tables tables not None, Window window not None, CurrentEvent event not None
    ):
        cdef uint32_t i
        found = rows.search
        self.tables, self.window, self.event, self.tecs = tables, window, event, event.tecs
        self.row_buffers = <RowBuffer**>mem_calloc(len(found.kept), sizeof(RowBuffer*))
        self.gpm_count = <uint32_t>len(found.kept)
        for i, columns in enumerate(found.kept):
            if columns is not None:
                self.row_buffers[i] = rows_alloc(columns)
                self.buffers_rows = True
        self.gpms = numbers_of(found.gpms)
        self.searches = ranges_of(found.searches)
        self.searchers = numbers_of(found.searchers)
        self.whole = <bint*>numbers_of(found.whole)
        self.columns = ranges_of(found.columns)
        self.column_numbers = numbers_of(found.column_numbers)
        self.place_edges = ranges_of(found.place_edges)
        self.edge_choices = ranges_of(found.edge_choices)
        self.edge_operands = ranges_of(found.edge_operands)
        self.any_order = <bint*>numbers_of(found.any_order)
        self.operand_choices = ranges_of(found.operand_choices)
        self.choices = ranges_of(found.choices)
        self.most_parts = max([end - first for first, end in found.choices], default=0)
        self.parts = <Part*>mem_calloc(len(found.parts), sizeof(Part))
        for i, (occurrence, operand, part) in enumerate(found.parts):
            self.parts[i] = Part(occurrence, self.gpms[occurrence], operand, part)
        self.early = ranges_of(found.early)
        self.early_tests = <EarlyFilter*>mem_calloc(len(found.early_tests), sizeof(EarlyFilter))
        for i, (number, first, end) in enumerate(found.early_tests):
            self.early_tests[i] = EarlyFilter(number, first, end)
        self.early_read = numbers_of(found.early_read)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.gpm_count):
            rows_free(self.row_buffers[i])
        mem_free(self.row_buffers)
        for i in range(self.level_room):
            mem_free(self.levels[i])
            mem_free(self.level_labels[i])
        mem_free(self.levels)
        mem_free(self.level_labels)
        mem_free(self.gpms)
        mem_free(self.searches)
        mem_free(self.searchers)
        mem_free(self.whole)
        mem_free(self.columns)
        mem_free(self.column_numbers)
        mem_free(self.place_edges)
        mem_free(self.edge_choices)
        mem_free(self.edge_operands)
        mem_free(self.any_order)
        mem_free(self.operand_choices)
        mem_free(self.choices)
        mem_free(self.parts)
        mem_free(self.early)
        mem_free(self.early_tests)
        mem_free(self.early_read)

    # ---------------------------------------------------------------- rows

    cdef int store_row(self, uint32_t gpm, uint32_t width, bint keyed) except -1 nogil:
        """Buffer the current row for as long as the window may reach its event."""
        cdef RowBuffer* rows = self.row_buffers[gpm]
        cdef Label* label = self.tecs.label(width)
        cdef uint32_t i, j
        if self.whole[gpm] and not self.event.row_stored:
            self.event.store_row(width)
        memcpy(label, &self.event.label, size_of_label(0))
        label.width = width
        if self.whole[gpm]:
            memcpy(label.row, self.event.row, width * sizeof(term_t))
        else:
            label.name = label.stamp = 0
            for i in range(self.columns[gpm].first, self.columns[gpm].end):
                j = self.column_numbers[i]
                if self.event.batch_row[j]:
                    label.row[j] = self.event.terms.intern(
                        self.event.batch, self.event.batch_row[j]
                    )
                    self.event.row[j] = label.row[j]
        rows_expire(rows, self.window.reach)
        self.last_label, self.last_gpm = label, gpm
        return rows_add(rows, label, keyed)

    cdef int search_edge(self, RowSearch* seek, const term_t* env) except -1 nogil:
        """Enumerate the combinations for the edge of a seek; 1 if the callback stopped it."""
        cdef uint32_t level = self.depth
        cdef term_t* entered
        cdef int stopped
        self.push_level()
        entered = self.levels[level]
        memcpy(entered, env, self.tables.cells * sizeof(term_t))
        begin_iterations(self.tables, &self.tables.edges[seek.edge], entered)
        seek.start = entered
        seek.choices = self.edge_choices[seek.edge]
        stopped = self.search(seek)
        self.depth = level
        return stopped

    cdef int search(self, RowSearch* seek) except -1 nogil:
        """Enumerate the combinations for a seek's choices; 1 if the callback stopped it."""
        cdef uint32_t i, level = self.depth
        cdef int stopped = 0
        if seek.low < self.window.reach - 1:
            seek.low = self.window.reach - 1
        self.push_level()
        seek.cells = self.levels[level]
        seek.labels = self.level_labels[level]
        for i in range(seek.choices.first, seek.choices.end):
            seek.parts = self.parts + self.choices[i].first
            seek.count = self.choices[i].end - self.choices[i].first
            seek.env = seek.cells + seek.count * self.tables.cells
            seek.assigned = seek.cells + (self.most_parts + 1) * self.tables.cells
            memcpy(seek.cells, seek.start, self.tables.cells * sizeof(term_t))
            memset(seek.labels, 0, seek.count * sizeof(Label*))
            stopped = self._search_choice(seek)
            if stopped:
                break
        self.depth = level
        return stopped

    cdef int _search_choice(self, RowSearch* seek) except -1 nogil:
        """Enumerate the combinations for one choice, once all its parts have rows."""
        cdef uint32_t i
        cdef RowBuffer* rows
        for i in range(seek.count):
            rows = self.row_buffers[seek.parts[i].gpm]
            rows_expire(rows, self.window.reach)
            if rows.first == rows.end:
                return 0
        if seek.new_row == NULL:
            return self._extend(seek, 0)
        for i in range(seek.count):
            if seek.parts[i].gpm == seek.new_gpm and (
                self._join_row(seek, 0, i, seek.new_row)
            ):
                return 1
        return 0

    cdef int _extend(self, RowSearch* seek, uint32_t depth) except -1 nogil:
        """Join the remaining parts; report the combination if none remains."""
        cdef uint32_t i
        cdef int status
        if depth < seek.count:
            return self._join_part(seek, depth, self._next_part(seek, depth))
        seek.first = seek.last = seek.labels[0].instant
        if self.tables.most_assigned:
            for i in range(seek.count):
                self.tables.conditions.instant = seek.labels[i].instant
                self.tables.conditions.stream = seek.labels[i].stream
                status = assign(
                    self.tables, seek.parts[i].occurrence, seek.env,
                    seek.assigned + i * self.tables.most_assigned,
                )
                self.tables.conditions.instant = -1
                if not status:
                    return 0
        for i in range(seek.count):
            self.tables.conditions.instant = seek.labels[i].instant
            self.tables.conditions.stream = seek.labels[i].stream
            status = filters_hold(self.tables, seek.parts[i].occurrence, seek.env)
            self.tables.conditions.instant = -1
            if status <= 0:
                return _raised() if status < 0 else 0
            if seek.labels[i].instant < seek.first:
                seek.first = seek.labels[i].instant
            if seek.labels[i].instant > seek.last:
                seek.last = seek.labels[i].instant
        return seek.found(seek.task, seek)

    cdef uint32_t _next_part(self, RowSearch* seek, uint32_t depth) noexcept nogil:
        """The remaining part with the fewest rows, by the estimated selectivity of each."""
        cdef uint32_t i, best = 0
        cdef uint64_t fewest = 0, count
        cdef RowBuffer* rows
        for i in range(seek.count):
            if seek.labels[i] == NULL:
                rows = self.row_buffers[seek.parts[i].gpm]
                count = rows.end - rows.first + 1
                if depth + 1 < seek.count and self._is_selective(seek, i, depth):
                    count = count // ROWS_PER_SELECTED_ROW + 1
                if fewest == 0 or count < fewest:
                    fewest, best = count, i
        return best

    cdef bint _is_selective(self, RowSearch* seek, uint32_t part, uint32_t depth) noexcept nogil:
        """Whether an index or a filter that becomes ready is selective for a part."""
        cdef const term_t* env = seek.cells + depth * self.tables.cells
        cdef Occurrence* occurrence = &self.tables.occurrences[seek.parts[part].occurrence]
        cdef RowBuffer* rows = self.row_buffers[seek.parts[part].gpm]
        cdef uint32_t i, j, k, missing
        cdef EarlyFilter* test
        for i in range(rows.index_count):
            j = occurrence.binding_first + rows.indexes[i].column
            if env[self.tables.bindings[j].register]:
                return True
        for i in range(seek.count):
            for j in range(
                self.early[seek.parts[i].occurrence].first, self.early[seek.parts[i].occurrence].end
            ):
                test = &self.early_tests[j]
                missing = 0
                for k in range(test.read_first, test.read_end):
                    if env[self.early_read[k]] == 0:
                        missing += 1 if self._binds(occurrence, self.early_read[k]) else UNBINDABLE
                if 0 < missing < UNBINDABLE:
                    return True
        return False

    cdef bint _binds(self, const Occurrence* occurrence, uint32_t number) noexcept nogil:
        """Whether rows of an occurrence may bind a register."""
        cdef uint32_t i
        for i in range(occurrence.binding_first, occurrence.binding_end):
            if self.tables.bindings[i].register == number:
                return True
        return False

    cdef int _join_part(self, RowSearch* seek, uint32_t depth, uint32_t part) except -1 nogil:
        """Join each buffered row to a part."""
        cdef RowBuffer* rows = self.row_buffers[seek.parts[part].gpm]
        cdef const term_t* env = seek.cells + depth * self.tables.cells
        cdef uint32_t i, index = UNINDEXED, slot
        cdef uint32_t columns = self.tables.occurrences[seek.parts[part].occurrence].binding_first
        cdef uint64_t number = 0
        cdef int64_t micros = 0
        cdef bint timed = False
        cdef term_t term
        cdef int stopped
        for i in range(seek.count):
            if seek.labels[i] != NULL and seek.parts[i].operand == seek.parts[part].operand:
                timed, micros = True, seek.labels[i].micros
        for i in range(rows.index_count):
            term = env[self.tables.bindings[columns + rows.indexes[i].column].register]
            if term:
                index, number = i, chain_newest(rows, i, term)
                break
        if index == <uint32_t>UNINDEXED:
            number = row_until(rows, micros) if timed else row_before(rows, seek.high)
        while number >= rows.first:
            slot = number & (rows.room - 1)
            if rows.instants[slot] <= seek.low or (timed and rows.labels[slot].micros < micros):
                break
            if not count_step(&self.event.effort):
                with gil:
                    raise LimitReached("steps")
            self.looked += 1
            if (
                rows.instants[slot] < seek.high
                and (rows.keyed[slot] or seek.negated)
                and (not timed or rows.labels[slot].micros == micros)
            ):
                stopped = self._join_row(seek, depth, part, rows.labels[slot])
                if stopped:
                    return 1
            if index == <uint32_t>UNINDEXED:
                number -= 1
            else:
                number = chain_older(rows, index, number)
        return 0

    cdef int _join_row(
        self, RowSearch* seek, uint32_t depth, uint32_t part, Label* label
    ) except -1 nogil:
        """Join one row to a part, and continue with the next part."""
        cdef const term_t* env = seek.cells + depth * self.tables.cells
        cdef term_t* joined = seek.cells + (depth + 1) * self.tables.cells
        cdef Occurrence* occurrence = &self.tables.occurrences[seek.parts[part].occurrence]
        cdef int stopped
        if self._has_event_of(seek, label):
            return 0
        memcpy(joined, env, self.tables.cells * sizeof(term_t))
        stopped = bind(self.tables, occurrence, label.row, joined)
        if stopped <= 0:
            occurrence.disagreed += 1
            return _raised() if stopped < 0 else 0
        if depth + 1 < seek.count and self._filter_fails(seek, env, joined):
            return 0
        seek.labels[part] = label
        stopped = self._extend(seek, depth + 1)
        seek.labels[part] = NULL
        return stopped

    cdef bint _filter_fails(
        self, RowSearch* seek, const term_t* env, term_t* joined
    ) except -1 nogil:
        """Whether a filter that the last row has made ready is not true."""
        cdef uint32_t i, j, k
        cdef bint ready, fresh
        cdef EarlyFilter* test
        cdef int status
        for i in range(seek.count):
            for j in range(
                self.early[seek.parts[i].occurrence].first, self.early[seek.parts[i].occurrence].end
            ):
                test = &self.early_tests[j]
                ready, fresh = True, False
                for k in range(test.read_first, test.read_end):
                    ready &= joined[self.early_read[k]] != 0
                    fresh |= env[self.early_read[k]] == 0
                if ready and fresh:
                    status = filter_holds(self.tables, test.number, joined)
                    if status <= 0:
                        return _raised() if status < 0 else True
        return False

    cdef bint _has_event_of(self, RowSearch* seek, const Label* label) noexcept nogil:
        """Whether the combination already contains the event of a row."""
        cdef uint32_t i
        cdef const Label* other
        for i in range(seek.count):
            other = seek.labels[i]
            if other != NULL and other.instant == label.instant and other.stream == label.stream:
                return True
        return False

    cdef int push_level(self) except -1 nogil:
        """Reserve the scratch memory of one more nested search."""
        cdef uint32_t room
        if self.depth == self.level_room:
            room = 2 * self.level_room + 8
            self.levels = <term_t**>mem_grow(self.levels, room, sizeof(term_t*), FOR_GUARDS)
            self.level_labels = <Label***>mem_grow(
                self.level_labels, room, sizeof(Label**), FOR_GUARDS
            )
            while self.level_room < room:
                self.levels[self.level_room] = <term_t*>mem_calloc(
                    (self.most_parts + 1) * self.tables.cells
                    + self.most_parts * self.tables.most_assigned,
                    sizeof(term_t),
                )
                self.level_labels[self.level_room] = NULL
                self.level_room += 1
                self.level_labels[self.level_room - 1] = <Label**>mem_calloc(
                    self.most_parts, sizeof(Label*)
                )
        self.depth += 1
        return 0


cdef int _raised() except -1 nogil:
    """Propagate the Python exception that a filter left."""
    return -1


cdef Range* ranges_of(pairs) except NULL:
    cdef Range* block = <Range*>mem_calloc(len(pairs), sizeof(Range))
    for i, (first, end) in enumerate(pairs):
        block[<size_t>i] = Range(first, end)
    return block
