"""The timed enumerable compact set; see _tecs.pyx."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from spaseq.rdf._memory cimport Chunk
from spaseq.rdf._terms cimport term_t

# Instants are numbered densely from 0.
ctypedef int64_t instant_t

# An event that matched a place of the sequence, with one of its rows.
cdef struct Label:
    int64_t micros      # the event's time, in microseconds
    uint64_t line
    instant_t instant
    uint32_t stream     # positions in the run's lists of streams and files
    uint32_t file
    uint32_t ordinal
    term_t name         # name of the event's graph; terms are permanent or of the window
    term_t stamp        # the literal of a numeric time
    uint16_t domain     # 0: the time is a number, 1: a date
    uint8_t part        # which pattern of the step the event matched; of a deadline, whether it
                        # begins an iteration
    uint8_t parts       # number of events of the step; 0: no event but a deadline, whose row is the
                        # key of its partition
    uint32_t edge       # the edge taken
    uint32_t width
    term_t row[2]       # `width` of them: with two, a label fills one cache line

# A union of nodes: the address of a single node, or the address of a Cell with a tag bit; 0 is
# empty. Invariant: memory behind a reference whose `latest` lies below the bound of the window may
# have been freed, so `latest` is read before the reference is followed.
ctypedef size_t union_t
cdef enum:
    UNION = 1

# All partial matches that end with `label`.
cdef struct Node:
    Label* label
    union_t before      # the union that the label extends; 0: it begins them
    instant_t latest    # their greatest start, which is that of `before`

# A union of nodes, as a heap: no start below is greater than that of its node. A cell without a
# node is the union of its two sides, and has the greater of their starts.
cdef struct Cell:
    Node* node
    union_t before      # `before` of the node
    instant_t latest    # of all
    union_t left
    instant_t left_latest   # -1: empty
    union_t right
    instant_t right_latest

# A union to be entered by matches whose last `depth` events are on the path.
cdef struct PendingUnion:
    union_t members
    uint64_t depth

# A run of consecutive instants, and the memory of their nodes, unions and labels.
cdef struct Epoch:
    Chunk* chunks       # in the current epoch, the chunk being filled comes first
    size_t size         # bytes of the chunks; of a finished epoch, the bytes used
    instant_t last


@cython.final
cdef class Tecs:
    cdef Epoch* epochs      # a ring of `room`, from `oldest` to `current`
    cdef uint32_t room      # a power of two
    cdef uint64_t oldest
    cdef uint64_t current
    cdef Chunk* spares      # chunks of freed epochs, the most recently used first
    cdef size_t epoch_bytes         # size at which the current epoch ends
    cdef size_t chunk_bytes         # size of a new chunk
    cdef char* next                 # the unused rest of the chunk being filled
    cdef char* end
    cdef readonly uint64_t made     # nodes created so far

    cdef inline int begin(self, instant_t now, instant_t bound) except -1 nogil:
        """Begin an instant, and free the epochs before `bound`."""
        if self.oldest < self.current:
            self.free_before(bound)
        assert self.current_epoch().last <= now
        if self.filled() >= self.epoch_bytes:
            self.next_epoch()
        self.current_epoch().last = now
        return 0
    cdef inline Epoch* current_epoch(self) noexcept nogil:
        return &self.epochs[self.current & (self.room - 1)]
    cdef inline size_t filled(self) noexcept nogil:
        """The bytes used in the current epoch."""
        return self.current_epoch().size - <size_t>(self.end - self.next)
    cdef inline int clear(self) noexcept nogil:
        """Free everything, if no instant has begun."""
        cdef Chunk* chunk = self.current_epoch().chunks
        if chunk != NULL:
            self.next = <char*>(chunk + 1)
            if chunk.next != NULL:
                self._spare_others()
        return 0
    cdef int _spare_others(self) noexcept nogil
    cdef size_t _live(self) noexcept nogil
    cdef int _measure(self, size_t live) noexcept nogil
    cdef int free_before(self, instant_t bound) noexcept nogil
    cdef int next_epoch(self) except -1 nogil
    cdef int next_chunk(self, size_t size) except -1 nogil
    cdef Label* label(self, uint32_t width) except NULL nogil
    cdef union_t insert(
        self, Cell* cell, union_t heap, instant_t heap_latest, instant_t bound
    ) except 0 nogil
    cdef union_t unite(
        self, union_t one, instant_t one_latest, union_t other, instant_t other_latest
    ) except 0 nogil


@cython.final
cdef class Walk:
    cdef bint timed             # some labels are deadlines; the path leaves out those that begin no
                                # iteration
    cdef PendingUnion next      # the source of the next match; empty: none
    cdef instant_t bound
    cdef PendingUnion* stack    # the sources of the matches after it; the lowest two entries are
                                # empty
    cdef uint32_t top           # index of its top entry: at least 1
    cdef uint32_t stack_room
    cdef Label** path           # the labels of the current match, the last event's first
    cdef uint32_t path_room
    cdef uint32_t length
    cdef instant_t start

    cdef inline int begin(self, Node* end, instant_t bound) except -1 nogil:
        """Begin to enumerate the matches that end in a node and start at `bound` or later."""
        assert bound >= 0
        self.bound = bound
        self.next.members = <union_t>end if end.latest >= bound else 0
        self.next.depth, self.top = 0, 1
        return 0
    cdef inline int stop(self) noexcept nogil:
        """End the enumeration."""
        self.next.members = 0
        return 0
    cdef inline bint has_next(self) noexcept nogil:
        """Whether there is another match."""
        return self.next.members != 0
    cdef inline int advance(self) except -1 nogil:
        """Advance to the next match: 1, or 0 if there is none.

        Its labels are path[length - 1], …, path[0]; its first event arrived at `start`.
        """
        cdef uint64_t events = 0
        return <int>self.advance_by(1, &events)
    cdef uint64_t advance_by(self, uint64_t most, uint64_t* events) except? 0xFFFFFFFFFFFFFFFF nogil
    cdef int _grow_stack(self) except -1 nogil
    cdef int _grow_path(self) except -1 nogil


cdef inline Cell* cell_of(union_t members) noexcept nogil:
    """The cell of a union of several nodes."""
    return <Cell*>(members ^ UNION)


cdef inline Node* top_of(union_t members) noexcept nogil:
    """A node of a union that has a node of its own."""
    return cell_of(members).node if members & UNION else <Node*>members


cdef inline instant_t start_of(union_t members) noexcept nogil:
    """The greatest start of a union."""
    return cell_of(members).latest if members & UNION else (<Node*>members).latest


cdef inline size_t size_of_label(uint32_t width) noexcept nogil:
    """The bytes of a label with a row of `width` terms."""
    return sizeof(Label) + width * sizeof(term_t) - 2 * sizeof(term_t)


cdef inline void* tecs_alloc(Tecs tecs, size_t size) except NULL nogil:
    """Allocate memory that lives as long as the window may need the current instant."""
    cdef char* piece
    size = (size + 7) & ~<size_t>7
    if <size_t>(tecs.end - tecs.next) < size:
        tecs.next_chunk(size)
    piece = tecs.next
    tecs.next = piece + size
    return piece


# Functions that return pointers cannot assert without the GIL themselves (Cython 3.1).
cdef inline int assert_above(
    const Label* label, union_t before, instant_t start
) except -1 nogil:
    assert start <= label.instant
    assert before == 0 or start_of(before) == start
    return 0


cdef inline Node* new_node(
    Tecs tecs, Label* label, union_t before, instant_t start
) except NULL nogil:
    """Extend a union by one event; an empty union yields the event alone.

    `start` is the greatest start of the union, or the event's own instant.
    """
    cdef Node* node = <Node*>tecs_alloc(tecs, sizeof(Node))
    assert_above(label, before, start)
    node.label = label
    node.before = before
    node.latest = start
    tecs.made += 1
    return node


cdef inline union_t union_add(
    Tecs tecs, union_t heap, instant_t heap_latest, Node* node, instant_t bound
) except 0 nogil:
    """The union of a heap (maybe empty) and a node."""
    cdef Cell* cell
    if heap == 0 or heap_latest < bound:
        return <union_t>node
    cell = <Cell*>tecs_alloc(tecs, sizeof(Cell))
    cell.node, cell.before, cell.latest = node, node.before, node.latest
    cell.left = cell.right = 0
    cell.left_latest = cell.right_latest = -1
    # The heap itself is not read: it may be as old as the window.
    if heap_latest > node.latest:
        return tecs.insert(cell, heap, heap_latest, bound)
    cell.left, cell.left_latest = heap, heap_latest
    return <union_t>cell | UNION
