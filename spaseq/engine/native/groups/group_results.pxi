"""Results of the core → groups of results, without Python objects.

`feed` advances the automaton. When matches are complete, the results of the instant are sorted as
the output stage sorts them, and added to their groups: keys and arguments are registers, found by
replaying the steps of the match, or bytecode over registers. It returns at an event whose groups
may have a solution: one for which no condition of HAVING is known to be false.

For queries whose results are independent of each other, see `spaseq.engine.native_groups`. Only
results with equal instants and streams, such as two rows of one event, are ordered in Python, by
their values.

Invariant: labels are read before the automaton advances. Cost: linear in the steps of each result,
and n log n for n results of an instant.
"""

from cpython.ref cimport PyObject, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from spaseq.engine.native._driver cimport NativeStep
from spaseq.engine.native._matches cimport DecodedStep, MatchDecoder, MatchMaker
from spaseq.gpm.native._bytecode cimport Expression
from spaseq.gpm.native._functions cimport ERROR, Operand, write_term
from spaseq.gpm.native.bytecode import ExpressionCode
from spaseq.gpm.python.aggregates import order_key, value_key
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._tecs cimport Label, Node, count_match, instant_t, since_of
from spaseq.rdf.native._terms cimport (
    WINDOWED,
    EventBatch,
    Numeral,
    TermRecord,
    check_signals,
    check_signals_rarely,
    exact_of,
    is_numeral,
    mem_calloc,
    mem_free,
    mem_grow,
    places_of,
    spell,
    term_t,
    written_term,
)
from spaseq.rdf.native._values cimport Kind

# A result: its labels, first event first.
cdef struct Found:
    uint64_t first      # index in `labels`
    uint32_t length
    uint32_t group

# A group whose solution may be output, and its newest result.
cdef struct Showing:
    uint32_t group
    uint32_t found

cdef enum:
    SIGNALS_EVERY = 1 << 20     # events between two checks of signals

# An event of the newest result of a group, before the sizes of the texts of its time, its name and
# its row, and the texts.
cdef struct Shown:
    int64_t micros
    uint64_t line
    instant_t instant
    uint32_t stream
    uint32_t file
    uint32_t ordinal
    uint32_t domain
    uint32_t edge
    uint32_t count


cdef int _compare(ResultReader self, uint32_t one, uint32_t other) noexcept nogil:
    """Compare two results by their instants, then by their streams: -1, 0 or 1."""
    cdef const Found* a = &self.found[one]
    cdef const Found* b = &self.found[other]
    cdef Label** first = self.labels + a.first
    cdef Label** second = self.labels + b.first
    cdef uint32_t i
    for i in range(min(a.length, b.length)):
        if first[i].instant != second[i].instant:
            return -1 if first[i].instant < second[i].instant else 1
    if a.length != b.length:
        return -1 if a.length < b.length else 1
    for i in range(a.length):
        if first[i].stream != second[i].stream:
            return -1 if first[i].stream < second[i].stream else 1
    return 0


