"""`MultiDriver`: several queries, or several streams, over encoded events in one loop.

An event is dispatched by an inverted index to the queries that can use it. Each of them processes
the event on its own automaton, in the order of the queries. All other queries are left alone: an
event that no place of a query waits for would only advance the query's time, and the next event
that the query processes does that anyway. Only a deadline wakes a query: a heap orders the times at
which the windows of waiting matches close. Queries whose state changes with every event (strict
operators, windows that count events, lazy joins, entailment) process every event of their streams.

Simultaneous events of several streams belong to one instant. A query closes an instant when all its
streams have passed it, or with its timestamp. An event with ordinal 0 is processed at once; one
with a greater ordinal is held until all others have passed its instant, or the timestamp closes.
The last event of an instant thus finds the others held, and `_release` processes them before it.

A query that reads a registered stream processes a timestamp when it closes, because only then all
events that the writer registers at it are known. Writers precede readers, and the matches of a
writer are taken before its readers are closed. The index lists all readers of such a query, whether
some partial match waits for them or not, since earlier events of the timestamp are still to come.

Invariants: before an event is processed, all timestamps before its own are closed; the index lists
exactly the readers that some partial match waits for, but for those of such queries. Cost of an
event: see `_query_index`, plus the cost of the event for each query that it is dispatched to.
"""

from libc.stdint cimport INT64_MAX, INT64_MIN

from spaseq.nfa.native._automaton cimport ends_before
from spaseq.nfa.native._tecs cimport Awaited, closing_of
from spaseq.rdf.native._terms cimport later, mem_calloc, mem_free, mem_grow

# The outcome of `_event`.
cdef enum Outcome:
    PROCESSED
    COMPLETED   # and some query has complete matches
    CLOSED      # not processed yet: matches of earlier timestamps come first
    REFUSED     # the event is out of order, or has to wait for an event of another stream

cdef enum:
    NO_STREAM = 0xFFFFFFFF
    MOST_GROUPS = 64    # of a set of groups


cdef int64_t next_closing(Window window) noexcept nogil:
    """The first time at which the window of a waiting match has closed; INT64_MAX if none does."""
    cdef int64_t i = window.bound
    if window.counted or window.endless:
        return INT64_MAX
    while i <= window.now:
        if window.awaited[i & window.times_mask] != NULL:
            return later(
                closing_of(window, window.times[i & window.times_mask]), not window.tumbling
            )
        i += 1
    return INT64_MAX


cdef bint start_now(Window window, uint64_t count) noexcept nogil:
    """Whether some matches that wait since the current instant also start there."""
    cdef const Awaited* match = window.awaited[window.now & window.times_mask]
    while match != NULL and count:
        match = match.next
        count -= 1
    return match == NULL and count == 0


