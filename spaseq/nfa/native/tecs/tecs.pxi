"""The timed enumerable compact set of an automaton: nodes that extend unions of nodes.

A node is one event that ended a step, on top of every partial match that it extends. A union is a
heap of nodes ordered by their greatest start, the latest on top. So enumeration of the matches that
end in a node and start inside the window never visits expired nodes: the delay to the next match
depends on its length, and on the nesting of unions of unions, which is logarithmic in the number of
united groups. Unions are persistent: adding a node to a union leaves the old one intact.

Memory belongs to epochs, runs of consecutive instants: freeing it needs no reference counts and no
traversal. When an epoch's last instant has expired, every match through one of its nodes has
expired, and the epoch is freed as a whole.

Asserted in debug builds: the start stored beside a reference is the greatest one behind it, no
union has a greater start below than on top, no match starts before its bound or goes back in time.

Cost: extending is constant, and so is uniting two unions; adding is constant if starts arrive in
order, otherwise amortised logarithmic. Source: Bucchi, Grez, Quintana, Riveros, Vansummeren: CORE,
VLDB 2022, section 5, with heaps instead of union lists.
"""

from spaseq.rdf.native._terms cimport (
    chunk_new,
    chunks_free,
    mem_calloc,
    mem_free,
    mem_realloc,
    raise_no_memory,
)

# An epoch has about 1/EPOCH_COUNT of the live bytes, but at least one chunk. The size of a chunk is
# at least CHUNK_MIN_BYTES and grows with the live bytes to CHUNK_MIDDLE_BYTES. Above that it is
# CHUNK_MAX_BYTES, a large page, even though that may be half of the live bytes at first.
cdef uint32_t EPOCH_COUNT = 16

cdef size_t CHUNK_MIN_BYTES = 1 << 16

cdef size_t CHUNK_MIDDLE_BYTES = 1 << 18

cdef size_t CHUNK_MAX_BYTES = 1 << 21


cdef inline int _assert_latest(union_t members, instant_t latest) except -1 nogil:
    assert start_of(members) == latest
    return 0


cdef size_t _size_of(const Chunk* chunk) noexcept nogil:
    """The bytes of a list of chunks."""
    cdef size_t found = 0
    while chunk != NULL:
        found += sizeof(Chunk) + chunk.size
        chunk = chunk.next
    return found


