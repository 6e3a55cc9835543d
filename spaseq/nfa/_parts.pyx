# cython: language_level=3, boundscheck=False, wraparound=False
"""The state of a compiled automaton, part by part: to look at, to save, to put back.

Parts are known by their addresses, valid until the next event. What the window has passed
over is left out, and never followed.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from spaseq.nfa._chain cimport Weights
from spaseq.nfa._clock cimport Awaited
from spaseq.nfa._complete cimport steps_of
from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._groups cimport NOBODY, Dates, Group, Groups, floor_of, values_of
from spaseq.nfa._instant cimport wait
from spaseq.nfa._joins cimport Beginning
from spaseq.nfa._kept cimport KeptRows
from spaseq.nfa._tables cimport CLOSING, Place, Way
from spaseq.nfa._tecs cimport Cell, Label, Node, instant_t
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

    def label(self, size_t address):
        """What the label at an address says: the edge taken, the event, the row.

        That is (place, position of its edge, instant, micros, whether a date, line, stream,
        file, ordinal, graph's name or None, literal of a numeric time or None, which pattern
        of the edge, terms).
        """
        cdef Label* label = <Label*>address
        return (
            label.place, label.position, label.instant, label.micros, label.domain, label.line,
            label.stream, label.file, label.ordinal, self.term(label.name), self.term(label.stamp),
            label.part, tuple([self.term(label.row[i]) for i in range(label.width)]),
        )

    def clock(self):
        """(now, bound, first instant of the timestamp, its time, times, bounds).

        Times are what is known of each instant inside the window: its time, or the number of its
        events. Bounds are the first instant of the window as it was then, of each instant that
        somebody may look back to; none where that is one window back.
        """
        cdef instant_t i
        cdef instant_t end = self.core.bound if self.core.endless else self.core.now + 1
        times = [
            (i, self.core.times[i & self.core.times_mask]) for i in range(self.core.bound, end)
        ]
        bounds = []
        if self.core.bounds != NULL:
            bounds = [
                (i, self.core.bounds[i & self.core.times_mask])
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
            self.core.reach = min(known.values(), default=bound)
        for i in range(self.core.reach, now + 1 if times or known else self.core.reach):
            self.core.now = i
            self.core.widen_times()
            self.core.times[i & self.core.times_mask] = times.get(i, 0)
            self.core.total += times.get(i, 0) if self.core.counted else 0
            if self.core.bounds != NULL:
                self.core.bounds[i & self.core.times_mask] = known.get(i, self.core.reach)
        self.core.now, self.core.timestamp_start, self.core.micros = now, start, micros
        # What is put back lives as long as if it had come now.
        self.core.tecs.begin(now, self.core.reach)

    def waiting(self):
        """The groups: (place, registers, address of the union, whether taken just now)."""
        cdef Groups groups
        cdef uint32_t i, j, k
        cdef Group* group
        for i in range(self.core.place_count):
            if not self.core.places[i].operator or self.core.places[i].operator == CLOSING:
                continue
            groups = <Groups>self.core.groups_at[i]
            for j in range(groups.living):
                group = &groups.groups[groups.alive[j]]
                if group.latest >= self.core.bound:
                    values = [values_of(groups, groups.alive[j])[k] for k in range(groups.width)]
                    taken = group.taken == self.core.now and self.core.touched_count > 0
                    yield i, values, <size_t>group.members, taken

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
                group = &groups.groups[groups.alive[i]]
                if group.serial > since and group.latest >= self.core.bound:
                    values = values_of(groups, groups.alive[i])
                    found.append([values[k] for k in range(groups.width)])
        found.reverse()
        return groups.made, found

    def floors(self, uint32_t place, values):
        """Of a group: which members a `;` place has taken, and which with this timestamp.

        Those whose last event is older than the instants; -1: nobody.
        """
        cdef Groups groups = <Groups>self.core.groups_at[place]
        cdef Dates* dates
        cdef instant_t going = -1
        if not groups.dated:
            return -1, -1
        dates = &groups.dates[self._group(groups, values)]
        if dates.taken_in == self.core.timestamp_start:
            going = dates.taken
        return floor_of(dates, self.core.timestamp_start), going

    cdef uint32_t _group(self, Groups groups, values):
        """The group with some registers."""
        cdef uint32_t i
        for i, value in enumerate(values):
            self.core.key[i] = value
        return groups.find(self.core.key)

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
        """The matches that wait for their windows to close: (place, registers, start, steps).

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
                group = &groups.groups[match.group]
                if group.alive and group.serial == match.serial and group.taken != self.core.now:
                    values = [values_of(groups, match.group)[i] for i in range(groups.width)]
                    yield match.place, values, start, steps_of(match)
                else:
                    yield None
                match = match.next

    def kept(self):
        """What guards and conjunctions look back at: (graph pattern, whether whole, label).

        And the rows of a chain, those of each graph pattern once.
        """
        cdef KeptRows rows
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
        for gpm, found in enumerate(self.core.kept_rows):
            if found is None:
                continue
            rows = found
            rows.forget(self.core.reach)
            for number in range(rows.first, rows.end):
                label = <size_t>rows.labels[number & (rows.room - 1)]
                yield gpm, self.core.whole[<uint32_t>gpm], label

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
        """(labels of its step, union before it or 0, latest start) of the node that ends one."""
        cdef Node* node = <Node*>address
        cdef instant_t latest = node.latest
        cdef uint32_t more = node.label.parts
        labels = [<size_t>node.label]
        while more > 1:
            node = node.before.node
            labels.append(<size_t>node.label)
            more -= 1
        alive = node.before != NULL and node.before_latest >= self.core.bound
        return tuple(reversed(labels)), <size_t>node.before if alive else 0, latest

    def members(self, size_t address):
        """The living nodes of a union, by instant."""
        found = []
        todo = [address]
        cdef Cell* cell
        while todo:
            cell = <Cell*><size_t>todo.pop()
            if cell.node != NULL:
                found.append((cell.node.label.instant, <size_t>cell.node))
            if cell.left != NULL and cell.left_latest >= self.core.bound:
                todo.append(<size_t>cell.left)
            if cell.right != NULL and cell.right_latest >= self.core.bound:
                todo.append(<size_t>cell.right)
        found.sort()
        return [node for _, node in found]

    def put_label(
        self, uint32_t place, uint32_t position, instant_t instant, int64_t micros,
        uint32_t domain, uint64_t line, uint32_t stream, uint32_t file, uint32_t ordinal,
        term_t name, term_t stamp, row, uint8_t part=0, uint8_t parts=1,
    ):
        """The address of a new label; the parts are those that `label` gives, terms by number.

        `parts` is how many events its step has.
        """
        cdef Label* label = self.core.tecs.label(<uint32_t>len(row))
        label.place, label.position, label.instant, label.micros = place, position, instant, micros
        label.domain, label.line, label.stream, label.file = domain, line, stream, file
        label.ordinal, label.name, label.stamp = ordinal, name, stamp
        label.part, label.parts = part, parts
        for i, term in enumerate(row):
            label.row[<uint32_t>i] = term
        return <size_t>label

    def put_union(self, nodes):
        """The address of a union of nodes."""
        cdef Cell* cell = NULL
        for node in nodes:
            cell = self.core.tecs.add(
                cell, cell.latest if cell != NULL else -1, <Node*><size_t>node, self.core.bound
            )
        return <size_t>cell

    def put_node(self, size_t label, size_t before, instant_t latest):
        """The address of a new node on top of a union (0: of nothing)."""
        return <size_t>self.core.tecs.extend(<Label*>label, <Cell*>before, latest)

    def put_waiting(self, uint32_t place, values, nodes, bint taken, bint pending):
        """Let nodes wait in a place, now or when the instant closes."""
        cdef uint32_t i
        cdef Groups groups = <Groups>self.core.groups_at[place]
        for i, value in enumerate(values):
            self.core.env[self.core.numbers[self.core.places[place].live_first + i]] = value
            self.core.key[i] = value
        for node in nodes:
            if pending:
                wait(self.core, place, <Node*><size_t>node)
            else:
                self.core._enter(place, self.core.key, <Node*><size_t>node)
        if taken and nodes:
            self.core.touch(place, groups.find(self.core.key))

    def put_taken(self, uint32_t place, values, instant_t taken):
        """A `;` place with steps of several events has taken what is older at this timestamp."""
        cdef Groups groups = <Groups>self.core.groups_at[place]
        cdef uint32_t number = self._group(groups, values)
        if number != NOBODY:
            groups.dates[number].taken = taken
            groups.dates[number].taken_in = self.core.timestamp_start

    def put_kept(self, uint32_t gpm, size_t label, bint keyed):
        """Let somebody look back at a row, where anybody does; the oldest comes first."""
        if self.core.chain_length:
            self.core.put_step(gpm, <Label*>label)
        if self.core.kept_rows[gpm] is not None:
            (<KeptRows>self.core.kept_rows[gpm]).add(<Label*>label, keyed)

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
        way.place, way.position = place, (<Node*>node).label.position
        way.edge = self.core.places[place].edge_first + way.position
        for i, value in enumerate(values):
            self.core.env[i] = value
        self.core.put_off(&way, <Node*>node)

    def put_complete(self, size_t node):
        """Let a node end matches that are to be taken."""
        self.core.accept(<Node*>node)
