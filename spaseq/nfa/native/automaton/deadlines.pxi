"""Timers: which partial matches pass a deadline, and when.

A place that waits for a deadline has one queue of timers, one for each group and last instant. Each
of its deadlines follows the last event, or the last deadline, after the same time, so the queue is
in order of time. A guard that removes a group leaves its timers behind; they are dropped when they
come to the front.

Invariants: the deadlines of a queue do not decrease; a timer is valid if its group has the same
serial number and the window has not passed the last instant of its members. Cost: constant for each
timer. Memory: the timers of the deadline's time, or of the window's if that is shorter.
"""

from libc.stdint cimport INT64_MAX
from libc.stdlib cimport qsort

from spaseq.nfa.native._tecs cimport group_at, place_at, remove_group
from spaseq.rdf.native._terms cimport later, mem_calloc, mem_free, mem_grow

cdef enum:
    MIN_TIMERS = 64


cdef int _by_time(const void* one, const void* other) noexcept nogil:
    cdef int64_t first = (<const Timer*>one).due, second = (<const Timer*>other).due
    if first == second:
        # The newest members of a group come last: the group ends with their timer.
        first, second = (<const Timer*>one).last, (<const Timer*>other).last
    return (first > second) - (first < second)


cdef class Deadlines:
    """The timers of one automaton; `rows` are the `CoreTables`."""

    def __cinit__(self, rows, OpenInstant instant not None):
        cdef uint32_t i
        cdef TimedPlace* at
        self.instant, self.window, self.tables = instant, instant.window, instant.tables
        self.count = <uint32_t>len(rows.deadlines)
        self.places = <TimedPlace*>mem_calloc(self.count, sizeof(TimedPlace))
        self.number_of = <uint32_t*>mem_calloc(len(rows.places), sizeof(uint32_t))
        self.soonest = self.soonest_ending = INT64_MAX
        for i, (place, ending, begins) in enumerate(rows.deadlines):
            at = &self.places[i]
            at.place, at.ending, at.begins = place, ending, begins
            at.size = rows.edges[rows.places[place][4]].within
            at.room = MIN_TIMERS
            at.timers = <Timer*>mem_calloc(MIN_TIMERS, sizeof(Timer))
            self.number_of[at.place] = i

    def __dealloc__(self):
        cdef uint32_t i
        if self.places != NULL:
            for i in range(self.count):
                mem_free(self.places[i].timers)
        mem_free(self.places)
        mem_free(self.number_of)

    cdef int add(self, uint32_t place, uint32_t group, InstantMembers* members) except -1 nogil:
        """Start the timer of the newest members of a group."""
        cdef TimedPlace* at = &self.places[self.number_of[place]]
        cdef Timer* timer
        self.trim(at, <Groups>self.instant.groups_at[at.place])
        if at.end - at.first == at.room:
            self._grow(at)
        timer = &at.timers[at.end & (at.room - 1)]
        # A deadline after the greatest timestamp is reached at the end of input only.
        timer.due = later(members.micros, at.size)
        timer.serial = group_at(<Groups>self.instant.groups_at[place], group).serial
        timer.members, timer.last, timer.group = members, members.last, group
        at.end += 1
        self.soonest = min(self.soonest, timer.due)
        if at.ending:
            self.soonest_ending = min(self.soonest_ending, timer.due)
        return 0

    cdef int _grow(self, TimedPlace* at) except -1 nogil:
        """Double the room of a ring."""
        cdef uint32_t room = at.room
        cdef uint64_t i
        at.timers = <Timer*>mem_grow(
            at.timers, 2 * <size_t>room, sizeof(Timer), b"another timer"
        )
        for i in range(at.first, at.end):
            if i & room:
                at.timers[i & (2 * room - 1)] = at.timers[i & (room - 1)]
        at.room = 2 * room
        return 0

    cdef int trim(self, TimedPlace* at, Groups groups) except -1 nogil:
        """Drop timers from the front whose members can no longer pass their deadline."""
        cdef const Timer* timer
        cdef const Group* group
        while at.first != at.end:
            timer = &at.timers[at.first & (at.room - 1)]
            group = group_at(groups, timer.group)
            if group.alive and group.serial == timer.serial:
                if timer.last >= self.window.reach:
                    break
                if groups.dates[timer.group].newest == timer.members:
                    place_at(self.tables, at.place).expired += 1
                    remove_group(groups, timer.group)
            at.first += 1
        return 0

    cdef int64_t next_due(self, bint ending) except? -2 nogil:
        """The first deadline, or the first one that may end a match; INT64_MAX if there is none.

        A deadline after the greatest timestamp is INT64_MAX, too.
        """
        cdef uint32_t i
        cdef int64_t found = INT64_MAX
        cdef TimedPlace* at
        for i in range(self.count):
            at = &self.places[i]
            if ending and not at.ending:
                continue
            self.trim(at, <Groups>self.instant.groups_at[at.place])
            if at.first != at.end:
                found = min(found, at.timers[at.first & (at.room - 1)].due)
        if ending:
            self.soonest_ending = found
        else:
            self.soonest = found
        return found

    cdef bint waits(self, bint ending) except -1 nogil:
        """Whether there is a deadline, or one that may end a match, even an unreachable one."""
        cdef uint32_t i
        self.next_due(ending)
        for i in range(self.count):
            if self.places[i].first != self.places[i].end and (
                not ending or self.places[i].ending
            ):
                return True
        return False

    cdef int order(self) except -1 nogil:
        """Sort the timers, after they have been added in any order."""
        cdef uint32_t i
        cdef uint64_t j, count
        cdef TimedPlace* at
        cdef Timer* sorted_timers
        for i in range(self.count):
            at = &self.places[i]
            count = at.end - at.first
            sorted_timers = <Timer*>mem_calloc(at.room, sizeof(Timer))
            for j in range(count):
                sorted_timers[j] = at.timers[(at.first + j) & (at.room - 1)]
            qsort(sorted_timers, count, sizeof(Timer), _by_time)
            mem_free(at.timers)
            at.timers, at.first, at.end = sorted_timers, 0, count
        return 0
