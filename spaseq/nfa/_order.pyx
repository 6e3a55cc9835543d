# cython: language_level=3, boundscheck=False, wraparound=False
"""Groups in the order of one register's value: an index for `<`, `<=`, `=`, `>` and `>=`.

Treaps whose nodes are groups, by (hash of the registers that equal ones share, rank, value,
number of the group); a table by that hash has their roots, so that groups are apart that an
equality keeps apart. Ranks keep apart what cannot be compared: a number meets numbers, a
text texts, anything else what is neither.

Invariant: what an index leaves out, the filter it serves is not true of; what it gives, the
filter is still asked about. So values may be doubles that stand for exact numbers: rounding
keeps the order, and who looks for a range makes it as much wider as rounding to a float can
move a number. Cost: logarithmic in the groups for each that comes, goes, or begins a range;
constant for each after it. Source: Seidel and Aragon,
Randomized Search Trees, 1996.
"""

from libc.math cimport isnan
from libc.string cimport memmove, memset

from spaseq.rdf._literals cimport decode_record
from spaseq.rdf._memory cimport give_back, longer, zeroed
from spaseq.rdf._terms cimport UNDECODED, WINDOWED
from spaseq.rdf._values cimport Kind

cdef const char* LACKING = b"another group of partial matches"

cdef enum:
    NOBODY = 0xFFFFFFFF
    SPARSE = 4      # so many roots for each group there is room for: few keys share one


