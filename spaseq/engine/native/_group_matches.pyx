# cython: language_level=3, boundscheck=False, wraparound=False
"""Solutions of groups in the core → `Match` objects, made lazily by an iterator.

For queries without HAVING whose columns are keys and aggregates. A match holds the exact sums of
its group at its instant; terms, times and aggregates are computed when the caller reads them.

Invariant: a match does not refer to the run.
Cost: linear in the steps of the newest result of the group; constant for each match.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from spaseq.engine.native._decode cimport DecodedStep, MatchDecoder
from spaseq.engine.native._group_results cimport ResultReader
from spaseq.engine.native._result_groups cimport Head, measured, timestamp_of
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport written_term
from spaseq.results._match cimport Match


cdef class GroupMatch(Match):
    """The solution of a group at an instant, computed on first access."""

    cdef MatchDecoder reading
    cdef tuple steps            # of the newest result
    cdef bytes packed           # the group, see `NativeGroups.pack`
    cdef GroupColumns columns

    cdef int decode_times(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_end is None:
                self.found_start = timestamp_of(measured(self.packed)[1])
                self.found_end = (<DecodedStep>self.steps[len(self.steps) - 1]).timestamp()
        return 0

    cdef int decode_bindings(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_bindings is None:
                self.found_bindings = self._solution()
        return 0

    cdef dict _solution(self):
        cdef dict found = {}
        count, _, totals, texts, key = measured(self.packed)
        terms = [None if text is None else written_term(text) for text in texts]
        values = self.columns.values(count, totals, terms)
        for name, is_key, place in self.columns.columns:
            if not is_key:
                value = values[place]
            else:
                value = None if key[place] is None else written_term(key[place])
            if value is not None:
                found[name] = value
        return found

    cdef int decode_events(self) except -1:
        with cython.critical_section(self.reading):
            if self.found_events is None:
                self.found_events = tuple([
                    (<DecodedStep>step).witness(self.reading) for step in self.steps
                ])
        return 0


cdef class GroupColumns:
    """The columns of a grouped SELECT.

    Args:
        query: The name of the query.
        names: Its columns.
        columns: (name, whether it is a key, number of its key or its aggregate) of each column.
        values: (results, totals, values of MIN, MAX and SAMPLE) → the values of all aggregates.
    """

    cdef readonly str query
    cdef readonly tuple names
    cdef readonly tuple columns
    cdef readonly object values

    def __cinit__(self, str query, names, columns, values):
        self.query, self.values = query, values
        self.names, self.columns = tuple(names), tuple(columns)


cdef class GroupedMatches:
    """An iterator over the solutions of the events of a batch; see `Matches`.

    It ends at an event whose results Python must group.
    """

    cdef ResultReader reader
    cdef GroupColumns columns
    cdef EventBatch batch
    cdef uint32_t first, stream, file
    cdef int64_t position
    cdef object kb
    cdef uint64_t turn
    cdef uint32_t at            # how many of the solutions of the instant have been made
    cdef bint ended
    cdef readonly uint32_t after    # the index of the next event
    cdef readonly bint failed
    cdef readonly uint64_t made

    def __cinit__(
        self, ResultReader reader not None, GroupColumns columns not None,
        EventBatch batch not None, uint32_t first, uint32_t stream, uint32_t file,
        int64_t position, kb,
    ):
        self.reader, self.columns = reader, columns
        self.batch, self.first, self.after = batch, first, first
        self.stream, self.file, self.position, self.kb = stream, file, position, kb
        self.turn = reader.core.event.match_generation

    def invalidate(self):
        """Invalidate the iterator before the run advances."""
        self.reader.core.event.match_generation += 1

    def __iter__(self):
        return self

    def __next__(self):
        cdef ResultReader reader = self.reader
        cdef GroupMatch match
        cdef Head head
        if reader.core.event.match_generation != self.turn:
            if self.at < reader.showing_count:
                raise RuntimeError(
                    "the run has gone on: consume the matches of an event before that"
                )
            raise StopIteration
        if self.at == reader.showing_count:
            self._advance()
            if self.ended:
                raise StopIteration
        match = GroupMatch.__new__(GroupMatch)
        match.steps = reader.steps(reader.showing[self.at].found)
        match.reading = reader.maker.reading
        match.columns = self.columns
        match.packed = reader.groups.pack(reader.showing[self.at].group)
        memcpy(&head, <const char*>match.packed, sizeof(Head))
        match.query, match.variables = self.columns.query, self.columns.names
        match.kb_version = self.kb.version
        match.results = head.count
        self.at += 1
        self.made += 1
        return match

    cdef int _advance(self) except -1:
        """Process events up to one with solutions; `ended` if there is none."""
        cdef ResultReader reader = self.reader
        reader.showing_count = self.at = 0
        if self.ended or (self.after > self.first and self.kb.changes):
            self.ended = True
            return 0
        self.failed = True
        try:
            self.after = reader.feed(
                self.batch, self.after, self.stream, self.file,
                self.position + self.after - self.first,
            )
        except BaseException:
            self.after = reader.maker.step.reached
            raise
        self.failed = False
        self.ended = reader.showing_count == 0
        self.turn = reader.core.event.match_generation
        return 0
