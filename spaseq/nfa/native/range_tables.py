"""An edge of an automaton → what the range index of its groups decides without a filter.

If the filter is a single comparison, it holds for every group inside the range by more than the
rounding error, and the core skips the evaluation. For numbers of few digits, it holds for exactly
the groups in the range. If, in addition, nothing later reads the registers of the group, the row
visits no group: it extends the union of the range by one node, whatever number of groups the range
spans (`spaseq.nfa.native._tecs`).
"""

from __future__ import annotations

from spaseq.nfa.automaton import ACCEPT, Automaton
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan
from spaseq.rules import enabled

_ORDERED = frozenset(("<", "<=", ">", ">="))


def deciding_operator(
    plan: QueryPlan, automaton: Automaton, number: int, position: int
) -> str | None:
    """The comparison that the range index of an edge serves, if it is the only filter.

    The index compares with a register, also for `PREV`.
    """
    place = automaton.places[number]
    atom = automaton.atoms[place.edges[position].atom]
    if atom.kind == "deadline":
        return None
    order = None if place.start else place.orders[position]
    occurrence = plan.occurrences[atom.occurrences[0]]
    if order is None or order[2] == "equal" or order[0] not in place.live:
        return None
    if not enabled("decided_ranges"):
        return None
    if len(occurrence.residual) != 1:
        return None
    if occurrence.assignments and plan.gpms[occurrence.gpm].floor is None:
        return None
    compared = occurrence.residual[0].expression
    if not isinstance(compared, ast.Binary) or compared.operator not in _ORDERED:
        return None
    return compared.operator


def joins_whole(plan: QueryPlan, automaton: Automaton, number: int, position: int) -> bool:
    """Whether an edge only compares one live register and reads none of them later."""
    place = automaton.places[number]
    edge = place.edges[position]
    atom = automaton.atoms[edge.atom]
    if (
        not enabled("range_unions")
        or deciding_operator(plan, automaton, number, position) is None
        or place.operator != ":"
        or plan.partition
        or plan.emit == "STRICT"
        or edge.actions
        or edge.within is not None
        or atom.limits
        or any(automaton.atoms[other.atom].kind != "single" for other in place.edges)
        or place.keys[position]
        or len(place.guards) > len(place.eager_guards)
    ):
        return False
    for link in atom.links:
        kept = () if link.target == ACCEPT else automaton.places[link.target].live
        if link.bounds or link.guards or not set(kept).isdisjoint(place.live):
            return False
    order = place.orders[position]
    occurrence = plan.occurrences[atom.occurrences[0]]
    bound = plan.gpms[occurrence.gpm].variables
    if any(plan.registers[register].name in bound for register in place.live):
        return False
    compared = occurrence.residual[0].expression
    return (
        order is not None
        and isinstance(compared, ast.Binary)
        and isinstance(compared.left, ast.Var)
        and isinstance(compared.right, ast.Var)
        and {compared.left.name, compared.right.name} == {order[1], plan.registers[order[0]].name}
    )
