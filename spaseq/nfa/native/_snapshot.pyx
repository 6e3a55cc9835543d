# cython: language_level=3, boundscheck=False, wraparound=False
"""The state of a compiled automaton, part by part: to look at, to save, to put back.

Parts are known by their addresses, valid until the next event. What the window has passed
over is left out, and never followed.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.nfa.native._lazy_join cimport Weights
from spaseq.nfa.native._window cimport Awaited
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._groups cimport (
    NOBODY,
    Dates,
    Group,
    Groups,
    Stretch,
    find,
    group_at,
    make,
    values_of,
)
from spaseq.nfa.native._instant cimport touch, wait
from spaseq.nfa.native._joins cimport Beginning
from spaseq.nfa.native._row_buffer cimport KeptRows, rows_add, rows_forget
from spaseq.nfa.native._program cimport CLOSING, Place, Way
from spaseq.nfa.native._tecs cimport (
    UNION,
    Cell,
    Label,
    Node,
    added,
    cell_of,
    extended,
    instant_t,
    piece_of,
    start_of,
    union_t,
)
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._terms cimport WINDOWED, term_t


cdef class CoreParts:
    """The parts of one core; `dictionary` has the permanent terms."""

    def __cinit__(self, AutomatonCore core not None, Dictionary dictionary not None):
        self.core = core
        self.dictionary = dictionary

    cpdef object term(self, term_t number):
        """The pyoxigraph term of a number that a register or a label holds; None for 0."""
        if number & WINDOWED:
            return self.core.window.term(number)
        return self.dictionary.term(number) if number else None

    def fields(self, size_t address):
        """What the label at an address says: the edge taken, the event, the row.

        That is (place, position of its edge, instant, micros, whether a date, line, stream,
        file, ordinal, graph's name, literal of a numeric time, which pattern of the edge, of how
        many events, terms), terms by their numbers.
        """
        cdef Label* label = <Label*>address
        cdef uint32_t place = self.core.place_count - 1
        cdef const Place* places = self.core.places
        # Those where matches wait come last, and no edges are theirs.
        while places[place].operator == CLOSING or places[place].edge_first > label.edge:
            place -= 1
        return (
            place, label.edge - places[place].edge_first, label.instant, label.micros,
            label.domain, label.line, label.stream, label.file, label.ordinal, label.name,
            label.stamp, label.part, label.parts, [label.row[i] for i in range(label.width)],
        )

    def label(self, size_t address):
        """The same with pyoxigraph terms or None, and without how many events its step has."""
        *event, name, stamp, part, _, row = self.fields(address)
        return (*event, self.term(name), self.term(stamp), part, tuple(map(self.term, row)))

    def clock(self):
        """(now, bound, first instant of the timestamp, its time, times, bounds).

        Times are what is known of each instant inside the window: its time, or the number of its
        events. Bounds are the first instant of the window as it was then, of each instant that
        somebody may look back to, or the first of these; none where that is one window back.
        """
        cdef instant_t i
        cdef instant_t end = self.core.bound if self.core.endless else self.core.now + 1
        times = [
            (i, self.core.times[i & self.core.times_mask]) for i in range(self.core.bound, end)
        ]
        bounds = []
        if self.core.bounds != NULL:
            bounds = [
                (i, max(self.core.bounds[i & self.core.times_mask], self.core.reach))
                for i in range(self.core.reach, self.core.now + 1)
            ]
        return (
            self.core.now, self.core.bound, self.core.timestamp_start, self.core.micros, times,
            bounds,
        )

    def set_clock(
        self, instant_t now, instant_t bound, instant_t start, int64_t micros, inside, bounds
    ):
        """Go on from where another run was."""
        cdef instant_t i
        cdef dict times = dict(inside), known = dict(bounds)
        self.core.bound = self.core.reach = bound
        if self.core.bounds != NULL:
            self.core.reach = min(known, default=bound)
        for i in range(self.core.reach, now + 1 if times or known else self.core.reach):
            self.core.now = i
            self.core.widen_times()
            self.core.times[i & self.core.times_mask] = times.get(i, 0)
            self.core.awaited[i & self.core.times_mask] = NULL
            self.core.total += times.get(i, 0) if self.core.counted else 0
            if self.core.bounds != NULL:
                self.core.bounds[i & self.core.times_mask] = known.get(i, self.core.reach)
        self.core.now, self.core.timestamp_start, self.core.micros = now, start, micros
        # What is put back lives as long as if it had come now.
        self.core.tecs.begin(now, self.core.reach)

    def groups(self, bint over):
        """The groups: (place, registers, address of the union, whether taken just now, dates).

        `over`: nothing more comes at the last timestamp. Dates are told of dated places: (oldest
        last instant, floor, taken, taken in, [(last instant, greatest start, union)] from the
        newest), see _groups.pxd; None elsewhere.
        """
        cdef Groups groups
        cdef Group* group
        cdef uint32_t i, j, k, number
        for i in range(self.core.place_count):
            if not self.core.places[i].operator or self.core.places[i].operator == CLOSING:
                continue
            groups = <Groups>self.core.groups_at[i]
            for j in range(groups.living):
                number = groups.alive[j]
                group = group_at(groups, number)
                if group.latest < self.core.bound:
                    continue
                dates = None
                if groups.dated:
                    dates = self._dates(&groups.dates[number], over)
                    stretches = dates[4]
                    if not stretches or stretches[0][0] < dates[1]:
                        continue  # all have been taken
                values = [values_of(groups, number)[k] for k in range(groups.width)]
                taken = group.taken == self.core.now and self.core.touched_count > 0
                yield i, values, group.members, taken, dates

    cdef tuple _dates(self, Dates* dates, bint over):
        cdef Stretch* stretch = dates.newest
        cdef instant_t start = self.core.now + 1 if over else self.core.timestamp_start
        cdef bint before = dates.taken_in < start
        stretches = []
        while stretch != NULL:
            if stretch.latest >= self.core.bound:
                stretches.append((stretch.last, stretch.latest, stretch.members))
            stretch = stretch.older if stretch.older_latest >= self.core.bound else NULL
        return (
            dates.oldest, max(dates.floor, dates.taken) if before else dates.floor,
            -1 if before else dates.taken, -1 if before else dates.taken_in, stretches,
        )

    def arrived(self, uint32_t place, uint64_t since, uint32_t most):
        """How many groups a place ever made, and the registers of those after the first `since`.

        The last `most` of those that are there are looked at.
        """
        cdef Groups groups = <Groups>self.core.groups[place]
        cdef uint32_t i, k, end = groups.living
        cdef Group* group
        cdef const term_t* values
        found = []
        if groups.made > since:
            for i in range(end - min(most, end), end):
                group = group_at(groups, groups.alive[i])
                if group.serial > since and group.latest >= self.core.bound:
                    values = values_of(groups, groups.alive[i])
                    found.append([values[k] for k in range(groups.width)])
        found.reverse()
        return groups.made, found

    def pended(self):
        """What becomes visible when the instant closes: (place, registers, node)."""
        cdef uint32_t i, j
        cdef Place* place
        for i in range(self.core.pending_count):
            place = &self.core.places[self.core.pending[i].target]
            values = [
                self.core.pending_values[self.core.pending[i].values + j]
                for j in range(place.live_end - place.live_first)
            ]
            yield self.core.pending[i].target, values, <size_t>self.core.pending[i].node

    def awaited(self):
        """The matches that wait for their windows to close: (place, registers, start, labels).

        None in place of those that a guard has ended.
        """
        cdef instant_t start
        cdef Awaited* match
        cdef Groups groups
        cdef Group* group
        cdef uint32_t i
        for start in range(self.core.bound, self.core.now + 1):
            match = self.core.awaited[start & self.core.times_mask]
            while match != NULL:
                groups = <Groups>self.core.groups_at[match.place]
                group = group_at(groups, match.group)
                if group.alive and group.serial == match.serial and group.taken != self.core.now:
                    values = [values_of(groups, match.group)[i] for i in range(groups.width)]
                    labels = [<size_t>match.labels[i] for i in range(match.length)]
                    yield match.place, values, start, labels
                else:
                    yield None
                match = match.next

    def awaiting(self):
        """The starts of the matches that wait for their windows to close.

        Those are among them that come to wait when the instant closes.
        """
        cdef uint32_t i
        cdef Node* node
        found = [match[2] for match in self.awaited() if match is not None]
        for i in range(self.core.pending_count):
            if self.core.places[self.core.pending[i].target].operator == CLOSING:
                node = self.core.pending[i].node
                self.core.walk.begin(node, self.core.since_at(node))
                while self.core.walk.advance():
                    found.append(self.core.walk.start)
        return found

    def ended(self):
        """How many matches guards have ended before their windows closed."""
        return self.core.forbidden + sum([match is None for match in self.awaited()])

    def time_of(self, instant_t instant):
        """The time of an instant inside the window."""
        return self.core.times[instant & self.core.times_mask]

    def kept(self):
        """What guards and conjunctions look back at: (graph pattern, whether keyed, label).

        Keyed: it binds all partition variables. And the rows of a chain, those of each graph
        pattern once.
        """
        cdef KeptRows* rows
        cdef uint64_t number
        cdef uint32_t step
        seen = set()
        for step in range(max(self.core.chain_length, 1) - 1):
            gpm = self.core.gpms[self.core.chain[step].occurrence]
            rows = self.core.rows_before(step + 1)
            # Those that a later step keeps of it are of no use where the first one has none.
            for number in range(rows.first, rows.end if gpm not in seen else 0):
                yield gpm, True, <size_t>rows.labels[number & (rows.room - 1)]
            seen.add(gpm)
        for gpm in range(self.core.gpm_count):
            rows = self.core.kept_rows[<uint32_t>gpm]
            if rows == NULL:
                continue
            rows_forget(rows, self.core.reach)
            for number in range(rows.first, rows.end):
                step = <uint32_t>(number & (rows.room - 1))
                yield gpm, bool(rows.keyed[step]), <size_t>rows.labels[step]

    def chained(self):
        """How a chain is joined, whose rows are among those that are `kept`.

        That is whether lazily, and what that is weighed by; None where not all rows are kept.
        """
        cdef Weights* weights = &self.core.weights
        if not self.core.chain_length or self.core.bounded and not self.core.lazy:
            return None
        return [
            self.core.lazy, weights.eager, weights.lazy, weights.rows, weights.each,
            weights.trial, weights.mean, weights.since, weights.settled,
        ]

    def begun(self):
        """What is to begin when the instant closes: (place, environment, node)."""
        cdef uint32_t i, j
        cdef Beginning* begun
        for i in range(self.core.beginning_count):
            begun = &self.core.beginnings[i]
            values = [
                self.core.beginning_values[i * self.core.cells + j] for j in range(self.core.cells)
            ]
            yield begun.place, values, <size_t>begun.node

    def awaited_count(self):
        """How many matches wait for their windows to close."""
        return self.core.awaited_count

    def completed(self):
        """The nodes that end matches nobody has taken yet."""
        return [<size_t>self.core.accepted[i] for i in range(self.core.accepted_count)]

    def node(self, size_t address):
        """(label, union before it or 0, greatest start) of a node."""
        cdef Node* node = <Node*>address
        alive = node.before != 0 and node.latest >= self.core.bound
        return <size_t>node.label, node.before if alive else 0, node.latest

    def union(self, size_t address):
        """(greatest start, node or 0, left side or 0, right side or 0) of a union."""
        cdef Cell* cell
        if not address & UNION:
            return (<Node*>address).latest, address, 0, 0
        cell = cell_of(address)
        left = cell.left != 0 and cell.left_latest >= self.core.bound
        right = cell.right != 0 and cell.right_latest >= self.core.bound
        return (
            cell.latest, <size_t>cell.node, cell.left if left else 0,
            cell.right if right else 0,
        )

    def put_label(
        self, uint32_t place, uint32_t position, instant_t instant, int64_t micros,
        uint32_t domain, uint64_t line, uint32_t stream, uint32_t file, uint32_t ordinal,
        term_t name, term_t stamp, uint8_t part, uint8_t parts, row,
    ):
        """The address of a new label of these `fields`."""
        cdef Label* label = self.core.tecs.label(<uint32_t>len(row))
        label.edge = self.core.places[place].edge_first + position
        label.instant, label.micros = instant, micros
        label.domain, label.line, label.stream, label.file = domain, line, stream, file
        label.ordinal, label.name, label.stamp = ordinal, name, stamp
        label.part, label.parts = part, parts
        for i, term in enumerate(row):
            label.row[<uint32_t>i] = term
        return <size_t>label

    def put_node(self, size_t label, size_t before, instant_t start):
        """The address of a new node on top of a union (0: of nothing)."""
        return <size_t>extended(self.core.tecs, <Label*>label, before, start)

    def put_union(self, instant_t latest, size_t node, size_t left, size_t right):
        """The address of a new union, of what `union` gives."""
        cdef Cell* cell
        if not left and not right:
            return node
        cell = <Cell*>piece_of(self.core.tecs, sizeof(Cell))
        cell.latest, cell.node = latest, <Node*>node
        cell.before = (<Node*>node).before if node else 0
        cell.left, cell.right = left, right
        cell.left_latest = start_of(left) if left else -1
        cell.right_latest = start_of(right) if right else -1
        return <size_t>cell | UNION

    def put_group(self, uint32_t place, values, size_t union, bint taken, dates):
        """A group of which `groups` has told, none of whose place has its registers yet."""
        cdef Groups groups = <Groups>self.core.groups_at[place]
        cdef uint32_t number
        self._set_key(values)
        if find(groups, self.core.key) != NOBODY:
            raise ValueError(f"two groups of place {place} have the same registers")
        number = make(groups, self.core.key)
        group_at(groups, number).members = union
        group_at(groups, number).latest = start_of(union)
        self.core.most_living += 1
        if dates is not None:
            self._put_dates(&groups.dates[number], dates)
        if taken:
            touch(self.core, place, number, group_at(groups, number))

    cdef int _put_dates(self, Dates* dates, told) except -1:
        cdef Stretch* newest = NULL
        cdef Stretch* stretch
        dates.oldest, dates.floor, dates.taken, dates.taken_in, stretches = told
        for last, latest, union in reversed(stretches):
            stretch = <Stretch*>piece_of(self.core.tecs, sizeof(Stretch))
            stretch.last, stretch.latest = last, latest
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
            self.core.key[i] = value
        return 0

    def put_pended(self, uint32_t place, values, size_t node):
        """A node that comes to wait when the instant closes."""
        cdef uint32_t i
        for i, value in enumerate(values):
            self.core.env[self.core.numbers[self.core.places[place].live_first + i]] = value
        wait(self.core, place, <Node*>node)

    def put_awaited(self, uint32_t place, values, instant_t start, labels):
        """A match that waits for its window to close; those of one start in their order."""
        cdef Node* node = NULL
        cdef union_t before = 0
        for label in labels:
            if node != NULL:
                before = added(self.core.tecs, 0, -1, node, self.core.bound)
            node = extended(self.core.tecs, <Label*><size_t>label, before, start)
        self.put_pended(place, values, <size_t>node)
        self.core.show(self.core.pending_count - 1)

    def put_kept(self, uint32_t gpm, size_t label, bint keyed):
        """Let somebody look back at a row, where anybody does; the oldest comes first."""
        if self.core.chain_length:
            self.core.put_step(gpm, <Label*>label)
        if self.core.kept_rows[gpm] != NULL:
            rows_add(self.core.kept_rows[gpm], <Label*>label, keyed)

    def put_chained(self, how):
        """Go on with a chain as `chained` says; None: as rows come, for not all are there."""
        cdef Weights* weights = &self.core.weights
        if how is None or not self.core.chain_length:
            weights.settled = self.core.now
            return
        (
            self.core.lazy, weights.eager, weights.lazy, weights.rows, weights.each,
            weights.trial, weights.mean, weights.since, weights.settled,
        ) = how

    def put_begun(self, uint32_t place, values, size_t node):
        """Let the step of a node begin something when the instant closes."""
        cdef Way way
        cdef uint32_t i
        way.place, way.edge = place, (<Node*>node).label.edge
        for i, value in enumerate(values):
            self.core.env[i] = value
        self.core.put_off(&way, <Node*>node)

    def put_complete(self, size_t node):
        """Let a node end matches that are to be taken."""
        self.core.accept(<Node*>node)
