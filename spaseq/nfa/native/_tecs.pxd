"""The declarations of _tecs.pyx that other modules use."""

cimport cython
from cpython.ref cimport PyObject
from libc.math cimport fabs
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memset

from spaseq.rdf.native._literals cimport Box, Interval
from spaseq.rdf.native._terms cimport (
    LINE_BYTES,
    LOCAL,
    WINDOWED,
    Chunk,
    Dictionary,
    Effort,
    EventBatch,
    EventRecord,
    Lines,
    TermRecord,
    WindowTerms,
    begin_event,
    check_signals,
    copy_row,
    count_step,
    earlier,
    is_beyond,
    is_numeral,
    later,
    real_of,
    since_multiple,
    term_t,
)
from spaseq.rdf.native._values cimport Kind

# tecs/program.pxi

cdef enum:
    CLOSING = 119       # "w"
    DEADLINE = 100      # "d"

# Callbacks that evaluate expressions over the bindings of a partial match and a row. The terms they
# return are permanent or of the window.
cdef struct Conditions:
    # Whether the residual filters of an occurrence are true: 1 or 0, or -1 with a Python exception
    # set. May fill in the cells behind the registers.
    int (*hold)(void* context, uint32_t occurrence, term_t* env) noexcept nogil
    # Whether one residual filter, by its number among all, is true: likewise.
    int (*test)(void* context, uint32_t number, term_t* env) noexcept nogil
    # Whether a filter may be true of any row whose unbound registers lie in a box. If it cannot, it
    # counts as evaluated for `rows` rows.
    bint (*may)(
        void* context, uint32_t number, const term_t* env, const Box* box, uint64_t rows
    ) noexcept nogil
    # The value of the BIND at a position among those of an occurrence, 0 if unbound. Returns 0, or
    # -1 with a Python exception set.
    int (*value)(
        void* context, uint32_t occurrence, uint32_t position, term_t* env, term_t* value
    ) noexcept nogil
    # The state of an aggregate's register after one more value; 0 with a Python exception set.
    # Equal states are equal numbers, and 0 is the state before any value.
    term_t (*add)(void* context, uint32_t register, term_t state, term_t value) noexcept nogil
    void* context
    int64_t instant     # instant of the row's event, -1: the current event
    uint32_t stream     # stream of the row's event, if `instant` is set
    bint uncounted      # do not count filters that are not true

cdef enum Change:
    FORGET      # unbind a register, or reset its iterations
    COPY        # copy another register
    NUMBER      # set a known iteration number
    AGAIN       # one more iteration, up to a limit
    OPEN        # open a first value: the first iteration begins, or has ended

# Register contents that are not terms; no term has such a number.
cdef enum:
    OPENED = 0xFFFFFFFFu    # of a first value: the first iteration has not bound the variable yet
    VOID = 0xFFFFFFFEu      # of a first value: the first iteration never bound it
    FAILED = 0xFFFFFFFDu    # of an aggregate: an error

# How a register follows the value of a variable.
cdef enum Following:
    LAST_VALUE
    FIRST_VALUE
    STATE       # of an aggregate

# Flags of a place.
cdef enum PlaceFlags:
    DATED = 1       # its groups hold their members by last instant
    GUARDED = 2     # of a start: a step skipped before it must not have occurred
    RELATIVE = 4    # the result of a guard depends on the last instant
    CONJOINED = 8   # some edge consumes several events
    SEARCHES_BACK = 16 # an earlier candidate is searched in the window
    RIVALS = 32     # an earlier candidate may have the same timestamp
    APART = 64      # edges with different bounds: each last instant has its own earlier candidates

# The effect of an edge on a register, applied before the row is bound.
cdef struct Effect:
    Change change
    uint32_t register
    uint32_t other      # COPY: the register copied; NUMBER: the number; AGAIN: the limit

cdef struct Bound:
    uint32_t register
    uint32_t least
    uint32_t below

cdef enum:
    ANY = 0xFFFFFFFFu

# A condition of a straight edge: a column is bound, and equals a register of the group.
cdef struct Agreement:
    uint32_t column
    uint32_t position   # among the live registers of the edge's place; ANY: any term will do

# The origin of a register after a straight edge: a column of the row, a live register of the group,
# or the constant `number`.
cdef enum Origin:
    ROW
    GROUP
    CONSTANT

cdef struct Source:
    Origin origin
    uint32_t number

cdef struct Link:
    int32_t target      # a place, -1: the match is complete, -2: the guarded unit has occurred
    uint32_t bound_first
    uint32_t bound_end
    const Source* source        # of a straight edge: the origins of the target's registers
    const Source* source_end

# As in spaseq.nfa.native.table_types: LESS and GREATER include equality.
cdef enum Relation:
    LESS
    EQUAL
    GREATER

# The bound of a unit of several steps: it ends within `size` microseconds of its mark, the time in
# two registers from `mark` on.
cdef struct Limit:
    uint32_t mark
    int64_t size

cdef struct Edge:
    uint32_t occurrence # NIL: the edge consumes several events
    uint32_t effect_first
    uint32_t effect_end
    const Link* link
    const Link* link_end
    uint32_t index      # of the groups' indexes, 0: all groups are visited
    const uint32_t* key # columns of the row that the index reads
    const uint32_t* key_end
    int32_t compared    # column of the row that a range index compares, -1: none
    Relation relation   # required relation of the column to the register
    bint whole          # a row joins all groups that surely fit as one union
    bint decided        # groups inside the range need no evaluation of the filter
    bint strict         # ... and equal values do not fit
    bint exact          # for distinct numbers, the range index returns exactly the fitting groups
    bint straight       # see spaseq.nfa.native.straight_edges
    bint final          # the edge completes a match
    int64_t within      # bound on the time since the last event, in microseconds, -1: none; in a
                        # place of a deadline, the time to it
    const uint32_t* mark        # marks that the edge sets to the time of the last event before it
    const uint32_t* mark_end
    const Limit* limit          # bounds of the surrounding units, which began before the step
    const Limit* limit_end
    const Agreement* agreement
    const Agreement* agreement_end

# A column of a row, the register that takes its value, and the followers of that register.
cdef struct Binding:
    uint32_t column
    uint32_t register
    uint32_t follower_first
    uint32_t follower_end

cdef struct Follower:
    Following how
    uint32_t register

cdef struct Occurrence:
    uint32_t binding_first
    uint32_t binding_end
    uint32_t assigned_end   # end of the bindings of its BINDs; their columns follow those of its
                            # rows
    uint32_t count_first    # registers that count its rows
    uint32_t count_end
    uint32_t flags          # OccurrenceFlags: steps beyond binding its columns
    uint64_t disagreed      # rows that disagreed with a partial match

cdef enum OccurrenceFlags:
    STORES_TERMS = 1 # its terms enter the window before the row is bound
    COUNTS = 2      # registers count its rows
    ASSIGNS = 4     # it has BINDs
    TESTS = 8       # it has residual filters

# A guard decided on sight: rows of its GPM remove the groups that wait in the place.
cdef struct EagerGuard:
    uint32_t place
    uint32_t occurrence
    uint32_t index      # of the groups' indexes, 0: all groups are visited
    uint32_t key_first
    uint32_t key_end
    bint negated        # written as a negation: partition variables may be unbound

cdef struct Place:
    char operator       # of the query; 0 at a start, CLOSING where matches wait for the close,
                        # DEADLINE where partial matches wait for a deadline
    uint32_t live_first
    uint32_t live_end
    uint32_t edge_first
    uint32_t flags      # PlaceFlags: flags that `spaseq.nfa.native._conjunction` reads
    bint contiguous     # `,` within a partition: another event of it passes over the groups
    int32_t floor       # the live register with the floor of a group, -1: groups have none; see
                        # spaseq.plan.floors
    uint32_t rank       # column with the rank of a row
    double most_rank    # a group ends with a row of this rank
    uint64_t reached    # diagnostic counters, see spaseq.nfa.counters.PlaceCounters
    uint64_t early
    uint64_t unkeyed
    uint64_t unjoined
    uint64_t visited
    uint64_t joined
    uint64_t passed_over
    uint64_t forbidden
    uint64_t outside
    uint64_t expired
    uint64_t ended      # groups that a guard removed
    uint64_t shed       # groups shed under a limit

