"""Tables derived from the automaton once, before a run: guard places, windows, dispatch.

All are functions of plan and automaton alone; the run stores their results.
"""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.nfa.automaton import Automaton, Edge, Place
from spaseq.plan.logical import QueryPlan


def fragment_places(automaton: Automaton) -> frozenset[int]:
    """The places inside guards. They hold no groups; the guards search them."""
    found: set[int] = set()
    todo = [start for guard in automaton.guards for start in guard.starts]
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += [
                link.target
                for edge in automaton.places[number].edges
                for link in automaton.atoms[edge.atom].links
                if link.target >= 0
            ]
    return frozenset(found)


def windows_back(automaton: Automaton) -> int:
    """How many windows back a search may reach: one, except for steps skipped before a match.

    A skipped step is searched in the window of the step that follows it. A skipped step that begins
    with another skipped step looks back from inside that window, and so does a match whose first
    event does not complete its first step.
    """

    def deepest(guards: Sequence[int]) -> int:
        starts = [start for guard in guards for start in automaton.guards[guard].starts]
        inner = (deepest(automaton.places[start].guards) for start in starts)
        return 1 + max(inner, default=0) if guards else 0

    def of(place: Place) -> int:
        several = any(automaton.atoms[edge.atom].conjoined for edge in place.edges)
        return deepest(place.guards) + several if place.guards else 1

    return max(of(automaton.places[start]) for start in automaton.starts)


def time_back(plan: QueryPlan, automaton: Automaton) -> int:
    """How long before the window a search may begin, in microseconds; -1 if none does.

    A guard before a match looks back as far as its bound, whatever the window. A step skipped
    inside the guard is searched in a separate window, which `windows_back` counts.
    """
    backs = [guard.lookback for guard in automaton.guards if guard.lookback is not None]
    return -1 if plan.window.is_endless else max(backs, default=-1)


def reads_times(automaton: Automaton) -> bool:
    """Whether a guard reads the times of instants: it looks back by a bound, or waits inside."""
    return any(guard.lookback is not None for guard in automaton.guards) or any(
        automaton.deadline(place) is not None for place in fragment_places(automaton)
    )


def dispatch(
    plan: QueryPlan, automaton: Automaton, fragment: frozenset[int]
) -> dict[int, list[tuple[int, int, Edge]]]:
    """The (place, position of the edge, edge) triples that each GPM can advance."""
    table: dict[int, list[tuple[int, int, Edge]]] = {n: [] for n in range(len(plan.gpms))}
    for number, place in enumerate(automaton.places):
        if number in fragment:
            continue
        for position, edge in enumerate(place.edges):
            occurrences = automaton.atoms[edge.atom].occurrences
            for gpm in sorted({plan.occurrences[o].gpm for o in occurrences}):
                table[gpm].append((number, position, edge))
    return table


def behind_deadlines(automaton: Automaton, place: int) -> frozenset[int]:
    """The place of a deadline, and the places reached from there by deadlines alone."""
    found: set[int] = set()
    todo = [place]
    while todo:
        number = todo.pop()
        if number in found:
            continue
        found.add(number)
        atom = automaton.deadline(number)
        if atom is not None:
            todo += [link.target for link in atom.links if link.target >= 0]
    return frozenset(found)
