"""The running aggregates of `gpm` in the shape that registers keep them."""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.gpm.python import aggregates
from spaseq.rdf.event import Term


@dataclass(frozen=True, slots=True)
class Running:
    """An aggregate's state; under DISTINCT also the values it has taken, in order.

    States are equal where nothing that comes can tell them apart.
    """

    state: aggregates.Accumulator
    taken: tuple[Term, ...] | None


def heeds_distinct(name: str) -> bool:
    """Whether a value that comes again changes an aggregate."""
    return name not in ("MIN", "MAX", "SAMPLE")


class RunningAggregates:
    """Implements `nfa.registers.Aggregates`: immutable, hashable states."""

    def start(self, name: str, separator: str | None, distinct: bool) -> Running:
        taken = () if distinct and heeds_distinct(name) else None
        return Running(aggregates.start(name, separator), taken)

    def add(self, state: Running, term: Term) -> Running:
        taken = state.taken
        if taken is None:
            return Running(aggregates.add(state.state, term), None)
        if term in taken:
            return state
        after = aggregates.add(state.state, term)
        return Running(after, () if after[-1] else (*taken, term))

    def finish(self, state: Running) -> Term | None:
        return aggregates.finish(state.state)