# An edge that rows of a GPM may take.
cdef struct EdgeRef:
    uint32_t gpm
    uint32_t place
    uint32_t edge
    Place* place_at     # the same place and edge, as pointers
    Edge* edge_at
    uint32_t index      # index by which the last row of a conjunction finds groups, 0: none
    uint32_t key_first
    uint32_t key_end


@cython.final
cdef class Tables:
    cdef Place* places
    cdef uint32_t place_count
    cdef Edge* edges
    cdef Link* links
    cdef Bound* bounds
    cdef Limit* limits
    cdef Agreement* agreements
    cdef Source* sources
    cdef Effect* effects
    cdef Binding* bindings
    cdef Follower* followers
    cdef Occurrence* occurrences
    cdef uint32_t occurrence_count
    cdef uint32_t most_assigned # greatest number of BINDs of an occurrence
    cdef Conditions* conditions
    cdef uint32_t* numbers      # live registers, key columns
    cdef uint32_t* way_first    # per GPM and one more, into `ways`
    cdef EdgeRef* ways
    cdef uint32_t* eager_first      # per GPM and one more, into `eager_guards`
    cdef EagerGuard* eager_guards
    cdef uint32_t* behind_first     # per GPM and one more, into `behind`
    cdef uint32_t* behind           # places of deadlines after which its rows are read
    cdef uint32_t* firsts       # pairs: iteration register, the cell that says whether it is 1
    cdef uint32_t first_count
    cdef uint32_t cells         # cells of an environment: registers, then views
    cdef term_t truth, falsehood
    cdef uint32_t* required_first   # per GPM and one more, into `required`
    cdef uint32_t* required         # columns that a row must bind
    cdef uint32_t* compared_first   # per GPM and one more, into `compared`
    cdef uint32_t* compared         # columns that are compared with what registers hold
    cdef readonly bint tracked  # partitions record their events
    cdef bint apart             # each partition skips past its own matches


cdef uint32_t* numbers_of(numbers) except NULL


cdef inline Place* place_at(Tables tables, uint32_t number) noexcept nogil:
    return tables.places + number


# 0, or -1 with a Python exception set.
cdef int follow(Tables tables, const Binding* binding, term_t value, term_t* env) noexcept nogil
cdef int assign(Tables tables, uint32_t number, term_t* env, term_t* values) except -1 nogil


cdef inline int filters_hold(Tables tables, uint32_t occurrence, term_t* env) noexcept nogil:
    """Whether the residual filters of an occurrence are true: 1, 0, or -1 with an exception."""
    return tables.conditions.hold(tables.conditions.context, occurrence, env)


cdef inline int filter_holds(Tables tables, uint32_t number, term_t* env) noexcept nogil:
    """Whether one residual filter is true, by its number among all: 1, 0, or -1 likewise."""
    return tables.conditions.test(tables.conditions.context, number, env)


cdef inline int begin_iterations(Tables tables, const Edge* edge, term_t* env) noexcept nogil:
    """Begin the iterations that an edge begins."""
    cdef Effect* effect
    cdef uint32_t i
    for i in range(edge.effect_first, edge.effect_end):
        effect = &tables.effects[i]
        if effect.change == Change.FORGET:
            env[effect.register] = 0
        elif effect.change == Change.COPY:
            env[effect.register] = env[effect.other]
        elif effect.change == Change.NUMBER:
            env[effect.register] = effect.other
        elif effect.change == Change.AGAIN:
            if env[effect.register] < effect.other:
                env[effect.register] += 1
        elif env[effect.register] == 0:
            env[effect.register] = OPENED
        elif env[effect.register] == OPENED:
            env[effect.register] = VOID
    return 0


cdef inline int bind(
    Tables tables, const Occurrence* occurrence, const term_t* row, term_t* env
) noexcept nogil:
    """Bind the variables of a row in an environment: 1, or 0 where one disagrees.

    -1 with a Python exception set.
    """
    cdef uint32_t i
    cdef Binding* binding
    cdef term_t value
    for i in range(occurrence.binding_first, occurrence.binding_end):
        binding = &tables.bindings[i]
        value = row[binding.column]
        if value == 0:
            continue
        if env[binding.register] == 0:
            env[binding.register] = value
            if binding.follower_first < binding.follower_end:
                if follow(tables, binding, value, env) < 0:
                    return -1
        elif env[binding.register] != value:
            return 0
    for i in range(tables.first_count):
        env[tables.firsts[2 * i + 1]] = (
            tables.truth if env[tables.firsts[2 * i]] == 1 else tables.falsehood
        )
    if occurrence.flags & OccurrenceFlags.COUNTS:
        for i in range(occurrence.count_first, occurrence.count_end):
            env[tables.numbers[i]] += 1
    return 1


cdef inline int set_marks(const Edge* edge, term_t* env, int64_t micros) noexcept nogil:
    """Set the marks of an edge to the time from which the bounds of its units count."""
    cdef const uint32_t* mark = edge.mark
    while mark < edge.mark_end:
        env[mark[0]], env[mark[0] + 1] = <term_t>(<uint64_t>micros >> 32), <term_t>micros
        mark += 1
    return 0


cdef inline bint limits_hold(const Edge* edge, const term_t* env, int64_t micros) noexcept nogil:
    """Whether a step that ends at a time respects the bounds of the units around it."""
    cdef const Limit* limit = edge.limit
    while limit < edge.limit_end:
        if passes_limit(limit, env[limit.mark], env[limit.mark + 1], micros):
            return False
        limit += 1
    return True


cdef inline bint passes_limit(
    const Limit* limit, term_t high, term_t low, int64_t micros
) noexcept nogil:
    """Whether a time lies beyond a bound that counts from the mark `high`, `low`."""
    cdef int64_t since = <int64_t>(<uint64_t>high << 32 | low)
    return is_beyond(micros, since, limit.size)


cdef inline bint agreements_hold(
    const Edge* edge, const term_t* row, const term_t* values
) noexcept nogil:
    """Whether a row and a group with these registers satisfy the conditions of a straight edge."""
    cdef const Agreement* agreement = edge.agreement
    cdef term_t value
    while agreement < edge.agreement_end:
        value = row[agreement.column]
        if value == 0 or (
            agreement.position != ANY and values[agreement.position] != value
        ):
            return False
        agreement += 1
    return True


cdef inline bint bounds_admit(Tables tables, const Link* link, const term_t* env) noexcept nogil:
    """Whether the iteration numbers satisfy the bounds of a link."""
    cdef uint32_t i
    cdef term_t number
    for i in range(link.bound_first, link.bound_end):
        number = env[tables.bounds[i].register]
        if not tables.bounds[i].least <= number < tables.bounds[i].below:
            return False
    return True

# tecs/tecs.pxi

# Instants are numbered densely from 0.
ctypedef int64_t instant_t

# An event that matched a place of the sequence, with one of its rows.
cdef struct Label:
    int64_t micros      # the event's time, in microseconds
    uint64_t line
    instant_t instant
    uint32_t stream     # positions in the run's lists of streams and files
    uint32_t file
    uint32_t ordinal
    term_t name         # name of the event's graph; terms are permanent or of the window
    term_t stamp        # the literal of a numeric time
    uint16_t domain     # 0: the time is a number, 1: a date
    uint8_t part        # which pattern of the step the event matched; of a deadline, whether it
                        # begins an iteration
    uint8_t parts       # number of events of the step; 0: no event but a deadline, whose row is the
                        # key of its partition
    uint32_t edge       # the edge taken
    uint32_t width
    term_t row[2]       # `width` of them: with two, a label fills one cache line

# A union of nodes: the address of a single node, or the address of a Cell with a tag bit; 0 is
# empty. Invariant: memory behind a reference whose `latest` lies below the bound of the window may
# have been freed, so `latest` is read before the reference is followed.
ctypedef size_t union_t

cdef enum:
    UNION = 1

# All partial matches that end with `label`.
cdef struct Node:
    Label* label
    union_t before      # the union that the label extends; 0: it begins them
    instant_t latest    # their greatest start, which is that of `before`

