from collections.abc import Collection

from spaseq.gpm.native._entailed_views import Deriver
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.entailment import View
from spaseq.rdf.event import Term

class SummaryGraph:
    def __init__(
        self,
        dictionary: Dictionary,
        predicates: Collection[Term],
        whole: bool,
        deriver: Deriver | None = None,
        derived: int = 0,
    ) -> None: ...
    @property
    def dictionary(self) -> Dictionary: ...
    @property
    def view_count(self) -> int: ...
    @property
    def whole(self) -> bool: ...
    @property
    def built(self) -> int: ...
    def extend(self, predicates: Collection[Term | View]) -> None: ...
    def fill(self, batch: EventBatch, event: int) -> None: ...
    def sizes(self) -> list[float]: ...
