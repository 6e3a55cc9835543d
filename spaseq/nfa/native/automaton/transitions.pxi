"""Transitions: a row is joined to the groups of a place, and the result waits in the next one.

A row visits the groups that agree with it on the registers of an index, the groups in a range of a
range index, a whole range as one union, or every group. A group that fits is extended by one node.
The result waits from the close of the instant on; in the places after the automaton's own, each
match waits by itself for its window to close.

Cost: constant for each group that a row visits.
"""

from cpython.ref cimport PyObject
from libc.math cimport INFINITY, fabs
from libc.string cimport memset

from spaseq.nfa.native._tecs cimport (
    CLOSING,
    DEADLINE,
    GREATEST_FLOAT,
    NIL,
    Awaited,
    Link,
    OccurrenceFlags,
    Pending,
    RangeCursor,
    RangeIndex,
    Relation,
    Sum,
    agreements_hold,
    assign,
    begin_iterations,
    bind,
    class_of,
    count_group_step,
    count_match,
    create_group,
    extend_hash,
    filters_hold,
    find_group,
    follow_links,
    follow_straight_links,
    group_at,
    is_distinct,
    label_straight,
    latest_of,
    limits_hold,
    mark_joined,
    new_node,
    next_double,
    next_of,
    number_in,
    raise_floor,
    rank_at,
    refuse_match,
    remove_group,
    resolve_compared_columns,
    set_marks,
    start_of,
    sum_of,
    tecs_alloc,
    top_of,
    union_add,
)
from spaseq.rdf.native._terms cimport TermRecord, copy_row, is_numeral, prefetch, real_of, record_of

# A margin above the error of rounding a number to a float: relative, and absolute near zero.
cdef double ROUNDING_RELATIVE = 2.0 ** -20

cdef double ROUNDING_ABSOLUTE = 1e-37


cdef inline bint _is_passed_over(
    Transitions self, EdgeRef* way, uint32_t number, Group* group
) except -1 nogil:
    """Whether the operator is strict, and another event has passed over a group that agrees.

    No later event can join the group. It is removed when the instant closes, so that only the first
    event after the passing one visits it.
    """
    cdef Place* place = way.place_at
    if group.latest < 0:
        place.passed_over += 1
        return True
    if place.contiguous and top_of(group.members).label.instant < self.partitions.before:
        place.passed_over += 1
        if not place.flags and group.joined_at != self.window.now:
            mark_joined(self.instant, way.place, number, group)
        return True
    return False


cdef inline int _complete_matches(
    Transitions self, CurrentEvent event, OpenInstant instant, Tecs passing, const EdgeRef* way,
    uint32_t width, Label** label, const Group* group,
) except -1 nogil:
    """Complete the matches of a group by a row; the node is freed with the next event."""
    cdef const Link* link = way.edge_at.link
    cdef Node* node
    if label[0] == NULL:
        label_straight(event, passing, way, width, label)
    node = new_node(passing, label[0], group.members, group.latest)
    while link < way.edge_at.link_end:
        instant.accept(node)
        link += 1
    return 0


cdef inline int _join_group(
    Transitions self, CurrentEvent event, OpenInstant instant, Tecs tecs, EdgeRef* way,
    uint32_t number, uint32_t width,
    Label** label, Groups groups, bint sure,
) except -1 nogil:
    """Join a row to a group, if the row fits; `sure`: the filters are true."""
    cdef Edge* edge = way.edge_at
    cdef Place* place = way.place_at
    cdef Group* group = group_at(groups, number)
    prefetch(<void*>group.members)  # enumeration follows them soon, if this ends a match
    place.visited += 1
    if latest_of(group) < event.since:
        return self.skip_expired(way, number, group)
    if not count_group_step(event, way.place):
        return 0
    if not edge.straight or place.flags or not agreements_hold(edge, event.row, group.values) or (
        not sure and self.tables.occurrences[edge.occurrence].flags & OccurrenceFlags.TESTS
    ):
        return self.join_environment(way, number, width, label, groups, sure)
    if _is_passed_over(self, way, number, group):
        return 0
    place.joined += 1
    if place.operator == c";" and group.joined_at != self.window.now:
        mark_joined(instant, way.place, number, group)
    if edge.final and not event.stores_final_nodes:
        return _complete_matches(self, event, instant, event.transient, way, width, label, group)
    if label[0] == NULL:
        label_straight(event, tecs, way, width, label)
    return follow_straight_links(
        instant, event.row, edge, group.values,
        new_node(tecs, label[0], group.members, group.latest),
    )