# A union of nodes, as a heap: no start below is greater than that of its node. A cell without a
# node is the union of its two sides, and has the greater of their starts.
cdef struct Cell:
    Node* node
    union_t before      # `before` of the node
    instant_t latest    # of all
    union_t left
    instant_t left_latest   # -1: empty
    union_t right
    instant_t right_latest

# A union to be entered by matches whose last `depth` events are on the path.
cdef struct PendingUnion:
    union_t members
    uint64_t depth

# A run of consecutive instants, and the memory of their nodes, unions and labels.
cdef struct Epoch:
    Chunk* chunks       # in the current epoch, the chunk being filled comes first
    size_t size         # bytes of the chunks; of a finished epoch, the bytes used
    instant_t last


@cython.final
cdef class Tecs:
    cdef Epoch* epochs      # a ring of `room`, from `oldest` to `current`
    cdef uint32_t room      # a power of two
    cdef uint64_t oldest
    cdef uint64_t current
    cdef Chunk* spares      # chunks of freed epochs, the most recently used first
    cdef size_t epoch_bytes         # size at which the current epoch ends
    cdef size_t chunk_bytes         # size of a new chunk
    cdef char* next                 # the unused rest of the chunk being filled
    cdef char* end
    cdef readonly uint64_t made     # nodes created so far

    cdef inline int begin(self, instant_t now, instant_t bound) except -1 nogil:
        """Begin an instant, and free the epochs before `bound`."""
        if self.oldest < self.current:
            self.free_before(bound)
        assert self.current_epoch().last <= now
        if self.filled() >= self.epoch_bytes:
            self.next_epoch()
        self.current_epoch().last = now
        return 0
    cdef inline Epoch* current_epoch(self) noexcept nogil:
        return &self.epochs[self.current & (self.room - 1)]
    cdef inline size_t filled(self) noexcept nogil:
        """The bytes used in the current epoch."""
        return self.current_epoch().size - <size_t>(self.end - self.next)
    cdef inline int clear(self) noexcept nogil:
        """Free everything, if no instant has begun."""
        cdef Chunk* chunk = self.current_epoch().chunks
        if chunk != NULL:
            self.next = <char*>(chunk + 1)
            if chunk.next != NULL:
                self._spare_others()
        return 0
    cdef int _spare_others(self) noexcept nogil
    cdef size_t _live(self) noexcept nogil
    cdef int _measure(self, size_t live) noexcept nogil
    cdef int free_before(self, instant_t bound) noexcept nogil
    cdef int next_epoch(self) except -1 nogil
    cdef int next_chunk(self, size_t size) except -1 nogil
    cdef Label* label(self, uint32_t width) except NULL nogil
    cdef union_t insert(
        self, Cell* cell, union_t heap, instant_t heap_latest, instant_t bound
    ) except 0 nogil
    cdef union_t unite(
        self, union_t one, instant_t one_latest, union_t other, instant_t other_latest
    ) except 0 nogil


@cython.final
cdef class Walk:
    cdef bint timed             # some labels are deadlines; the path leaves out those that begin no
                                # iteration
    cdef PendingUnion next      # the source of the next match; empty: none
    cdef instant_t bound
    cdef PendingUnion* stack    # the sources of the matches after it; the lowest two entries are
                                # empty
    cdef uint32_t top           # index of its top entry: at least 1
    cdef uint32_t stack_room
    cdef Label** path           # the labels of the current match, the last event's first
    cdef uint32_t path_room
    cdef uint32_t length
    cdef instant_t start

    cdef inline int begin(self, Node* end, instant_t bound) except -1 nogil:
        """Begin to enumerate the matches that end in a node and start at `bound` or later."""
        assert bound >= 0
        self.bound = bound
        self.next.members = <union_t>end if end.latest >= bound else 0
        self.next.depth, self.top = 0, 1
        return 0
    cdef inline int stop(self) noexcept nogil:
        """End the enumeration."""
        self.next.members = 0
        return 0
    cdef inline bint has_next(self) noexcept nogil:
        """Whether there is another match."""
        return self.next.members != 0
    cdef inline int advance(self) except -1 nogil:
        """Advance to the next match: 1, or 0 if there is none.

        Its labels are path[length - 1], …, path[0]; its first event arrived at `start`.
        """
        cdef uint64_t events = 0
        return <int>self.advance_by(1, &events)
    cdef uint64_t advance_by(self, uint64_t most, uint64_t* events) except? 0xFFFFFFFFFFFFFFFF nogil
    cdef int _grow_stack(self) except -1 nogil
    cdef int _grow_path(self) except -1 nogil


cdef inline Cell* cell_of(union_t members) noexcept nogil:
    """The cell of a union of several nodes."""
    return <Cell*>(members ^ UNION)


cdef inline Node* top_of(union_t members) noexcept nogil:
    """A node of a union that has a node of its own."""
    return cell_of(members).node if members & UNION else <Node*>members


cdef inline instant_t start_of(union_t members) noexcept nogil:
    """The greatest start of a union."""
    return cell_of(members).latest if members & UNION else (<Node*>members).latest


cdef inline size_t size_of_label(uint32_t width) noexcept nogil:
    """The bytes of a label with a row of `width` terms."""
    return sizeof(Label) + width * sizeof(term_t) - 2 * sizeof(term_t)


cdef inline void* tecs_alloc(Tecs tecs, size_t size) except NULL nogil:
    """Allocate memory that lives as long as the window may need the current instant."""
    cdef char* piece
    size = (size + 7) & ~<size_t>7
    if <size_t>(tecs.end - tecs.next) < size:
        tecs.next_chunk(size)
    piece = tecs.next
    tecs.next = piece + size
    return piece


# Functions that return pointers cannot assert without the GIL themselves (Cython 3.1).
cdef inline int assert_above(
    const Label* label, union_t before, instant_t start
) except -1 nogil:
    assert start <= label.instant
    assert before == 0 or start_of(before) == start
    return 0


cdef inline Node* new_node(
    Tecs tecs, Label* label, union_t before, instant_t start
) except NULL nogil:
    """Extend a union by one event; an empty union yields the event alone.

    `start` is the greatest start of the union, or the event's own instant.
    """
    cdef Node* node = <Node*>tecs_alloc(tecs, sizeof(Node))
    assert_above(label, before, start)
    node.label = label
    node.before = before
    node.latest = start
    tecs.made += 1
    return node


cdef inline union_t union_add(
    Tecs tecs, union_t heap, instant_t heap_latest, Node* node, instant_t bound
) except 0 nogil:
    """The union of a heap (maybe empty) and a node."""
    cdef Cell* cell
    if heap == 0 or heap_latest < bound:
        return <union_t>node
    cell = <Cell*>tecs_alloc(tecs, sizeof(Cell))
    cell.node, cell.before, cell.latest = node, node.before, node.latest
    cell.left = cell.right = 0
    cell.left_latest = cell.right_latest = -1
    # The heap itself is not read: it may be as old as the window.
    if heap_latest > node.latest:
        return tecs.insert(cell, heap, heap_latest, bound)
    cell.left, cell.left_latest = heap, heap_latest
    return <union_t>cell | UNION

# tecs/range_index.pxi

cdef enum:
    NIL = 0xFFFFFFFF        # no group, and no block
    SINGLE_GROUP = 0x80000000 # tag of a root that is a single group
    DISTINCT_DIGITS = 15    # distinct decimals of at most this many digits are distinct doubles

cdef extern from *:
    const double GREATEST "__DBL_MAX__"
    const double GREATEST_FLOAT "__FLT_MAX__"

# The kinds of values that are compared with one another.
cdef enum Rank:
    NUMERIC     # a number
    OTHERWISE   # not comparable with numbers: dates and the like, and NaN
    UNBOUND
    TEXT        # equal only to the same term; its hash is the value


cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil


cdef inline uint64_t class_of(uint32_t hash, Rank rank) noexcept nogil:
    """The bucket of the groups with a hash of the equality key and a rank."""
    return <uint64_t>hash << 2 | <uint64_t>rank


@cython.final
cdef class TermResolver:
    cdef WindowTerms window
    cdef Dictionary dictionary


