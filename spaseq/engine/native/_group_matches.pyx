# cython: language_level=3, boundscheck=False, wraparound=False
"""Solutions of groups in the core → `Match` objects, made lazily by an iterator.

For queries without HAVING whose columns are keys and aggregates. A match holds the exact sums of
its group at its event; terms, times and aggregates are computed when the caller reads them.

Invariant: a match does not refer to the run.
Cost: constant for each match.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.engine.native._decode cimport DecodedStep, MatchDecoder
from spaseq.engine.native._matches cimport MatchMaker
from spaseq.engine.native._result_groups cimport NativeGroups, timestamp_of
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.rdf._batch cimport EventBatch
from spaseq.rdf._dictionary cimport written_term
from spaseq.results._match cimport Match

from spaseq.engine.result_aggregates import values_of


cdef class GroupMatch(Match):
    """The solution of a group at an event, computed on first access."""

    cdef MatchDecoder reading
    cdef DecodedStep step
    cdef tuple measured
    cdef GroupColumns columns

    cdef int decode_times(self) except -1:
        self.found_start = timestamp_of(self.measured[1])
        self.found_end = self.step.timestamp()
        return 0

    cdef int decode_bindings(self) except -1:
        cdef dict found = {}
        count, _, totals, best = self.measured
        terms = [None if text is None else written_term(text) for text in best]
        values = values_of(self.columns.aggregates, count, totals, terms)
        for name, aggregate, columns in self.columns.columns:
            value = None
            if aggregate is not None:
                value = values[aggregate]
            elif columns[self.step.edge] >= 0:
                value = self.step.term(columns[self.step.edge] + 2)
            if value is not None:
                found[name] = value
        self.found_bindings = found
        return 0

    cdef int decode_events(self) except -1:
        self.found_events = (self.step.witness(self.reading),)
        return 0


cdef class GroupColumns:
    """The columns of a grouped SELECT.

    Args:
        query: The name of the query.
        names: Its columns.
        columns: (name, number of its aggregate or None, else the column of the key in the rows of
            each edge; -1: unbound) of each column.
        aggregates: The aggregates of the query.
    """

    cdef readonly str query
    cdef readonly tuple names
    cdef readonly tuple columns
    cdef readonly tuple aggregates

    def __cinit__(self, str query, names, columns, aggregates):
        self.query = query
        self.names, self.columns = tuple(names), tuple(columns)
        self.aggregates = tuple(aggregates)


cdef class GroupedMatches:
    """An iterator over the solutions of the events of a batch; see `Matches`.

    It ends at an event whose matches Python must group; these are then complete in the core.
    """

    cdef NativeGroups groups
    cdef MatchMaker maker
    cdef GroupColumns columns
    cdef EventBatch batch
    cdef uint32_t first, stream, file
    cdef int64_t position
    cdef object kb
    cdef uint64_t turn
    cdef uint64_t epoch
    cdef bint ended
    cdef readonly uint32_t after    # the index of the next event
    cdef readonly bint failed
    cdef readonly uint64_t made

    def __cinit__(
        self, NativeGroups groups not None, MatchMaker maker not None,
        GroupColumns columns not None, EventBatch batch not None, uint32_t first, uint32_t stream,
        uint32_t file, int64_t position, kb,
    ):
        self.groups, self.maker, self.columns = groups, maker, columns
        self.batch, self.first, self.after = batch, first, first
        self.stream, self.file, self.position, self.kb = stream, file, position, kb
        self.turn = maker.core.event.match_generation

    def invalidate(self):
        """Invalidate the iterator before the run advances."""
        self.maker.core.event.match_generation += 1

    def __iter__(self):
        return self

    def __next__(self):
        cdef AutomatonCore core = self.maker.core
        cdef GroupMatch match
        if self.ended or core.event.match_generation != self.turn or (
            self.after > self.first and self.kb.changes
        ):
            raise StopIteration
        self.failed = True
        try:
            self.after = self.groups.feed(
                self.maker.step, self.batch, self.after, self.stream, self.file,
                self.position + self.after - self.first,
            )
        except BaseException:
            self.after = self.maker.step.reached
            raise
        self.failed = False
        if not self.groups.inserted:
            self.ended = True
            raise StopIteration
        self.groups.inserted = False
        if self.maker.epoch != core.tecs.oldest:
            self.maker.forget()
            self.maker.epoch = core.tecs.oldest
        match = GroupMatch.__new__(GroupMatch)
        match.step = self.maker.step_of_label(core.instant.accepted[0].label)
        match.reading = self.maker.reading
        match.columns = self.columns
        match.measured = self.groups.measured(self.groups.newest.group)
        match.query, match.variables = self.columns.query, self.columns.names
        match.kb_version = self.kb.version
        match.results = match.measured[0]
        core.instant.accepted_count = 0
        core.event.match_generation += 1
        self.turn = core.event.match_generation
        self.made += 1
        return match
