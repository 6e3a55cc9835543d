"""Steps that look back: steps after guards, and steps over several events (`&` and `AND`).

If a guard forbids only some partial matches of a group, or a step begins before its last event, the
members of a group are distinguished by their last instants. The step is joined to the members that
are no older than the forbidden unit and older than the first event of the step. If these are all
members, they are joined as one union.

A step over several events is complete when the last one arrives. Its events become a chain of
nodes, each with one label, in the order of their instants. Cost: the rows examined
(`conjunction.pxi`), and constant for each group, or for each last instant of its joined members.
"""

from cpython.ref cimport PyObject
from libc.string cimport memcpy, memset

from spaseq.nfa.native._tecs cimport (
    NIL,
    Dates,
    PlaceFlags,
    bound_at,
    count_group_step,
    floor_of,
    follow_links,
    group_at,
    limits_hold,
    mark_joined,
    new_node,
    place_at,
    remove_group,
    set_marks,
    size_of_label,
    union_add,
)
from spaseq.rdf.native._terms cimport is_beyond, mem_calloc, mem_free, mem_grow

cdef const char* FOR_BEGINNINGS = b"another beginning"

# The place and group that a conjunction is searched for.
cdef struct Task:
    PyObject* join
    EdgeRef* way
    uint32_t number