cdef inline Rank rank_at(TermRecord* record, double* value) noexcept nogil:
    """As `rank_of`, inlined for integers and decimals."""
    if record.kind == Kind.INTEGER:
        value[0] = <double><int64_t>record.exact
        return Rank.NUMERIC
    if record.kind == Kind.DECIMAL:
        value[0] = record.further.real
        return Rank.NUMERIC
    return rank_of(record, value)


cdef inline bint is_distinct(const TermRecord* record, double value) noexcept nogil:
    """Whether no other number has this value as a double: numbers of few digits."""
    if record.kind == Kind.DECIMAL:
        return record.lexical <= DISTINCT_DIGITS
    return <int>(record.kind == Kind.INTEGER) & <int>(fabs(value) < 1e15)


cdef inline TermRecord* record_in(TermResolver registers, term_t term) noexcept nogil:
    """The record of a register's term: permanent or of the window, not a numeral."""
    if term & WINDOWED:
        return &registers.window.store.records[term ^ WINDOWED]
    return &registers.dictionary.permanent.records[term]


cdef inline Rank rank_in(
    TermResolver registers, term_t term, double* value, bint* distinct
) noexcept nogil:
    """The rank and value of a register's term; `distinct`: not a number, or `is_distinct`."""
    cdef TermRecord* record
    cdef Rank rank
    value[0], distinct[0] = 0, True
    if term == 0:
        return Rank.UNBOUND
    if is_numeral(term):
        value[0] = real_of(term)
        return Rank.NUMERIC
    record = record_in(registers, term)
    rank = rank_at(record, value)
    distinct[0] = <int>(rank != Rank.NUMERIC) | <int>is_distinct(record, value[0])
    return rank

# The position of a group.
cdef struct GroupEntry:
    uint64_t bucket     # the bucket: hash of the equality key, and rank
    double value
    uint32_t block      # NIL: the group is alone

# A run of neighbouring groups, from its own (value, group) position up to that of the next block. A
# block's number is that of the cache line where it begins. Behind the header lie `room` values,
# then `room` groups; the entries of both begin at `first`, in order.
cdef struct Block:
    uint64_t bucket         # bucket of all its groups
    double low              # its first position
    uint32_t low_group
    uint32_t[2] child       # subtrees before it, and after
    uint32_t before         # neighbouring blocks of the same bucket
    uint32_t after
    uint32_t serial         # unique
    uint16_t count          # groups: at least one
    uint16_t room           # SMALL_BLOCK, MEDIUM_BLOCK or LARGE_BLOCK
    uint16_t first

# The union of some groups, see sums.pxi.
cdef struct Union:
    union_t members     # 0: empty
    instant_t latest
    bint stale

# The unions of a block. If its subtree is stale, so are all subtrees that contain it.
cdef struct Subtotal:
    Union own
    Union subtree

# A cursor over the groups of a range of values: ascending, or descending from the greatest.
cdef struct RangeCursor:
    const Block* block      # NULL: at a lone group, or past the end
    const double* at        # the current entry
    const double* end       # after the last entry of the block
    int step                # 1, or -1 if descending
    double least
    double most
    double value            # of the current group


cdef inline double* values_in(const Block* block) noexcept nogil:
    """The values of a block's groups."""
    return <double*>(block + 1) + block.first


cdef inline uint32_t* groups_in(const Block* block) noexcept nogil:
    """The groups of a block, at the positions of their values."""
    return <uint32_t*>(<double*>(block + 1) + block.room) + block.first


cdef inline uint32_t count_below(const Block* block, double value) noexcept nogil:
    """The number of groups with a smaller value: those at the beginning.

    All values are compared, several at once: with so few entries a binary search would take longer.
    """
    cdef const double* values = values_in(block)
    cdef uint64_t found = 0
    cdef uint32_t i
    for i in range(block.count):
        found += values[i] < value
    return <uint32_t>found


cdef inline uint32_t below(const Block* block, double value) noexcept nogil:
    """As `count_below`, for blocks that mostly lie on one side of the value."""
    if values_in(block)[0] >= value:
        return 0
    if values_in(block)[block.count - 1] < value:
        return block.count
    return count_below(block, value)

cdef extern from *:
    """
    #include <string.h>
    /* The next greater double of one that is finite. */
    static inline double spaseq_next_double(double value) {
        int64_t bits;
        value += 0.0;   /* no zero has a sign then */
        memcpy(&bits, &value, 8);
        bits += value < 0 ? -1 : 1;
        memcpy(&value, &bits, 8);
        return value;
    }
    """
    double next_double "spaseq_next_double"(double value) noexcept nogil


@cython.final
cdef class RangeIndex:
    cdef GroupEntry* places     # per group
    cdef bint distinct          # all numbers ever inserted were distinct
    cdef bint infinite          # some number was out of a double's range
    cdef Subtotal* subtotals    # per block; NULL: no union was requested yet
    cdef uint32_t* roots        # by hash: mask + 1 of them
    cdef uint32_t mask
    cdef Lines blocks
    cdef uint32_t line_count, line_room
    cdef uint32_t[3] free       # free blocks of each size, linked by `after`
    cdef uint32_t block_count, subtotal_room

    cdef int alloc_room(self, uint32_t room) except -1 nogil
    cdef int reset(self, uint32_t room) except -1 nogil
    cdef int enable_subtotals(self) except -1 nogil
    cdef int invalidate(self, uint32_t group) noexcept nogil
    cdef int insert_entry(self, uint32_t group) except -1 nogil
    cdef int remove_entry(self, uint32_t group) noexcept nogil
    cdef uint32_t seek(
        self, RangeCursor* span, uint32_t hash, Rank rank, double least, double most
    ) noexcept nogil
    cdef uint32_t next_block(self, RangeCursor* span) noexcept nogil
    cdef uint32_t search(
        self, uint32_t node, uint64_t bucket, double value, uint32_t group
    ) noexcept nogil
    cdef uint32_t _alloc_block(self, uint32_t room) except? 0xFFFFFFFF nogil
    cdef uint32_t _new_bucket(
        self, const GroupEntry* place, uint32_t group
    ) except? 0xFFFFFFFF nogil
    cdef uint32_t _position_in(
        self, const Block* block, double value, uint32_t group
    ) noexcept nogil
    cdef int _add(self, uint32_t number, uint32_t group) noexcept nogil
    cdef int _make_block(self, uint32_t* root) except -1 nogil
    cdef int _free_block(self, uint32_t number) noexcept nogil
    cdef uint32_t _enlarged(self, uint32_t number) except? 0xFFFFFFFF nogil
    cdef uint32_t _split(
        self, uint32_t number, double value, uint32_t group
    ) except? 0xFFFFFFFF nogil
    cdef int _move_groups(self, uint32_t number, uint32_t other, uint32_t from_on) noexcept nogil
    cdef int _invalidate_block(self, uint32_t serial) noexcept nogil
    cdef int _invalidate_path(self, uint32_t number) noexcept nogil
    cdef int _treap_insert(self, uint32_t number) noexcept nogil
    cdef int _treap_remove(self, uint32_t number) noexcept nogil


cdef inline uint32_t* root_of(RangeIndex order, uint64_t bucket) noexcept nogil:
    """The root of a bucket; other buckets may share it."""
    return &order.roots[<uint32_t>(bucket >> 2) & order.mask]


cdef inline Block* block_at(RangeIndex order, uint32_t number) noexcept nogil:
    """The block of a number; valid until a block is created."""
    return <Block*>(order.blocks.first + <size_t>number * LINE_BYTES)


cdef inline bint lies_before(
    double value, uint32_t group, double other, uint32_t other_group
) noexcept nogil:
    """Whether a position lies before another one; branch-free, since it is unpredictable."""
    return <int>(value < other) | (<int>(value == other) & <int>(group < other_group))


cdef inline uint32_t block_of(
    RangeIndex order, uint32_t root, uint64_t bucket, double value, uint32_t group
) noexcept nogil:
    """The last block of a bucket that begins at or before a position, else its first block.

    NIL if the tree has no block of the bucket.
    """
    cdef const Block* block = block_at(order, root)
    # Most trees are one block.
    if block.child[0] & block.child[1] != NIL:
        return order.search(root, bucket, value, group)
    return root if block.bucket == bucket else <uint32_t>NIL


