"""Ambiguity: whether two runs of the automaton accept one list of witnesses.

The test runs two copies of the automaton over the same GPMs in lockstep. If they can diverge and
both accept, as in `(B+)+` or `(A | A)`, a match may be found twice and duplicates must be removed.
The test ignores iteration numbers and guards, which might tell the two runs apart, so it may answer
yes for an unambiguous query, but never no for an ambiguous one. A step over several events is one
step of both runs: if its GPMs occur nowhere else, its first witness determines the step, and the
step determines how many witnesses it has. Cost: pairs of places that can be reached together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import product

from spaseq.nfa.automaton import ACCEPT, Atom, Automaton
from spaseq.plan.logical import QueryPlan

_Gpms = tuple[int, ...]
"""The GPMs of a step: several for one over several events."""
_Way = tuple[tuple[int, int], int]
"""(Positions of the edge and the link, target of the link)."""


def ambiguous(automaton: Automaton, plan: QueryPlan) -> bool:
    """Whether two runs may accept the same witnesses."""
    atoms = automaton.atoms
    uses = Counter(gpm for atom in atoms for gpm in _gpms(atom, plan))
    if any(uses[gpm] > 1 for atom in atoms if atom.conjoined for gpm in _gpms(atom, plan)):
        return True
    ways = [_ways(automaton, plan, number) for number in range(len(automaton.places))]
    todo = [(one, other, one != other) for one, other in product(automaton.starts, repeat=2)]
    seen = set(todo)
    while todo:
        one, other, parted = todo.pop()
        for gpms in ways[one].keys() & ways[other].keys():
            mine, others = ways[one][gpms], _Others(ways[other][gpms], ways)
            for taken, target in mine:
                for taken2, target2 in others.beside(target):
                    apart = parted or taken != taken2
                    if target == ACCEPT and apart:
                        return True
                    pair = (target, target2, apart)
                    if target >= 0 and pair not in seen:
                        seen.add(pair)
                        todo.append(pair)
    return False


class _Others:
    """The ways of a run by one step, grouped by how the run can continue."""

    def __init__(self, some: list[_Way], ways: list[dict[_Gpms, list[_Way]]]):
        self._ways = ways
        self._accepting = [way for way in some if way[1] == ACCEPT]
        self._by_gpms: dict[_Gpms, list[_Way]] = {}
        for way in some:
            for gpms in ways[way[1]] if way[1] >= 0 else ():
                self._by_gpms.setdefault(gpms, []).append(way)

    def beside(self, target: int) -> Iterable[_Way]:
        """Those that can continue with the same GPMs as a run that has reached a target."""
        if target < 0:
            return self._accepting if target == ACCEPT else ()
        return {way for gpms in self._ways[target] for way in self._by_gpms.get(gpms, ())}


def _ways(automaton: Automaton, plan: QueryPlan, number: int) -> dict[_Gpms, list[_Way]]:
    """The ways from a place, by their GPMs."""
    found: dict[_Gpms, list[_Way]] = {}
    for position, edge in enumerate(automaton.places[number].edges):
        atom = automaton.atoms[edge.atom]
        if atom.kind == "deadline":
            continue
        targets = [t for link in atom.links for t in _reached(automaton, link.target)]
        ways = [((position, n), target) for n, target in enumerate(targets)]
        found.setdefault(_gpms(atom, plan), []).extend(ways)
    return found


def _gpms(atom: Atom, plan: QueryPlan) -> _Gpms:
    return tuple(plan.occurrences[occurrence].gpm for occurrence in atom.occurrences)


def _reached(automaton: Automaton, target: int) -> list[int]:
    """The target of a link, and those reached from there by deadlines alone."""
    found = [target]
    for number in found:
        atom = automaton.deadline(number) if number >= 0 else None
        found += [link.target for link in (() if atom is None else atom.links)]
    return found
