"""Groups in the order of one register's value; see _range_index.pyx."""

cimport cython
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from spaseq.nfa.native._tecs cimport instant_t, union_t
from spaseq.rdf._dictionary cimport Dictionary
from spaseq.rdf._memory cimport LINE_BYTES, Lines
from spaseq.rdf._numerals cimport is_numeral, real_of
from spaseq.rdf._terms cimport WINDOWED, TermRecord, term_t
from spaseq.rdf._values cimport Kind
from spaseq.rdf._window_terms cimport WindowTerms

cdef enum:
    NIL = 0xFFFFFFFF        # no group, and no block
    SINGLE_GROUP = 0x80000000 # tag of a root that is a single group
    DISTINCT_DIGITS = 15    # distinct decimals of at most this many digits are distinct doubles

cdef extern from *:
    const double GREATEST "__DBL_MAX__"
    const double GREATEST_FLOAT "__FLT_MAX__"

# The kinds of values that are compared with one another.
cdef enum Rank:
    NUMERIC     # a number
    OTHERWISE   # not comparable with numbers: dates and the like, and NaN
    UNBOUND
    TEXT        # equal only to the same term; its hash is the value

cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil


cdef inline uint64_t class_of(uint32_t hash, Rank rank) noexcept nogil:
    """The bucket of the groups with a hash of the equality key and a rank."""
    return <uint64_t>hash << 2 | <uint64_t>rank


@cython.final
cdef class TermResolver:
    cdef WindowTerms window
    cdef Dictionary dictionary



cdef inline Rank rank_at(TermRecord* record, double* value) noexcept nogil:
    """As `rank_of`, inlined for integers and decimals."""
    if record.kind == Kind.INTEGER:
        value[0] = <double><int64_t>record.exact
        return Rank.NUMERIC
    if record.kind == Kind.DECIMAL:
        value[0] = record.further.real
        return Rank.NUMERIC
    return rank_of(record, value)


cdef inline bint is_distinct(const TermRecord* record, double value) noexcept nogil:
    """Whether no other number has this value as a double: numbers of few digits."""
    if record.kind == Kind.DECIMAL:
        return record.lexical <= DISTINCT_DIGITS
    return <int>(record.kind == Kind.INTEGER) & <int>(fabs(value) < 1e15)


cdef inline TermRecord* record_in(TermResolver registers, term_t term) noexcept nogil:
    """The record of a register's term: permanent or of the window, not a numeral."""
    if term & WINDOWED:
        return &registers.window.store.records[term ^ WINDOWED]
    return &registers.dictionary.permanent.records[term]


cdef inline Rank rank_in(
    TermResolver registers, term_t term, double* value, bint* distinct
) noexcept nogil:
    """The rank and value of a register's term; `distinct`: not a number, or `is_distinct`."""
    cdef TermRecord* record
    cdef Rank rank
    value[0], distinct[0] = 0, True
    if term == 0:
        return Rank.UNBOUND
    if is_numeral(term):
        value[0] = real_of(term)
        return Rank.NUMERIC
    record = record_in(registers, term)
    rank = rank_at(record, value)
    distinct[0] = <int>(rank != Rank.NUMERIC) | <int>is_distinct(record, value[0])
    return rank


# The position of a group.
cdef struct GroupEntry:
    uint64_t bucket     # the bucket: hash of the equality key, and rank
    double value
    uint32_t block      # NIL: the group is alone

# A run of neighbouring groups, from its own (value, group) position up to that of the next block. A
# block's number is that of the cache line where it begins. Behind the header lie `room` values,
# then `room` groups; the entries of both begin at `first`, in order.
cdef struct Block:
    uint64_t bucket         # bucket of all its groups
    double low              # its first position
    uint32_t low_group
    uint32_t[2] child       # subtrees before it, and after
    uint32_t before         # neighbouring blocks of the same bucket
    uint32_t after
    uint32_t serial         # unique
    uint16_t count          # groups: at least one
    uint16_t room           # SMALL_BLOCK, MEDIUM_BLOCK or LARGE_BLOCK
    uint16_t first

cdef enum:
    SMALL_BLOCK = 6 # groups: two cache lines
    MEDIUM_BLOCK = 16 # groups: four cache lines
    LARGE_BLOCK = 64 # groups: thirteen cache lines

