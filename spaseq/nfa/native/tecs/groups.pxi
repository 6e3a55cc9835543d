"""The configurations of one place: a group for each valuation of its live registers.

A group is found by all its registers, by an index over the registers that an edge shares with its
rows, or by the order of one register that a filter compares. The slots of removed groups are
reused, so memory depends on the greatest number of groups at any time. Cost: constant for each of
these operations; logarithmic with an order.
"""

from spaseq.rdf.native._terms cimport lines_grow, mem_calloc, mem_free, mem_grow

cdef const char* FOR_GROUPS = b"another group of partial matches"

cdef enum:
    HEADS_PER_SLOT = 4 # hash chains per group slot: most hold one group or none
    MIN_SLOTS = 16  # group slots at the beginning
    CLEARED_PIECE_ENTRIES = 0x20000 # heads or roots cleared at once: 512 KB


cdef inline uint32_t _like(
    Groups groups, Chains* chains, uint32_t group, uint32_t hash, const term_t* key
) noexcept nogil:
    """The first group of a chain with a key, from `group` on; hashes exclude most others."""
    cdef ChainLinks* all_links
    while group != NIL:
        all_links = links_of(groups, chains, group)
        if all_links.hash == hash and _agrees(groups, chains, group, key):
            return group
        group = all_links.next
    return NIL


cdef inline bint _agrees(
    Groups groups, const Chains* chains, uint32_t group, const term_t* key
) noexcept nogil:
    cdef term_t* values = values_of(groups, group)
    cdef uint32_t i
    for i in range(chains.width):
        if values[chains.columns[i]] != key[i]:
            return False
    return True