cdef inline bint _agrees(Transitions self, Edge* edge, uint32_t width) except -1 nogil:
    """Bind the current row in the environment; False if it disagrees with a register."""
    cdef Occurrence* occurrence = &self.tables.occurrences[edge.occurrence]
    cdef int status
    begin_iterations(self.tables, edge, self.event.env)
    if occurrence.flags & OccurrenceFlags.STORES_TERMS and not self.event.row_stored:
        self.event.store_row(width)
    status = bind(self.tables, occurrence, self.event.row, self.event.env)
    if status > 0:
        return True
    occurrence.disagreed += 1
    return _raised() if status < 0 else False


cdef inline int _begin_match(
    Transitions self, CurrentEvent event, OpenInstant instant, Tecs tecs, EdgeRef* way,
    uint32_t width, Label** label,
) except -1 nogil:
    """Begin a match with a row, if the row fits."""
    cdef Edge* edge = way.edge_at
    cdef Place* place = way.place_at
    place.visited += 1
    if self.window.now < event.since or self.window.now > self.window.last_start:
        return 0
    if (
        edge.straight and not place.flags
        and not self.tables.occurrences[edge.occurrence].flags & OccurrenceFlags.TESTS
        and agreements_hold(edge, event.row, NULL)
    ):
        label_straight(event, tecs, way, width, label)
        place.joined += 1
        return follow_straight_links(
            instant, event.row, edge, NULL, new_node(tecs, label[0], 0, self.window.now)
        )
    memset(event.env, 0, self.tables.cells * sizeof(term_t))
    if not _agrees(self, edge, width) or not self._fits(edge, width, False):
        return 0
    set_marks(edge, event.env, self.window.micros)
    if place.flags:
        return self.joins.join_guarded(way, NIL, width, label)
    event.label_row(way, width, label)
    place.joined += 1
    return follow_links(instant, edge, new_node(tecs, label[0], 0, self.window.now))


cdef inline int _measure(Transitions self, CurrentEvent event, int32_t column) noexcept nogil:
    """Measure a column of the current row: its rank, value and distinctness."""
    cdef term_t term = event.row[column]
    cdef TermRecord* record
    self.measured, self.value = column, 0
    if is_numeral(term):
        self.rank, self.distinct, self.value = Rank.NUMERIC, True, real_of(term)
        return 0
    record = record_of(event.batch, term)
    self.rank = rank_at(record, &self.value)
    self.distinct = is_distinct(record, self.value)
    return 0


cdef inline uint32_t _key_hash(const Edge* edge, const term_t* row) noexcept nogil:
    """The hash of the row's columns that an index reads."""
    cdef const uint32_t* column = edge.key
    cdef uint32_t hash = 0
    while column < edge.key_end:
        hash = extend_hash(hash, row[column[0]])
        column += 1
    return hash


cdef int _join_exact_range(
    Transitions self, CurrentEvent event, OpenInstant instant, Tecs tecs, EdgeRef* way,
    uint32_t width, Label** label, Groups groups,
    RangeIndex order,
) except -1 nogil:
    """Join a row to the groups in the range that fits it exactly; no filter is evaluated.

    A special case of `_join_indexed`, for a column that has been measured.
    """
    cdef const Edge* edge = way.edge_at
    cdef double least = -INFINITY, most = INFINITY
    cdef RangeCursor span
    cdef uint32_t group
    if edge.relation == Relation.LESS:
        least = next_double(self.value) if edge.strict else self.value
    else:
        most = -next_double(-self.value) if edge.strict else self.value
    group = order.seek(&span, _key_hash(edge, event.row), Rank.NUMERIC, least, most)
    if group == NIL:
        way.place_at.unjoined += groups.live_count > 0
    while group != NIL:
        _join_group(self, event, instant, tecs, way, group, width, label, groups, True)
        group = next_of(order, &span)
    return 0


