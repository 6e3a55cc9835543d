# cython: language_level=3, boundscheck=False, wraparound=False
"""Probes: single parts of the compiled automaton, visible from Python for its tests.

A probe owns one part and calls its functions with plain numbers. Runs use no probe. `CoreProbe`
drives a whole automaton with rows of term numbers, without graph patterns and without an engine.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from spaseq.nfa.native._automaton cimport AutomatonCore, Partitions
from spaseq.nfa.native._tecs cimport (
    NIL,
    Conditions,
    Frontier,
    Groups,
    Label,
    RangeCursor,
    RangeIndex,
    Ranges,
    Rank,
    RowBuffer,
    Sum,
    Tables,
    Tecs,
    TermResolver,
    Walk,
    Window,
    begin_iterations,
    bind,
    bound_at,
    bounds_admit,
    chain_newest,
    chain_older,
    class_of,
    create_group,
    find_group,
    frontier_clear,
    frontier_free,
    frontier_push,
    group_at,
    hash_of,
    intervals_of,
    new_node,
    next_of,
    opening_of,
    ranges_add,
    ranges_alloc,
    ranges_free,
    remove_group,
    row_before,
    row_until,
    rows_add,
    rows_alloc,
    rows_expire,
    rows_free,
    set_row,
    since_of,
    sum_of,
    tecs_alloc,
    tick,
    values_of,
)
from spaseq.rdf.limits import NO_LIMIT
from spaseq.rdf.native._literals cimport Box
from spaseq.rdf.native._terms cimport (
    Dictionary,
    EventBatch,
    WindowTerms,
    limit_effort,
    mem_calloc,
    mem_free,
    term_t,
)



cdef class RowBufferProbe:
    """A row buffer, and zone maps over some of its columns."""

    cdef RowBuffer* rows
    cdef Ranges* zones
    cdef Tecs tecs
    cdef TermResolver resolver

    def __cinit__(self, columns, zone_columns, Dictionary dictionary not None):
        self.tecs = Tecs()
        self.resolver = TermResolver(WindowTerms(10), dictionary)
        self.rows = rows_alloc(columns)
        self.zones = ranges_alloc(zone_columns, zone_columns)

    def __dealloc__(self):
        rows_free(self.rows)
        ranges_free(self.zones)

    def add(self, int64_t instant, int64_t micros, row, bint keyed):
        cdef Label* label = self.tecs.label(<uint32_t>len(row))
        cdef uint32_t i
        label.instant, label.micros = instant, micros
        for i in range(label.width):
            label.row[i] = row[i]
        rows_add(self.rows, label, keyed)
        ranges_add(self.zones, self.rows, self.resolver)
        return self.rows.end - 1

    def expire(self, int64_t bound):
        rows_expire(self.rows, bound)

    @property
    def span(self):
        """(number of the oldest row, number after the newest one)."""
        return self.rows.first, self.rows.end

    def row(self, uint64_t number):
        """(instant, micros, terms, whether keyed) of a row."""
        cdef uint32_t slot = number & (self.rows.room - 1)
        cdef Label* label = self.rows.labels[slot]
        row = [label.row[i] for i in range(label.width)]
        assert self.rows.instants[slot] == label.instant
        return label.instant, label.micros, row, bool(self.rows.keyed[slot])

    def before(self, int64_t high):
        return row_before(self.rows, high)

    def until(self, int64_t micros):
        return row_until(self.rows, micros)

    def chain(self, uint32_t index, term_t term):
        """The numbers of the rows that the index returns for a term, newest first."""
        cdef uint64_t number = chain_newest(self.rows, index, term)
        found = []
        while number >= self.rows.first:
            found.append(number)
            number = chain_older(self.rows, index, number)
        return found

    def zone(self, uint64_t number, uint32_t level, uint32_t column):
        """(least, greatest) value of a column among the rows of a row's block."""
        interval = intervals_of(self.zones, number, level)[column]
        return interval.low, interval.high


cdef class WindowProbe:
    """A window."""

    cdef readonly Window window

    def __cinit__(self, rows):
        self.window = Window(rows)

    def tick(self, int64_t micros):
        tick(self.window, micros)

    def count_event(self):
        self.window.count_event()

    def since(self):
        return since_of(self.window)

    def bound_at(self, int64_t instant):
        return bound_at(self.window, instant)

    def opening(self, int64_t micros):
        return opening_of(self.window, micros)

    def time(self, int64_t instant):
        return self.window.times[instant & self.window.times_mask]


