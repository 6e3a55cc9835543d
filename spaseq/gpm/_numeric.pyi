from collections.abc import Sequence

from spaseq.gpm.numeric import NumericCode
from spaseq.rdf._batch import EventBatch

class NumericCondition:
    def __init__(self, code: NumericCode) -> None: ...
    def test(self, batch: EventBatch, row: Sequence[int]) -> bool | None: ...
    def may(
        self, batch: EventBatch, row: Sequence[int], box: Sequence[tuple[int, float, float]]
    ) -> bool: ...