# The union of some groups, see _sums.pyx.
cdef struct Union:
    union_t members     # 0: empty
    instant_t latest
    bint stale

# The unions of a block. If its subtree is stale, so are all subtrees that contain it.
cdef struct Subtotal:
    Union own
    Union subtree

# A cursor over the groups of a range of values: ascending, or descending from the greatest.
cdef struct RangeCursor:
    const Block* block      # NULL: at a lone group, or past the end
    const double* at        # the current entry
    const double* end       # after the last entry of the block
    int step                # 1, or -1 if descending
    double least
    double most
    double value            # of the current group


cdef inline double* values_in(const Block* block) noexcept nogil:
    """The values of a block's groups."""
    return <double*>(block + 1) + block.first


cdef inline uint32_t* groups_in(const Block* block) noexcept nogil:
    """The groups of a block, at the positions of their values."""
    return <uint32_t*>(<double*>(block + 1) + block.room) + block.first


cdef inline uint32_t count_below(const Block* block, double value) noexcept nogil:
    """The number of groups with a smaller value: those at the beginning.

    All values are compared, several at once: with so few entries a binary search would take longer.
    """
    cdef const double* values = values_in(block)
    cdef uint64_t found = 0
    cdef uint32_t i
    for i in range(block.count):
        found += values[i] < value
    return <uint32_t>found


cdef inline uint32_t below(const Block* block, double value) noexcept nogil:
    """As `count_below`, for blocks that mostly lie on one side of the value."""
    if values_in(block)[0] >= value:
        return 0
    if values_in(block)[block.count - 1] < value:
        return block.count
    return count_below(block, value)


cdef extern from *:
    """
    #include <string.h>
    /* The next greater double of one that is finite. */
    static inline double spaseq_next_double(double value) {
        int64_t bits;
        value += 0.0;   /* no zero has a sign then */
        memcpy(&bits, &value, 8);
        bits += value < 0 ? -1 : 1;
        memcpy(&value, &bits, 8);
        return value;
    }
    """
    double next_double "spaseq_next_double"(double value) noexcept nogil


@cython.final
cdef class RangeIndex:
    cdef GroupEntry* places     # per group
    cdef bint distinct          # all numbers ever inserted were distinct
    cdef bint infinite          # some number was out of a double's range
    cdef Subtotal* subtotals    # per block; NULL: no union was requested yet
    cdef uint32_t* roots        # by hash: mask + 1 of them
    cdef uint32_t mask
    cdef Lines blocks
    cdef uint32_t line_count, line_room
    cdef uint32_t[3] free       # free blocks of each size, linked by `after`
    cdef uint32_t block_count, subtotal_room

    cdef int alloc_room(self, uint32_t room) except -1 nogil
    cdef int reset(self, uint32_t room) except -1 nogil
    cdef int enable_subtotals(self) except -1 nogil
    cdef int invalidate(self, uint32_t group) noexcept nogil
    cdef int insert_entry(self, uint32_t group) except -1 nogil
    cdef int remove_entry(self, uint32_t group) noexcept nogil
    cdef uint32_t seek(
        self, RangeCursor* span, uint32_t hash, Rank rank, double least, double most
    ) noexcept nogil
    cdef uint32_t next_block(self, RangeCursor* span) noexcept nogil
    cdef uint32_t search(
        self, uint32_t node, uint64_t bucket, double value, uint32_t group
    ) noexcept nogil
    cdef uint32_t _alloc_block(self, uint32_t room) except? 0xFFFFFFFF nogil
    cdef uint32_t _new_bucket(
        self, const GroupEntry* place, uint32_t group
    ) except? 0xFFFFFFFF nogil
    cdef uint32_t _position_in(
        self, const Block* block, double value, uint32_t group
    ) noexcept nogil
    cdef int _add(self, uint32_t number, uint32_t group) noexcept nogil
    cdef int _make_block(self, uint32_t* root) except -1 nogil
    cdef int _free_block(self, uint32_t number) noexcept nogil
    cdef uint32_t _enlarged(self, uint32_t number) except? 0xFFFFFFFF nogil
    cdef uint32_t _split(
        self, uint32_t number, double value, uint32_t group
    ) except? 0xFFFFFFFF nogil
    cdef int _move_groups(self, uint32_t number, uint32_t other, uint32_t from_on) noexcept nogil
    cdef int _invalidate_block(self, uint32_t serial) noexcept nogil
    cdef int _invalidate_path(self, uint32_t number) noexcept nogil
    cdef int _treap_insert(self, uint32_t number) noexcept nogil
    cdef int _treap_remove(self, uint32_t number) noexcept nogil


