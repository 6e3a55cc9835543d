# cython: language_level=3, boundscheck=False, wraparound=False
"""All matches of an automaton, shared: nodes that extend unions of nodes.

A node is one event that ended a step, on top of every partial match it was joined to; a
union is a heap of nodes ordered by their greatest start, the latest on top. So the matches
that end in a node and start inside the window are enumerated without ever visiting what has
expired: the time to the next match depends on its length alone, and on how deep unions of unions
are nested, which is logarithmic in the groups they are of. Unions are persistent:
adding a node to one leaves the old one to whoever holds it.

Memory is that of epochs, stretches of consecutive instants: nothing is counted or walked to
free it. When the window has passed over an epoch's last instant, every match through one of
its nodes has expired, and the epoch's memory goes as a whole.

Asserted in debug builds: what stands beside a reference is the greatest start behind it, no union
has a greater start below than on top, no match starts before its bound or goes back in time.

Cost: extending is constant, and so is uniting two unions; adding is constant where starts come
in order, else amortised logarithmic. Source: Bucchi, Grez, Quintana, Riveros, Vansummeren: CORE,
VLDB 2022, section 5, with heaps in the place of union lists.
"""

from libc.string cimport memset

from spaseq.rdf._memory cimport Chunk, chunk_new, chunks_free, give_back, no_room, resized, zeroed

