"""The starts of matches that `AFTER MATCH SKIP TO` has ended, for fast lookup by a maker.

`spaseq.nfa.ended_starts` stores them as intervals, which saved state contains. Here, a lookup takes
constant time for each match. Without partitions, a ring of flags shows which starts have ended.
With partitions, a dictionary has the keys of the partitions for each start, as numbers of terms,
which are valid inside the window.
"""

from spaseq.nfa.native._tecs cimport Walk
from spaseq.rdf.native._terms cimport WINDOWED, mem_calloc, mem_free

cdef enum:
    OVER_MIN_KEYS = 256         # below this number of ended starts, none is removed


cdef class StartMarks:
    """The ended starts of one run.

    Args:
        core: the automaton.
        dictionary: the permanent terms.
        reading: decodes the matches.
        ended: the `EndedStarts` of the run.
    """

    def __cinit__(
        self, AutomatonCore core not None, Dictionary dictionary not None,
        MatchDecoder reading not None, ended,
    ):
        self.core, self.dictionary, self.reading = core, dictionary, reading
        self.ended, self.taken = ended, ended.skip.occurrences or None
        self.last = ended.skip.target == "last"
        ended.watched = True
        if core.partitions is None:
            self.over_room = 64
            self.over = <uint8_t*>mem_calloc(64, 1)
        else:
            self.over_keys, self.newly_over = {}, []

    def __dealloc__(self):
        mem_free(self.over)

    cdef bint passes_over(self) except -1:
        """Whether the start of the current match has ended; if not, note which starts it ends."""
        cdef uint32_t i, occurrence
        cdef Walk walk = self.core.transitions.walk
        cdef const Label* label
        cdef instant_t start = walk.start, until = -1
        cdef tuple key = ()
        cdef object numbers = None
        if self.over_keys is not None:
            label = walk.path[0]
            numbers = self.core.partitions.number_key(label)
            over = self.over_keys.get(start)
            if over is not None and numbers in over:
                return True
            key = tuple([self._term(number) for number in self.core.partitions.key_at(label)])
            if start < self.restored_end and self.ended.has(key, start):
                return True
        elif start < self.over_end and self.over[start & (self.over_room - 1)]:
            return True
        if self.taken is not None:
            for i in range(walk.length):
                label = walk.path[i]
                occurrence = self.reading.parts[self.reading.part_of(label)].occurrence
                # The path has the last event first.
                if occurrence in self.taken:
                    until = label.instant
                    if self.last:
                        break
        self.ended.later(key, start, until)
        if self.over_keys is not None:
            self.newly_over.append((numbers, start, max(until, start + 1)))
        return False

    cdef object _term(self, term_t number):
        """The term with a number from a label."""
        if number & WINDOWED:
            return self.core.event.terms.term(number)
        return self.dictionary.term(number)

    cdef int settle(self) except -1:
        """Begin an instant: starts that earlier instants have ended yield no more matches."""
        cdef instant_t i
        if self.over_keys is None:
            self.ended.settle(self.core.window.bound)
            for _, start, until in self.ended.fresh:
                self._mark(start, until)
            self.ended.fresh.clear()
            return 0
        if self.ended.watched:
            for _, _, until in self.ended.fresh:    # of a saved state
                self.restored_end = max(self.restored_end, until)
            self.ended.fresh.clear()
            self.ended.watched = False
        self.unsettled += len(self.newly_over)
        if self.unsettled > OVER_MIN_KEYS:
            # Only a saved state reads them.
            self.ended.settle(self.core.window.bound)
            self.unsettled = 0
        for numbers, start, until in self.newly_over:
            for i in range(start, until):
                self.over_keys.setdefault(i, set()).add(numbers)
        self.newly_over.clear()
        if len(self.over_keys) > self.over_keys_due:
            for instant in [each for each in self.over_keys if each < self.core.window.bound]:
                del self.over_keys[instant]
            self.over_keys_due = 2 * len(self.over_keys) + OVER_MIN_KEYS
        return 0

    cdef int _mark(self, instant_t start, instant_t until) except -1:
        """Mark starts as ended."""
        cdef instant_t i, first = min(self.core.window.bound, start), room = self.over_room
        cdef uint8_t* wider
        while max(until, self.over_end) - first > room:
            room *= 2
        if room > self.over_room:
            wider = <uint8_t*>mem_calloc(room, 1)
            for i in range(max(first, self.over_end - self.over_room), self.over_end):
                wider[i & (room - 1)] = self.over[i & (self.over_room - 1)]
            mem_free(self.over)
            self.over, self.over_room = wider, room
        for i in range(max(self.over_end, until - room), until):
            self.over[i & (room - 1)] = False
        self.over_end = max(self.over_end, until)
        for i in range(start, until):
            self.over[i & (room - 1)] = True
        return 0
