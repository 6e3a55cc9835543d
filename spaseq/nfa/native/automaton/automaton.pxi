"""Rows → complete matches, in machine integers: registers over a tECS.

Each place has a table of groups, one for each valuation of its live registers; all partial matches
of a group are one union of the tECS. A row is joined to the groups that agree with it on the
registers of an index, or to all of them. A group that fits is extended by one node, whatever number
of partial matches it holds. The additions of an instant become visible when the instant closes,
since nothing follows an event of its own instant.

Invariants: terms in registers and labels are permanent or of the window; a group whose `latest`
lies before the bound is dead, and its references are never followed. Cost of a row: constant for
each group that it visits. Source: Bucchi et al., CORE; Alevizos et al., Register Match Automata.
"""

from libc.string cimport memcpy

from spaseq.nfa.native._tecs cimport (
    CLOSING,
    CONJOINED,
    DEADLINE,
    NIL,
    Limit,
    OccurrenceFlags,
    assign,
    begin_iterations,
    bind,
    bit_of_place,
    count_group_step,
    filters_hold,
    follow_links,
    group_at,
    latest_of,
    limits_hold,
    mark_joined,
    new_node,
    pass_time,
    passes_limit,
    place_at,
    remove_group,
    resolve_compared_columns,
    set_marks,
    top_of,
)
from spaseq.rdf.limits import NO_LIMIT, LimitReached
from spaseq.rdf.native._terms cimport (
    Dictionary,
    begin_event as begin_effort,
    is_beyond,
    limit_effort,
    mem_calloc,
    mem_free,
)

cdef uint32_t SWEEP_MIN_GROUPS = 256