cdef class Tecs:
    """The nodes, unions and labels of one run."""

    def __cinit__(self):
        self.room = 4
        self.epochs = <Epoch*>mem_calloc(self.room, sizeof(Epoch))
        self._measure(0)

    def __dealloc__(self):
        cdef uint32_t i
        if self.epochs != NULL:
            for i in range(self.room):
                chunks_free(self.epochs[i].chunks)
        mem_free(self.epochs)
        chunks_free(self.spares)

    @property
    def bytes(self):
        """The bytes that nodes, unions and labels use now."""
        return self._live() - <size_t>(self.end - self.next)

    @property
    def reserved(self):
        """The bytes of all chunks, including spare ones."""
        cdef uint32_t i
        cdef size_t found = _size_of(self.spares)
        for i in range(self.room):
            found += _size_of(self.epochs[i].chunks)
        return found

    cdef int _spare_others(self) noexcept nogil:
        """Move all chunks of the current epoch except the first to the spare ones."""
        cdef Epoch* epoch = self.current_epoch()
        cdef Chunk* first = epoch.chunks
        cdef Chunk* chunk = first.next
        first.next, epoch.size = NULL, first.size
        while chunk != NULL:
            first, chunk.next, self.spares = chunk.next, self.spares, chunk
            chunk = first
        return 0

    cdef size_t _live(self) noexcept nogil:
        """The bytes of all epochs, including the unused rest of the current one."""
        cdef uint64_t i
        cdef size_t live = 0
        for i in range(self.oldest, self.current + 1):
            live += self.epochs[i & (self.room - 1)].size
        return live

    cdef int _measure(self, size_t live) noexcept nogil:
        """Set the sizes of the next chunks and of the epoch, given the number of live bytes."""
        cdef size_t wanted = live // EPOCH_COUNT
        self.chunk_bytes = CHUNK_MIN_BYTES
        while self.chunk_bytes < wanted and self.chunk_bytes <= CHUNK_MIDDLE_BYTES:
            self.chunk_bytes *= 2
        if self.chunk_bytes > CHUNK_MIDDLE_BYTES:
            self.chunk_bytes = CHUNK_MAX_BYTES
        # An epoch ends when its last chunk is nearly full.
        wanted = max(wanted // self.chunk_bytes, 1) * self.chunk_bytes
        self.epoch_bytes = wanted - self.chunk_bytes // 16
        return 0

    cdef int free_before(self, instant_t bound) noexcept nogil:
        """Free the epochs before `bound`, except the current one."""
        cdef Epoch* epoch
        cdef Chunk* chunk
        while self.oldest < self.current:
            epoch = &self.epochs[self.oldest & (self.room - 1)]
            if epoch.last >= bound:
                break
            while epoch.chunks != NULL:
                chunk = epoch.chunks
                epoch.chunks = chunk.next
                chunk.next, self.spares = self.spares, chunk
            epoch.size = 0
            self.oldest += 1
        return 0

    cdef int next_epoch(self) except -1 nogil:
        """Begin an epoch for the next instants."""
        cdef Epoch* grown
        cdef uint64_t i
        self.current_epoch().size = self.filled()
        self.next = self.end
        self._measure(self._live())
        if self.current - self.oldest + 1 == self.room:
            grown = <Epoch*>mem_calloc(2 * self.room, sizeof(Epoch))
            for i in range(self.oldest, self.current + 1):
                grown[i & (2 * self.room - 1)] = self.epochs[i & (self.room - 1)]
            mem_free(self.epochs)
            self.epochs = grown
            self.room *= 2
        self.current += 1
        return 0

    cdef int next_chunk(self, size_t size) except -1 nogil:
        """Add a chunk with room for `size` bytes to the current epoch."""
        cdef Epoch* epoch = self.current_epoch()
        cdef Chunk* chunk = self.spares
        if chunk != NULL and chunk.size >= size:
            self.spares = chunk.next
        else:
            chunk = chunk_new(max(self.chunk_bytes - sizeof(Chunk), size))
            if chunk == NULL:
                raise_no_memory(b"another partial match")
        epoch.size += chunk.size - <size_t>(self.end - self.next)
        chunk.next, epoch.chunks = epoch.chunks, chunk
        self.next = <char*>(chunk + 1)
        self.end = self.next + chunk.size
        return 0

    cdef Label* label(self, uint32_t width) except NULL nogil:
        """Create a label with room for a row."""
        cdef size_t size = size_of_label(width)
        cdef Label* label = <Label*>tecs_alloc(self, size)
        memset(label, 0, size)
        label.width = width
        return label

    cdef union_t insert(
        self, Cell* cell, union_t heap, instant_t heap_latest, instant_t bound
    ) except 0 nogil:
        """The union of a heap and the node of a cell, whose start is less than the heap's."""
        cdef Cell* top
        cdef Cell* copy
        cdef union_t first = 0
        cdef union_t* where = &first
        cdef instant_t* where_latest = NULL
        _assert_latest(heap, heap_latest)
        # Copy the right spine down to the position of the node, and swap the sides of each copy,
        # which keeps the heap balanced on average (a skew heap).
        while heap and heap_latest >= bound and heap_latest > cell.latest:
            copy = <Cell*>tecs_alloc(self, sizeof(Cell))
            where[0] = <union_t>copy | UNION
            if where_latest != NULL:
                where_latest[0] = heap_latest
            where, where_latest = &copy.left, &copy.left_latest
            copy.latest = heap_latest
            if not heap & UNION:
                copy.node, copy.before = <Node*>heap, (<Node*>heap).before
                copy.right, copy.right_latest = 0, -1
                heap = 0
                break
            top = cell_of(heap)
            _assert_latest(heap, max(top.left_latest, top.right_latest, top.latest))
            copy.node, copy.before = top.node, top.before
            copy.right, copy.right_latest = top.left, top.left_latest
            heap, heap_latest = top.right, top.right_latest
        if heap and heap_latest >= bound:
            cell.left, cell.left_latest = heap, heap_latest
        where[0] = <union_t>cell | UNION
        if where_latest != NULL:
            where_latest[0] = cell.latest
        return first

    cdef union_t unite(
        self, union_t one, instant_t one_latest, union_t other, instant_t other_latest
    ) except 0 nogil:
        """The union of two disjoint unions; `one` may be empty."""
        cdef Cell* cell
        if one == 0:
            return other
        _assert_latest(one, one_latest)
        _assert_latest(other, other_latest)
        cell = <Cell*>tecs_alloc(self, sizeof(Cell))
        cell.node, cell.before = NULL, 0
        cell.left, cell.left_latest = one, one_latest
        cell.right, cell.right_latest = other, other_latest
        cell.latest = max(one_latest, other_latest)
        return <union_t>cell | UNION


cdef class Walk:
    """The matches that end in a node, enumerated one at a time.

    Cost: `begin` is constant; `advance` and each match of `advance_by` are at most linear in the
    length of the match. The common end of two successive matches is not traversed again.
    """

    def __cinit__(self):
        self.stack_room = self.path_room = 64
        self.stack = <PendingUnion*>mem_calloc(self.stack_room, sizeof(PendingUnion))
        self.path = <Label**>mem_calloc(self.path_room, sizeof(Label*))

    def __dealloc__(self):
        mem_free(self.stack)
        mem_free(self.path)

    cdef uint64_t advance_by(
        self, uint64_t most, uint64_t* events
    ) except? 0xFFFFFFFFFFFFFFFF nogil:
        """Advance by up to `most` matches; returns how many there were.

        Adds the number of events of each match to `events`. The path is that of the last match, and
        is unchanged if there is none.
        """
        cdef uint64_t passed = 0, seen = 0, depth = self.next.depth, length = 0
        cdef union_t members = self.next.members, before
        cdef PendingUnion* top = self.stack + self.top
        cdef PendingUnion later = top[0]  # the top entry lives in registers, not in the stack
        cdef const PendingUnion* full = self.stack + self.stack_room - 2 # from here on, two entries
                                                                        # do not fit
        cdef Node* node = NULL
        cdef const Cell* cell
        cdef bint timed = self.timed
        while passed < most and members:
            if members & UNION:
                cell = cell_of(members)
                if top >= full:
                    self.top = <uint32_t>(top - self.stack)
                    self._grow_stack()
                    top, full = self.stack + self.top, self.stack + self.stack_room - 2
                node, before = cell.node, cell.before
                if node == NULL and cell.left_latest < self.bound:
                    assert cell.right_latest >= self.bound
                    members = cell.right
                    continue
                if node != NULL and cell.left_latest >= self.bound:
                    top[0] = later
                    later.members, later.depth = cell.left, depth
                    top += 1
                if cell.right_latest >= self.bound:
                    top[0] = later
                    later.members, later.depth = cell.right, depth
                    top += 1
                if node == NULL:
                    members = cell.left
                    continue
            else:
                node = <Node*>members
                before = node.before
            if timed and node.label.parts == 0 and node.label.part == 0:
                members = before
                continue
            if depth == self.path_room:
                self._grow_path()
            assert depth == 0 or node.label.instant <= self.path[depth - 1].instant
            self.path[depth] = node.label
            depth += 1
            members = before
            if members == 0:
                passed += 1
                seen += depth
                length = depth
                members, depth = later.members, later.depth
                top -= 1
                later = top[0]
        if passed:
            assert node.latest >= self.bound
            self.start, self.length = node.latest, <uint32_t>length
        self.next.members, self.next.depth = members, depth
        self.top = <uint32_t>max(top - self.stack, 1)
        self.stack[self.top] = later
        events[0] += seen
        return passed

    cdef int _grow_stack(self) except -1 nogil:
        cdef size_t room = 2 * <size_t>self.stack_room
        cdef PendingUnion* higher = <PendingUnion*>mem_realloc(
            self.stack, room * sizeof(PendingUnion)
        )
        if higher == NULL:
            raise_no_memory(b"the matches still to be enumerated")
        self.stack, self.stack_room = higher, <uint32_t>room
        return 0

    cdef int _grow_path(self) except -1 nogil:
        cdef size_t room = 2 * <size_t>self.path_room
        cdef Label** longer = <Label**>mem_realloc(self.path, room * sizeof(Label*))
        if longer == NULL:
            raise_no_memory(b"a longer match")
        self.path = longer
        self.path_room = <uint32_t>room
        return 0
