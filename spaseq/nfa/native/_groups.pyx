# cython: language_level=3, boundscheck=False, wraparound=False
"""The configurations of one place: a group for each valuation of its live registers.

A group is found by all its registers, or, through an index, by those that some edge shares
with the rows it takes, and by the order of one that a filter compares. Groups that went leave
their places to others, so memory is that of the most groups there ever were. Cost: constant for
each of them; where there is an order, logarithmic.
"""

from cpython.ref cimport PyObject
from libc.string cimport memset

from spaseq.nfa.native._tecs cimport added, piece_of
from spaseq.rdf._memory cimport LINE, give_back, lines_grow, longer, zeroed

cdef const char* LACKING = b"another group of partial matches"


cdef enum:
    SPARSE = 4      # so many chains for each group there is room for: most have one or none
    FEWEST = 16     # groups there is room for at the beginning
    PIECE = 0x20000 # heads or roots that are touched at once: of 512 KB


cdef inline uint32_t _like(
    Groups groups, Chains* chains, uint32_t group, uint32_t hash, const term_t* key
) noexcept nogil:
    """The first group of a chain with a key, from one on; others are told by their hash."""
    cdef Standing* standing
    while group != NOBODY:
        standing = standing_of(groups, chains, group)
        if standing.hash == hash and _agrees(groups, chains, group, key):
            return group
        group = standing.next
    return NOBODY


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
    """`indexes` says for each index which of the `width` live registers it reads.

    `dated`: members are also found by their last instants.
    """

    def __cinit__(
        self, uint32_t width, indexes, Registers registers not None, bint dated=False
    ):
        cdef uint32_t i, j
        self.registers = registers
        self.orders = [None] + [Order() if ordered >= 0 else None for _, ordered in indexes]
        self.orders_at = <PyObject**>zeroed(len(self.orders), sizeof(PyObject*))
        for i, order in enumerate(self.orders):
            self.orders_at[i] = <PyObject*>order
        self.turned = &self.bit     # of groups that are in no place, it stays 0
        self.width = width
        self.stride = (sizeof(Group) + width * sizeof(term_t) - sizeof(term_t) + LINE - 1) & ~(
            <size_t>LINE - 1
        )
        self.dated = dated
        self.free = NOBODY
        self.chain_count = 1 + <uint32_t>len(indexes)
        self.chains = <Chains*>zeroed(self.chain_count, sizeof(Chains))
        for i, (columns, ordered) in enumerate([(list(range(width)), -1), *indexes]):
            self.chains[i].ordered = ordered
            self.chains[i].width = <uint32_t>len(columns)
            self.chains[i].columns = <uint32_t*>zeroed(len(columns), sizeof(uint32_t))
            for j, column in enumerate(columns):
                self.chains[i].columns[j] = column
            self.chains[i].same = i > 0 and ordered < 0 and columns == list(range(width))
        self._lengthen(FEWEST * 5 // 8)
        self._widen(FEWEST)
        self._enter_all(FEWEST)
        self.due = FEWEST * 5 // 8

    def __dealloc__(self):
        cdef uint32_t i
        if self.chains != NULL:
            for i in range(self.chain_count):
                give_back(self.chains[i].columns)
                give_back(self.chains[i].heads)
                give_back(self.chains[i].standings)
        give_back(self.chains)
        give_back(self.orders_at)
        give_back(self.lines.block)
        give_back(self.dates)
        give_back(self.alive)

    cdef int prepare(self) except -1 nogil:
        """What is due at this number of groups, so that there is room for more.

        That is twice the room, in parts, for an event should not pay for all of it: what takes
        long is less to enter the groups anew than to touch memory that nobody has touched before,
        which the system has to clear, and below a virtual machine another one to find. Groups are
        entered anew one before the room is full: the one after that begins new pages.
        """
        cdef uint32_t eighth = self.room // 8
        if self.count == 5 * eighth:
            self._lengthen(10 * eighth)
            self.due = 6 * eighth
        elif self.count < self.room - 1:
            if self.count == 6 * eighth:
                self._widen(2 * self.room)
            self.due = self.count + 1 if self._clear_piece() else self.room - 1
        else:
            self._enter_all(2 * self.room)
            self.due = 10 * eighth
        return 0

    cdef int _lengthen(self, uint32_t most) except -1 nogil:
        """Room for what there is of each group; the next of them comes first to new memory."""
        lines_grow(
            &self.lines, self.count * self.stride // LINE, most * self.stride // LINE, LACKING
        )
        if self.dated:
            self.dates = <Dates*>longer(self.dates, most, sizeof(Dates), LACKING)
        self.alive = <uint32_t*>longer(self.alive, most, sizeof(uint32_t), LACKING)
        return 0

    cdef int _widen(self, uint32_t room) except -1 nogil:
        """Memory for the tables by which groups are found, not used yet."""
        cdef uint32_t i
        cdef Chains* chains
        self.clearing = self.cleared = 0
        for i in range(self.chain_count):
            chains = &self.chains[i]
            if chains.ordered >= 0:
                (<Order>self.orders_at[i]).widen(room)
            elif not chains.same:
                chains.heads = <uint32_t*>longer(
                    chains.heads, SPARSE * room, sizeof(uint32_t), LACKING
                )
                if i:
                    chains.standings = <Standing*>longer(
                        chains.standings, room, sizeof(Standing), LACKING
                    )
        return 0

    cdef bint _clear_piece(self) noexcept nogil:
        """Touch the next piece of what the tables will have more; False: there is none."""
        cdef Chains* chains
        cdef uint32_t* table
        cdef uint64_t added, some
        while self.clearing < self.chain_count:
            chains = &self.chains[self.clearing]
            table, added = chains.heads, 0 if chains.same else <uint64_t>chains.mask + 1
            if chains.ordered >= 0:
                table = (<Order>self.orders_at[self.clearing]).roots
                added = <uint64_t>(<Order>self.orders_at[self.clearing]).mask + 1
            if self.cleared < added:
                some = min(PIECE, added - self.cleared)
                memset(table + added + self.cleared, 0xFF, some * sizeof(uint32_t))
                self.cleared += some
                return True
            self.clearing += 1
            self.cleared = 0
        return False

    cdef int _enter_all(self, uint32_t room) except -1 nogil:
        """The tables become as large as there is memory for: groups are entered anew."""
        cdef uint32_t i, group
        cdef Chains* chains
        for i in range(self.chain_count):
            chains = &self.chains[i]
            if chains.ordered >= 0:
                (<Order>self.orders_at[i]).reserve(room)
            elif not chains.same:
                chains.mask = SPARSE * room - 1
                memset(chains.heads, 0xFF, SPARSE * room * sizeof(uint32_t))
            else:
                continue
            for group in range(self.count):
                if not group_at(self, group).alive:
                    continue
                if chains.ordered >= 0:
                    (<Order>self.orders_at[i]).put(group)
                else:
                    enter_chain(self, chains, group, standing_of(self, chains, group).hash)
        self.room = room
        return 0

    cdef uint32_t first(self, uint32_t index, const term_t* key) noexcept nogil:
        """The first group with these values in the columns of an index, or NOBODY."""
        cdef Chains* chains = &self.chains[0 if self.chains[index].same else index]
        cdef uint32_t hash = hash_of(key, chains.width)
        return _like(self, chains, chains.heads[hash & chains.mask], hash, key)

    cdef uint32_t next_of(self, uint32_t index, uint32_t group, const term_t* key) noexcept nogil:
        """The one after a group that `first` or `next_of` gave."""
        cdef Chains* chains = &self.chains[index]
        if chains.same:
            return NOBODY  # no other group has all of its registers
        return _like(
            self, chains, chains.standings[group].next, chains.standings[group].hash, key
        )

    cdef int date(self, Tecs tecs, uint32_t group, Node* node, instant_t bound) except -1 nogil:
        """A member is also found by its last instant, no older than that of any other."""
        cdef Stretch* newest = self.dates[group].newest
        cdef Stretch* made
        cdef instant_t last = node.label.instant
        if newest == NULL:
            self.dates[group].oldest = last
        if newest == NULL or newest.last != last:
            made = <Stretch*>piece_of(tecs, sizeof(Stretch))
            memset(made, 0, sizeof(Stretch))
            made.last, made.older, made.latest, made.older_latest = last, newest, -1, -1
            if newest != NULL:
                made.older_latest = max(newest.latest, newest.older_latest)
            self.dates[group].newest = newest = made
        assert newest.last == last and (newest.older == NULL or newest.older.last < last)
        newest.members = added(tecs, newest.members, newest.latest, node, bound)
        newest.latest = max(newest.latest, node.latest)
        return 0

    cdef int spoil(self, uint32_t group) noexcept nogil:
        """The members of a group change, where some order keeps unions of them."""
        cdef uint32_t i
        for i in range(self.chain_count):
            if self.chains[i].ordered >= 0:
                (<Order>self.orders_at[i]).spoil(group)
        return 0

    cdef int clear(self) except -1 nogil:
        """Nobody waits any more."""
        while self.living:
            drop(self, self.alive[self.living - 1])
        return 0
