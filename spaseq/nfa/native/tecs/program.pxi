"""The tables of an automaton as flat arrays, with the counters of one run.

They are built from those of `spaseq.nfa.native.table_types`.

Invariant: only counters change after construction.
"""

from spaseq.rdf.native._terms cimport mem_calloc, mem_free

cdef enum:
    COMPLETE = -1   # the target of a link that ends a match

cdef Place A_PLACE

cdef dict COUNTERS = {      # the counters of a place → their offsets
    "reached": <char*>&A_PLACE.reached - <char*>&A_PLACE,
    "early": <char*>&A_PLACE.early - <char*>&A_PLACE,
    "unkeyed": <char*>&A_PLACE.unkeyed - <char*>&A_PLACE,
    "unjoined": <char*>&A_PLACE.unjoined - <char*>&A_PLACE,
    "visited": <char*>&A_PLACE.visited - <char*>&A_PLACE,
    "joined": <char*>&A_PLACE.joined - <char*>&A_PLACE,
    "passed_over": <char*>&A_PLACE.passed_over - <char*>&A_PLACE,
    "forbidden": <char*>&A_PLACE.forbidden - <char*>&A_PLACE,
    "outside": <char*>&A_PLACE.outside - <char*>&A_PLACE,
    "expired": <char*>&A_PLACE.expired - <char*>&A_PLACE,
    "ended": <char*>&A_PLACE.ended - <char*>&A_PLACE,
    "shed": <char*>&A_PLACE.shed - <char*>&A_PLACE,
}


cdef uint64_t* _counter_at(Place* place, size_t offset) noexcept nogil:
    return <uint64_t*>(<char*>place + offset)


