# cython: language_level=3, boundscheck=False, wraparound=False
"""The complete matches of a core, as lists of steps.

Cost: linear in the steps of the returned matches.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from spaseq.nfa.native._window cimport Awaited, Window, end_of, opening_of
from spaseq.nfa.native._automaton cimport AutomatonCore
from spaseq.nfa.native._groups cimport Group, Groups, group_at
from spaseq.nfa.native._conjunction cimport Range
from spaseq.nfa.native._tecs cimport Label, Node, Walk, instant_t
from spaseq.rdf._effort cimport begin_event, check_signals

from spaseq.rdf.limits import LimitReached


def pop_complete(AutomatonCore core not None, step_of, bint one):
    """The matches completed since the last call: (start, steps, a label) of each.

    `one`: one match per last node suffices. `step_of` builds a step from the addresses of its
    labels.
    """
    cdef uint32_t i, j, parts
    cdef uint64_t left = core.event.effort.max_steps
    cdef dict steps = {}
    cdef list found = []
    cdef Walk walk = core.transitions.walk
    cdef Node* node
    core.event.match_generation += 1
    for i in range(core.instant.accepted_count):
        node = core.instant.accepted[i]
        walk.begin(node, core.since_at(node))
        while walk.advance():
            if left == 0:
                raise LimitReached("matches")
            left -= 1
            if not left & 0xFFF:
                check_signals()
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


def pop_closed(AutomatonCore core not None, before, step_of):
    """The waiting matches whose windows close before a time (None: all), by start.

    Returns (time of the start, [(start, steps, a label) of each]) pairs; times in microseconds.
    """
    cdef Window window = core.window
    cdef instant_t i = window.bound
    cdef instant_t start
    cdef Awaited* match
    cdef Group* group
    cdef list found = []
    begin_event(&core.event.effort)
    while window.awaited_count and i <= window.now and (
        before is None or window.times[i & window.times_mask] < opening_of(window, before)
    ):
        start, i = i, i + 1
        match = window.awaited[start & window.times_mask]
        window.awaited[start & window.times_mask] = NULL
        some = []
        while match != NULL:
            window.awaited_count -= 1
            group = group_at(<Groups>core.instant.groups_at[match.place], match.group)
            if not group.alive or group.serial != match.serial or (
                _forbidden(core, match, window.times[start & window.times_mask])
            ):
                core.forbidden += 1
            else:
                steps = tuple([step_of(labels) for labels in steps_of(match)])
                some.append((start, steps, <size_t>match.labels[0]))
            match = match.next
        if some:
            some.reverse()
            found.append((window.times[start & window.times_mask], some))
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
