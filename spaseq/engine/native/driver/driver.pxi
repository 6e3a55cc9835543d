"""`NativeStep`: encoded events → graph patterns → automaton, without Python objects.

The driver matches an event against the patterns that some place waits for, and feeds the rows to
the automaton, whose residual filters are bytecode over the same term numbers. `run` does so for the
events of a batch, and returns after an event that completes a match.

Only patterns and filters without a native form run in Python: the event is decoded to an `Event`,
the rows of the pattern are encoded in the event's batch, and the registers that a filter reads are
decoded. The window stores events that filters read after their instant (`recalls`).
"""

from collections import OrderedDict
from functools import partial
from libc.stdint cimport INT64_MAX

from spaseq.gpm.native._bytecode cimport Expression
from spaseq.gpm.native._functions cimport ERROR, Operand, write_term
from spaseq.gpm.native._matcher cimport present_in, row_at
from spaseq.gpm.native.bytecode import ExpressionCode
from spaseq.nfa.native._automaton cimport ends_before
from spaseq.nfa.native._selection cimport Selection
from spaseq.nfa.native._tecs cimport Node
from spaseq.rdf.native._literals cimport Box
from spaseq.rdf.native._terms cimport (
    STEPS_PER_CLOCK_READ,
    WINDOWED,
    check_signals,
    mem_calloc,
    mem_free,
    text_of,
)

cdef enum Manner:
    IN_PYTHON = 1       # Python evaluates the pattern
    RECALLED = 2        # filters read its events after their instant

# Up to this many events take less time than releasing and reacquiring the GIL.
cdef uint32_t GIL_HELD_MAX_EVENTS = 1

ctypedef int (*Holding)(NativeStep, uint32_t, term_t*) noexcept nogil

ctypedef int (*Testing)(NativeStep, uint32_t, term_t*) noexcept nogil

ctypedef bint (*Bounding)(
    NativeStep, uint32_t, const term_t*, const Box*, uint64_t
) noexcept nogil

ctypedef int (*Valuing)(NativeStep, uint32_t, uint32_t, term_t*, term_t*) noexcept nogil

ctypedef term_t (*Adding)(NativeStep, uint32_t, term_t, term_t) noexcept nogil


cdef int _holding(NativeStep step, uint32_t occurrence, term_t* env) except -1 nogil:
    """Whether all residual filters of an occurrence are true."""
    cdef uint32_t i
    if has_views(step.views, occurrence):
        step.views.refresh(step.batch, occurrence, env)
    for i in range(step.test_first[occurrence], step.test_first[occurrence + 1]):
        if not _testing(step, i, env):
            return 0
    return 1


cdef inline int _testing(NativeStep step, uint32_t number, term_t* env) except -1 nogil:
    """Whether one residual filter is true."""
    cdef int found
    cdef uint64_t* count
    step.evaluations += 1
    if step.tests[number] == NULL:
        if step.ask(number, env):
            return 1
    else:
        found = (<Expression>step.tests[number]).truth(step.batch, env, NULL)
        if found == 1:
            return 1
        if found < 0 and step.conditions.uncounted:
            count = &(<Expression>step.tests[number]).error_count
            count[0] -= 1
    step.untrue[number] += not step.conditions.uncounted
    return 0


cdef bint _bounding(
    NativeStep step, uint32_t number, const term_t* env, const Box* box, uint64_t rows
) noexcept nogil:
    """Whether a residual filter may be true for some of `rows` rows within a box."""
    if step.tests[number] == NULL:
        return True
    step.evaluations += 1
    if (<Expression>step.tests[number]).may_hold(step.batch, env, box):
        return True
    if not step.conditions.uncounted:
        step.untrue[number] += rows
    return False


cdef int _valuing(
    NativeStep step, uint32_t occurrence, uint32_t position, term_t* env, term_t* value
) except -1 with gil:
    """The value of one of the BINDs of an occurrence."""
    cdef Expression expression
    cdef Operand* found
    cdef bytes text
    given = (<list>step.assigned[occurrence])[position]
    number = <uint32_t>len(step.filters) + step.assigned_first[occurrence] + position
    step.views.refresh(step.batch, number, env)
    value[0] = 0
    if not isinstance(given, Expression):
        term = step.answer(given, env)
        if term is not None:
            text = text_of(term)
            value[0] = step.aggregates.known(text, <uint32_t>len(text))
        return 0
    expression = <Expression>given
    found = &expression.stack[1]
    expression._run(step.batch, env, NULL)
    if found.kind == ERROR:
        expression.count_error(step.batch, env)
        return 0
    expression.has_value = True
    if found.term:
        value[0] = step.window.intern(step.batch, found.term)
    else:
        write_term(found, &expression.scratch)
        value[0] = step.aggregates.known(found.whole, found.whole_size)
    return 0