cdef class Tables:
    """The program of one run; `rows` are `CoreTables`."""

    def __cinit__(self, rows):
        self.cells = rows.cells
        self.tracked, self.apart = rows.tracked, rows.apart
        self.numbers = numbers_of(rows.numbers)
        self.way_first = numbers_of(rows.way_first)
        self.required_first = numbers_of(rows.required_first)
        self.required = numbers_of(rows.required)
        self.eager_first = numbers_of(rows.eager_first)
        self.behind_first = numbers_of(rows.behind_first)
        self.behind = numbers_of(rows.behind)
        self.compared_first = numbers_of(rows.compared_first)
        self.compared = numbers_of(rows.compared)
        self.firsts = numbers_of([n for pair in rows.firsts for n in pair])
        self.first_count = <uint32_t>len(rows.firsts)
        self._enter(rows)
        self._enter_edges(rows)

    def _enter(self, rows):
        cdef uint32_t i
        self.place_count = <uint32_t>len(rows.places)
        self.places = <Place*>mem_calloc(self.place_count, sizeof(Place))
        for i, (operator, first, end, _, edge_first) in enumerate(rows.places):
            self.places[i].edge_first = edge_first
            self.places[i].operator = 0 if operator is None else ord(operator)
            self.places[i].live_first = first
            self.places[i].live_end = end
            self.places[i].floor = -1
        for i, (floor, rank, most) in rows.floors.items():
            self.places[i].floor, self.places[i].rank = floor, rank
            self.places[i].most_rank = most
        self.edges = <Edge*>mem_calloc(len(rows.edges), sizeof(Edge))
        self.bounds = <Bound*>mem_calloc(len(rows.bounds), sizeof(Bound))
        for i, entry in enumerate(rows.bounds):
            self.bounds[i].register, self.bounds[i].least, self.bounds[i].below = entry
        self.effects = <Effect*>mem_calloc(len(rows.effects), sizeof(Effect))
        for i, (change, register, other) in enumerate(rows.effects):
            self.effects[i].change = <Change><int>change
            self.effects[i].register = register
            self.effects[i].other = other
        self.bindings = <Binding*>mem_calloc(len(rows.bindings), sizeof(Binding))
        for i, entry in enumerate(rows.bindings):
            (
                self.bindings[i].column, self.bindings[i].register,
                self.bindings[i].follower_first, self.bindings[i].follower_end,
            ) = entry
        self.followers = <Follower*>mem_calloc(len(rows.followers), sizeof(Follower))
        for i, (how, register) in enumerate(rows.followers):
            self.followers[i].how = <Following><int>how
            self.followers[i].register = register
        self.occurrence_count = <uint32_t>len(rows.occurrences)
        self.occurrences = <Occurrence*>mem_calloc(self.occurrence_count, sizeof(Occurrence))
        for i, entry in enumerate(rows.occurrences):
            (
                self.occurrences[i].binding_first, self.occurrences[i].binding_end,
                self.occurrences[i].assigned_end, self.occurrences[i].count_first,
                self.occurrences[i].count_end, keeps, tests,
            ) = entry
            if tests:
                self.occurrences[i].flags |= OccurrenceFlags.TESTS
            if keeps:
                self.occurrences[i].flags |= OccurrenceFlags.STORES_TERMS
            if self.occurrences[i].count_first < self.occurrences[i].count_end:
                self.occurrences[i].flags |= OccurrenceFlags.COUNTS
            if self.occurrences[i].binding_end < self.occurrences[i].assigned_end:
                self.occurrences[i].flags |= OccurrenceFlags.ASSIGNS
            self.most_assigned = max(
                self.most_assigned,
                self.occurrences[i].assigned_end - self.occurrences[i].binding_end,
            )
        self.eager_guards = <EagerGuard*>mem_calloc(len(rows.eager_guards), sizeof(EagerGuard))
        for i, entry in enumerate(rows.eager_guards):
            (
                self.eager_guards[i].place, self.eager_guards[i].occurrence,
                self.eager_guards[i].index, self.eager_guards[i].key_first,
                self.eager_guards[i].key_end, self.eager_guards[i].negated,
            ) = entry
        self.ways = <EdgeRef*>mem_calloc(len(rows.ways), sizeof(EdgeRef))
        for i, entry in enumerate(rows.ways):
            (
                self.ways[i].place, self.ways[i].edge, self.ways[i].index,
                self.ways[i].key_first, self.ways[i].key_end,
            ) = entry
            self.ways[i].place_at = &self.places[self.ways[i].place]
            self.ways[i].edge_at = &self.edges[self.ways[i].edge]
        for i, flags in enumerate(rows.search.manners):
            self.places[i].flags = flags
            self.places[i].contiguous = (
                self.tracked and self.places[i].operator == c","
                and not flags & PlaceFlags.CONJOINED
            )
        for gpm in range(len(rows.way_first) - 1):
            for i in range(self.way_first[<uint32_t>gpm], self.way_first[<uint32_t>gpm + 1]):
                self.ways[i].gpm = gpm

    def _enter_edges(self, rows):
        cdef uint32_t i, first, end, key_first, key_end
        self.agreements = <Agreement*>mem_calloc(len(rows.straight.agreements), sizeof(Agreement))
        for i, entry in enumerate(rows.straight.agreements):
            self.agreements[i].column, self.agreements[i].position = entry
        self.sources = <Source*>mem_calloc(len(rows.straight.sources), sizeof(Source))
        for i, (origin, number) in enumerate(rows.straight.sources):
            self.sources[i] = Source(<Origin><int>origin, number)
        self.links = <Link*>mem_calloc(len(rows.links), sizeof(Link))
        for i, entry in enumerate(rows.links):
            self.links[i].target, self.links[i].bound_first, self.links[i].bound_end = entry
        for i, (first, end) in enumerate(rows.straight.links):
            self.links[i].source, self.links[i].source_end = (
                self.sources + first, self.sources + end
            )
        self.limits = <Limit*>mem_calloc(len(rows.limits), sizeof(Limit))
        for i, (mark, size) in enumerate(rows.limits):
            self.limits[i] = Limit(mark, size)
        for i, entry in enumerate(rows.edges):
            (
                self.edges[i].occurrence, self.edges[i].effect_first, self.edges[i].effect_end,
                first, end, self.edges[i].index, key_first, key_end,
                self.edges[i].compared, relation, self.edges[i].whole,
                self.edges[i].decided, self.edges[i].strict, self.edges[i].within,
                mark, mark_end, limit, limit_end,
            ) = entry
            self.edges[i].mark = self.numbers + <uint32_t>mark
            self.edges[i].mark_end = self.numbers + <uint32_t>mark_end
            self.edges[i].limit = self.limits + <uint32_t>limit
            self.edges[i].limit_end = self.limits + <uint32_t>limit_end
            self.edges[i].link, self.edges[i].link_end = self.links + first, self.links + end
            self.edges[i].final = all([link[0] == COMPLETE for link in rows.links[first:end]])
            self.edges[i].key, self.edges[i].key_end = (
                self.numbers + key_first, self.numbers + key_end
            )
            self.edges[i].relation = <Relation><int>relation
            self.edges[i].exact = self.edges[i].decided and not self.edges[i].whole
        for i, (straight, first, end) in enumerate(rows.straight.edges):
            self.edges[i].straight = straight
            self.edges[i].agreement, self.edges[i].agreement_end = (
                self.agreements + first, self.agreements + end
            )

    def __dealloc__(self):
        mem_free(self.places)
        mem_free(self.edges)
        mem_free(self.links)
        mem_free(self.bounds)
        mem_free(self.limits)
        mem_free(self.agreements)
        mem_free(self.sources)
        mem_free(self.effects)
        mem_free(self.bindings)
        mem_free(self.followers)
        mem_free(self.occurrences)
        mem_free(self.numbers)
        mem_free(self.way_first)
        mem_free(self.ways)
        mem_free(self.eager_first)
        mem_free(self.behind_first)
        mem_free(self.behind)
        mem_free(self.eager_guards)
        mem_free(self.firsts)
        mem_free(self.required_first)
        mem_free(self.required)
        mem_free(self.compared_first)
        mem_free(self.compared)

    def shed(self):
        """The number of groups shed under a limit."""
        cdef uint64_t found = 0
        cdef uint32_t i
        for i in range(self.place_count):
            found += self.places[i].shed
        return found

    def counters(self, uint32_t place):
        """The counters of a place: see `spaseq.nfa.counters.PlaceCounters`."""
        cdef dict found = {}
        for name, offset in COUNTERS.items():
            found[name] = _counter_at(&self.places[place], offset)[0]
        return found

    def count_on(self, uint32_t place, counts):
        """Add the `counters` of another run, except the groups shed, which the run adds up."""
        for name, offset in COUNTERS.items():
            if name != "shed":
                _counter_at(&self.places[place], offset)[0] += counts[name]

    def disagreed_on(self, uint32_t occurrence, uint64_t rows):
        """Add the disagreeing rows of another run."""
        self.occurrences[occurrence].disagreed += rows

    def disagreed(self, uint32_t occurrence):
        """The number of rows of an occurrence that disagreed with a partial match."""
        return self.occurrences[occurrence].disagreed


