# cython: language_level=3, boundscheck=False, wraparound=False
"""The state of a compiled automaton, part by part: to look at, to save, to put back.

Parts are known by their addresses, valid until the next event. What the window has passed
over is left out, and never followed.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa._clock cimport Awaited
from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._groups cimport Group, Groups, values_of
from spaseq.nfa._tables cimport CLOSING, Place
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
        file, ordinal, graph's name or None, literal of a numeric time or None, terms).
        """
        cdef Label* label = <Label*>address
        return (
            label.place, label.position, label.instant, label.micros, label.domain, label.line,
            label.stream, label.file, label.ordinal, self.term(label.name), self.term(label.stamp),
            tuple([self.term(label.row[i]) for i in range(label.width)]),
        )

    def clock(self):
        """(now, bound, first instant of the timestamp, its time, what is known of each instant).

        That is its time, or the number of its events.
        """
        cdef instant_t i
        times = [(i, self.core.times[i & self.core.times_mask]) for i in range(self.core.bound, self.core.now + 1)]
        return self.core.now, self.core.bound, self.core.timestamp_start, self.core.micros, times

    def set_clock(self, instant_t now, instant_t bound, instant_t start, int64_t micros, inside):
        """Go on from where another run was."""
        self.core.bound = bound
        for instant, value in inside:
            self.core.now = instant
            self.core._reach()
            self.core.times[self.core.now & self.core.times_mask] = value
            self.core.total += value if self.core.counted else 0
        self.core.now, self.core.timestamp_start, self.core.micros = now, start, micros
        # What is put back lives as long as if it had come now.
        self.core.tecs.begin(now, bound)

    def waiting(self):
        """The groups: (place, registers, address of the union, whether taken just now)."""
        cdef Groups groups
        cdef uint32_t i, j, k
        cdef Group* group
        for i in range(self.core.place_count):
            if not self.core.places[i].operator or self.core.places[i].operator == CLOSING:
                continue
            groups = <Groups>self.core.groups[i]
            for j in range(groups.living):
                group = &groups.groups[groups.alive[j]]
                if group.latest >= self.core.bound:
                    values = [values_of(groups, groups.alive[j])[k] for k in range(groups.width)]
                    taken = group.taken == self.core.now and self.core.touched_count > 0
                    yield i, values, <size_t>group.members, taken

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
                groups = <Groups>self.core.groups[match.place]
                group = &groups.groups[match.group]
                if group.alive and group.serial == match.serial and group.taken != self.core.now:
                    values = [values_of(groups, match.group)[i] for i in range(groups.width)]
                    labels = [<size_t>match.labels[i] for i in range(match.length)]
                    yield match.place, values, start, labels
                else:
                    yield None
                match = match.next

    def awaited_count(self):
        """How many matches wait for their windows to close."""
        return self.core.awaited_count

    def completed(self):
        """The nodes that end matches nobody has taken yet."""
        return [<size_t>self.core.accepted[i] for i in range(self.core.accepted_count)]

    def node(self, size_t address):
        """(label, union before it or 0, latest start) of a node."""
        cdef Node* node = <Node*>address
        alive = node.before != NULL and node.before_latest >= self.core.bound
        return <size_t>node.label, <size_t>node.before if alive else 0, node.latest

    def members(self, size_t address):
        """The living nodes of a union, by instant."""
        found = []
        todo = [address]
        cdef Cell* cell
        while todo:
            cell = <Cell*><size_t>todo.pop()
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
        term_t name, term_t stamp, row,
    ):
        """The address of a new label; the parts are those that `label` gives, terms by number."""
        cdef Label* label = self.core.tecs.label(<uint32_t>len(row))
        label.place, label.position, label.instant, label.micros = place, position, instant, micros
        label.domain, label.line, label.stream, label.file = domain, line, stream, file
        label.ordinal, label.name, label.stamp = ordinal, name, stamp
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
        cdef Groups groups = <Groups>self.core.groups[place]
        for i, value in enumerate(values):
            self.core.env[self.core.numbers[self.core.places[place].live_first + i]] = value
            self.core.key[i] = value
        for node in nodes:
            if pending:
                self.core._wait(place, <Node*><size_t>node)
            else:
                self.core._enter(place, self.core.key, <Node*><size_t>node)
        if taken and nodes:
            self.core._touch(place, groups.find(self.core.key))

    def put_complete(self, size_t node):
        """Let a node end matches that are to be taken."""
        self.core._accept(<Node*>node)
