# cython: language_level=3, boundscheck=False, wraparound=False
"""Groups in the order of one register's value: an index for `<`, `<=`, `=`, `>` and `>=`.

Groups that share the hash of the registers which equal ones share, and a rank, are in blocks, by
(value, number of the group). Blocks are the nodes of treaps; a table by that hash has their roots,
so that groups are apart that an equality keeps apart. Ranks keep apart what cannot be compared: a
number meets numbers, a text texts, anything else what is neither. Within a block groups are in no
order: they come last and go at once, and those of a range are told by comparing all, which takes
less time than to keep them in order. Most trees are one block; a group that is alone has none.

Invariant: what an index leaves out, the filter it serves is not true of; what it gives, the filter
is still asked about, unless all numbers are distinct as doubles. So values may be doubles that
stand for exact numbers: rounding keeps the order, and who looks for a range makes it as much wider
as rounding to a float can move a number. Cost: logarithmic, in the most groups there have been, for
each that comes, goes, or begins a range, for blocks that lose groups are not joined; constant for
each after it. Source: Seidel and Aragon, Randomized Search Trees, 1996.
"""

from libc.math cimport isnan
from libc.stdint cimport int64_t
from libc.string cimport memset

from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._memory cimport LINE, give_back, lines_grow, longer
from spaseq.rdf._terms cimport UNDECODED

cdef const char* LACKING = b"another group of partial matches"

cdef enum:
    SPARSE = 4      # so many roots for each group there is room for: few keys share one
    SAMPLED = 8     # so many groups of a block say where it is cut


cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil:
    """How a term is compared, and its value if it is a number, or a text."""
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind <= Kind.LANG:
        value[0] = <double>record.hash
        return Rank.TEXT
    if record.kind < Kind.INTEGER or record.kind > Kind.DOUBLE:
        return Rank.OTHERWISE
    value[0] = <double><int64_t>record.exact if record.kind == Kind.INTEGER else record.further.real
    if isnan(value[0]):
        value[0] = 0  # what is in an order must have one
        return Rank.OTHERWISE
    return Rank.NUMERIC


cdef class Registers:
    """Looks at the terms that registers hold."""

    def __cinit__(self, WindowTerms window not None, Dictionary dictionary not None):
        self.window = window
        self.dictionary = dictionary


cdef int _sort(double* values, uint32_t* groups, uint32_t count) noexcept nogil:
    """Put few groups in order."""
    cdef uint32_t i, j, group
    cdef double value
    for i in range(1, count):
        value, group = values[i], groups[i]
        j = i
        while j and _lies_before(value, group, values[j - 1], groups[j - 1]):
            values[j], groups[j] = values[j - 1], groups[j - 1]
            j -= 1
        values[j], groups[j] = value, group
    return 0


cdef inline uint32_t _size(uint32_t room) noexcept nogil:
    return <int>(room > FEW) + <int>(room > SOME)


cdef inline uint32_t _priority(const Block* block) noexcept nogil:
    return (block.serial + 1) * 0x9E3779B1u ^ (block.serial << 15)


cdef inline bint _lies_before(
    double value, uint32_t group, double other, uint32_t other_group
) noexcept nogil:
    """Whether a position lies before another, without a branch: there is no telling."""
    return <int>(value < other) | (<int>(value == other) & <int>(group < other_group))


cdef inline bint _precedes(const Block* one, const Block* other) noexcept nogil:
    if one.alike != other.alike:
        return one.alike < other.alike
    return _lies_before(one.low, one.low_group, other.low, other.low_group)


