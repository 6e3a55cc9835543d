"""Complete matches of the core → `Match` objects, made lazily by an iterator.

For queries whose matches are found once each: every match, those that `EMIT` or `LIMIT` selects at
an instant, or those that the output stage retains of a `Gathering`. A match copies the texts of its
events' terms, once for all matches with the event. Terms, times and bindings are decoded when the
caller reads them.

Invariant: a match does not refer to the run.
Cost: linear in the steps of each consumed match; nothing for other matches.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_CLEAR, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memcpy

from spaseq.nfa.native._tecs cimport Node, Walk, count_match, since_of
from spaseq.rdf.event import triple_of
from spaseq.rdf.limits import LimitReached
from spaseq.rdf.native._terms cimport (
    WINDOWED,
    check_signals_often,
    is_numeral,
    mem_calloc,
    mem_free,
    record_shape,
    spell,
)

# The sizes of a maker's cache of decoded labels, as powers of two. It grows with use, since a run
# can have thousands of makers.
cdef enum:
    FEWEST_RECENT = 4
    MOST_RECENT = 12


cdef inline size_t slot_of(const Label* label, uint32_t bits) noexcept nogil:
    """The place of a label in a cache of `1 << bits` entries."""
    return (<size_t>label >> 4) * <size_t>0x9E3779B97F4A7C15u >> 64 - bits


cdef class FoundMatch(Match):
    """A match that is decoded on first access.

    Matches share steps and the decoder. Without the interpreter's lock, one thread at a time
    decodes, and each attribute is set once, so that others can read it.
    """

    def to_json(self) -> str:
        if self.graph is not None or self.boolean is not None:
            return Match.to_json(self)
        with cython.critical_section(self.reading):
            text = self.reading.json(
                self.steps, self.kb_version, &self.ending, self.computed
            )
        return text.decode()

    cdef int decode_times(self) except -1:
        cdef DecodedStep last
        with cython.critical_section(self.reading):
            if self.found_end is None:
                self.found_start = (<DecodedStep>self.steps[0]).timestamp()
                last = <DecodedStep>self.steps[len(self.steps) - 1]
                self.found_end = (
                    last.timestamp_at(self.ending.micros) if self.ending.later
                    else last.timestamp()
                )
        return 0

    cdef int decode_bindings(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_bindings is None:
                self.found_bindings = self.reading.bindings(self.steps, self.computed)
        return 0

    cdef int decode_events(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_events is None:
                self.found_events = self._witnesses()
        return 0

    cdef tuple _witnesses(self):
        cdef uint32_t i, length = <uint32_t>len(self.steps)
        cdef tuple events = PyTuple_New(length)
        for i in range(length):
            witness = (<DecodedStep>self.steps[i]).witness(self.reading)
            Py_INCREF(witness)
            PyTuple_SET_ITEM(events, i, witness)
        return events


@cython.no_gc  # as its base
@cython.final
cdef class CopiedMatch(Match):
    """A match of a query that differs from another query in its name only."""

    cdef Match original

    cdef int decode_times(self) except -1:
        self.found_start = self.original.start
        self.found_end = self.original.end
        return 0

    cdef int decode_bindings(self) except -1:
        self.found_bindings = self.original.bindings
        return 0

    cdef int decode_events(self) except -1:
        self.found_events = self.original.events
        return 0

    cdef int decode_graph(self) except -1:
        self.found_graph = self.original.graph
        return 0


cpdef list copies(list matches, str query):
    """Copies of some matches under the name of another query, decoded on first access."""
    cdef list found = []
    add_copies(matches, query, found)
    return found


cdef int add_copies(list matches, str query, list found) except -1:
    """Append copies of some matches under the name of another query."""
    cdef Match match
    cdef CopiedMatch copied
    for match in matches:
        copied = CopiedMatch.__new__(CopiedMatch)
        copied.original = match
        copied.query = query
        copied.variables = match.variables
        copied.boolean, copied.kb_version = match.boolean, match.kb_version
        copied.results = match.results
        copied.closed_by_end = match.closed_by_end
        found.append(copied)
    return 0


def divided(matches, Parts parts not None, dict readers not None, bint by_edge=False) -> list:
    """The matches of an automaton of several queries, by query.

    Args:
        matches: its matches, as a `MatchMaker` makes them.
        parts: takes those of each query.
        readers: the text of a match's first column → the places of the queries that it belongs to,
            with their readers; or None → those that all matches belong to. If `by_edge`, the number
            of the edge of a match's last step stands in place of the text.

    Returns:
        (place, its matches), by place. The matches of a text without a reader are dropped.
    """
    cdef FoundMatch found
    cdef DecodedStep last
    cdef tuple some, everywhere = readers.get(None)
    for found in matches:
        some = everywhere
        if by_edge:
            last = <DecodedStep>found.steps[len(found.steps) - 1]
            some = readers[found.reading.parts[last.part].edge]
        elif some is None:
            some = readers.get(found.reading.first_text(found.steps), ())
        parts.give(found, some, 0, len(some))
    return sorted(parts.parts.items())


def divided_by_thresholds(
    matches, Parts parts not None, tuple readers not None, uint32_t columns, reached,
) -> list:
    """Divide like `divided`, for queries of which some successive ones have a match.

    Args:
        matches: its matches, as a `MatchMaker` makes them.
        parts: takes those of each query.
        readers: the places of the queries, with their readers.
        columns: the number of the first columns, which are compared.
        reached: the terms of these columns → the queries that have the match, from the first to
            before the second number.
    """
    cdef FoundMatch found
    for found in matches:
        terms = found.reading.first_terms(found.steps, columns)
        first, end = reached[terms]
        parts.give(found, readers, first, end)
    return sorted(parts.parts.items())


@cython.final
cdef class Parts:
    """The matches of each query while those of their automaton are divided.

    Args:
        matches: all matches.
        made: counts the matches of each query.
        as_picks: whether to list the positions of the matches, for `Matches.picked`, instead of the
            matches.
        silent: the queries whose matches are dropped.
        most: the most matches of one query.
    """

    cdef dict parts
    cdef object made, silent
    cdef Py_ssize_t most
    cdef readonly int64_t refused   # the query that has more matches; -1: none
    cdef Matches source         # whose matches are to be picked again, or None
    cdef int64_t node, number

    def __cinit__(self, matches, made, bint as_picks, silent, Py_ssize_t most):
        self.parts, self.made, self.silent, self.most, self.refused = {}, made, silent, most, -1
        self.source = matches if as_picks else None
        self.node = -1

    cdef int give(
        self, FoundMatch found, tuple readers, Py_ssize_t first, Py_ssize_t end
    ) except -1:
        """Give a match to some successive queries."""
        cdef FoundMatch match
        cdef MatchDecoder reading
        cdef Py_ssize_t i
        cdef int64_t node
        cdef object pick = None
        if self.source is not None:
            # The iterator has left the node if the match was its last one.
            node = <int64_t>self.source.at - (not self.source.walking)
            self.number = self.number + 1 if node == self.node else 0
            self.node = node
            pick = node, self.number
        for i in range(first, end):
            place, reader = readers[i]
            self.made[place] += 1
            if self.silent and place in self.silent:
                continue
            listed = self.parts.get(place)
            if listed is None:
                listed = self.parts[place] = []
            if len(<list>listed) == self.most:
                self.refused = place
                raise LimitReached("matches")
            if pick is None:
                reading = reader.reading
                match = FoundMatch.__new__(FoundMatch)
                match.query, match.variables = reading.query, reading.names
                match.kb_version, match.reading = found.kb_version, reading
                match.steps = found.steps
            (<list>listed).append(match if pick is None else pick)
        return 0


cdef class MatchMaker:
    """The matches of one run.

    Args:
        step: the driver of the query's automaton.
        dictionary: the permanent terms.
        reading: decodes the matches.
        selection: selects the matches that `EMIT` or `LIMIT` retains, or None.
        ordering: decodes the variables that order matches of the same instants.
        gathering: gathers the matches of an instant, or None.

    Attributes:
        forms: the forms of queries whose matches the class makes.
    """

    forms = frozenset(("select", "construct", "ask"))

    def __cinit__(
        self, NativeStep step not None, Dictionary dictionary not None,
        MatchDecoder reading not None, Selection selection, MatchDecoder ordering not None,
        Gathering gathering=None,
    ):
        self.gathering = gathering
        self.selection = selection
        self.ended_at = INT64_MAX
        self.ordering = ordering
        self.step = step
        self.core = step.core
        self.dictionary = dictionary
        self.reading = reading

    def __dealloc__(self):
        if self.recent != NULL:
            self.forget()
        mem_free(self.recent)

    def take(self, bint skip, int kb_version):
        """An iterator over the matches that were completed since the last call.

        It is valid until the run advances. With `skip`, later matches start after the end of
        these. `kb_version` is the version of the KB that the matches report.
        """
        cdef Matches found = Matches.__new__(Matches)
        found.maker = self
        found.skip = skip
        found.version = kb_version
        found.collect()
        return found

    def take_due(self, before, int kb_version, bint ending):
        """An iterator over the matches of the windows and deadlines before a time (None: all).

        It is valid until the run advances. `ending`: the end of input closes them.
        """
        cdef Matches found = Matches.__new__(Matches)
        self.step.check_exclusive()
        found.maker = self
        found.version = kb_version
        found.turn = self.core.event.match_generation
        found.close(before, INT64_MIN if ending else self.ended_at)
        return found

    def run(
        self, EventBatch batch not None, uint32_t first, uint32_t stream, uint32_t file,
        int64_t position, bint skip, kb,
    ):
        """An iterator over the matches of the events of a batch from `first` on.

        It processes events with `NativeStep.run`, as far as the requested match needs. It ends at
        an event at which `NativeStep.run` stops without a match, and when the `kb` changes.
        """
        cdef Matches found = Matches.__new__(Matches)
        found.maker = self
        found.skip = skip
        found.batch = batch
        found.first = found.after = first
        found.stream = stream
        found.file = file
        found.position = position
        found.kb = kb
        found.turn = self.core.event.match_generation
        return found

    cdef Match match(self, object version):
        """The match that the core's walk has reached."""
        cdef FoundMatch match = FoundMatch.__new__(FoundMatch)
        self.fill(match, version)
        return match

    cdef int fill(self, FoundMatch match, object version) except -1:
        """Set the attributes of a new match to those of the match that the walk has reached."""
        match.query = self.reading.query
        match.kb_version = version
        match.reading = self.reading
        match.steps = self.steps()
        match.variables = self.reading.names
        match.computed = self.computed
        if self.triples is not None:
            match.found_graph = tuple(map(triple_of, self.triples))
        if self.gathering is not None and self.gathering.asks:
            match.boolean = True
        match.ending = self.ending
        match.closed_by_end = self.ending.by_input
        self.made += 1
        return 0

    cdef tuple steps(self):
        """The steps of the match at which the core's walk is."""
        cdef Walk walk = self.core.transitions.walk
        cdef uint32_t i, length = walk.length
        cdef tuple steps = PyTuple_New(length)
        cdef DecodedStep taken
        for i in range(length):
            taken = self.step_of_label(walk.path[length - 1 - i])
            Py_INCREF(taken)
            PyTuple_SET_ITEM(steps, i, taken)
        return steps

    cdef int position_walk(self, uint32_t number) except -1:
        """Position the core's walk at a match that is gathered."""
        self.gathering.position_walk(number)
        self.computed = self.gathering.values[number]
        self.triples = self.gathering.graphs[number]
        return 0

    cdef const TermRecord* computed_record(self, uint32_t place) noexcept:
        """The record of a computed column, NULL if it is unbound; valid until the next one."""
        self.scratch.size = self.computed.sizes()[place + 2]
        if self.scratch.size == 0:
            return NULL
        self.scratch.text = self.computed._text(place + 2)
        record_shape(&self.scratch)
        return &self.scratch

    cdef bint pauses(self) noexcept:
        """Whether `match` may make no object, so that the iterator returns None."""
        return True

    def end_starts(self, ended):
        """Drop matches of starts that have ended; see `spaseq.nfa.ended_starts`."""
        self.marks = StartMarks(self.core, self.dictionary, self.reading, ended)

    cdef list in_order(self, object version):
        """The numbers of the matches that `LIMIT` retains, for matches with the same instants."""
        cdef uint32_t i
        cdef Selection selection = self.selection
        cdef list found = []
        for i in range(selection.chosen_count):
            selection.position_walk(i)
            match = MatchMaker.match(self, version)
            found.append((selection.chosen[i].rank, self._order(<FoundMatch>match), i))
        self.made -= selection.chosen_count
        found.sort()
        return [number for _, _, number in found[:selection.most]]

    def _order(self, FoundMatch match):
        """The sort key of matches of the same instants, in the order of `OutputStage`."""
        with cython.critical_section(self.reading):
            key = self.ordering.sort_key(match.steps, None)
        return [(<DecodedStep>step).stream for step in match.steps], key

    cdef DecodedStep step_of_label(self, Label* label):
        """The decoded form of a label, which outlives it."""
        cdef DecodedStep taken
        cdef Recent* recent
        if self.recent_bits == 0 or (
            self.displaced >> self.recent_bits and self.recent_bits < MOST_RECENT
        ):
            self._widen()
        recent = &self.recent[slot_of(label, self.recent_bits)]
        if recent.label == label and recent.instant == label.instant and (
            recent.stream == label.stream
        ):
            return <DecodedStep>recent.taken
        taken = DecodedStep.__new__(DecodedStep)
        taken.part, taken.events = self.reading.part_of(label), label.parts
        taken.micros = label.micros
        taken.ordinal = label.ordinal
        taken.domain = label.domain
        taken.stream = label.stream
        taken.count = label.width + 2
        taken.texts = self._texts(label)
        Py_INCREF(taken)
        Py_XDECREF(recent.taken)
        self.displaced += recent.label != NULL
        recent.label, recent.taken = label, <PyObject*>taken
        recent.instant, recent.stream = label.instant, label.stream
        return taken

    cdef int forget(self) noexcept:
        """Empty the cache: the memory of labels may have been reused."""
        cdef uint32_t i
        for i in range(<uint32_t>1 << self.recent_bits if self.recent_bits else 0):
            self.recent[i].label = NULL
            Py_CLEAR(self.recent[i].taken)
        return 0

    cdef int _widen(self) except -1:
        """Make the cache, or double it."""
        cdef uint32_t i, bits = self.recent_bits + 1 if self.recent_bits else FEWEST_RECENT
        cdef Recent* wider = <Recent*>mem_calloc(<size_t>1 << bits, sizeof(Recent))
        cdef Recent* entry
        for i in range(<uint32_t>1 << self.recent_bits if self.recent_bits else 0):
            if self.recent[i].label != NULL:
                entry = &wider[slot_of(self.recent[i].label, bits)]
                Py_XDECREF(entry.taken)
                entry[0] = self.recent[i]
        mem_free(self.recent)
        self.recent, self.recent_bits, self.displaced = wider, bits, 0
        return 0

    cdef bytes _texts(self, Label* label):
        """The sizes of the texts of a label's terms, then the texts."""
        cdef uint32_t i, count = label.width + 2
        cdef size_t total = count * sizeof(uint32_t)
        cdef const TermRecord* record
        cdef uint32_t* sizes
        cdef char* place
        cdef bytes texts
        for i in range(count):
            total += self.record(label, i).size
        texts = PyBytes_FromStringAndSize(NULL, total)
        place = PyBytes_AS_STRING(texts)
        sizes = <uint32_t*>place
        place += count * sizeof(uint32_t)
        for i in range(count):
            record = self.record(label, i)
            sizes[i] = record.size
            if record.size:
                memcpy(place, record.text, record.size)
                place += record.size
        return texts

    cdef const TermRecord* record(self, Label* label, uint32_t place) noexcept:
        """The record of a term by its position in a `DecodedStep`; an unbound term has size 0.

        The result is valid until the next call.
        """
        cdef term_t term = (
            label.stamp if place == 0 else label.name if place == 1 else label.row[place - 2]
        )
        if is_numeral(term):
            return spell(&self.numeral, term)
        if term & WINDOWED:
            return &self.core.event.terms.store.records[term ^ WINDOWED]
        return &self.dictionary.permanent.records[term]