cdef class GroupsProbe:
    """The groups of one place, with its indexes; each group has one member, which starts at 0."""

    cdef Groups groups
    cdef Tecs tecs
    cdef term_t* key

    def __cinit__(self, uint32_t width, indexes, Dictionary dictionary not None):
        self.groups = Groups(width, indexes, TermResolver(WindowTerms(10), dictionary))
        self.tecs = Tecs()
        self.key = <term_t*>mem_calloc(width + 1, sizeof(term_t))

    def __dealloc__(self):
        mem_free(self.key)

    cdef int _set_key(self, values) except -1:
        cdef uint32_t i
        for i, value in enumerate(values):
            self.key[i] = value
        return 0

    def find(self, values):
        """The number of a group, or None."""
        self._set_key(values)
        number = find_group(self.groups, self.key)
        return None if number == NIL else number

    def create(self, values, int64_t start):
        """Create a group with one member; its number."""
        cdef uint32_t number
        cdef Label* label = self.tecs.label(0)
        if self.find(values) is not None:
            raise ValueError("there is a group with these registers")
        number = create_group(self.groups, self.key)
        label.instant = start
        group_at(self.groups, number).members = <size_t>new_node(self.tecs, label, 0, start)
        group_at(self.groups, number).latest = start
        self.groups.invalidate(number)
        return number

    def remove(self, uint32_t number):
        remove_group(self.groups, number)

    def values(self, uint32_t number):
        return [values_of(self.groups, number)[i] for i in range(self.groups.width)]

    @property
    def live(self):
        """The numbers of the groups."""
        return [self.groups.alive[i] for i in range(self.groups.live_count)]

    def lookup(self, uint32_t index, key):
        """The numbers of the groups that a hash index returns for a key."""
        cdef uint32_t number
        self._set_key(key)
        number = self.groups.first(index, self.key)
        found = []
        while number != NIL:
            found.append(number)
            number = self.groups.next_of(index, number, self.key)
        return found

    def range(self, uint32_t index, key, double least, double most):
        """The (value, number) of each group in a range, as the range index returns them."""
        cdef RangeIndex order = <RangeIndex>self.groups.orders_at[index]
        cdef RangeCursor cursor
        cdef uint32_t number
        self._set_key(key)
        number = order.seek(
            &cursor, hash_of(self.key, <uint32_t>len(key)), Rank.NUMERIC, least, most
        )
        found = []
        while number != NIL:
            found.append((cursor.value, number))
            number = next_of(order, &cursor)
        return found

    def union(self, uint32_t index, double bound, bint above, int64_t since):
        """The starts of the members of all groups beyond a bound, from the union of the range."""
        cdef Sum wanted
        cdef Walk walk = Walk()
        cdef Label* last = self.tecs.label(0)
        wanted.bucket, wanted.bound, wanted.above = class_of(0, Rank.NUMERIC), bound, above
        sum_of(self.groups, index, self.tecs, since, &wanted)
        if not wanted.members:
            return []
        last.instant = 1 << 40
        walk.begin(new_node(self.tecs, last, wanted.members, wanted.latest), since)
        found = []
        while walk.advance():
            found.append(walk.start)
        return found


cdef class FrontierProbe:
    """The frontier of a search inside a guard; all registers distinguish entries."""

    cdef Frontier entries
    cdef uint32_t* live
    cdef term_t* env

    def __cinit__(self, uint32_t cells, live):
        memset(&self.entries, 0, sizeof(Frontier))
        self.entries.cells = cells
        self.env = <term_t*>mem_calloc(cells, sizeof(term_t))
        self.live = <uint32_t*>mem_calloc(len(live), sizeof(uint32_t))
        for i, register in enumerate(live):
            self.live[<uint32_t>i] = register

    def __dealloc__(self):
        frontier_free(&self.entries)
        mem_free(self.env)
        mem_free(self.live)

    def push(self, uint32_t place, int64_t last, env, uint32_t width):
        """Add an entry whose first `width` live registers count; the number of entries."""
        for i, value in enumerate(env):
            self.env[<uint32_t>i] = value
        frontier_push(&self.entries, place, last, 0, self.env, self.live, width)
        return self.entries.count

    def entry(self, uint32_t number):
        env = self.entries.values + <size_t>number * self.entries.cells
        return self.entries.places[number], self.entries.lasts[number], [
            env[i] for i in range(self.entries.cells)
        ]

    def clear(self):
        frontier_clear(&self.entries)


cdef class PartitionsProbe:
    """The partitions of a run, by key; instants are those of a window of its own."""

    cdef readonly Partitions partitions
    cdef readonly Window window

    def __cinit__(self, rows, Dictionary dictionary not None):
        self.window = Window(rows)
        self.partitions = Partitions(rows, self.window, WindowTerms(10), dictionary)

    def tick(self, int64_t micros):
        tick(self.window, micros)

    def record(self, key):
        """Record an event of a partition at the open instant."""
        self.partitions.load(key, [self.window.now], 0)

    def skip(self, key, int64_t first):
        self.partitions.load(key, [], first)

    def before(self, key, int64_t instant):
        """The latest instant before another one with an event of a partition, or -1."""
        cdef uint32_t number
        for i, term in enumerate(key):
            self.partitions.key[<uint32_t>i] = term
        number = self.partitions._find()
        if number == NIL:
            return -1
        return self.partitions._before(&self.partitions.partitions[number], instant)

    @property
    def stored(self):
        """The number of partitions in memory."""
        return self.partitions.keys.live_count