cdef inline int _join_indexed(
    Transitions self, CurrentEvent event, OpenInstant instant, Tecs tecs, EdgeRef* way,
    uint32_t width, Label** label, Groups groups,
    RangeIndex order,
) except -1 nogil:
    """Join a row to the groups that an index returns, or to all of them.

    If the edge compares a column, `order` returns the groups whose registers may satisfy the
    comparison.
    """
    cdef const Edge* edge = way.edge_at
    cdef bint ordered = edge.compared >= 0, found = False
    cdef double least = -INFINITY, most = INFINITY
    cdef double below = -INFINITY, above = INFINITY     # values outside certainly fit
    cdef double margin
    cdef RangeCursor span
    cdef uint32_t i, group, hash = 0, visited = 0
    if ordered:
        if event.row[edge.compared] == 0:
            return 0
        if self.measured != edge.compared:
            _measure(self, event, edge.compared)
        if edge.exact and self.distinct and order.distinct:
            return _join_exact_range(self, event, instant, tecs, way, width, label, groups, order)
        # A number beyond a float's range compares with a float as an infinity.
        if self.rank == Rank.NUMERIC and fabs(self.value) < (
            GREATEST_FLOAT if order.infinite else INFINITY
        ):
            margin = ROUNDING_RELATIVE * fabs(self.value) + ROUNDING_ABSOLUTE
            if edge.relation != Relation.GREATER or edge.whole:
                least = self.value - margin
            if edge.relation != Relation.LESS or edge.whole:
                most = self.value + margin
            if edge.decided:
                below, above = self.value - margin, self.value + margin
            if edge.whole:
                found = self._join_whole_range(way, width, label, least, most)
        elif self.rank == Rank.TEXT and edge.relation == Relation.EQUAL:
            least = most = self.value
        hash = _key_hash(edge, event.row)
        # The filter excludes groups whose key merely has the same hash.
        group = order.seek(&span, hash, self.rank, least, most)
    elif edge.index:
        for i in range(<uint32_t>(edge.key_end - edge.key)):
            event.key[i] = event.row[edge.key[i]]
        group = groups.first(edge.index, event.key)
    else:
        group = groups.alive[0] if groups.live_count else NIL
    if group == NIL:
        way.place_at.unjoined += edge.index != 0 and groups.live_count > 0 and not found
        return 0
    while group != NIL:
        _join_group(
            self, event, instant, tecs, way, group, width, label, groups,
            ordered and (span.value < below or span.value > above),
        )
        if ordered:
            group = next_of(order, &span)
        elif edge.index:
            group = groups.next_of(edge.index, group, event.key)
        else:
            visited += 1
            group = groups.alive[visited] if visited < groups.live_count else NIL
    return 0


cdef inline int _add_to_group(
    Transitions self, Window window, Tecs tecs, Place* places, const Pending* pending,
    const term_t* values,
    Groups groups,
) except -1 nogil:
    """Add a pending partial match to its group."""
    cdef uint32_t target = pending.target
    cdef Node* node = pending.node
    cdef Place* place = &places[target]
    cdef uint32_t number = find_group(groups, values)
    cdef Group* group
    cdef InstantMembers* newest
    if number != NIL and latest_of(group_at(groups, number)) < window.bound:
        # The term numbers of its registers may have been reused.
        remove_group(groups, number)
        number = NIL
    if number == NIL:
        number = create_group(groups, values)
        self.max_live += 1
    elif groups.has_unions:
        groups.invalidate(number)
    group = group_at(groups, number)
    if place.operator == CLOSING:
        self.await_matches(target, number, node)
    else:
        if (
            place.contiguous and group.members != 0
            and top_of(group.members).label.instant < self.partitions.last_at(node.label)
        ):
            # A later event of the partition has passed over the older members.
            group.members, group.latest = 0, -1
            if groups.dated:
                groups.dates[number].newest = NULL
        group.members = union_add(tecs, group.members, group.latest, node, window.bound)
    if node.latest > group.latest:
        group.latest = node.latest
    if groups.dated:
        newest = groups.dates[number].newest
        groups.add_dated(tecs, number, node, window.bound)
        if place.operator == DEADLINE and groups.dates[number].newest != newest:
            self.deadlines.add(target, number, groups.dates[number].newest)
    assert group.members == 0 or group.latest < window.bound or (
        start_of(group.members) == group.latest
    )
    place.reached += 1
    return 0


