"""The union of all groups in a range, without visiting each group.

Each block of a range index can store the union of its groups and the union of its subtree. A range
consists of some groups of one block and of the blocks and subtrees on one side of that block, so
its union is that of logarithmically many stored unions. A union is computed on demand, and again
after one of its groups has changed. It shares the unions of its subtrees, since the tECS is
persistent.

Invariant: a union that is not stale holds the members of its groups that are inside the window.
Cost: logarithmic in the groups for a range, and for each change since the last one; the depth of
recursion is that of the treap. Source: de Berg et al., Computational Geometry, section 5.1
(canonical subsets), over the persistent unions of CORE.
"""

from libc.math cimport INFINITY


cdef int sum_of(
    Groups groups, uint32_t index, Tecs tecs, instant_t since, Sum* wanted
) except -1 nogil:
    """Store the union of the wanted groups in `wanted.members`; `since` is the least start."""
    return _sum_in(groups, <RangeIndex>groups.orders_at[index], tecs, since, wanted)


cdef int _sum_in(
    Groups groups, RangeIndex order, Tecs tecs, instant_t since, Sum* wanted
) except -1 nogil:
    cdef uint32_t found = root_of(order, wanted.bucket)[0]
    cdef Group* group
    cdef GroupEntry* place
    wanted.members = 0
    wanted.latest = -1
    if found != NIL and found & SINGLE_GROUP:
        group = group_at(groups, found ^ SINGLE_GROUP)
        place = &order.places[found ^ SINGLE_GROUP]
        if place.bucket == wanted.bucket and _is_wanted(wanted, place.value):
            _add(tecs, since, &wanted.members, &wanted.latest, group.members, group.latest)
        return 0
    order.enable_subtotals()
    groups.has_unions = True
    return _gather(groups, order, tecs, since, wanted, found, False, False)


cdef int _gather(
    Groups groups, RangeIndex order, Tecs tecs, instant_t since, Sum* wanted, uint32_t number,
    bint no_less, bint no_greater,
) except -1 nogil:
    """Add the wanted groups of a subtree; the flags say which ends are inside the range."""
    cdef const Block* block
    cdef Union* found
    cdef Group* group
    cdef uint32_t i, first, end
    cdef bint whole
    if number == NIL:
        return 0
    block = block_at(order, number)
    if no_less and no_greater:
        _refresh_subtree(groups, order, tecs, since, number)
        found = &order.subtotals[block.serial].subtree
        return _add(tecs, since, &wanted.members, &wanted.latest, found.members, found.latest)
    if block.bucket < wanted.bucket:
        return _gather(groups, order, tecs, since, wanted, block.child[1], no_less, no_greater)
    if block.bucket > wanted.bucket:
        return _gather(groups, order, tecs, since, wanted, block.child[0], no_less, no_greater)
    first = 0
    end = block.count
    if wanted.above:
        # The bound may be rounded up to infinity.
        first = below(block, next_double(wanted.bound)) if wanted.bound < INFINITY else end
    else:
        end = below(block, wanted.bound)
    whole = end - first == block.count
    if whole:
        _refresh_own(groups, order, tecs, since, block)
        found = &order.subtotals[block.serial].own
        _add(tecs, since, &wanted.members, &wanted.latest, found.members, found.latest)
    else:
        for i in range(first, end):
            group = group_at(groups, groups_in(block)[i])
            _add(tecs, since, &wanted.members, &wanted.latest, group.members, group.latest)
    # Groups before a block are no greater than its first value, groups after it no less than its
    # last one.
    if not wanted.above or block.low > wanted.bound:
        _gather(
            groups, order, tecs, since, wanted, block.child[0], no_less,
            no_greater or _is_wanted(wanted, block.low),
        )
    if wanted.above or whole:
        _gather(
            groups, order, tecs, since, wanted, block.child[1], no_less or first < end, no_greater
        )
    return 0


cdef inline bint _is_wanted(const Sum* wanted, double value) noexcept nogil:
    return value > wanted.bound if wanted.above else value < wanted.bound


cdef inline int _add(
    Tecs tecs, instant_t since, union_t* sum, instant_t* latest, union_t more,
    instant_t more_latest,
) except -1 nogil:
    if more and more_latest >= since:
        sum[0] = tecs.unite(sum[0], latest[0], more, more_latest)
        latest[0] = max(latest[0], more_latest)
    return 0


cdef int _refresh_subtree(
    Groups groups, RangeIndex order, Tecs tecs, instant_t since, uint32_t number
) except -1 nogil:
    """Compute the union of a block's subtree, if it is stale."""
    cdef const Block* block = block_at(order, number)
    cdef Union* all = &order.subtotals[block.serial].subtree
    cdef Union* part
    cdef uint32_t i
    if not all.stale:
        return 0
    _refresh_own(groups, order, tecs, since, block)
    all.members, all.latest, all.stale = 0, -1, False
    # Its union may be older than the bound of the window.
    part = &order.subtotals[block.serial].own
    _add(tecs, since, &all.members, &all.latest, part.members, part.latest)
    for i in range(2):
        if block.child[i] != NIL:
            _refresh_subtree(groups, order, tecs, since, block.child[i])
            part = &order.subtotals[block_at(order, block.child[i]).serial].subtree
            _add(tecs, since, &all.members, &all.latest, part.members, part.latest)
    return 0


cdef int _refresh_own(
    Groups groups, RangeIndex order, Tecs tecs, instant_t since, const Block* block
) except -1 nogil:
    """Compute the union of a block's own groups, if it is stale."""
    cdef Union* own = &order.subtotals[block.serial].own
    cdef Group* group
    cdef uint32_t i
    if not own.stale:
        return 0
    own.members, own.latest, own.stale = 0, -1, False
    for i in range(block.count):
        group = group_at(groups, groups_in(block)[i])
        _add(tecs, since, &own.members, &own.latest, group.members, group.latest)
    return 0
