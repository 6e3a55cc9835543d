"""Ambiguity: whether two runs of the automaton accept one list of witnesses.

The test runs two copies of the automaton over the same GPMs in lockstep. If they can part and both
accept, as in `(B+)+` or `(A | A)`, a match may be found twice and duplicates must be removed. The
test ignores iteration numbers and guards, which might separate the two runs: it may answer yes for
an unambiguous query, never no for an ambiguous one. Cost: pairs of places that can be reached
together.
"""

from __future__ import annotations

from itertools import product

from spaseq.nfa.automaton import ACCEPT, Automaton
from spaseq.plan.logical import QueryPlan

_Way = tuple[int, tuple[int, int], int]
"""(GPM, positions of the edge and the link, target of the link)."""


def ambiguous(automaton: Automaton, plan: QueryPlan) -> bool:
    """Whether two runs may accept the same witnesses; conjunctions count as ambiguous."""
    if any(atom.conjoined for atom in automaton.atoms):
        return True
    ways = [_ways(automaton, plan, number) for number in range(len(automaton.places))]
    todo = [(one, other, one != other) for one, other in product(automaton.starts, repeat=2)]
    seen = set(todo)
    while todo:
        one, other, parted = todo.pop()
        for (gpm, taken, target), (gpm2, taken2, target2) in product(ways[one], ways[other]):
            if gpm != gpm2:
                continue
            apart = parted or taken != taken2
            if target == target2 == ACCEPT and apart:
                return True
            pair = (target, target2, apart)
            if min(target, target2) >= 0 and pair not in seen:
                seen.add(pair)
                todo.append(pair)
    return False


def _ways(automaton: Automaton, plan: QueryPlan, number: int) -> list[_Way]:
    found = []
    for position, edge in enumerate(automaton.places[number].edges):
        atom = automaton.atoms[edge.atom]
        if atom.kind == "deadline":
            continue
        gpm = plan.occurrences[atom.occurrences[0]].gpm
        targets = [t for link in atom.links for t in _reached(automaton, link.target)]
        found += [(gpm, (position, n), target) for n, target in enumerate(targets)]
    return found


def _reached(automaton: Automaton, target: int) -> list[int]:
    """The target of a link and those that deadlines alone lead to from there."""
    found = [target]
    for number in found:
        atom = automaton.deadline(number) if number >= 0 else None
        found += [link.target for link in (() if atom is None else atom.links)]
    return found