cdef inline int _join_all(
    Transitions self, CurrentEvent event, OpenInstant instant, Tecs tecs, EdgeRef** ways,
    EdgeRef** last, uint32_t width, Label** kept,
) except -1 nogil:
    """See `Transitions.join_all`. Parts are arguments so that they stay in registers."""
    cdef PyObject** groups_at = instant.groups_at
    cdef EdgeRef* way
    cdef Label* own
    cdef Label** label = kept if kept != NULL else &own
    while ways < last:
        way, own = ways[0], NULL
        ways += 1
        # A row that begins a match is compared with no group, and is mostly stored at once.
        # Rows for buffers were compared earlier; see `_feed_one`.
        if not event.row_stored and way.place_at.operator:
            resolve_compared_columns(event, way.gpm)
        if way.edge_at.occurrence == NIL:
            self.joins.conjoin(way)
        elif not way.place_at.operator:
            _begin_match(self, event, instant, tecs, way, width, label)
        else:
            _join_indexed(
                self, event, instant, tecs, way, width, label, <Groups>groups_at[way.place],
                <RangeIndex>(<Groups>groups_at[way.place]).orders_at[way.edge_at.index],
            )
    return 0


cdef inline int _show(
    Transitions self, OpenInstant instant, Window window, Tecs tecs, Place* places, uint32_t first
) except -1 nogil:
    """See `Transitions.show_pending`."""
    cdef const Pending* pending = instant.pending + instant.pending_count
    cdef const Pending* last = instant.pending + first
    # The partial match with the latest start is mostly the first pending one.
    while pending > last:
        pending -= 1
        _add_to_group(
            self, window, tecs, places, pending, instant.pending_values + pending.values,
            <Groups>instant.groups_at[pending.target],
        )
    if instant.pending_count > first:
        instant.value_count = instant.pending[first].values
        instant.pending_count = first
    return 0


