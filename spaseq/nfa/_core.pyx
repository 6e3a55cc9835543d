# cython: language_level=3, boundscheck=False, wraparound=False
"""Rows → complete matches, in machine integers: registers over a tECS.

For each place a table of groups, one for each valuation of the registers that something
further on can still read; all partial matches of a group are one union of the tECS. A row
meets the groups that agree with it on the registers an index knows, or all of them; one that
fits extends the whole union by one node, whatever number of partial matches it holds. What
an instant brings becomes visible when it closes, for nothing follows an event of its own
instant.

Runs the automata that `spaseq.nfa.native.unfit` lets through.

Invariants: terms in registers and labels are permanent or of the window; a group whose
`latest` lies before the bound is dead, and nothing it refers to is followed. Cost of a row:
constant for each group it meets. Source: Bucchi et al., CORE; Alevizos et al., Register Match
Automata.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

from spaseq.nfa._clock cimport since_of, tick
from spaseq.nfa._groups cimport NOBODY, Group, latest_of, values_of
from spaseq.nfa._order cimport Rank, Registers, rank_of
from spaseq.nfa._shedding cimport held, shed
from spaseq.nfa._tables cimport CLOSING
from spaseq.rdf._batch cimport record_of
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport give_back, resized, zeroed
from spaseq.rdf._terms cimport LOCAL

from spaseq.nfa.limits import NO_LIMIT, LimitReached

cdef uint32_t FEWEST_SWEPT = 256
# More than rounding to a float moves a number: of its size, and where it is hardly any.
cdef double ROUNDING = 2.0 ** -20
cdef double LEAST_FLOAT = 1e-37


cdef class AutomatonCore(Clock):
    """The state of one automaton; `tables` come from `spaseq.nfa.native`."""

    def __cinit__(
        self, tables, WindowTerms window not None, Dictionary dictionary not None, term_t truth,
        term_t falsehood,
    ):
        cdef uint32_t i
        self.tecs = Tecs()
        self.walk = Walk()
        self.window = window
        self.truth = truth
        self.falsehood = falsehood
        self.cells = tables.cells
        self.most_groups = self.kept_groups = self.most_steps = NO_LIMIT
        self.sweep_at = FEWEST_SWEPT
        self.env = <term_t*>zeroed(self.cells, sizeof(term_t))
        self.key = <term_t*>zeroed(self.cells, sizeof(term_t))
        self.tracked, self.apart = tables.tracked, tables.apart
        if tables.width:
            self.partitions = Partitions(tables, self, window, dictionary)
        kept = Registers(window, dictionary)
        self.groups = [
            None if operator is None else Groups(end - first, indexes, kept)
            for operator, first, end, indexes, _ in tables.places
        ]

    def __dealloc__(self):
        give_back(self.env)
        give_back(self.row)
        give_back(self.key)
        give_back(self.pending)
        give_back(self.pending_values)
        give_back(self.touched)
        give_back(self.accepted)

    # ---------------------------------------------------------------- instants

    cpdef int open(self, int64_t micros) except -1:
        """The next instant begins, at a time not before the last one's."""
        self.turn += 1
        tick(self, micros)
        self.tecs.begin(self.now, self.bound)
        return 0

    cpdef int close(self) except -1:
        """Nothing more comes at the open instant: what it brought becomes visible."""
        cdef Groups groups
        cdef uint32_t i
        cdef uint64_t living
        for i in range(self.touched_count):
            groups = <Groups>self.groups[self.touched[i].place]
            if groups.groups[self.touched[i].group].alive:  # it may have been shed
                groups.drop(self.touched[i].group)
        self.touched_count = 0
        for i in range(self.place_count):
            if self.places[i].operator == c"," and not self.tracked:
                self._pass_over(<Groups>self.groups[i])
        for i in range(self.pending_count):
            self._enter(
                self.pending[i].target,
                self.pending_values + self.pending[i].values,
                self.pending[i].node,
            )
        self.pending_count = self.value_count = 0
        living = self.awaited_count
        for i in range(self.place_count):
            if self.places[i].operator and self.places[i].operator != CLOSING:
                living += (<Groups>self.groups[i]).living
        if living > self.sweep_at:
            self._sweep()
        return 0

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
        return 0

    cdef int _enter(self, uint32_t target, const term_t* values, Node* node) except -1:
        """A partial match comes to wait."""
        cdef Groups groups = <Groups>self.groups[target]
        cdef uint32_t number = groups.find(values)
        cdef Group* group
        if number != NOBODY and latest_of(&groups.groups[number]) < self.bound:
            # The numbers of its registers may stand for other terms by now.
            groups.drop(number)
            number = NOBODY
        if number == NOBODY:
            number = groups.make(values)
        group = &groups.groups[number]
        if self.places[target].operator == CLOSING:
            self._await(target, number, node)
        else:
            if (
                self.tracked and self.places[target].operator == c"," and group.members != NULL
                and group.members.node.label.instant < node.label.instant
            ):
                # An event of their partition has passed over the others.
                group.members, group.latest = NULL, -1
            group.members = self.tecs.add(group.members, group.latest, node, self.bound)
        if node.latest > group.latest:
            group.latest = node.latest
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
        match.serial = (<Groups>self.groups[place]).groups[group].serial
        match.length = walk.length
        for i in range(walk.length):
            match.labels[i] = walk.path[walk.length - 1 - i]
        head[0] = match
        self.awaited_count += 1
        return 0

    cdef int _sweep(self) except -1:
        """Drop the groups that the window has passed over, and more if there are too many."""
        cdef Groups groups
        cdef uint32_t i, j
        cdef uint64_t living
        for i in range(self.place_count):
            if not self.places[i].operator:
                continue
            groups = <Groups>self.groups[i]
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
        self.sweep_at = min(2 * living + FEWEST_SWEPT, self.most_groups)
        return 0

    def limit(self, uint64_t groups, uint64_t kept, uint64_t steps, bint sheds):
        """Set the bounds: groups, those that are left when some are shed, steps of an event."""
        self.most_groups, self.kept_groups, self.most_steps = groups, kept, steps
        self.sheds = sheds
        self.sweep_at = min(self.sweep_at, groups)

    cdef int relieve(self) except -1:
        """The event at hand ran out of steps: undo it, and let half of the groups go it met."""
        cdef uint64_t waiting = held(self, self.groups, self.spent_place)
        cdef Touched* undone
        if not self.sheds or not waiting:
            raise LimitReached("steps", self.spent_place)
        while self.touched_count > self.touched_before:
            self.touched_count -= 1
            undone = &self.touched[self.touched_count]
            (<Groups>self.groups[undone.place]).groups[undone.group].taken = -1
        self.pending_count, self.value_count = self.pending_before, self.values_before
        self.accepted_count = self.accepted_before
        shed(self, self.groups, (waiting + 1) // 2, self.spent_place)
        return 0

    # ---------------------------------------------------------------- one event

    cdef int present(
        self, EventBatch batch, uint32_t event, uint32_t stream, uint32_t file
    ) except -1:
        """The event whose rows are fed next."""
        self.turn += 1
        self.steps_left, self.spent = self.most_steps, False
        self.pending_before, self.values_before = self.pending_count, self.value_count
        self.touched_before, self.accepted_before = self.touched_count, self.accepted_count
        self.batch = batch
        self.event.micros = batch.events[event].micros
        self.event.line = batch.events[event].line
        self.event.ordinal = batch.events[event].ordinal
        self.event.domain = batch.events[event].domain
        self.event.instant = self.now
        self.event.stream = stream
        self.event.file = file
        self.raw_name = batch.events[event].name
        self.raw_stamp = 0 if self.event.domain else batch.events[event].stamp
        self.event_kept = False
        return 0

    cdef int _keep_row(self, uint32_t width) except -1:
        """The row, and what a label says of its event, outlive their batch."""
        cdef uint32_t i
        for i in range(width):
            if self.given[i] & LOCAL:
                self.row[i] = self.window.keep(self.batch, self.given[i])
        self.row_kept = True
        if self.event_kept:
            return 0
        self.event.name = self.window.keep(self.batch, self.raw_name) if self.raw_name else 0
        self.event.stamp = self.window.keep(self.batch, self.raw_stamp) if self.raw_stamp else 0
        self.event_kept = True
        return 0

    cdef int _settle(self, Occurrence* occurrence) noexcept:
        """Registers that hold terms of the row's batch take the numbers these are kept by."""
        cdef uint32_t i
        cdef Binding* binding
        for i in range(occurrence.binding_first, occurrence.binding_end):
            binding = &self.bindings[i]
            if self.env[binding.register] & LOCAL:
                self.env[binding.register] = self.row[binding.column]
            if binding.last != NOBODY and self.env[binding.last] & LOCAL:
                self.env[binding.last] = self.row[binding.column]
        return 0

    cdef bint waits(self, uint32_t gpm) noexcept:
        """Whether somebody waits for rows of a GPM."""
        cdef uint32_t i
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            if not self.places[self.ways[i].place].operator:
                return True
            if (<Groups>self.groups[self.ways[i].place]).living:
                return True
        for i in range(self.sighting_first[gpm], self.sighting_first[gpm + 1]):
            if (<Groups>self.groups[self.sightings[i].place]).living:
                return True
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            self.places[self.ways[i].place].early += 1
        return False

    cdef int feed(self, uint32_t gpm, const term_t* row, uint32_t width) except -1:
        """One row of a GPM over the presented event."""
        cdef uint32_t i, j, group
        cdef bint keyed = True
        cdef Way* way
        cdef Edge* edge
        cdef Place* place
        cdef Groups groups
        cdef Label* label
        if width > self.row_room:
            self.row = <term_t*>_longer(self.row, 2 * width, sizeof(term_t))
            self.row_room = 2 * width
        self.given = row
        self.row_kept = False
        memcpy(self.row, row, width * sizeof(term_t))
        # What is compared has the window's numbers; the rest gets them where the row is taken.
        for i in range(self.compared_first[gpm], self.compared_first[gpm + 1]):
            j = self.compared[i]
            self.row[j] = self.window.seek(self.batch, row[j])
        for i in range(self.required_first[gpm], self.required_first[gpm + 1]):
            keyed &= row[self.required[i]] != 0
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
            edge = &self.edges[way.edge]
            place = &self.places[way.place]
            label = NULL
            if not place.operator:
                self._take(way, NOBODY, width, &label)
                continue
            groups = <Groups>self.groups[way.place]
            if edge.compared >= 0:
                self._take_ordered(way, width, &label)
            elif edge.index:
                for j in range(edge.key_first, edge.key_end):
                    self.key[j - edge.key_first] = self.row[self.numbers[j]]
                group = groups.first(edge.index, self.key)
                if group == NOBODY and groups.living:
                    place.unjoined += 1
                while group != NOBODY:
                    self._take(way, group, width, &label)
                    group = groups.next_of(edge.index, group, self.key)
            else:
                for j in range(groups.living):
                    self._take(way, groups.alive[j], width, &label)
        return 0

    cdef int _take_ordered(self, Way* way, uint32_t width, Label** label) except -1:
        """A row meets the groups whose registers its filter may find less, or greater."""
        cdef Edge* edge = &self.edges[way.edge]
        cdef Groups groups = <Groups>self.groups[way.place]
        cdef double value = 0, least = -INFINITY, most = INFINITY
        cdef Rank rank
        cdef uint32_t i, found, group = NOBODY
        if self.row[edge.compared] == 0:
            return 0
        rank = rank_of(record_of(self.batch, self.row[edge.compared]), &value)
        if rank == Rank.NUMERIC and edge.greater and fabs(value) < INFINITY:
            most = value + ROUNDING * fabs(value) + LEAST_FLOAT
        elif rank == Rank.NUMERIC and fabs(value) < INFINITY:
            least = value - ROUNDING * fabs(value) - LEAST_FLOAT
        for i in range(edge.key_first, edge.key_end):
            self.key[i - edge.key_first] = self.row[self.numbers[i]]
        while True:
            found = groups.first_in(edge.index, self.key, rank, least, group)
            if found == NOBODY or not groups.within(edge.index, found, self.key, rank, most):
                break
            group = found
            self._take(way, group, width, label)
        if group == NOBODY and groups.living:
            self.places[way.place].unjoined += 1
        return 0

    cdef int _see(self, Sighting* sighting, uint32_t width) except -1:
        """A row that a guard looks for: it ends the groups it agrees with."""
        cdef Groups groups = <Groups>self.groups[sighting.place]
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
        cdef int status
        if group.taken == self.now or group.latest < since_of(self):
            return 0
        if self.steps_left == 0:
            self.spent, self.spent_place = True, sighting.place
            return 0
        self.steps_left -= 1
        self._environment(&self.places[sighting.place], groups, number)
        if not self._bind(&self.occurrences[sighting.occurrence], width):
            return 0
        status = self.conditions.hold(self.conditions.context, sighting.occurrence, self.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        self.places[sighting.place].ended += 1
        return self._touch(sighting.place, number)

    cdef bint _environment(self, Place* place, Groups groups, uint32_t number) noexcept:
        """What the partial matches of a group remember."""
        cdef term_t* values = values_of(groups, number)
        cdef uint32_t i
        memset(self.env, 0, self.cells * sizeof(term_t))
        for i in range(place.live_first, place.live_end):
            self.env[self.numbers[i]] = values[i - place.live_first]
        return True

    cdef int _take(self, Way* way, uint32_t number, uint32_t width, Label** label) except -1:
        """A group and a row that its place may take."""
        cdef Edge* edge = &self.edges[way.edge]
        cdef Place* place = &self.places[way.place]
        cdef Occurrence* occurrence = &self.occurrences[edge.occurrence]
        cdef instant_t bound = self.since
        cdef Groups groups
        cdef Group* group = NULL
        cdef Effect* effect
        cdef uint32_t i
        cdef int status
        place.visited += 1
        if number != NOBODY:
            groups = <Groups>self.groups[way.place]
            group = &groups.groups[number]
            if latest_of(group) < bound:
                place.outside += 1
                return 0
            if self.steps_left == 0:
                self.spent, self.spent_place = True, way.place
                return 0
            self.steps_left -= 1
            self._environment(place, groups, number)
        else:
            if self.now < bound:
                return 0
            memset(self.env, 0, self.cells * sizeof(term_t))
        for i in range(edge.effect_first, edge.effect_end):
            effect = &self.effects[i]
            if effect.change == Change.FORGET:
                self.env[effect.register] = 0
            elif effect.change == Change.COPY:
                self.env[effect.register] = self.env[effect.other]
            elif effect.change == Change.FIRST:
                self.env[effect.register] = 1
            elif self.env[effect.register] < effect.other:
                self.env[effect.register] += 1
        if not self._bind(occurrence, width):
            occurrence.disagreed += 1
            return 0
        status = self.conditions.hold(self.conditions.context, edge.occurrence, self.env)
        if status <= 0:
            return _raised() if status < 0 else 0
        if group != NULL and (
            group.latest < 0 or self.tracked and place.operator == c","
            and group.members.node.label.instant < self.partitions.before
        ):
            place.passed_over += 1
            return 0
        if not self.row_kept:
            self._keep_row(width)
        self._settle(occurrence)
        if label[0] == NULL:
            label[0] = self.tecs.label(width)
            memcpy(label[0], &self.event, sizeof(Label) - sizeof(term_t))
            label[0].place = way.place
            label[0].position = way.position
            label[0].width = width
            if width:
                memcpy(label[0].row, self.row, width * sizeof(term_t))
        place.joined += 1
        if group == NULL:
            return self._complete(edge, self.tecs.extend(label[0], NULL, self.now))
        if place.operator == c";" and group.taken != self.now:
            self._touch(way.place, number)
        return self._complete(edge, self.tecs.extend(label[0], group.members, group.latest))

    cdef int _touch(self, uint32_t place, uint32_t number) except -1:
        """A `;` place has taken a group: it goes when the instant closes."""
        (<Groups>self.groups[place]).groups[number].taken = self.now
        if self.touched_count == self.touched_room:
            self.touched_room = 2 * self.touched_room + 16
            self.touched = <Touched*>_longer(self.touched, self.touched_room, sizeof(Touched))
        self.touched[self.touched_count].place = place
        self.touched[self.touched_count].group = number
        self.touched_count += 1
        return 0

    cdef bint _bind(self, Occurrence* occurrence, uint32_t width) noexcept:
        """Bind the row's variables in the environment; False where one disagrees."""
        cdef uint32_t i
        cdef Binding* binding
        cdef term_t value
        for i in range(occurrence.binding_first, occurrence.binding_end):
            binding = &self.bindings[i]
            value = self.row[binding.column]
            if value == 0:
                continue
            if self.env[binding.register] == 0:
                self.env[binding.register] = value
                if binding.last != NOBODY:
                    self.env[binding.last] = value
            elif self.env[binding.register] != value:
                return False
        for i in range(self.first_count):
            self.env[self.firsts[2 * i + 1]] = (
                self.truth if self.env[self.firsts[2 * i]] == 1 else self.falsehood
            )
        return True

    cdef int _complete(self, Edge* edge, Node* node) except -1:
        """Follow the links of an edge that was taken."""
        cdef uint32_t i, j
        cdef Link* link
        cdef term_t number
        cdef bint open
        for i in range(edge.link_first, edge.link_end):
            link = &self.links[i]
            open = True
            for j in range(link.bound_first, link.bound_end):
                number = self.env[self.bounds[j].register]
                open &= self.bounds[j].least <= number < self.bounds[j].below
            if open and link.target >= 0:
                self._wait(link.target, node)
            elif open:
                self._accept(node)
        return 0

    cdef int _accept(self, Node* node) except -1:
        """The node ends complete matches."""
        if self.accepted_count == self.accepted_room:
            self.accepted_room = 2 * self.accepted_room + 16
            self.accepted = <Node**>_longer(self.accepted, self.accepted_room, sizeof(Node*))
        self.accepted[self.accepted_count] = node
        self.accepted_count += 1
        return 0

    cdef int _wait(self, uint32_t target, Node* node) except -1:
        """The partial match waits in a place when the instant has closed."""
        cdef Place* place = &self.places[target]
        cdef uint32_t i
        if self.pending_count == self.pending_room:
            self.pending_room = 2 * self.pending_room + 16
            self.pending = <Pending*>_longer(self.pending, self.pending_room, sizeof(Pending))
        if self.value_count + self.cells > self.value_room:
            self.value_room = 2 * (self.value_room + self.cells)
            self.pending_values = <term_t*>_longer(
                self.pending_values, self.value_room, sizeof(term_t)
            )
        self.pending[self.pending_count].target = target
        self.pending[self.pending_count].values = self.value_count
        self.pending[self.pending_count].node = node
        self.pending_count += 1
        for i in range(place.live_first, place.live_end):
            self.pending_values[self.value_count] = self.env[self.numbers[i]]
            self.value_count += 1
        return 0

    # ---------------------------------------------------------------- for Python

    cdef instant_t since_at(self, const Node* node) noexcept:
        """The least start of the matches that end in a node."""
        return self.partitions.since_at(node.label) if self.apart else since_of(self)

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


cdef void* _longer(void* block, size_t count, size_t size) except NULL:
    cdef void* moved = resized(block, count * size)
    if moved == NULL:
        raise MemoryError("no room for another partial match")
    return moved
