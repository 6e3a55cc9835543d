"""The occurrences of a plan → with their expressions compiled, linked to its registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from spaseq.engine.residual_filters import looks_at_graphs
from spaseq.gpm.named_graphs import NamedGraphs
from spaseq.gpm.python.entry import Scope, compile_expression, compile_filter
from spaseq.nfa.registers import RegisterFile
from spaseq.nfa.replay import Compiled, LinkedOccurrence
from spaseq.plan.logical import Occurrence, QueryPlan
from spaseq.rdf.event import Event

Linked = TypeVar("Linked", bound=LinkedOccurrence)


def linked(
    plan: QueryPlan,
    registers: RegisterFile,
    kb: NamedGraphs,
    kind: Callable[..., Linked],
) -> list[Linked]:
    """All occurrences, in their order, each of a kind of `LinkedOccurrence`."""
    slots = registers.slots()
    return [
        kind(
            plan,
            occurrence,
            registers,
            Compiled(
                tuple(
                    compile_expression(a.value.expression, slots) for a in occurrence.assignments
                ),
                tuple(compile_filter(c.expression, slots) for c in occurrence.residual),
            ),
            _scopes(occurrence, kb, plan.kb_graphs),
        )
        for occurrence in plan.occurrences
    ]


def _scopes(
    occurrence: Occurrence, kb: NamedGraphs, kb_graphs: tuple[str, ...] | None
) -> Callable[[Event], Scope]:
    """What the occurrence's expressions are evaluated over; only EXISTS asks for the event."""
    if not _looks_at_graphs(occurrence):
        constant = Scope(None, kb, kb_graphs)
        return lambda event: constant
    return lambda event: Scope(event, kb, kb_graphs)


def _looks_at_graphs(occurrence: Occurrence) -> bool:
    return any(looks_at_graphs(condition.expression) for condition in occurrence.conditions)
