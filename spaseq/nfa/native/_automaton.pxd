"""The declarations of _automaton.pyx that other modules use."""

cimport cython
from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint32_t, uint64_t, uint8_t

from spaseq.nfa.native._tecs cimport (
    CurrentEvent,
    EagerGuard,
    Edge,
    EdgeRef,
    Frontier,
    Group,
    Groups,
    InstantMembers,
    Label,
    Node,
    Occurrence,
    OpenInstant,
    Place,
    Ranges,
    Rank,
    RowBuffer,
    Tables,
    Tecs,
    TermResolver,
    Touched,
    Walk,
    Window,
    instant_t,
    set_event,
    set_row,
    since_of,
    tick,
    union_t,
)
from spaseq.rdf.native._terms cimport EventBatch, WindowTerms, term_t

# automaton/conjunction.pxi

cdef struct Range:
    uint32_t first
    uint32_t end

# One graph pattern of a step.
cdef struct Part:
    uint32_t occurrence
    uint32_t gpm
    uint32_t operand    # parts of one operand share a timestamp
    uint32_t part       # its position among all patterns of the step

# A filter that is evaluated as soon as all registers that it reads are bound.
cdef struct EarlyFilter:
    uint32_t number
    uint32_t read_first
    uint32_t read_end

cdef struct RowSearch

# Callback for a combination of rows, with the task of the search. 1: the search may stop.
ctypedef int (*OnCombination)(void* task, RowSearch* seek) except -1 nogil

# The parameters and the result of a search, as its callback sees them.
cdef struct RowSearch:
    uint32_t edge
    Range choices       # the alternatives: lists of parts
    const term_t* start     # the environment after the effects of the edge
    instant_t low       # events lie strictly between `low` and `high`
    instant_t high
    bint negated        # rows without partition variables count too
    Label* new_row      # a row that the combination must contain, NULL: any
    uint32_t new_gpm
    OnCombination found
    void* task
    # The combination.
    Part* parts
    uint32_t count
    Label** labels      # per part
    term_t* cells       # environments, `count` + 1 of them; the last is that after the edge
    term_t* env         # the last of `cells`
    term_t* assigned    # per part: the values of its BINDs, in `most_assigned` cells
    instant_t first
    instant_t last


@cython.final
cdef class Conjunction:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef RowBuffer** row_buffers # per GPM; NULL where its rows are not searched
    cdef uint32_t gpm_count
    cdef uint32_t* gpms         # per occurrence
    cdef Range* searches        # per GPM, into `searchers`
    cdef uint32_t* searchers    # the places that search its rows
    cdef bint* whole            # per GPM: whether its rows may be witnesses
    cdef Range* columns         # per GPM, into `column_numbers`: the columns that its rows store
    cdef uint32_t* column_numbers
    cdef Range* place_edges     # per place
    cdef Range* edge_choices    # per edge
    cdef Range* edge_operands   # per edge of an any-order group, into `operand_choices`
    cdef bint* any_order        # per edge
    cdef Range* operand_choices
    cdef Range* choices
    cdef Part* parts
    cdef uint32_t most_parts
    cdef Range* early           # per occurrence, into `early_tests`
    cdef EarlyFilter* early_tests
    cdef uint32_t* early_read
    cdef bint buffers_rows      # whether any rows are buffered
    cdef term_t** levels        # environments of nested searches
    cdef Label*** level_labels
    cdef uint32_t depth, level_room
    cdef Label* last_label      # the last buffered row, and its GPM
    cdef uint32_t last_gpm
    cdef readonly uint64_t looked   # rows examined

    cdef int store_row(self, uint32_t gpm, uint32_t width, bint keyed) except -1 nogil
    cdef int search_edge(self, RowSearch* seek, const term_t* env) except -1 nogil
    cdef int search(self, RowSearch* seek) except -1 nogil
    cdef int _search_choice(self, RowSearch* seek) except -1 nogil
    cdef int _extend(self, RowSearch* seek, uint32_t depth) except -1 nogil
    cdef uint32_t _next_part(self, RowSearch* seek, uint32_t depth) noexcept nogil
    cdef bint _is_selective(self, RowSearch* seek, uint32_t part, uint32_t depth) noexcept nogil
    cdef bint _binds(self, const Occurrence* occurrence, uint32_t number) noexcept nogil
    cdef int _join_part(self, RowSearch* seek, uint32_t depth, uint32_t part) except -1 nogil
    cdef int _join_row(
        self, RowSearch* seek, uint32_t depth, uint32_t part, Label* label
    ) except -1 nogil
    cdef bint _filter_fails(
        self, RowSearch* seek, const term_t* env, term_t* joined
    ) except -1 nogil
    cdef bint _has_event_of(self, RowSearch* seek, const Label* label) noexcept nogil
    cdef int push_level(self) except -1 nogil

