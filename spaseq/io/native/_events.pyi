"""Events as lines, and the parts of a stream that are evaluated apart."""

from collections.abc import Iterable, Sequence

from spaseq.rdf.event import Term
from spaseq.rdf.native._terms import Dictionary, EventBatch

def event_lines(batch: EventBatch, index: int, tail: bytes) -> bytes: ...

MOST_PARTS: int

class EventPart:
    @property
    def batch(self) -> EventBatch: ...
    @property
    def part(self) -> int: ...

class EventParts:
    def __init__(
        self,
        dictionary: Dictionary,
        ends: Iterable[tuple[Term, bool]],
        dictionaries: list[Dictionary],
    ) -> None: ...
    def divide(self, batch: EventBatch) -> Sequence[EventPart]: ...
