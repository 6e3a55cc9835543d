"""The running aggregates of `gpm` in the shape that registers keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spaseq.gpm import aggregate
from spaseq.nfa.registers import OPEN, VOID
from spaseq.rdf.event import Term


@dataclass(frozen=True, slots=True)
class _Running:
    """An aggregate's state; under DISTINCT also the values it has taken, in order."""

    state: Any
    taken: tuple[Term, ...] | None


class RunningAggregates:
    """Implements `nfa.registers.Aggregates`: immutable, hashable states."""

    def start(self, name: str, separator: str | None, distinct: bool) -> _Running:
        return _Running(aggregate.start(name, separator), () if distinct else None)

    def add(self, state: _Running, term: Term) -> _Running:
        taken = state.taken
        if taken is not None:
            if term in taken:
                return state
            taken = (*taken, term)
        return _Running(aggregate.add(state.state, term), taken)

    def finish(self, state: _Running) -> Term | None:
        return aggregate.finish(state.state)


def saved_state(cell: Any) -> Any:
    """What a register holds as plain values, for saved state."""
    if isinstance(cell, _Running):
        return ("aggregate", cell.state, cell.taken)
    return cell


def restored_state(cell: Any) -> Any:
    """What `saved_state` made plain, as registers hold it."""
    if isinstance(cell, tuple):
        _, state, taken = cell
        return _Running(state, taken)
    if isinstance(cell, str):
        return OPEN if cell == OPEN else VOID
    return cell
