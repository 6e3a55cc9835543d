"""The tables of an automaton as the compiled core reads them; see _program.pyx."""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint32_t, uint64_t

from spaseq.rdf._intervals cimport Box
from spaseq.rdf._moments cimport is_beyond
from spaseq.rdf._terms cimport term_t

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