# automaton/partitions.pxi

cdef struct Partition:
    instant_t last      # the latest instant with an event of it, -1: none
    instant_t before    # the latest instant before that
    instant_t skipped   # the least start of its matches
    instant_t* instants # if `recorded`, a ring of `room` of all instants within reach
    uint32_t room
    uint32_t first      # position of the oldest instant
    uint32_t count


@cython.final
cdef class Partitions:
    cdef readonly bint tracked      # events are recorded, for strict contiguity
    cdef bint recorded              # all instants within reach are recorded
    cdef readonly bint apart        # each skips past its own matches
    cdef Window window
    cdef WindowTerms terms
    cdef Groups keys                # partition numbers by key
    cdef Partition* partitions      # by number
    cdef uint32_t room
    cdef uint32_t sweep_at
    cdef uint32_t* column_first     # per GPM, into `columns`; NIL: no key
    cdef uint32_t* columns          # columns of its rows that hold a key
    cdef uint32_t* gpm_first        # per edge of the automaton, into `gpm_of`
    cdef uint32_t* gpm_of           # per graph pattern of its step
    cdef uint32_t* registers        # registers of an environment that hold a key
    cdef term_t* key
    cdef instant_t before           # of the current row: the last instant of its partition before
                                    # now
    cdef instant_t since            # the least start of a match of its partition

    cdef int record_event(self, EventBatch batch, uint32_t gpm, const term_t* row) except -1 nogil
    cdef int set_current(self, EventBatch batch, uint32_t gpm, const term_t* row) noexcept nogil
    cdef instant_t before_in(
        self, EventBatch batch, const term_t* env, instant_t instant
    ) noexcept nogil
    cdef instant_t last_at(self, const Label* label) noexcept nogil
    cdef instant_t since_at(self, const Label* label) noexcept nogil
    cdef int skip_at(self, const Label* label, instant_t first) except -1 nogil
    cdef uint32_t _find(self) noexcept nogil
    cdef uint32_t _find_or_create(self) except? 0xFFFFFFFF nogil
    cdef bint _is_out_of_reach(self, uint32_t number) noexcept nogil
    cdef tuple key_at(self, const Label* label)
    cdef object number_key(self, const Label* label)
    cdef bint _key_of(self, const Label* label) noexcept nogil
    cdef instant_t _before(self, const Partition* partition, instant_t instant) noexcept nogil
    cdef int _record_instant(self, Partition* partition, instant_t instant) except -1 nogil
    cdef int _grow(self, Partition* partition) except -1 nogil
    cdef int _sweep(self) except -1 nogil


cdef inline instant_t since_at(
    Window window, Partitions partitions, const Node* node
) noexcept nogil:
    """The least start of the matches that end in a node; `partitions` may be None."""
    if partitions is not None and partitions.apart:
        return partitions.since_at(node.label)
    return since_of(window)

# automaton/negation.pxi

cdef struct Guard:
    bint negated
    int64_t lookback    # before a match: how far the search reaches back, -1: one window
    Range starts        # places where the guarded unit may begin

# Where a search for a guarded unit begins and ends.
cdef struct Stretch:
    instant_t last      # the last instant of the partial match, from which the unit's bounds count
    int64_t micros      # its time, or that of a deadline that the match has passed since
    int64_t until       # the latest time at which an absence that ends the unit is over; INT64_MIN:
                        # before the next step

# A guard, and the registers that it reads as they were before the edge.
cdef struct Check:
    uint32_t guard
    Range restored


