# cython: language_level=3, boundscheck=False, wraparound=False
"""Groups in the order of one register's value: an index for `<`, `<=`, `>` and `>=`.

A treap whose nodes are groups, by (hash of the registers that equal ones share, rank, value,
number of the group). Ranks keep apart what cannot be compared: a number meets numbers, anything
else what is no number either.

Invariant: what an index leaves out, the filter it serves is not true of; what it gives, the
filter is still asked about. So values may be doubles that stand for exact numbers: rounding
keeps the order, and who looks for a range makes it as much wider as rounding to a float can
move a number. Cost: logarithmic in the groups for each step. Source: Seidel and Aragon,
Randomized Search Trees, 1996.
"""

from libc.math cimport isnan

from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._memory cimport give_back, resized
from spaseq.rdf._terms cimport UNDECODED, WINDOWED
from spaseq.rdf._values cimport Kind

cdef uint32_t NOBODY = 0xFFFFFFFFu


cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil:
    """How a term is compared, and its value if it is a number."""
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind < Kind.INTEGER or record.kind > Kind.DOUBLE:
        return Rank.OTHERWISE
    value[0] = <double>record.exact if record.kind == Kind.INTEGER else record.real
    if isnan(value[0]):
        value[0] = 0  # what is in an order must have one
        return Rank.OTHERWISE
    return Rank.NUMERIC


cdef class Registers:
    """Looks at the terms that registers hold."""

    def __cinit__(self, WindowTerms window not None, Dictionary dictionary not None):
        self.window = window
        self.dictionary = dictionary

    cdef Rank rank(self, term_t term, double* value) noexcept nogil:
        """How a register's term is compared."""
        value[0] = 0
        if term == 0:
            return Rank.UNBOUND
        if term & WINDOWED:
            return rank_of(&self.window.store.records[term ^ WINDOWED], value)
        return rank_of(&self.dictionary.permanent.records[term], value)


cdef inline uint32_t _priority(uint32_t group) noexcept nogil:
    return (group + 1) * 0x9E3779B1u ^ (group << 15)


cdef class Order:
    """The groups of one place."""

    def __cinit__(self):
        self.root = NOBODY

    def __dealloc__(self):
        give_back(self.left)
        give_back(self.right)
        give_back(self.hashes)
        give_back(self.ranks)
        give_back(self.values)

    cdef int reserve(self, uint32_t room) except -1:
        """Make room for the groups with numbers below `room`."""
        self.left = <uint32_t*>_longer(self.left, room * sizeof(uint32_t))
        self.right = <uint32_t*>_longer(self.right, room * sizeof(uint32_t))
        self.hashes = <uint32_t*>_longer(self.hashes, room * sizeof(uint32_t))
        self.ranks = <uint8_t*>_longer(self.ranks, room)
        self.values = <double*>_longer(self.values, room * sizeof(double))
        return 0

    cdef bint _before(
        self, uint32_t node, uint32_t hash, uint8_t rank, double value, uint32_t group
    ) noexcept nogil:
        """Whether a node comes before a position."""
        if self.hashes[node] != hash:
            return self.hashes[node] < hash
        if self.ranks[node] != rank:
            return self.ranks[node] < rank
        if self.values[node] != value:
            return self.values[node] < value
        return node < group

    cdef int enter(self, uint32_t group, uint32_t hash, Rank rank, double value) noexcept nogil:
        """A group that is not there comes in."""
        cdef uint32_t* where = &self.root
        cdef uint32_t* smaller = &self.left[group]
        cdef uint32_t* greater = &self.right[group]
        cdef uint32_t node
        self.hashes[group] = hash
        self.ranks[group] = <uint8_t>rank
        self.values[group] = value
        while where[0] != NOBODY and _priority(where[0]) > _priority(group):
            node = where[0]
            where = &self.right[node] if self._before(node, hash, rank, value, group) else (
                &self.left[node]
            )
        # What hangs here is split into what comes before the group and what after.
        node = where[0]
        where[0] = group
        while node != NOBODY:
            if self._before(node, hash, rank, value, group):
                smaller[0] = node
                smaller = &self.right[node]
                node = self.right[node]
            else:
                greater[0] = node
                greater = &self.left[node]
                node = self.left[node]
        smaller[0] = greater[0] = NOBODY
        return 0

    cdef int leave(self, uint32_t group) noexcept nogil:
        """A group that is there goes."""
        cdef uint32_t* where = &self.root
        cdef uint32_t smaller = self.left[group], greater = self.right[group]
        while where[0] != group:
            where = &self.right[where[0]] if self._before(
                where[0], self.hashes[group], self.ranks[group], self.values[group], group
            ) else &self.left[where[0]]
        while smaller != NOBODY and greater != NOBODY:
            if _priority(smaller) > _priority(greater):
                where[0] = smaller
                where = &self.right[smaller]
                smaller = self.right[smaller]
            else:
                where[0] = greater
                where = &self.left[greater]
                greater = self.left[greater]
        where[0] = greater if smaller == NOBODY else smaller
        return 0

    cdef uint32_t at(self, uint32_t hash, Rank rank, double value, uint32_t group) noexcept nogil:
        """The first group at a position or after it, or NOBODY."""
        cdef uint32_t node = self.root, found = NOBODY
        while node != NOBODY:
            if self._before(node, hash, rank, value, group):
                node = self.right[node]
            else:
                found = node
                node = self.left[node]
        return found


cdef void* _longer(void* block, size_t size) except NULL:
    cdef void* moved = resized(block, size)
    if moved == NULL:
        raise MemoryError("no room for another group of partial matches")
    return moved
