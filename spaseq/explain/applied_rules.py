"""Which optimisation rules apply to a query, and to how many of its parts (`spaseq.rules`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spaseq.engine.aggregates import RunningAggregates
from spaseq.engine.compiled import CompiledQuery
from spaseq.nfa.native.tables import tables
from spaseq.nfa.registers import RegisterFile
from spaseq.rules import VARIABLE, disabled

_PARTS = {
    "decided_ranges": "transition",
    "early_filters": "filter",
    "equality_index": "transition",
    "first_chance_negation": "guard",
    "lazy_join": "step",
    "range_index": "transition",
    "range_unions": "transition",
    "straight_edges": "transition",
}
"""The unit in which a rule of one query is counted; other rules apply to a run as a whole."""


def applied_rules(query: CompiledQuery) -> dict[str, int]:
    """By rule, the number of parts of a query that it applies to; rules without any are omitted.

    The tables of the query are computed again, which is linear in the automaton.
    """
    plan, automaton = query.plan, query.automaton
    rows = tables(plan, automaton, RegisterFile(plan, RunningAggregates()))
    conjoined = any(atom.conjoined for atom in automaton.atoms)
    counts = {
        "decided_ranges": sum(edge.decided for edge in rows.edges),
        "early_filters": len(rows.search.early_tests) if conjoined else 0,
        "equality_index": sum(edge.keys < edge.keys_end for edge in rows.edges),
        "first_chance_negation": len(rows.eager_guards),
        "lazy_join": len(rows.chain.steps),
        "range_index": sum(edge.compared >= 0 for edge in rows.edges),
        "range_unions": sum(edge.whole for edge in rows.edges),
        "straight_edges": sum(straight for straight, _, _ in rows.straight.edges),
    }
    return {rule: count for rule, count in counts.items() if count}


def rules_text(applied: Mapping[str, int]) -> Iterator[str]:
    """A line for each rule of a query, and one for the disabled rules."""
    for rule, count in applied.items():
        part = _PARTS[rule]
        yield f"{rule}: {count} {part if count == 1 else part + 's'}"
    if off := sorted(disabled()):
        yield f"disabled by {VARIABLE}: {', '.join(off)}"