cdef int follow(Tables tables, const Binding* binding, term_t value, term_t* env) noexcept nogil:
    """Update the registers that follow a variable just bound: 0, or -1 with an exception set."""
    cdef uint32_t i
    cdef Follower* follower
    cdef term_t state
    for i in range(binding.follower_first, binding.follower_end):
        follower = &tables.followers[i]
        if follower.how == Following.LAST_VALUE:
            env[follower.register] = value
        elif follower.how == Following.FIRST_VALUE:
            if env[follower.register] == OPENED:
                env[follower.register] = value
        else:
            state = tables.conditions.add(
                tables.conditions.context, follower.register, env[follower.register], value
            )
            if state == 0:
                return -1
            env[follower.register] = state
    return 0


cdef int assign(Tables tables, uint32_t number, term_t* env, term_t* values) except -1 nogil:
    """Evaluate the BINDs of an occurrence and bind them: 1, or 0 where one disagrees."""
    cdef Occurrence* occurrence = &tables.occurrences[number]
    cdef Binding* binding
    cdef uint32_t i
    for i in range(occurrence.assigned_end - occurrence.binding_end):
        binding = &tables.bindings[occurrence.binding_end + i]
        if tables.conditions.value(
            tables.conditions.context, number, i, env, &values[i]
        ) < 0:
            return _raised()
        if values[i] == 0:
            continue
        if env[binding.register] == 0:
            env[binding.register] = values[i]
            if follow(tables, binding, values[i], env) < 0:
                return _raised()
        elif env[binding.register] != values[i]:
            return 0
    return 1


cdef int _raised() except -1 nogil:
    """Propagate the Python exception that a callback left."""
    return -1


cdef uint32_t* numbers_of(numbers) except NULL:
    cdef uint32_t* block = <uint32_t*>mem_calloc(len(numbers), sizeof(uint32_t))
    for i, number in enumerate(numbers):
        block[<size_t>i] = number
    return block