cdef class ResultReader:
    """Reads the results of one query from its automaton.

    Args:
        groups: The groups that they are added to.
        maker: Decodes labels; its `ordering` names the variables that order results.
        replay: Replays matches; it is for this reader alone.
        values: Per key, then per argument: the register of a variable, or the code of an expression
            over registers.
        registers: The registers that the expressions read.
        cells: The number of registers.
        keys: The names of the keys.
        calls: The registered functions of the run.
    """

    cdef readonly NativeGroups groups
    cdef MatchMaker maker
    cdef AutomatonCore core
    cdef MatchDecoder replay
    cdef list names             # the variables and the keys that order results, by name: (name, key
                                # or None)
    cdef list expressions       # per key, then argument: its Expression; None for a variable
    cdef PyObject** linked      # the same; NULL for a variable
    cdef uint32_t* cells        # per key, then argument: the register of a variable
    cdef uint32_t* needed       # the registers that expressions read
    cdef uint32_t needed_count
    cdef int32_t* columns       # see `_find_columns`
    cdef uint64_t erring        # bits of the keys and arguments of a result that erred
    cdef term_t* env
    cdef Numeral* numerals      # spelt for the current key, then for the start and each argument
    cdef Label** labels         # of the results of the instant
    cdef uint64_t label_count, label_room
    cdef Found* found
    cdef uint32_t found_count, found_room
    cdef uint32_t* order        # the results in order
    cdef uint32_t* merged       # scratch of the same size
    cdef Showing* showing
    cdef uint32_t showing_count, showing_room
    cdef readonly uint32_t refused  # the position in its instant of a result that the groups refuse
    cdef uint64_t turn          # `match_generation` of the core after `take`

    def __cinit__(
        self, NativeGroups groups not None, MatchMaker maker not None, MatchDecoder replay not None,
        values, registers, uint32_t cells, keys, calls,
    ):
        cdef uint32_t i
        cdef list known = [(name, None) for name in maker.ordering.names]
        self.groups, self.maker, self.core, self.replay = groups, maker, maker.core, replay
        known += [(name, number) for number, name in enumerate(keys)]
        self.names = sorted(known, key=lambda named: named[0])
        self.expressions = [
            Expression(value, maker.dictionary, calls) if isinstance(value, ExpressionCode)
            else None
            for value in values
        ]
        self.linked = <PyObject**>mem_calloc(len(values) + 1, sizeof(PyObject*))
        self.cells = <uint32_t*>mem_calloc(len(values) + 1, sizeof(uint32_t))
        for i, value in enumerate(values):
            if self.expressions[i] is None:
                self.cells[i] = value
            else:
                self.linked[i] = <PyObject*>self.expressions[i]
        self.needed_count = <uint32_t>len(registers)
        self.needed = <uint32_t*>mem_calloc(self.needed_count + 1, sizeof(uint32_t))
        for i, register in enumerate(registers):
            self.needed[i] = register
        self.env = <term_t*>mem_calloc(cells + 1, sizeof(term_t))
        self._find_columns()
        self.numerals = <Numeral*>mem_calloc(len(values) + 2, sizeof(Numeral))

    @property
    def errors(self):
        """The errors of the keys and arguments, as `ErrorCount`; None for variables."""
        return [
            None if each is None else (<Expression>each).errors for each in self.expressions
        ]

    def __dealloc__(self):
        mem_free(self.linked)
        mem_free(self.cells)
        mem_free(self.needed)
        mem_free(self.columns)
        mem_free(self.env)
        mem_free(self.numerals)
        mem_free(self.labels)
        mem_free(self.found)
        mem_free(self.order)
        mem_free(self.merged)
        mem_free(self.showing)

    cdef int _find_columns(self) except -1:
        """Find the columns of results of one event: per edge and needed register, or -1."""
        cdef uint32_t edge, i, place
        cdef uint32_t edges = self.replay.edge_count
        cdef uint32_t width = max([len(variables) for _, variables in self.replay.steps])
        cdef uint32_t* bound = <uint32_t*>mem_calloc(width + 1, sizeof(uint32_t))
        for i in range(width):
            bound[i] = True
        self.columns = <int32_t*>mem_calloc(edges * self.needed_count + 1, sizeof(int32_t))
        for edge in range(edges):
            self.replay.begin()
            self.replay.follow_event(0, self.replay.part_first[edge], 1, bound)
            for i in range(self.needed_count):
                place = edge * self.needed_count + i
                self.columns[place] = -1
                if self.replay.origins[self.needed[i]].step:
                    self.columns[place] = <int32_t>self.replay.origins[self.needed[i]].column
        mem_free(bound)
        return 0

    # ------------------------------------------------------------------ events

    cpdef uint32_t feed(
        self, EventBatch batch, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF:
        """Process the events of a batch from `first` on, as `NativeStep.run` does.

        Returns the index of the next event, as `NativeStep.run` does, but continues after an event
        whose groups have no solution.
        """
        cdef uint32_t index = first, before, checked = first
        cdef NativeStep step = self.maker.step
        step._select_batch(batch, stream)
        try:
            with nogil:
                while index < batch.event_count:
                    before = index
                    index = step._run(before, stream, file, position + before - first)
                    if index == before:
                        break
                    if self.core.instant.accepted_count and not self.take():
                        break
                    if index - checked >= <uint32_t>SIGNALS_EVERY:
                        checked = index
                        check_signals()
        finally:
            step._release_batch()
        return index

    def read(self):
        """Add the results that are now complete to their groups."""
        if self.core.instant.accepted_count:
            self.take()

    cdef int take(self) except -1 nogil:
        """Add the results of an instant to their groups; False if Python must continue with it.

        It must if a group may have a solution, if a tumbling window has begun, or if the groups
        refuse a result. Then the results are still in the automaton, for Python to read.
        """
        cdef uint32_t i, number
        cdef Found* found
        cdef bint empty = self.groups.held == 0
        self.found_count = 0
        self.label_count = 0
        self.showing_count = 0
        self.refused = 0
        self._collect()
        if self.found_count > 1:
            self._sort()
        self.groups.instant += 1
        for i in range(self.found_count):
            check_signals_rarely(i)
            found = &self.found[self.order[i]]
            number = 0
            if self._read(found):
                # The match ends with this event, and starts with its first one.
                number = self.groups.insert(
                    self.labels[found.first].micros, self.labels[found.first].domain,
                    self.labels[found.first + found.length - 1].micros,
                )
            if number == 0:
                self.refused = i + 1
                return False
            found.group = number
            if self.groups.tumbling:
                self._remember(found)
        self.core.event.match_generation += 1
        self.core.instant.accepted_count = 0
        if self.groups.tumbling:
            return not empty or self.found_count == 0
        self._show()
        self.turn = self.core.event.match_generation
        return self.showing_count == 0

    # ------------------------------------------------------------------ the results of an instant

    cdef int _collect(self) except -1 nogil:
        """List the complete matches."""
        cdef uint32_t i
        cdef Node* node
        cdef instant_t since = since_of(self.core.window)
        for i in range(self.core.instant.accepted_count):
            node = self.core.instant.accepted[i]
            if self.core.tables.apart:
                since = self.core.since_at(node)
            # A later event of the instant may have moved the window past a match of one event.
            if node.before == 0 and node.latest >= since:
                if not self._add_path(&node.label, 1):
                    break
                continue
            self.core.transitions.walk.begin(node, since)
            while self.core.transitions.walk.advance():
                if not self._add_path(
                    self.core.transitions.walk.path, self.core.transitions.walk.length
                ):
                    return 0
        return 0

    cdef bint _add_path(self, Label** path, uint32_t length) except -1 nogil:
        """List a match by its labels, the last event's first; False if it is dropped."""
        cdef uint32_t i, room
        cdef uint64_t wider
        cdef Found* found
        cdef uint64_t listed = self.found_count
        if not count_match(self.core.event, &listed):
            return False
        if self.label_count + length > self.label_room:
            wider = max(<uint64_t>64, 2 * (self.label_count + length))
            self.labels = <Label**>mem_grow(
                self.labels, wider, sizeof(Label*), b"the results of an instant"
            )
            self.label_room = wider
        if self.found_count == self.found_room:
            room = max(<uint32_t>16, 2 * self.found_room)
            self.found = <Found*>mem_grow(
                self.found, room, sizeof(Found), b"the results of an instant"
            )
            self.order = <uint32_t*>mem_grow(
                self.order, room, sizeof(uint32_t), b"the results of an instant"
            )
            self.merged = <uint32_t*>mem_grow(
                self.merged, room, sizeof(uint32_t), b"the results of an instant"
            )
            self.found_room = room
        found = &self.found[self.found_count]
        found.first, found.length = self.label_count, length
        for i in range(length):
            self.labels[self.label_count + i] = path[length - 1 - i]
        self.order[self.found_count] = self.found_count
        self.label_count += length
        self.found_count += 1
        return True

    cdef int _sort(self) except -1 nogil:
        """Sort the results by a merge sort."""
        cdef uint32_t width = 1, low, middle, high, i, j, k
        cdef uint32_t* sorted_
        cdef bint tied = False
        while width < self.found_count:
            low = 0
            while low < self.found_count:
                middle = min(low + width, self.found_count)
                high = min(middle + width, self.found_count)
                i, j = low, middle
                for k in range(low, high):
                    check_signals_rarely(k)
                    if i < middle and (
                        j == high or _compare(self, self.order[i], self.order[j]) <= 0
                    ):
                        self.merged[k] = self.order[i]
                        i += 1
                    else:
                        self.merged[k] = self.order[j]
                        j += 1
                low = high
            sorted_, self.order, self.merged = self.merged, self.merged, self.order
            width *= 2
        for i in range(1, self.found_count):
            if _compare(self, self.order[i - 1], self.order[i]) == 0:
                self._settle_ties()
                break
        return 0

    cdef int _settle_ties(self) except -1 with gil:
        """Order the results of equal instants and streams by their values."""
        cdef uint32_t first = 0, after, i
        while first < self.found_count:
            after = first + 1
            while after < self.found_count and (
                _compare(self, self.order[first], self.order[after]) == 0
            ):
                after += 1
            if after > first + 1:
                numbers = [self.order[i] for i in range(first, after)]
                numbers.sort(key=self._values)
                for i, number in enumerate(numbers, first):
                    self.order[i] = number
            first = after
        return 0

    def _values(self, uint32_t number):
        """The sort key of a result among those of its instants, in the order of `OutputStage`."""
        cdef tuple steps = self.steps(number)
        cdef dict bindings = self.maker.ordering.bindings(steps, None)
        cdef const char* text = NULL
        cdef uint32_t size = 0
        cdef list values = []
        self._fill(&self.found[number])
        for name, key in self.names:
            if key is None:
                values.append(bindings.get(name))
            else:
                self._value(key, &self.numerals[0], &text, &size)
                values.append(written_term(text[:size]) if size else None)
        return (
            list(map(value_key, values)),
            list(map(order_key, values)),
            [self.replay.parts[(<DecodedStep>step).part].occurrence for step in steps],
            [[order_key(term) for term in (<DecodedStep>step).read()[2:]] for step in steps],
        )

    cdef int _show(self) except -1 nogil:
        """List the groups that may have a solution, in the order of their newest results."""
        cdef uint32_t i = self.found_count, room, at
        cdef Found* found
        cdef Group* group
        while i:
            i -= 1
            found = &self.found[self.order[i]]
            group = &self.groups.groups[found.group]
            if group.touched == self.groups.instant:
                continue
            group.touched = self.groups.instant
            if not self.groups.may_hold(group):
                continue
            if self.showing_count == self.showing_room:
                room = max(<uint32_t>16, 2 * self.showing_room)
                self.showing = <Showing*>mem_grow(
                    self.showing, room, sizeof(Showing), b"the results of an instant"
                )
                self.showing_room = room
            self.showing[self.showing_count].group = found.group
            self.showing[self.showing_count].found = self.order[i]
            self.showing_count += 1
        for i in range(self.showing_count // 2):
            at = self.showing_count - 1 - i
            self.showing[i], self.showing[at] = self.showing[at], self.showing[i]
        return 0

    # ------------------------------------------------------------------ one result

    cdef int _fill(self, const Found* found) noexcept nogil:
        """Find the values of the registers of a result."""
        cdef uint32_t i
        cdef const Label* label
        cdef const int32_t* columns
        if found.length == 1:
            label = self.labels[found.first]
            columns = self.columns + label.edge * self.needed_count
            for i in range(self.needed_count):
                self.env[self.needed[i]] = label.row[columns[i]] if columns[i] >= 0 else 0
            return 0
        self.replay.begin()
        for i in range(found.length):
            label = self.labels[found.first + i]
            self.replay.follow_event(i, self.replay.part_of(label), 1, <const uint32_t*>label.row)
        for i in range(self.needed_count):
            self.env[self.needed[i]] = 0
            if self.replay.origins[self.needed[i]].step:
                label = self.labels[found.first + self.replay.origins[self.needed[i]].step - 1]
                self.env[self.needed[i]] = label.row[self.replay.origins[self.needed[i]].column]
        return 0

    cdef int _read(self, const Found* found) except -1 nogil:
        """Read the key and the arguments of a result; False if the groups refuse a number."""
        cdef const TermRecord* record
        cdef const char* text = NULL
        cdef uint32_t i, size = 0
        cdef term_t term
        self._fill(found)
        self.erring = 0
        self.groups.key_size = 0
        for i in range(self.groups.key_count):
            self._value(i, &self.numerals[0], &text, &size)
            self.groups.put_key(text, size)
        self.groups.sizes[0] = 0
        term = self.labels[found.first].stamp
        if term:
            record = self._record(term, &self.numerals[0])
            self.groups.texts[0], self.groups.sizes[0] = record.text, record.size
        for i in range(self.groups.argument_count):
            self._value(
                self.groups.key_count + i, &self.numerals[i + 1], &self.groups.texts[i + 1],
                &self.groups.sizes[i + 1],
            )
            self.groups.numbers[i].unbound = self.groups.sizes[i + 1] == 0
            if self.groups.numbers[i].unbound:
                continue
            if self.linked[self.groups.key_count + i] == NULL:
                term = self.env[self.cells[self.groups.key_count + i]]
                if is_numeral(term):
                    self.groups.numbers[i].kind = Kind.DECIMAL if places_of(term) else Kind.INTEGER
                    self.groups.numbers[i].exact = exact_of(term)
                    continue
            if not self.groups.read(i, self.groups.texts[i + 1], self.groups.sizes[i + 1]):
                return False
        if self.erring:
            self._count_errors()
        return True

    cdef int _count_errors(self) except -1 nogil:
        """Count the errors of a result that the groups accept; Python reads the others again."""
        cdef uint32_t i
        for i in range(min(self.groups.key_count + self.groups.argument_count, 64)):
            if self.erring >> i & 1 and self.linked[i] != NULL:
                (<Expression>self.linked[i]).count_error(self.maker.step.batch, self.env)
        return 0

    cdef const TermRecord* _record(self, term_t term, Numeral* numeral) noexcept nogil:
        """The record of a term of a label; a numeral is spelt into `numeral`."""
        if is_numeral(term):
            return spell(numeral, term)
        if term & WINDOWED:
            return &self.core.event.terms.store.records[term ^ WINDOWED]
        return &self.maker.dictionary.permanent.records[term]

    cdef int _value(
        self, uint32_t place, Numeral* numeral, const char** text, uint32_t* size
    ) except -1 nogil:
        """The text of a key or an argument, valid until the next result; size 0: unbound."""
        cdef const TermRecord* record
        cdef Operand* found
        cdef term_t term
        text[0], size[0] = NULL, 0
        if self.linked[place] == NULL:
            term = self.env[self.cells[place]]
            if term:
                record = self._record(term, numeral)
                text[0], size[0] = record.text, record.size
            return 0
        found = &(<Expression>self.linked[place]).stack[1]
        (<Expression>self.linked[place])._run(self.maker.step.batch, self.env, NULL)
        if found.kind == ERROR:
            self.erring |= <uint64_t>1 << min(place, 63)
            return 0
        (<Expression>self.linked[place]).has_value = True
        write_term(found, &(<Expression>self.linked[place]).scratch)
        text[0], size[0] = found.whole, found.whole_size
        return 0

    # ------------------------------------------------------------------ the events of a result

    cdef int _remember(self, const Found* found) except -1 nogil:
        """Copy the events of the newest result of a tumbling group."""
        cdef Group* group = &self.groups.groups[found.group]
        cdef uint32_t i, j
        cdef size_t size = 0
        cdef const Label* label
        cdef const TermRecord* record
        cdef Shown shown
        cdef char* sizes
        cdef char* text
        cdef term_t term
        for i in range(found.length):
            label = self.labels[found.first + i]
            size += sizeof(Shown) + (label.width + 2) * sizeof(uint32_t)
            for j in range(label.width + 2):
                term = label.stamp if j == 0 else label.name if j == 1 else label.row[j - 2]
                if term:
                    size += self._record(term, &self.numerals[0]).size
        if size > group.shown_room:
            group.shown = <char*>mem_grow(group.shown, 2 * size, 1, b"the events of a group")
            group.shown_room = 2 * size
        text = group.shown
        for i in range(found.length):
            label = self.labels[found.first + i]
            memset(&shown, 0, sizeof(Shown))
            shown.micros, shown.line, shown.instant = label.micros, label.line, label.instant
            shown.stream, shown.file, shown.ordinal = label.stream, label.file, label.ordinal
            shown.domain, shown.edge, shown.count = label.domain, label.edge, label.width + 2
            memcpy(text, &shown, sizeof(Shown))
            sizes = text + sizeof(Shown)
            text = sizes + shown.count * sizeof(uint32_t)
            for j in range(shown.count):
                term = label.stamp if j == 0 else label.name if j == 1 else label.row[j - 2]
                size = 0
                if term:
                    record = self._record(term, &self.numerals[0])
                    size = record.size
                    memcpy(text, record.text, size)
                    text += size
                memcpy(sizes + j * sizeof(uint32_t), &size, sizeof(uint32_t))
        group.shown_size = text - group.shown
        return 0

    cdef tuple steps(self, uint32_t found):
        """The steps of a result, decoded on demand."""
        cdef uint64_t first = self.found[found].first
        cdef uint32_t i, length = self.found[found].length
        cdef tuple steps = PyTuple_New(length)
        cdef DecodedStep taken
        if self.maker.epoch != self.core.tecs.oldest:
            self.maker.forget()
            self.maker.epoch = self.core.tecs.oldest
        for i in range(length):
            taken = self.maker.step_of_label(self.labels[first + i])
            Py_INCREF(taken)
            PyTuple_SET_ITEM(steps, i, taken)
        return steps

    cdef int64_t last_time(self) noexcept nogil:
        """The time of the last instant whose groups may have solutions."""
        cdef const Found* found = &self.found[self.showing[0].found]
        return self.labels[found.first + found.length - 1].micros

    cdef tuple shown_steps(self, uint32_t number):
        """The steps of the newest result of a tumbling group; None if Python added that result."""
        cdef const Group* group = &self.groups.groups[number]
        cdef const char* text = group.shown
        cdef Shown shown
        cdef DecodedStep taken
        cdef uint32_t i, width
        cdef size_t size
        cdef list steps = []
        if group.shown_size == 0:
            return None
        while text < group.shown + group.shown_size:
            memcpy(&shown, text, sizeof(Shown))
            text += sizeof(Shown)
            size = shown.count * sizeof(uint32_t)
            for i in range(shown.count):
                memcpy(&width, text + i * sizeof(uint32_t), sizeof(uint32_t))
                size += width
            taken = DecodedStep.__new__(DecodedStep)
            taken.part, taken.events = self.replay.part_first[shown.edge], 1
            taken.micros, taken.ordinal, taken.domain = shown.micros, shown.ordinal, shown.domain
            taken.stream, taken.count = shown.stream, shown.count
            taken.texts = text[:size]
            text += size
            steps.append(taken)
        return tuple(steps)

    def shown(self, uint32_t number):
        """The events of the newest result of a tumbling group; none if Python added that result.

        Each is (edge, microseconds, whether it is a date, line, stream, file, ordinal, instant,
        terms): the literal of its time, its name and its row, None where one is missing.
        """
        cdef const Group* group = &self.groups.groups[number]
        cdef const char* text = group.shown
        cdef const char* sizes
        cdef Shown shown
        cdef uint32_t size, j
        cdef list events = [], terms
        while text < group.shown + group.shown_size:
            memcpy(&shown, text, sizeof(Shown))
            sizes = text + sizeof(Shown)
            text = sizes + shown.count * sizeof(uint32_t)
            terms = []
            for j in range(shown.count):
                memcpy(&size, sizes + j * sizeof(uint32_t), sizeof(uint32_t))
                terms.append(written_term(text[:size]) if size else None)
                text += size
            events.append((
                shown.edge, shown.micros, shown.domain, shown.line, shown.stream, shown.file,
                shown.ordinal, shown.instant, terms,
            ))
        return events
