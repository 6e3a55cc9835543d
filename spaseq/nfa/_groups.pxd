"""The groups that wait in one place; see _groups.pyx."""

cimport cython
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint64_t

from spaseq.nfa._order cimport NOBODY, Order, Registers
from spaseq.nfa._tecs cimport Cell, Node, Tecs, instant_t
from spaseq.rdf._terms cimport term_t

# The members of a group whose last event came at one instant. See _tecs.pxd for `latest`.
cdef struct Stretch:
    instant_t last
    Cell* members
    instant_t latest
    Stretch* older      # those of the instant before
    instant_t older_latest

# The members of a group by their last instants, where a place is dated.
cdef struct Dates:
    Stretch* newest
    instant_t oldest    # no member's last event is older
    instant_t floor     # what a `;` place has taken: members whose last event is older went
    instant_t taken     # the same, from the timestamp that begins at `taken_in` on
    instant_t taken_in

# All partial matches of the place with the same live registers.
cdef struct Group:
    Cell* members
    instant_t latest    # their greatest start; stands beside `members`, see _tecs.pxd
    uint64_t serial     # no other group of the place ever has the same
    instant_t taken     # the instant at which a `;` place took them, -1: never
    uint32_t place      # among the alive, or the next free group
    bint alive

# Where a group stands in its chain.
cdef struct Standing:
    uint32_t next
    uint32_t previous   # NOBODY: it is a head
    uint32_t hash

# Groups by the hash of some of their registers, in chains.
cdef struct Chains:
    uint32_t* columns       # which of the live registers
    uint32_t width
    uint32_t* heads         # mask + 1 of them
    uint32_t mask
    Standing* standings     # per group
    int32_t ordered         # the live register it is ordered by, -1: it is hashed
    bint same               # the first chains are those wanted: it has none of its own


@cython.final
cdef class Groups:
    cdef uint32_t width         # live registers
    cdef Group* groups
    cdef bint dated
    cdef Dates* dates           # per group, if `dated`
    cdef term_t* values         # of group g: values[g * width : (g + 1) * width]
    cdef uint32_t count         # numbers given to groups
    cdef uint64_t made          # groups ever made
    cdef uint32_t room
    cdef uint32_t free          # first free group
    cdef uint32_t sought        # the hash of the registers that were looked for last
    cdef uint32_t* alive        # the groups there are, in no order
    cdef readonly uint32_t living
    cdef bint* turned           # set when the first comes to wait or the last goes
    cdef bint unheeded
    cdef Chains* chains         # first by all registers, then one for each index
    cdef uint32_t chain_count
    cdef list orders            # per index its Order, None where it is hashed
    cdef PyObject** orders_at   # the same
    cdef bint summed            # some order keeps unions of its groups
    cdef Registers registers

    cdef uint32_t find(self, const term_t* values) noexcept nogil
    cdef uint32_t make(self, const term_t* values) except? 0xFFFFFFFF nogil
    cdef int date(self, Tecs tecs, uint32_t group, Node* node, instant_t bound) except -1 nogil
    cdef int drop(self, uint32_t group) except -1 nogil
    cdef int clear(self) except -1 nogil
    cdef int spoil(self, uint32_t group) noexcept nogil
    cdef uint32_t first(self, uint32_t index, const term_t* key) noexcept nogil
    cdef uint32_t next_of(self, uint32_t index, uint32_t group, const term_t* key) noexcept nogil
    cdef int _grow(self) except -1 nogil
    cdef int _enter_order(self, uint32_t index, uint32_t group) except -1 nogil
    cdef int _enter(self, Chains* chains, uint32_t group, uint32_t hash) noexcept nogil
    cdef uint32_t _hash_in(self, const Chains* chains, uint32_t group) noexcept nogil
    cdef int _leave(self, Chains* chains, uint32_t group) noexcept nogil
    cdef uint32_t _like(
        self, Chains* chains, uint32_t group, uint32_t hash, const term_t* key
    ) noexcept nogil
    cdef bint _agrees(self, Chains* chains, uint32_t group, const term_t* key) noexcept nogil


cdef inline uint32_t hash_of(const term_t* values, uint32_t count) noexcept nogil:
    cdef size_t hash = 0
    cdef uint32_t i
    for i in range(count):
        hash = (hash ^ values[i]) * 0x9E3779B97F4A7C15u
    return <uint32_t>(hash >> 32)


cdef inline term_t* values_of(Groups groups, uint32_t group) noexcept nogil:
    return groups.values + <size_t>group * groups.width


cdef inline instant_t floor_of(Dates* dates, instant_t timestamp_start) noexcept nogil:
    """Members whose last event is older have been taken, at an earlier timestamp."""
    if dates.taken_in < timestamp_start and dates.taken > dates.floor:
        dates.floor = dates.taken
    return dates.floor


cdef inline instant_t latest_of(const Group* group) noexcept nogil:
    """The greatest start of the members; of those there were, where `,` has passed them over."""
    return group.latest if group.latest >= 0 else ~group.latest
