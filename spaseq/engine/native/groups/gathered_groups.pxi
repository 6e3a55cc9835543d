"""Results of an instant that are gathered for sliding groups.

The core adds results to groups by itself if they are independent of each other, and if registers
suffice for keys and arguments (`group_results.pxi`). Otherwise the matches of an instant are
gathered, and the output stage computes keys and arguments and chooses among the matches. The
results are added to the groups in the core by the texts of their keys and arguments. Each solution
becomes a match with the steps of the newest result of its group.

Invariant and cost are those of `Gathering`.
"""

from libc.stdint cimport int64_t, uint32_t

from spaseq.engine.native._matches cimport DecodedStep, Gathering, MatchMaker
from spaseq.results.native._match cimport Match


cdef class GroupGathering(Gathering):
    """The results of one instant of a core, and the matches of their groups."""

    cdef SolutionMaker solutions
    cdef dict found             # the number of a newest result → the match of its group

    def solve_with(self, SolutionMaker solutions not None):
        """Set the maker of the matches of groups, before the first result."""
        self.solutions = solutions

    cdef list arranged(self, list steps, int64_t now):
        """Add the results to their groups; the newest results of the solutions, in order."""
        cdef uint32_t i, number, group
        cdef list order = self.in_order(steps), groups
        cdef dict newest = {}   # the number of a group → its newest result, in order
        cdef GroupMatch match
        self.found = {}
        if self.stage.groups.native is None:
            return self._grouped_in_python(order, steps, now)
        for i in range(<uint32_t>len(order)):
            number = order[i]
            group = self._insert(number, <tuple>steps[number], now)
            if group == 0:
                self.stage.groups.leave_core(i)
                return self._grouped_in_python(order, steps, now)
            newest.pop(group, None)
            newest[group] = number
        groups = list(newest)
        for i, match in self.solutions.made(groups, now, None):
            number = newest[groups[i]]
            match.steps = <tuple>steps[number]
            self.found[number] = match
        return list(self.found)

    cdef uint32_t _insert(self, uint32_t number, tuple steps, int64_t now) except? 0:
        """Add a result to its group; the group, or 0 if the groups refuse a number."""
        cdef NativeGroups groups = self.solutions.groups
        cdef DecodedStep first = <DecodedStep>steps[0], values = self.values[number]
        cdef uint32_t i, place
        groups.key_size = 0
        for i in range(groups.key_count):
            groups.put_key(values._text(i + 2), values.sizes()[i + 2])
        groups.sizes[0] = 0
        if not first.domain:
            groups.texts[0], groups.sizes[0] = first._text(0), first.sizes()[0]
        for i in range(groups.argument_count):
            place = groups.key_count + i + 2
            groups.texts[i + 1], groups.sizes[i + 1] = values._text(place), values.sizes()[place]
            groups.numbers[i].unbound = groups.sizes[i + 1] == 0
            if groups.sizes[i + 1] and not groups.read(
                i, groups.texts[i + 1], groups.sizes[i + 1]
            ):
                return 0
        return groups.insert(first.micros, first.domain, now)

    cdef list _grouped_in_python(self, list order, list steps, int64_t now):
        """As `arranged`, if Python keeps the groups."""
        cdef list results = []
        for number in order:
            results.append((
                number, self._computed_terms(number),
                (<DecodedStep>(<tuple>steps[number])[0]).timestamp(),
            ))
        for solution in self.stage.grouped(results, now):
            self.found[solution.newest] = self.solutions.solved(
                solution, <tuple>steps[solution.newest]
            )
        return list(self.found)

    cdef tuple _computed_terms(self, uint32_t number):
        """The keys and the arguments of a result."""
        cdef DecodedStep values = self.values[number]
        return () if values is None else tuple(values.read()[2:])

    cdef tuple _solution(self, uint32_t number, list steps):
        """The variables of a result and its keys, which identify it."""
        return self.stage.identified(
            self.ordering.solution(<tuple>steps[number], None), self._computed_terms(number)
        )

    cdef tuple sort_key(self, uint32_t number, list steps):
        return self.ordering.sort_key_of(
            self._solution(number, steps), <tuple>steps[number], self.values[number]
        )


cdef class GatheredGroupMaker(MatchMaker):
    """Makes the matches of the groups to which a `GroupGathering` adds results."""

    cdef GroupMatch current

    cdef int position_walk(self, uint32_t number) except -1:
        self.current = (<GroupGathering>self.gathering).found[number]
        return 0

    cdef Match match(self, object version):
        cdef GroupMatch match = self.current
        match.kb_version = version
        match.ending, match.closed_by_end = self.ending, self.ending.by_input
        self.made += 1
        return match
