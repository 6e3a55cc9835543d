# cython: language_level=3, boundscheck=False, wraparound=False
"""All groups of a range, as one union: what a comparison lets through without looking at each.

Every node of an order's treap can keep the union of what is below it. A range is the groups on
two paths and the subtrees between them, so it is the union of logarithmically many. A union is
worked out when it is first asked for, and again once something below it has changed; it shares
those of its subtrees, as everything in the tECS is shared.

Invariant: a union that is not stale holds the members of its subtree, as far as the window still
reaches them. Cost: logarithmic in the groups for a range, and for each change since the last
one; the depth of recursion is that of the treap. Source: the idea of de Berg et al.,
Computational Geometry, section 5.1 (canonical subsets), over the persistent unions of CORE.
"""

from spaseq.nfa._groups cimport Group
from spaseq.nfa._order cimport Order, Subtotal, class_of


cdef int sum_of(
    Groups groups, uint32_t index, Tecs tecs, instant_t since, Sum* wanted
) except -1 nogil:
    """Put the union of the groups that are wanted in `wanted.cell`; `since` bounds the window."""
    return _sum_in(groups, <Order>groups.orders_at[index], tecs, since, wanted)


cdef int _sum_in(
    Groups groups, Order order, Tecs tecs, instant_t since, Sum* wanted
) except -1 nogil:
    order.keep_subtotals()
    wanted.cell = NULL
    wanted.latest = -1
    return _gather(
        groups, order, tecs, since, wanted, order.roots[<uint32_t>(wanted.alike >> 2) & order.mask],
        False, False,
    )


cdef int _gather(
    Groups groups, Order order, Tecs tecs, instant_t since, Sum* wanted, uint32_t node,
    bint no_less, bint no_greater,
) except -1 nogil:
    """Add what is wanted of a subtree, of which the beginning or the end is known to be."""
    cdef uint32_t left, right
    if node == 0xFFFFFFFFu:
        return 0
    left, right = order.leaves[node].child[0], order.leaves[node].child[1]
    if no_less and no_greater:
        _settle(groups, order, tecs, since, node)
        return _add(
            tecs, since, wanted, order.subtotals[node].cell, order.subtotals[node].latest
        )
    if not no_less and _is_before(order, node, wanted):
        return _gather(groups, order, tecs, since, wanted, right, no_less, no_greater)
    if not no_greater and _is_after(order, node, wanted):
        return _gather(groups, order, tecs, since, wanted, left, no_less, no_greater)
    _add(tecs, since, wanted, groups.groups[node].members, groups.groups[node].latest)
    _gather(groups, order, tecs, since, wanted, left, no_less, True)
    return _gather(groups, order, tecs, since, wanted, right, True, no_greater)


cdef inline bint _is_before(Order order, uint32_t node, const Sum* wanted) noexcept nogil:
    """Whether a group comes before those that are wanted."""
    if order.leaves[node].alike != wanted.alike:
        return order.leaves[node].alike < wanted.alike
    return wanted.above and order.leaves[node].value <= wanted.bound


cdef inline bint _is_after(Order order, uint32_t node, const Sum* wanted) noexcept nogil:
    """Whether a group comes after those that are wanted."""
    if order.leaves[node].alike != wanted.alike:
        return order.leaves[node].alike > wanted.alike
    return not wanted.above and order.leaves[node].value >= wanted.bound


cdef inline int _add(
    Tecs tecs, instant_t since, Sum* wanted, Cell* cell, instant_t latest
) except -1 nogil:
    if cell != NULL and latest >= since:
        wanted.cell = tecs.unite(wanted.cell, wanted.latest, cell, latest)
        wanted.latest = max(wanted.latest, latest)
    return 0


cdef int _settle(
    Groups groups, Order order, Tecs tecs, instant_t since, uint32_t node
) except -1 nogil:
    """See to it that a node has its subtotal."""
    cdef Subtotal* own = &order.subtotals[node]
    cdef Group* group = &groups.groups[node]
    cdef uint32_t below
    cdef int side
    if not own.stale:
        return 0
    own.stale = False
    own.cell, own.latest = NULL, -1
    if group.members != NULL and group.latest >= since:
        own.cell, own.latest = group.members, group.latest
    for side in range(2):
        below = order.leaves[node].child[side]
        if below == 0xFFFFFFFFu:
            continue
        _settle(groups, order, tecs, since, below)
        if order.subtotals[below].cell == NULL or order.subtotals[below].latest < since:
            continue
        if own.cell == NULL:
            own.cell, own.latest = order.subtotals[below].cell, order.subtotals[below].latest
            continue
        own.cell = tecs.unite(
            own.cell, own.latest, order.subtotals[below].cell, order.subtotals[below].latest
        )
        own.latest = max(own.latest, order.subtotals[below].latest)
    return 0