cdef inline bint add_at_end(Block* block, double value, uint32_t group) noexcept nogil:
    """Insert a group at an end of a block; False if it belongs elsewhere or does not fit."""
    cdef double* values = values_in(block)
    cdef uint32_t* groups = groups_in(block)
    cdef uint32_t count = block.count
    if lies_before(values[count - 1], groups[count - 1], value, group):
        if block.first + count == block.room:
            return False
        values[count], groups[count] = value, group
    elif block.first and lies_before(value, group, values[0], groups[0]):
        block.first -= 1
        values -= 1
        groups -= 1
        values[0], groups[0] = value, group
    else:
        return False
    block.count += 1
    return True


cdef inline int index_insert(
    RangeIndex order, uint32_t group, uint32_t hash, Rank rank, double value, bint distinct
) except -1 nogil:
    """Insert a group; see `rank_in`."""
    cdef GroupEntry* place = &order.places[group]
    cdef uint32_t* root
    cdef Block* block
    if not distinct:
        order.distinct = False
        order.infinite |= fabs(value) > GREATEST
    place.bucket, place.value = class_of(hash, rank), value
    root = root_of(order, place.bucket)
    if root[0] == NIL:
        root[0], place.block = SINGLE_GROUP | group, NIL
        return 0
    if not root[0] & SINGLE_GROUP and order.subtotals == NULL:
        place.block = block_of(order, root[0], place.bucket, value, group)
        if place.block != NIL:
            block = block_at(order, place.block)
            if not lies_before(value, group, block.low, block.low_group) and (
                add_at_end(block, value, group)
            ):
                return 0
    return order.insert_entry(group)


cdef inline int index_remove(RangeIndex order, uint32_t group) noexcept nogil:
    """Remove a group."""
    cdef GroupEntry* place = &order.places[group]
    cdef Block* block
    if place.block == NIL:
        root_of(order, place.bucket)[0] = NIL
        return 0
    block = block_at(order, place.block)
    if block.count > 1 and order.subtotals == NULL:
        if groups_in(block)[block.count - 1] == group:
            block.count -= 1
            return 0
        if groups_in(block)[0] == group:
            block.first += 1
            block.count -= 1
            return 0
    return order.remove_entry(group)


cdef inline uint32_t group_of(RangeCursor* span) noexcept nogil:
    """The current group of a cursor; NIL if its value is outside of the range."""
    cdef double value = span.at[0]
    if value < span.least or value > span.most:
        span.block = NULL
        return NIL
    span.value = value
    return groups_in(span.block)[span.at - values_in(span.block)]


cdef inline uint32_t next_of(RangeIndex order, RangeCursor* span) noexcept nogil:
    """The next group of a cursor, or NIL."""
    if span.block == NULL:
        return NIL
    span.at += span.step
    if span.at == span.end:
        return order.next_block(span)
    return group_of(span)

# tecs/groups.pxi

# The members of a group whose last event arrived at one instant, or that have since passed one
# deadline. See _tecs.pxd for `latest`.
cdef struct InstantMembers:
    instant_t last
    int64_t micros      # the time of the last event, or the deadline passed since
    union_t members
    instant_t latest
    InstantMembers* older # the stretch of the previous instant or time
    instant_t older_latest

# The members of a group by their last instants, where a place is dated.
cdef struct Dates:
    InstantMembers* newest
    instant_t oldest    # no member's last event is older
    instant_t floor     # members with an older last event have been joined by a `;` place
    instant_t joined    # the same, effective after the timestamp that begins at `joined_in`
    instant_t joined_in

# The links of a group in its chain.
cdef struct ChainLinks:
    uint32_t next
    uint32_t previous   # NIL: the group is a head
    uint32_t hash

# All partial matches of the place with the same live registers. With up to three registers a group
# fills one cache line: a lookup waits for memory once per line.
cdef struct Group:
    union_t members
    instant_t latest    # greatest start of the members, see _tecs.pxd
    uint64_t serial     # unique among the groups of the place
    instant_t joined_at # the instant whose close removes the group, see `mark_joined`; -1: none
    uint32_t place      # position in `alive`, or the next free group
    bint alive
    ChainLinks all_links # in the chain by all registers
    term_t values[1]    # the registers of the group

# Groups by the hash of some of their registers, in chains.
cdef struct Chains:
    uint32_t* columns       # positions of the hashed live registers
    uint32_t width
    uint32_t* heads         # mask + 1 of them
    uint32_t mask
    ChainLinks* links   # per group; NULL: those inside the groups
    int32_t ordered         # the live register that orders the index, -1: hashed
    bint same               # reuse the first chains, which have the same key


@cython.final
cdef class Groups:
    cdef uint32_t width         # live registers
    cdef Lines lines
    cdef size_t stride          # bytes from one group to the next
    cdef bint dated
    cdef Dates* dates           # per group, if `dated`
    cdef bint floored           # groups have floors
    cdef term_t* raised         # per group, if `floored`: the floor that it has after the open
                                # instant, 0: the same
    cdef uint32_t count         # group numbers in use
    cdef uint64_t made          # groups ever created
    cdef uint32_t room          # slots, a power of two
    cdef uint32_t due           # number of groups at which `grow_in_parts` must run
    cdef uint32_t clearing      # the chains whose new larger table is being cleared
    cdef uint64_t cleared       # heads or roots of it cleared so far
    cdef uint32_t free          # first free group
    cdef uint32_t last_hash     # the hash of the last lookup by all registers
    cdef uint32_t* alive        # the numbers of the groups, unordered
    cdef readonly uint32_t live_count
    # Receives `bit` when the first group arrives or the last one leaves.
    cdef uint64_t* changed_places
    cdef uint64_t bit
    cdef Chains* chains         # first by all registers, then one per index
    cdef uint32_t chain_count
    cdef list orders            # per index its RangeIndex, None where it is hashed
    cdef PyObject** orders_at   # the same
    cdef bint has_unions        # some order stores unions of its groups
    cdef TermResolver registers

    cdef int add_dated(self, Tecs tecs, uint32_t group, Node* node, instant_t bound) except -1 nogil
    cdef int clear(self) except -1 nogil
    cdef int invalidate(self, uint32_t group) noexcept nogil
    cdef uint32_t first(self, uint32_t index, const term_t* key) noexcept nogil
    cdef uint32_t next_of(self, uint32_t index, uint32_t group, const term_t* key) noexcept nogil
    cdef int grow_in_parts(self) except -1 nogil
    cdef int _grow_arrays(self, uint32_t most) except -1 nogil
    cdef int _alloc_tables(self, uint32_t room) except -1 nogil
    cdef bint _clear_next_piece(self) noexcept nogil
    cdef int _rehash(self, uint32_t room) except -1 nogil


cdef inline uint32_t extend_hash(uint32_t hash, term_t value) noexcept nogil:
    """Extend the hash of some values by one more; the empty hash is 0.

    Terms of a window are numbered in order of arrival, so consecutive terms of one register hash to
    neighbouring slots, which share cache lines. If every event brings sixteen terms, the higher
    bits differ.
    """
    return hash * 0x9E3779B1u + value + (value >> 4)


cdef inline uint32_t hash_of(const term_t* values, uint32_t count) noexcept nogil:
    cdef uint32_t hash = 0
    cdef uint32_t i
    for i in range(count):
        hash = extend_hash(hash, values[i])
    return hash


cdef inline Group* group_at(Groups groups, uint32_t number) noexcept nogil:
    """The group of a number; valid until a group is created."""
    return <Group*>(groups.lines.first + number * groups.stride)


cdef inline term_t* values_of(Groups groups, uint32_t group) noexcept nogil:
    return group_at(groups, group).values


cdef inline instant_t floor_of(Dates* dates, instant_t timestamp_start) noexcept nogil:
    """The least last instant of members that no earlier timestamp has joined."""
    if dates.joined_in < timestamp_start and dates.joined > dates.floor:
        dates.floor = dates.joined
    return dates.floor


