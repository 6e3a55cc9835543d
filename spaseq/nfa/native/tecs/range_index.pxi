"""Groups in the order of one register's value: an index for `<`, `<=`, `=`, `>` and `>=`.

Groups are bucketed by (hash of the equality key, rank). Each bucket is a treap whose nodes are
sorted blocks of up to 64 (value, group) pairs; a hash table holds the roots. Ranks separate values
that cannot be compared: numbers, texts, and all others. A block has room at both ends. The groups
that a `;` place joins, and those that arrive afterwards, are at one end of it, and an open range is
read from that end. Most trees are one block; a lone group needs none.

Invariant: the filter is true for no group that the index does not return. It is evaluated for the
groups that the index returns, unless all numbers are distinct as doubles. A value may therefore be
a double that approximates an exact number, or infinity for a number beyond the doubles: rounding
preserves the order, and a range is widened by the error of rounding to a float. Cost: logarithmic
in the greatest number of groups for each insertion, removal or start of a range, since blocks that
lose groups are not merged; constant for each further group. Source: Seidel and Aragon, Randomized
Search Trees, 1996.
"""

from libc.math cimport INFINITY, isnan
from libc.string cimport memcpy, memmove

from spaseq.rdf.native._literals cimport decode_record
from spaseq.rdf.native._terms cimport UNDECODED, lines_grow, mem_free, mem_grow

cdef enum:
    SMALL_BLOCK = 6 # groups: two cache lines
    MEDIUM_BLOCK = 16 # groups: four cache lines
    LARGE_BLOCK = 64 # groups: thirteen cache lines

cdef const char* FOR_GROUP_ORDER = b"another group of partial matches"

cdef enum:
    ROOTS_PER_SLOT = 4 # roots per group slot: few keys share one


cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil:
    """The rank of a term, and its value if it is a number or a text."""
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind == Kind.TRIPLE:
        return Rank.OTHERWISE
    if record.kind <= Kind.LANG:
        value[0] = <double>record.hash
        return Rank.TEXT
    if record.kind < Kind.INTEGER or record.kind > Kind.DOUBLE:
        return Rank.OTHERWISE
    value[0] = <double><int64_t>record.exact if record.kind == Kind.INTEGER else record.further.real
    if isnan(value[0]):
        value[0] = 0  # an ordered entry needs a value
        return Rank.OTHERWISE
    return Rank.NUMERIC


cdef class TermResolver:
    """Resolves the terms that registers hold."""

    def __cinit__(self, WindowTerms window not None, Dictionary dictionary not None):
        self.window = window
        self.dictionary = dictionary


cdef inline uint32_t _size(uint32_t room) noexcept nogil:
    return <int>(room > SMALL_BLOCK) + <int>(room > MEDIUM_BLOCK)


cdef inline uint32_t _priority(const Block* block) noexcept nogil:
    return (block.serial + 1) * 0x9E3779B1u ^ (block.serial << 15)


cdef inline int _shift(Block* block, uint32_t first) noexcept nogil:
    """Move the entries of a block to another offset."""
    cdef double* values = values_in(block)
    cdef uint32_t* groups = groups_in(block)
    block.first = first
    memmove(values_in(block), values, block.count * sizeof(double))
    memmove(groups_in(block), groups, block.count * sizeof(uint32_t))
    return 0


cdef inline bint _precedes(const Block* one, const Block* other) noexcept nogil:
    if one.bucket != other.bucket:
        return one.bucket < other.bucket
    return lies_before(one.low, one.low_group, other.low, other.low_group)


