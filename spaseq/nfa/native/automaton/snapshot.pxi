"""Snapshots: the state of a compiled automaton, read and restored part by part.

Parts are identified by their addresses, valid until the next event. Expired data is omitted, and
references to it are never followed.
"""

from spaseq.nfa.native._tecs cimport (
    CLOSING,
    DEADLINE,
    NIL,
    UNION,
    Awaited,
    Cell,
    Dates,
    add_pending_env,
    cell_of,
    create_group,
    find_group,
    group_at,
    mark_joined,
    new_node,
    rows_add,
    rows_expire,
    start_of,
    tecs_alloc,
    top_of,
    union_add,
    values_of,
)
from spaseq.rdf.native._terms cimport WINDOWED, Dictionary


cdef class CoreParts:
    """The parts of one core; `dictionary` holds the permanent terms."""

    cdef AutomatonCore core
    cdef Tables tables
    cdef Window window
    cdef CurrentEvent event
    cdef Conjunction conjunction
    cdef OpenInstant instant
    cdef StepJoin joins
    cdef Transitions transitions
    cdef LazyJoin lazy_join
    cdef Dictionary dictionary

    def __cinit__(self, AutomatonCore core not None, Dictionary dictionary not None):
        self.core, self.tables, self.window, self.event = (
            core, core.tables, core.window, core.event
        )
        self.conjunction, self.instant, self.joins = core.conjunction, core.instant, core.joins
        self.transitions, self.lazy_join = core.transitions, core.lazy_join
        self.dictionary = dictionary

    cpdef object term(self, term_t number):
        """The pyoxigraph term of a number that a register or a label holds; None for 0."""
        if number & WINDOWED:
            return self.event.terms.term(number)
        return self.dictionary.term(number) if number else None

    def fields(self, size_t address):
        """The fields of the label at an address: edge, event and row.

        Returns (place, position of its edge, instant, micros, whether a date, line, stream, file,
        ordinal, graph's name, literal of a numeric time, pattern of the step, number of events of
        the step, terms), terms by number.
        """
        cdef Label* label = <Label*>address
        cdef uint32_t place = self.tables.place_count - 1
        cdef const Place* places = self.tables.places
        # The places where matches wait come last and have no edges.
        while places[place].operator == CLOSING or places[place].edge_first > label.edge:
            place -= 1
        return (
            place, label.edge - places[place].edge_first, label.instant, label.micros,
            label.domain, label.line, label.stream, label.file, label.ordinal, label.name,
            label.stamp, label.part, label.parts, [label.row[i] for i in range(label.width)],
        )

    def label(self, size_t address):
        """Like `fields`, with pyoxigraph terms or None, and without the step's number of events."""
        *event, name, stamp, part, _, row = self.fields(address)
        return (*event, self.term(name), self.term(stamp), part, tuple(map(self.term, row)))

    def clock(self):
        """(now, bound, first instant of the timestamp, its time, times, bounds, clock).

        `times` pairs each instant within reach with its time, or with its number of events: inside
        the window, or within reach if absences in front look back by a time.
        `bounds` pairs each instant within reach with the bound of the window at that instant; it is
        empty if the query looks back one window only. `clock` pairs each instant within reach with
        its time if `times` does not and a guard reads them.
        """
        cdef instant_t i
        cdef instant_t end = self.window.bound if self.window.endless else self.window.now + 1
        cdef instant_t first = self.window.bound
        if self.window.lookback >= 0 or (
            not self.window.counted and self.window.past_bounds != NULL
        ):
            # Otherwise a deadline between two events has moved the bound only.
            first = self.window.reach
        times = [
            (i, self.window.times[i & self.window.times_mask]) for i in range(min(first, end), end)
        ]
        bounds = []
        if self.window.past_bounds != NULL:
            bounds = [
                (i, max(self.window.past_bounds[i & self.window.times_mask], self.window.reach))
                for i in range(self.window.reach, self.window.now + 1)
            ]
        clock = []
        if self.window.clock != NULL:
            clock = [
                (i, self.window.clock[i & self.window.times_mask])
                for i in range(self.window.reach, self.window.now + 1)
            ]
        return (
            self.window.now, self.window.bound, self.window.timestamp_start, self.window.micros,
            times, bounds, clock,
        )

    def load_clock(
        self, instant_t now, instant_t bound, instant_t start, int64_t micros, inside, bounds, clock
    ):
        """Restore the clock of another run."""
        cdef instant_t i
        cdef dict times = dict(inside), known = dict(bounds), clocked = dict(clock)
        self.window.bound = self.window.reach = bound
        if self.window.past_bounds != NULL:
            self.window.reach = min(known, default=bound)
        if self.window.lookback >= 0:
            self.window.reach = min(times, default=bound)
        self.window.back = self.window.reach
        for i in range(
            self.window.reach, now + 1 if times or known or clocked else self.window.reach
        ):
            self.window.now = i
            self.window.grow_ring()
            self.window.times[i & self.window.times_mask] = times.get(i, 0)
            self.window.awaited[i & self.window.times_mask] = NULL
            if self.window.clock != NULL:
                self.window.clock[i & self.window.times_mask] = clocked.get(i, 0)
            if self.window.counted and i >= bound:
                self.window.total += times.get(i, 0)
            if self.window.counted and self.window.lookback >= 0:
                self.window.reached += times.get(i, 0)
            if self.window.past_bounds != NULL:
                self.window.past_bounds[i & self.window.times_mask] = known.get(
                    i, self.window.reach
                )
        self.window.now, self.window.timestamp_start, self.window.micros = now, start, micros
        # Restored data is retained as if it had arrived now.
        self.core.tecs.begin(now, self.window.reach)
        self.core.keep_terms()

    def groups(self, bint over):
        """The groups: (place, registers, union's address, whether joined just now, dates, floor).

        `over`: the last timestamp is complete. For a dated place, dates are (oldest last instant,
        floor, joined, joined in, [(last instant, greatest start, union)] from the newest on), see
        _tecs.pxd; otherwise None. The last item is the term of the floor that a group has after
        the open instant, or 0.
        """
        cdef Groups groups
        cdef Group* group
        cdef uint32_t i, j, k, number
        for i in range(self.tables.place_count):
            if not self.tables.places[i].operator or self.tables.places[i].operator == CLOSING:
                continue
            groups = <Groups>self.instant.groups_at[i]
            for j in range(groups.live_count):
                number = groups.alive[j]
                group = group_at(groups, number)
                if group.latest < self.window.bound:
                    continue
                dates = None
                if groups.dated:
                    dates = self._dates(&groups.dates[number], over)
                    stretches = dates[4]
                    if not stretches or stretches[0][0] < dates[1]:
                        continue  # all members have been joined
                values = [values_of(groups, number)[k] for k in range(groups.width)]
                taken = group.joined_at == self.window.now and self.instant.touched_count > 0
                floor = groups.raised[number] if groups.floored and taken else 0
                yield i, values, group.members, taken, dates, floor

    def live_groups(self, uint32_t place):
        """The number of groups of a place, in constant time.

        Includes those that the window has passed, until an event finds them.
        """
        if not self.tables.places[place].operator:
            return 0
        return (<Groups>self.instant.groups_at[place]).live_count

    cdef tuple _dates(self, Dates* dates, bint over):
        cdef InstantMembers* stretch = dates.newest
        cdef instant_t start = self.window.now + 1 if over else self.window.timestamp_start
        cdef bint before = dates.joined_in < start
        stretches = []
        while stretch != NULL:
            if stretch.latest >= self.window.bound:
                stretches.append((stretch.last, stretch.latest, stretch.members))
            stretch = stretch.older if stretch.older_latest >= self.window.bound else NULL
        return (
            dates.oldest, max(dates.floor, dates.joined) if before else dates.floor,
            -1 if before else dates.joined, -1 if before else dates.joined_in, stretches,
        )

    def created_since(self, uint32_t place, uint64_t since, uint32_t most):
        """The number of groups a place ever created, and the registers of those after `since`.

        Examines the last `most` of the current groups.
        """
        cdef Groups groups = <Groups>self.instant.groups[place]
        cdef uint32_t i, k, end = groups.live_count
        cdef Group* group
        cdef const term_t* values
        found = []
        if groups.made > since:
            for i in range(end - min(most, end), end):
                group = group_at(groups, groups.alive[i])
                if group.serial > since and group.latest >= self.window.bound:
                    values = values_of(groups, groups.alive[i])
                    found.append([values[k] for k in range(groups.width)])
        found.reverse()
        return groups.made, found

    def pending(self):
        """The pending partial matches of the open instant: (place, registers, node)."""
        cdef uint32_t i, j
        cdef Place* place
        for i in range(self.instant.pending_count):
            place = &self.tables.places[self.instant.pending[i].target]
            values = [
                self.instant.pending_values[self.instant.pending[i].values + j]
                for j in range(place.live_end - place.live_first)
            ]
            yield self.instant.pending[i].target, values, <size_t>self.instant.pending[i].node

    def awaited(self):
        """The matches that wait for their windows to close: (place, registers, start, labels).

        None in place of a match that a guard has removed.
        """
        cdef instant_t start
        cdef Awaited* match
        cdef Groups groups
        cdef Group* group
        cdef uint32_t i
        if self.window.awaited_count == 0:
            return  # a window that is endless reaches back to the first instant
        for start in range(self.window.bound, self.window.now + 1):
            match = self.window.awaited[start & self.window.times_mask]
            while match != NULL:
                groups = <Groups>self.instant.groups_at[match.place]
                group = group_at(groups, match.group)
                if group.alive and group.serial == match.serial and (
                    group.joined_at != self.window.now
                ):
                    values = [values_of(groups, match.group)[i] for i in range(groups.width)]
                    labels = [<size_t>match.labels[i] for i in range(match.length)]
                    if match.deadline != NULL:
                        labels.append(<size_t>match.deadline)
                    yield match.place, values, start, labels
                else:
                    yield None
                match = match.next

    def awaiting(self):
        """The starts of the matches that wait for their windows to close.

        Includes the matches that enter such a place when the instant closes.
        """
        cdef uint32_t i
        cdef Node* node
        found = [match[2] for match in self.awaited() if match is not None]
        for i in range(self.instant.pending_count):
            if self.tables.places[self.instant.pending[i].target].operator == CLOSING:
                node = self.instant.pending[i].node
                self.transitions.walk.begin(node, self.core.since_at(node))
                while self.transitions.walk.advance():
                    found.append(self.transitions.walk.start)
        return found

    def ended(self):
        """The number of matches that guards removed before their windows closed."""
        return self.core.forbidden + sum([match is None for match in self.awaited()])

    def time_of(self, instant_t instant):
        """The time, in microseconds, of an instant inside the window."""
        return self.window.times[instant & self.window.times_mask]

    def buffered_rows(self):
        """The buffered rows: (graph pattern, whether keyed, label).

        Keyed: the row binds all partition variables. Includes the rows of a chain, those of each
        graph pattern once.
        """
        cdef RowBuffer* rows
        cdef uint64_t number
        cdef uint32_t step
        seen = set()
        for step in range(max(self.lazy_join.chain_length, 1) - 1):
            gpm = self.conjunction.gpms[self.lazy_join.chain[step].occurrence]
            rows = self.lazy_join.rows_before(step + 1)
            # Rows of a later step of the same pattern are useless while the first one has none.
            for number in range(rows.first, rows.end if gpm not in seen else 0):
                yield gpm, True, <size_t>rows.labels[number & (rows.room - 1)]
            seen.add(gpm)
        for gpm in range(self.conjunction.gpm_count):
            rows = self.conjunction.row_buffers[<uint32_t>gpm]
            if rows == NULL:
                continue
            rows_expire(rows, self.window.reach)
            for number in range(rows.first, rows.end):
                step = <uint32_t>(number & (rows.room - 1))
                yield gpm, bool(rows.keyed[step]), <size_t>rows.labels[step]

    def strategy(self):
        """The strategy of a lazy join and its counts, to be restored together with `buffered_rows`.

        None if not all rows are stored.
        """
        cdef Weights* weights = &self.lazy_join.weights
        if not self.lazy_join.chain_length or self.lazy_join.bounded and not self.lazy_join.lazy:
            return None
        return [
            self.lazy_join.lazy, weights.eager, weights.lazy, weights.rows, weights.each,
            weights.trial, weights.mean, weights.since, weights.settled,
        ]

    def deferred(self):
        """The deferred beginnings of the open instant: (place, environment, node)."""
        cdef uint32_t i, j
        cdef DeferredStart* begun
        for i in range(self.joins.deferred_count):
            begun = &self.joins.deferred[i]
            values = [
                self.joins.deferred_values[i * self.tables.cells + j]
                for j in range(self.tables.cells)
            ]
            yield begun.place, values, <size_t>begun.node

    def awaited_count(self):
        """The number of matches that wait for their windows to close."""
        return self.window.awaited_count

    def completed(self):
        """The nodes that end matches not yet delivered."""
        return [<size_t>self.instant.accepted[i] for i in range(self.instant.accepted_count)]

    def node(self, size_t address):
        """(label, union before it or 0, greatest start) of a node."""
        cdef Node* node = <Node*>address
        alive = node.before != 0 and node.latest >= self.window.bound
        return <size_t>node.label, node.before if alive else 0, node.latest

    def union(self, size_t address):
        """(greatest start, node or 0, left side or 0, right side or 0) of a union."""
        cdef Cell* cell
        if not address & UNION:
            return (<Node*>address).latest, address, 0, 0
        cell = cell_of(address)
        left = cell.left != 0 and cell.left_latest >= self.window.bound
        right = cell.right != 0 and cell.right_latest >= self.window.bound
        return (
            cell.latest, <size_t>cell.node, cell.left if left else 0,
            cell.right if right else 0,
        )

    def load_label(
        self, uint32_t place, uint32_t position, instant_t instant, int64_t micros,
        uint32_t domain, uint64_t line, uint32_t stream, uint32_t file, uint32_t ordinal,
        term_t name, term_t stamp, uint8_t part, uint8_t parts, row,
    ):
        """Create a label with these `fields`; its address."""
        cdef Label* label = self.core.tecs.label(<uint32_t>len(row))
        label.edge = self.tables.places[place].edge_first + position
        label.instant, label.micros = instant, micros
        label.domain, label.line, label.stream, label.file = domain, line, stream, file
        label.ordinal, label.name, label.stamp = ordinal, name, stamp
        label.part, label.parts = part, parts
        for i, term in enumerate(row):
            label.row[<uint32_t>i] = term
        return <size_t>label

    def load_node(self, size_t label, size_t before, instant_t start):
        """Create a node on top of a union (0: of nothing); its address."""
        return <size_t>new_node(self.core.tecs, <Label*>label, before, start)

    def load_union(self, instant_t latest, size_t node, size_t left, size_t right):
        """Create a union from the values that `union` returns; its address."""
        cdef Cell* cell
        if not left and not right:
            return node
        cell = <Cell*>tecs_alloc(self.core.tecs, sizeof(Cell))
        cell.latest, cell.node = latest, <Node*>node
        cell.before = (<Node*>node).before if node else 0
        cell.left, cell.right = left, right
        cell.left_latest = start_of(left) if left else -1
        cell.right_latest = start_of(right) if right else -1
        return <size_t>cell | UNION

    def load_group(
        self, uint32_t place, values, size_t union, bint taken, dates, term_t floor=0
    ):
        """Create a group from an item of `groups`; its registers must be new to the place."""
        cdef Groups groups = <Groups>self.instant.groups_at[place]
        cdef uint32_t number
        cdef InstantMembers* stretch
        self._set_key(values)
        if find_group(groups, self.event.key) != NIL:
            raise ValueError(f"two groups of place {place} have the same registers")
        number = create_group(groups, self.event.key)
        group_at(groups, number).members = union
        group_at(groups, number).latest = start_of(union)
        self.transitions.max_live += 1
        if dates is not None:
            self._load_dates(&groups.dates[number], dates)
            if self.tables.places[place].operator == DEADLINE:
                stretch = groups.dates[number].newest
                while stretch != NULL:
                    self.core.deadlines.add(place, number, stretch)
                    stretch = stretch.older
        if taken:
            mark_joined(self.instant, place, number, group_at(groups, number))
        if floor:
            groups.raised[number] = floor

    cdef int _load_dates(self, Dates* dates, saved) except -1:
        cdef InstantMembers* newest = NULL
        cdef InstantMembers* stretch
        dates.oldest, dates.floor, dates.joined, dates.joined_in, stretches = saved
        for last, latest, union in reversed(stretches):
            stretch = <InstantMembers*>tecs_alloc(self.core.tecs, sizeof(InstantMembers))
            stretch.last, stretch.latest = last, latest
            stretch.micros = top_of(<union_t>union).label.micros
            stretch.members, stretch.older = union, newest
            stretch.older_latest = -1
            if newest != NULL:
                stretch.older_latest = max(newest.latest, newest.older_latest)
            newest = stretch
        dates.newest = newest
        return 0

    cdef int _set_key(self, values) except -1:
        cdef uint32_t i
        for i, value in enumerate(values):
            self.event.key[i] = value
        return 0

    def order_deadlines(self):
        """Put the deadlines of loaded groups in order."""
        self.core.deadlines.order()

    def load_pending(self, uint32_t place, values, size_t node):
        """Add a node that enters a place when the instant closes."""
        cdef uint32_t i
        for i, value in enumerate(values):
            self.event.env[self.tables.numbers[self.tables.places[place].live_first + i]] = value
        add_pending_env(self.instant, place, <Node*>node)

    def load_awaited(self, uint32_t place, values, instant_t start, labels):
        """Add a match that waits for its window to close, after the earlier ones of its start."""
        cdef Node* node = NULL
        cdef union_t before = 0
        for label in labels:
            if node != NULL:
                before = union_add(self.core.tecs, 0, -1, node, self.window.bound)
            node = new_node(self.core.tecs, <Label*><size_t>label, before, start)
        self.load_pending(place, values, <size_t>node)
        self.transitions.show_pending(self.instant.pending_count - 1)

    def load_row(self, uint32_t gpm, size_t label, bint keyed):
        """Add a row to the buffers that store its graph pattern; the oldest comes first."""
        if self.lazy_join.chain_length:
            self.lazy_join.load_step(gpm, <Label*>label)
        if self.conjunction.row_buffers[gpm] != NULL:
            rows_add(self.conjunction.row_buffers[gpm], <Label*>label, keyed)

    def load_strategy(self, how):
        """Restore the strategy of a lazy join; None: eager, since rows are missing."""
        cdef Weights* weights = &self.lazy_join.weights
        if how is None or not self.lazy_join.chain_length:
            weights.settled = self.window.now
            return
        (
            self.lazy_join.lazy, weights.eager, weights.lazy, weights.rows, weights.each,
            weights.trial, weights.mean, weights.since, weights.settled,
        ) = how

    def load_deferred(self, uint32_t place, values, size_t node):
        """Add a deferred beginning with the step of a node."""
        cdef EdgeRef way
        cdef uint32_t i
        way.place, way.edge = place, (<Node*>node).label.edge
        for i, value in enumerate(values):
            self.event.env[i] = value
        self.joins.defer_start(&way, <Node*>node)

    def load_complete(self, size_t node):
        """Add a node that ends complete matches; its transition has been traced before."""
        cdef bint traced = self.instant.traced
        self.instant.traced = False
        self.instant.accept(<Node*>node)
        self.instant.traced = traced
