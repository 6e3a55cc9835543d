from collections.abc import Mapping, Sequence

from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.entailment import Rules, View
from spaseq.rdf.event import Term

class Deriver:
    def __init__(
        self,
        dictionary: Dictionary,
        groups: Sequence[Rules],
        views: Mapping[Term | View, int],
        max_derived: int = ...,
    ) -> None: ...
    @property
    def dictionary(self) -> Dictionary: ...
    @property
    def max_derived(self) -> int: ...
    def derived(self, batch: EventBatch, event: int) -> list[tuple[int, int, int, int]]: ...