cdef class AutomatonCore:
    """The state of one automaton in one run: the owner of its parts.

    Args:
        rows: the `CoreTables` of `spaseq.nfa.native.tables`.
        terms: the terms of the window.
        dictionary: the permanent terms.
        truth, falsehood: the numbers of the two boolean literals.
    """

    def __cinit__(
        self, rows, WindowTerms terms not None, Dictionary dictionary not None, term_t truth,
        term_t falsehood,
    ):
        self.tables = Tables(rows)
        self.tables.truth, self.tables.falsehood = truth, falsehood
        self.window = Window(rows)
        self.event = CurrentEvent(self.tables, self.window, terms)
        self.tecs = self.event.tecs
        if rows.width:
            self.partitions = Partitions(rows, self.window, terms, dictionary)
        self.conjunction = Conjunction(rows, self.tables, self.window, self.event)
        self.negation = Negation(rows, self.conjunction, self.partitions)
        self.instant = OpenInstant(rows, self.event, dictionary)
        self.deadlines = Deadlines(rows, self.instant)
        self.joins = StepJoin(self.negation, self.instant)
        self.transitions = Transitions(self.joins, self.deadlines)
        self.lazy_join = LazyJoin(rows, self.transitions, dictionary)
        self.most_groups = self.kept_groups = NO_LIMIT
        self.sweep_at = SWEEP_MIN_GROUPS
        self.adjacent = rows.adjacent
        self.has_floors = bool(rows.floors)
        self.has_strict_places = not self.tables.tracked and any(
            place[0] == "," for place in rows.places
        )
        self.has_side_effects = <uint8_t*>mem_calloc(self.conjunction.gpm_count, sizeof(uint8_t))
        self.only_joins = True
        for gpm in range(self.conjunction.gpm_count):
            self.has_side_effects[<uint32_t>gpm] = (
                self.conjunction.buffers_rows or self.lazy_join.chain_length
                or self.tables.tracked or self.tables.apart
                or self.tables.required_first[gpm] < self.tables.required_first[gpm + 1]
                or self.tables.eager_first[gpm] < self.tables.eager_first[gpm + 1]
            )
            self.only_joins &= not self.has_side_effects[<uint32_t>gpm]

    def __dealloc__(self):
        mem_free(self.has_side_effects)

    # ---------------------------------------------------------------- instants

    cdef int pass_deadlines_before(self, int64_t micros) except -1 nogil:
        """Let partial matches pass their deadlines that lie before a time."""
        cdef int64_t due = self.deadlines.next_due(False)
        while due < micros:
            self.pass_deadline_at(due)
            due = self.deadlines.next_due(False)
        return 0

    cdef int pass_deadline_at(self, int64_t due) except -1 nogil:
        """Let partial matches pass their deadlines at a time, which is the earliest deadline.

        All events up to that time have been processed. The deadline takes the instant of the last
        of them: an event follows one exactly if it follows the other. A deadline of no length that
        begins at this time is at this time as well.
        """
        begin_effort(&self.event.effort)
        self.event.out_of_steps = False
        self.event.listed = 0
        pass_time(self.window, due)
        while self.deadlines.waits(False) and self.deadlines.soonest <= due:
            self._pass_deadlines(due)
        return 0

    cdef int _pass_deadlines(self, int64_t due) except -1 nogil:
        """Let the partial matches whose timers run pass their deadlines at a time."""
        cdef uint32_t i
        cdef TimedPlace* at
        cdef Timer timer
        for i in range(self.deadlines.count):
            at = &self.deadlines.places[i]
            while True:
                self.deadlines.trim(at, <Groups>self.instant.groups_at[at.place])
                if at.first == at.end:
                    break
                timer = at.timers[at.first & (at.room - 1)]
                if timer.due > due:
                    break
                at.first += 1
                self._pass_deadline(at, &timer, <Groups>self.instant.groups_at[at.place])
        if self.instant.traced:
            self.instant.trace_pending()
        self.transitions.show_pending(0)
        return 0

    cdef int _pass_deadline(
        self, const TimedPlace* at, const Timer* timer, Groups groups
    ) except -1 nogil:
        """Let the members of a timer pass their deadline, unless a guard forbids it."""
        cdef Place* place = &self.tables.places[at.place]
        cdef const Edge* edge = &self.tables.edges[place.edge_first]
        cdef InstantMembers* members = timer.members
        cdef Range checks = self.negation.edge_checks[place.edge_first]
        cdef bint passes = members.latest >= self.window.bound
        if passes:
            self.instant.remember(self.event.env, place, groups, timer.group)
            memcpy(self.joins.before, self.event.env, self.tables.cells * sizeof(term_t))
            begin_iterations(self.tables, edge, self.event.env)
            set_marks(edge, self.event.env, members.micros)
            place.visited += 1
            passes = limits_hold(edge, self.event.env, timer.due)
            place.outside += not passes
            if passes and checks.first < checks.end:
                self.negation.begin()
                self.negation.base(members.last, members.micros, timer.due)
                if self.negation.forbidden_until(
                    place.edge_first, self.joins.before, self.event.env, members.last,
                    self.window.now + 1, False,
                ) != NO_INSTANT:
                    place.forbidden += 1
                    passes = False
                if self.event.out_of_steps:
                    with gil:
                        raise LimitReached("steps", at.place)
        else:
            place.expired += 1
        if passes:
            place.joined += 1
            follow_links(
                self.instant, edge,
                new_node(
                    self.tecs, self._label_deadline(at, members, timer.due),
                    members.members, members.latest,
                ),
            )
        members.latest = -1
        if groups.dates[timer.group].newest == members:
            remove_group(groups, timer.group)
        return 0

    cdef Label* _label_deadline(
        self, const TimedPlace* at, const InstantMembers* members, int64_t due
    ) except NULL nogil:
        """The label of a deadline, with the key of the partition of the current environment."""
        cdef uint32_t i, width = 0
        cdef Label* label
        if self.partitions is not None:
            width = self.partitions.keys.width
        label = self.tecs.label(max(width, 2))
        label.width = width
        label.micros, label.instant, label.part = due, self.window.now, at.begins
        label.edge = self.tables.places[at.place].edge_first
        label.domain = top_of(members.members).label.domain
        for i in range(width):
            label.row[i] = self.event.env[self.partitions.registers[i]]
        return label

    cdef int end_instant(self) except -1 nogil:
        """Close the open instant: its additions become visible."""
        cdef uint32_t i
        cdef const Touched* touched
        if self.joins.deferred_count:
            self.joins.begin_deferred()
        for i in range(self.instant.touched_count):
            touched = &self.instant.touched[i]
            self._remove_joined(<Groups>self.instant.groups_at[touched.place], touched)
        if self.has_floors:
            # The others are removed first, so that their numbers are not reused before.
            for i in range(self.instant.touched_count):
                touched = &self.instant.touched[i]
                self._raise_joined(<Groups>self.instant.groups_at[touched.place], touched)
        self.instant.touched_count = 0
        if self.has_strict_places:
            for i in range(self.tables.place_count):
                if self.tables.places[i].operator == c",":
                    self._expire_strict_place(<Groups>self.instant.groups_at[i], i)
        if self.instant.traced:
            self.instant.trace_pending()
        self.transitions.show_pending(0)
        if self.lazy_join.chain_length:
            self.lazy_join.decay_counts()
            if self.lazy_join.prefers_lazy():
                self.lazy_join.switch_to_lazy()
        if self.transitions.max_live > self.sweep_at:
            self.transitions.max_live = self._count_live()
            if self.transitions.max_live > self.sweep_at:
                self._sweep()
        return 0

    cdef int _remove_joined(self, Groups groups, const Touched* touched) except -1 nogil:
        """Remove a group that a `;` place has joined, that has expired or been passed over."""
        cdef Group* group = group_at(groups, touched.group)
        if not group.alive:  # the group has been shed
            return 0
        if groups.floored and groups.raised[touched.group]:  # see `_raise_joined`
            return 0
        place_at(self.tables, touched.place).expired += latest_of(group) < self.window.bound
        return remove_group(groups, touched.group)

    cdef int _raise_joined(self, Groups groups, const Touched* touched) except -1 nogil:
        """Let a joined group with a raised floor go on waiting."""
        if groups.floored and groups.raised[touched.group] and (
            group_at(groups, touched.group).alive
        ):
            return self.transitions.raise_group(touched.place, touched.group, groups)
        return 0

    cdef int _expire_strict_place(self, Groups groups, uint32_t place) except -1 nogil:
        if self.tables.places[place].flags & CONJOINED:
            return self.joins.expire_strict(groups)
        return self._expire_strict(groups)

    cdef uint64_t _count_live(self) noexcept nogil:
        """The number of groups and waiting matches, including expired ones."""
        cdef uint64_t found = self.window.awaited_count
        cdef uint32_t i
        for i in range(self.tables.place_count):
            if self.tables.places[i].operator and self.tables.places[i].operator != CLOSING:
                found += (<Groups>self.instant.groups_at[i]).live_count
        return found

    cdef int _expire_strict(self, Groups groups) except -1 nogil:
        """Age the groups of a `,` place after the only instant at which they could be joined.

        A group stays, without members, for one more instant, so that late rows are counted. The
        complement of `latest` preserves whether its registers' terms are still in the window.
        """
        cdef uint32_t i = groups.live_count
        cdef Group* group
        while i:
            i -= 1
            group = group_at(groups, groups.alive[i])
            if group.latest < 0:
                remove_group(groups, groups.alive[i])
            else:
                group.latest = ~group.latest
                group.members = 0
                if groups.dated:
                    groups.dates[groups.alive[i]].newest = NULL
        return 0

    cdef int _sweep(self) except -1 nogil:
        """Remove expired groups, and shed more if they exceed the limit."""
        cdef uint32_t i
        cdef uint64_t living
        for i in range(self.tables.place_count):
            if self.tables.places[i].operator:
                self._sweep_place(<Groups>self.instant.groups_at[i], i)
        living = count_held(self.tables, self.window, self.instant.groups, -1)
        if living > self.most_groups:
            if not self.sheds:
                with gil:
                    raise LimitReached("groups")
            shed(self.tables, self.window, self.instant.groups, living - self.kept_groups, -1)
            living = self.kept_groups
        self.transitions.max_live = living
        self.sweep_at = min(2 * living + SWEEP_MIN_GROUPS, self.most_groups)
        return 0

    cdef int _sweep_place(self, Groups groups, uint32_t place) except -1 nogil:
        cdef uint32_t i = groups.live_count
        while i:
            i -= 1
            if group_at(groups, groups.alive[i]).latest < self.window.bound or (
                self._is_out_of_bounds(groups, groups.alive[i], place)
            ):
                remove_group(groups, groups.alive[i])
                place_at(self.tables, place).expired += 1
        return 0

    cdef bint _is_out_of_bounds(self, Groups groups, uint32_t group, uint32_t place) noexcept nogil:
        """Whether the bounds of all edges of a place have passed over the members of a group."""
        cdef const InstantMembers* newest = groups.dates[group].newest if groups.dated else NULL
        cdef Range edges = self.conjunction.place_edges[place]
        cdef int64_t within
        cdef uint32_t i
        if self.tables.places[place].operator == DEADLINE or edges.first == edges.end:
            return False
        for i in range(edges.first, edges.end):
            within = self.tables.edges[i].within
            if not (
                within >= 0 and newest != NULL and newest.latest >= self.window.bound
                and is_beyond(self.window.micros, newest.micros, within)
            ) and not self._is_past_limits(group_at(groups, group), place, &self.tables.edges[i]):
                return False
        return True

    cdef bint _is_past_limits(
        self, const Group* group, uint32_t place, const Edge* edge
    ) noexcept nogil:
        """Whether the bound of a unit that a group has begun has passed for an edge."""
        cdef const Place* at = &self.tables.places[place]
        cdef const Limit* limit = edge.limit
        cdef uint32_t i
        while limit < edge.limit_end:
            for i in range(at.live_first, at.live_end):
                if self.tables.numbers[i] == limit.mark and passes_limit(
                    limit, group.values[i - at.live_first], group.values[i - at.live_first + 1],
                    self.window.micros,
                ):
                    return True
            limit += 1
        return False

    def limit_matches(self, uint64_t most):
        """Set the maximum number of matches that are listed at once."""
        self.event.most_listed = most

    def limit(self, uint64_t groups, uint64_t kept, uint64_t steps, bint sheds):
        """Set the limits: groups, groups left after shedding, steps of an event."""
        self.most_groups, self.kept_groups, self.sheds = groups, kept, sheds
        self.event.sheds, self.event.most_waiting = sheds, groups
        limit_effort(&self.event.effort, steps)
        self.sweep_at = min(self.sweep_at, groups)
        if groups < NO_LIMIT or steps < NO_LIMIT:
            # A limit counts groups, and the rows of an event that is undone would remain.
            self.lazy_join.bounded = True
            self.lazy_join.join(False)

    cdef int undo_event(self) except -1 nogil:
        """Undo the current event, which ran out of steps; shed half of the groups it visited."""
        cdef uint32_t place = self.event.out_of_steps_place
        cdef uint64_t waiting = count_held(self.tables, self.window, self.instant.groups, place)
        cdef Touched* undone
        # Buffered rows cannot be undone.
        if not self.sheds or self.conjunction.buffers_rows or not waiting:
            with gil:
                raise LimitReached("steps", place)
        while self.instant.touched_count > self.touched_before:
            self.instant.touched_count -= 1
            undone = &self.instant.touched[self.instant.touched_count]
            group_at(<Groups>self.instant.groups_at[undone.place], undone.group).joined_at = -1
            if (<Groups>self.instant.groups_at[undone.place]).floored:
                (<Groups>self.instant.groups_at[undone.place]).raised[undone.group] = 0
        self.instant.pending_count = self.pending_before
        self.instant.value_count = self.values_before
        self.instant.accepted_count = self.accepted_before
        shed(self.tables, self.window, self.instant.groups, (waiting + 1) // 2, place)
        return 0

    # ---------------------------------------------------------------- one event

    cdef uint64_t places_of(self, uint32_t gpm) noexcept nogil:
        """The places whose groups may wait for rows of a GPM; see `bit_of_place`."""
        cdef uint32_t i
        cdef uint64_t found = 0
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            found |= bit_of_place(self.tables.ways[i].place)
        for i in range(self.tables.eager_first[gpm], self.tables.eager_first[gpm + 1]):
            found |= bit_of_place(self.tables.eager_guards[i].place)
        for i in range(self.conjunction.searches[gpm].first, self.conjunction.searches[gpm].end):
            found |= bit_of_place(self.conjunction.searchers[i])
        for i in range(self.tables.behind_first[gpm], self.tables.behind_first[gpm + 1]):
            found |= bit_of_place(self.tables.behind[i])
        return found

    cdef bint _is_searched(self, uint32_t gpm) noexcept nogil:
        """Whether some waiting group may search the rows of a GPM."""
        cdef uint32_t i, place
        for i in range(self.conjunction.searches[gpm].first, self.conjunction.searches[gpm].end):
            place = self.conjunction.searchers[i]
            if not self.tables.places[place].operator or (
                (<Groups>self.instant.groups_at[place]).live_count
            ):
                return True
        return False

    cdef instant_t since_at(self, const Node* node) noexcept nogil:
        """The least start of the matches that end in a node."""
        return since_at(self.window, self.partitions, node)

    cdef bint _is_awaited(self, uint32_t gpm) noexcept nogil:
        cdef uint32_t i
        if self.conjunction.buffers_rows and self._is_searched(gpm):
            return True
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            if not self.tables.places[self.tables.ways[i].place].operator:
                return True
            if (<Groups>self.instant.groups_at[self.tables.ways[i].place]).live_count:
                return True
        for i in range(self.tables.eager_first[gpm], self.tables.eager_first[gpm + 1]):
            if (<Groups>self.instant.groups_at[self.tables.eager_guards[i].place]).live_count:
                return True
        for i in range(self.tables.behind_first[gpm], self.tables.behind_first[gpm + 1]):
            if (<Groups>self.instant.groups_at[self.tables.behind[i]]).live_count:
                return True
        return False

    cdef int count_early_events(self, uint32_t gpm, uint64_t events) noexcept nogil:
        """Count events of a GPM that arrived while no group was waiting."""
        cdef uint32_t i
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            place_at(self.tables, self.tables.ways[i].place).early += events
        return 0

    cdef bint needs_every_instant(self) noexcept nogil:
        """Whether an event without rows may affect more than the time."""
        return self.adjacent or self.window.counted or self.lazy_join.chain_length != 0

    cdef uint32_t list_ways(self, uint32_t gpm, EdgeRef** ways) noexcept nogil:
        """List the ways of a GPM to starts and to places with waiting groups; returns how many."""
        cdef uint32_t i, found = 0
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            if not self.tables.ways[i].place_at.operator or (
                (<Groups>self.instant.groups_at[self.tables.ways[i].place]).live_count
            ):
                ways[found] = &self.tables.ways[i]
                found += 1
        return found

    cdef int _feed_each(
        self, const Audience* audience, const term_t* row, uint32_t width
    ) except -1 nogil:
        """Process the current row if some of its GPMs affect more than the waiting groups."""
        cdef uint32_t i
        cdef bint concerned = False
        for i in range(audience.count):
            concerned |= self.has_side_effects[audience.gpms[i]]
        if concerned:
            for i in range(audience.count):
                self._feed_gpm(audience.gpms[i], row, width)
            return 0
        self.event.since, self.transitions.measured = since_of(self.window), -1
        return self.transitions.join_all(audience.ways, audience.way_count, width, NULL)

    cdef int _feed_gpm(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil:
        """Process the current row for one GPM, including guards, buffers and partitions."""
        cdef uint32_t i
        cdef EdgeRef* way
        if not self.event.row_stored:
            resolve_compared_columns(self.event, gpm)
        self.event.since = since_of(self.window)
        if not self._update_parts(gpm, row, width):
            return 0
        self.transitions.measured = -1
        for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
            way = &self.tables.ways[i]
            if self.lazy_join.chain_length:
                self.lazy_join.join_chained(way, width)
            else:
                self.transitions.join_all(&way, 1, width, NULL)
        return 0

    cdef bint _update_parts(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil:
        """Update row buffers, guards and partitions by a row; False if no step may join it."""
        cdef uint32_t i
        cdef EagerGuard* eager
        cdef bint keyed = True
        for i in range(self.tables.required_first[gpm], self.tables.required_first[gpm + 1]):
            keyed &= row[self.tables.required[i]] != 0
        if self.conjunction.buffers_rows and self._is_searched(gpm):
            self.conjunction.store_row(gpm, width, keyed)
        for i in range(self.tables.eager_first[gpm], self.tables.eager_first[gpm + 1]):
            if keyed or self.tables.eager_guards[i].negated:
                eager = &self.tables.eager_guards[i]
                self._apply_eager_guard(eager, width, <Groups>self.instant.groups_at[eager.place])
        if not keyed:
            for i in range(self.tables.way_first[gpm], self.tables.way_first[gpm + 1]):
                place_at(self.tables, self.tables.ways[i].place).unkeyed += 1
            return False
        if self.tables.tracked or self.tables.apart:
            self.partitions.set_current(self.event.batch, gpm, row)
            self.event.since = self.partitions.since
        return True

    cdef int _apply_eager_guard(
        self, EagerGuard* eager, uint32_t width, Groups groups
    ) except -1 nogil:
        """Remove the groups that agree with a row of a guard."""
        cdef uint32_t i, group
        if eager.index:
            for i in range(eager.key_first, eager.key_end):
                self.event.key[i - eager.key_first] = self.event.row[self.tables.numbers[i]]
            group = groups.first(eager.index, self.event.key)
            while group != NIL:
                self._remove_if_forbidden(eager, groups, group, width)
                group = groups.next_of(eager.index, group, self.event.key)
        else:
            for i in range(groups.live_count):
                self._remove_if_forbidden(eager, groups, groups.alive[i], width)
        return 0

    cdef int _remove_if_forbidden(
        self, EagerGuard* eager, Groups groups, uint32_t number, uint32_t width
    ) except -1 nogil:
        """Remove a group at the close of the instant if a row of a guard satisfies its filters."""
        cdef Group* group = group_at(groups, number)
        cdef Occurrence* occurrence = &self.tables.occurrences[eager.occurrence]
        cdef int status
        if group.joined_at == self.window.now or group.latest < since_of(self.window):
            return 0
        if not count_group_step(self.event, eager.place):
            return 0
        self.instant.remember(self.event.env, &self.tables.places[eager.place], groups, number)
        if occurrence.flags & OccurrenceFlags.STORES_TERMS and not self.event.row_stored:
            self.event.store_row(width)
        status = bind(self.tables, occurrence, self.event.row, self.event.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        if occurrence.flags & OccurrenceFlags.ASSIGNS and not assign(
            self.tables, eager.occurrence, self.event.env, self.event.row + width
        ):
            return 0
        status = filters_hold(self.tables, eager.occurrence, self.event.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        place_at(self.tables, eager.place).ended += 1
        return mark_joined(self.instant, eager.place, number, group)

    cdef int skip_past(self, uint32_t count) except -1 nogil:
        """Skip past the first `count` complete matches: later matches start after them."""
        cdef Node* node
        cdef uint32_t i
        for i in range(count):
            node = self.instant.accepted[i]
            if node.latest < self.since_at(node):
                continue
            if self.tables.apart:
                self.partitions.skip_at(node.label, self.window.now + 1)
            else:
                self.window.skipped = self.window.now + 1
        return 0

    # ---------------------------------------------------------------- for Python

    def open(self, int64_t micros):
        """See `begin_instant`."""
        self.begin_instant(micros)

    def next_deadline(self, *, bint ending=False):
        """The first deadline, in microseconds; with `ending`, the first that may end a match."""
        cdef int64_t due = self.deadlines.next_due(ending)
        return due if self.deadlines.waits(ending) else None

    def close(self):
        """See `end_instant`."""
        self.end_instant()

    def skip(self, instant_t first):
        """Reject matches that start before an instant."""
        self.window.skipped = max(self.window.skipped, first)

    def shed(self):
        """The number of groups and waiting matches shed under a limit.

        A list of matches that was cut short counts as one.
        """
        return self.tables.shed() + self.window.shed_matches + self.event.cut

    @property
    def complete(self):
        """The number of last nodes of complete matches not yet taken."""
        return self.instant.accepted_count