cdef inline instant_t latest_of(const Group* group) noexcept nogil:
    """The greatest start of the members, also after `,` has passed over them."""
    return group.latest if group.latest >= 0 else ~group.latest


cdef inline bint are_equal(
    const term_t* values, const term_t* others, uint32_t count
) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if values[i] != others[i]:
            return False
    return True


cdef inline uint32_t find_group(Groups groups, const term_t* values) noexcept nogil:
    """The group with these live registers, or NIL."""
    cdef uint32_t hash = hash_of(values, groups.width)
    cdef uint32_t number = groups.chains.heads[hash & groups.chains.mask]
    cdef const Group* group
    groups.last_hash = hash
    while number != NIL:
        group = group_at(groups, number)
        if group.all_links.hash == hash and are_equal(group.values, values, groups.width):
            return number
        number = group.all_links.next
    return NIL


cdef inline ChainLinks* links_of(Groups groups, Chains* chains, uint32_t group) noexcept nogil:
    """The links of a group in some chains."""
    if chains == groups.chains:
        return &group_at(groups, group).all_links
    return &chains.links[group]


cdef inline int chain_insert(
    Groups groups, Chains* chains, uint32_t group, uint32_t hash
) noexcept nogil:
    """Insert a group at the head of the chain of its hash."""
    cdef uint32_t* head = &chains.heads[hash & chains.mask]
    cdef ChainLinks* own = links_of(groups, chains, group)
    own.hash, own.next, own.previous = hash, head[0], NIL
    if head[0] != NIL:
        links_of(groups, chains, head[0]).previous = group
    head[0] = group
    return 0


cdef inline int chain_remove(Groups groups, Chains* chains, uint32_t group) noexcept nogil:
    """Remove a group from its chain."""
    cdef ChainLinks* own = links_of(groups, chains, group)
    if own.previous == NIL:
        chains.heads[own.hash & chains.mask] = own.next
    else:
        links_of(groups, chains, own.previous).next = own.next
    if own.next != NIL:
        links_of(groups, chains, own.next).previous = own.previous
    return 0


cdef inline uint32_t hash_in(const Chains* chains, const term_t* values) noexcept nogil:
    """The hash of the registers of a group that an index reads."""
    cdef uint32_t hash = 0
    cdef uint32_t i
    for i in range(chains.width):
        hash = extend_hash(hash, values[chains.columns[i]])
    return hash


cdef inline uint32_t create_group(Groups groups, const term_t* values) except? 0xFFFFFFFF nogil:
    """Create a group without members, after `find_group` has not found its registers."""
    cdef uint32_t group = groups.free
    cdef uint32_t i
    cdef Group* made
    cdef Chains* chains
    cdef Rank rank
    cdef double value
    cdef bint distinct
    assert find_group(groups, values) == NIL
    if group != NIL:
        groups.free = group_at(groups, group).place
    else:
        if groups.count == groups.due:
            groups.grow_in_parts()
        group = groups.count
        groups.count += 1
    made = group_at(groups, group)
    if groups.dated:
        memset(&groups.dates[group], 0, sizeof(Dates))
        groups.dates[group].floor = groups.dates[group].joined = -1
    if groups.floored:
        groups.raised[group] = 0
    groups.made += 1
    made.members = 0
    made.serial = groups.made
    made.joined_at = made.latest = -1
    made.alive = True
    made.place = groups.live_count
    groups.alive[groups.live_count] = group
    groups.changed_places[0] |= groups.bit * <uint64_t>(groups.live_count == 0)
    groups.live_count += 1
    copy_row(made.values, values, groups.width)
    chain_insert(groups, groups.chains, group, groups.last_hash)
    for i in range(1, groups.chain_count):
        chains = &groups.chains[i]
        if chains.ordered >= 0:
            rank = rank_in(groups.registers, values[chains.ordered], &value, &distinct)
            index_insert(
                <RangeIndex>groups.orders_at[i], group, hash_in(chains, values), rank, value,
                distinct,
            )
        elif not chains.same:
            chain_insert(groups, chains, group, hash_in(chains, values))
    return group


cdef inline double number_in(Groups groups, term_t term) noexcept nogil:
    """The number that a register's term is."""
    cdef double value
    cdef bint distinct
    rank_in(groups.registers, term, &value, &distinct)
    return value


cdef inline int raise_floor(Groups groups, uint32_t group, term_t floor) noexcept nogil:
    """Raise the floor that a group has after the open instant, unless it is greater already."""
    cdef term_t* raised = &groups.raised[group]
    if raised[0] == 0 or number_in(groups, floor) > number_in(groups, raised[0]):
        raised[0] = floor
    return 0


cdef inline int remove_group(Groups groups, uint32_t group) except -1 nogil:
    """Remove a group."""
    cdef Group* gone = group_at(groups, group)
    cdef uint32_t i, last
    assert gone.alive and groups.alive[gone.place] == group
    chain_remove(groups, groups.chains, group)
    for i in range(1, groups.chain_count):
        if groups.chains[i].ordered >= 0:
            index_remove(<RangeIndex>groups.orders_at[i], group)
        elif not groups.chains[i].same:
            chain_remove(groups, &groups.chains[i], group)
    groups.live_count -= 1
    groups.changed_places[0] |= groups.bit * <uint64_t>(groups.live_count == 0)
    last = groups.alive[groups.live_count]
    groups.alive[gone.place] = last
    group_at(groups, last).place = gone.place
    gone.alive = False
    gone.members = 0
    gone.place = groups.free
    groups.free = group
    return 0

# tecs/sums.pxi

# A range query for the groups with a hash and a rank whose value lies beyond a bound, and its
# result.
cdef struct Sum:
    uint64_t bucket
    double bound
    bint above          # values greater than the bound, otherwise less
    union_t members     # 0: empty
    instant_t latest


cdef int sum_of(
    Groups groups, uint32_t index, Tecs tecs, instant_t since, Sum* wanted
) except -1 nogil

# tecs/window.pxi

# A match that waits for its window to close, unless its group has been removed.
cdef struct Awaited:
    Awaited* next
    uint32_t place
    uint32_t group
    uint64_t serial     # of the group
    Label* deadline     # a deadline that the match has passed since its last label, or NULL
    uint32_t length
    Label* labels[1]    # `length` of them, the first event's first


@cython.final
cdef class Window:
    cdef int64_t size
    cdef bint tumbling
    cdef readonly bint counted  # the window counts events
    cdef readonly bint endless  # no window: no times are stored
    cdef int64_t total          # if `counted`: the events inside the window,
    cdef int64_t reached        # and, if there is a lookback, all since `reach`
    cdef uint32_t windows       # how many windows back a search may reach
    cdef int64_t* times         # a ring over the instants reach … now: their times, or if `counted`
                                # their numbers of events
    cdef int64_t* clock         # a ring beside it: the times, if `times` does not hold them and a
                                # guard needs them; else NULL
    cdef int64_t lookback       # microseconds before the window that a search may begin, or -1
    cdef instant_t back         # no instant of the lookback is earlier
    cdef uint32_t times_mask    # `counted` how many events they have
    cdef Awaited** awaited      # a ring beside it: the waiting matches that start there
    cdef instant_t* past_bounds # a ring beside it: `bound` as it was then; NULL if `windows` is 1
    cdef uint64_t awaited_count
    cdef public uint64_t shed_matches   # waiting matches shed under a limit
    cdef public instant_t now
    cdef public instant_t bound
    cdef readonly instant_t reach   # no search reaches an earlier instant
    cdef public instant_t timestamp_start
    cdef public int64_t micros
    cdef public instant_t skipped   # no match may start before it
    cdef public instant_t last_start    # no match may start after it

    cdef bint closes(self, int64_t micros) noexcept nogil
    cdef int count_event(self) noexcept nogil
    cdef int grow_ring(self) except -1 nogil
    cdef int extend_reach(self) noexcept nogil
    cdef int _look_back(self) noexcept nogil


cdef inline int64_t opening_of(Window window, int64_t micros) noexcept nogil:
    """The earliest start, in microseconds, of a match that ends at `micros`."""
    if window.counted or window.endless:
        return INT64_MIN
    return earlier(
        micros, since_multiple(micros, window.size) if window.tumbling else window.size
    )


