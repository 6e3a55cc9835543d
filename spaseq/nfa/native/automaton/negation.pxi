"""Negation: guards that cannot be decided as soon as their event arrives.

They are decided when the next step arrives (post-processing negation): the rows of the window are
buffered, so filters may name variables of both sides. The result is the latest instant at which an
occurrence of the guarded unit begins; members with an older last event are forbidden, the others
are not. Cost: the rows examined; a unit costs at most its rows times its places.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX
from libc.string cimport memcpy, memset

from spaseq.nfa.native._tecs cimport (
    DEADLINE,
    NIL,
    Link,
    begin_iterations,
    bind,
    bound_at,
    bounds_admit,
    first_since,
    frontier_clear,
    frontier_free,
    frontier_push,
    limits_hold,
    numbers_of,
    set_marks,
    time_of,
)
from spaseq.rdf.native._terms cimport earlier, later, mem_calloc, mem_free, mem_grow

cdef enum:
    NO_INSTANT = -1
    DONE = -2           # target of a link: the guarded unit has occurred

# The state of a search of `latest_occurrence`.
cdef struct GuardSearch:
    PyObject* negation
    Check* check
    const term_t* context
    instant_t low
    instant_t high
    int64_t until
    bint negated
    bint starting       # the guard precedes the first step of a match
    uint32_t place      # where the unit begins
    instant_t best
    Frontier* frontier  # NULL: no unit has been followed yet

# A search for the next step inside a guarded unit.
cdef struct UnitSearch:
    PyObject* negation
    Frontier* frontier
    uint32_t place
    const term_t* before
    Stretch since       # its `until` is that of the whole unit
    instant_t high


cdef class Negation:
    """The guards of an automaton; `rows` are `CoreTables`, with their `search`."""

    def __cinit__(self, rows, Conjunction conjunction not None, Partitions partitions):
        cdef uint32_t i
        found = rows.search
        self.conjunction, self.partitions = conjunction, partitions
        self.tables, self.window, self.event = (
            conjunction.tables, conjunction.window, conjunction.event
        )
        self.starts = numbers_of(found.starts)
        self.restored = numbers_of(found.restored)
        self.edge_checks = ranges_of(found.edge_checks)
        self.link_checks = ranges_of(found.link_checks)
        self.place_checks = ranges_of(found.place_checks)
        self.guards = <Guard*>mem_calloc(len(found.guards), sizeof(Guard))
        for i, (negated, first, end, lookback) in enumerate(found.guards):
            self.guards[i].negated, self.guards[i].lookback = negated, lookback
            self.guards[i].starts = Range(first, end)
        self.checks = <Check*>mem_calloc(len(found.checks), sizeof(Check))
        for i, (guard, first, end) in enumerate(found.checks):
            self.checks[i].guard = guard
            self.checks[i].restored = Range(first, end)

    def __dealloc__(self):
        cdef uint32_t i
        for i in range(self.frontier_count):
            frontier_free(self.frontiers[i])
            mem_free(self.frontiers[i])
        mem_free(self.frontiers)
        mem_free(self.guards)
        mem_free(self.checks)
        mem_free(self.starts)
        mem_free(self.restored)
        mem_free(self.edge_checks)
        mem_free(self.link_checks)
        mem_free(self.place_checks)

    cdef int begin(self) noexcept nogil:
        """Reset the scratch memory for a new search."""
        self.conjunction.depth = self.frontier_depth = 0
        self.stretch = Stretch(NO_INSTANT, 0, INT64_MIN)
        return 0

    cdef instant_t forbidden_until(
        self, uint32_t edge, const term_t* before, const term_t* after, instant_t low,
        instant_t high, bint starting,
    ) except -2 nogil:
        """The latest start, strictly between two instants, of a forbidden unit of an edge.

        `before` is the environment of the partial match, `after` the one with the bindings of the
        edge. `starting`: the edge begins a match, so a step skipped at the start of the forbidden
        unit is searched in a window of its own.
        """
        cdef uint32_t i
        cdef instant_t best = NO_INSTANT, found
        for i in range(self.edge_checks[edge].first, self.edge_checks[edge].end):
            found = self.latest_occurrence(&self.checks[i], before, after, low, high, starting)
            if found > best:
                best = found
        return best

    cdef bint forbids(
        self, Range checks, const term_t* env, instant_t low, instant_t high
    ) except -1 nogil:
        """Whether a forbidden unit begins strictly between two instants."""
        cdef uint32_t i
        for i in range(checks.first, checks.end):
            if self.latest_occurrence(&self.checks[i], env, env, low, high, False) != NO_INSTANT:
                return True
        return False

    cdef instant_t latest_occurrence(
        self, Check* check, const term_t* before, const term_t* after, instant_t low,
        instant_t high, bint starting,
    ) except -2 nogil:
        """The latest start of an occurrence of one guard, or NO_INSTANT."""
        cdef Guard* guard = &self.guards[check.guard]
        cdef uint32_t i, place, level = self.conjunction.depth
        cdef term_t* context
        cdef Range edges
        cdef GuardSearch watch
        cdef RowSearch seek
        if starting and guard.lookback >= 0:
            low = first_since(
                self.window, earlier(time_of(self.window, high), guard.lookback), high
            ) - 1
        if high - low < 2:
            return NO_INSTANT
        watch.negation = <PyObject*>self
        watch.check, watch.context, watch.best = check, after, NO_INSTANT
        watch.low, watch.high = low, high
        watch.negated, watch.starting, watch.frontier = guard.negated, starting, NULL
        watch.until = self.stretch.until
        if watch.until == INT64_MIN:
            watch.until = earlier(time_of(self.window, high), 1)
        if check.restored.first < check.restored.end:
            self.conjunction.push_level()
            context = self.conjunction.levels[level]
            memcpy(context, after, self.tables.cells * sizeof(term_t))
            for i in range(check.restored.first, check.restored.end):
                context[self.restored[i]] = before[self.restored[i]]
            watch.context = context
        memset(&seek, 0, sizeof(RowSearch))
        seek.negated, seek.found, seek.task = guard.negated, _begun, &watch
        for i in range(guard.starts.first, guard.starts.end):
            place = watch.place = self.starts[i]
            if self.tables.places[place].operator == DEADLINE:
                if not starting and self.completes(NULL, &watch):
                    watch.best = high - 1
                continue
            edges = self.conjunction.place_edges[place]
            for seek.edge in range(edges.first, edges.end):
                seek.low, seek.high = low, high
                if watch.best > low:
                    seek.low = watch.best
                self.conjunction.search_edge(&seek, watch.context)
        self.conjunction.depth = level
        self.frontier_depth -= watch.frontier != NULL
        return watch.best

    cdef instant_t instant_before(self, const term_t* env, instant_t instant) noexcept nogil:
        """The latest instant before `instant` with an event of the partition of `env`, if any."""
        if self.tables.tracked:
            return self.partitions.before_in(self.event.batch, env, instant)
        return instant - 1

    cdef int completes(self, RowSearch* begun, void* watched) except -1 nogil:
        """Whether a guarded unit with this beginning completes in time.

        `begun` is NULL if the unit begins with an absence, whose time counts from the partial
        match. Two paths that wait in one place since the same instant with equal registers continue
        alike, however they began. The second is not followed, so the cost of iterations inside the
        unit is at most quadratic in the rows.
        """
        cdef GuardSearch* watch = <GuardSearch*>watched
        cdef Frontier* frontier
        cdef UnitSearch task
        cdef Range edges
        cdef RowSearch seek
        cdef term_t* env
        cdef uint32_t level = self.conjunction.depth
        cdef int done
        if watch.frontier == NULL:
            watch.frontier = self.frontier()
        frontier = watch.frontier
        task.negation = <PyObject*>self
        task.frontier, task.high = watch.frontier, watch.high
        done = 0
        if begun != NULL:
            task.since = Stretch(begun.last, greatest_micros(begun), watch.until)
            done = self.follow_unit_links(
                begun.edge, begun.env, &task.since, watch.high, frontier
            )
        else:
            self.push(frontier, watch.place, watch.low, self.stretch.micros, watch.context)
        memset(&seek, 0, sizeof(RowSearch))
        while not done and frontier.next < frontier.count:
            self.conjunction.depth = level
            self.conjunction.push_level()
            env = self.conjunction.levels[level]
            memcpy(
                env, frontier.values + <size_t>frontier.next * self.tables.cells,
                self.tables.cells * sizeof(term_t),
            )
            task.before, task.place = env, frontier.places[frontier.next]
            task.since = Stretch(
                frontier.lasts[frontier.next], frontier.micros[frontier.next], watch.until
            )
            frontier.next += 1
            if self.tables.places[task.place].operator == DEADLINE:
                done = self.follow_absence(&task)
                continue
            seek.negated, seek.found, seek.task = watch.negated, _followed, &task
            edges = self.conjunction.place_edges[task.place]
            for seek.edge in range(edges.first, edges.end):
                seek.low, seek.high = task.since.last, watch.high
                if self.conjunction.search_edge(&seek, task.before):
                    done = 1
                    break
        if done:
            frontier_clear(frontier)
        self.conjunction.depth = level
        return done

    cdef Frontier* frontier(self) except NULL nogil:
        """Acquire an empty frontier for the current search."""
        cdef Frontier* made
        if self.frontier_depth == self.frontier_count:
            self.frontiers = <Frontier**>mem_grow(
                self.frontiers, self.frontier_count + 1, sizeof(Frontier*),
                b"what a guard looks for",
            )
            made = <Frontier*>mem_calloc(1, sizeof(Frontier))
            made.cells = self.tables.cells
            self.frontiers[self.frontier_count] = made
            self.frontier_count += 1
        made = self.frontiers[self.frontier_depth]
        frontier_clear(made)
        self.frontier_depth += 1
        return made

    cdef int follow_absence(self, void* followed) except -1 nogil:
        """Let a guarded unit pass a deadline if it is early enough; 1 if the unit is complete."""
        cdef UnitSearch* task = <UnitSearch*>followed
        cdef uint32_t number = self.tables.places[task.place].edge_first
        cdef const Edge* edge = &self.tables.edges[number]
        cdef uint32_t level = self.conjunction.depth
        cdef Stretch kept = self.stretch, since
        cdef term_t* env
        cdef int64_t due
        cdef instant_t after
        cdef bint forbidden
        due = later(task.since.micros, edge.within)
        if due > task.since.until or due == INT64_MAX:
            return 0
        self.conjunction.push_level()
        env = self.conjunction.levels[level]
        memcpy(env, task.before, self.tables.cells * sizeof(term_t))
        begin_iterations(self.tables, edge, env)
        set_marks(edge, env, task.since.micros)
        if not limits_hold(edge, env, due):
            return 0
        after = first_since(self.window, due + 1, task.high)
        self.stretch = Stretch(task.since.last, task.since.micros, due)
        forbidden = self.forbidden_until(
            number, task.before, env, task.since.last, after, False
        ) != NO_INSTANT
        self.stretch = kept
        if forbidden:
            return 0
        since = Stretch(max(after - 1, task.since.last), due, task.since.until)
        return self.follow_unit_links(number, env, &since, task.high, task.frontier)

    cdef int follow_unit_links(
        self, uint32_t edge, const term_t* env, const Stretch* since, instant_t high,
        Frontier* frontier,
    ) except -1 nogil:
        """Follow the links of an edge inside a guard: 1 if the unit is complete."""
        cdef const Link* link = self.tables.edges[edge].link
        cdef Stretch kept = self.stretch
        cdef bint forbidden
        while link < self.tables.edges[edge].link_end:
            if not bounds_admit(self.tables, link, env):
                pass
            elif link.target == DONE:
                self.stretch = since[0]
                forbidden = self.forbids(
                    self.link_checks[link - self.tables.links], env, since.last, high
                )
                self.stretch = kept
                if not forbidden:
                    return 1
            else:
                self.push(frontier, link.target, since.last, since.micros, env)
            link += 1
        return 0

    cdef int push(
        self, Frontier* frontier, uint32_t target, instant_t last, int64_t micros, const term_t* env
    ) except -1 nogil:
        """Add an entry to a frontier."""
        cdef const Place* place = &self.tables.places[target]
        return frontier_push(
            frontier, target, last, micros, env,
            self.tables.numbers + place.live_first, place.live_end - place.live_first,
        )


cdef int _begun(void* watch, RowSearch* seek) except -1 nogil:
    return _begin(<Negation>(<GuardSearch*>watch).negation, seek)


cdef int _begin(Negation negation, RowSearch* seek) except -1 nogil:
    """Callback: a step that may begin a guarded unit."""
    cdef GuardSearch* watch = <GuardSearch*>seek.task
    cdef bint lone = seek.count == 1
    cdef instant_t low = bound_at(negation.window, seek.first) - 1 if watch.starting else watch.low
    cdef int64_t since = least_micros(seek) if watch.starting else negation.stretch.micros
    if seek.first <= watch.best:
        return lone
    if not in_time(negation.tables, seek, since):
        return 0
    if negation.tables.places[watch.place].operator == c";" and not watch.starting and (
        latest_rival(negation, watch.place, seek, watch.context, watch.low, since) > watch.low
    ):
        return 0
    if negation.edge_checks[seek.edge].first < negation.edge_checks[seek.edge].end and (
        _is_forbidden(negation, seek, watch.context, low, since, watch.starting) != NO_INSTANT
    ):
        return 0
    set_marks(&negation.tables.edges[seek.edge], seek.env, since)
    if not negation.completes(seek, watch):
        return 0
    watch.best = seek.first
    return lone


cdef int _followed(void* task, RowSearch* seek) except -1 nogil:
    return _follow(<Negation>(<UnitSearch*>task).negation, seek)


cdef int _follow(Negation negation, RowSearch* seek) except -1 nogil:
    """Callback: a step that may continue a guarded unit."""
    cdef UnitSearch* task = <UnitSearch*>seek.task
    cdef char mark = negation.tables.places[task.place].operator
    cdef const Edge* edge = &negation.tables.edges[seek.edge]
    cdef instant_t needed, last = task.since.last
    cdef int64_t ends = greatest_micros(seek), since = task.since.micros
    cdef Stretch after
    if not in_time(negation.tables, seek, since):
        return 0
    set_marks(edge, seek.env, since)
    if not limits_hold(edge, seek.env, ends):
        return 0
    needed = _is_forbidden(negation, seek, task.before, last, since, False)
    if mark == c",":
        needed = max(needed, negation.instant_before(seek.env, seek.first))
    elif mark == c";" and needed <= last:
        needed = latest_rival(negation, task.place, seek, task.before, last, since)
    if needed > last:
        return 0
    after = Stretch(seek.last, ends, task.since.until)
    return negation.follow_unit_links(seek.edge, seek.env, &after, task.high, task.frontier)


cdef instant_t _is_forbidden(
    Negation negation, RowSearch* seek, const term_t* before, instant_t low, int64_t since,
    bint starting,
) except -2 nogil:
    """The latest start of a forbidden unit between a time and a step of a guarded unit."""
    cdef Stretch kept = negation.stretch
    cdef instant_t found
    negation.stretch = Stretch(low, since, INT64_MIN)
    found = negation.forbidden_until(seek.edge, before, seek.env, low, seek.first, starting)
    negation.stretch = kept
    return found


# Earlier steps that a `;` place would have joined instead of a candidate.
cdef struct RivalSearch:
    RowSearch* candidate
    bint together
    bint alone          # the search is for one operand of an any-order group
    uint32_t operand    # operand of the candidate that the rival replaces
    int64_t micros
    PyObject* negation
    int64_t since       # the time from which the bounds of rivals count
    instant_t best


cdef instant_t latest_rival(
    Negation negation, uint32_t place, RowSearch* candidate, const term_t* before, instant_t low,
    int64_t since,
) except -2 nogil:
    """The latest start of a step that a `;` place would have joined before a candidate.

    The bounds of steps count from `since`. If it is INT64_MIN, a step before the candidate respects
    them as well. Partial matches with an older last event do not reach the candidate. One
    acceptable operand of an any-order group represents its side of a disjunction.
    """
    cdef Range edges = negation.conjunction.place_edges[place]
    cdef RivalSearch rival
    cdef RowSearch seek
    memset(&seek, 0, sizeof(RowSearch))
    memset(&rival, 0, sizeof(RivalSearch))
    rival.candidate, rival.best, rival.micros = candidate, NO_INSTANT, least_micros(candidate)
    rival.negation, rival.since = <PyObject*>negation, since
    rival.together = candidate.count > 1 and not negation.conjunction.any_order[candidate.edge]
    seek.found, seek.task = _rivals, &rival
    for seek.edge in range(edges.first, edges.end):
        seek.low, seek.high = low, candidate.first
        rival.alone = negation.conjunction.any_order[seek.edge]
        if not rival.alone:
            negation.conjunction.search_edge(&seek, before)
            continue
        if seek.edge == candidate.edge:
            _operands(negation, &seek, before, low, candidate)
        if seek.edge != candidate.edge or edges.end - edges.first > 1:
            _operands(negation, &seek, before, low, NULL)
    return rival.best


cdef int _operands(
    Negation negation, RowSearch* seek, const term_t* before, instant_t low, RowSearch* candidate
) except -1 nogil:
    """Search the rows of each operand of an any-order group, alone or with a candidate's others."""
    cdef Range choices, operands = negation.conjunction.edge_operands[seek.edge]
    cdef RivalSearch* rival = <RivalSearch*>seek.task
    cdef uint32_t i, j, level = negation.conjunction.depth
    cdef term_t* env
    cdef instant_t high = rival.candidate.first
    negation.conjunction.push_level()
    env = negation.conjunction.levels[level]
    for i in range(operands.first, operands.end):
        memcpy(env, before, negation.tables.cells * sizeof(term_t))
        begin_iterations(negation.tables, &negation.tables.edges[seek.edge], env)
        rival.operand = NIL
        if candidate != NULL:
            rival.operand = i - operands.first
            high = candidate.last + 1
            for j in range(candidate.count):
                if candidate.parts[j].operand != rival.operand:
                    if bind(
                        negation.tables,
                        &negation.tables.occurrences[candidate.parts[j].occurrence],
                        candidate.labels[j].row, env,
                    ) < 0:
                        return _raised()
                elif candidate.labels[j].instant < high:
                    high = candidate.labels[j].instant
        seek.start, seek.low, seek.high = env, low, high
        # The latest row of one alternative does not bound the others.
        choices = negation.conjunction.operand_choices[i]
        for j in range(choices.first, choices.end):
            seek.choices.first, seek.choices.end = j, j + 1
            negation.conjunction.search(seek)
    negation.conjunction.depth = level
    return 0


cdef int _rivals(void* task, RowSearch* seek) except -1 nogil:
    """Callback: an earlier step that a `;` place would have joined."""
    cdef RivalSearch* rival = <RivalSearch*>task
    cdef RowSearch* candidate = rival.candidate
    cdef uint32_t i, j
    if rival.since != INT64_MIN and not in_time(
        (<Negation>rival.negation).tables, seek, rival.since
    ):
        return 0
    # Two conjunctions with one timestamp are unordered.
    if not rival.alone and rival.together and seek.count > 1 and least_micros(seek) >= rival.micros:
        return 0
    if rival.alone and rival.operand != NIL:
        for i in range(candidate.count):
            if candidate.parts[i].operand == rival.operand:
                continue
            for j in range(seek.count):
                if (
                    candidate.labels[i].instant == seek.labels[j].instant
                    and candidate.labels[i].stream == seek.labels[j].stream
                ):
                    return 0
    if seek.first > rival.best:
        rival.best = seek.first
    return seek.count == 1
