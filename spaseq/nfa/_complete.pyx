# cython: language_level=3, boundscheck=False, wraparound=False
"""The complete matches of a core, taken from it as lists of steps, or counted.

Cost: linear in the steps of what is taken; a count takes as long, without Python objects.
"""

from libc.stdint cimport uint32_t, uint64_t

from spaseq.nfa._clock cimport Awaited, opening_of
from spaseq.nfa._core cimport AutomatonCore
from spaseq.nfa._groups cimport Group, Groups
from spaseq.nfa._tecs cimport instant_t

from spaseq.nfa.limits import LimitReached


def take(AutomatonCore core not None, step_of, bint one):
    """The matches that were completed since the last call: (start, steps, a label) of each.

    `one` for each last step is enough; `step_of` makes a step of a label's address.
    """
    cdef uint32_t i, j
    cdef uint64_t left = core.most_steps
    cdef dict steps = {}
    cdef list found = []
    core.turn += 1
    for i in range(core.accepted_count):
        core.walk.begin(core.accepted[i], core.since_at(core.accepted[i]))
        while core.walk.advance():
            if left == 0:
                raise LimitReached("matches")
            left -= 1
            match = []
            j = core.walk.length
            while j:
                j -= 1
                key = <size_t>core.walk.path[j]
                step = steps.get(key)
                if step is None:
                    step = steps[key] = step_of(key)
                match.append(step)
            found.append((core.walk.start, tuple(match), <size_t>core.walk.path[0]))
            if one:
                break
    core.accepted_count = 0
    return found


def due(AutomatonCore core not None, before, step_of):
    """The matches whose windows are over before a time (None: all there are), by start.

    That is (time of the start, [(start, steps, a label) of each]).
    """
    cdef instant_t i = core.bound
    cdef instant_t start
    cdef Awaited* match
    cdef uint32_t j
    cdef Group* group
    cdef list found = []
    while core.awaited_count and i <= core.now and (
        before is None or core.times[i & core.times_mask] < opening_of(core, before)
    ):
        start, i = i, i + 1
        match = core.awaited[start & core.times_mask]
        core.awaited[start & core.times_mask] = NULL
        some = []
        while match != NULL:
            core.awaited_count -= 1
            group = &(<Groups>core.groups[match.place]).groups[match.group]
            if not group.alive or group.serial != match.serial:
                core.forbidden += 1
            else:
                steps = [step_of(<size_t>match.labels[j]) for j in range(match.length)]
                some.append((start, tuple(steps), <size_t>match.labels[0]))
            match = match.next
        if some:
            some.reverse()
            found.append((core.times[start & core.times_mask], some))
    return found


def tally(AutomatonCore core not None):
    """How many matches were completed since the last call, which nobody looks at."""
    cdef uint64_t found = 0
    cdef uint32_t i
    core.turn += 1
    for i in range(core.accepted_count):
        core.walk.begin(core.accepted[i], core.since_at(core.accepted[i]))
        while core.walk.advance():
            found += 1
    core.accepted_count = 0
    return found
