"""The running aggregates of `gpm` as immutable states, which registers store."""

from __future__ import annotations

from spaseq.gpm.python import aggregates
from spaseq.rdf.event import Term
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Running:
    """An aggregate's state; under DISTINCT also its values so far, in order.

    Two states are equal if every further sequence of values leads to the same result.
    """

    state: aggregates.Accumulator
    values: tuple[Term, ...] | None


def heeds_distinct(name: str) -> bool:
    """Whether a repeated value changes an aggregate."""
    return name not in ("MIN", "MAX", "SAMPLE")


class RunningAggregates:
    """Implements `nfa.registers.Aggregates`: immutable, hashable states."""

    def start(self, name: str, separator: str | None, distinct: bool) -> Running:
        values = () if distinct and heeds_distinct(name) else None
        return Running(aggregates.start(name, separator), values)

    def add(self, state: Running, term: Term) -> Running:
        values = state.values
        if values is None:
            return Running(aggregates.add(state.state, term), None)
        if term in values:
            return state
        after = aggregates.add(state.state, term)
        return Running(after, () if after[-1] else (*values, term))

    def finish(self, state: Running) -> Term | None:
        return aggregates.finish(state.state)
