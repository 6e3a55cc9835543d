"""The groups that wait in one place; see _groups.pyx."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from spaseq.nfa.native._range_index cimport (
    NIL,
    RangeIndex,
    Rank,
    TermResolver,
    index_insert,
    index_remove,
    rank_in,
)
from spaseq.nfa.native._tecs cimport Node, Tecs, instant_t, union_t
from spaseq.rdf._memory cimport Lines
from spaseq.rdf._terms cimport copy_row, term_t

# The members of a group whose last event arrived at one instant, or that have since passed one
# deadline. See _tecs.pxd for `latest`.
cdef struct InstantMembers:
    instant_t last
    int64_t micros      # the time of the last event, or the deadline passed since
    union_t members
    instant_t latest
    InstantMembers* older # the stretch of the previous instant or time
    instant_t older_latest

# The members of a group by their last instants, where a place is dated.
cdef struct Dates:
    InstantMembers* newest
    instant_t oldest    # no member's last event is older
    instant_t floor     # members with an older last event have been joined by a `;` place
    instant_t joined    # the same, effective after the timestamp that begins at `joined_in`
    instant_t joined_in

# The links of a group in its chain.
cdef struct ChainLinks:
    uint32_t next
    uint32_t previous   # NIL: the group is a head
    uint32_t hash

# All partial matches of the place with the same live registers. With up to three registers a group
# fills one cache line: a lookup waits for memory once per line.
cdef struct Group:
    union_t members
    instant_t latest    # greatest start of the members, see _tecs.pxd
    uint64_t serial     # unique among the groups of the place
    instant_t joined_at # the instant whose close removes the group, see `mark_joined`; -1: none
    uint32_t place      # position in `alive`, or the next free group
    bint alive
    ChainLinks all_links # in the chain by all registers
    term_t values[1]    # the registers of the group

# Groups by the hash of some of their registers, in chains.
cdef struct Chains:
    uint32_t* columns       # positions of the hashed live registers
    uint32_t width
    uint32_t* heads         # mask + 1 of them
    uint32_t mask
    ChainLinks* links   # per group; NULL: those inside the groups
    int32_t ordered         # the live register that orders the index, -1: hashed
    bint same               # reuse the first chains, which have the same key


@cython.final
cdef class Groups:
    cdef uint32_t width         # live registers
    cdef Lines lines
    cdef size_t stride          # bytes from one group to the next
    cdef bint dated
    cdef Dates* dates           # per group, if `dated`
    cdef bint floored           # groups have floors
    cdef term_t* raised         # per group, if `floored`: the floor that it has after the open
                                # instant, 0: the same
    cdef uint32_t count         # group numbers in use
    cdef uint64_t made          # groups ever created
    cdef uint32_t room          # slots, a power of two
    cdef uint32_t due           # number of groups at which `grow_in_parts` must run
    cdef uint32_t clearing      # the chains whose new larger table is being cleared
    cdef uint64_t cleared       # heads or roots of it cleared so far
    cdef uint32_t free          # first free group
    cdef uint32_t last_hash     # the hash of the last lookup by all registers
    cdef uint32_t* alive        # the numbers of the groups, unordered
    cdef readonly uint32_t live_count
    # Receives `bit` when the first group arrives or the last one leaves.
    cdef uint64_t* changed_places
    cdef uint64_t bit
    cdef Chains* chains         # first by all registers, then one per index
    cdef uint32_t chain_count
    cdef list orders            # per index its RangeIndex, None where it is hashed
    cdef PyObject** orders_at   # the same
    cdef bint has_unions        # some order stores unions of its groups
    cdef TermResolver registers

    cdef int add_dated(self, Tecs tecs, uint32_t group, Node* node, instant_t bound) except -1 nogil
    cdef int clear(self) except -1 nogil
    cdef int invalidate(self, uint32_t group) noexcept nogil
    cdef uint32_t first(self, uint32_t index, const term_t* key) noexcept nogil
    cdef uint32_t next_of(self, uint32_t index, uint32_t group, const term_t* key) noexcept nogil
    cdef int grow_in_parts(self) except -1 nogil
    cdef int _grow_arrays(self, uint32_t most) except -1 nogil
    cdef int _alloc_tables(self, uint32_t room) except -1 nogil
    cdef bint _clear_next_piece(self) noexcept nogil
    cdef int _rehash(self, uint32_t room) except -1 nogil


cdef inline uint32_t extend_hash(uint32_t hash, term_t value) noexcept nogil:
    """Extend the hash of some values by one more; the empty hash is 0.

    Terms of a window are numbered in order of arrival, so consecutive terms of one register hash to
    neighbouring slots, which share cache lines. If every event brings sixteen terms, the higher
    bits differ.
    """
    return hash * 0x9E3779B1u + value + (value >> 4)


cdef inline uint32_t hash_of(const term_t* values, uint32_t count) noexcept nogil:
    cdef uint32_t hash = 0
    cdef uint32_t i
    for i in range(count):
        hash = extend_hash(hash, values[i])
    return hash


cdef inline Group* group_at(Groups groups, uint32_t number) noexcept nogil:
    """The group of a number; valid until a group is created."""
    return <Group*>(groups.lines.first + number * groups.stride)


cdef inline term_t* values_of(Groups groups, uint32_t group) noexcept nogil:
    return group_at(groups, group).values


cdef inline instant_t floor_of(Dates* dates, instant_t timestamp_start) noexcept nogil:
    """The least last instant of members that no earlier timestamp has joined."""
    if dates.joined_in < timestamp_start and dates.joined > dates.floor:
        dates.floor = dates.joined
    return dates.floor


cdef inline instant_t latest_of(const Group* group) noexcept nogil:
    """The greatest start of the members, also after `,` has passed over them."""
    return group.latest if group.latest >= 0 else ~group.latest


cdef inline bint are_equal(
    const term_t* values, const term_t* others, uint32_t count
) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if values[i] != others[i]:
            return False
    return True


cdef inline uint32_t find_group(Groups groups, const term_t* values) noexcept nogil:
    """The group with these live registers, or NIL."""
    cdef uint32_t hash = hash_of(values, groups.width)
    cdef uint32_t number = groups.chains.heads[hash & groups.chains.mask]
    cdef const Group* group
    groups.last_hash = hash
    while number != NIL:
        group = group_at(groups, number)
        if group.all_links.hash == hash and are_equal(group.values, values, groups.width):
            return number
        number = group.all_links.next
    return NIL


cdef inline ChainLinks* links_of(Groups groups, Chains* chains, uint32_t group) noexcept nogil:
    """The links of a group in some chains."""
    if chains == groups.chains:
        return &group_at(groups, group).all_links
    return &chains.links[group]


cdef inline int chain_insert(
    Groups groups, Chains* chains, uint32_t group, uint32_t hash
) noexcept nogil:
    """Insert a group at the head of the chain of its hash."""
    cdef uint32_t* head = &chains.heads[hash & chains.mask]
    cdef ChainLinks* own = links_of(groups, chains, group)
    own.hash, own.next, own.previous = hash, head[0], NIL
    if head[0] != NIL:
        links_of(groups, chains, head[0]).previous = group
    head[0] = group
    return 0


cdef inline int chain_remove(Groups groups, Chains* chains, uint32_t group) noexcept nogil:
    """Remove a group from its chain."""
    cdef ChainLinks* own = links_of(groups, chains, group)
    if own.previous == NIL:
        chains.heads[own.hash & chains.mask] = own.next
    else:
        links_of(groups, chains, own.previous).next = own.next
    if own.next != NIL:
        links_of(groups, chains, own.next).previous = own.previous
    return 0


cdef inline uint32_t hash_in(const Chains* chains, const term_t* values) noexcept nogil:
    """The hash of the registers of a group that an index reads."""
    cdef uint32_t hash = 0
    cdef uint32_t i
    for i in range(chains.width):
        hash = extend_hash(hash, values[chains.columns[i]])
    return hash


cdef inline uint32_t create_group(Groups groups, const term_t* values) except? 0xFFFFFFFF nogil:
    """Create a group without members, after `find_group` has not found its registers."""
    cdef uint32_t group = groups.free
    cdef uint32_t i
    cdef Group* made
    cdef Chains* chains
    cdef Rank rank
    cdef double value
    cdef bint distinct
    assert find_group(groups, values) == NIL
    if group != NIL:
        groups.free = group_at(groups, group).place
    else:
        if groups.count == groups.due:
            groups.grow_in_parts()
        group = groups.count
        groups.count += 1
    made = group_at(groups, group)
    if groups.dated:
        memset(&groups.dates[group], 0, sizeof(Dates))
        groups.dates[group].floor = groups.dates[group].joined = -1
    if groups.floored:
        groups.raised[group] = 0
    groups.made += 1
    made.members = 0
    made.serial = groups.made
    made.joined_at = made.latest = -1
    made.alive = True
    made.place = groups.live_count
    groups.alive[groups.live_count] = group
    groups.changed_places[0] |= groups.bit * <uint64_t>(groups.live_count == 0)
    groups.live_count += 1
    copy_row(made.values, values, groups.width)
    chain_insert(groups, groups.chains, group, groups.last_hash)
    for i in range(1, groups.chain_count):
        chains = &groups.chains[i]
        if chains.ordered >= 0:
            rank = rank_in(groups.registers, values[chains.ordered], &value, &distinct)
            index_insert(
                <RangeIndex>groups.orders_at[i], group, hash_in(chains, values), rank, value,
                distinct,
            )
        elif not chains.same:
            chain_insert(groups, chains, group, hash_in(chains, values))
    return group


cdef inline double number_in(Groups groups, term_t term) noexcept nogil:
    """The number that a register's term is."""
    cdef double value
    cdef bint distinct
    rank_in(groups.registers, term, &value, &distinct)
    return value


cdef inline int raise_floor(Groups groups, uint32_t group, term_t floor) noexcept nogil:
    """Raise the floor that a group has after the open instant, unless it is greater already."""
    cdef term_t* raised = &groups.raised[group]
    if raised[0] == 0 or number_in(groups, floor) > number_in(groups, raised[0]):
        raised[0] = floor
    return 0


cdef inline int remove_group(Groups groups, uint32_t group) except -1 nogil:
    """Remove a group."""
    cdef Group* gone = group_at(groups, group)
    cdef uint32_t i, last
    assert gone.alive and groups.alive[gone.place] == group
    chain_remove(groups, groups.chains, group)
    for i in range(1, groups.chain_count):
        if groups.chains[i].ordered >= 0:
            index_remove(<RangeIndex>groups.orders_at[i], group)
        elif not groups.chains[i].same:
            chain_remove(groups, &groups.chains[i], group)
    groups.live_count -= 1
    groups.changed_places[0] |= groups.bit * <uint64_t>(groups.live_count == 0)
    last = groups.alive[groups.live_count]
    groups.alive[gone.place] = last
    group_at(groups, last).place = gone.place
    gone.alive = False
    gone.members = 0
    gone.place = groups.free
    groups.free = group
    return 0
