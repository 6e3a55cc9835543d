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

from spaseq.nfa.native._window cimport since_of
from spaseq.nfa.native._event cimport compare_row, spend
from spaseq.nfa.native._groups cimport NOBODY, Group, drop, group_at, latest_of
from spaseq.nfa.native._instant cimport Touched, bit_of_place, touch
from spaseq.nfa.native._partitions cimport Partitions
from spaseq.nfa.native._shedding cimport held, shed
from spaseq.nfa.native._program cimport CLOSING, CONJOINED, More, assign, bind
from spaseq.nfa.native._tecs cimport instant_t
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._effort cimport bound_effort
from spaseq.rdf._memory cimport give_back, zeroed
from spaseq.rdf._window_terms cimport WindowTerms

from spaseq.rdf.limits import NO_LIMIT, LimitReached

cdef uint32_t FEWEST_SWEPT = 256


cdef class AutomatonCore(Chain):
    """The state of one automaton; `tables` come from `spaseq.nfa.native.tables`."""

    def __cinit__(
        self, tables, WindowTerms window not None, Dictionary dictionary not None, term_t truth,
        term_t falsehood,
    ):
        self.truth = truth
        self.falsehood = falsehood
        self.most_groups = self.kept_groups = NO_LIMIT
        self.sweep_at = FEWEST_SWEPT
        self.tracked, self.apart = tables.tracked, tables.apart
        self.adjacent = tables.adjacent
        self.passes = not self.tracked and any(place[0] == "," for place in tables.places)
        self.concerned = <uint8_t*>zeroed(self.gpm_count, sizeof(uint8_t))
        self.plain = True
        for gpm in range(self.gpm_count):
            self.concerned[<uint32_t>gpm] = (
                self.looking or self.tracked or self.apart or self.chain_length
                or self.required_first[gpm] < self.required_first[gpm + 1]
                or self.sighting_first[gpm] < self.sighting_first[gpm + 1]
            )
            self.plain &= not self.concerned[<uint32_t>gpm]
        if tables.width:
            self.partitions = Partitions(tables, self, window, dictionary)

    def __dealloc__(self):
        give_back(self.concerned)

    # ---------------------------------------------------------------- instants

    cdef int end_instant(self) except -1 nogil:
        """Nothing more comes at the open instant: what it brought becomes visible."""
        cdef uint32_t i
        if self.beginning_count:
            self.begin_put_off()
        for i in range(self.touched_count):
            self._take_leave(<Groups>self.groups_at[self.touched[i].place], &self.touched[i])
        self.touched_count = 0
        if self.passes:
            for i in range(self.place_count):
                if self.places[i].operator == c",":
                    self._pass_over_place(<Groups>self.groups_at[i], i)
        self.show(0)
        if self.chain_length:
            self.grow_old()
            if self.prefers_lazy():
                self.turn_lazy()
        if self.most_living > self.sweep_at:
            self.most_living = self._living()
            if self.most_living > self.sweep_at:
                self._sweep()
        return 0

    cdef int _take_leave(self, Groups groups, const Touched* touched) except -1 nogil:
        """A group goes that has been taken, or that the window has passed over."""
        cdef Group* group = group_at(groups, touched.group)
        if not group.alive:  # it has been shed
            return 0
        self.places[touched.place].expired += latest_of(group) < self.bound
        return drop(groups, touched.group)

    cdef int _pass_over_place(self, Groups groups, uint32_t place) except -1 nogil:
        if self.places[place].manner & CONJOINED:
            return self.pass_over(groups)
        return self._pass_over(groups)

    cdef uint64_t _living(self) noexcept nogil:
        """How many groups and waiting matches there are, even if the window has passed them."""
        cdef uint64_t found = self.awaited_count
        cdef uint32_t i
        for i in range(self.place_count):
            if self.places[i].operator and self.places[i].operator != CLOSING:
                found += (<Groups>self.groups_at[i]).living
        return found

    cdef int _pass_over(self, Groups groups) except -1 nogil:
        """The groups of a `,` place have met the one instant they could be joined at.

        They stay, without members, for one more, so that who comes too late is counted; the
        complement of `latest` tells whether the window still has their registers' terms.
        """
        cdef uint32_t i = groups.living
        cdef Group* group
        while i:
            i -= 1
            group = group_at(groups, groups.alive[i])
            if group.latest < 0:
                drop(groups, groups.alive[i])
            else:
                group.latest = ~group.latest
                group.members = 0
                if groups.dated:
                    groups.dates[groups.alive[i]].newest = NULL
        return 0

    cdef int _sweep(self) except -1 nogil:
        """Drop the groups that the window has passed over, and more if there are too many."""
        cdef uint32_t i
        cdef uint64_t living
        for i in range(self.place_count):
            if self.places[i].operator:
                self._sweep_place(<Groups>self.groups_at[i], i)
        living = held(self, self.groups, -1)
        if living > self.most_groups:
            if not self.sheds:
                with gil:
                    raise LimitReached("groups")
            shed(self, self.groups, living - self.kept_groups, -1)
            living = self.kept_groups
        self.most_living = living
        self.sweep_at = min(2 * living + FEWEST_SWEPT, self.most_groups)
        return 0

    cdef int _sweep_place(self, Groups groups, uint32_t place) except -1 nogil:
        cdef uint32_t i = groups.living
        while i:
            i -= 1
            if group_at(groups, groups.alive[i]).latest < self.bound:
                drop(groups, groups.alive[i])
                self.places[place].expired += 1
        return 0

    def limit(self, uint64_t groups, uint64_t kept, uint64_t steps, bint sheds):
        """Set the bounds: groups, those that are left when some are shed, steps of an event."""
        self.most_groups, self.kept_groups, self.sheds = groups, kept, sheds
        bound_effort(&self.effort, steps)
        self.sweep_at = min(self.sweep_at, groups)
        if groups < NO_LIMIT or steps < NO_LIMIT:
            # Bounds speak of groups; and rows of an event that is taken back would stay.
            self.bounded = True
            self.join(False)

    cdef int relieve(self) except -1 nogil:
        """The event at hand ran out of steps: undo it, and let half of the groups go it met."""
        cdef uint64_t waiting = held(self, self.groups, self.spent_place)
        cdef Touched* undone
        # What is looked back at cannot be taken back.
        if not self.sheds or self.looking or not waiting:
            with gil:
                raise LimitReached("steps", self.spent_place)
        while self.touched_count > self.touched_before:
            self.touched_count -= 1
            undone = &self.touched[self.touched_count]
            group_at(<Groups>self.groups_at[undone.place], undone.group).taken = -1
        self.pending_count, self.value_count = self.pending_before, self.values_before
        self.accepted_count = self.accepted_before
        shed(self, self.groups, (waiting + 1) // 2, self.spent_place)
        return 0

    # ---------------------------------------------------------------- one event

    cdef uint64_t places_of(self, uint32_t gpm) noexcept nogil:
        """The places where those wait who may wait for rows of a GPM, see `bit_of_place`."""
        cdef uint32_t i
        cdef uint64_t found = 0
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            found |= bit_of_place(self.ways[i].place)
        for i in range(self.sighting_first[gpm], self.sighting_first[gpm + 1]):
            found |= bit_of_place(self.sightings[i].place)
        for i in range(self.looks[gpm].first, self.looks[gpm].end):
            found |= bit_of_place(self.lookers[i])
        return found

    cdef bint _is_awaited(self, uint32_t gpm) noexcept nogil:
        cdef uint32_t i
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
        return False

    cdef int came_early(self, uint32_t gpm, uint64_t events) noexcept nogil:
        """Events came when nobody waited for rows of a GPM."""
        cdef uint32_t i
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            self.places[self.ways[i].place].early += events
        return 0

    cdef bint unsteady(self) noexcept nogil:
        """Whether an event without rows may change more than the time."""
        return self.adjacent or self.counted or self.chain_length != 0

    cdef uint32_t list_ways(self, uint32_t gpm, Way** ways) noexcept nogil:
        """List the ways of a GPM to places where anybody waits, or may begin; how many."""
        cdef uint32_t i, found = 0
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            if not self.ways[i].at.operator or (
                (<Groups>self.groups_at[self.ways[i].place]).living
            ):
                ways[found] = &self.ways[i]
                found += 1
        return found

    cdef int _feed_each(
        self, const Audience* those, const term_t* row, uint32_t width
    ) except -1 nogil:
        """The row at hand, where that of some GPM concerns others than those who wait for it."""
        cdef uint32_t i
        cdef bint concerned = False
        for i in range(those.count):
            concerned |= self.concerned[those.gpms[i]]
        if concerned:
            for i in range(those.count):
                self._feed_one(those.gpms[i], row, width)
            return 0
        self.since, self.measured = since_of(self), -1
        return self.meet_all(those.ways, those.way_count, width, NULL)

    cdef int _feed_one(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil:
        """The row at hand, where it may concern others than those who wait for it."""
        cdef uint32_t i
        cdef Way* way
        if not self.row_kept:
            compare_row(self, gpm)
        self.since = since_of(self)
        if not self._concern(gpm, row, width):
            return 0
        self.measured = -1
        for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
            way = &self.ways[i]
            if self.chain_length:
                self.take_chained(way, width)
            else:
                self.meet_all(&way, 1, width, NULL)
        return 0

    cdef bint _concern(self, uint32_t gpm, const term_t* row, uint32_t width) except -1 nogil:
        """Who looks back, guards and partitions are told of a row; False: no step may take it."""
        cdef uint32_t i
        cdef bint keyed = True
        for i in range(self.required_first[gpm], self.required_first[gpm + 1]):
            keyed &= row[self.required[i]] != 0
        if self.looking and self.is_looked_at(gpm):
            self.keep(gpm, width, keyed)
        for i in range(self.sighting_first[gpm], self.sighting_first[gpm + 1]):
            if keyed or self.sightings[i].negated:
                self._see(
                    &self.sightings[i], width, <Groups>self.groups_at[self.sightings[i].place]
                )
        if not keyed:
            for i in range(self.way_first[gpm], self.way_first[gpm + 1]):
                self.places[self.ways[i].place].unkeyed += 1
            return False
        if self.tracked or self.apart:
            self.partitions.meet(self.batch, gpm, row)
            self.since = self.partitions.since
        return True

    cdef int _see(self, Sighting* sighting, uint32_t width, Groups groups) except -1 nogil:
        """A row that a guard looks for: it ends the groups it agrees with."""
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
    ) except -1 nogil:
        """The partial matches of a group end with the instant, if a guard's row fits them."""
        cdef Group* group = group_at(groups, number)
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
        return touch(self, sighting.place, number, group)

    cdef int skip_past(self, uint32_t count) except -1 nogil:
        """Only what starts after the first so many complete matches may still match."""
        cdef Node* node
        cdef uint32_t i
        for i in range(count):
            node = self.accepted[i]
            if node.latest < self.since_at(node):
                continue
            if self.apart:
                self.partitions.skip_at(node.label, self.now + 1)
            else:
                self.skipped = self.now + 1
        return 0

    # ---------------------------------------------------------------- for Python

    def open(self, int64_t micros):
        """See `begin_instant`."""
        self.begin_instant(micros)

    def close(self):
        """See `end_instant`."""
        self.end_instant()

    def skip(self, instant_t first):
        """Only what starts at an instant or later may still match."""
        self.skipped = max(self.skipped, first)

    @property
    def complete(self):
        """How many last steps of complete matches there are to `take`."""
        return self.accepted_count


cdef int _raised() except -1 nogil:
    """Hand on the Python exception that a filter left."""
    return -1
