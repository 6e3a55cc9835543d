"""Solutions of groups in the core → `Match` objects.

If the columns are keys and aggregates, and no clause reads solutions, a match holds the exact sums
of its group at its instant, and computes its columns when the caller reads them. Otherwise the
output stage computes the solutions of an instant (`HAVING`, `LET`, expressions, `CONSTRUCT`) and
retains some of them (`DISTINCT`, `LIMIT`, `ASK`). In both cases, times and events are decoded on
first access, and JSON is written from the texts of terms.

Invariant: a match does not refer to the run.
Cost: linear in the steps of the newest result of the group; constant for each match.
"""

cimport cython
import json
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from spaseq.engine.native._matches cimport DecodedStep, Ending, MatchDecoder
from spaseq.rdf.event import DATE_TIME, triple_of
from spaseq.rdf.native._terms cimport EventBatch, EventRecord, mem_free, text_of, written_term
from spaseq.results import keys, triples_text
from spaseq.results.native._match cimport (
    Match,
    Text,
    put,
    put_bytes,
    put_number,
    put_term,
    put_time,
)

# The JSON texts before a value. The first binding and the first event follow a bracket.
cdef bytes END = keys.following(keys.END)

cdef bytes RESULTS = keys.following(keys.RESULTS)

cdef bytes BINDINGS = keys.following(keys.BINDINGS) + b"{"

cdef bytes GRAPH = keys.following(keys.GRAPH)

cdef bytes EVENTS = keys.following(keys.EVENTS) + b"["


cdef list terms_of(list texts):
    """The terms with some texts; None for None."""
    return [None if text is None else written_term(text) for text in texts]