cdef class Matches:
    """An iterator over matches; `after` is the index of the next event of the batch."""

    cdef int collect(self) except -1:
        """Begin with the matches that are complete now."""
        cdef AutomatonCore core = self.maker.core
        cdef Selection selection = self.maker.selection
        cdef uint32_t i
        self.ready = None
        self.listed = 0
        if self.maker.marks is not None:
            self.maker.marks.settle()
        if self.maker.gathering is not None:
            return self._gather()
        if selection is not None:
            selection.select(self.skip)
            self._forget()
            self.count = selection.given()
            if selection.has_ties():
                self.ready = self.maker.in_order(self.version)
            self.at, self.turn = 0, core.event.match_generation
            return 0
        self.count = core.instant.accepted_count
        # The skip must not affect matches that the caller has not consumed yet.
        self.since = since_of(core.window)
        if core.tables.apart:
            self.apart = [core.since_at(core.instant.accepted[i]) for i in range(self.count)]
        if self.skip:
            core.skip_past(self.count)
        self.at = 0
        core.instant.accepted_count = 0
        core.event.match_generation += 1
        self.turn = core.event.match_generation
        self._forget()
        return 0

    cdef int _gather(self) except -1:
        """Begin with the matches that the output stage retains of those that are complete now."""
        cdef MatchMaker maker = self.maker
        cdef Gathering gathering = maker.gathering
        cdef int64_t now
        cdef uint32_t i
        cdef list steps = []
        self._forget()
        gathering.begin()
        self._gather_complete()
        if self.closing is not None:
            while self.closing.next_match():
                self.closing.set_walk()
                gathering.add()
        self.at = self.count = 0
        self.turn = maker.core.event.match_generation
        if gathering.count == 0:
            return 0
        now = self.ending.micros if self.ending.later else gathering.last_time()
        with cython.critical_section(maker.reading):
            for i in range(gathering.count):
                check_signals_often(i)
                gathering.position_walk(i)
                steps.append(maker.steps())
            self.ready = gathering.arranged(steps, now)
        self.count = <uint32_t>len(self.ready)
        return 0

    cdef int _gather_complete(self) except -1:
        """Gather the matches that the core has completed."""
        cdef MatchMaker maker = self.maker
        cdef AutomatonCore core = maker.core
        cdef Selection selection = maker.gathering.selection
        cdef Walk walk = core.transitions.walk
        cdef uint32_t i
        cdef Node* node
        if selection is not None:
            selection.select(self.skip)
            for i in range(selection.chosen_count):
                selection.position_walk(i)
                maker.gathering.add()
            return 0
        i = 0
        while i < core.instant.accepted_count:
            node = core.instant.accepted[i]
            i += 1
            walk.begin(node, core.since_at(node))
            while walk.advance():
                if not count_match(core.event, &self.listed):
                    i = core.instant.accepted_count
                    break
                if maker.marks is None or not maker.marks.passes_over():
                    maker.gathering.add()
                    if maker.gathering.one:
                        break
        if self.skip:
            core.skip_past(core.instant.accepted_count)
        core.instant.accepted_count = 0
        core.event.match_generation += 1
        return 0

    cdef Matches repeated(self, MatchMaker maker):
        """The same matches again, made by another maker of this automaton.

        It is valid as long as this iterator; neither has begun, and no window closes.
        """
        cdef Matches found = Matches.__new__(Matches)
        found.maker = maker
        found.version = self.version
        found.count, found.since = self.count, self.since
        found.apart, found.turn, found.ready = self.apart, self.turn, self.ready
        return found

    cdef int close(self, before, int64_t ended_at) except -1:
        """Continue with the matches of the windows and deadlines before a time, or of all.

        `ended_at`: the time of the last event of the first stream that has ended.
        """
        self.closing = Closing(self.maker.core, before)
        self.ended_at = ended_at
        return 0

    cdef bint has_more(self) noexcept:
        """Whether there may be further matches before the next event."""
        return self.at < self.count or self.closing is not None

    cdef object _made(self):
        """The current match; None if it is written."""
        self.maker.ending = self.ending
        match = self.maker.match(self.version)
        self.maker.closed_by_end += self.ending.by_input
        return match

    cdef int _next_time(self) except -1:
        """Go to the next time at which windows close, or to the matches of the next event."""
        cdef bint early
        if not self.closing.next_time():
            self.closing = None
            self.ending.later = self.ending.by_input = False
            return 0
        early = self.maker.core.window.tumbling and not self.closing.is_deadline
        self.ending.later, self.ending.micros = True, self.closing.micros
        # No event at the time itself can change what comes out before the events of that time.
        self.ending.by_input = self.ended_at < self.closing.micros or (
            self.ended_at == self.closing.micros and not early
        )
        return self.collect()

    cdef Matches picked(self, MatchMaker maker, list picks):
        """Repeat some of the matches, in their order; see `repeated`."""
        cdef Matches found = self.repeated(maker)
        found.picks = picks
        found.at = picks[0][0]
        found._forget()
        return found

    cdef bint _passes(self) except -1:
        """Whether the current match is not one of the picked ones."""
        cdef int64_t number = self.passed
        self.passed += 1
        if self.picks[self.pick][1] != number:
            return True
        self.pick += 1
        return False

    cdef bint _leaves(self) except -1:
        """Go to the next node with a picked match, unless the current node has another one."""
        cdef uint32_t node = self.count
        if self.pick < len(self.picks):
            node = self.picks[self.pick][0]
        if node == self.at:
            return False
        self.at, self.passed, self.walking = node, 0, False
        return True

    cdef int _forget(self) noexcept:
        if self.maker.epoch != self.maker.core.tecs.oldest:
            self.maker.forget()
            self.maker.epoch = self.maker.core.tecs.oldest
        return 0

    def invalidate(self):
        """Invalidate the iterator before the run advances."""
        self.maker.core.event.match_generation += 1

    def __iter__(self):
        return self

    def __next__(self):
        cdef AutomatonCore core = self.maker.core
        cdef bint over
        while True:
            while self.has_more():
                if core.event.match_generation != self.turn:
                    raise RuntimeError(
                        "the run has gone on: consume the matches of an event before that"
                    )
                self.failed = True
                if self.at == self.count:
                    if self.closing.next_match():
                        self.closing.set_walk()
                        match, over = self._made(), False
                    else:
                        self._next_time()
                        match, over = None, True
                elif self.maker.gathering is not None:
                    self.maker.position_walk(<uint32_t>self.ready[self.at])
                    self.at += 1
                    match, over = self._made(), False
                elif self.maker.selection is not None:
                    self.maker.selection.position_walk(
                        self.at if self.ready is None else <uint32_t>self.ready[self.at]
                    )
                    self.at += 1
                    match, over = self._made(), False
                elif self._walks():
                    if self.picks is not None:
                        over = self._passes()
                    else:
                        over = (
                            self.maker.marks is not None and self.maker.marks.passes_over()
                        )
                    match = None if over else self._made()
                    if self.picks is not None and self._leaves():
                        pass    # the walk has left the node
                    elif not core.transitions.walk.has_next():
                        self.walking = False
                        self.at += 1
                else:
                    self.walking = False
                    self.at += 1
                    match, over = None, True
                self.failed = False
                if match is not None or not over and self.maker.pauses():
                    return match
            if self.batch is None or core.event.match_generation != self.turn:
                raise StopIteration
            if self.after > self.first and self.kb.changes:
                raise StopIteration
            if not self._advance_run():
                raise StopIteration

    cdef bint _walks(self) except -1:
        """Go to the next match of the current node; False if there is none."""
        cdef AutomatonCore core = self.maker.core
        if not self.walking:
            core.transitions.walk.begin(
                core.instant.accepted[self.at],
                <instant_t>self.apart[self.at] if core.tables.apart else self.since,
            )
            self.walking = True
        if not core.transitions.walk.advance():
            return False
        if self.picks is None and not count_match(core.event, &self.listed):
            self.at = self.count - 1    # the last node
            return False
        return True

    cdef bint _advance_run(self) except -1:
        """Process events up to one that completes matches; False if there is none."""
        cdef uint32_t before = self.after
        self.failed = True
        try:
            self.after = self.maker.step.run(
                self.batch, before, self.stream, self.file, self.position + before - self.first
            )
        except BaseException:
            self.after = self.maker.step.reached
            raise
        if self.maker.core.instant.accepted_count == 0 and self.after < self.batch.event_count and (
            self.maker.step.waits_for_closing(self.batch, self.after)
        ):
            self.turn = self.maker.core.event.match_generation
            self.version = self.kb.version
            self.close(self.batch.events[self.after].micros, INT64_MAX)
            self.failed = False
            return True
        if self.maker.core.instant.accepted_count == 0:
            self.turn = self.maker.core.event.match_generation
            self.batch = None
            self.failed = False
            return False
        self.version = self.kb.version
        self.collect()
        self.failed = False
        return True