cdef inline uint32_t* root_of(RangeIndex order, uint64_t bucket) noexcept nogil:
    """The root of a bucket; other buckets may share it."""
    return &order.roots[<uint32_t>(bucket >> 2) & order.mask]


cdef inline Block* block_at(RangeIndex order, uint32_t number) noexcept nogil:
    """The block of a number; valid until a block is created."""
    return <Block*>(order.blocks.first + <size_t>number * LINE_BYTES)


cdef inline bint lies_before(
    double value, uint32_t group, double other, uint32_t other_group
) noexcept nogil:
    """Whether a position lies before another one; branch-free, since it is unpredictable."""
    return <int>(value < other) | (<int>(value == other) & <int>(group < other_group))


cdef inline uint32_t block_of(
    RangeIndex order, uint32_t root, uint64_t bucket, double value, uint32_t group
) noexcept nogil:
    """The last block of a bucket that begins at or before a position, else its first block.

    NIL if the tree has no block of the bucket.
    """
    cdef const Block* block = block_at(order, root)
    # Most trees are one block.
    if block.child[0] & block.child[1] != NIL:
        return order.search(root, bucket, value, group)
    return root if block.bucket == bucket else <uint32_t>NIL


cdef inline bint add_at_end(Block* block, double value, uint32_t group) noexcept nogil:
    """Insert a group at an end of a block; False if it belongs elsewhere or does not fit."""
    cdef double* values = values_in(block)
    cdef uint32_t* groups = groups_in(block)
    cdef uint32_t count = block.count
    if lies_before(values[count - 1], groups[count - 1], value, group):
        if block.first + count == block.room:
            return False
        values[count], groups[count] = value, group
    elif block.first and lies_before(value, group, values[0], groups[0]):
        block.first -= 1
        values -= 1
        groups -= 1
        values[0], groups[0] = value, group
    else:
        return False
    block.count += 1
    return True


cdef inline int index_insert(
    RangeIndex order, uint32_t group, uint32_t hash, Rank rank, double value, bint distinct
) except -1 nogil:
    """Insert a group; see `rank_in`."""
    cdef GroupEntry* place = &order.places[group]
    cdef uint32_t* root
    cdef Block* block
    if not distinct:
        order.distinct = False
        order.infinite |= fabs(value) > GREATEST
    place.bucket, place.value = class_of(hash, rank), value
    root = root_of(order, place.bucket)
    if root[0] == NIL:
        root[0], place.block = SINGLE_GROUP | group, NIL
        return 0
    if not root[0] & SINGLE_GROUP and order.subtotals == NULL:
        place.block = block_of(order, root[0], place.bucket, value, group)
        if place.block != NIL:
            block = block_at(order, place.block)
            if not lies_before(value, group, block.low, block.low_group) and (
                add_at_end(block, value, group)
            ):
                return 0
    return order.insert_entry(group)


cdef inline int index_remove(RangeIndex order, uint32_t group) noexcept nogil:
    """Remove a group."""
    cdef GroupEntry* place = &order.places[group]
    cdef Block* block
    if place.block == NIL:
        root_of(order, place.bucket)[0] = NIL
        return 0
    block = block_at(order, place.block)
    if block.count > 1 and order.subtotals == NULL:
        if groups_in(block)[block.count - 1] == group:
            block.count -= 1
            return 0
        if groups_in(block)[0] == group:
            block.first += 1
            block.count -= 1
            return 0
    return order.remove_entry(group)


cdef inline uint32_t group_of(RangeCursor* span) noexcept nogil:
    """The current group of a cursor; NIL if its value is outside of the range."""
    cdef double value = span.at[0]
    if value < span.least or value > span.most:
        span.block = NULL
        return NIL
    span.value = value
    return groups_in(span.block)[span.at - values_in(span.block)]


cdef inline uint32_t next_of(RangeIndex order, RangeCursor* span) noexcept nogil:
    """The next group of a cursor, or NIL."""
    if span.block == NULL:
        return NIL
    span.at += span.step
    if span.at == span.end:
        return order.next_block(span)
    return group_of(span)
