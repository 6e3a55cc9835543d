"""Complete matches as steps: the edges taken, and the rows of the events that matched them."""

from __future__ import annotations

from spaseq.nfa.automaton import Edge
from spaseq.rdf.event import Event, Term
from spaseq.records import dataclass

Row = tuple[Term | None, ...]
Key = tuple[object, ...]
"""The values of the partition variables; empty without `PARTITION BY`."""


@dataclass(frozen=True, slots=True)
class Witnessed:
    """One row of an event that matched an occurrence; `row` ends with its stateful BINDs."""

    occurrence: int
    event: Event
    row: Row
    instant: int


@dataclass(frozen=True, slots=True)
class Step:
    """One edge taken."""

    edge: Edge
    witnesses: tuple[Witnessed, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """One complete match: its first instant number, its partition and its steps."""

    start: int
    key: Key
    steps: tuple[Step, ...]

    @property
    def last(self) -> int:
        """The number of the instant of its last event."""
        return max(witness.instant for step in self.steps for witness in step.witnesses)

    def witnesses(self) -> list[Witnessed]:
        """All witnesses, in the order of instants, then of occurrences in the text."""
        found = [witness for step in self.steps for witness in step.witnesses]
        found.sort(key=lambda witness: (witness.instant, witness.occurrence))
        return found
