"""What a query continues from when it is saved, rebuilt or replaced, and its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spaseq.nfa.counters import MemoryUse
from spaseq.nfa.state import AutomatonState, NodeState
from spaseq.rdf.event import Event, Timestamp
from spaseq.records import dataclass

if TYPE_CHECKING:
    from spaseq.engine.instants import QueryRun
    from spaseq.engine.output import OutputStage


BYTES_PER_RESULT = 1200
"""The approximate memory of a result remembered for de-duplication, in CPython."""


@dataclass(frozen=True, slots=True)
class QueryState:
    """The state of a query but for its automaton and its output, for whatever continues it.

    A saved query, one with another automaton and one that replaces another continue from it, so
    they have the same fields. `QueryRun.state` is the automaton's part.
    """

    time: Timestamp | None
    domain: str
    ordinal: int
    opened: bool
    delivered: Mapping[str, int]
    queued: Mapping[int, Sequence[Event]]
    ended: Mapping[str, int]
    matched: int
    marked: int
    """The number of matches so far that the end of input closed."""
    shed: int

    @classmethod
    def of(cls, query: QueryRun) -> QueryState:
        """The state of a query."""
        return cls(
            time=query.time,
            domain=query.domain,
            ordinal=query.ordinal,
            opened=query.opened,
            delivered=dict(query.delivered),
            queued={ordinal: list(some) for ordinal, some in query.queued.items()},
            ended=dict(query.ended),
            matched=query.matched,
            marked=query.closed_by_end,
            shed=query.shed,
        )


def memory_use(state: AutomatonState, output: OutputStage) -> MemoryUse:
    """The size of an automaton's state and of the results remembered for de-duplication."""
    remembered = len(output.shown)
    if output.groups is not None:
        remembered += output.groups.held_count
    if output.limit is not None:
        remembered += len(output.limit.spans)
    return MemoryUse(
        nodes=sum(isinstance(item, NodeState) for item in state.graph),
        rows=len(state.kept),
        bytes=state.bytes + remembered * BYTES_PER_RESULT,
    )