cdef class TecsProbe:
    """A tECS, for the memory of its epochs."""

    cdef readonly Tecs tecs

    def __cinit__(self):
        self.tecs = Tecs()

    def begin(self, int64_t now, int64_t bound):
        self.tecs.begin(now, bound)

    def alloc(self, size_t size):
        """Allocate bytes in the current epoch, and write them."""
        memset(tecs_alloc(self.tecs, size), 0xFF, size)


cdef class TablesProbe:
    """The tables of an automaton without aggregates; environments are lists."""

    cdef Tables tables
    cdef term_t* env

    def __cinit__(self, rows, term_t truth, term_t falsehood):
        self.tables = Tables(rows)
        self.tables.truth, self.tables.falsehood = truth, falsehood
        self.env = <term_t*>mem_calloc(self.tables.cells, sizeof(term_t))

    def __dealloc__(self):
        mem_free(self.env)

    cdef list _env(self):
        return [self.env[i] for i in range(self.tables.cells)]

    cdef int _set_env(self, env) except -1:
        for i, value in enumerate(env):
            self.env[<uint32_t>i] = value
        return 0

    def begin_iterations(self, uint32_t edge, env):
        """The environment after the effects of an edge."""
        self._set_env(env)
        begin_iterations(self.tables, &self.tables.edges[edge], self.env)
        return self._env()

    def bind(self, uint32_t occurrence, row, env):
        """The environment after a row is bound; None if it disagrees."""
        cdef term_t* terms = <term_t*>mem_calloc(len(row), sizeof(term_t))
        try:
            for i, term in enumerate(row):
                terms[<uint32_t>i] = term
            self._set_env(env)
            if not bind(self.tables, &self.tables.occurrences[occurrence], terms, self.env):
                return None
            return self._env()
        finally:
            mem_free(terms)

    def admits(self, uint32_t link, env):
        """Whether the iteration numbers satisfy the bounds of a link."""
        self._set_env(env)
        return bool(bounds_admit(self.tables, &self.tables.links[link], self.env))


cdef int _hold(void* context, uint32_t occurrence, term_t* env) noexcept with gil:
    probe = <CoreProbe>context
    cells = [env[i] for i in range(probe.core.tables.cells)]
    for test in probe.filters[occurrence]:
        if not test(cells):
            return 0
    return 1


cdef int _test(void* context, uint32_t number, term_t* env) noexcept with gil:
    probe = <CoreProbe>context
    return bool(probe.tests[number]([env[i] for i in range(probe.core.tables.cells)]))


cdef bint _may(
    void* context, uint32_t number, const term_t* env, const Box* box, uint64_t rows
) noexcept nogil:
    return True


cdef class CoreProbe:
    """An automaton that is driven by rows; it has no BINDs and no aggregates.

    Args:
        rows: the `CoreTables`.
        dictionary: the terms of the rows.
        filters: per occurrence its residual filters, as functions of the cells of an environment.
    """

    cdef readonly AutomatonCore core
    cdef list filters, tests
    cdef Conditions conditions
    cdef EventBatch batch

    def __cinit__(self, rows, Dictionary dictionary not None, filters):
        self.core = AutomatonCore(rows, WindowTerms(1 << 40), dictionary, 0, 0)
        self.filters = list(map(list, filters))
        self.tests = [test for some in filters for test in some]
        memset(&self.conditions, 0, sizeof(Conditions))
        self.conditions.context = <void*>self
        self.conditions.hold, self.conditions.test, self.conditions.may = _hold, _test, _may
        self.conditions.instant = -1
        self.core.tables.conditions = &self.conditions
        self.batch = EventBatch(dictionary)
        limit_effort(&self.core.event.effort, NO_LIMIT)

    def feed(self, EventBatch batch not None, uint32_t event, uint32_t stream, rows):
        """Process an event of the open instant with its (GPM, row of the batch's numbers)."""
        cdef term_t* terms
        cdef uint32_t i, width
        self.batch = batch
        self.core.count_event()
        self.core.begin_event(batch, event, stream, 0)
        for gpm, row in rows:
            if not self.core.waits(gpm):
                continue
            width = <uint32_t>len(row)
            terms = <term_t*>mem_calloc(width, sizeof(term_t))
            try:
                for i, term in enumerate(row):
                    terms[i] = term
                set_row(self.core.event, terms, width)
                self.core._feed_gpm(gpm, terms, width)
            finally:
                mem_free(terms)
