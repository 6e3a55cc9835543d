# cython: language_level=3, boundscheck=False, wraparound=False
"""Complete matches of the core → `Match` objects, one when it is asked for.

For queries whose results are made one by one: variables of a SELECT, every match, none found
twice. A label is decoded once for all matches it is part of, as long as its memory lives; a
match is then a tuple of witnesses and a dictionary of their terms.

Cost: linear in the steps of each match taken, nothing for those that are not.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from spaseq.nfa._clock cimport since_of
from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._groups cimport NOBODY
from spaseq.nfa._parts cimport CoreParts
from spaseq.nfa._tables cimport Binding, Change, Edge, Effect, Occurrence
from spaseq.nfa._tecs cimport Label, Walk, instant_t
from spaseq.rdf._memory cimport give_back, zeroed

from spaseq.rdf.event import DATE_TIME, NUMBER, Timestamp
from spaseq.results import Match, Witness

cdef Py_ssize_t MOST_DECODED = 4096

# Where a register got its value: a step of the match, counted from 1, and a column of its row.
cdef struct Origin:
    uint32_t step
    uint32_t column


cdef class MatchMaker:
    """The matches of one run.

    Args:
        core: the automaton.
        query: the name of the query.
        columns: the projected variables, with the register each is read from.
        steps: for each edge of the core the name of its GPM and the variables of its rows.
        streams: their IRIs.
        parts: decodes terms.
    """

    cdef AutomatonCore core
    cdef str query
    cdef tuple names
    cdef uint32_t* registers
    cdef uint32_t column_count
    cdef Origin* origins        # per register
    cdef list steps
    cdef list streams
    cdef CoreParts parts
    cdef dict known             # by the label's address
    cdef uint64_t epoch         # the oldest of the core when `known` was last emptied

    def __cinit__(self, AutomatonCore core not None, CoreParts parts not None, str query, columns, steps, streams):
        cdef uint32_t i
        self.core = core
        self.query = query
        self.names = tuple([name for name, _ in columns])
        self.column_count = <uint32_t>len(columns)
        self.registers = <uint32_t*>zeroed(self.column_count, sizeof(uint32_t))
        for i, (_, register) in enumerate(columns):
            self.registers[i] = register
        self.origins = <Origin*>zeroed(core.cells, sizeof(Origin))
        self.parts = parts
        self.steps = list(steps)
        self.streams = list(streams)
        self.known = {}

    def __dealloc__(self):
        give_back(self.registers)
        give_back(self.origins)

    def take(self, end, bint skip, int kb_version):
        """The matches that were completed since the last call, as they are asked for.

        `end` is the time of their last event; with `skip`, what follows starts after it. They
        can be asked for until the run goes on. `kb_version` is what they say of the KB.
        """
        cdef AutomatonCore core = self.core
        cdef uint32_t i, count = core.accepted_count
        # What is skipped now must not cut off what is asked for later.
        cdef list since = [core.since_at(core.accepted[i]) for i in range(count if core.apart else 0)]
        cdef instant_t everywhere = since_of(core)
        core.accepted_count = 0
        core.turn += 1
        if self.epoch != core.tecs.oldest or len(self.known) > MOST_DECODED:
            self.known.clear()
            self.epoch = core.tecs.oldest
        if skip:
            for i in range(count):
                if not core.apart and core.accepted[i].latest >= everywhere:
                    core.skip()
                elif core.apart and core.accepted[i].latest >= <instant_t>since[i]:
                    core.partitions.skip_at(core.accepted[i].label)
        return self._taken(end, kb_version, count, since, everywhere, core.turn)

    def _taken(
        self, end, int kb_version, uint32_t count, list since, instant_t everywhere, uint64_t turn
    ):
        cdef Walk walk = self.core.walk
        cdef uint32_t i
        for i in range(count):
            if self.core.turn == turn:
                walk.begin(self.core.accepted[i], <instant_t>since[i] if since else everywhere)
            while self.core.turn == turn and walk.advance():
                yield self._match(walk, end, kb_version)
            if self.core.turn != turn:
                raise RuntimeError("the run has gone on: take the matches of an event before that")

    cdef object _match(self, Walk walk, end, int kb_version):
        cdef uint32_t i
        cdef Origin* origin
        cdef dict bindings = {}
        cdef list steps = [None] * walk.length
        cdef list witnesses = [None] * walk.length
        cdef tuple step
        for i in range(walk.length):
            key = <size_t>walk.path[walk.length - 1 - i]
            found = self.known.get(key)
            if found is None:
                found = self.known[key] = self._decoded(walk.path[walk.length - 1 - i])
            step = <tuple>found
            witnesses[i] = step[0]
            steps[i] = step[1]
        self._replay(walk)
        for i in range(self.column_count):
            origin = &self.origins[self.registers[i]]
            if origin.step:
                bindings[self.names[i]] = (<tuple>steps[origin.step - 1])[origin.column]
        return Match(
            self.query, witnesses[0].time, end, bindings, tuple(witnesses), self.names, None, None,
            kb_version,
        )

    cdef tuple _decoded(self, Label* label):
        """(witness, terms of the row) of a label."""
        cdef uint32_t i
        cdef dict bound = {}
        cdef list row = [None] * label.width
        cdef tuple variables
        name, variables = self.steps[self.core.places[label.place].edge_first + label.position]
        for i in range(label.width):
            if label.row[i]:
                row[i] = bound[variables[i]] = self.parts.term(label.row[i])
        time = Timestamp(
            label.micros, DATE_TIME if label.domain else NUMBER, self.parts.term(label.stamp)
        )
        graph = self.parts.term(label.name)
        stream = self.streams[label.stream]
        return Witness(name, stream, time, label.ordinal, graph, bound), tuple(row)

    cdef int _replay(self, Walk walk) noexcept:
        """Take the steps again, to see which row gave each register its value."""
        cdef uint32_t i, j
        cdef Label* label
        cdef Edge* edge
        cdef Effect* effect
        cdef Occurrence* occurrence
        cdef Binding* binding
        memset(self.origins, 0, self.core.cells * sizeof(Origin))
        for i in range(walk.length):
            label = walk.path[walk.length - 1 - i]
            edge = &self.core.edges[self.core.places[label.place].edge_first + label.position]
            for j in range(edge.effect_first, edge.effect_end):
                effect = &self.core.effects[j]
                if effect.change == Change.FORGET:
                    self.origins[effect.register].step = 0
                elif effect.change == Change.COPY:
                    self.origins[effect.register] = self.origins[effect.other]
            occurrence = &self.core.occurrences[edge.occurrence]
            for j in range(occurrence.binding_first, occurrence.binding_end):
                binding = &self.core.bindings[j]
                if label.row[binding.column] and not self.origins[binding.register].step:
                    self.origins[binding.register].step = i + 1
                    self.origins[binding.register].column = binding.column
                    if binding.last != NOBODY:
                        self.origins[binding.last] = self.origins[binding.register]
        return 0