cdef class GroupMatch(Match):
    """The solution of a group at an instant, or of a tumbling group at the end of its window."""

    cdef MatchDecoder reading
    cdef tuple steps            # of the newest result; None: its witnesses are known
    cdef int64_t start          # of the group, in microseconds
    cdef uint32_t domain        # of the start
    cdef bytes packed           # the group (`NativeGroups.pack`); None: the output stage read it
    cdef tuple facts            # of a CONSTRUCT
    cdef GroupColumns columns
    cdef tuple solution         # the values of the columns; None: computed from `packed`
    cdef Ending ending

    def to_json(self) -> str:
        cdef Text text
        if self.steps is None:
            return Match.to_json(self)
        memset(&text, 0, sizeof(Text))
        try:
            with cython.critical_section(self.reading):
                self._put_json(&text)
            return text.begin[:text.size].decode()
        finally:
            mem_free(text.begin)

    cdef int _put_json(self, Text* text) except -1:
        """Append the match in JSON, in the form of `spaseq.results.data`."""
        cdef DecodedStep last = <DecodedStep>self.steps[len(self.steps) - 1]
        cdef uint32_t i
        if self.boolean is not None:
            return self.reading.put_answer(text, last, self.kb_version, &self.ending)
        put_bytes(text, self.reading.opening)
        put_time(text, self.start, self.domain)
        put_bytes(text, END)
        put_time(text, self.ending.micros if self.ending.later else last.micros, last.domain)
        put_bytes(text, RESULTS)
        put_number(text, self.results)
        if self.facts is None:
            self._put_bindings(text)
        else:
            put_bytes(text, GRAPH)
            put_bytes(text, json.dumps(triples_text(self.facts), ensure_ascii=False).encode())
        put_bytes(text, EVENTS)
        for i in range(<uint32_t>len(self.steps)):
            if i:
                put(text, b", ", 2)
            put_bytes(text, (<DecodedStep>self.steps[i]).json(self.reading))
        put(text, b"]", 1)
        return self.reading._put_further(text, self.kb_version, self.ending.by_input)

    cdef int _put_bindings(self, Text* text) except -1:
        cdef uint32_t i
        cdef bint several = False
        cdef bytes term
        cdef object values = self.columns.read(self.packed) if self.solution is None else (
            self.solution
        )
        put_bytes(text, BINDINGS)
        for i, value in enumerate(values):
            if value is None:
                continue
            if several:
                put(text, b", ", 2)
            several = True
            put_bytes(text, <bytes>self.columns.openings[i])
            term = value if type(value) is bytes else text_of(value)
            put_term(text, term, len(term))
        return put(text, b"}", 1)

    cdef int decode_times(self) except -1:
        cdef DecodedStep last
        with cython.critical_section(self.reading):
            if self.found_start is None:
                self.found_start = timestamp_of(measured(self.packed)[1])
            if self.found_end is None:
                last = <DecodedStep>self.steps[len(self.steps) - 1]
                self.found_end = (
                    last.timestamp_at(self.ending.micros) if self.ending.later
                    else last.timestamp()
                )
        return 0

    cdef int decode_bindings(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_bindings is None:
                self.found_bindings = self._bindings()
        return 0

    cdef dict _bindings(self):
        cdef dict found = {}
        if self.facts is not None:
            return found
        if self.solution is None:
            self.solution = tuple([
                written_term(value) if type(value) is bytes else value
                for value in self.columns.read(self.packed)
            ])
        for name, value in zip(self.columns.names, self.solution):
            if value is not None:
                found[name] = value
        return found

    cdef int decode_graph(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_graph is None and self.facts is not None:
                self.found_graph = tuple(map(triple_of, self.facts))
        return 0

    cdef int decode_events(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_events is None:
                self.found_events = tuple([
                    (<DecodedStep>step).witness(self.reading) for step in self.steps
                ])
        return 0


cdef class GroupColumns:
    """The columns of a grouped query.

    Args:
        query: The name of the query.
        names: Its columns.
        columns: (whether it is a key, number of its key or its aggregate) of each column; None if
            the output stage computes the solutions.
        values: (results, totals, values of MIN, MAX and SAMPLE) → the values of all aggregates.
    """

    cdef readonly str query
    cdef readonly tuple names
    cdef readonly tuple columns
    cdef readonly object values
    cdef list openings          # per column, the JSON text before its value

    def __cinit__(self, str query, names, columns, values):
        self.query, self.values, self.names = query, values, tuple(names)
        self.columns = None if columns is None else tuple(columns)
        self.openings = [
            f"{json.dumps(name, ensure_ascii=False)}: ".encode() for name in self.names
        ]

    cdef list read(self, bytes packed):
        """The values of the columns in a group: terms or their texts, None if unbound."""
        count, _, totals, texts, key = measured(packed)
        values = self.values(count, totals, texts)
        return [key[place] if is_key else values[place] for is_key, place in self.columns]


cdef class SolutionMaker:
    """Makes the matches of some groups of a query, without the steps of their results.

    Args:
        groups: The groups in the core; None if Python keeps them.
        reading: Decodes the steps of results.
        columns: The columns of the query.
        stage: The `OutputStage` of the query.
    """

    cdef NativeGroups groups
    cdef MatchDecoder reading
    cdef GroupColumns columns
    cdef object stage
    cdef bint retains, constructs, asks
    cdef bint had_values        # whether all aggregates of some group have had values

    def __cinit__(
        self, NativeGroups groups, MatchDecoder reading not None,
        GroupColumns columns not None, stage,
    ):
        self.groups, self.reading, self.columns, self.stage = groups, reading, columns, stage
        self.retains, self.constructs, self.asks = stage.retains, stage.constructs, stage.asks

    cdef list made(self, list numbers, int64_t now, object version):
        """(position, match) of the groups that have a solution, in their order.

        Args:
            numbers: The groups in order.
            now: The time of the solutions, in microseconds.
            version: The version of the KB that the matches report.
        """
        cdef uint32_t i
        cdef list packs = [], solved = [], found = []
        cdef bytes packed
        cdef tuple solution
        cdef GroupMatch match
        cdef Head head
        for i in range(<uint32_t>len(numbers)):
            packed = self.groups.pack(numbers[i])
            packs.append(packed)
            if self.columns.columns is not None:
                if self.groups.is_unbound or not self.had_values:
                    self.had_values |= not self.groups.is_unbound
                    self.stage.groups.see_aggregates(numbers[i])
                solved.append((i, None, ()))
                continue
            count, _, totals, texts, key = measured(packed)
            values = self.stage.groups.solved(
                numbers[i], tuple(terms_of(key)), count, totals, terms_of(texts)
            )
            if values is not None:
                solved.append((i, *values))
        if self.retains and solved:
            kept = frozenset(self.stage.retained(solved, now))
            solved = [each for each in solved if each[0] in kept]
        for i, solution, _ in solved:
            packed = packs[i]
            memcpy(&head, <const char*>packed, sizeof(Head))
            match = self._match(solution, head.start, head.domain, head.count)
            match.packed, match.kb_version = packed, version
            found.append((i, match))
        return found

    cdef GroupMatch solved(self, solution, tuple steps):
        """The match of a `GroupSolution` of a group in Python."""
        cdef GroupMatch match = self._match(
            solution.solution, solution.start.micros, solution.start.domain == DATE_TIME,
            solution.count,
        )
        match.found_start, match.steps = solution.start, steps
        return match

    cdef GroupMatch _match(
        self, tuple solution, int64_t start, uint32_t domain, uint64_t results
    ):
        cdef GroupMatch match = GroupMatch.__new__(GroupMatch)
        match.reading, match.columns, match.solution = self.reading, self.columns, solution
        match.query, match.variables = self.columns.query, self.columns.names
        match.start, match.domain, match.results = start, domain, results
        if self.asks:
            match.boolean = True
        elif self.constructs:
            match.facts = self.stage.graph_of(solution)
        return match


cdef class GroupMaker:
    """Makes the matches of the groups to which the core adds results.

    Args:
        reader: Adds the results.
        columns: The columns of the query.
        stage: The `OutputStage` of the query.
    """

    cdef ResultReader reader
    cdef SolutionMaker solutions

    def __cinit__(self, ResultReader reader not None, GroupColumns columns not None, stage):
        self.reader = reader
        self.solutions = SolutionMaker(reader.groups, reader.maker.reading, columns, stage)

    def made_now(self, version) -> list:
        """The matches of the results that the core has added last; none if it has advanced since.

        `version` is the version of the KB that the matches report.
        """
        cdef ResultReader reader = self.reader
        cdef uint32_t i, count = reader.showing_count
        cdef list groups = [], found = []
        cdef GroupMatch match
        reader.showing_count = 0
        if count == 0 or reader.core.event.match_generation != reader.turn:
            return found
        for i in range(count):
            groups.append(reader.showing[i].group)
        for i, match in self.solutions.made(groups, reader.last_time(), version):
            match.steps = reader.steps(reader.showing[i].found)
            found.append(match)
        return found

    def made_at(self, end, witnesses, version) -> list:
        """The matches of all tumbling groups, whose window ends at a time.

        Args:
            end: The time.
            witnesses: The number of a group → the witnesses of its newest result; called if Python
                has added that.
            version: The version of the KB that the matches report.
        """
        cdef uint32_t i
        cdef int64_t now = end.micros
        cdef list groups = list(self.reader.groups.numbers_in_order(True)), found = []
        cdef GroupMatch match
        for i, match in self.solutions.made(groups, now, version):
            match.ending.later, match.ending.micros, match.found_end = True, now, end
            match.steps = self.reader.shown_steps(groups[i])
            if match.steps is None:
                match.found_events = witnesses(groups[i])
            found.append(match)
        return found


cdef class GroupedMatches:
    """An iterator over the solutions of the events of a batch; see `Matches`.

    It ends at an event whose results Python must group.

    Args:
        maker: Makes the matches of sliding groups.
        windows: The `CoreGroups` of tumbling groups, which begins and closes windows; None for
            sliding groups.
        closed: A time in microseconds → the matches of the tumbling window that ends by then.
        batch, first, stream, file, position: As for `ResultReader.feed`.
        kb: The knowledge base.
    """

    cdef ResultReader reader
    cdef GroupMaker maker
    cdef object windows, closed
    cdef EventBatch batch
    cdef uint32_t first, stream, file
    cdef int64_t position
    cdef object kb
    cdef uint64_t turn
    cdef list ready             # the matches of the last instant that has some
    cdef Py_ssize_t at          # the next one of these
    cdef bint ended
    cdef readonly uint32_t after    # the index of the next event
    cdef readonly bint failed
    cdef readonly uint64_t made

    def __cinit__(
        self, GroupMaker maker not None, windows, closed, EventBatch batch not None,
        uint32_t first, uint32_t stream, uint32_t file, int64_t position, kb,
    ):
        self.maker, self.reader, self.ready = maker, maker.reader, []
        self.windows, self.closed = windows, closed
        self.batch, self.first, self.after = batch, first, first
        self.stream, self.file, self.position, self.kb = stream, file, position, kb
        self.turn = self.reader.core.event.match_generation

    def invalidate(self):
        """Invalidate the iterator before the run advances."""
        self.reader.core.event.match_generation += 1

    def __iter__(self):
        return self

    def __next__(self):
        if self.reader.core.event.match_generation != self.turn:
            if self.at < len(self.ready):
                raise RuntimeError(
                    "the run has gone on: consume the matches of an event before that"
                )
            raise StopIteration
        while self.at == len(self.ready):
            self._advance()
            if self.ended:
                raise StopIteration
        self.at += 1
        self.made += 1
        return self.ready[self.at - 1]

    cdef int _advance(self) except -1:
        """Process events up to one whose groups may have a solution; `ended` if there is none."""
        cdef ResultReader reader = self.reader
        self.ready, self.at = [], 0
        reader.showing_count = 0
        if self.ended or (self.after > self.first and self.kb.changes):
            self.ended = True
            return 0
        if self.windows is not None:
            return self._advance_windows()
        self._feed()
        self.ended = reader.showing_count == 0
        self.ready = self.maker.made_now(self.kb.version)
        self.failed = False
        return 0

    cdef int _advance_windows(self) except -1:
        """Close the tumbling window that ends before the next event, or process events."""
        cdef uint32_t before = self.after
        if before < self.batch.event_count:
            if self._is_next(before):
                self.ready = self.closed(self.batch.events[before].micros)
                if self.ready:
                    return 0
            self._feed()
            self.failed = False
        if self.after == before or self.after == self.batch.event_count or self.reader.refused:
            self.ended = True
        if self.after > before and not self.reader.refused:
            self.windows.begin(self.batch.events[self.after - 1].micros)
        return 0

    cdef bint _is_next(self, uint32_t index) noexcept:
        """Whether an event would be the next instant, at a later time, if no window came first."""
        cdef const EventRecord* event = &self.batch.events[index]
        if index and event.domain != self.batch.events[index - 1].domain:
            return False
        return event.micros > self.reader.core.window.micros and (
            event.ordinal == 0 or self.reader.maker.step.gaps
        )

    cdef int _feed(self) except -1:
        cdef ResultReader reader = self.reader
        self.failed = True
        try:
            self.after = reader.feed(
                self.batch, self.after, self.stream, self.file,
                self.position + self.after - self.first,
            )
        except BaseException:
            self.after = reader.maker.step.reached
            raise
        self.turn = reader.core.event.match_generation
        return 0
