"""An edge of an automaton → whether rows take all groups of a range as one.

Where what the partial matches remember plays no part beyond the one comparison an ordered index
serves, those that surely fit need no visit: their union is extended by one node, whatever number
of groups it spans, see `spaseq.nfa._sums`.
"""

from __future__ import annotations

from spaseq.nfa.automaton import ACCEPT, Automaton
from spaseq.parser import ast
from spaseq.plan.logical import QueryPlan

_ORDERED = frozenset(("<", "<=", ">", ">="))


def joins_whole(plan: QueryPlan, automaton: Automaton, number: int, position: int) -> bool:
    """Whether an edge of a place only compares one live register, and forgets them all."""
    place = automaton.places[number]
    edge = place.edges[position]
    atom = automaton.atoms[edge.atom]
    if (
        place.start
        or place.operator != ":"
        or plan.partition
        or plan.emit == "STRICT"
        or edge.actions
        or any(automaton.atoms[other.atom].kind != "single" for other in place.edges)
        or place.keys[position]
        or len(place.guards) > len(place.sightings)
    ):
        return False
    for link in atom.links:
        kept = () if link.target == ACCEPT else automaton.places[link.target].live
        if link.bounds or link.guards or not set(kept).isdisjoint(place.live):
            return False
    order = place.orders[position]
    occurrence = plan.occurrences[atom.occurrences[0]]
    if order is None or order[2] == "equal" or order[0] not in place.live:
        return False
    if occurrence.assignments or len(occurrence.residual) != 1:
        return False
    bound = plan.gpms[occurrence.gpm].variables
    if any(plan.registers[register].name in bound for register in place.live):
        return False
    compared = occurrence.residual[0].expression
    return (
        isinstance(compared, ast.Binary)
        and compared.operator in _ORDERED
        and isinstance(compared.left, ast.Var)
        and isinstance(compared.right, ast.Var)
        and {compared.left.name, compared.right.name} == {order[1], plan.registers[order[0]].name}
    )
