"""The complete matches of an instant, gathered before the first of them is created.

Three kinds of queries need this: their results depend on each other (`DISTINCT`,
`LIMIT … PER … EVERY`, `ASK`, and `EMIT` where the core must list all matches), their matches can be
found twice, or they need more than the registers of a match (computed columns, `CONSTRUCT`). The
labels of all matches of an instant, or of a closing time, are copied. The output stage computes
columns and graphs from the decoded steps and retains some of the matches. A maker then creates
these one by one. `spaseq/engine/native/groups/gathered_groups.pxi` adds the matches to groups of
results instead.

Invariant: the matches are those of `OutputStage.batch`, in its order; labels are read before the
automaton advances. Cost: linear in the steps of all matches of an instant, and n log n if they are
ordered, plus the Python code of computed columns and graphs.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

from spaseq.nfa.native._tecs cimport Walk
from spaseq.rdf.native._terms cimport check_signals_often, mem_free, mem_grow
from spaseq.rdf.native._terms import text_of

cdef const char* ALLOCATED_FOR = b"the matches of an instant"


cdef class Gathering:
    """The matches of one instant of a core.

    Args:
        core: the automaton.
        selection: the matches that `EMIT` or `LIMIT` selects, which are gathered; None: all.
        solving: decodes the columns of the query, or the variables of its template.
        ordering: decodes the variables that order matches of the same instants.
    """

    def __cinit__(
        self, AutomatonCore core not None, Selection selection, MatchDecoder solving not None,
        MatchDecoder ordering not None,
    ):
        self.core, self.selection = core, selection
        self.solving, self.ordering = solving, ordering

    def __dealloc__(self):
        mem_free(self.labels)
        mem_free(self.paths)

    def arrange_with(self, stage):
        """Let an output stage compute columns and graphs, and choose the matches to retain.

        Args:
            stage: the `OutputStage` of the query.
        """
        self.stage = stage
        self.sorts, self.retains, self.compares = stage.sorts, stage.retains, stage.compares
        self.computes, self.constructs = stage.computes, stage.constructs
        self.repeats, self.chooses = stage.repeats, stage.chooses
        self.asks, self.one = stage.asks, stage.any_will_do

    cdef int begin(self) noexcept:
        """Begin an instant."""
        self.count = self.label_count = 0
        return 0

    cdef int add(self) except -1:
        """Add the match at the position of the core's walk."""
        cdef Walk walk = self.core.transitions.walk
        cdef GatheredPath* path
        if self.count == self.path_room:
            self.path_room = 2 * self.path_room + 16
            self.paths = <GatheredPath*>mem_grow(
                self.paths, self.path_room, sizeof(GatheredPath), ALLOCATED_FOR
            )
        if self.label_count + walk.length > self.label_room:
            self.label_room = 2 * (self.label_count + walk.length)
            self.labels = <Label**>mem_grow(
                self.labels, self.label_room, sizeof(Label*), ALLOCATED_FOR
            )
        path = &self.paths[self.count]
        path.start, path.first, path.length = walk.start, self.label_count, walk.length
        memcpy(self.labels + path.first, walk.path, path.length * sizeof(Label*))
        self.label_count += path.length
        self.count += 1
        return 0

    cdef int position_walk(self, uint32_t number) except -1:
        """Position the core's walk at a match."""
        cdef Walk walk = self.core.transitions.walk
        cdef const GatheredPath* path = &self.paths[number]
        while walk.path_room < path.length:
            walk._grow_path()
        memcpy(walk.path, self.labels + path.first, path.length * sizeof(Label*))
        walk.length, walk.start = path.length, path.start
        walk.stop()
        return 0

    cdef int64_t last_time(self) noexcept:
        """The time of the last event of a match; all of them end at one instant."""
        return self.labels[self.paths[0].first].micros

    cdef list arranged(self, list steps, int64_t now):
        """The numbers of the matches that are retained, in their order.

        Args:
            steps: per match, its steps.
            now: the time at which they are returned.
        """
        cdef uint32_t number
        cdef list listed, order = self.in_order(steps)
        if self.retains:
            listed = [
                (
                    number,
                    self._solution(number, steps),
                    self.ordering.solution(<tuple>steps[number], None),
                ) if self.compares else (number, (), ())
                for number in order
            ]
            order = self.stage.retained(listed, now)
        self.graphs = [None] * self.count
        if self.constructs:
            for number in order:
                check_signals_often(number)
                self.graphs[number] = self.stage.graph_of(self._solution(number, steps))
        return order

    cdef list in_order(self, list steps):
        """Compute columns; the numbers of the matches that `EMIT` retains, in order."""
        cdef uint32_t number
        cdef list order = list(range(self.count))
        self.values = [None] * self.count
        if self.computes:
            for number in range(self.count):
                check_signals_often(number)
                self.values[number] = self._computed(<tuple>steps[number])
        if self.repeats and self.count > 1:
            order = self._once(steps)
        if self.chooses:
            order = self._chosen(order)
        if self.sorts and len(order) > 1:
            order = self._sorted(order, steps)
        return order

    cdef tuple _solution(self, uint32_t number, list steps):
        """The values of the columns of a match, or of the variables of the template."""
        return self.solving.solution(<tuple>steps[number], self.values[number])

    cdef list _once(self, list steps):
        """The numbers of the matches, each match once even if it was found several times."""
        cdef uint32_t i, number
        cdef const GatheredPath* path
        cdef const Label* label
        cdef DecodedStep step
        cdef list found = [], events
        for number in range(self.count):
            check_signals_often(number)
            path = &self.paths[number]
            events = []
            for i in range(path.length):
                label = self.labels[path.first + path.length - 1 - i]
                step = <DecodedStep>(<tuple>steps[number])[i]
                events.append((
                    self.ordering.steps[step.part][0], label.instant, label.stream, step.texts,
                ))
            found.append((number, self._solution(number, steps), events))
        return self.stage.once(found)

    cdef list _chosen(self, list order):
        """The matches that `EMIT` chooses."""
        cdef uint32_t i, number, after
        cdef const GatheredPath* path
        cdef list found = []
        for number in order:
            check_signals_often(number)
            path = &self.paths[number]
            after = path.first + path.length
            found.append((
                number,
                None if self.core.partitions is None
                else self.core.partitions.number_key(self.labels[path.first]),
                [
                    (self.labels[after - 1 - i].instant, self.labels[after - 1 - i].stream)
                    for i in range(path.length)
                ],
            ))
        return self.stage.chosen(found)

    cdef list _sorted(self, list order, list steps):
        """The numbers of some matches in the order of results (`spaseq.engine.output`)."""
        cdef uint32_t i, first, after, number, count = <uint32_t>len(order)
        cdef const GatheredPath* path
        cdef dict keys = {}
        cdef list ties
        for number in order:
            check_signals_often(number)
            path = &self.paths[number]
            after = path.first + path.length
            keys[number] = (
                [self.labels[after - 1 - i].instant for i in range(path.length)],
                [self.labels[after - 1 - i].stream for i in range(path.length)],
            )
        order = sorted(order, key=keys.__getitem__)
        first = 0
        while first < count:
            after = first + 1
            while after < count and keys[order[first]] == keys[order[after]]:
                after += 1
            if after > first + 1:
                ties = [(self.sort_key(number, steps), number) for number in order[first:after]]
                ties.sort()
                order[first:after] = [number for _, number in ties]
            first = after
        return order

    cdef tuple sort_key(self, uint32_t number, list steps):
        """The sort key of a match among those of its instants and streams."""
        return self.ordering.sort_key(<tuple>steps[number], self.values[number])

    cdef DecodedStep _computed(self, tuple steps):
        """The computed columns of a match, as the row of an event without a time and a name."""
        cdef DecodedStep values = DecodedStep.__new__(DecodedStep)
        cdef tuple found = self.stage.computed([
            self.ordering.event_of(<DecodedStep>step) for step in steps
        ])
        cdef list texts = [b"" if term is None else text_of(term) for term in found]
        cdef uint32_t i
        values.count = <uint32_t>len(texts) + 2
        cdef bytes sizes = PyBytes_FromStringAndSize(NULL, values.count * sizeof(uint32_t))
        cdef uint32_t* size = <uint32_t*>PyBytes_AS_STRING(sizes)
        size[0] = size[1] = 0
        for i in range(<uint32_t>len(texts)):
            size[i + 2] = <uint32_t>len(<bytes>texts[i])
        values.texts = sizes + b"".join(texts)
        values.terms = [None, None, *found]
        return values