@cython.final
cdef class Negation:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Conjunction conjunction
    cdef Partitions partitions  # None without PARTITION BY
    cdef Guard* guards
    cdef uint32_t* starts
    cdef Check* checks
    cdef uint32_t* restored
    cdef Range* edge_checks     # per edge
    cdef Range* link_checks     # per link
    cdef Range* place_checks    # per place where matches wait for the close
    cdef Frontier** frontiers
    cdef uint32_t frontier_count, frontier_depth

    cdef Stretch stretch        # of the current partial match

    cdef int begin(self) noexcept nogil
    cdef inline int base(
        self, instant_t instant, int64_t micros, int64_t until=INT64_MIN
    ) noexcept nogil:
        """Set where the searches for guarded units begin and end."""
        self.stretch = Stretch(instant, micros, until)
        return 0
    cdef instant_t forbidden_until(
        self, uint32_t edge, const term_t* before, const term_t* after, instant_t low,
        instant_t high, bint starting,
    ) except -2 nogil
    cdef instant_t latest_occurrence(
        self, Check* check, const term_t* before, const term_t* after, instant_t low,
        instant_t high, bint starting,
    ) except -2 nogil
    cdef instant_t instant_before(self, const term_t* env, instant_t instant) noexcept nogil
    cdef bint forbids(
        self, Range checks, const term_t* env, instant_t low, instant_t high
    ) except -1 nogil
    cdef int completes(self, RowSearch* begun, void* watched) except -1 nogil
    cdef int follow_absence(self, void* task) except -1 nogil
    cdef int push(
        self, Frontier* frontier, uint32_t target, instant_t last, int64_t micros, const term_t* env
    ) except -1 nogil
    cdef Frontier* frontier(self) except NULL nogil
    cdef int follow_unit_links(
        self, uint32_t edge, const term_t* env, const Stretch* since, instant_t high,
        Frontier* frontier,
    ) except -1 nogil

# automaton/joins.pxi

# The beginning of a match that is decided only when all events of its instant have been counted.
cdef struct DeferredStart:
    uint32_t edge
    uint32_t place
    Node* node          # node of its step


@cython.final
cdef class StepJoin:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef Conjunction conjunction
    cdef Negation negation
    cdef Partitions partitions  # None without PARTITION BY
    cdef OpenInstant instant
    cdef term_t* before         # the environment of a partial match before the step
    cdef Label** step           # the labels of the current step, by instant
    cdef uint32_t step_count    # 0: the labels are not created yet
    cdef DeferredStart* deferred
    cdef term_t* deferred_values    # their environments
    cdef uint32_t deferred_count, deferred_room

    cdef int join_guarded(
        self, EdgeRef* way, uint32_t number, uint32_t width, Label** label
    ) except -1 nogil
    cdef int conjoin(self, EdgeRef* way) except -1 nogil
    cdef int _conjoin_each(self, Groups groups, EdgeRef* way, RowSearch* seek) except -1 nogil
    cdef int _conjoin_with(self, Groups groups, RowSearch* seek) except -1 nogil
    cdef int begin_deferred(self) except -1 nogil
    cdef int expire_strict(self, Groups groups) except -1 nogil
    cdef int _begin(self, EdgeRef* way, RowSearch* seek) except -1 nogil
    cdef int _join(self, EdgeRef* way, uint32_t number, RowSearch* seek) except -1 nogil
    cdef instant_t _least_last_instant(
        self, EdgeRef* way, uint32_t number, RowSearch* seek
    ) except -2 nogil
    cdef int _follow(
        self, EdgeRef* way, uint32_t number, RowSearch* seek, instant_t needed, Groups groups
    ) except -1 nogil
    cdef Node* _node(
        self, EdgeRef* way, RowSearch* seek, union_t before, instant_t start
    ) except NULL nogil
    cdef int _label_step(self, EdgeRef* way, RowSearch* seek) except -1 nogil
    cdef bint _start_is_forbidden(
        self, uint32_t edge, Place* place, instant_t first
    ) except -1 nogil
    cdef int defer_start(self, EdgeRef* way, Node* node) except -1 nogil

# automaton/deadlines.pxi

# The deadline of the members of a group with one last instant.
cdef struct Timer:
    int64_t due         # microseconds
    uint64_t serial     # of the group
    InstantMembers* members
    instant_t last      # their last instant, readable after the members have been freed
    uint32_t group

# A place that waits for a deadline, with its timers in order of time.
cdef struct TimedPlace:
    uint32_t place
    int64_t size        # microseconds from the last event to the deadline
    bint ending         # the deadline may end a match
    bint begins         # it begins an iteration
    Timer* timers       # a ring of `room`, a power of two, from `first` to `end`
    uint32_t room
    uint64_t first
    uint64_t end