# An epoch is about one EPOCHS-th of what lives, but one chunk at least: of so many bytes, of more
# where more lives, and above MIDDLE of a large page, though that is half of what lives at first.
cdef uint32_t EPOCHS = 16
cdef size_t SMALLEST = 1 << 16
cdef size_t MIDDLE = 1 << 18
cdef size_t LARGEST = 1 << 21


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
    """The nodes of one run."""

    def __cinit__(self):
        self.room = 4
        self.epochs = <Epoch*>zeroed(self.room, sizeof(Epoch))
        self._measure(0)

    def __dealloc__(self):
        cdef uint32_t i
        if self.epochs != NULL:
            for i in range(self.room):
                chunks_free(self.epochs[i].chunks)
        give_back(self.epochs)
        chunks_free(self.spares)

    @property
    def bytes(self):
        """The bytes that nodes, unions and labels take now."""
        return self._live() - <size_t>(self.end - self.next)

    @property
    def reserved(self):
        """The bytes of all chunks, also of those that wait to be used again."""
        cdef uint32_t i
        cdef size_t found = _size_of(self.spares)
        for i in range(self.room):
            found += _size_of(self.epochs[i].chunks)
        return found

    cdef int _spare_others(self) noexcept nogil:
        """All chunks of the current epoch but the one at hand wait to be used again."""
        cdef Epoch* epoch = self.current_epoch()
        cdef Chunk* first = epoch.chunks
        cdef Chunk* chunk = first.next
        first.next, epoch.size = NULL, first.size
        while chunk != NULL:
            first, chunk.next, self.spares = chunk.next, self.spares, chunk
            chunk = first
        return 0

    cdef size_t _live(self) noexcept nogil:
        """The bytes of all epochs, with what is left of the current one."""
        cdef uint64_t i
        cdef size_t live = 0
        for i in range(self.oldest, self.current + 1):
            live += self.epochs[i & (self.room - 1)].size
        return live

    cdef int _measure(self, size_t live) noexcept nogil:
        """How large the chunks are that come, and the epoch, where so many bytes live."""
        cdef size_t wanted = live // EPOCHS
        self.chunk_bytes = SMALLEST
        while self.chunk_bytes < wanted and self.chunk_bytes <= MIDDLE:
            self.chunk_bytes *= 2
        if self.chunk_bytes > MIDDLE:
            self.chunk_bytes = LARGEST
        # An epoch ends where its last chunk is nearly full.
        wanted = max(wanted // self.chunk_bytes, 1) * self.chunk_bytes
        self.epoch_bytes = wanted - self.chunk_bytes // 16
        return 0

    cdef int forget(self, instant_t bound) noexcept nogil:
        """The epochs that lie before `bound` go, but for the current one."""
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
        """An epoch for the instants that come."""
        cdef Epoch* grown
        cdef uint64_t i
        self.current_epoch().size = self.filled()
        self.next = self.end
        self._measure(self._live())
        if self.current - self.oldest + 1 == self.room:
            grown = <Epoch*>zeroed(2 * self.room, sizeof(Epoch))
            for i in range(self.oldest, self.current + 1):
                grown[i & (2 * self.room - 1)] = self.epochs[i & (self.room - 1)]
            give_back(self.epochs)
            self.epochs = grown
            self.room *= 2
        self.current += 1
        return 0

    cdef int next_chunk(self, size_t size) except -1 nogil:
        """Room for a piece of so many bytes in the current epoch."""
        cdef Epoch* epoch = self.current_epoch()
        cdef Chunk* chunk = self.spares
        if chunk != NULL and chunk.size >= size:
            self.spares = chunk.next
        else:
            chunk = chunk_new(max(self.chunk_bytes - sizeof(Chunk), size))
            if chunk == NULL:
                no_room(b"another partial match")
        epoch.size += chunk.size - <size_t>(self.end - self.next)
        chunk.next, epoch.chunks = epoch.chunks, chunk
        self.next = <char*>(chunk + 1)
        self.end = self.next + chunk.size
        return 0

    cdef Label* label(self, uint32_t width) except NULL nogil:
        """A label with room for a row."""
        cdef size_t size = size_of_label(width)
        cdef Label* label = <Label*>piece_of(self, size)
        memset(label, 0, size)
        label.width = width
        return label

    cdef union_t insert(
        self, Cell* cell, union_t heap, instant_t heap_latest, instant_t bound
    ) except 0 nogil:
        """The union of a heap and the node of a cell, which starts before another one does."""
        cdef Cell* top
        cdef Cell* copy
        cdef union_t first = 0
        cdef union_t* where = &first
        cdef instant_t* where_latest = NULL
        _assert_latest(heap, heap_latest)
        # Walk down the right spine, copied, to where the node belongs; each copy changes its
        # sides, so that the heap stays balanced on average (a skew heap).
        while heap and heap_latest >= bound and heap_latest > cell.latest:
            copy = <Cell*>piece_of(self, sizeof(Cell))
            where[0] = <union_t>copy | UNION
            if where_latest != NULL:
                where_latest[0] = heap_latest
            where, where_latest = &copy.left, &copy.left_latest
            copy.latest = heap_latest
            if not heap & UNION:
                copy.node, copy.right, copy.right_latest = <Node*>heap, 0, 0
                heap = 0
                break
            top = cell_of(heap)
            _assert_latest(heap, max(top.left_latest, top.right_latest, top.latest))
            copy.node, copy.right, copy.right_latest = top.node, top.left, top.left_latest
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
        """The union of two that share nothing; `one` may be nobody."""
        cdef Cell* cell
        if one == 0:
            return other
        _assert_latest(one, one_latest)
        _assert_latest(other, other_latest)
        cell = <Cell*>piece_of(self, sizeof(Cell))
        cell.node = NULL
        cell.left, cell.left_latest = one, one_latest
        cell.right, cell.right_latest = other, other_latest
        cell.latest = max(one_latest, other_latest)
        return <union_t>cell | UNION


cdef class Walk:
    """The matches that end in a node, one after the other, each when it is asked for.

    Cost: `begin` is constant, `advance` linear in the length of the match it comes to.
    """

    def __cinit__(self):
        self.stack_room = self.path_room = 64
        self.stack = <union_t*>zeroed(self.stack_room, sizeof(union_t))
        self.depths = <uint32_t*>zeroed(self.stack_room, sizeof(uint32_t))
        self.path = <Label**>zeroed(self.path_room, sizeof(Label*))

    def __dealloc__(self):
        give_back(self.stack)
        give_back(self.depths)
        give_back(self.path)

    cdef int advance(self) except -1 nogil:
        """Come to the next match: 1, or 0 when there is none.

        Its labels are path[length - 1], …, path[0]; its first event came at `start`.
        """
        cdef Node* node = self.node
        if node == NULL:
            if self.count == 0:
                return 0
            self.count -= 1
            self.depth = self.depths[self.count]
            node = self._enter(self.stack[self.count])
        while True:
            if self.depth == self.path_room:
                self._deepen()
            assert self.depth == 0 or node.label.instant <= self.path[self.depth - 1].instant
            self.path[self.depth] = node.label
            self.depth += 1
            if node.before == 0:
                break
            node = self._enter(node.before) if node.before & UNION else <Node*>node.before
        assert node.latest >= self.bound
        self.node = NULL
        self.length = self.depth
        self.start = node.latest
        return 1

    cdef Node* _enter(self, union_t members) except NULL nogil:
        """A node of a union; what else it holds comes later, at the same depth."""
        cdef Cell* cell
        cdef bint left, right
        while members & UNION:
            cell = cell_of(members)
            left = cell.left != 0 and cell.left_latest >= self.bound
            right = cell.right != 0 and cell.right_latest >= self.bound
            if cell.node != NULL:
                if left:
                    self._push(cell.left)
                if right:
                    self._push(cell.right)
                return cell.node
            if left and right:
                self._push(cell.right)
            members = cell.left if left else cell.right
        return <Node*>members

    cdef int _push(self, union_t members) except -1 nogil:
        if self.count == self.stack_room:
            self._heighten()
        self.stack[self.count] = members
        self.depths[self.count] = self.depth
        self.count += 1
        return 0

    cdef int _heighten(self) except -1 nogil:
        cdef size_t room = 2 * <size_t>self.stack_room
        cdef union_t* unions = <union_t*>resized(self.stack, room * sizeof(union_t))
        cdef uint32_t* depths
        if unions != NULL:
            self.stack = unions
        depths = <uint32_t*>resized(self.depths, room * sizeof(uint32_t))
        if depths != NULL:
            self.depths = depths
        if unions == NULL or depths == NULL:
            with gil:
                raise MemoryError("no room for the matches still to be enumerated")
        self.stack_room = <uint32_t>room
        return 0

    cdef int _deepen(self) except -1 nogil:
        cdef size_t room = 2 * <size_t>self.path_room
        cdef Label** longer = <Label**>resized(self.path, room * sizeof(Label*))
        if longer == NULL:
            with gil:
                raise MemoryError("no room for a longer match")
        self.path = longer
        self.path_room = <uint32_t>room
        return 0