cdef class Groups:
    """The groups of one place.

    Args:
        width: number of live registers.
        indexes: for each index, the live registers that it reads and the one it orders by, or -1.
        registers: resolves their terms.
        dated: members are also found by their last instants.
        floored: groups have floors.
    """

    def __cinit__(
        self, uint32_t width, indexes, TermResolver registers not None, bint dated=False,
        bint floored=False,
    ):
        cdef uint32_t i, j
        self.registers = registers
        self.orders = [None] + [RangeIndex() if ordered >= 0 else None for _, ordered in indexes]
        self.orders_at = <PyObject**>mem_calloc(len(self.orders), sizeof(PyObject*))
        for i, order in enumerate(self.orders):
            self.orders_at[i] = <PyObject*>order
        self.changed_places = &self.bit # groups outside of a place never set it
        self.width = width
        self.stride = (
            sizeof(Group) + width * sizeof(term_t) - sizeof(term_t) + LINE_BYTES - 1
        ) & ~(
            <size_t>LINE_BYTES - 1
        )
        self.dated, self.floored = dated, floored
        self.free = NIL
        self.chain_count = 1 + <uint32_t>len(indexes)
        self.chains = <Chains*>mem_calloc(self.chain_count, sizeof(Chains))
        for i, (columns, ordered) in enumerate([(list(range(width)), -1), *indexes]):
            self.chains[i].ordered = ordered
            self.chains[i].width = <uint32_t>len(columns)
            self.chains[i].columns = <uint32_t*>mem_calloc(len(columns), sizeof(uint32_t))
            for j, column in enumerate(columns):
                self.chains[i].columns[j] = column
            self.chains[i].same = i > 0 and ordered < 0 and columns == list(range(width))
        self._grow_arrays(MIN_SLOTS * 5 // 8)
        self._alloc_tables(MIN_SLOTS)
        self._rehash(MIN_SLOTS)
        self.due = MIN_SLOTS * 5 // 8

    def __dealloc__(self):
        cdef uint32_t i
        if self.chains != NULL:
            for i in range(self.chain_count):
                mem_free(self.chains[i].columns)
                mem_free(self.chains[i].heads)
                mem_free(self.chains[i].links)
        mem_free(self.chains)
        mem_free(self.orders_at)
        mem_free(self.lines.block)
        mem_free(self.dates)
        mem_free(self.raised)
        mem_free(self.alive)

    cdef int grow_in_parts(self) except -1 nogil:
        """Grow towards twice the room, in the parts due at this number of groups.

        Growing in parts bounds the cost for a single event. First access to fresh memory takes
        longer than re-inserting the groups, since the system clears it, and a virtual machine may
        have to map it. Groups are re-inserted when there is room for one more, because the next
        group begins new pages.
        """
        cdef uint32_t eighth = self.room // 8
        if self.count == 5 * eighth:
            self._grow_arrays(10 * eighth)
            self.due = 6 * eighth
        elif self.count < self.room - 1:
            if self.count == 6 * eighth:
                self._alloc_tables(2 * self.room)
            self.due = self.count + 1 if self._clear_next_piece() else self.room - 1
        else:
            self._rehash(2 * self.room)
            self.due = 10 * eighth
        return 0

    cdef int _grow_arrays(self, uint32_t most) except -1 nogil:
        """Grow the per-group arrays; the next group touches the new memory first."""
        lines_grow(
            &self.lines, self.count * self.stride // LINE_BYTES, most * self.stride // LINE_BYTES,
            FOR_GROUPS,
        )
        if self.dated:
            self.dates = <Dates*>mem_grow(self.dates, most, sizeof(Dates), FOR_GROUPS)
        if self.floored:
            self.raised = <term_t*>mem_grow(self.raised, most, sizeof(term_t), FOR_GROUPS)
        self.alive = <uint32_t*>mem_grow(self.alive, most, sizeof(uint32_t), FOR_GROUPS)
        return 0

    cdef int _alloc_tables(self, uint32_t room) except -1 nogil:
        """Allocate larger lookup tables, not used yet."""
        cdef uint32_t i
        cdef Chains* chains
        self.clearing = self.cleared = 0
        for i in range(self.chain_count):
            chains = &self.chains[i]
            if chains.ordered >= 0:
                (<RangeIndex>self.orders_at[i]).alloc_room(room)
            elif not chains.same:
                chains.heads = <uint32_t*>mem_grow(
                    chains.heads, HEADS_PER_SLOT * room, sizeof(uint32_t), FOR_GROUPS
                )
                if i:
                    chains.links = <ChainLinks*>mem_grow(
                        chains.links, room, sizeof(ChainLinks), FOR_GROUPS
                    )
        return 0

    cdef bint _clear_next_piece(self) noexcept nogil:
        """Clear the next piece of the larger tables; False if none is left."""
        cdef Chains* chains
        cdef uint32_t* table
        cdef uint64_t added, some
        while self.clearing < self.chain_count:
            chains = &self.chains[self.clearing]
            table, added = chains.heads, 0 if chains.same else <uint64_t>chains.mask + 1
            if chains.ordered >= 0:
                table = (<RangeIndex>self.orders_at[self.clearing]).roots
                added = <uint64_t>(<RangeIndex>self.orders_at[self.clearing]).mask + 1
            if self.cleared < added:
                some = min(CLEARED_PIECE_ENTRIES, added - self.cleared)
                memset(table + added + self.cleared, 0xFF, some * sizeof(uint32_t))
                self.cleared += some
                return True
            self.clearing += 1
            self.cleared = 0
        return False

    cdef int _rehash(self, uint32_t room) except -1 nogil:
        """Switch to the larger tables and re-insert the groups."""
        cdef uint32_t i, group
        cdef Chains* chains
        for i in range(self.chain_count):
            chains = &self.chains[i]
            if chains.ordered >= 0:
                (<RangeIndex>self.orders_at[i]).reset(room)
            elif not chains.same:
                chains.mask = HEADS_PER_SLOT * room - 1
                memset(chains.heads, 0xFF, HEADS_PER_SLOT * room * sizeof(uint32_t))
            else:
                continue
            for group in range(self.count):
                if not group_at(self, group).alive:
                    continue
                if chains.ordered >= 0:
                    (<RangeIndex>self.orders_at[i]).insert_entry(group)
                else:
                    chain_insert(self, chains, group, links_of(self, chains, group).hash)
        self.room = room
        return 0

    cdef uint32_t first(self, uint32_t index, const term_t* key) noexcept nogil:
        """The first group with these values in the columns of an index, or NIL."""
        cdef Chains* chains = &self.chains[0 if self.chains[index].same else index]
        cdef uint32_t hash = hash_of(key, chains.width)
        return _like(self, chains, chains.heads[hash & chains.mask], hash, key)

    cdef uint32_t next_of(self, uint32_t index, uint32_t group, const term_t* key) noexcept nogil:
        """The group after one that `first` or `next_of` returned, or NIL."""
        cdef Chains* chains = &self.chains[index]
        if chains.same:
            return NIL     # no other group has the same registers
        return _like(
            self, chains, chains.links[group].next, chains.links[group].hash, key
        )

    cdef int add_dated(
        self, Tecs tecs, uint32_t group, Node* node, instant_t bound
    ) except -1 nogil:
        """Add a member to the stretch of its last instant and time, the greatest so far."""
        cdef InstantMembers* newest = self.dates[group].newest
        cdef InstantMembers* made
        cdef instant_t last = node.label.instant
        cdef int64_t micros = node.label.micros
        if newest == NULL:
            self.dates[group].oldest = last
        if newest == NULL or newest.last != last or newest.micros != micros:
            made = <InstantMembers*>tecs_alloc(tecs, sizeof(InstantMembers))
            memset(made, 0, sizeof(InstantMembers))
            made.last, made.older, made.latest, made.older_latest = last, newest, -1, -1
            made.micros = micros
            if newest != NULL:
                made.older_latest = max(newest.latest, newest.older_latest)
            self.dates[group].newest = newest = made
        assert newest.last == last and (newest.older == NULL or newest.older.last <= last)
        newest.members = union_add(tecs, newest.members, newest.latest, node, bound)
        newest.latest = max(newest.latest, node.latest)
        return 0

    cdef int invalidate(self, uint32_t group) noexcept nogil:
        """Mark the unions that contain a group as stale, in every order that stores unions."""
        cdef uint32_t i
        for i in range(self.chain_count):
            if self.chains[i].ordered >= 0:
                (<RangeIndex>self.orders_at[i]).invalidate(group)
        return 0

    cdef int clear(self) except -1 nogil:
        """Remove all groups."""
        while self.live_count:
            remove_group(self, self.alive[self.live_count - 1])
        return 0