cdef inline int64_t end_of(Window window, int64_t micros) noexcept nogil:
    """The last time inside the window of a match that starts at `micros`."""
    if window.tumbling:
        return later(micros, window.size - since_multiple(micros, window.size) - 1)
    return later(micros, window.size)


cdef inline int64_t closing_of(Window window, int64_t micros) noexcept nogil:
    """The closing time of the window of a match that starts at `micros`.

    A tumbling window closes before the events of that time, any other after them.
    """
    return later(end_of(window, micros), window.tumbling)


cdef inline instant_t since_of(Window window) noexcept nogil:
    """The least start of a match that ends now."""
    return window.bound if window.bound > window.skipped else window.skipped


cdef inline instant_t bound_at(Window window, instant_t instant) noexcept nogil:
    """The least start of a match that ends at an instant."""
    if window.past_bounds == NULL:
        return window.bound
    return window.past_bounds[instant & window.times_mask]


cdef inline int64_t time_of(Window window, instant_t instant) noexcept nogil:
    """The time of an instant within reach: of a window of time, or of one with a clock."""
    cdef int64_t* times = window.times if window.clock == NULL else window.clock
    return times[instant & window.times_mask]


cdef inline instant_t first_since(
    Window window, int64_t micros, instant_t instant
) noexcept nogil:
    """The least instant within reach, up to a given one, whose time is not before `micros`."""
    cdef instant_t low = window.reach, middle
    while low < instant:
        middle = low + (instant - low) // 2
        if time_of(window, middle) < micros:
            low = middle + 1
        else:
            instant = middle
    return instant


cdef inline int pass_time(Window window, int64_t micros) noexcept nogil:
    """Let the window end at a time between two instants."""
    cdef int64_t earliest = opening_of(window, micros)
    if not window.counted and not window.endless:
        while window.bound <= window.now and (
            window.times[window.bound & window.times_mask] < earliest
        ):
            window.bound += 1
    return 0


cdef inline int tick(Window window, int64_t micros) except -1 nogil:
    """Begin the next instant, at a time not before the last one's."""
    cdef int64_t earliest = opening_of(window, micros)
    window.now += 1
    if window.now == 0 or window.micros != micros:
        window.timestamp_start = window.now
        window.micros = micros
    if window.now - window.reach > window.times_mask and not (
        window.endless and window.clock == NULL
    ):
        window.grow_ring()
    window.times[window.now & window.times_mask] = 0 if window.counted else micros
    window.awaited[window.now & window.times_mask] = NULL
    if window.clock != NULL:
        window.clock[window.now & window.times_mask] = micros
    if not window.counted:
        while window.times[window.bound & window.times_mask] < earliest:
            window.bound += 1
    if window.past_bounds == NULL and window.lookback < 0:
        window.reach = window.bound
        return 0
    return window.extend_reach()

# tecs/event.pxi