@cython.final
cdef class Deadlines:
    cdef Tables tables
    cdef OpenInstant instant
    cdef Window window
    cdef TimedPlace* places
    cdef uint32_t count
    cdef uint32_t* number_of    # by place, into `places`
    # Lower bounds on all deadlines, and on those that may end a match; INT64_MAX: there is none.
    cdef int64_t soonest
    cdef int64_t soonest_ending

    cdef int add(self, uint32_t place, uint32_t group, InstantMembers* members) except -1 nogil
    cdef int _grow(self, TimedPlace* at) except -1 nogil
    cdef int trim(self, TimedPlace* at, Groups groups) except -1 nogil
    cdef int64_t next_due(self, bint ending) except? -2 nogil
    cdef bint waits(self, bint ending) except -1 nogil
    cdef int order(self) except -1 nogil


cdef inline bint ends_before(Deadlines deadlines, int64_t micros) except -1 nogil:
    """Whether a deadline before a time may end a match."""
    return deadlines.soonest_ending < micros and deadlines.next_due(True) < micros

# automaton/transitions.pxi


@cython.final
cdef class Transitions:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef OpenInstant instant
    cdef StepJoin joins
    cdef Partitions partitions      # None without PARTITION BY
    cdef Deadlines deadlines
    cdef Walk walk
    cdef int32_t measured           # the measured column of the current row, -1: none
    cdef Rank rank                  # its rank and value
    cdef double value
    cdef bint distinct              # no other number has its value
    cdef uint64_t max_live          # upper bound on groups and waiting matches
    cdef public uint64_t waited     # matches that ever waited for their windows

    cdef int join_place(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil
    cdef int join_all(
        self, EdgeRef** ways, uint32_t count, uint32_t width, Label** kept
    ) except -1 nogil
    cdef int _join_whole_range(
        self, EdgeRef* way, uint32_t width, Label** label, double least, double most
    ) except -1 nogil
    cdef int join_environment(
        self, EdgeRef* way, uint32_t number, uint32_t width, Label** label, Groups groups, bint sure
    ) except -1 nogil
    cdef int raise_group(self, uint32_t target, uint32_t number, Groups groups) except -1 nogil
    cdef int skip_expired(self, EdgeRef* way, uint32_t number, Group* group) except -1 nogil
    cdef bint _fits(self, Edge* edge, uint32_t width, bint sure) except -1 nogil
    cdef int show_pending(self, uint32_t first) except -1 nogil
    cdef int await_matches(self, uint32_t place, uint32_t group, Node* node) except -1 nogil
    cdef int add_awaited(
        self, uint32_t place, uint32_t group, Node* node, Walk walk
    ) except -1 nogil

# automaton/lazy_join.pxi

cdef struct ChainStep:
    uint32_t place
    uint32_t occurrence
    uint32_t way        # its index among the ways

# A residual filter, by its number among all, and the set of steps that it needs, as bits.
cdef struct ChainTest:
    uint32_t number
    uint64_t needs

# Decaying counts of the rows and groups that each strategy examined.
cdef struct Weights:
    double eager        # by the eager strategy
    double lazy         # by the lazy strategy
    double rows         # rows of the preceding step, summed over the rows of each step
    double each         # groups visited per such row
    double trial        # by trials of the lazy strategy
    double mean         # mean cost of a trial
    instant_t since     # the instant of the last decay
    instant_t settled   # the instant of the last switch to the eager strategy


@cython.final
cdef class LazyJoin:
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Tecs tecs
    cdef OpenInstant instant
    cdef Transitions transitions
    cdef Partitions partitions  # None without PARTITION BY
    cdef uint32_t chain_length  # 0: no lazy join
    cdef ChainStep* chain
    cdef ChainTest* chain_tests
    cdef uint32_t chain_test_count
    cdef uint32_t* step_at      # per place
    cdef RowBuffer** step_rows  # per step but the last
    cdef Ranges** step_ranges   # their zone maps; NULL where no filter computes with them
    cdef TermResolver registers
    cdef uint64_t* replay_next  # per step, the next row to replay
    cdef term_t* chain_env      # environments: before any row, then after each joined one
    cdef Label** chain_labels   # per step: the joined row
    cdef EdgeRef* chain_way     # way of the last step
    cdef uint32_t chain_width
    cdef bint trial             # a trial reports and counts nothing
    cdef uint64_t left          # rows that the search may still examine
    cdef bint strategy_fixed    # the strategy is fixed
    cdef bint fixed_lazy        # the fixed strategy: lazy or eager
    cdef bint bounded           # limits are set: the eager strategy stores no rows
    cdef bint one               # one match per completing row suffices
    cdef uint64_t match_rows    # cost of a match, in examined rows
    cdef uint64_t charged       # total cost charged for matches
    cdef Weights weights
    cdef public double min_rows     # examined rows before strategies are compared, or a search
                                    # abandoned
    cdef readonly bint lazy     # the lazy strategy is active; there are no groups
    cdef public uint64_t searched # rows examined by lazy joins, and below by trials
    cdef public uint64_t sampled
    cdef public uint64_t switches   # number of switches

    cdef bint may_follow(self, uint32_t gpm) noexcept nogil
    cdef int store_step(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil
    cdef int _add_row(self, uint32_t step, Label* label) except -1 nogil
    cdef int load_step(self, uint32_t gpm, Label* label) except -1 nogil
    cdef RowBuffer* rows_before(self, uint32_t step) noexcept nogil
    cdef int search(self, EdgeRef* way, uint32_t width, bint trial, uint64_t most) except -1 nogil
    cdef int _join_more(self, uint32_t depth, uint64_t joined) except -1 nogil
    cdef int _join_between(
        self, uint32_t depth, uint64_t joined, uint32_t step, instant_t low, instant_t high
    ) except -1 nogil
    cdef uint64_t _excluded_rows(
        self, uint32_t depth, uint64_t joined, uint32_t step, uint64_t number, uint64_t last,
        bint first,
    ) noexcept nogil
    cdef uint32_t _next_step(self, uint64_t joined) noexcept nogil
    cdef bint _filtered(self, uint64_t joined, uint32_t step) noexcept nogil
    cdef int _instant_range(self, uint32_t step, instant_t* low, instant_t* high) noexcept nogil
    cdef uint32_t _index(self, uint32_t step, const term_t* env, term_t* term) noexcept nogil
    cdef int _try_row(
        self, uint32_t depth, uint64_t joined, uint32_t step, Label* label
    ) except -1 nogil
    cdef bint _agrees(self, uint64_t joined, uint32_t step, term_t* env) except -1 nogil
    cdef int _complete_match(self) except -1 nogil
    cdef int join_chained(self, EdgeRef* way, uint32_t width) except -1 nogil
    cdef int switch_to_eager(self, uint32_t width) except -1 nogil
    cdef int _make_groups(self) except -1 nogil
    cdef int switch_to_lazy(self) except -1 nogil
    cdef int sample_lazy_cost(self, EdgeRef* way, uint32_t width) except -1 nogil
    cdef uint64_t row_budget(self) noexcept nogil
    cdef bint prefers_lazy(self) noexcept nogil
    cdef int decay_counts(self) noexcept nogil

# automaton/automaton.pxi

# The recipients of the rows of an event: `count` GPMs, with the ways by which their rows reach
# starts and places with waiting groups.
cdef struct Audience:
    uint32_t* gpms
    uint32_t count
    uint32_t way_count
    EdgeRef** ways


@cython.final
cdef class AutomatonCore:
    # The parts; each refers only to those above it.
    cdef readonly Tables tables
    cdef readonly Window window
    cdef readonly CurrentEvent event
    cdef readonly Tecs tecs
    cdef readonly Partitions partitions # None without PARTITION BY
    cdef readonly Conjunction conjunction
    cdef readonly Negation negation
    cdef readonly OpenInstant instant
    cdef Deadlines deadlines
    cdef readonly StepJoin joins
    cdef readonly Transitions transitions
    cdef readonly LazyJoin lazy_join
    cdef bint has_strict_places # some place waits for the next instant only
    cdef bint adjacent          # some operator is strict
    cdef bint has_floors        # some place has groups with floors
    cdef uint8_t* has_side_effects # per GPM: whether its rows affect more than the waiting groups
    cdef bint only_joins        # no GPM has side effects
    # Limits, see spaseq.rdf.limits; and the counts before the current event.
    cdef uint64_t most_groups, kept_groups, sweep_at
    cdef bint sheds
    cdef uint32_t pending_before, values_before, touched_before, accepted_before
    cdef public uint64_t forbidden  # waiting matches that guards removed before their window closed

    cdef inline bint waits(self, uint32_t gpm) noexcept nogil:
        """Whether a group waits for rows of a GPM.

        The answer holds until `changed_places` names one of its places; under the lazy join, until
        the next event.
        """
        return self.lazy_join.may_follow(gpm) if self.lazy_join.lazy else self._is_awaited(gpm)
    cdef bint _is_searched(self, uint32_t gpm) noexcept nogil
    cdef instant_t since_at(self, const Node* node) noexcept nogil
    cdef bint _is_awaited(self, uint32_t gpm) noexcept nogil
    cdef uint64_t places_of(self, uint32_t gpm) noexcept nogil
    cdef int count_early_events(self, uint32_t gpm, uint64_t events) noexcept nogil
    cdef bint needs_every_instant(self) noexcept nogil
    cdef inline int count_event(self) noexcept nogil:
        """Count one more event at the open instant, if the window counts events."""
        if self.window.counted:
            self.window.count_event()
            self.keep_terms()
        return 0
    cdef inline int keep_terms(self) noexcept nogil:
        """Keep terms as long as an absence before a match looks back, whatever the event count.

        The next event advances them before it is counted.
        """
        cdef int64_t needed = self.window.reached + 1
        if self.window.counted and needed > self.event.terms.horizon:
            self.event.terms.horizon = 2 * needed
        return 0
    cdef inline int begin_event(
        self, EventBatch batch, uint32_t event, uint32_t stream, uint32_t file
    ) except -1 nogil:
        """Make an event current, and record the counts that `undo_event` restores."""
        self.pending_before = self.instant.pending_count
        self.values_before = self.instant.value_count
        self.touched_before = self.instant.touched_count
        self.accepted_before = self.instant.accepted_count
        if self.instant.accepted_count == 0:
            self.event.transient.clear()
        return set_event(self.event, batch, event, stream, file)
    cdef inline int feed_row(
        self, const Audience* audience, const term_t* row, uint32_t width
    ) except -1 nogil:
        """Process one row of the current event for its recipients."""
        set_row(self.event, row, width)
        if not self.only_joins:
            return self._feed_each(audience, row, width)
        self.event.since, self.transitions.measured = since_of(self.window), -1
        return self.transitions.join_all(audience.ways, audience.way_count, width, NULL)
    cdef int _feed_each(
        self, const Audience* audience, const term_t* row, uint32_t width
    ) except -1 nogil
    cdef inline uint32_t way_count(self, uint32_t gpm) noexcept nogil:
        """The number of ways of a GPM."""
        return self.tables.way_first[gpm + 1] - self.tables.way_first[gpm]
    cdef uint32_t list_ways(self, uint32_t gpm, EdgeRef** ways) noexcept nogil
    cdef int _feed_gpm(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil
    cdef bint _update_parts(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil
    cdef inline int begin_instant(self, int64_t micros) except -1 nogil:
        """Begin the next instant, at a time not before the last one's."""
        self.event.match_generation += 1
        if self.deadlines.soonest < micros:
            self.pass_deadlines_before(micros)
        tick(self.window, micros)
        assert self.window.reach <= self.window.bound
        assert self.window.timestamp_start <= self.window.now
        return self.tecs.begin(self.window.now, self.window.reach)
    cdef int pass_deadlines_before(self, int64_t micros) except -1 nogil
    cdef int pass_deadline_at(self, int64_t due) except -1 nogil
    cdef int _pass_deadlines(self, int64_t due) except -1 nogil
    cdef int _pass_deadline(
        self, const TimedPlace* at, const Timer* timer, Groups groups
    ) except -1 nogil
    cdef Label* _label_deadline(
        self, const TimedPlace* at, const InstantMembers* members, int64_t due
    ) except NULL nogil
    cdef int end_instant(self) except -1 nogil
    cdef int _remove_joined(self, Groups groups, const Touched* touched) except -1 nogil
    cdef int _raise_joined(self, Groups groups, const Touched* touched) except -1 nogil
    cdef int _expire_strict_place(self, Groups groups, uint32_t place) except -1 nogil
    cdef int _sweep_place(self, Groups groups, uint32_t place) except -1 nogil
    cdef bint _is_out_of_bounds(self, Groups groups, uint32_t group, uint32_t place) noexcept nogil
    cdef bint _is_past_limits(
        self, const Group* group, uint32_t place, const Edge* edge
    ) noexcept nogil
    cdef int skip_past(self, uint32_t count) except -1 nogil
    cdef int _apply_eager_guard(
        self, EagerGuard* eager, uint32_t width, Groups groups
    ) except -1 nogil
    cdef int _remove_if_forbidden(
        self, EagerGuard* eager, Groups groups, uint32_t number, uint32_t width
    ) except -1 nogil
    cdef uint64_t _count_live(self) noexcept nogil
    cdef int _sweep(self) except -1 nogil
    cdef int undo_event(self) except -1 nogil
    cdef int _expire_strict(self, Groups groups) except -1 nogil