cdef class Transitions:
    """The edges of an automaton: joins rows to groups, and groups to their next places."""

    def __cinit__(self, StepJoin joins not None, Deadlines deadlines not None):
        self.deadlines = deadlines
        self.joins, self.instant, self.partitions = joins, joins.instant, joins.partitions
        self.tables, self.window, self.event = joins.tables, joins.window, joins.event
        self.tecs = joins.tecs
        self.walk = Walk()
        self.walk.timed = deadlines.count > 0

    cdef int join_place(self, EdgeRef* way, uint32_t width, Label** label) except -1 nogil:
        """Join the current row to the groups of one place."""
        self.measured = -1
        return self.join_all(&way, 1, width, label)

    cdef int join_all(
        self, EdgeRef** ways, uint32_t count, uint32_t width, Label** kept
    ) except -1 nogil:
        """Join the current row to the groups of some places.

        With one place, `kept` holds the row's label, or receives it; otherwise it is NULL.
        """
        return _join_all(self, self.event, self.instant, self.tecs, ways, ways + count, width, kept)

    cdef int _join_whole_range(
        self, EdgeRef* way, uint32_t width, Label** label, double least, double most
    ) except -1 nogil:
        """Join a row to all groups below `least` or above `most` at once; 1 if there are any."""
        cdef Edge* edge = way.edge_at
        cdef Place* place = way.place_at
        cdef Occurrence* occurrence = &self.tables.occurrences[edge.occurrence]
        cdef Sum wanted
        wanted.bucket = class_of(0, Rank.NUMERIC)
        wanted.above = edge.relation == Relation.LESS
        wanted.bound = most if wanted.above else least
        sum_of(
            <Groups>self.instant.groups_at[way.place], edge.index, self.tecs, self.event.since,
            &wanted,
        )
        if wanted.members == 0 or not count_group_step(self.event, way.place):
            return 0
        memset(self.event.env, 0, self.tables.cells * sizeof(term_t))
        if occurrence.flags & OccurrenceFlags.STORES_TERMS and not self.event.row_stored:
            self.event.store_row(width)
        if bind(self.tables, occurrence, self.event.row, self.event.env) < 0:
            return _raised()
        self.event.label_row(way, width, label)
        place.visited += 1
        place.joined += 1
        follow_links(
            self.instant, edge, new_node(self.tecs, label[0], wanted.members, wanted.latest)
        )
        return 1

    cdef int join_environment(
        self, EdgeRef* way, uint32_t number, uint32_t width, Label** label, Groups groups, bint sure
    ) except -1 nogil:
        """Join a row to a group register by register, if the row fits."""
        cdef Edge* edge = way.edge_at
        cdef Place* place = way.place_at
        cdef Group* group = group_at(groups, number)
        self.instant.remember(self.event.env, place, groups, number)
        if not _agrees(self, edge, width) or _is_passed_over(self, way, number, group):
            return 0
        if not self._fits(edge, width, sure):
            return 0
        if not limits_hold(edge, self.event.env, self.window.micros):
            place.outside += 1
            return 0
        if place.flags:
            return self.joins.join_guarded(way, number, width, label)
        self.event.label_row(way, width, label)
        place.joined += 1
        if place.floor >= 0:
            raise_floor(groups, number, self.event.row[place.rank])
        if place.operator == c";" and group.joined_at != self.window.now:
            mark_joined(self.instant, way.place, number, group)
        return follow_links(
            self.instant, edge, new_node(self.tecs, label[0], group.members, group.latest)
        )

    cdef int skip_expired(self, EdgeRef* way, uint32_t number, Group* group) except -1 nogil:
        """Handle a group without a member that starts in the window of the current row."""
        if group.joined_at != self.window.now:
            way.place_at.outside += 1
            if latest_of(group) < self.window.bound:
                mark_joined(self.instant, way.place, number, group)
        return 0

    cdef bint _fits(self, Edge* edge, uint32_t width, bint sure) except -1 nogil:
        """Evaluate the BINDs and filters of a row that is bound in the environment.

        `sure`: the filters are true.
        """
        cdef Occurrence* occurrence = &self.tables.occurrences[edge.occurrence]
        cdef int status
        if occurrence.flags & OccurrenceFlags.ASSIGNS and not assign(
            self.tables, edge.occurrence, self.event.env, self.event.row + width
        ):
            return False
        if occurrence.flags & OccurrenceFlags.TESTS and not sure:
            status = filters_hold(self.tables, edge.occurrence, self.event.env)
            if status < 0:
                return _raised()
            return status
        return True

    # ---------------------------------------------------------------- waiting

    cdef int raise_group(self, uint32_t target, uint32_t number, Groups groups) except -1 nogil:
        """Let a joined group go on waiting with its raised floor, unless that is the greatest.

        It is united with the group that has this floor and the same other registers.
        """
        cdef Place* place = &self.tables.places[target]
        cdef Group* group = group_at(groups, number)
        cdef term_t* values = self.event.key
        cdef union_t members = group.members
        cdef instant_t latest = group.latest
        cdef term_t floor = groups.raised[number]
        cdef bint ends = latest < self.window.bound
        place.expired += ends
        ends |= number_in(groups, floor) >= place.most_rank
        copy_row(values, group.values, groups.width)
        values[place.floor] = floor
        groups.raised[number] = 0
        remove_group(groups, number)
        if ends:
            return 0
        number = find_group(groups, values)
        if number != NIL and latest_of(group_at(groups, number)) < self.window.bound:
            remove_group(groups, number)
            number = NIL
        if number == NIL:
            number = create_group(groups, values)
            self.max_live += 1
        group = group_at(groups, number)
        group.members = self.tecs.unite(group.members, group.latest, members, latest)
        group.latest = max(group.latest, latest)
        return 0

    cdef int show_pending(self, uint32_t first) except -1 nogil:
        """Make pending partial matches visible, from the first `first` on."""
        return _show(self, self.instant, self.window, self.tecs, self.tables.places, first)

    cdef int await_matches(self, uint32_t place, uint32_t group, Node* node) except -1 nogil:
        """Let each match that ends in a node wait for its window to close."""
        self.walk.begin(node, since_at(self.window, self.partitions, node))
        while self.walk.advance():
            if not count_match(self.event, &self.event.listed):
                break
            if self.event.listed > self.event.most_waiting and not refuse_match(self.event, True):
                break
            self.add_awaited(place, group, node, self.walk)
            self.waited += 1
        return 0

    cdef int add_awaited(
        self, uint32_t place, uint32_t group, Node* node, Walk walk
    ) except -1 nogil:
        """Let the current match of a walk wait for its window to close."""
        cdef uint32_t i
        cdef Awaited** head = &self.window.awaited[walk.start & self.window.times_mask]
        cdef Awaited* match = <Awaited*>tecs_alloc(
            self.tecs, sizeof(Awaited) + (walk.length - 1) * sizeof(Label*)
        )
        match.next = head[0]
        match.place = place
        match.group = group
        match.serial = group_at(<Groups>self.instant.groups_at[place], group).serial
        match.deadline = node.label if node.label.parts == 0 and node.label.part == 0 else NULL
        match.length = walk.length
        for i in range(walk.length):
            match.labels[i] = walk.path[walk.length - 1 - i]
        head[0] = match
        self.window.awaited_count += 1
        self.max_live += 1
        return 0
