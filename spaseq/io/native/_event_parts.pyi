from collections.abc import Iterable, Sequence

from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.event import Term

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
