# cython: language_level=3, boundscheck=False, wraparound=False
"""Rows → complete matches, in machine integers: registers over a tECS.

For each place a table of groups, one for each valuation of the registers that something
further on can still read; all partial matches of a group are one union of the tECS. A row
meets the groups that agree with it on the registers an index knows, or all of them; one that
fits extends the whole union by one node, whatever number of partial matches it holds. What
an instant brings becomes visible when it closes, for nothing follows an event of its own
instant.

Invariants: terms in registers and labels are permanent or of the window; a group whose
`latest` lies before the bound is dead, and nothing it refers to is followed. Cost of a row:
constant for each group it meets. Source: Bucchi et al., CORE; Alevizos et al., Register Match
Automata.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from spaseq.nfa._clock cimport Awaited, since_of, tick
from spaseq.nfa._event cimport EventAtHand, spend, take_row
from spaseq.nfa._groups cimport NOBODY, Group, latest_of
from spaseq.nfa._instant cimport Touched, arrive
from spaseq.nfa._order cimport Rank, Span, class_of, rank_of
from spaseq.nfa._partitions cimport Partitions
from spaseq.nfa._shedding cimport held, shed
from spaseq.nfa._sums cimport Sum, sum_of
from spaseq.nfa._tables cimport CLOSING, CONJOINED, More, Relation, assign, bind, enter
from spaseq.rdf._batch cimport record_of
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport give_back, zeroed
from spaseq.rdf._window cimport WindowTerms

from spaseq.nfa.limits import NO_LIMIT, LimitReached

cdef uint32_t FEWEST_SWEPT = 256
# More than rounding to a float moves a number: of its size, and where it is hardly any.
cdef double ROUNDING = 2.0 ** -20
cdef double LEAST_FLOAT = 1e-37


cdef class AutomatonCore(Chain):
    """The state of one automaton; `tables` come from `spaseq.nfa.native`."""

    def __cinit__(
        self, tables, WindowTerms window not None, Dictionary dictionary not None, term_t truth,
        term_t falsehood,
    ):
        self.walk = Walk()
        self.truth = truth
        self.falsehood = falsehood
        self.most_groups = self.kept_groups = NO_LIMIT
        self.sweep_at = FEWEST_SWEPT
        self.tracked, self.apart = tables.tracked, tables.apart
        self.passes = not self.tracked and any(place[0] == "," for place in tables.places)
        if tables.width:
            self.partitions = Partitions(tables, self, window, dictionary)
        self.key = <term_t*>zeroed(self.cells, sizeof(term_t))

    def __dealloc__(self):
        give_back(self.key)

    # ---------------------------------------------------------------- instants

    cpdef int open(self, int64_t micros) except -1:
        """The next instant begins, at a time not before the last one's."""
        self.turn += 1
        tick(self, micros)
        self.tecs.begin(self.now, self.reach)
        return 0

    cpdef int close(self) except -1:
        """Nothing more comes at the open instant: what it brought becomes visible."""
        cdef Groups groups
        cdef uint32_t i
        if self.beginning_count:
            self.begin_put_off()
        for i in range(self.touched_count):
            groups = <Groups>self.groups_at[self.touched[i].place]
            if groups.groups[self.touched[i].group].alive:  # it may have been shed
                groups.drop(self.touched[i].group)
        self.touched_count = 0
        if self.passes:
            for i in range(self.place_count):
                if self.places[i].operator != c",":
                    continue
                if self.places[i].manner & CONJOINED:
                    self.pass_over(<Groups>self.groups_at[i])
                else:
                    self._pass_over(<Groups>self.groups_at[i])
        self.show()
        if self.chain_length:
            self.grow_old()
            if self.prefers_lazy():
                self.turn_lazy()
        if self.most_living > self.sweep_at:
            self.most_living = self._living()
            if self.most_living > self.sweep_at:
                self._sweep()
        return 0

    cdef int show(self) except -1:
        """What came to wait becomes visible."""
        cdef uint32_t i
        for i in range(self.pending_count):
            self._enter(
                self.pending[i].target,
                self.pending_values + self.pending[i].values,
                self.pending[i].node,
            )
        self.pending_count = self.value_count = 0
        return 0

    cdef uint64_t _living(self) noexcept:
        """How many groups and waiting matches there are, even if the window has passed them."""
        cdef uint64_t found = self.awaited_count
        cdef uint32_t i
        for i in range(self.place_count):
            if self.places[i].operator and self.places[i].operator != CLOSING:
                found += (<Groups>self.groups_at[i]).living
        return found

    cdef int _pass_over(self, Groups groups) except -1:
        """The groups of a `,` place have met the one instant they could be joined at.

        They stay, without members, for one more, so that who comes too late is counted; the
        complement of `latest` tells whether the window still has their registers' terms.
        """
        cdef uint32_t i = groups.living
        cdef Group* group
        while i:
            i -= 1
            group = &groups.groups[groups.alive[i]]
            if group.latest < 0:
                groups.drop(groups.alive[i])
            else:
                group.latest = ~group.latest
                group.members = NULL
                if groups.dated:
                    groups.dates[groups.alive[i]].newest = NULL
        return 0

    cdef int _enter(self, uint32_t target, const term_t* values, Node* node) except -1:
        """A partial match comes to wait."""
        cdef Groups groups = <Groups>self.groups_at[target]
        cdef uint32_t number = groups.find(values)
        cdef Group* group
        if number != NOBODY and latest_of(&groups.groups[number]) < self.bound:
            # The numbers of its registers may stand for other terms by now.
            groups.drop(number)
            number = NOBODY
        if number == NOBODY:
            number = groups.make(values)
            self.most_living += 1
        else:
            groups.spoil(number)
        group = &groups.groups[number]
        if self.places[target].operator == CLOSING:
            self._await(target, number, node)
        else:
            if (
                self.tracked and self.places[target].operator == c"," and group.members != NULL
                and not self.places[target].manner & CONJOINED
                and group.members.node.label.instant < node.label.instant
            ):
                # An event of their partition has passed over the others.
                group.members, group.latest = NULL, -1
                if groups.dated:
                    groups.dates[number].newest = NULL
            group.members = self.tecs.add(group.members, group.latest, node, self.bound)
        if node.latest > group.latest:
            group.latest = node.latest
        if groups.dated:
            groups.date(self.tecs, number, node, self.bound)
        self.places[target].reached += 1
        return 0

    cdef int _await(self, uint32_t place, uint32_t group, Node* node) except -1:
        """The matches that end in a node wait for their windows to close."""
        self.walk.begin(node, self.since_at(node))
        while self.walk.advance():
            self._put_awaited(place, group, self.walk)
            self.waited += 1
        return 0

    cdef int _put_awaited(self, uint32_t place, uint32_t group, Walk walk) except -1:
        """The match that a walk is at waits."""
        cdef uint32_t i
        cdef Awaited** head = &self.awaited[walk.start & self.times_mask]
        cdef Awaited* match = <Awaited*>self.tecs.take(
            sizeof(Awaited) + (walk.length - 1) * sizeof(Label*)
        )
        match.next = head[0]
        match.place = place
        match.group = group
        match.serial = (<Groups>self.groups_at[place]).groups[group].serial
        match.length = walk.length
        for i in range(walk.length):
            match.labels[i] = walk.path[walk.length - 1 - i]
        head[0] = match
        self.awaited_count += 1
        self.most_living += 1
        return 0

    cdef int _sweep(self) except -1:
        """Drop the groups that the window has passed over, and more if there are too many."""
        cdef Groups groups
        cdef uint32_t i, j
        cdef uint64_t living
        for i in range(self.place_count):
            if not self.places[i].operator:
                continue
            groups = <Groups>self.groups_at[i]
            j = groups.living
            while j:
                j -= 1
                if groups.groups[groups.alive[j]].latest < self.bound:
                    groups.drop(groups.alive[j])
                    self.places[i].expired += 1
        living = held(self, self.groups, -1)
        if living > self.most_groups:
            if not self.sheds:
                raise LimitReached("groups")
            shed(self, self.groups, living - self.kept_groups, -1)
            living = self.kept_groups
        self.most_living = living
        self.sweep_at = min(2 * living + FEWEST_SWEPT, self.most_groups)
        return 0

    def limit(self, uint64_t groups, uint64_t kept, uint64_t steps, bint sheds):
        """Set the bounds: groups, those that are left when some are shed, steps of an event."""
        self.most_groups, self.kept_groups, self.most_steps = groups, kept, steps
        self.steps_left, self.sheds = steps, sheds
        self.sweep_at = min(self.sweep_at, groups)
        if groups < NO_LIMIT or steps < NO_LIMIT:
            # Bounds speak of groups; and rows of an event that is taken back would stay.
            self.bounded = True
            self.join(False)

    cdef int relieve(self) except -1:
        """The event at hand ran out of steps: undo it, and let half of the groups go it met."""
        cdef uint64_t waiting = held(self, self.groups, self.spent_place)
        cdef Touched* undone
        # What is looked back at cannot be taken back.
        if not self.sheds or self.looking or not waiting:
            raise LimitReached("steps", self.spent_place)
        while self.touched_count > self.touched_before:
            self.touched_count -= 1
            undone = &self.touched[self.touched_count]
            (<Groups>self.groups_at[undone.place]).groups[undone.group].taken = -1
        self.pending_count, self.value_count = self.pending_before, self.values_before
        self.accepted_count = self.accepted_before
        shed(self, self.groups, (waiting + 1) // 2, self.spent_place)
        return 0

    # ---------------------------------------------------------------- one event

    cdef int present(
        self, EventBatch batch, uint32_t event, uint32_t stream, uint32_t file
    ) except -1:
        """The event whose rows are fed next; how much there is before it is known to `relieve`."""
        self.pending_before, self.values_before = self.pending_count, self.value_count
        self.touched_before, self.accepted_before = self.touched_count, self.accepted_count
        return EventAtHand.present(self, batch, event, stream, file)

    cdef bint waits(self, uint32_t gpm) noexcept:
        """Whether somebody waits for rows of a GPM."""
        cdef uint32_t i
        if self.lazy:
            return self.may_follow(gpm)
        if self.looking and self.is_looked_at(gpm):
            return True
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            if not self.places[self.ways[i].place].operator:
                return True
            if (<Groups>self.groups_at[self.ways[i].place]).living:
                return True
        for i in range(self.sighting_first[gpm], self.sighting_first[gpm + 1]):
            if (<Groups>self.groups_at[self.sightings[i].place]).living:
                return True
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            self.places[self.ways[i].place].early += 1
        return False

    cdef int feed(self, uint32_t gpm, const term_t* row, uint32_t width) except -1:
        """One row of a GPM over the presented event."""
        cdef uint32_t i, j
        cdef bint keyed = True
        cdef Way* way
        cdef Label* label
        take_row(self, row, width)
        # What is compared has the window's numbers; the rest gets them where the row is taken.
        for i in range(self.compared_first[gpm], self.compared_first[gpm + 1]):
            j = self.compared[i]
            self.row[j] = self.window.seek(self.batch, row[j])
        for i in range(self.required_first[gpm], self.required_first[gpm + 1]):
            keyed &= row[self.required[i]] != 0
        if self.looking and self.is_looked_at(gpm):
            self.keep(gpm, width, keyed)
        for i in range(self.sighting_first[gpm], self.sighting_first[gpm + 1]):
            if keyed or self.sightings[i].negated:
                self._see(&self.sightings[i], width)
        if not keyed:
            for j in range(self.way_first[gpm], self.way_first[gpm + 1]):
                self.places[self.ways[j].place].unkeyed += 1
            return 0
        self.since = since_of(self)
        if self.tracked or self.apart:
            self.partitions.meet(self.batch, gpm, row)
            self.since = self.partitions.since
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            way = &self.ways[i]
            label = NULL
            if self.chain_length:
                self.take_chained(way, width)
            else:
                self.meet(way, width, &label)
        return 0

    cdef int meet(self, Way* way, uint32_t width, Label** label) except -1:
        """The row at hand meets those who wait for it in one place."""
        cdef Edge* edge = &self.edges[way.edge]
        cdef Place* place = &self.places[way.place]
        cdef Groups groups
        cdef uint32_t i, group
        if edge.occurrence == NOBODY:
            return self.conjoin(way)
        if not place.operator:
            return self._take(way, NOBODY, width, label)
        groups = <Groups>self.groups_at[way.place]
        if edge.compared >= 0:
            return self._take_ordered(way, width, label)
        if edge.index:
            for i in range(edge.key_first, edge.key_end):
                self.key[i - edge.key_first] = self.row[self.numbers[i]]
            group = groups.first(edge.index, self.key)
            if group == NOBODY and groups.living:
                place.unjoined += 1
            while group != NOBODY:
                self._take(way, group, width, label)
                group = groups.next_of(edge.index, group, self.key)
        else:
            for i in range(groups.living):
                self._take(way, groups.alive[i], width, label)
        return 0

    cdef int _take_ordered(self, Way* way, uint32_t width, Label** label) except -1:
        """A row meets the groups whose registers its filter may find less, equal or greater."""
        cdef Edge* edge = &self.edges[way.edge]
        cdef Groups groups = <Groups>self.groups_at[way.place]
        cdef double value = 0, least = -INFINITY, most = INFINITY, margin
        cdef bint found = False
        cdef Rank rank
        cdef Span span
        cdef uint32_t i, group
        if self.row[edge.compared] == 0:
            return 0
        rank = rank_of(record_of(self.batch, self.row[edge.compared]), &value)
        if rank == Rank.NUMERIC and fabs(value) < INFINITY:
            margin = ROUNDING * fabs(value) + LEAST_FLOAT
            if edge.relation != Relation.LESS or edge.whole:
                most = value + margin
            if edge.relation != Relation.GREATER or edge.whole:
                least = value - margin
            if edge.whole:
                found = self._take_whole(way, width, label, least, most)
        elif rank == Rank.TEXT and edge.relation == Relation.EQUAL:
            least = most = value
        for i in range(edge.key_first, edge.key_end):
            self.key[i - edge.key_first] = self.row[self.numbers[i]]
        group = groups.first_in(edge.index, self.key, rank, least, most, &span)
        if group == NOBODY and groups.living and not found:
            self.places[way.place].unjoined += 1
        while group != NOBODY:
            self._take(way, group, width, label)
            group = groups.next_in(edge.index, &span)
        return 0

    cdef int _take_whole(
        self, Way* way, uint32_t width, Label** label, double least, double most
    ) except -1:
        """A row takes all groups below `least` or above `most`; whether there are any."""
        cdef Edge* edge = &self.edges[way.edge]
        cdef Place* place = &self.places[way.place]
        cdef Occurrence* occurrence = &self.occurrences[edge.occurrence]
        cdef Sum wanted
        wanted.alike = class_of(0, Rank.NUMERIC)
        wanted.above = edge.relation == Relation.LESS
        wanted.bound = most if wanted.above else least
        sum_of(<Groups>self.groups_at[way.place], edge.index, self.tecs, self.since, &wanted)
        if wanted.cell == NULL or not spend(self, way.place):
            return 0
        memset(self.env, 0, self.cells * sizeof(term_t))
        if occurrence.more & More.KEEPS and not self.row_kept:
            self.keep_row(width)
        if bind(self, occurrence, self.row, self.env) < 0:
            return _raised()
        self.label_row(way, width, label)
        place.visited += 1
        place.joined += 1
        arrive(self, edge, self.tecs.extend(label[0], wanted.cell, wanted.latest))
        return 1

    cdef int _see(self, Sighting* sighting, uint32_t width) except -1:
        """A row that a guard looks for: it ends the groups it agrees with."""
        cdef Groups groups = <Groups>self.groups_at[sighting.place]
        cdef uint32_t i, group
        if sighting.index:
            for i in range(sighting.key_first, sighting.key_end):
                self.key[i - sighting.key_first] = self.row[self.numbers[i]]
            group = groups.first(sighting.index, self.key)
            while group != NOBODY:
                self._end(sighting, groups, group, width)
                group = groups.next_of(sighting.index, group, self.key)
        else:
            for i in range(groups.living):
                self._end(sighting, groups, groups.alive[i], width)
        return 0

    cdef int _end(
        self, Sighting* sighting, Groups groups, uint32_t number, uint32_t width
    ) except -1:
        """The partial matches of a group end with the instant, if a guard's row fits them."""
        cdef Group* group = &groups.groups[number]
        cdef Occurrence* occurrence = &self.occurrences[sighting.occurrence]
        cdef int status
        if group.taken == self.now or group.latest < since_of(self):
            return 0
        if not spend(self, sighting.place):
            return 0
        self.remember(self.env, &self.places[sighting.place], groups, number)
        if occurrence.more & More.KEEPS and not self.row_kept:
            self.keep_row(width)
        status = bind(self, occurrence, self.row, self.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        if occurrence.more & More.ASSIGNS and not assign(
            self, sighting.occurrence, self.env, self.row + width
        ):
            return 0
        status = self.conditions.hold(self.conditions.context, sighting.occurrence, self.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        self.places[sighting.place].ended += 1
        return self.touch(sighting.place, number)

    cdef int _take(self, Way* way, uint32_t number, uint32_t width, Label** label) except -1:
        """A group and a row that its place may take."""
        cdef Edge* edge = &self.edges[way.edge]
        cdef Place* place = &self.places[way.place]
        cdef Occurrence* occurrence = &self.occurrences[edge.occurrence]
        cdef instant_t bound = self.since
        cdef Groups groups
        cdef Group* group = NULL
        cdef int status
        place.visited += 1
        if number != NOBODY:
            groups = <Groups>self.groups_at[way.place]
            group = &groups.groups[number]
            if latest_of(group) < bound:
                place.outside += 1
                return 0
            if not spend(self, way.place):
                return 0
            self.remember(self.env, place, groups, number)
        else:
            if self.now < bound:
                return 0
            memset(self.env, 0, self.cells * sizeof(term_t))
        enter(self, edge, self.env)
        if occurrence.more & More.KEEPS and not self.row_kept:
            self.keep_row(width)
        status = bind(self, occurrence, self.row, self.env)
        if status <= 0:
            occurrence.disagreed += 1
            return _raised() if status < 0 else 0
        if occurrence.more & More.ASSIGNS and not assign(
            self, edge.occurrence, self.env, self.row + width
        ):
            return 0
        status = self.conditions.hold(self.conditions.context, edge.occurrence, self.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        if group != NULL and (
            group.latest < 0 or self.tracked and place.operator == c","
            and not place.manner & CONJOINED
            and group.members.node.label.instant < self.partitions.before
        ):
            place.passed_over += 1
            return 0
        if place.manner:
            return self.take_guarded(way, number, width, label)
        self.label_row(way, width, label)
        place.joined += 1
        if group == NULL:
            return arrive(self, edge, self.tecs.extend(label[0], NULL, self.now))
        if place.operator == c";" and group.taken != self.now:
            self.touch(way.place, number)
        return arrive(self, edge, self.tecs.extend(label[0], group.members, group.latest))

    # ---------------------------------------------------------------- for Python

    cdef int skip_past(self, uint32_t count) except -1:
        """Only what starts after the first so many complete matches may still match."""
        cdef Node* node
        cdef uint32_t i
        for i in range(count):
            node = self.accepted[i]
            if node.latest < self.since_at(node):
                continue
            if self.apart:
                self.partitions.skip_at(node.label)
            else:
                self.skip()
        return 0

    cpdef int skip(self) except -1:
        """Only what starts after the present instant may still match."""
        self.skipped = self.now + 1
        return 0

    @property
    def complete(self):
        """How many last steps of complete matches there are to `take`."""
        return self.accepted_count


cdef int _raised() except -1:
    """Hand on the Python exception that a filter left."""
    return -1
