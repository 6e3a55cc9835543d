"""The tables of an automaton as the compiled core reads them; see _program.pyx."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from spaseq.rdf._intervals cimport Box
from spaseq.rdf._terms cimport term_t

cdef enum:
    CLOSING = 119       # "w"

# What is worked out by somebody else, of what a partial match and a row bind. Terms that come
# out of it are permanent or of the window.
cdef struct Conditions:
    # Whether the residual filters of an occurrence are true: 1 or 0, or -1 with a Python
    # exception set. May fill in the cells behind the registers.
    int (*hold)(void* context, uint32_t occurrence, term_t* env) noexcept nogil
    # Whether one of them is true, by its number among all: likewise.
    int (*test)(void* context, uint32_t number, term_t* env) noexcept nogil
    # Whether it may be true of some rows at all, if the registers that are unbound lie in a box;
    # where it is not, it has been asked of so many rows.
    bint (*may)(
        void* context, uint32_t number, const term_t* env, const Box* box, uint64_t rows
    ) noexcept nogil
    # The value of the BIND at a position among those of an occurrence, 0 where it has none: 0,
    # or -1 with a Python exception set.
    int (*value)(
        void* context, uint32_t occurrence, uint32_t position, term_t* env, term_t* value
    ) noexcept nogil
    # What an aggregate's register holds after one more value; 0 with a Python exception set.
    # Equal states are equal numbers, and 0 is the state before any value.
    term_t (*add)(void* context, uint32_t register, term_t state, term_t value) noexcept nogil
    void* context
    int64_t instant     # that of the row's event, -1: it is the event at hand
    uint32_t stream     # of the row's event, where that has an instant
    bint uncounted      # filters that are not true are not counted

cdef enum Change:
    FORGET      # a register is unbound, or has no iterations
    COPY        # takes the value of another one
    NUMBER      # an iteration whose number is known
    AGAIN       # one more iteration, up to a limit
    OPEN        # takes the first value of the iteration that begins, if it is the first one

# What registers hold that is no term; no term has such a number.
cdef enum:
    OPENED = 0xFFFFFFFFu    # of a first value: the first iteration has not bound the variable yet
    VOID = 0xFFFFFFFEu      # of a first value: it never did
    FAILED = 0xFFFFFFFDu    # of an aggregate: an error

# How a register follows the value of a variable.
cdef enum Following:
    LAST_VALUE
    FIRST_VALUE
    STATE       # of an aggregate

# What sets a place apart.
cdef enum Manner:
    DATED = 1       # its partial matches are told apart by their last instants
    GUARDED = 2     # of a start: a step skipped in front must not have occurred
    RELATIVE = 4    # what a guard sees depends on the last instant
    CONJOINED = 8   # some edge takes several events
    LOOKS_BACK = 16 # what it would have taken before is looked for in the window
    RIVALS = 32     # what it would have taken before may be of the same timestamp

# What taking an edge does to a register before the row is bound.
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

# Of a straight edge: a column that is bound, and to what the group has in a register, if any.
cdef struct Agreement:
    uint32_t column
    uint32_t position   # among the live registers of the edge's place, ANY: to anything

# Where a straight edge has a register from: a column of the row, a live register of the group,
# or `number` itself.
cdef enum Origin:
    ROW
    GROUP
    GIVEN

cdef struct Source:
    Origin origin
    uint32_t number

cdef struct Link:
    int32_t target      # a place, -1: the match is complete, -2: the guarded unit has occurred
    uint32_t bound_first
    uint32_t bound_end
    const Source* source        # of a straight edge: what the target remembers
    const Source* source_end

# As in spaseq.nfa.native.table_types: less and greater may be equal too.
cdef enum Relation:
    LESS
    EQUAL
    GREATER

cdef struct Edge:
    uint32_t occurrence # NOBODY: the edge takes several events
    uint32_t effect_first
    uint32_t effect_end
    const Link* link
    const Link* link_end
    uint32_t index      # of the groups' indexes, 0: all groups are visited
    const uint32_t* key # the row's columns that the index reads
    const uint32_t* key_end
    int32_t compared    # the row's column that an ordered index compares, -1: there is none
    Relation relation   # what it must be to the register
    bint whole          # rows take all groups that surely fit as one
    bint decided        # what the ordered index surely finds needs no filter
    bint strict         # ... and what is equal does not fit
    bint exact          # of distinct numbers, the ordered index finds those that fit and no others
    bint straight       # see spaseq.nfa.native.straight_edges
    bint final          # whoever takes it is complete
    const Agreement* agreement
    const Agreement* agreement_end

# A column of a row, the register that takes its value, and those that follow that.
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
    uint32_t assigned_end   # the bindings of its BINDs follow; their columns, those of its rows
    uint32_t count_first    # registers that count its rows
    uint32_t count_end
    uint32_t more           # More: what has to be done beyond binding its columns
    uint64_t disagreed      # rows that did not agree with a partial match

cdef enum More:
    KEEPS = 1       # the window has its rows before they are bound
    COUNTS = 2      # registers count them
    ASSIGNS = 4     # it has BINDs
    TESTS = 8       # it has residual filters

# A guard of a place: rows of its GPM end the partial matches that wait there.
cdef struct Sighting:
    uint32_t place
    uint32_t occurrence
    uint32_t index      # of the groups' indexes, 0: all groups are visited
    uint32_t key_first
    uint32_t key_end
    bint negated        # written as a negation: partition variables may be unbound

cdef struct Place:
    char operator       # of the query; 0 at the start, CLOSING where matches wait
    uint32_t live_first
    uint32_t live_end
    uint32_t edge_first
    uint32_t manner     # Manner: what `spaseq.nfa.native._conjunction` has a say in
    bint contiguous     # `,` within a partition: another event of it passes over the groups
    uint64_t reached    # counters for people, as in spaseq.nfa.counters.PlaceStanding
    uint64_t early
    uint64_t unkeyed
    uint64_t unjoined
    uint64_t visited
    uint64_t joined
    uint64_t passed_over
    uint64_t forbidden
    uint64_t outside
    uint64_t expired
    uint64_t ended      # groups that a guard ended
    uint64_t shed       # groups that went, for there were too many

# An edge that rows of a GPM may take.
cdef struct Way:
    uint32_t gpm
    uint32_t place
    uint32_t edge
    Place* at           # the same place and edge
    Edge* taken
    uint32_t index      # by which the last row of a conjunction finds groups, 0: by none
    uint32_t key_first
    uint32_t key_end


@cython.final
cdef class Tables:
    cdef Place* places
    cdef uint32_t place_count
    cdef Edge* edges
    cdef Link* links
    cdef Bound* bounds
    cdef Agreement* agreements
    cdef Source* sources
    cdef Effect* effects
    cdef Binding* bindings
    cdef Follower* followers
    cdef Occurrence* occurrences
    cdef uint32_t occurrence_count
    cdef uint32_t most_assigned # BINDs that one occurrence has
    cdef Conditions* conditions
    cdef uint32_t* numbers      # live registers, key columns
    cdef uint32_t* way_first    # per GPM and one more, into `ways`
    cdef Way* ways
    cdef uint32_t* sighting_first   # per GPM and one more, into `sightings`
    cdef Sighting* sightings
    cdef uint32_t* firsts       # pairs: iteration register, the cell that says whether it is 1
    cdef uint32_t first_count
    cdef uint32_t cells         # of an environment: registers, then views
    cdef term_t truth, falsehood
    cdef uint32_t* required_first   # per GPM and one more, into `required`
    cdef uint32_t* required         # columns that a row must bind
    cdef uint32_t* compared_first   # per GPM and one more, into `compared`
    cdef uint32_t* compared         # columns that are compared with what registers hold
    cdef readonly bint tracked  # events are noted in their partitions
    cdef bint apart             # each partition skips for itself

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


cdef inline int enter(Tables tables, const Edge* edge, term_t* env) noexcept nogil:
    """Begin the iterations that taking an edge begins."""
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
    """Bind a row's variables in an environment: 1, or 0 where one disagrees.

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
    if occurrence.more & More.COUNTS:
        for i in range(occurrence.count_first, occurrence.count_end):
            env[tables.numbers[i]] += 1
    return 1


cdef inline bint agrees(
    const Edge* edge, const term_t* row, const term_t* values
) noexcept nogil:
    """Whether a straight edge may be taken as such by a row and a group with these registers."""
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


cdef inline bint open_to(Tables tables, const Link* link, const term_t* env) noexcept nogil:
    """Whether the numbers of iterations let a link be followed."""
    cdef uint32_t i
    cdef term_t number
    for i in range(link.bound_first, link.bound_end):
        number = env[tables.bounds[i].register]
        if not tables.bounds[i].least <= number < tables.bounds[i].below:
            return False
    return True
