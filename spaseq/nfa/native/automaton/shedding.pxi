"""Shedding: under a limit, the oldest groups of partial matches are removed.

The age of a group is that of its latest start: the groups that would expire first are shed first. A
match that waits for its window to close counts as a group, and is shed in the same way.

Invariant: the remaining state is the one that would exist if the shed starts had never occurred.
Cost: linear in the groups and in the instants of the window.
"""

from spaseq.nfa.native._tecs cimport CLOSING, Awaited, group_at, remove_group
from spaseq.rdf.native._terms cimport mem_calloc, mem_free


cdef inline bint _counts(Tables tables, uint32_t place, int64_t only) noexcept nogil:
    """Whether the groups of a place count: those of `only`, or of all if it is negative."""
    if only >= 0:
        return place == only and tables.places[place].operator != 0
    return tables.places[place].operator != 0 and tables.places[place].operator != CLOSING


cdef uint64_t count_held(Tables tables, Window window, list groups, int64_t only) noexcept with gil:
    """The number of unexpired groups and waiting matches, or of the groups of one place."""
    cdef uint64_t found = 0 if only >= 0 else window.awaited_count
    cdef uint32_t i, j
    cdef Groups some
    for i in range(tables.place_count):
        if _counts(tables, i, only):
            some = <Groups>groups[i]
            for j in range(some.live_count):
                found += group_at(some, some.alive[j]).latest >= window.bound
    return found


cdef int shed(
    Tables tables, Window window, list groups, uint64_t surplus, int64_t only
) except -1 with gil:
    """Shed the `surplus` oldest, of one place or of all (`only` < 0)."""
    cdef size_t length = <size_t>(window.now - window.bound + 1)
    cdef uint64_t* starts = <uint64_t*>mem_calloc(length, sizeof(uint64_t))
    cdef instant_t last = window.bound
    cdef uint64_t left = surplus
    cdef uint32_t i, j
    cdef Groups some
    cdef Group* group
    try:
        for i in range(tables.place_count):
            if _counts(tables, i, only):
                some = <Groups>groups[i]
                for j in range(some.live_count):
                    group = group_at(some, some.alive[j])
                    if group.latest >= window.bound:
                        starts[group.latest - window.bound] += 1
        if only < 0:
            _count_awaited(window, starts)
        while last < window.now and starts[last - window.bound] < left:
            left -= starts[last - window.bound]
            last += 1
    finally:
        mem_free(starts)
    # Shed all starts before `last`, and `left` of those at `last`.
    for i in range(tables.place_count):
        if not _counts(tables, i, only):
            continue
        some = <Groups>groups[i]
        j = some.live_count
        while j:
            j -= 1
            group = group_at(some, some.alive[j])
            if group.latest < window.bound or group.latest > last:
                continue
            if group.latest == last:
                if left == 0:
                    continue
                left -= 1
            remove_group(some, some.alive[j])
            tables.places[i].shed += 1
    if only < 0:
        _shed_awaited(window, last, left)
    return 0


cdef int _count_awaited(Window window, uint64_t* starts) noexcept nogil:
    cdef instant_t i
    cdef Awaited* match
    for i in range(window.bound, window.now + 1):
        match = window.awaited[i & window.times_mask]
        while match != NULL:
            starts[i - window.bound] += 1
            match = match.next
    return 0


cdef int _shed_awaited(Window window, instant_t last, uint64_t left) noexcept nogil:
    """Shed waiting matches that start before `last`, and `left` of those at `last`."""
    cdef instant_t i
    cdef Awaited** head
    for i in range(window.bound, last + 1):
        head = &window.awaited[i & window.times_mask]
        while head[0] != NULL and (i < last or left):
            left -= i == last
            head[0] = head[0].next
            window.awaited_count -= 1
            window.shed_matches += 1
    return 0