cdef class MultiDriver:
    """The driver of several queries.

    Args:
        streams: the IRIs of all streams, registered ones included.
        queries: (driver of the query, its streams, whether its matches wait for the end of an
            instant, whether it reads a registered stream, whether it registers one) of each query.
        tasks: per query and GPM, the number of its pattern.
        keys: per pattern, the keys of its requirement (`dispatch_keys`).
        window: the terms of the window that the queries share.
        counted: whether that window counts events.
    """

    def __cinit__(
        self, streams, queries, tasks, keys, WindowTerms window not None, bint counted
    ):
        self.streams = {iri: number for number, iri in enumerate(streams)}
        self.stream_count = <uint32_t>len(self.streams)
        self.window, self.counted = window, counted
        self.domain, self.micros = -1, INT64_MIN
        self.held_batches = []
        self._set_members(queries)
        self.derives = (<NativeStep>self.steps[0]).graph.deriver is not None
        self.delayed = DelayedEvents(self.query_count)
        self._set_groups([() if delayed else reads for _, reads, _, delayed, _ in queries])
        self._set_index(keys, tasks)
        self._set_shared()

    def __dealloc__(self):
        mem_free(self.members)
        mem_free(self.locals)
        mem_free(self.seen)
        mem_free(self.post_first)
        mem_free(self.matchers)
        mem_free(self.shared)
        mem_free(self.share_of)
        mem_free(self.states)
        mem_free(self.groups)
        mem_free(self.group_streams)
        mem_free(self.group_reads)
        mem_free(self.opened)
        mem_free(self.touched)
        mem_free(self.held)
        mem_free(self.deadlines)
        mem_free(self.ready)
        mem_free(self.ready_flags)
        mem_free(self.ready_until)
        mem_free(self.batch_streams)
        mem_free(self.batch_files)

    # ---------------------------------------------------------------- linking

    cdef int _set_members(self, queries) except -1:
        cdef uint32_t i, local, count = <uint32_t>len(queries)
        cdef NativeStep step
        cdef Member* member
        self.query_count = count
        self.steps = [step for step, *_ in queries]
        self.members = <Member*>mem_calloc(count, sizeof(Member))
        self.locals = <uint32_t*>mem_calloc(count * <size_t>self.stream_count, sizeof(uint32_t))
        self.seen = <uint64_t*>mem_calloc(count * <size_t>self.stream_count, sizeof(uint64_t))
        self.states = <StreamState*>mem_calloc(self.stream_count, sizeof(StreamState))
        self.opened = <uint32_t*>mem_calloc(count, sizeof(uint32_t))
        self.touched = <uint32_t*>mem_calloc(count, sizeof(uint32_t))
        self.deadlines = <Deadline*>mem_calloc(count, sizeof(Deadline))
        self.ready = <uint32_t*>mem_calloc(count, sizeof(uint32_t))
        self.ready_flags = <uint8_t*>mem_calloc(count, 1)
        self.ready_until = <int64_t*>mem_calloc(count, sizeof(int64_t))
        for i, (step, reads, waits, delayed, registers) in enumerate(queries):
            member = &self.members[i]
            member.step = <PyObject*>step
            member.dispatch = <PyObject*>step.dispatch
            member.core = <PyObject*>step.core
            member.steady = step.steady
            member.waits, member.delayed, member.registers = waits, delayed, registers
            self.delays |= member.delayed
            member.selected = NO_STREAM
            for local in range(self.stream_count):
                self.locals[i * <size_t>self.stream_count + local] = NO_STREAM
            for local, iri in enumerate(reads):
                self.locals[i * <size_t>self.stream_count + <uint32_t>self.streams[iri]] = local
        return 0

    cdef int _set_groups(self, reads) except -1:
        cdef uint32_t number, end = 0
        cdef dict known = {}
        cdef list groups = [
            known.setdefault(frozenset(some), len(known)) for some in reads
        ]
        self.group_count = <uint32_t>len(known)
        self.groups = <StreamGroup*>mem_calloc(self.group_count, sizeof(StreamGroup))
        self.group_streams = <uint32_t*>mem_calloc(sum(map(len, known)), sizeof(uint32_t))
        self.group_reads = <bint*>mem_calloc(
            self.group_count * <size_t>self.stream_count, sizeof(bint)
        )
        for some, number in known.items():
            self.groups[number].first = end
            for iri in some:
                self.group_streams[end] = self.streams[iri]
                self.group_reads[
                    number * <size_t>self.stream_count + self.group_streams[end]
                ] = True
                end += 1
            self.groups[number].end = end
            self.plural |= len(some) > 1
        for number, group in enumerate(groups):
            self.members[number].group = group
        return 0

    cdef int _set_index(self, keys, tasks) except -1:
        """List the keys of the readers of each query; a query that is not steady has one entry."""
        cdef uint32_t i, reader, stream
        cdef list entries = []  # (query, reader or the one after all readers, stream, key)
        for i in range(self.query_count):
            self.members[i].posts = self.reader_count
            self.reader_count += (<Dispatch>self.members[i].dispatch).reader_count + 1
            entries += self._entries_of(i, keys, tasks[i])
        self.post_first = <uint32_t*>mem_calloc(self.reader_count + 1, sizeof(uint32_t))
        self.index = QueryIndex(
            (<NativeStep>self.members[0].step).graph, self.query_count, self.stream_count,
            [(stream, key) for _, _, stream, key in entries],
        )
        for i, reader, stream, key in entries:
            self.index.add(i, stream, key)
            self.post_first[self.members[i].posts + reader + 1] = self.index.post_count
        for i in range(self.reader_count):
            self.post_first[i + 1] = max(self.post_first[i], self.post_first[i + 1])
        return 0

    cdef list _entries_of(self, uint32_t query, keys, tasks):
        """(query, reader, stream, key) of each key of a query's readers."""
        cdef uint32_t i, stream
        cdef Dispatch dispatch = <Dispatch>self.members[query].dispatch
        cdef Reader* reader
        cdef list entries = []
        if not self.members[query].steady:
            for stream in range(self.stream_count):
                if self.locals[query * <size_t>self.stream_count + stream] != NO_STREAM:
                    entries.append((query, dispatch.reader_count, stream, None))
            return entries
        for i in range(dispatch.reader_count):
            reader = &dispatch.readers[i]
            stream = self._stream_of(query, reader.stream)
            found = keys[tasks[dispatch.gpms[reader.first]]]
            for key in [None] if found is None else found:
                entries.append((query, i, stream, key))
        return entries

    cdef int _set_shared(self) except -1:
        """Find the matchers that several queries have."""
        cdef uint32_t i, j, number
        cdef Dispatch dispatch
        cdef Reader* reader
        cdef dict users = {}, matchers = {}, shared = {}
        for i in range(self.query_count):
            dispatch = <Dispatch>self.members[i].dispatch
            for j in range(dispatch.reader_count):
                if dispatch.readers[j].matcher != NULL:
                    users.setdefault(<size_t>dispatch.readers[j].matcher, set()).add(i)
        for address, queries in users.items():
            if len(queries) > 1:
                matchers[address] = len(matchers)
        self.matcher_count = <uint32_t>len(matchers)
        self.matchers = <SharedMatcher*>mem_calloc(self.matcher_count, sizeof(SharedMatcher))
        self.shared = <SharedReader*>mem_calloc(
            self.matcher_count * <size_t>self.stream_count, sizeof(SharedReader)
        )
        for address, number in matchers.items():
            self.matchers[number].matcher = <PyObject*><size_t>address
        self.share_of = <uint32_t*>mem_calloc(self.reader_count, sizeof(uint32_t))
        for i in range(self.query_count):
            dispatch = <Dispatch>self.members[i].dispatch
            for j in range(dispatch.reader_count):
                reader = &dispatch.readers[j]
                if <size_t>reader.matcher not in matchers:
                    continue
                reader.shared = True
                if not self.members[i].steady:
                    self.members[i].reads_all = True
                    continue
                stream = self._stream_of(i, reader.stream)
                key = matchers[<size_t>reader.matcher], stream
                number = shared.setdefault(key, len(shared))
                self.shared[number].matcher, self.shared[number].stream = key
                self.share_of[self.members[i].posts + j] = number + 1
        self.shared_count = <uint32_t>len(shared)
        return 0

    cdef uint32_t _stream_of(self, uint32_t query, uint32_t local) noexcept:
        """The number of a stream, given the number by which a query knows it."""
        cdef uint32_t stream
        for stream in range(self.stream_count):
            if self.locals[query * <size_t>self.stream_count + stream] == local:
                return stream
        return NO_STREAM

    # ---------------------------------------------------------------- state

    def load(self, closed, domain, times, opened, bint gaps):
        """Adopt the state of the queries, after other code has processed events.

        Args:
            closed: The timestamp before which all are closed, in microseconds, or None.
            domain: Whether times are dates; None before the first event.
            times: Stream → (time of its last event, ordinal of the next one at that time).
            opened: Per query, the ordinal of its open instant, or None.
            gaps: Whether ordinals may be missing.
        """
        cdef uint32_t i
        cdef Member* member
        cdef StreamState* state
        self.begun = closed is not None
        self.micros = closed if self.begun else INT64_MIN
        self.domain = -1 if domain is None else domain
        self.gaps = gaps
        for i in range(self.stream_count):
            self.states[i].begun = False
        for i in range(self.shared_count):
            self.shared[i].open = 0
        for i in range(self.matcher_count):
            self.matchers[i].awaited = 0
            self.matchers[i].tried = (<NativeMatcher>self.matchers[i].matcher).tried
        for iri, (micros, ordinal) in times.items():
            state = &self.states[<uint32_t>self.streams[iri]]
            state.begun, state.micros, state.next = True, micros, ordinal
        self.opened_count = self.deadline_count = self.ready_count = 0
        self.in_closing, self.closing = False, self.query_count
        self._drop_held()
        self.delayed.clear()
        for i in range(self.group_count):
            self.groups[i].certain = self._certain(&self.groups[i])
        for i in range(self.query_count):
            member = &self.members[i]
            member.opened, member.timed = opened[i] is not None, False
            member.passed = INT64_MIN
            member.waited = (<AutomatonCore>member.core).transitions.waited
            if member.opened:
                member.ordinal = opened[i]
                self.opened[self.opened_count] = i
                self.opened_count += 1
            self._load_member(i, <NativeStep>member.step, <Dispatch>member.dispatch)
        self.loaded = True

    cdef int _load_member(self, uint32_t query, NativeStep step, Dispatch dispatch) except -1:
        cdef uint32_t i
        cdef Member* member = &self.members[query]
        step.check_exclusive()
        dispatch.settle_all()
        dispatch.turned = 0
        member.selected = NO_STREAM
        for i in range(self.stream_count):
            self.seen[query * <size_t>self.stream_count + i] = self.states[i].events
        if member.steady:
            self._attend(query, dispatch, step.core, True)
        if member.delayed or not member.steady:
            i = self.post_first[member.posts]
            while i < self.post_first[member.posts + dispatch.reader_count + 1]:
                self.index.insert(i)
                i += 1
        return self._schedule(query, step, step.core)

    def delay(self, uint32_t query, EventBatch batch not None, uint32_t index, uint32_t file):
        """Let a query that reads a registered stream process an event when its timestamp closes.

        The batch must not change until then; events may be appended to it.
        """
        cdef uint32_t stream = self.streams[batch.stream]
        self.delayed.retain(batch)
        self.delayed.add(query, batch, index, stream, file, self.delayed.arrivals)

    def register(
        self, tuple readers not None, EventBatch batch not None, uint32_t index, uint32_t file
    ):
        """As `delay`, for the last event of a registered stream and all queries that read it.

        The event stands before the input event whose match it is, and behind all events if it
        comes when a timestamp closes.
        """
        cdef uint32_t reader, stream = self.streams[batch.stream]
        cdef uint64_t arrival = self.delayed.arrivals - (not self.in_closing)
        self.states[stream].events += 1
        self.delayed.retain(batch)
        for reader in readers:
            self.delayed.add(reader, batch, index, stream, file, arrival)
            if self.in_closing:
                self.index.mark(reader)

    @property
    def delaying(self):
        """Whether events wait until their timestamp closes."""
        return self.delayed.count > 0

    def delayed_by(self, uint32_t query):
        """The events that a query processes when their timestamps close: (batch, index)."""
        return self.delayed.of(query)

    def unload(self):
        """Release the state of the queries for changes by other code; `load` must follow."""
        cdef uint32_t i
        self.loaded = False
        self.delayed.clear()
        self.sequence = None
        for i in range(self.query_count):
            # The loop has tracked the awaited patterns of all streams; the driver tracks those of
            # one.
            (<Dispatch>self.members[i].dispatch).attentive = False

    def settle(self):
        """Update the counters of all patterns and places."""
        cdef uint32_t i
        cdef Member* member
        for i in range(self.query_count):
            member = &self.members[i]
            self._count_passed(i, <Dispatch>member.dispatch)
            (<Dispatch>member.dispatch).settle_all()
            member.selected = NO_STREAM
        for i in range(self.shared_count):
            self._share(i, 0)
        for i in range(self.matcher_count):
            self._settle_matcher(&self.matchers[i], <NativeMatcher>self.matchers[i].matcher)

    cdef int _settle_matcher(self, SharedMatcher* shared, NativeMatcher matcher) noexcept:
        """Count the events at which a shared matcher was awaited but could not produce a row."""
        cdef uint64_t evaluated = matcher.tried - shared.tried
        if shared.awaited > evaluated:
            matcher.count_skipped(shared.awaited - evaluated)
        shared.awaited, shared.tried = 0, matcher.tried
        return 0

    cdef int _share(self, uint32_t number, int change) noexcept nogil:
        """Count the events of a shared matcher, before the queries that wait for it change."""
        cdef SharedReader* shared = &self.shared[number]
        cdef uint64_t events = self.states[shared.stream].events
        if shared.open:
            self.matchers[shared.matcher].awaited += events - shared.since
        shared.since = events
        shared.open += change
        return 0

    def held_by(self, uint32_t query):
        """The events that a query has to process when its timestamp closes: (batch, index)."""
        cdef uint32_t i
        return [
            (<EventBatch>self.held[i].batch, self.held[i].index)
            for i in range(self.held_count)
            if self.held[i].groups >> self.members[query].group & 1
        ]

    @property
    def holding(self):
        """Whether events are held."""
        return self.held_count > 0

    def is_open(self, uint32_t query):
        """Whether an instant of a query is open."""
        return bool(self.members[query].opened)

    @property
    def ordinals(self):
        """Stream → the ordinal of its next event at the current timestamp, if it had events."""
        cdef StreamState* state
        found = {}
        for iri, number in self.streams.items():
            state = &self.states[<uint32_t>number]
            if state.begun and state.micros == self.micros:
                found[iri] = state.next
        return found

    # ---------------------------------------------------------------- a sequence of events

    cpdef uint32_t run(
        self, EventSequence events, uint32_t first, uint32_t end, int64_t position, files,
        bint holds,
    ) except? 0xFFFFFFFF:
        """Process events of a sequence.

        Stops after an event that completes matches, before an event whose timestamp closes windows
        with matches, or before an event that the driver does not accept; `ready_count` is 0 in the
        last case. The caller takes the matches of the ready queries before the next call.

        Args:
            events: The events.
            first, end: The events to process.
            position: The number of earlier events of the run.
            files: Per batch of the sequence, the number of its file.
            holds: Whether events may be held; their batches must not change.

        Returns:
            The index of the next event. If `in_closing` is set, the caller takes the matches and
            calls again at once, since timestamps have closed only in part.
        """
        cdef uint32_t i, index, query
        cdef Member* member
        cdef uint32_t count = <uint32_t>len(events.batches)
        if count > self.batch_room:
            self.batch_room = 2 * count
            self.batch_streams = <uint32_t*>mem_grow(
                self.batch_streams, self.batch_room, sizeof(uint32_t), b"the batches of a run"
            )
            self.batch_files = <uint32_t*>mem_grow(
                self.batch_files, self.batch_room, sizeof(uint32_t), b"the batches of a run"
            )
        for i in range(count):
            self.batch_streams[i] = self.streams[(<EventBatch>events.batch_at[i]).stream]
            self.batch_files[i] = files[i]
        for i in range(self.ready_count):
            query = self.ready[i]
            member = &self.members[query]
            self._refresh(
                query, <NativeStep>member.step, <Dispatch>member.dispatch,
                <AutomatonCore>member.core,
            )
        self.ready_count = 0
        self.reached = first
        self.holds = holds and not self.counted and self.group_count <= MOST_GROUPS
        for batch in self.held_batches:
            (<EventBatch>batch).refit()
        if self.delays and events is not self.sequence:
            self.sequence = events
            self.delayed.prune()
            for batch in events.batches:
                self.delayed.retain(batch)
        self.delayed.refit()
        try:
            if end - first <= 1:
                return self._run(events, first, end, position)
            with nogil:
                index = self._run(events, first, end, position)
            return index
        finally:
            self._rest(events)

    cdef int _refresh(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil:
        """Update the entries of a query after its matches have been taken."""
        self._update(query, dispatch, core)
        return self._schedule(query, step, core)

    cdef int _rest(self, EventSequence events) except -1:
        """Take the batches from the queries."""
        cdef uint32_t i
        cdef NativeStep step
        cdef Member* member
        for i in range(self.touched_count):
            member = &self.members[self.touched[i]]
            step = <NativeStep>member.step
            step.batch = step.core.event.batch = step.idle
            member.touched = False
        self.touched_count = 0
        for i in range(<uint32_t>len(events.batches)):
            (<EventBatch>events.batch_at[i]).window = NULL
        for batch in self.held_batches:
            (<EventBatch>batch).window = NULL
        return self.delayed.rest()

    cdef uint32_t _run(
        self, EventSequence events, uint32_t first, uint32_t end, int64_t position
    ) except? 0xFFFFFFFF nogil:
        cdef uint32_t number
        cdef int outcome
        cdef uint32_t index = first, batch
        while index < end:
            batch, number = events.at(index).batch, events.at(index).index
            outcome = self._event(
                <EventBatch>events.batch_at[batch], number, self.batch_streams[batch],
                self.batch_files[batch], position + (index - first) + 1,
            )
            if outcome == Outcome.PROCESSED:
                index += 1
                self.reached = index
                continue
            if outcome == Outcome.COMPLETED:
                index += 1
                self.reached = index
            return index
        return index

    # ---------------------------------------------------------------- one event

    cdef int _event(
        self, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file, int64_t position
    ) except -1 nogil:
        """Process an event for all queries that can use it."""
        cdef const EventRecord* event = &batch.events[index]
        cdef StreamState* state = &self.states[stream]
        cdef Member* member
        cdef uint64_t present, waiting = 0, released = 0
        cdef uint32_t query, word = 0, expected = 0
        cdef bint rises, resumed
        if <int>event.domain != self.domain:
            if self.domain >= 0:
                return Outcome.REFUSED
            self.domain = event.domain
        if event.micros < self.micros:
            return Outcome.REFUSED
        if state.begun and state.micros == event.micros:
            expected = state.next
        if event.ordinal != expected and not (self.gaps and event.ordinal > expected):
            return Outcome.REFUSED
        if self.plural and event.ordinal:
            waiting = self._waits_for_streams(stream, event)
        if waiting and not self._may_hold(event):
            return Outcome.REFUSED
        if event.micros > self.micros:
            resumed = self.in_closing
            self._close_before(event.micros)
            # The matches of closed timestamps are taken apart from those of the event.
            if self.ready_count or resumed:
                return Outcome.CLOSED
        self.begun = True
        self.window.advance_to(position if self.counted else event.micros)
        state.begun, state.micros, state.next = True, event.micros, event.ordinal + 1
        state.events += 1
        self.delayed.arrivals += 2
        present = mark_event(self.index, stream, batch, event)
        if self.derives:
            present = ANY
        if self.held_count and event.ordinal:
            released = self._released(stream, event, waiting)
        if waiting:
            self._hold(batch, index, stream, file, waiting)
        rises = self._pass(stream)
        while True:
            query = next_marked(self.index, &word)
            if query == self.query_count:
                break
            member = &self.members[query]
            if released and (
                self.locals[query * <size_t>self.stream_count + stream] == NO_STREAM
            ):
                continue  # a released event has marked it, which it has processed before
            if member.delayed:
                self.delayed.add(query, batch, index, stream, file, self.delayed.arrivals)
                continue
            if waiting >> member.group & 1:
                continue
            self.failing = query
            if released >> member.group & 1:
                self._release(
                    query, <NativeStep>member.step, <Dispatch>member.dispatch,
                    <AutomatonCore>member.core, event.ordinal,
                )
            self._process(
                query, <NativeStep>member.step, <Dispatch>member.dispatch,
                <AutomatonCore>member.core, batch, index, stream, file, present, True,
            )
        if released:
            self._drop_released(released, event.ordinal)
        if rises:
            self._drop_closed()
        return Outcome.COMPLETED if self.ready_count else Outcome.PROCESSED

    cdef uint64_t _waits_for_streams(
        self, uint32_t stream, const EventRecord* event
    ) noexcept nogil:
        """The groups of streams that have not passed the instant of an event; all if many.

        The instant has a positive ordinal.
        """
        cdef uint32_t i, j
        cdef uint64_t waiting = 0
        cdef const StreamGroup* group
        cdef const StreamState* other
        for i in range(self.group_count):
            if not self.group_reads[i * <size_t>self.stream_count + stream]:
                continue
            group = &self.groups[i]
            for j in range(group.first, group.end):
                other = &self.states[self.group_streams[j]]
                if self.group_streams[j] != stream and not (
                    other.begun and other.micros == event.micros and other.next > event.ordinal
                ):
                    if i >= MOST_GROUPS:
                        return ~<uint64_t>0
                    waiting |= <uint64_t>1 << i
        return waiting

    cdef bint _may_hold(self, const EventRecord* event) noexcept nogil:
        """Whether an event can be held, and held events remain in order."""
        if not self.holds or self.gaps:
            return False
        return event.micros > self.micros or self.held_count == 0 or (
            self.held[self.held_count - 1].ordinal <= event.ordinal
        )

    cdef uint64_t _released(
        self, uint32_t stream, const EventRecord* event, uint64_t waiting
    ) noexcept nogil:
        """The groups whose held events of the event's instant need not wait any longer.

        All streams of such a group have passed the instant with the event. Marks the queries that
        can use the held events.
        """
        cdef uint32_t i
        cdef const Held* held
        cdef uint64_t released = 0
        for i in range(self.group_count):
            if self.groups[i].held and not waiting >> i & 1 and (
                self.group_reads[i * <size_t>self.stream_count + stream]
            ):
                released |= <uint64_t>1 << i
        for i in range(self.held_count if released else 0):
            held = &self.held[i]
            if held.ordinal == event.ordinal and held.groups & released:
                mark_event(
                    self.index, held.stream, <EventBatch>held.batch,
                    &(<EventBatch>held.batch).events[held.index],
                )
        return released

    cdef int _release(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core,
        uint32_t ordinal,
    ) except -1 nogil:
        """Process the held events of a query with an ordinal; more events of the instant follow."""
        cdef uint32_t i
        cdef const Held* held
        for i in range(self.held_count):
            held = &self.held[i]
            if held.ordinal == ordinal and held.groups >> self.members[query].group & 1:
                self._process(
                    query, step, dispatch, core, <EventBatch>held.batch, held.index, held.stream,
                    held.file, ANY, False,
                )
        return 0

    cdef int _drop_released(self, uint64_t released, uint32_t ordinal) except -1 nogil:
        """Let some groups no longer hold the events with an ordinal."""
        cdef uint32_t i, j, count = 0
        for i in range(self.held_count):
            if self.held[i].ordinal == ordinal:
                for j in range(self.group_count):
                    self.groups[j].held -= (self.held[i].groups & released) >> j & 1
                self.held[i].groups &= ~released
            if self.held[i].groups:
                self.held[count] = self.held[i]
                count += 1
        if count == 0:
            return self._drop_held()
        self.held_count = count
        return 0

    cdef int _hold(
        self, EventBatch batch, uint32_t index, uint32_t stream, uint32_t file, uint64_t groups
    ) except -1 with gil:
        """Hold an event for some groups until they release it, or its timestamp closes."""
        cdef uint32_t i
        if self.held_count == self.held_room:
            self.held_room = 2 * self.held_room + 16
            self.held = <Held*>mem_grow(
                self.held, self.held_room, sizeof(Held), b"events that wait for other streams"
            )
        if self.held_count == 0 or self.held[self.held_count - 1].batch != <PyObject*>batch:
            self.held_batches.append(batch)
        self.held[self.held_count] = Held(
            <PyObject*>batch, index, stream, file, batch.events[index].ordinal, groups
        )
        self.held_count += 1
        for i in range(min(self.group_count, <uint32_t>MOST_GROUPS)):
            self.groups[i].held += groups >> i & 1
        return 0

    cdef int _drop_held(self) except -1 with gil:
        """Forget the held events."""
        cdef uint32_t i
        for batch in self.held_batches:
            (<EventBatch>batch).window = NULL
        self.held_batches.clear()
        self.held_count = 0
        for i in range(self.group_count):
            self.groups[i].held = 0
        return 0

    cdef uint32_t _certain(self, const StreamGroup* group) noexcept nogil:
        """The ordinal before which all streams of a group have passed the current instants."""
        cdef uint32_t i, least = 0xFFFFFFFFu
        cdef const StreamState* state
        for i in range(group.first, group.end):
            state = &self.states[self.group_streams[i]]
            if not (state.begun and state.micros == self.micros):
                return 0
            least = min(least, state.next)
        return least

    cdef bint _pass(self, uint32_t stream) noexcept nogil:
        """Mark the queries whose open instant all streams have passed with the current event.

        Returns whether there may be some.
        """
        cdef uint32_t i, certain
        cdef StreamGroup* group
        cdef bint rises = False
        for i in range(self.group_count):
            if not self.group_reads[i * <size_t>self.stream_count + stream]:
                continue
            group = &self.groups[i]
            certain = self._certain(group)
            rises |= certain > group.certain and group.end - group.first > 1
            group.certain = certain
        if not rises:
            return False
        for i in range(self.opened_count):
            if self.members[self.opened[i]].ordinal < (
                self.groups[self.members[self.opened[i]].group].certain
            ):
                self.index.mark(self.opened[i])
        return True

    cdef int _drop_closed(self) noexcept nogil:
        """Remove queries from `opened` whose instant has closed."""
        cdef uint32_t i, count = 0
        for i in range(self.opened_count):
            if self.members[self.opened[i]].opened:
                self.opened[count] = self.opened[i]
                count += 1
        self.opened_count = count
        return 0

    cdef int _close_before(self, int64_t micros) except -1 nogil:
        """Close the timestamps before a time, with their instants, held events and due windows.

        If it returns with `in_closing` set, the matches of the ready queries must be taken before
        it continues.
        """
        cdef uint32_t i, word = 0
        cdef Member* member
        if not self.in_closing:
            for i in range(self.opened_count):
                self.index.mark(self.opened[i])
            self.opened_count = 0
            while self.deadline_count and self.deadlines[0].micros <= micros:
                self.index.mark(self._pop_deadline())
            if self.held_count:
                for i in range(self.query_count):
                    if self.groups[self.members[i].group].held:
                        self.index.mark(i)
            for i in range(self.delayed.listed):
                self.index.mark(self.delayed.queries[i])
            self.in_closing, self.closing_micros = True, micros
            self.closing = self.query_count
        while True:
            if self.closing == self.query_count:
                self.closing = next_marked(self.index, &word)
                self.held_at = 0
            if self.closing == self.query_count:
                break
            self.failing = self.closing
            member = &self.members[self.closing]
            if not self._close(
                self.closing, <NativeStep>member.step, <Dispatch>member.dispatch,
                <AutomatonCore>member.core,
            ):
                return 0
            self.closing = self.query_count
            if member.registers and self.ready_count:
                return 0
        self.in_closing, self.micros = False, micros
        self.delayed.drop_unlisted()
        if self.held_count:
            self._drop_held()
        for i in range(self.group_count):
            self.groups[i].certain = 0
        return 0

    cdef bint _close(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil:
        """Close the timestamp of a query; it is ready if it has matches.

        Returns False if the matches must be taken before the timestamp has closed.
        """
        cdef uint8_t flags = 0
        if self.members[query].delayed:
            return self._close_delayed(query, step, dispatch, core)
        if self.held_count and not self._process_held(query, step, dispatch, core):
            return False
        if self.members[query].opened:
            self._end_instant(query, step, dispatch, core)
            if core.instant.accepted_count:
                # These matches may begin a window of groups that ends now.
                flags |= Ready.COMPLETE | (Ready.DUE if step.tumbles else 0)
        if self._is_due(step, core, self.closing_micros):
            flags |= Ready.DUE
        if flags:
            self._make_ready(query, flags, self.closing_micros)
        else:
            self._schedule(query, step, core)
        return True

    cdef bint _is_due(self, NativeStep step, AutomatonCore core, int64_t until) except -1 nogil:
        """Whether windows with matches, or groups, close by a time."""
        return step.deadline <= until or (
            core.window.awaited_count and core.window.closes(until)
        ) or ends_before(core.deadlines, until)

    cdef bint _close_delayed(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil:
        """Close the timestamps of a query that reads a registered stream, with their events.

        Returns False if matches must be taken before the timestamps have closed.
        """
        cdef Member* member = &self.members[query]
        cdef const Delayed* event
        cdef int64_t until
        cdef uint32_t ready = self.ready_count
        while True:
            event = self.delayed.first_before(query, self.closing_micros)
            until = self.closing_micros if event == NULL else event.micros
            if member.opened and (
                event == NULL or event.micros != core.window.micros
                or event.ordinal != member.ordinal
            ):
                self._end_instant(query, step, dispatch, core)
                if core.instant.accepted_count:
                    self._make_ready(query, Ready.COMPLETE, until)
                    return False
            if until > member.passed:
                member.passed = until
                if self._is_due(step, core, until):
                    self._make_ready(query, Ready.DUE, until)
                    return False
            if event == NULL:
                self._schedule(query, step, core)
                return True
            self._process(
                query, step, dispatch, core, <EventBatch>event.batch, event.index, event.stream,
                event.file, ANY, True,
            )
            self.delayed.remove_first(query)
            if self.ready_count > ready:
                return False

    cdef bint _process_held(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil:
        """Process the held events of a query, up to one that completes matches; False if so."""
        cdef Member* member = &self.members[query]
        cdef const Held* held
        cdef uint32_t ready = self.ready_count
        while self.held_at < self.held_count:
            held = &self.held[self.held_at]
            if not held.groups >> member.group & 1:
                self.held_at += 1
                continue
            if member.opened and member.ordinal != held.ordinal:
                self._end_instant(query, step, dispatch, core)
                if core.instant.accepted_count:
                    self._make_ready(query, Ready.COMPLETE, self.closing_micros)
                    return False
            self.held_at += 1
            self._process(
                query, step, dispatch, core, <EventBatch>held.batch, held.index, held.stream,
                held.file, ANY, True,
            )
            self.opened_count = 0
            if self.ready_count > ready:
                return False
        return True

    cdef int _end_instant(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil:
        cdef Member* member = &self.members[query]
        cdef uint64_t added
        step.batch.window = &step.window.store
        member.opened = False
        core.end_instant()
        added = core.transitions.waited - member.waited
        if added:
            member.waited += added
            # Matches that start now close after all others.
            if member.timed and not start_now(core.window, added):
                self._wake_by(query, next_closing(core.window))
        return self._update(query, dispatch, core)

    cdef int _update(
        self, uint32_t query, Dispatch dispatch, AutomatonCore core
    ) except -1 nogil:
        """Update the entries of a query if its awaited patterns may have changed."""
        core.instant.changed_places |= dispatch.turned
        dispatch.turned = 0
        if core.instant.changed_places and self.members[query].steady:
            self._attend(query, dispatch, core, False)
        return 0

    cdef int _touch(
        self, uint32_t query, NativeStep step, AutomatonCore core, EventBatch batch
    ) except -1 with gil:
        """Give a query the batch of the current event."""
        if not self.members[query].touched:
            step.check_exclusive()
            self.members[query].touched = True
            self.touched[self.touched_count] = query
            self.touched_count += 1
        step.batch = core.event.batch = batch
        return 0

    cdef int _process(
        self, uint32_t query, NativeStep step, Dispatch dispatch, AutomatonCore core,
        EventBatch batch, uint32_t index, uint32_t stream, uint32_t file, uint64_t present,
        bint last,
    ) except -1 nogil:
        """Process an event for one query; `last`: no other event of the instant follows at once."""
        cdef Member* member = &self.members[query]
        cdef const EventRecord* event = &batch.events[index]
        cdef size_t place = query * <size_t>self.stream_count + stream
        cdef uint32_t local = self.locals[place]
        cdef bint closes, opens = not member.opened
        self.touches += 1
        if step.batch is not batch:
            self._touch(query, step, core, batch)
        batch.window = &step.window.store
        if member.selected != local:
            dispatch.select(local)
            member.selected = step.stream = local
            if not member.steady:
                dispatch.attentive = False
        if member.opened and member.ordinal != event.ordinal:
            self._end_instant(query, step, dispatch, core)
        if step.apart:
            step.count_event(0)
        if not member.opened:
            core.begin_instant(event.micros)
            member.opened, member.ordinal = True, event.ordinal
        step.event(
            dispatch, index, local, file, ANY if member.reads_all else present, False
        )
        self.seen[place] += 1
        closes = last and not member.delayed and self.groups[member.group].certain > event.ordinal
        if closes:
            self._end_instant(query, step, dispatch, core)
        else:
            self._update(query, dispatch, core)
            if opens and not member.delayed:
                self.opened[self.opened_count] = query
                self.opened_count += 1
        if not last:
            return 0
        if core.instant.accepted_count and (closes or not member.waits):
            return self._make_ready(query, Ready.COMPLETE, self.closing_micros)
        if member.timed:
            if core.deadlines.soonest_ending < member.wakes - 1:
                self._schedule(query, step, core)
        elif core.window.awaited_count or core.deadlines.soonest_ending < INT64_MAX:
            self._schedule(query, step, core)
        return 0

    cdef int _attend(
        self, uint32_t query, Dispatch dispatch, AutomatonCore core, bint all
    ) except -1 nogil:
        """List the readers of a query that partial matches now wait for, and no others."""
        cdef uint32_t i, j, first = self.members[query].posts
        cdef Reader* reader
        cdef bint was_open
        self._count_passed(query, dispatch)
        for i in range(dispatch.reader_count):
            reader = &dispatch.readers[i]
            if not all and not reader.places & core.instant.changed_places:
                continue
            was_open = reader.open and not all
            dispatch.attend_to(reader)
            if self.share_of[first + i] and reader.open != was_open:
                self._share(self.share_of[first + i] - 1, 1 if reader.open else -1)
            if self.members[query].delayed:
                continue
            for j in range(self.post_first[first + i], self.post_first[first + i + 1]):
                if reader.open:
                    self.index.insert(j)
                else:
                    self.index.remove(j)
        core.instant.changed_places, dispatch.attentive = 0, True
        return 0

    cdef int _count_passed(self, uint32_t query, Dispatch dispatch) noexcept nogil:
        """Count the events that were not dispatched to a query, for its readers."""
        cdef uint32_t stream
        cdef size_t place = query * <size_t>self.stream_count
        for stream in range(self.stream_count):
            if self.locals[place + stream] != NO_STREAM:
                dispatch.unsettled_of[self.locals[place + stream]] += (
                    self.states[stream].events - self.seen[place + stream]
                )
                self.seen[place + stream] = self.states[stream].events
        return 0

    # ---------------------------------------------------------------- deadlines and results

    cdef int _schedule(self, uint32_t query, NativeStep step, AutomatonCore core) except -1 nogil:
        """Wake a query when a window of a waiting match or of groups closes, or at a deadline."""
        cdef int64_t due
        cdef int64_t micros = step.deadline
        if core.window.awaited_count and (micros != INT64_MAX or not self.members[query].timed):
            micros = min(micros, next_closing(core.window))
        if core.deadlines.soonest_ending < INT64_MAX:
            due = core.deadlines.next_due(True)
            micros = min(micros, later(due, 1))
        return self._wake_by(query, micros)

    cdef int _wake_by(self, uint32_t query, int64_t micros) noexcept nogil:
        """Wake a query at a time, unless it wakes before; INT64_MAX is no time."""
        cdef uint32_t at
        if micros == INT64_MAX:
            return 0
        if self.members[query].timed:
            # The window of an earlier start or of groups, or a deadline, may come before the
            # recorded time.
            if self.members[query].wakes <= micros:
                return 0
            self.members[query].wakes = micros
            at = 0
            while self.deadlines[at].query != query:
                at += 1
            return self._sift_up(at, Deadline(micros, query))
        self.deadline_count += 1
        self.members[query].timed, self.members[query].wakes = True, micros
        return self._sift_up(self.deadline_count - 1, Deadline(micros, query))

    cdef int _sift_up(self, uint32_t at, Deadline entry) noexcept nogil:
        """Move an entry of the heap towards the root until the heap is in order."""
        cdef uint32_t above
        while at:
            above = (at - 1) // 2
            if self.deadlines[above].micros <= entry.micros:
                break
            self.deadlines[at] = self.deadlines[above]
            at = above
        self.deadlines[at] = entry
        return 0

    cdef uint32_t _pop_deadline(self) noexcept nogil:
        """Remove the first deadline; returns its query."""
        cdef uint32_t query = self.deadlines[0].query
        cdef Deadline last
        cdef uint32_t at = 0, below = 1
        self.deadline_count -= 1
        last = self.deadlines[self.deadline_count]
        while below < self.deadline_count:
            if below + 1 < self.deadline_count and (
                self.deadlines[below + 1].micros < self.deadlines[below].micros
            ):
                below += 1
            if last.micros <= self.deadlines[below].micros:
                break
            self.deadlines[at] = self.deadlines[below]
            at, below = below, 2 * below + 1
        self.deadlines[at] = last
        self.members[query].timed = False
        return query

    cdef int _make_ready(self, uint32_t query, uint8_t flags, int64_t until) noexcept nogil:
        self.ready[self.ready_count] = query
        self.ready_flags[self.ready_count] = flags
        self.ready_until[self.ready_count] = until
        self.ready_count += 1
        return 0
