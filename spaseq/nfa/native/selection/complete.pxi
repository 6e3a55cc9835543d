"""The complete matches of a core that have waited, and complete matches as lists of steps.

Cost: linear in the steps of the returned matches.
"""

from spaseq.nfa.native._automaton cimport Range
from spaseq.nfa.native._tecs cimport (
    Group,
    Groups,
    Window,
    closing_of,
    count_match,
    end_of,
    group_at,
    opening_of,
)
from spaseq.rdf.native._terms cimport begin_event


def pop_complete(AutomatonCore core not None, step_of, bint one):
    """The matches completed since the last call: (start, steps, a label) of each.

    `one`: one match per last node suffices. `step_of` builds a step from the addresses of its
    labels.
    """
    cdef uint32_t i, j, parts
    cdef uint64_t listed = 0
    cdef dict steps = {}
    cdef list found = []
    cdef Walk walk = core.transitions.walk
    cdef Node* node
    core.event.match_generation += 1
    for i in range(core.instant.accepted_count):
        node = core.instant.accepted[i]
        walk.begin(node, core.since_at(node))
        while walk.advance():
            if not count_match(core.event, &listed):
                core.instant.accepted_count = 0
                return found
            match = []
            j = walk.length
            while j:
                parts = max(walk.path[j - 1].parts, 1)
                j -= parts
                key = <size_t>walk.path[j + parts - 1]
                step = steps.get(key)
                if step is None:
                    step = steps[key] = step_of(tuple([
                        <size_t>walk.path[j + parts - 1 - k] for k in range(parts)
                    ]))
                match.append(step)
            found.append((walk.start, tuple(match), <size_t>walk.path[0]))
            if one:
                break
    core.instant.accepted_count = 0
    return found


cdef class Closing:
    """The matches that come out before a time: waiting ones, and those that end at a deadline.

    Args:
        core: the automaton.
        before: windows and deadlines before this time are due; None: all.
    """

    def __cinit__(self, AutomatonCore core not None, before):
        self.core = core
        self.is_open = before is not None
        self.before = before if self.is_open else 0
        self.start = core.window.bound
        begin_event(&core.event.effort)

    cdef int _first_start(self) noexcept:
        """Go to the first start with waiting matches; `now + 1` if there is none."""
        cdef Window window = self.core.window
        if window.awaited_count == 0:
            self.start = window.now + 1
        while self.start <= window.now and window.awaited[self.start & window.times_mask] == NULL:
            self.start += 1
        return 0

    cdef bint next_time(self) except -1:
        """Go to the next time at which something may come out; False if there is none.

        The core's complete matches are then those that end at a deadline. The waiting matches of
        the previous time have been taken.
        """
        cdef Window window = self.core.window
        cdef int64_t begun, deadline = self.core.deadlines.next_due(False)
        cdef bint closes
        self._first_start()
        closes = self.start <= window.now
        if closes:
            begun = window.times[self.start & window.times_mask]
            closes = not self.is_open or begun < opening_of(window, self.before)
            self.micros = closing_of(window, begun)
        self.is_deadline = (
            deadline < self.before if self.is_open else self.core.deadlines.waits(False)
        )
        if closes and self.is_deadline:
            # A tumbling window closes before the events of the time.
            self.is_deadline = deadline < self.micros or (
                deadline == self.micros and not window.tumbling
            )
        if self.is_deadline:
            self.micros = deadline
            self.core.event.match_generation += 1
            self.core.pass_deadline_at(deadline)
            # From now on, matches may wait whose starts have already been visited.
            self.start = window.bound
        self.begun = closes or self.is_deadline
        self.listed = 0
        return self.begun

    cdef bint next_match(self) except -1:
        """Go to the next waiting match of the current time; False if there is none."""
        cdef Window window = self.core.window
        cdef Awaited* match
        cdef Group* group
        cdef int64_t begun
        while True:
            while self.rest != NULL:
                match, self.rest = self.rest, self.rest.next
                window.awaited_count -= 1
                group = group_at(<Groups>self.core.instant.groups_at[match.place], match.group)
                if group.alive and group.serial == match.serial and not _forbidden(
                    self.core, match, window.times[(self.start - 1) & window.times_mask]
                ):
                    self.match = match
                    if count_match(self.core.event, &self.listed):
                        return True
                    continue
                self.core.forbidden += 1
            self._first_start()
            if self.start > window.now or not self.begun:
                return False
            begun = window.times[self.start & window.times_mask]
            if closing_of(window, begun) != self.micros or (self.is_deadline and window.tumbling):
                return False
            # The match that began to wait last is the first of the list.
            match = window.awaited[self.start & window.times_mask]
            window.awaited[self.start & window.times_mask] = NULL
            while match != NULL:
                match.next, self.rest, match = self.rest, match, match.next
            self.start += 1

    cdef int set_walk(self) except -1:
        """Position the core's walk at the current match."""
        cdef Walk walk = self.core.transitions.walk
        cdef uint32_t i
        while walk.path_room < self.match.length:
            walk._grow_path()
        for i in range(self.match.length):
            walk.path[self.match.length - 1 - i] = self.match.labels[i]
        walk.length, walk.start = self.match.length, self.start - 1
        walk.stop()
        return 0

    # ---------------------------------------------------------------- for Python

    def advance(self):
        """See `next_time`."""
        return self.next_time()

    def pop_waiting(self, step_of):
        """The waiting matches of the current time: (start, steps, a label) of each."""
        cdef list found = []
        while self.next_match():
            steps = tuple([step_of(labels) for labels in steps_of(self.match)])
            found.append((self.start - 1, steps, <size_t>self.match.labels[0]))
        return found


cdef bint _forbidden(AutomatonCore core, Awaited* match, int64_t begun) except -1:
    """Whether a guard that is not decided on sight forbids a match whose window has closed.

    `begun` is the time of its first event.
    """
    cdef Range checks = core.negation.place_checks[match.place]
    cdef const Label* last
    if checks.first == checks.end:
        return False
    core.negation.begin()
    core.instant.remember(
        core.event.env, &core.tables.places[match.place],
        <Groups>core.instant.groups_at[match.place], match.group,
    )
    last = match.labels[match.length - 1] if match.deadline == NULL else match.deadline
    core.negation.base(last.instant, last.micros, end_of(core.window, begun))
    return core.negation.forbids(checks, core.event.env, last.instant, core.window.now + 1)


cdef list steps_of(Awaited* match):
    """The addresses of the labels of each step."""
    cdef list steps = []
    cdef uint32_t i = 0, j, parts
    while i < match.length:
        parts = max(match.labels[i].parts, 1)
        steps.append(tuple([<size_t>match.labels[i + j] for j in range(parts)]))
        i += parts
    return steps