cdef Rank rank_of(TermRecord* record, double* value) noexcept nogil:
    """How a term is compared, and its value if it is a number, or a text."""
    if record.kind == UNDECODED:
        decode_record(record)
    if record.kind <= Kind.LANG:
        value[0] = <double>record.hash
        return Rank.TEXT
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

    def __dealloc__(self):
        give_back(self.leaves)
        give_back(self.subtotals)
        give_back(self.roots)

    cdef int reserve(self, uint32_t room) except -1 nogil:
        """Make room for the groups with numbers below `room`, a power of two; none is in it."""
        self.leaves = <Leaf*>longer(self.leaves, room, sizeof(Leaf), LACKING)
        self.roots = <uint32_t*>longer(self.roots, SPARSE * room, sizeof(uint32_t), LACKING)
        if self.subtotals != NULL:
            self.subtotals = <Subtotal*>longer(self.subtotals, room, sizeof(Subtotal), LACKING)
        self.room = room
        self.mask = SPARSE * room - 1
        memset(self.roots, 0xFF, SPARSE * room * sizeof(uint32_t))
        return 0

    cdef int keep_subtotals(self) except -1 nogil:
        """From now on, subtrees may have unions."""
        cdef uint32_t i
        if self.subtotals != NULL:
            return 0
        self.subtotals = <Subtotal*>zeroed(self.room, sizeof(Subtotal))
        for i in range(self.room):
            self.subtotals[i].stale = True
        return 0

    cdef int spoil(self, uint32_t group) noexcept nogil:
        """The members of a group have changed: the unions it is in are stale."""
        cdef uint32_t node
        if self.subtotals == NULL or self.subtotals[group].stale:
            return 0
        node = self.roots[<uint32_t>(self.leaves[group].alike >> 2) & self.mask]
        while node != group:
            self.subtotals[node].stale = True
            node = self.leaves[node].child[self._before(node, &self.leaves[group], group)]
        self.subtotals[group].stale = True
        return 0

    cdef bint _before(self, uint32_t node, const Leaf* position, uint32_t group) noexcept nogil:
        """Whether a node comes before a position, without a branch: there is no telling."""
        cdef const Leaf* leaf = &self.leaves[node]
        if leaf.alike != position.alike:
            return leaf.alike < position.alike
        return <int>(leaf.value < position.value) | (
            <int>(leaf.value == position.value) & <int>(node < group)
        )

    cdef int enter(self, uint32_t group, uint32_t hash, Rank rank, double value) noexcept nogil:
        """A group that is not there comes in."""
        self.leaves[group].alike = class_of(hash, rank)
        self.leaves[group].value = value
        return self.put(group)

    cdef int put(self, uint32_t group) noexcept nogil:
        """A group that has been there comes in again."""
        cdef Leaf* leaf = &self.leaves[group]
        cdef uint32_t* where = &self.roots[<uint32_t>(leaf.alike >> 2) & self.mask]
        cdef uint32_t node = where[0]
        cdef uint32_t priority = _priority(group)
        cdef uint32_t* hooks[2]     # where the next one hangs that comes after, or before
        cdef bint before
        cdef bint kept = self.subtotals != NULL
        while node != NOBODY and _priority(node) > priority:
            if kept:
                self.subtotals[node].stale = True
            where = &self.leaves[node].child[self._before(node, leaf, group)]
            node = where[0]
        # What hangs here is split into what comes before the group and what after.
        where[0] = group
        if kept:
            self.subtotals[group].stale = True
        hooks[0], hooks[1] = &leaf.child[1], &leaf.child[0]
        while node != NOBODY:
            if kept:
                self.subtotals[node].stale = True
            before = self._before(node, leaf, group)
            hooks[before][0] = node
            hooks[before] = &self.leaves[node].child[before]
            node = hooks[before][0]
        hooks[0][0] = hooks[1][0] = NOBODY
        return 0

    cdef int leave(self, uint32_t group) noexcept nogil:
        """A group that is there goes."""
        cdef Leaf* leaf = &self.leaves[group]
        cdef uint32_t* where = &self.roots[<uint32_t>(leaf.alike >> 2) & self.mask]
        cdef uint32_t[2] sides
        cdef bint after
        cdef bint kept = self.subtotals != NULL
        while where[0] != group:
            if kept:
                self.subtotals[where[0]].stale = True
            where = &self.leaves[where[0]].child[self._before(where[0], leaf, group)]
        sides[0], sides[1] = leaf.child[0], leaf.child[1]
        while sides[0] != NOBODY and sides[1] != NOBODY:
            if kept:
                self.subtotals[sides[0]].stale = self.subtotals[sides[1]].stale = True
            after = _priority(sides[0]) <= _priority(sides[1])
            where[0] = sides[after]
            where = &self.leaves[sides[after]].child[1 - <int>after]
            sides[after] = where[0]
        where[0] = sides[sides[0] == NOBODY]
        return 0

    cdef uint32_t seek(
        self, Span* span, uint32_t hash, Rank rank, double least, double most
    ) noexcept nogil:
        """The first group with a hash, a rank and a value from `least` to `most`, or NOBODY.

        The span is good for `next_of` until a group comes or goes.
        """
        span.position.alike = class_of(hash, rank)
        span.position.value = least
        span.most = most
        span.root = self.roots[hash & self.mask]
        return self._descend(span, 0)

    cdef uint32_t _descend(self, Span* span, uint32_t group) noexcept nogil:
        """The first group at the span's position, with that number, or after it."""
        cdef uint32_t node = span.root
        cdef bint before
        span.depth = 0
        span.whole = True
        while node != NOBODY:
            before = self._before(node, &span.position, group)
            self._hold(span, node)
            span.depth -= before
            node = self.leaves[node].child[before]
        return self._top(span)

    cdef uint32_t next_of(self, Span* span) noexcept nogil:
        """The group after the one that the span is at, or NOBODY."""
        cdef uint32_t group = span.path[span.depth - 1], node
        span.depth -= 1
        if span.depth == 0 and not span.whole:
            span.position.value = self.leaves[group].value
            return self._descend(span, group + 1)
        node = self.leaves[group].child[1]
        while node != NOBODY:
            self._hold(span, node)
            node = self.leaves[node].child[0]
        return self._top(span)

    cdef int _hold(self, Span* span, uint32_t node) noexcept nogil:
        """A group comes before all that are held, and after what is before it in its subtree."""
        if span.depth == MOST_HELD:
            # Those that come last are looked for again.
            memmove(span.path, span.path + 1, (MOST_HELD - 1) * sizeof(uint32_t))
            span.depth -= 1
            span.whole = False
        span.path[span.depth] = node
        span.depth += 1
        return 0

    cdef uint32_t _top(self, Span* span) noexcept nogil:
        cdef Leaf* leaf
        if span.depth == 0:
            return NOBODY
        leaf = &self.leaves[span.path[span.depth - 1]]
        if leaf.alike != span.position.alike or leaf.value > span.most:
            return NOBODY
        return span.path[span.depth - 1]
