"""The matches of several queries over a sequence of events, in the order of events and queries.

The matches of an event, or of the windows that close before it, are ordered by query. Each query's
matches are made lazily if it has a `MatchMaker`. A maker may write its matches instead of returning
them (`spaseq/io/native/match_blocks/match_blocks.pxi`); the iterator then returns None when a block
is full. Invariants: events are processed only as far as the requested match needs. Matches are made
in the order in which they are returned; those that are made all at once are objects.
"""

from operator import itemgetter

from spaseq.engine.native._driver cimport MultiDriver, Ready
from spaseq.rdf.native._terms cimport EventSequence

cdef object _END = object()


cdef class MultiMatches:
    """An iterator; `after` is the index of the next event of the sequence.

    It ends at an event that the driver refuses, and when the `kb` changes.

    Args:
        driver: the driver of the queries.
        collect: the matches of a query without a `MatchMaker`: called with the number of the query,
            whether it has complete matches, the time until which windows have closed or None, the
            events, and the number of events processed before.
        makers: per query, its `MatchMaker`, or None.
        skips: per query, whether later matches start after the end of a match.
        events, first, end: the events to process.
        position: the number of earlier events of the run.
        files: per batch of the sequence, the number of its file.
        kb: the knowledge base.
        equal: query → (place among all queries, name, maker or None) of the queries that equal it.
            A maker writes their matches; without one they are copied.
        places: per query, its place among all queries, those equal to others included.
        holds: whether events may be held until their timestamp closes.
        shares: query → what divides the matches of its automaton among the queries that share it,
            as (place, matches) by place. If it `writes`, its `written` picks the matches of each
            query, as (place, maker, picks).
        block: what the makers write to, or None; its `makes_objects` lets them make objects.
    """

    cdef MultiDriver driver
    cdef object collect
    cdef list makers
    cdef list skips
    cdef EventSequence events
    cdef uint32_t first, end
    cdef int64_t position
    cdef list files
    cdef object kb
    cdef dict equal
    cdef list places
    cdef dict shares
    cdef bint holds
    cdef object block
    cdef readonly uint32_t after
    cdef list found             # per ready query, its Matches or its list of matches
    cdef list queries           # the number of each of these queries
    cdef uint32_t at, place     # the current one, and the next match of a list
    cdef readonly object error  # raised after the matches before it
    cdef readonly bint failed   # an event or a match is unfinished after an error
    cdef readonly uint32_t failing  # the query that has failed
    cdef uint32_t blamed        # the query that `error` is of
    cdef bint ended, is_invalid

    def __cinit__(
        self, MultiDriver driver not None, collect, list makers not None, list skips not None,
        EventSequence events not None, uint32_t first, uint32_t end, int64_t position,
        list files not None, kb, dict equal not None, list places not None, dict shares not None,
        bint holds, block,
    ):
        self.driver = driver
        self.collect = collect
        self.makers, self.skips = makers, skips
        self.events, self.first, self.after, self.end = events, first, first, end
        self.position, self.files, self.kb = position, files, kb
        self.equal, self.places, self.shares = equal, places, shares
        self.holds, self.block = holds, block
        self.found, self.queries = [], []

    def invalidate(self):
        """Invalidate the iterator before the run advances."""
        self.is_invalid = True

    def __iter__(self):
        return self

    def __next__(self):
        cdef Matches lazy
        cdef list made
        while True:
            while self.at < <uint32_t>len(self.found):
                some = self.found[self.at]
                if type(some) is Matches:
                    lazy = <Matches>some
                    if lazy.has_more():
                        if self.is_invalid:
                            self._refuse()
                        self.failing = self.queries[self.at]
                        self.failed = True
                        match = next(lazy, _END)
                        self.failed = False
                        if match is not _END:
                            return match
                else:
                    made = <list>some
                    if self.place < <uint32_t>len(made):
                        if self.is_invalid:
                            self._refuse()
                        self.place += 1
                        return made[self.place - 1]
                self.at, self.place = self.at + 1, 0
            if self.error is not None:
                error, self.error = self.error, None
                self.failing = self.blamed
                self.failed = self.ended = True
                raise error
            if self.ended or self.is_invalid or (self.after > self.first and self.kb.changes):
                raise StopIteration
            self._advance_run()

    def _refuse(self):
        raise RuntimeError("the run has gone on: consume the matches of an event before that")

    cdef int _advance_run(self) except -1:
        """Process events up to one that completes matches, and collect these."""
        cdef uint32_t before = self.after
        self.found.clear()
        self.queries.clear()
        self.at = self.place = 0
        self.failed = True
        while True:
            try:
                self.after = self.driver.run(
                    self.events, before, self.end, self.position + before - self.first,
                    self.files, self.holds,
                )
            except BaseException as error:
                self.after = self.driver.reached
                self.error, self.failing = error, self.driver.failing
            self._collect()
            if self.error is not None or not self.driver.in_closing:
                break
            # Timestamps have closed only in part, and their matches have been taken.
            before = self.after
        if self.equal or self.shares:
            try:
                self._distribute()
            except BaseException as error:
                self.found.clear()
                self.queries.clear()
                self.error = error
        self.failed = False
        self.blamed = self.failing
        if not self.found:
            self.ended = True
        return 0

    cdef int _collect(self) except -1:
        """Collect the matches of the ready queries, up to the first that fails."""
        cdef uint32_t i, query
        cdef int flags
        for i in range(self.driver.ready_count):
            query, flags = self.driver.ready[i], self.driver.ready_flags[i]
            try:
                maker = self.makers[query]
                if maker is not None:
                    some = (<MatchMaker>maker).take(self.skips[query], self.kb.version)
                    if flags & Ready.DUE:
                        (<Matches>some).close(
                            self.driver.ready_until[i], (<MatchMaker>maker).ended_at
                        )
                else:
                    some = self.collect(
                        query, bool(flags & Ready.COMPLETE),
                        self.driver.ready_until[i] if flags & Ready.DUE else None, self.events,
                        self.after if self.after > self.first else 0,
                    )
                if self.driver.in_closing or (
                    query in self.shares and not self._is_written(query, some)
                ) or (query in self.equal and not self._can_repeat(query, some)):
                    some = self._objects(some)
            except BaseException as error:
                self.error, self.failing = error, query
                return 0
            self.found.append(some)
            self.queries.append(query)
        return 0

    cdef bint _can_repeat(self, uint32_t query, some) except -1:
        """Whether the queries that equal one have makers, which can repeat its matches."""
        _, _, maker = self.equal[query][0]
        return maker is not None and type(some) is Matches and (<Matches>some).closing is None

    cdef bint _is_written(self, uint32_t query, some) except -1:
        """Whether makers write the matches of the queries that share an automaton."""
        return self.block is not None and type(some) is Matches and self.shares[query].writes

    cdef list _objects(self, some):
        """All of some matches at once, as objects."""
        if self.block is None or not some:
            return list(some)
        before = self.block.makes_objects
        self.block.makes_objects = True
        try:
            return list(some)
        finally:
            self.block.makes_objects = before

    cdef int _distribute(self) except -1:
        """Give the matches to all queries that share an automaton, in the order of all queries.

        Those of queries after one that has failed are dropped.
        """
        cdef uint32_t i, query
        cdef list order = [], copied = []
        if not self.shares and len(self.found) == 1 and self.error is None and (
            type(self.found[0]) is list
        ):
            for _, name, _ in self.equal.get(self.queries[0], ()):
                add_copies(<list>self.found[0], name, copied)
            self.found.append(copied)
            self.queries.append(self.queries[0])
            return 0
        for i in range(<uint32_t>len(self.found)):
            query, some = self.queries[i], self.found[i]
            self.failing = query if self.error is None else self.failing
            if query in self.shares and type(some) is Matches:
                again = (<Matches>some).repeated(<MatchMaker?>self.makers[query])
                for place, maker, picks in self.shares[query].written(again):
                    order.append((place, query, (<Matches>some).picked(maker, picks)))
                continue
            if query in self.shares:
                order += [(place, query, part) for place, part in self.shares[query](some)]
                continue
            order.append((self.places[query], query, some))
            for place, name, maker in self.equal.get(query, ()):
                if type(some) is Matches:
                    again = (<Matches>some).repeated(<MatchMaker?>maker)
                else:
                    again = copies(<list>some, name)
                order.append((place, query, again))
        order.sort(key=itemgetter(0))
        self.found.clear()
        self.queries.clear()
        for place, number, some in order:
            if self.error is None or place <= self.places[self.failing]:
                self.found.append(some)
                self.queries.append(number)
        return 0