cdef class RangeIndex:
    """The groups of one place, ordered by one register within each hash of the equality key."""

    def __cinit__(self):
        self.distinct = True

    def __dealloc__(self):
        mem_free(self.blocks.block)
        mem_free(self.places)
        mem_free(self.subtotals)
        mem_free(self.roots)

    cdef int alloc_room(self, uint32_t room) except -1 nogil:
        """Allocate room for groups numbered below `room`, a power of two; not used yet."""
        self.places = <GroupEntry*>mem_grow(self.places, room, sizeof(GroupEntry), FOR_GROUP_ORDER)
        self.roots = <uint32_t*>mem_grow(
            self.roots, ROOTS_PER_SLOT * room, sizeof(uint32_t), FOR_GROUP_ORDER
        )
        return 0

    cdef int reset(self, uint32_t room) except -1 nogil:
        """Empty the index and use all allocated room."""
        self.mask = ROOTS_PER_SLOT * room - 1
        memset(self.roots, 0xFF, ROOTS_PER_SLOT * room * sizeof(uint32_t))
        self.free[0] = self.free[1] = self.free[2] = NIL
        self.line_count = self.block_count = 0
        return 0

    cdef int enable_subtotals(self) except -1 nogil:
        """Store unions of blocks and subtrees from now on."""
        cdef uint32_t i
        if self.subtotals != NULL:
            return 0
        self.subtotal_room = self.block_count + 16
        self.subtotals = <Subtotal*>mem_grow(
            NULL, self.subtotal_room, sizeof(Subtotal), FOR_GROUP_ORDER
        )
        for i in range(self.block_count):
            self._invalidate_block(i)
        return 0

    cdef int invalidate(self, uint32_t group) noexcept nogil:
        """Mark the unions that contain a group as stale, after its members changed."""
        if self.subtotals != NULL and self.places[group].block != NIL:
            self._invalidate_path(self.places[group].block)
        return 0

    cdef int insert_entry(self, uint32_t group) except -1 nogil:
        """Insert a group whose key and value are known."""
        cdef GroupEntry* place = &self.places[group]
        cdef uint32_t* root = root_of(self, place.bucket)
        cdef uint32_t number
        cdef Block* block
        if root[0] == NIL:
            root[0] = SINGLE_GROUP | group
            place.block = NIL
            return 0
        if root[0] & SINGLE_GROUP:
            self._make_block(root)
        number = block_of(self, root[0], place.bucket, place.value, group)
        if number == NIL:
            number = self._new_bucket(place, group)
            self._add(number, group)
            return self._treap_insert(number)
        block = block_at(self, number)
        if block.count == block.room:
            number = self._enlarged(number) if block.room < LARGE_BLOCK else self._split(
                number, place.value, group
            )
            block = block_at(self, number)
        if lies_before(place.value, group, block.low, block.low_group):
            assert block.before == NIL
            block.low, block.low_group = place.value, group
        if self.subtotals != NULL:
            self._invalidate_path(number)
        return self._add(number, group)

    cdef int remove_entry(self, uint32_t group) noexcept nogil:
        """Remove a group from its block."""
        cdef GroupEntry* place = &self.places[group]
        cdef Block* block = block_at(self, place.block)
        cdef double* values = values_in(block)
        cdef uint32_t* groups = groups_in(block)
        cdef uint32_t i, behind
        if self.subtotals != NULL:
            self._invalidate_path(place.block)
        if block.count == 1:
            assert groups[0] == group
            self._treap_remove(place.block)
            return self._free_block(place.block)
        i = self._position_in(block, place.value, group)
        assert groups[i] == group
        block.count -= 1
        behind = block.count - i
        if i < behind:
            memmove(values + 1, values, i * sizeof(double))
            memmove(groups + 1, groups, i * sizeof(uint32_t))
            block.first += 1
        else:
            memmove(values + i, values + i + 1, behind * sizeof(double))
            memmove(groups + i, groups + i + 1, behind * sizeof(uint32_t))
        return 0

    cdef uint32_t seek(
        self, RangeCursor* span, uint32_t hash, Rank rank, double least, double most
    ) noexcept nogil:
        """The first group with a hash, a rank and a value from `least` to `most`, or NIL.

        The span is valid for `next_of` until a group is inserted or removed.
        """
        cdef uint64_t bucket = class_of(hash, rank)
        cdef uint32_t found = root_of(self, bucket)[0]
        cdef bint down = most == INFINITY and least > -INFINITY
        cdef GroupEntry* place
        cdef const double* values
        span.block = NULL
        if found == NIL:
            return NIL
        if found & SINGLE_GROUP:
            found ^= SINGLE_GROUP
            place = &self.places[found]
            span.value = place.value
            if place.bucket != bucket or place.value < least or place.value > most:
                return NIL
            return found
        found = block_of(
            self, found, bucket, INFINITY if down else least, NIL if down else 0
        )
        if found == NIL:
            return NIL
        span.block, span.least, span.most = block_at(self, found), least, most
        values = values_in(span.block)
        if down:
            span.step, span.at, span.end = -1, values + span.block.count - 1, values - 1
        else:
            span.step, span.at, span.end = 1, values, values + span.block.count
            if least > values[0]:
                span.at += below(span.block, least)
                if span.at == span.end:
                    return self.next_block(span)
        return group_of(span)

    cdef uint32_t next_block(self, RangeCursor* span) noexcept nogil:
        """The first group of the next block, or NIL."""
        cdef uint32_t next = span.block.after if span.step > 0 else span.block.before
        cdef const double* values
        if next == NIL:
            span.block = NULL
            return NIL
        span.block = block_at(self, next)
        values = values_in(span.block)
        if span.step > 0:
            span.at, span.end = values, values + span.block.count
        else:
            span.at, span.end = values + span.block.count - 1, values - 1
        return group_of(span)

    # ---------------------------------------------------------------- blocks

    cdef uint32_t search(
        self, uint32_t node, uint64_t bucket, double value, uint32_t group
    ) noexcept nogil:
        """As `block_of`, in a tree of several blocks."""
        cdef uint32_t before = NIL, after = NIL
        cdef const Block* block
        while node != NIL:
            block = block_at(self, node)
            if block.bucket != bucket:
                node = block.child[block.bucket < bucket]
            elif lies_before(value, group, block.low, block.low_group):
                after = node
                node = block.child[0]
            else:
                before = node
                node = block.child[1]
        return after if before == NIL else before

    cdef uint32_t _alloc_block(self, uint32_t room) except? 0xFFFFFFFF nogil:
        """Create an empty block outside of any tree."""
        cdef uint32_t number = self.free[_size(room)]
        cdef uint32_t lines = (
            sizeof(Block) + room * (sizeof(double) + sizeof(uint32_t)) + LINE_BYTES - 1
        ) // LINE_BYTES
        cdef Block* block
        if number != NIL:
            block = block_at(self, number)
            self.free[_size(room)] = block.after
        else:
            if self.line_count + lines > self.line_room:
                lines_grow(&self.blocks, self.line_count, 2 * self.line_room + 16, FOR_GROUP_ORDER)
                self.line_room = 2 * self.line_room + 16
            if self.subtotals != NULL and self.block_count == self.subtotal_room:
                self.subtotal_room *= 2
                self.subtotals = <Subtotal*>mem_grow(
                    self.subtotals, self.subtotal_room, sizeof(Subtotal), FOR_GROUP_ORDER
                )
            number = self.line_count
            block = block_at(self, number)
            block.room, block.serial = room, self.block_count
            self.line_count += lines
            self.block_count += 1
        block.count, block.first = 0, room // 2
        return number

    cdef uint32_t _new_bucket(
        self, const GroupEntry* place, uint32_t group
    ) except? 0xFFFFFFFF nogil:
        """Create a block for a group, the first of its bucket."""
        cdef uint32_t number = self._alloc_block(SMALL_BLOCK)
        cdef Block* block = block_at(self, number)
        block.bucket, block.low, block.low_group = place.bucket, place.value, group
        block.before = block.after = NIL
        return number

    cdef uint32_t _position_in(
        self, const Block* block, double value, uint32_t group
    ) noexcept nogil:
        """The number of groups of a block before a (value, group) position."""
        cdef const double* values = values_in(block)
        cdef const uint32_t* groups = groups_in(block)
        cdef uint32_t found = count_below(block, value)
        while found < block.count and values[found] == value and groups[found] < group:
            found += 1
        return found

    cdef int _add(self, uint32_t number, uint32_t group) noexcept nogil:
        """Insert a group into a block that has room."""
        cdef Block* block = block_at(self, number)
        cdef GroupEntry* place = &self.places[group]
        cdef double* values = values_in(block)
        cdef uint32_t* groups = groups_in(block)
        cdef uint32_t i, behind
        place.block = number
        if block.count and add_at_end(block, place.value, group):
            return 0
        i = self._position_in(block, place.value, group)
        behind = block.count - i
        if i < behind:
            if block.first == 0:
                _shift(block, (block.room - block.count + 1) // 2)
            block.first -= 1
            values, groups = values_in(block), groups_in(block)
            if i:
                memmove(values, values + 1, i * sizeof(double))
                memmove(groups, groups + 1, i * sizeof(uint32_t))
        else:
            if block.first + block.count == block.room:
                _shift(block, (block.room - block.count) // 2)
                values, groups = values_in(block), groups_in(block)
            if behind:
                memmove(values + i + 1, values + i, behind * sizeof(double))
                memmove(groups + i + 1, groups + i, behind * sizeof(uint32_t))
        values[i], groups[i] = place.value, group
        block.count += 1
        return 0

    cdef int _make_block(self, uint32_t* root) except -1 nogil:
        """Move a lone group into a block, since another group arrives."""
        cdef uint32_t group = root[0] ^ SINGLE_GROUP
        cdef uint32_t number = self._new_bucket(&self.places[group], group)
        self._add(number, group)
        root[0] = NIL
        return self._treap_insert(number)

    cdef int _free_block(self, uint32_t number) noexcept nogil:
        """Free a block that nothing refers to."""
        cdef Block* block = block_at(self, number)
        block.after = self.free[_size(block.room)]
        self.free[_size(block.room)] = number
        return 0

    cdef uint32_t _enlarged(self, uint32_t number) except? 0xFFFFFFFF nogil:
        """Replace a full block by a larger one; its number."""
        cdef uint32_t other = self._alloc_block(
            MEDIUM_BLOCK if block_at(self, number).room == SMALL_BLOCK else LARGE_BLOCK
        )
        cdef Block* block = block_at(self, number)
        cdef Block* larger = block_at(self, other)
        cdef uint32_t* where = root_of(self, block.bucket)
        while where[0] != number:
            where = &block_at(self, where[0]).child[_precedes(block_at(self, where[0]), block)]
        where[0] = other
        # Serial numbers determine the shape of the tree, so the larger block inherits it.
        block.serial, larger.serial = larger.serial, block.serial
        larger.bucket, larger.low, larger.low_group = block.bucket, block.low, block.low_group
        larger.child[0], larger.child[1] = block.child[0], block.child[1]
        larger.before, larger.after = block.before, block.after
        if block.before != NIL:
            block_at(self, block.before).after = other
        if block.after != NIL:
            block_at(self, block.after).before = other
        self._move_groups(number, other, 0)
        self._free_block(number)
        return other

    cdef uint32_t _split(
        self, uint32_t number, double value, uint32_t group
    ) except? 0xFFFFFFFF nogil:
        """Split a full block; the number of the half that covers a position."""
        cdef uint32_t other = self._alloc_block(LARGE_BLOCK)
        cdef Block* block = block_at(self, number)
        cdef Block* behind = block_at(self, other)
        cdef uint32_t half = LARGE_BLOCK // 2
        cdef bint rises
        behind.bucket = block.bucket
        if lies_before(value, group, block.low, block.low_group):
            # Descending insertions leave full blocks behind, and so do ascending ones.
            behind.low, behind.low_group = value, group
            behind.before, behind.after = block.before, number
            block.before = other
            self._treap_insert(other)
            return other
        rises = lies_before(
            values_in(block)[LARGE_BLOCK - 1], groups_in(block)[LARGE_BLOCK - 1], value, group
        )
        if rises:
            behind.low, behind.low_group = value, group
        else:
            behind.low, behind.low_group = values_in(block)[half], groups_in(block)[half]
        behind.before, behind.after = number, block.after
        if block.after != NIL:
            block_at(self, block.after).before = other
        block.after = other
        if self.subtotals != NULL:
            self._invalidate_path(number)
        if not rises:
            self._move_groups(number, other, half)
        self._treap_insert(other)
        return number if lies_before(value, group, behind.low, behind.low_group) else other

    cdef int _move_groups(self, uint32_t number, uint32_t other, uint32_t from_on) noexcept nogil:
        """Move the groups of a block from a position on into an empty block."""
        cdef Block* block = block_at(self, number)
        cdef Block* to = block_at(self, other)
        cdef uint32_t i, count = block.count - from_on
        to.first, to.count = (to.room - count) // 2, count
        memcpy(values_in(to), values_in(block) + from_on, count * sizeof(double))
        memcpy(groups_in(to), groups_in(block) + from_on, count * sizeof(uint32_t))
        for i in range(count):
            self.places[groups_in(to)[i]].block = other
        block.count = from_on
        return 0

    # ---------------------------------------------------------------- trees of blocks

    cdef int _invalidate_block(self, uint32_t serial) noexcept nogil:
        """Mark both unions of a block as stale."""
        self.subtotals[serial].own.stale = self.subtotals[serial].subtree.stale = True
        return 0

    cdef int _invalidate_path(self, uint32_t number) noexcept nogil:
        """Mark the unions that contain a block as stale, up to the root."""
        cdef Block* block = block_at(self, number)
        cdef Block* node
        cdef uint32_t place
        self.subtotals[block.serial].own.stale = True
        if self.subtotals[block.serial].subtree.stale:
            return 0
        place = root_of(self, block.bucket)[0]
        while place != number:
            node = block_at(self, place)
            self.subtotals[node.serial].subtree.stale = True
            place = node.child[_precedes(node, block)]
        self.subtotals[block.serial].subtree.stale = True
        return 0

    cdef int _treap_insert(self, uint32_t number) noexcept nogil:
        """Insert a block into its tree."""
        cdef Block* block = block_at(self, number)
        cdef uint32_t* where = root_of(self, block.bucket)
        cdef uint32_t priority = _priority(block)
        cdef uint32_t* hooks[2]     # where the next node after, or before, the block attaches
        cdef Block* node
        cdef bint before
        cdef bint kept = self.subtotals != NULL
        while where[0] != NIL:
            node = block_at(self, where[0])
            if _priority(node) <= priority:
                break
            if kept:
                self.subtotals[node.serial].subtree.stale = True
            where = &node.child[_precedes(node, block)]
        # Split the subtree here into the blocks before and after.
        if kept:
            self._invalidate_block(block.serial)
        number, where[0] = where[0], number
        hooks[0], hooks[1] = &block.child[1], &block.child[0]
        while number != NIL:
            node = block_at(self, number)
            if kept:
                self.subtotals[node.serial].subtree.stale = True
            before = _precedes(node, block)
            hooks[before][0] = number
            hooks[before] = &node.child[before]
            number = hooks[before][0]
        hooks[0][0] = hooks[1][0] = NIL
        return 0

    cdef int _treap_remove(self, uint32_t number) noexcept nogil:
        """Remove a block from its tree, and from between its neighbours."""
        cdef Block* block = block_at(self, number)
        cdef uint32_t* where = root_of(self, block.bucket)
        cdef uint32_t[2] sides
        cdef Block* ends[2]
        cdef bint after
        while where[0] != number:
            where = &block_at(self, where[0]).child[_precedes(block_at(self, where[0]), block)]
        sides[0], sides[1] = block.child[0], block.child[1]
        while sides[0] != NIL and sides[1] != NIL:
            ends[0], ends[1] = block_at(self, sides[0]), block_at(self, sides[1])
            if self.subtotals != NULL:
                self.subtotals[ends[0].serial].subtree.stale = True
                self.subtotals[ends[1].serial].subtree.stale = True
            after = _priority(ends[0]) <= _priority(ends[1])
            where[0] = sides[after]
            where = &ends[after].child[1 - <int>after]
            sides[after] = where[0]
        where[0] = sides[sides[0] == NIL]
        if block.before != NIL:
            block_at(self, block.before).after = block.after
        if block.after != NIL:
            block_at(self, block.after).before = block.before
        return 0