cdef class Order:
    """The groups of one place."""

    def __cinit__(self):
        self.distinct = True

    def __dealloc__(self):
        give_back(self.blocks.block)
        give_back(self.places)
        give_back(self.subtotals)
        give_back(self.roots)

    cdef int reserve(self, uint32_t room) except -1 nogil:
        """Make room for the groups with numbers below `room`, a power of two; none is in it."""
        self.places = <Place*>longer(self.places, room, sizeof(Place), LACKING)
        self.roots = <uint32_t*>longer(self.roots, SPARSE * room, sizeof(uint32_t), LACKING)
        self.mask = SPARSE * room - 1
        memset(self.roots, 0xFF, SPARSE * room * sizeof(uint32_t))
        self.free[0] = self.free[1] = self.free[2] = NOBODY
        self.line_count = self.block_count = 0
        return 0

    cdef int keep_subtotals(self) except -1 nogil:
        """From now on, blocks and subtrees may have unions."""
        cdef uint32_t i
        if self.subtotals != NULL:
            return 0
        self.subtotal_room = self.block_count + 16
        self.subtotals = <Subtotal*>longer(NULL, self.subtotal_room, sizeof(Subtotal), LACKING)
        for i in range(self.block_count):
            self._spoil(i)
        return 0

    cdef int spoil(self, uint32_t group) noexcept nogil:
        """The members of a group have changed: the unions it is in are stale."""
        if self.subtotals != NULL and self.places[group].block != NOBODY:
            self._spoil_path(self.places[group].block)
        return 0

    cdef int put(self, uint32_t group) except -1 nogil:
        """A group that has been there comes in again."""
        cdef Place* place = &self.places[group]
        cdef uint32_t* root = root_of(self, place.alike)
        cdef uint32_t number
        cdef Block* block
        if root[0] == NOBODY:
            root[0] = LONE | group
            place.block = NOBODY
            return 0
        if root[0] & LONE:
            self._settle(root)
        number = self._block_of(place.alike, place.value, group)
        if number == NOBODY:
            number = self._begin(place, group)
            self._add(number, group)
            return self._hang(number)
        block = block_at(self, number)
        if block.count == block.room:
            number = self._widened(number) if block.room < MANY else self._split(
                number, place.value, group
            )
            block = block_at(self, number)
        if _lies_before(place.value, group, block.low, block.low_group):
            assert block.before == NOBODY
            block.low, block.low_group = place.value, group
        if self.subtotals != NULL:
            self._spoil_path(number)
        return self._add(number, group)

    cdef int take_out(self, uint32_t group) noexcept nogil:
        """A group that is in a block goes."""
        cdef Place* place = &self.places[group]
        cdef uint32_t last
        cdef Block* block
        if self.subtotals != NULL:
            self._spoil_path(place.block)
        block = block_at(self, place.block)
        assert groups_in(block)[place.entry] == group
        block.count -= 1
        if block.count == 0:
            self._unhang(place.block)
            return self._free(place.block)
        last = groups_in(block)[block.count]
        values_in(block)[place.entry] = values_in(block)[block.count]
        groups_in(block)[place.entry] = last
        self.places[last].entry = place.entry
        return 0

    cdef uint32_t seek(
        self, Span* span, uint32_t hash, Rank rank, double least, double most
    ) noexcept nogil:
        """A group with a hash, a rank and a value from `least` to `most`, or NOBODY.

        The span is good for `next_of` until a group comes or goes.
        """
        cdef uint64_t alike = class_of(hash, rank)
        cdef uint32_t found = root_of(self, alike)[0]
        cdef Place* place
        span.block = NULL
        if found == NOBODY:
            return NOBODY
        if found & LONE:
            found ^= LONE
            place = &self.places[found]
            span.value = place.value
            if place.alike != alike or place.value < least or place.value > most:
                return NOBODY
            return found
        found = self._block_of(alike, least, 0)
        if found == NOBODY:
            return NOBODY
        span.block, span.least, span.most = block_at(self, found), least, most
        span.left = self._left_in(span)
        return next_of(self, span)

    cdef bint more(self, Span* span) noexcept nogil:
        """Go on to the next block, where groups are to come."""
        while span.left == 0:
            if span.block.after == NOBODY:
                return False
            span.block = block_at(self, span.block.after)
            if span.block.low > span.most:
                span.block = NULL
                return False
            span.left = self._left_in(span)
        return True

    cdef uint64_t _left_in(self, const Span* span) noexcept nogil:
        return bits_within(values_in(span.block), span.block.count, span.least, span.most)

    # ---------------------------------------------------------------- blocks

    cdef uint32_t _block_of(self, uint64_t alike, double value, uint32_t group) noexcept nogil:
        """The last block that begins at a position or before it, else the first one, or NOBODY."""
        cdef uint32_t node = root_of(self, alike)[0], before = NOBODY, after = NOBODY
        cdef Block* block = block_at(self, node)
        # Most trees are one block.
        if node != NOBODY and block.child[0] & block.child[1] == NOBODY:
            return node if block.alike == alike else NOBODY
        while node != NOBODY:
            block = block_at(self, node)
            if block.alike != alike:
                node = block.child[block.alike < alike]
            elif _lies_before(value, group, block.low, block.low_group):
                after = node
                node = block.child[0]
            else:
                before = node
                node = block.child[1]
        return after if before == NOBODY else before

    cdef uint32_t _new(self, uint32_t room) except? 0xFFFFFFFF nogil:
        """A block that hangs nowhere and is empty."""
        cdef uint32_t number = self.free[_size(room)]
        cdef uint32_t lines = (
            sizeof(Block) + room * (sizeof(double) + sizeof(uint32_t)) + LINE - 1
        ) // LINE
        cdef Block* block
        if number != NOBODY:
            block = block_at(self, number)
            self.free[_size(room)] = block.after
        else:
            if self.line_count + lines > self.line_room:
                lines_grow(&self.blocks, self.line_count, 2 * self.line_room + 16, LACKING)
                self.line_room = 2 * self.line_room + 16
            if self.subtotals != NULL and self.block_count == self.subtotal_room:
                self.subtotal_room *= 2
                self.subtotals = <Subtotal*>longer(
                    self.subtotals, self.subtotal_room, sizeof(Subtotal), LACKING
                )
            number = self.line_count
            block = block_at(self, number)
            block.room, block.serial = room, self.block_count
            self.line_count += lines
            self.block_count += 1
        block.count = 0
        return number

    cdef uint32_t _begin(self, const Place* place, uint32_t group) except? 0xFFFFFFFF nogil:
        """A block that begins with a group, the first of those alike."""
        cdef uint32_t number = self._new(FEW)
        cdef Block* block = block_at(self, number)
        block.alike, block.low, block.low_group = place.alike, place.value, group
        block.before = block.after = NOBODY
        return number

    cdef int _add(self, uint32_t number, uint32_t group) noexcept nogil:
        """A group comes into a block that has room."""
        cdef Block* block = block_at(self, number)
        cdef Place* place = &self.places[group]
        place.block, place.entry = number, block.count
        values_in(block)[block.count] = place.value
        groups_in(block)[block.count] = group
        block.count += 1
        return 0

    cdef int _settle(self, uint32_t* root) except -1 nogil:
        """A group was alone: it has a block from now on, for another one comes."""
        cdef uint32_t group = root[0] ^ LONE
        cdef uint32_t number = self._begin(&self.places[group], group)
        self._add(number, group)
        root[0] = NOBODY
        return self._hang(number)

    cdef int _free(self, uint32_t number) noexcept nogil:
        """Nothing refers to a block any more."""
        cdef Block* block = block_at(self, number)
        block.after = self.free[_size(block.room)]
        self.free[_size(block.room)] = number
        return 0

    cdef uint32_t _widened(self, uint32_t number) except? 0xFFFFFFFF nogil:
        """The larger block that takes the place of one that is full."""
        cdef uint32_t other = self._new(SOME if block_at(self, number).room == FEW else MANY)
        cdef Block* block = block_at(self, number)
        cdef Block* larger = block_at(self, other)
        cdef uint32_t* where = root_of(self, block.alike)
        cdef uint32_t i
        while where[0] != number:
            where = &block_at(self, where[0]).child[_precedes(block_at(self, where[0]), block)]
        where[0] = other
        # The shape of the tree depends on the serial numbers.
        block.serial, larger.serial = larger.serial, block.serial
        larger.alike, larger.low, larger.low_group = block.alike, block.low, block.low_group
        larger.child[0], larger.child[1] = block.child[0], block.child[1]
        larger.before, larger.after = block.before, block.after
        if block.before != NOBODY:
            block_at(self, block.before).after = other
        if block.after != NOBODY:
            block_at(self, block.after).before = other
        for i in range(block.count):
            self._add(other, groups_in(block)[i])
        self._free(number)
        return other

    cdef uint32_t _split(
        self, uint32_t number, double value, uint32_t group
    ) except? 0xFFFFFFFF nogil:
        """A block is full, and there is one more: the one of them that a position is in."""
        cdef uint32_t other = self._new(MANY)
        cdef Block* block = block_at(self, number)
        cdef Block* behind = block_at(self, other)
        cdef double* values = values_in(block)
        cdef uint32_t* groups = groups_in(block)
        cdef double[SAMPLED] sample
        cdef uint32_t[SAMPLED] sampled
        cdef uint32_t i, stay = 0
        behind.alike = block.alike
        if _lies_before(value, group, block.low, block.low_group):
            # What comes in falling order leaves full blocks behind, and so does what rises.
            behind.low, behind.low_group = value, group
            behind.before, behind.after = block.before, number
            block.before = other
            self._hang(other)
            return other
        for i in range(MANY):
            stay += _lies_before(values[i], groups[i], value, group)
        if stay == MANY:
            behind.low, behind.low_group = value, group
        else:
            for i in range(SAMPLED):
                sample[i], sampled[i] = values[i * (MANY // SAMPLED)], groups[i * (MANY // SAMPLED)]
            _sort(sample, sampled, SAMPLED)
            behind.low, behind.low_group = sample[SAMPLED // 2], sampled[SAMPLED // 2]
        behind.before, behind.after = number, block.after
        if block.after != NOBODY:
            block_at(self, block.after).before = other
        block.after = other
        if self.subtotals != NULL:
            self._spoil_path(number)
        self._part(number, other)
        self._hang(other)
        return number if _lies_before(value, group, behind.low, behind.low_group) else other

    cdef int _part(self, uint32_t number, uint32_t other) noexcept nogil:
        """The groups of a block that lie where another one begins, or after it, are its own."""
        cdef Block* block = block_at(self, number)
        cdef Block* behind = block_at(self, other)
        cdef double* values = values_in(block)
        cdef uint32_t* groups = groups_in(block)
        cdef uint32_t i, stay = 0
        for i in range(block.count):
            if _lies_before(values[i], groups[i], behind.low, behind.low_group):
                values[stay], groups[stay] = values[i], groups[i]
                self.places[groups[stay]].entry = stay
                stay += 1
            else:
                self._add(other, groups[i])
        block.count = stay
        return 0

    # ---------------------------------------------------------------- trees of blocks

    cdef int _spoil(self, uint32_t serial) noexcept nogil:
        """Nothing is known of a block."""
        self.subtotals[serial].own.stale = self.subtotals[serial].subtree.stale = True
        return 0

    cdef int _spoil_path(self, uint32_t number) noexcept nogil:
        """The unions that the groups of a block are in are stale."""
        cdef Block* block = block_at(self, number)
        cdef Block* node
        cdef uint32_t place
        self.subtotals[block.serial].own.stale = True
        if self.subtotals[block.serial].subtree.stale:
            return 0
        place = root_of(self, block.alike)[0]
        while place != number:
            node = block_at(self, place)
            self.subtotals[node.serial].subtree.stale = True
            place = node.child[_precedes(node, block)]
        self.subtotals[block.serial].subtree.stale = True
        return 0

    cdef int _hang(self, uint32_t number) noexcept nogil:
        """A block comes into its tree."""
        cdef Block* block = block_at(self, number)
        cdef uint32_t* where = root_of(self, block.alike)
        cdef uint32_t priority = _priority(block)
        cdef uint32_t* hooks[2]     # where the next one hangs that comes after, or before
        cdef Block* node
        cdef bint before
        cdef bint kept = self.subtotals != NULL
        while where[0] != NOBODY:
            node = block_at(self, where[0])
            if _priority(node) <= priority:
                break
            if kept:
                self.subtotals[node.serial].subtree.stale = True
            where = &node.child[_precedes(node, block)]
        # What hangs here is split into what comes before the block and what after.
        if kept:
            self._spoil(block.serial)
        number, where[0] = where[0], number
        hooks[0], hooks[1] = &block.child[1], &block.child[0]
        while number != NOBODY:
            node = block_at(self, number)
            if kept:
                self.subtotals[node.serial].subtree.stale = True
            before = _precedes(node, block)
            hooks[before][0] = number
            hooks[before] = &node.child[before]
            number = hooks[before][0]
        hooks[0][0] = hooks[1][0] = NOBODY
        return 0

    cdef int _unhang(self, uint32_t number) noexcept nogil:
        """A block goes out of its tree, and from between its neighbours."""
        cdef Block* block = block_at(self, number)
        cdef uint32_t* where = root_of(self, block.alike)
        cdef uint32_t[2] sides
        cdef Block* ends[2]
        cdef bint after
        while where[0] != number:
            where = &block_at(self, where[0]).child[_precedes(block_at(self, where[0]), block)]
        sides[0], sides[1] = block.child[0], block.child[1]
        while sides[0] != NOBODY and sides[1] != NOBODY:
            ends[0], ends[1] = block_at(self, sides[0]), block_at(self, sides[1])
            if self.subtotals != NULL:
                self.subtotals[ends[0].serial].subtree.stale = True
                self.subtotals[ends[1].serial].subtree.stale = True
            after = _priority(ends[0]) <= _priority(ends[1])
            where[0] = sides[after]
            where = &ends[after].child[1 - <int>after]
            sides[after] = where[0]
        where[0] = sides[sides[0] == NOBODY]
        if block.before != NOBODY:
            block_at(self, block.before).after = block.after
        if block.after != NOBODY:
            block_at(self, block.after).before = block.before
        return 0
