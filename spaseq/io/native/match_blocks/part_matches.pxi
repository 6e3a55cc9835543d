"""The matches of the parts of a batch, and their order in the whole batch.

Several runs match parts of the events by key (event_parts.pxi), each in a thread. Each run
collects its matches of a batch, as objects or as texts in a block, with the places of the events at
which they become certain. `PartMerge` returns the matches in the order of these places, and those
of one event in the order of parts. (Matches that end with the same event are unordered unless a
clause orders them, and queries with such a clause are not divided.) At events with several keys, a
run can find matches whose key belongs to another part; these are dropped.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memset

from spaseq.engine.native._matches cimport MatchMaker, Matches
from spaseq.io.native._events cimport EventPart, part_of_term
from spaseq.nfa.native._tecs cimport Label
from spaseq.rdf.native._terms cimport mem_free, mem_grow
from spaseq.results.native._match cimport put

cdef object _END = object()

# A match: the place of its last event, and the end of its text.
cdef struct Placed:
    uint32_t place
    size_t end


cdef class PartMatches:
    """The matches of one part of a batch.

    Args:
        part: the events.
        parts: the number of parts.
        columns: per occurrence of a graph pattern, the column of the key in its rows.
        block: the block that the makers of the run write to, or None if they make objects.
    """

    cdef EventPart part
    cdef uint32_t parts
    cdef list columns
    cdef Block block
    cdef list objects
    cdef Text text
    cdef Placed* placed
    cdef size_t count, room
    cdef public object failure      # the error that ended the matches, or None
    cdef uint32_t failed_at         # the place of its event

    def __cinit__(
        self, EventPart part not None, uint32_t parts, list columns not None, Block block,
    ):
        self.part, self.parts, self.columns, self.block = part, parts, columns, block
        self.objects = []
        memset(&self.text, 0, sizeof(Text))

    def __dealloc__(self):
        mem_free(self.placed)
        mem_free(self.text.begin)

    def __len__(self):
        return self.count

    def take(self, Matches matches not None):
        """Add all matches of an iterator over the events of the part."""
        cdef size_t before
        while True:
            before = 0 if self.block is None else self.block.text.size
            match = next(matches, _END)
            if match is _END:
                return
            if self.part.shared[matches.after - 1] and not self._owns(matches.maker):
                matches.maker.made -= 1
                if match is None:
                    self.block.text.size = before
                    self.block.rows -= 1
                continue
            self._place(matches, match)

    def finish(self):
        """Take the texts of the matches from the block."""
        if self.block is not None:
            self.text = self.block.text
            memset(&self.block.text, 0, sizeof(Text))
            self.block.clear()

    def fail(self, error, uint32_t index):
        """Record an error that has ended the matches at an event of the part."""
        self.failure, self.failed_at = error, self.part.places[index]

    cdef int _place(self, Matches matches, match) except -1:
        cdef uint32_t index = matches.after - 1
        cdef Placed* placed
        if self.count == self.room:
            self.room = 2 * self.room + 16
            self.placed = <Placed*>mem_grow(
                self.placed, self.room, sizeof(Placed), b"the order of matches"
            )
        if match is not None:
            self.objects.append(match)
        placed = &self.placed[self.count]
        placed.place = self.part.places[index]
        placed.end = 0 if self.block is None else self.block.text.size
        self.count += 1
        return 0

    cdef bint _owns(self, MatchMaker maker) except -1:
        """Whether the key of the current match belongs to this part."""
        cdef const Label* label = maker.core.transitions.walk.path[0]
        cdef uint32_t occurrence = maker.reading.parts[maker.reading.part_of(label)].occurrence
        return part_of_term(
            maker.record(<Label*>label, <uint32_t>self.columns[occurrence] + 2), self.parts
        ) == self.part.part


cdef class PartMerge:
    """The matches of all parts of a batch, in order.

    If an error has ended a part, the matches after it are dropped.

    Args:
        parts: the matches of each part (`PartMatches`).
        block: the block to append texts to, or None for objects.
    """

    cdef list parts
    cdef Block block
    cdef list at                # per part, the number of matches that have been merged
    cdef uint32_t last          # the place of the first error
    cdef readonly object failure    # the first error, or None

    def __cinit__(self, list parts not None, Block block):
        cdef PartMatches part
        self.parts, self.block = parts, block
        self.at = [0] * len(parts)
        self.last = 0xFFFFFFFFu
        for part in parts:
            if part.failure is not None and (
                self.failure is None or part.failed_at < self.last
            ):
                self.failure, self.last = part.failure, part.failed_at

    def __iter__(self):
        return self

    def __next__(self):
        """The next match; with a block, None whenever the block is full, and at the end."""
        cdef PartMatches part
        cdef size_t at, begin
        cdef bint is_appended = False
        while True:
            number = self._least()
            if number < 0:
                if is_appended:
                    return None
                raise StopIteration
            part, at = self.parts[number], self.at[number]
            self.at[number] = at + 1
            if self.block is None:
                return part.objects[at]
            if self.block.rest == 0:
                raise StopIteration
            begin = part.placed[at - 1].end if at else 0
            put(&self.block.text, part.text.begin + begin, part.placed[at].end - begin)
            self.block.rest -= 1
            self.block.rows += 1
            is_appended = True
            if self.block.is_full():
                return None

    cdef int _least(self) except -2:
        """The part of the next match, or -1."""
        cdef PartMatches part
        cdef const Placed* placed
        cdef const Placed* least = NULL
        cdef int i, found = -1
        cdef size_t at
        for i in range(<int>len(self.parts)):
            part, at = self.parts[i], self.at[i]
            if at == part.count:
                continue
            placed = &part.placed[at]
            if placed.place <= self.last and (least == NULL or placed.place < least.place):
                least, found = placed, i
        return found