cdef term_t _adding(NativeStep step, uint32_t register, term_t state, term_t value) except 0 nogil:
    return step.aggregates.add(step.batch, register, state, value)


# A Python exception remains set, and the automaton propagates it.
cdef int _hold(void* context, uint32_t occurrence, term_t* env) noexcept nogil:
    return (<Holding>_holding)(<NativeStep>context, occurrence, env)


cdef int _test(void* context, uint32_t number, term_t* env) noexcept nogil:
    return (<Testing>_testing)(<NativeStep>context, number, env)


cdef bint _may(
    void* context, uint32_t number, const term_t* env, const Box* box, uint64_t rows
) noexcept nogil:
    return (<Bounding>_bounding)(<NativeStep>context, number, env, box, rows)


cdef int _value(
    void* context, uint32_t occurrence, uint32_t position, term_t* env, term_t* value
) noexcept nogil:
    return (<Valuing>_valuing)(<NativeStep>context, occurrence, position, env, value)


cdef term_t _add(void* context, uint32_t register, term_t state, term_t value) noexcept nogil:
    return (<Adding>_adding)(<NativeStep>context, register, state, value)


def _read_cells(values, cells):
    """The terms of some cells."""
    return {cell: values[cell] for cell in cells}


cdef class NativeStep:
    """Drives one query: its readers, its automaton and its residual filters.

    Args:
        core: the automaton.
        patterns: the matchers of the run (spaseq.gpm.matchers.Matchers).
        tasks: per GPM of the query, the number of its pattern.
        filters: per occurrence, its residual filters (`ResidualTest`).
        assigned: per occurrence, its BINDs over a partial match (`Valuation`).
        views: for the filters of each occurrence, then for each BIND, the views that they read:
            (register, cell, kind) as from `RegisterFile.needed_views`.
        aggregates: the aggregates among the registers.
        readers: per stream, the GPMs that read it.
        recalled: per GPM, whether filters read its events after their instant.
        window: the terms that the automaton holds. The matchers share them, unless the query counts
            events and other queries count different events.
    """

    def __cinit__(
        self, AutomatonCore core not None, patterns, tasks, filters, assigned, views,
        NativeAggregates aggregates not None, readers, recalled, WindowTerms window not None,
    ):
        cdef uint32_t i, width = 0
        self.core = core
        self.patterns = patterns
        self.graph = patterns.graph
        self.window = window
        self.apart = window is not patterns.window
        self.tasks = list(tasks)
        self.matchers = [patterns.wholly_native(task) for task in tasks]
        self.native = <PyObject**>mem_calloc(len(tasks), sizeof(PyObject*))
        self.manners = <uint8_t*>mem_calloc(len(tasks), sizeof(uint8_t))
        self.recalls = OrderedDict()
        self.errors_before = {}
        for i, matcher in enumerate(self.matchers):
            self.native[i] = <PyObject*>matcher
            self.manners[i] = Manner.RECALLED if recalled[i] else 0
            if matcher is None:
                self.manners[i] |= Manner.IN_PYTHON
                columns = patterns.patterns[self.tasks[i]].program.variables
                width = max(width, <uint32_t>len(columns))
        self.row = <term_t*>mem_calloc(width, sizeof(term_t))
        self._link_tests(patterns, filters)
        self.aggregates = aggregates
        self.assigned = [
            [
                Expression(value, self.graph.dictionary, patterns.calls)
                if isinstance(value, ExpressionCode) else value
                for value in some
            ]
            for some in assigned
        ]
        self.assigned_first = <uint32_t*>mem_calloc(len(self.assigned), sizeof(uint32_t))
        for i in range(1, <uint32_t>len(self.assigned)):
            self.assigned_first[i] = self.assigned_first[i - 1] + <uint32_t>len(
                self.assigned[i - 1]
            )
        self.views = Views(views, aggregates)
        self.dispatch = Dispatch(core, self.graph, window, readers, [
            None if self.manners[<uint32_t>gpm] else matcher
            for gpm, matcher in enumerate(self.matchers)
        ])
        self.conditions.hold, self.conditions.test, self.conditions.may = _hold, _test, _may
        self.conditions.value, self.conditions.add = _value, _add
        self.conditions.context = <void*>self
        self.conditions.instant = -1
        core.tables.conditions = &self.conditions
        self.deadline = INT64_MAX
        self.steady = not core.needs_every_instant() and self.graph.deriver is None
        # Guards are also decided between two events, when there is no batch.
        self.idle = EventBatch(self.graph.dictionary)
        self.idle.window = &self.window.store
        self.batch = self.idle
        self.recalled = EventBatch(self.graph.dictionary)

    cdef int _link_tests(self, object patterns, filters) except -1:
        cdef uint32_t i, first = 0
        cdef Dictionary dictionary = self.graph.dictionary
        self.filters = [
            [
                Expression(test, dictionary, patterns.calls)
                if isinstance(test, ExpressionCode) else test
                for test in some
            ]
            for some in filters
        ]
        tests = [test for some in self.filters for test in some]
        self.others = [None if isinstance(test, Expression) else test for test in tests]
        self.tests = <PyObject**>mem_calloc(len(tests), sizeof(PyObject*))
        self.untrue = <uint64_t*>mem_calloc(len(tests), sizeof(uint64_t))
        self.test_first = <uint32_t*>mem_calloc(len(self.filters) + 1, sizeof(uint32_t))
        for i, test in enumerate(tests):
            if self.others[i] is None:
                self.tests[i] = <PyObject*>test
        for i, some in enumerate(self.filters):
            self.test_first[i] = first
            first += <uint32_t>len(some)
        self.test_first[len(self.filters)] = first
        return 0

    def __dealloc__(self):
        mem_free(self.assigned_first)
        mem_free(self.native)
        mem_free(self.manners)
        mem_free(self.row)
        mem_free(self.tests)
        mem_free(self.untrue)
        mem_free(self.test_first)

    def untrue_counts(self, uint32_t occurrence):
        """Per residual filter of an occurrence: how often it was the first one that was not true.

        If a filter excludes a block of rows, all rows of the block count for it.
        """
        return [
            self.untrue[i]
            for i in range(self.test_first[occurrence], self.test_first[occurrence + 1])
        ]

    def untrue_on(self, uint32_t occurrence, counts):
        """Add the counts of another run."""
        cdef uint32_t i
        for i, count in enumerate(counts, self.test_first[occurrence]):
            self.untrue[i] += count

    def errors(self, uint32_t occurrence):
        """The number of errors by cells, per BIND and then per filter over partial matches."""
        found = [each.errors for each in (*self.assigned[occurrence], *self.filters[occurrence])]
        before = self.errors_before.get(occurrence)
        return found if before is None else [a + b for a, b in zip(before, found, strict=True)]

    def errors_on(self, uint32_t occurrence, counts):
        """Add the errors of another run."""
        before = self.errors_before.get(occurrence)
        if before is not None:
            counts = [a + b for a, b in zip(before, counts, strict=True)]
        self.errors_before[occurrence] = counts

    # ---------------------------------------------------------------- beyond bytecode and triples

    cdef int ask(self, uint32_t number, const term_t* env) except -1 with gil:
        """Whether a filter without bytecode is true."""
        question = self.others[number]
        if isinstance(question, GraphTest):
            return self.test_graph(<GraphTest>question, env)
        return self.answer(question, env) is True

    cdef object answer(self, question, const term_t* env):
        """The value that Python computes for a question in an environment; None is an error."""
        cdef uint32_t cell
        cdef term_t term
        cdef list values
        values = [None] * self.core.tables.cells
        for cell in question.cells:
            term = env[cell]
            if term & WINDOWED:
                values[cell] = self.window.term(term)
            elif term:
                values[cell] = self.batch.term(term)
        event = None
        if question.reads_event:
            if self.conditions.instant < 0:
                event = self._event()
            else:
                event = self.recalls[self.conditions.instant, self.conditions.stream]
        answer = question.answer(values, event)
        question.errors.see(answer, partial(_read_cells, values, question.cells))
        return answer

    cdef bint test_graph(self, GraphTest test, const term_t* env) except -1:
        """Whether a filter that reads the event of its row is true."""
        if self.conditions.instant < 0:
            self.graph.load(self.batch, self.index)
            return test.holds(self.batch, self.batch, env)
        key = self.conditions.instant, self.conditions.stream
        if key != self.recalled_key:
            self.recalled_key = None
            self.patterns.encode_into(self.recalled, self.recalls[key])
            self.recalled_key = key
        self.graph.load(self.recalled, 0)
        self.recalled.window = &self.window.store
        try:
            return test.holds(self.batch, self.recalled, env)
        finally:
            self.recalled.window = NULL
            if self.batch is not self.idle:
                self.graph.load(self.batch, self.index)

    cdef object _event(self):
        """The current event, decoded for Python."""
        if self.shown_serial != self.batch.serial or self.shown_index != self.index:
            self.shown = self.patterns.event(self.batch, self.index)
            self.shown_serial, self.shown_index = self.batch.serial, self.index
        return self.shown

    def forget_encoded(self):
        """Encode the recalled events again, since more terms have become permanent."""
        self.recalled_key = None

    def recall(self, instant: int, stream: int, event) -> None:
        """Store an event for filters, as long as the window covers it.

        Call it in the order of instants.
        """
        while self.recalls and next(iter(self.recalls))[0] < self.core.window.reach:
            self.recalls.popitem(last=False)
        self.recalls[instant, stream] = event

    cdef bint feed_in_python(self, uint32_t gpm, const Reader* reader) except -1 with gil:
        """Feed the rows of a pattern in Python, and recall the event if filters read it later.

        Returns False for a native pattern, whose rows the caller feeds.
        """
        cdef NativeMatcher matcher
        if not self.manners[gpm] & Manner.IN_PYTHON:
            matcher = <NativeMatcher>self.native[gpm]
            matcher.match_event(self.batch, self.index)
            if matcher.result.count:
                self.recall(self.core.window.now, self.stream, self._event())
            return False
        rows, kept = self.patterns.rows(self._event(), self.tasks[gpm])
        if self.manners[gpm] & Manner.RECALLED and kept:
            self.recall(self.core.window.now, self.stream, self._event())
        if self.core.tables.tracked:
            for row in rows:
                self.core.partitions.record_event(self.batch, gpm, self._encoded(row))
        if reader.audience.count:
            for row in kept:
                self.core.feed_row(&reader.audience, self._encoded(row), <uint32_t>len(row))
        return True

    cdef term_t* _encoded(self, row) except NULL:
        """A row of terms, as numbers of the current batch."""
        cdef uint32_t i
        for i, term in enumerate(row):
            self.row[i] = 0 if term is None else self.batch.encode(term)
        return self.row

    # ---------------------------------------------------------------- events

    def feed(self, EventBatch batch not None, uint32_t index, uint32_t stream, uint32_t file):
        """Process one event of the open instant."""
        if self.apart:
            self.count_event(0)
        self._select_batch(batch, stream)
        try:
            self.event(self.dispatch, index, stream, file, ANY, False)
        finally:
            self._release_batch()

    cpdef int check_exclusive(self) except -1:
        """Raise an error if another thread is processing events of the run."""
        if self.batch is not self.idle:
            raise RuntimeError("a run is for one thread at a time")
        return 0

    cdef int _select_batch(self, EventBatch batch, uint32_t stream) except -1:
        """Select a batch and a stream; the run is the caller's until `_release_batch`."""
        self.check_exclusive()
        self.batch, self.stream = batch, stream
        self.dispatch.select(stream)
        batch.window = &self.window.store
        return 0

    cdef int _release_batch(self) except -1:
        self.dispatch.settle()
        self.dispatch.attentive = False
        self.batch.window = NULL
        self.batch = self.idle
        return 0

    cdef int event(
        self, Dispatch dispatch, uint32_t index, uint32_t stream, uint32_t file, uint64_t present,
        bint again,
    ) except -1 nogil:
        """Match an event against the awaited patterns, and feed its rows.

        `present`: the views in which it has triples, see `bit_of`, or `ANY`. `again`: it is matched
        a second time, after `undo_event` has undone the first attempt.
        """
        cdef uint64_t readers
        cdef Reader* first
        cdef Reader* last
        cdef Reader* reader
        cdef bint presented
        cdef const EventRecord* event = &self.batch.events[index]
        cdef bint single = present != ANY and event.end - event.first == 1
        self.index = index
        if not again:
            self.core.count_event()
        while True:
            presented = False
            last = dispatch.here.first
            if (
                self.core.instant.changed_places or self.core.lazy_join.lazy
                or not dispatch.attentive
            ):
                dispatch.attend()
            while last < dispatch.here.end:
                first, last = last, last + min(WORD, dispatch.here.end - last)
                readers = wanted(first, last, present)
                if readers and not presented:
                    self.core.begin_event(self.batch, index, stream, file)
                    presented = True
                while readers:
                    reader = first + lowest_bit(readers)
                    reader.read += not again
                    if single and reader.lone:
                        self.feed_lone(reader, <NativeMatcher>reader.matcher)
                    else:
                        self.feed_loaded(reader)
                    readers &= readers - 1
            dispatch.unsettled[0] += not again
            if not presented or not self.core.event.out_of_steps:
                return 0
            self.core.undo_event()
            again = True

    cdef int feed_loaded(self, const Reader* reader) except -1 nogil:
        """Feed the rows of a pattern, from the summary graph of the current event."""
        cdef uint32_t gpm = self.dispatch.gpms[reader.first]
        self.graph.load(self.batch, self.index)
        if reader.matcher == NULL and self.feed_in_python(gpm, reader):
            return 0
        return self._feed_rows(reader, <NativeMatcher>self.native[gpm])

    cdef int _feed_rows(self, const Reader* reader, NativeMatcher matcher) except -1 nogil:
        """Feed the rows of the current event that pass the local filters."""
        cdef uint32_t i, j
        cdef const term_t* row
        matcher.match_event(self.batch, self.index)
        for i in range(matcher.result.count):
            row = row_at(matcher.result, i)
            if self.core.tables.tracked:
                for j in range(reader.first, reader.end):
                    self.core.partitions.record_event(self.batch, self.dispatch.gpms[j], row)
            if matcher.passed[i] and reader.audience.count:
                self.core.feed_row(&reader.audience, row, matcher.columns)
        return 0

    cdef int count_event(self, int64_t position) except -1 nogil:
        """Count one event, for a window of events; `position` is its number in the run."""
        self.had += 1
        return self.window.advance_epochs(self.had if self.apart else position)

    cdef bint is_current(self, EventBatch batch) noexcept nogil:
        """Whether the term numbers of a batch agree with those of the patterns."""
        return batch.dictionary is self.graph.dictionary and (
            batch.version == self.graph.dictionary.permanent.count
        )

    cpdef uint32_t run(
        self, EventBatch batch, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF:
        """Process the events of a batch from `first` on; each is an instant of its own.

        `position` is the number of earlier events, for windows that count events.

        Returns the index of the next event: the one after an event that completed a match, or one
        whose time or ordinal does not follow from its predecessor's.
        """
        cdef uint32_t index
        self._select_batch(batch, stream)
        try:
            if batch.event_count - first <= GIL_HELD_MAX_EVENTS:
                return self._run(first, stream, file, position)
            with nogil:
                index = self._run(first, stream, file, position)
            return index
        finally:
            self._release_batch()

    cdef uint32_t _run(
        self, uint32_t first, uint32_t stream, uint32_t file, int64_t position
    ) except? 0xFFFFFFFF nogil:
        """As `run`, for the selected batch."""
        return self._advance(
            self.core, self.dispatch, self.core.window, self.core.instant, first, stream, file,
            position,
        )

    cdef uint32_t _advance(
        self, AutomatonCore core, Dispatch dispatch, Window window, OpenInstant instant,
        uint32_t first, uint32_t stream, uint32_t file, int64_t position,
    ) except? 0xFFFFFFFF nogil:
        """As `_run`, with the parts of the automaton as arguments, which stay in registers."""
        cdef uint32_t index = first
        cdef EventRecord* event
        cdef uint64_t present, readers
        cdef uint8_t domain
        cdef bint known = self.graph.deriver is None and self.is_current(self.batch)
        cdef bint lone, steady = known and self.steady
        self.reached = first
        if first >= self.batch.event_count:
            return first
        domain = self.batch.events[first].domain
        while index < self.batch.event_count:
            present, readers = ANY, 0
            if steady and window.awaited_count == 0 and self.deadline == INT64_MAX and (
                core.deadlines.soonest_ending == INT64_MAX
            ):
                index = pass_by(dispatch, self.batch, index, domain, &present, &readers)
                self.reached = index
                if index == self.batch.event_count:
                    return index
            event = &self.batch.events[index]
            lone = are_lone(dispatch, readers, event)
            if not lone and not self._follows(event, domain):
                return index
            if window.counted:
                position += 1
                self.count_event(position)
            else:
                self.window.advance_to(event.micros)
            core.begin_instant(event.micros)
            if lone and core.instant.changed_places:
                lone = False    # a deadline has passed, so other places wait now
            if lone:
                self._read_lone(dispatch, index, file, readers)
                if core.event.out_of_steps:
                    core.undo_event()
                    self.event(dispatch, index, stream, file, present, True)
            else:
                if known and present == ANY:
                    present = present_in(self.graph, self.batch, event)
                self.event(dispatch, index, stream, file, present, False)
            core.end_instant()
            index += 1
            self.reached = index
            if instant.accepted_count:
                return index
        return index

    cdef bint _follows(self, const EventRecord* event, uint8_t domain) except -1 nogil:
        """Whether an event is the next instant, and no window or deadline lies before it."""
        cdef uint64_t next
        if event.domain != domain:
            return False
        if self.core.window.now >= 0 and event.micros <= self.core.window.micros:
            next = <uint64_t>(self.core.window.now - self.core.window.timestamp_start + 1)
            return event.micros == self.core.window.micros and (
                event.ordinal == next or self.gaps and event.ordinal > next
            )
        return (event.ordinal == 0 or self.gaps) and event.micros < self.deadline and not (
            self.core.window.awaited_count and self.core.window.closes(event.micros)
        ) and not ends_before(self.core.deadlines, event.micros)

    cdef bint waits_for_closing(self, EventBatch batch, uint32_t index) noexcept nogil:
        """Whether an event would be the next instant if no window or deadline came before it.

        `run` has stopped at the event.
        """
        cdef const EventRecord* event = &batch.events[index]
        if index and event.domain != batch.events[index - 1].domain:
            return False
        return self.core.window.now >= 0 and event.micros > self.core.window.micros and (
            event.ordinal == 0 or self.gaps
        ) and event.micros < self.deadline

    def wake_at(self, int64_t micros):
        """Stop before events from a time on, in microseconds, until its results have come out."""
        self.deadline = micros

    def tally(
        self, EventBatch batch not None, uint32_t first, uint32_t stream, uint32_t file,
        int64_t position, bint skip, Selection selection, uint64_t most,
    ):
        """Count the matches of the events of a batch from `first` on, without making them.

        At most `most` matches of each event are enumerated, or those that `selection` selects. With
        `skip`, later matches start after the end of a match.

        Returns (index of the next event, as from `run`; matches; witnesses).
        """
        cdef uint64_t found = 0, witnesses = 0
        cdef uint32_t index = first, before
        self._select_batch(batch, stream)
        try:
            with nogil:
                while index < batch.event_count:
                    before = index
                    index = self._run(before, stream, file, position + before - first)
                    if index == before:
                        break
                    if self.core.instant.accepted_count == 0:
                        continue
                    if selection is not None:
                        selection.select(skip)
                        found += selection.given()
                    else:
                        found += self._count_accepted(skip, most, &witnesses)
        finally:
            self._release_batch()
        return index, found, witnesses

    cdef uint64_t _count_some(
        self, uint64_t most, uint64_t* witnesses
    ) except? 0xFFFFFFFFFFFFFFFF nogil:
        """Count matches of the walk, up to `most` and to the next check of signals."""
        return self.core.transitions.walk.advance_by(
            min(most, <uint64_t>STEPS_PER_CLOCK_READ), witnesses
        )

    cdef uint64_t _count_accepted(
        self, bint skip, uint64_t most, uint64_t* witnesses
    ) except? 0xFFFFFFFFFFFFFFFF nogil:
        """Count the complete matches, up to `most`, and discard them."""
        cdef uint64_t found = 0
        cdef uint32_t i
        cdef Node* end
        self.core.event.match_generation += 1
        for i in range(self.core.instant.accepted_count):
            end = self.core.instant.accepted[i]
            self.core.transitions.walk.begin(end, self.core.since_at(end))
            found += self._count_some(most - found, witnesses)
            while found < most and self.core.transitions.walk.has_next():
                check_signals()
                found += self._count_some(most - found, witnesses)
        if skip:
            self.core.skip_past(self.core.instant.accepted_count)
        self.core.instant.accepted_count = 0
        return found
