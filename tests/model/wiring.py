"""Which columns and GPMs the run in Python reads, computed once from its automaton."""

from __future__ import annotations

from model.group import IndexColumns
from spaseq.nfa.automaton import Automaton
from spaseq.nfa.wiring import fragment_places
from spaseq.plan.logical import QueryPlan


def index_columns(plan: QueryPlan, automaton: Automaton) -> list[list[IndexColumns]]:
    """For each place and edge the columns of a row that its equality index reads."""
    table = []
    for place in automaton.places:
        columns = []
        for edge, keys, equal in zip(place.edges, place.keys, place.equal, strict=True):
            occurrence = plan.occurrences[automaton.atoms[edge.atom].occurrences[0]]
            variables = plan.gpms[occurrence.gpm].variables
            columns.append(
                (
                    tuple(variables.index(name) for _, name in keys),
                    tuple(variables.index(name) for _, name in equal),
                )
            )
        table.append(columns)
    return table


def buffered_gpms(plan: QueryPlan, automaton: Automaton) -> frozenset[int]:
    """The GPMs whose rows a guard or a conjunction looks back at."""
    looked_at: set[int] = set()
    for number in fragment_places(automaton):
        for edge in automaton.places[number].edges:
            looked_at.update(automaton.atoms[edge.atom].occurrences)
    for place in automaton.places:
        kinds = {automaton.atoms[edge.atom].kind for edge in place.edges}
        if kinds != {"single"}:
            for edge in place.edges:
                looked_at.update(automaton.atoms[edge.atom].occurrences)
    return frozenset(plan.occurrences[number].gpm for number in looked_at)