cdef class StepJoin:
    """Joins steps whose rows are in the window to the groups that wait for them."""

    def __cinit__(self, Negation negation not None, OpenInstant instant not None):
        self.negation, self.conjunction = negation, negation.conjunction
        self.partitions, self.instant = negation.partitions, instant
        self.tables, self.window, self.event = instant.tables, instant.window, instant.event
        self.tecs = instant.event.tecs
        self.before = <term_t*>mem_calloc(self.tables.cells, sizeof(term_t))
        self.step = <Label**>mem_calloc(self.conjunction.most_parts, sizeof(Label*))

    def __dealloc__(self):
        mem_free(self.before)
        mem_free(self.step)
        mem_free(self.deferred)
        mem_free(self.deferred_values)

    cdef int join_guarded(
        self, EdgeRef* way, uint32_t number, uint32_t width, Label** label
    ) except -1 nogil:
        """Join the current row, which fits a group or a start, unless a guard forbids it."""
        cdef Place* place = way.place_at
        cdef RowSearch seek
        cdef Group* group
        cdef bint conjoined = place.flags & PlaceFlags.CONJOINED
        memset(&seek, 0, sizeof(RowSearch))
        self.negation.begin()
        if number == NIL and not self.window.counted and (
            self._start_is_forbidden(way.edge, place, self.window.now)
        ):
            return 0
        self.event.label_row(way, width, label)
        seek.edge, seek.count, seek.labels, seek.env = way.edge, 1, label, self.event.env
        seek.first = seek.last = self.window.now
        self.step[0], self.step_count = label[0], 1
        if number != NIL:
            group = group_at(<Groups>self.instant.groups_at[way.place], number)
            self.instant.remember(
                self.before, place, <Groups>self.instant.groups_at[way.place], number
            )
            if place.operator == c";" and group.joined_at != self.window.now and not (
                conjoined or place.flags & PlaceFlags.APART
            ):
                mark_joined(self.instant, way.place, number, group)
            return self._join(way, number, &seek)
        if self.window.counted and place.flags & PlaceFlags.GUARDED:
            return self.defer_start(way, new_node(self.tecs, label[0], 0, self.window.now))
        place.joined += 1
        return follow_links(
            self.instant, way.edge_at, new_node(self.tecs, label[0], 0, self.window.now)
        )

    cdef int conjoin(self, EdgeRef* way) except -1 nogil:
        """Search for the steps over several events that the current row completes."""
        cdef Place* place = way.place_at
        cdef RowSearch seek
        cdef Task task
        memset(&seek, 0, sizeof(RowSearch))
        seek.edge, seek.high, seek.new_row = (
            way.edge, self.window.now + 1, self.conjunction.last_label
        )
        seek.new_gpm, seek.found, seek.task = self.conjunction.last_gpm, _met, &task
        task.join, task.way, task.number = <PyObject*>self, way, NIL
        self.negation.begin()
        if not place.operator:
            place.visited += 1
            seek.low = self.window.bound - 1
            memset(self.before, 0, self.tables.cells * sizeof(term_t))
            return self.conjunction.search_edge(&seek, self.before)
        return self._conjoin_each(<Groups>self.instant.groups_at[way.place], way, &seek)

    cdef int _conjoin_each(self, Groups groups, EdgeRef* way, RowSearch* seek) except -1 nogil:
        """Search for the steps that the current row completes, for each waiting group."""
        cdef Task* task = <Task*>seek.task
        cdef uint32_t i = groups.live_count
        if not way.index:
            while i:
                i -= 1
                task.number = groups.alive[i]
                self._conjoin_with(groups, seek)
            return 0
        for i in range(way.key_first, way.key_end):
            self.event.key[i - way.key_first] = self.event.row[self.tables.numbers[i]]
        i = groups.first(way.index, self.event.key)
        way.place_at.unjoined += i == NIL and groups.live_count > 0
        while i != NIL:
            task.number = i
            # The join may remove the group.
            i = groups.next_of(way.index, i, self.event.key)
            self._conjoin_with(groups, seek)
        return 0

    cdef int _conjoin_with(self, Groups groups, RowSearch* seek) except -1 nogil:
        """Search for the steps that the current row completes, for one group."""
        cdef Task* task = <Task*>seek.task
        cdef Place* place = &self.tables.places[task.way.place]
        cdef Dates* dates = &groups.dates[task.number]
        if group_at(groups, task.number).latest < self.event.since:
            place.outside += 1
            return 0
        if dates.newest.last < floor_of(dates, self.window.timestamp_start):
            return remove_group(groups, task.number)
        if not count_group_step(self.event, task.way.place):
            return 0
        place.visited += 1
        seek.low = dates.oldest
        self.instant.remember(self.before, place, groups, task.number)
        return self.conjunction.search_edge(seek, self.before)

    cdef int _begin(self, EdgeRef* way, RowSearch* seek) except -1 nogil:
        """Begin a match with a step over several events."""
        cdef Place* place = way.place_at
        if seek.first < self.event.since or seek.first > self.window.last_start:
            return 0
        if not in_time(self.tables, seek, least_micros(seek)):
            return 0
        memcpy(self.event.env, seek.env, self.tables.cells * sizeof(term_t))
        set_marks(way.edge_at, self.event.env, least_micros(seek))
        self.step_count = 0
        if place.flags & PlaceFlags.GUARDED:
            if self.window.counted:
                return self.defer_start(way, self._node(way, seek, 0, seek.first))
            if self._start_is_forbidden(way.edge, place, seek.first):
                return 0
        place.joined += 1
        return follow_links(self.instant, way.edge_at, self._node(way, seek, 0, seek.first))

    cdef int _join(self, EdgeRef* way, uint32_t number, RowSearch* seek) except -1 nogil:
        """Join a step to the members of a group, unless the operator or guards exclude them."""
        cdef Place* place = way.place_at
        cdef Dates* dates = &(<Groups>self.instant.groups_at[way.place]).dates[number]
        cdef instant_t needed = self._least_last_instant(way, number, seek), found
        cdef instant_t passed = needed
        if not place.flags & PlaceFlags.RELATIVE:
            found = self.negation.forbidden_until(
                way.edge, self.before, seek.env, dates.oldest, seek.first, False
            )
            needed = max(needed, found)
        if needed > dates.newest.last:
            place.passed_over += passed == needed
            place.forbidden += passed != needed
            return 0
        if seek.env != self.event.env:
            memcpy(self.event.env, seek.env, self.tables.cells * sizeof(term_t))
        return self._follow(way, number, seek, needed, <Groups>self.instant.groups_at[way.place])

    cdef instant_t _least_last_instant(
        self, EdgeRef* way, uint32_t number, RowSearch* seek
    ) except -2 nogil:
        """The least last instant of members that the operator admits."""
        cdef Place* place = way.place_at
        cdef Dates* dates = &(<Groups>self.instant.groups_at[way.place]).dates[number]
        cdef instant_t needed = floor_of(dates, self.window.timestamp_start)
        if place.operator == c"," and (place.flags & PlaceFlags.CONJOINED or self.tables.tracked):
            return max(needed, self.negation.instant_before(seek.env, seek.first))
        if place.operator != c";" or (
            place.flags & PlaceFlags.APART or not place.flags & PlaceFlags.CONJOINED
        ):
            return needed
        if place.flags & PlaceFlags.SEARCHES_BACK:
            return latest_rival(
                self.negation, way.place, seek, self.before, dates.oldest, INT64_MIN
            )
        if place.flags & PlaceFlags.RIVALS:
            needed = max(
                needed,
                latest_rival(
                    self.negation, way.place, seek, self.before, self.window.timestamp_start - 1,
                    INT64_MIN,
                ),
            )
        if dates.joined_in < self.window.timestamp_start:
            dates.joined = -1
        dates.joined_in = self.window.timestamp_start
        dates.joined = max(dates.joined, seek.first)
        return needed

    cdef int _follow(
        self, EdgeRef* way, uint32_t number, RowSearch* seek, instant_t needed, Groups groups
    ) except -1 nogil:
        """Join a step to the members of a group whose last event is no older than `needed`."""
        cdef Place* place = way.place_at
        cdef Edge* edge = way.edge_at
        cdef instant_t bound = self.event.since, latest = group_at(groups, number).latest
        cdef InstantMembers* stretch = groups.dates[number].newest
        cdef bint joined = False, asked = place.flags & PlaceFlags.RELATIVE
        cdef bint apart = place.flags & PlaceFlags.APART
        cdef bint bounded = edge.within >= 0
        if seek.count > 1:
            self.step_count = 0
        if needed <= groups.dates[number].oldest and stretch.last < seek.first and not (
            asked or bounded or apart
        ):
            place.joined += 1
            return follow_links(
                self.instant, edge, self._node(way, seek, group_at(groups, number).members, latest)
            )
        while stretch != NULL and latest >= bound and stretch.last >= needed:
            if bounded and stretch.latest >= bound and (
                is_beyond(self.window.micros, stretch.micros, edge.within)
            ):
                break
            self.negation.base(stretch.last, stretch.micros)
            if stretch.latest >= bound and stretch.last < seek.first and not (
                asked and self.negation.forbidden_until(
                    way.edge, self.before, self.event.env, stretch.last, seek.first, False
                ) != NO_INSTANT
            ) and not (
                apart and latest_rival(
                    self.negation, way.place, seek, self.before, stretch.last, stretch.micros
                ) > stretch.last
            ):
                joined = True
                set_marks(edge, self.event.env, stretch.micros)
                follow_links(
                    self.instant, edge, self._node(way, seek, stretch.members, stretch.latest)
                )
            latest = stretch.older_latest
            stretch = stretch.older
        place.joined += joined
        place.forbidden += not (joined or bounded)
        place.outside += bounded and not joined
        return 0

    cdef Node* _node(
        self, EdgeRef* way, RowSearch* seek, union_t before, instant_t start
    ) except NULL nogil:
        """Create the nodes of a step on top of a union."""
        cdef Node* node
        cdef uint32_t i
        if self.step_count == 0:
            self._label_step(way, seek)
        node = new_node(self.tecs, self.step[0], before, start)
        for i in range(1, self.step_count):
            node = new_node(
                self.tecs, self.step[i],
                union_add(self.tecs, 0, -1, node, self.window.bound), node.latest,
            )
        return node

    cdef int _label_step(self, EdgeRef* way, RowSearch* seek) except -1 nogil:
        """Create the labels of a step over several events, ordered by instant."""
        cdef Label* label
        cdef Label* kept
        cdef Occurrence* occurrence
        cdef uint32_t i, j, assigned
        for i in range(seek.count):
            kept = seek.labels[i]
            occurrence = &self.tables.occurrences[seek.parts[i].occurrence]
            assigned = occurrence.assigned_end - occurrence.binding_end
            label = self.tecs.label(kept.width + assigned)
            memcpy(label, kept, size_of_label(kept.width))
            if assigned:
                label.width += assigned
                memcpy(
                    label.row + kept.width, seek.assigned + i * self.tables.most_assigned,
                    assigned * sizeof(term_t),
                )
            label.edge = way.edge
            label.part, label.parts = <uint8_t>seek.parts[i].part, <uint8_t>seek.count
            j = i
            while j and self.step[j - 1].instant > label.instant:
                self.step[j] = self.step[j - 1]
                j -= 1
            self.step[j] = label
        self.step_count = seek.count
        return 0

    cdef bint _start_is_forbidden(
        self, uint32_t edge, Place* place, instant_t first
    ) except -1 nogil:
        """Whether a step skipped before a start has occurred inside its window."""
        cdef instant_t low = bound_at(self.window, first) - 1
        cdef const term_t* env = self.event.env
        if self.negation.forbidden_until(edge, env, env, low, first, True) == NO_INSTANT:
            return False
        place.forbidden += 1
        return True

    cdef int defer_start(self, EdgeRef* way, Node* node) except -1 nogil:
        """Defer a beginning until counting all events of the instant has fixed the window."""
        cdef size_t size = self.tables.cells * sizeof(term_t)
        cdef term_t* values
        if self.deferred_count == self.deferred_room:
            self.deferred_room = 2 * self.deferred_room + 16
            self.deferred = <DeferredStart*>mem_grow(
                self.deferred, self.deferred_room, sizeof(DeferredStart), FOR_BEGINNINGS
            )
            self.deferred_values = <term_t*>mem_grow(
                self.deferred_values, self.deferred_room, size, FOR_BEGINNINGS
            )
        self.deferred[self.deferred_count].edge = way.edge
        self.deferred[self.deferred_count].place = way.place
        self.deferred[self.deferred_count].node = node
        values = self.deferred_values + self.deferred_count * self.tables.cells
        memcpy(values, self.event.env, size)
        self.deferred_count += 1
        return 0

    cdef int begin_deferred(self) except -1 nogil:
        """Process the deferred beginnings when the instant closes."""
        cdef uint32_t i
        cdef DeferredStart* begun
        for i in range(self.deferred_count):
            begun = &self.deferred[i]
            memcpy(
                self.event.env, self.deferred_values + i * self.tables.cells,
                self.tables.cells * sizeof(term_t),
            )
            self.negation.begin()
            if begun.node.latest >= since_at(self.window, self.partitions, begun.node) and not (
                self._start_is_forbidden(
                    begun.edge, &self.tables.places[begun.place], begun.node.latest
                )
            ):
                place_at(self.tables, begun.place).joined += 1
                follow_links(self.instant, &self.tables.edges[begun.edge], begun.node)
        self.deferred_count = 0
        return 0

    cdef int expire_strict(self, Groups groups) except -1 nogil:
        """Remove the groups of a `,` place that no later step can follow, not even at this
        timestamp."""
        cdef uint32_t i = groups.live_count
        while i:
            i -= 1
            if group_at(groups, groups.alive[i]).latest < self.window.bound or (
                groups.dates[groups.alive[i]].newest.last < self.window.timestamp_start - 1
            ):
                remove_group(groups, groups.alive[i])
        return 0


cdef int _met(void* context, RowSearch* seek) except -1 nogil:
    """Callback: join a step over several events."""
    cdef Task* task = <Task*>context
    if task.number == NIL:
        (<StepJoin>task.join)._begin(task.way, seek)
    elif limits_hold(task.way.edge_at, seek.env, (<StepJoin>task.join).window.micros):
        (<StepJoin>task.join)._join(task.way, task.number, seek)
    return 0