@cython.final
cdef class CurrentEvent:
    cdef Tables tables
    cdef Window window
    cdef readonly Tecs tecs
    cdef readonly Tecs transient # nodes that only end matches, freed with the next event
    cdef bint stores_final_nodes # final nodes are in `tecs` too, since their addresses are stored
    cdef WindowTerms terms
    cdef uint64_t match_generation # changes whenever complete matches may be freed
    cdef const term_t* batch_row # the current row
    cdef term_t* row            # its copy: window terms once `row_stored`; then the values of its
                                # BINDs
    cdef bint row_stored
    cdef uint32_t row_room
    cdef term_t* env            # the environment of the current partial match
    cdef Label label            # the fields of the event's labels
    cdef term_t raw_name, raw_stamp
    cdef bint event_stored
    cdef EventBatch batch
    cdef Effort effort          # the steps of the event, see spaseq.rdf.limits
    cdef uint64_t most_listed   # the most matches that may be listed at once
    cdef uint64_t most_waiting  # the most that may begin to wait at one event
    cdef bint sheds             # beyond these, the rest is dropped
    cdef uint64_t cut           # how often the rest was dropped
    cdef uint64_t listed        # the matches of the event that now wait for their window to close
    cdef bint out_of_steps      # the event ran out of steps
    cdef uint32_t out_of_steps_place
    cdef instant_t since        # the least start of a match that the current row joins
    cdef term_t* key            # scratch: the key of an index lookup

    cdef int set_batch(self, EventBatch batch) except -1 with gil
    cdef int grow_row(self, uint32_t width) except -1 nogil
    cdef int store_row(self, uint32_t width) except -1 nogil
    cdef int replace_batch_terms(self, Occurrence* occurrence) noexcept nogil
    cdef int label_row(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil


cdef inline bint count_group_step(CurrentEvent current, uint32_t place) except -1 nogil:
    """Spend one step of the event on a group of a place; False if none is left."""
    if not count_step(&current.effort):
        current.out_of_steps, current.out_of_steps_place = True, place
        return False
    return True


cdef bint refuse_match(CurrentEvent current, bint waits) except -1 nogil


cdef inline bint count_match(CurrentEvent current, uint64_t* listed) except -1 nogil:
    """Count a match that is listed; every 64 matches, check for signals.

    Returns False if there are too many, and the rest is to be dropped.

    Raises:
        LimitReached: if there are too many, and the query is to stop.
    """
    if listed[0] >= current.most_listed:
        return refuse_match(current, False)
    listed[0] += 1
    if not listed[0] & 0x3F:
        check_signals()
    return True


cdef inline int set_event(
    CurrentEvent current, EventBatch batch, uint32_t number, uint32_t stream, uint32_t file
) except -1 nogil:
    """Make an event of a batch current."""
    cdef const EventRecord* event = batch.events + number
    current.match_generation += 1
    begin_event(&current.effort)
    current.out_of_steps = False
    current.listed = 0
    if current.batch is not batch:
        current.set_batch(batch)
    current.label.micros = event.micros
    current.label.line = event.line
    current.label.ordinal = event.ordinal
    current.label.domain = event.domain
    current.label.parts = 1
    current.label.instant = current.window.now
    current.label.stream = stream
    current.label.file = file
    current.raw_name = event.name
    current.raw_stamp = 0 if event.domain else event.stamp
    current.event_stored = False
    return 0


cdef inline int set_row(CurrentEvent current, const term_t* row, uint32_t width) except -1 nogil:
    """Make a row of the event current, with the terms of its batch."""
    if width + current.tables.most_assigned > current.row_room:
        current.grow_row(width + current.tables.most_assigned)
    current.batch_row, current.row_stored = row, False
    copy_row(current.row, row, width)
    return 0


cdef inline int resolve_compared_columns(CurrentEvent current, uint32_t gpm) except -1 nogil:
    """Replace compared columns of the current row by window terms; a label replaces the rest.

    Called only while the row is not stored.
    """
    cdef uint32_t i, j
    for i in range(current.tables.compared_first[gpm], current.tables.compared_first[gpm + 1]):
        j = current.tables.compared[i]
        if current.row[j] & LOCAL:
            current.row[j] = current.terms.lookup(current.batch, current.row[j])
    return 0


cdef inline int label_straight(
    CurrentEvent current, Tecs tecs, const EdgeRef* way, uint32_t width, Label** label
) except -1 nogil:
    """As `label_row`, if no register has been bound and the row has no BINDs."""
    if not current.row_stored:
        current.store_row(width)
    if label[0] == NULL:
        # A whole Label is copied, so allocate at least its size.
        label[0] = <Label*>tecs_alloc(tecs, size_of_label(max(width, 2)))
        label[0][0] = current.label
        label[0].edge, label[0].width = way.edge, width
        copy_row(label[0].row, current.row, width)
    return 0

# tecs/instant.pxi

# A partial match that enters `target` when the instant closes; `values` is the offset of its
# registers.
cdef struct Pending:
    uint32_t target
    uint32_t values
    Node* node

cdef struct Touched:
    uint32_t place
    uint32_t group


@cython.final
cdef class OpenInstant:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef uint32_t cells         # of an environment
    cdef list groups            # per place, its Groups; None at a start
    cdef PyObject** groups_at   # the same, as pointers
    cdef uint64_t changed_places # places whose first group arrived or whose last one left, by
                                # `bit_of_place`; all bits: the join strategy has changed
    cdef Pending* pending
    cdef uint32_t pending_count, pending_room
    cdef term_t* pending_values
    cdef uint32_t value_count, value_room
    cdef Touched* touched
    cdef uint32_t touched_count, touched_room
    cdef Node** accepted
    cdef uint32_t accepted_count, accepted_room
    cdef bint traced            # `tracer` receives every transition
    cdef object tracer

    cdef int remember(
        self, term_t* env, const Place* place, Groups groups, uint32_t number
    ) noexcept nogil
    cdef int more_touched(self) except -1 nogil
    cdef int accept(self, Node* node) except -1 nogil
    cdef int trace_pending(self) except -1 with gil
    cdef int _trace_accepted(self, const Node* node) except -1 with gil
    cdef int make_room(self) except -1 nogil


cdef inline uint64_t bit_of_place(uint32_t place) noexcept nogil:
    """The bit of a place in a set of places; places 64 apart share a bit."""
    return <uint64_t>1 << (place & 63)


cdef inline int mark_joined(
    OpenInstant instant, uint32_t place, uint32_t number, Group* group
) except -1 nogil:
    """Mark a group that `;` joined, or that nothing can join any more: the close removes it."""
    cdef Touched* touched
    group.joined_at = instant.window.now
    if instant.touched_count == instant.touched_room:
        instant.more_touched()
    touched = &instant.touched[instant.touched_count]
    touched.place, touched.group = place, number
    instant.touched_count += 1
    return 0


cdef inline term_t* add_pending(OpenInstant instant, uint32_t target, Node* node) except NULL nogil:
    """Add a pending partial match; the address for its registers.

    The address is valid even without registers: NULL would be ambiguous with an error, and checking
    for an error needs the GIL.
    """
    cdef Pending* pending
    if instant.pending_count == instant.pending_room or (
        instant.value_count + instant.cells >= instant.value_room
    ):
        instant.make_room()
    pending = &instant.pending[instant.pending_count]
    pending.target, pending.values, pending.node = target, instant.value_count, node
    instant.pending_count += 1
    return instant.pending_values + instant.value_count


cdef inline int add_pending_env(OpenInstant instant, uint32_t target, Node* node) except -1 nogil:
    """Let the current partial match wait in a place when the instant has closed."""
    cdef Place* place = &instant.tables.places[target]
    cdef term_t* values = add_pending(instant, target, node)
    cdef uint32_t i
    for i in range(place.live_first, place.live_end):
        values[i - place.live_first] = instant.event.env[instant.tables.numbers[i]]
    instant.value_count += place.live_end - place.live_first
    return 0


cdef inline int follow_links(OpenInstant instant, const Edge* edge, Node* node) except -1 nogil:
    """Follow the links of an edge after the current row has been bound."""
    cdef const Link* link = edge.link
    while link < edge.link_end:
        if bounds_admit(instant.tables, link, instant.event.env):
            if link.target >= 0:
                add_pending_env(instant, link.target, node)
            else:
                instant.accept(node)
        link += 1
    return 0


cdef inline int follow_straight_links(
    OpenInstant instant, const term_t* row, const Edge* edge, const term_t* remembered, Node* node
) except -1 nogil:
    """Follow the links of a straight edge from a group with registers `remembered`."""
    cdef const Link* link = edge.link
    cdef const Link* last = edge.link_end
    cdef const Source* source
    cdef term_t* values
    while link < last:
        if link.target < 0:
            instant.accept(node)
            link += 1
            continue
        values = add_pending(instant, link.target, node)
        source = link.source
        instant.value_count += <uint32_t>(link.source_end - source)
        while source < link.source_end:
            if source.origin == Origin.ROW:
                values[0] = row[source.number]
            elif source.origin == Origin.GROUP:
                values[0] = remembered[source.number]
            else:
                values[0] = source.number
            values += 1
            source += 1
        link += 1
    return 0

# tecs/row_buffer.pxi

cdef enum:
    UNINDEXED = 0xFFFFFFFF

# Rows by the term in one column: a chain per bucket, from newer to older rows.
cdef struct Index:
    uint32_t column
    uint64_t* newest    # per bucket
    uint64_t* older     # per row

cdef struct RowBuffer:
    Label** labels          # a ring of `room`: rows first … end - 1
    instant_t* instants     # instants of the rows
    uint8_t* keyed          # whether the rows bind all partition variables
    uint64_t first
    uint64_t end
    uint32_t room
    Index* indexes
    uint32_t index_count


cdef RowBuffer* rows_alloc(columns) except NULL
cdef int rows_free(RowBuffer* rows) noexcept nogil
cdef int rows_add(RowBuffer* rows, Label* label, bint keyed) except -1 nogil
cdef int rows_expire(RowBuffer* rows, instant_t bound) noexcept nogil
cdef uint64_t row_before(const RowBuffer* rows, instant_t high) noexcept nogil
cdef uint64_t row_until(const RowBuffer* rows, int64_t micros) noexcept nogil
cdef uint64_t chain_newest(const RowBuffer* rows, uint32_t index, term_t term) noexcept nogil
cdef uint64_t chain_older(const RowBuffer* rows, uint32_t index, uint64_t number) noexcept nogil

# tecs/frontier.pxi

# The entries of one search; environments have `cells` terms.
cdef struct Frontier:
    uint32_t cells
    uint32_t* places
    instant_t* lasts
    int64_t* micros         # the times of the last events, or deadlines
    term_t* values          # the environments
    uint32_t* hashes
    uint32_t* heads         # chain heads by hash, `room` of them
    uint32_t* others        # the next entry of the chain
    uint32_t count
    uint32_t room
    uint32_t next           # the next entry to follow


cdef int frontier_push(
    Frontier* entries, uint32_t place, instant_t last, int64_t micros, const term_t* env,
    const uint32_t* live, uint32_t width,
) except -1 nogil
cdef int frontier_clear(Frontier* entries) noexcept nogil
cdef int frontier_free(Frontier* entries) noexcept nogil

# tecs/ranges.pxi

cdef enum:
    ZONE_LEVELS = 2
    ZONE_BITS = 4   # a block has 2**4 rows, one of the next level 2**4 blocks

# Rings of blocks, for those numeric columns of buffered rows that filters compute with.
cdef struct Ranges:
    uint32_t* columns
    uint32_t* registers         # registers that take the columns
    uint32_t width
    uint32_t room               # of the row buffer
    Interval* levels[ZONE_LEVELS] # per block, an interval for each column


cdef Ranges* ranges_alloc(columns, registers) except NULL
cdef int ranges_free(Ranges* ranges) noexcept nogil
cdef int ranges_add(Ranges* ranges, const RowBuffer* rows, TermResolver registers) except -1 nogil


cdef inline bint ends_block(uint64_t number, uint32_t level) noexcept nogil:
    """Whether a row is the last of its block."""
    return ((number + 1) & ((<uint64_t>1 << ZONE_BITS * (level + 1)) - 1)) == 0


cdef inline uint64_t block_start(uint64_t number, uint32_t level) noexcept nogil:
    """The number of the first row of a row's block."""
    return number & ~((<uint64_t>1 << ZONE_BITS * (level + 1)) - 1)


cdef inline uint64_t block_count(uint32_t room, uint32_t level) noexcept nogil:
    """The number of blocks in a ring: a power of two."""
    return max(2 * <uint64_t>room >> ZONE_BITS * (level + 1), 2)


cdef inline Interval* intervals_of(
    const Ranges* ranges, uint64_t number, uint32_t level
) noexcept nogil:
    """The intervals of a row's block."""
    cdef uint64_t block = number >> ZONE_BITS * (level + 1) & (block_count(ranges.room, level) - 1)
    return ranges.levels[level] + block * ranges.width


cdef inline Box box_of(const Ranges* ranges, uint64_t number, uint32_t level) noexcept nogil:
    """The intervals of a row's block, by register."""
    return Box(ranges.registers, intervals_of(ranges, number, level), ranges.width)
