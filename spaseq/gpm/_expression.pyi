from collections.abc import Callable, Sequence

from spaseq.gpm.bytecode import ExpressionCode
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary

class Expression:
    def __init__(self, code: ExpressionCode, dictionary: Dictionary) -> None: ...
    @property
    def code(self) -> ExpressionCode: ...
    @property
    def columns(self) -> int: ...
    @property
    def exists(self) -> int: ...
    def evaluate(
        self, batch: EventBatch, row: Sequence[int], exists: Callable[[int], bool] | None = None
    ) -> int: ...
    def test(
        self, batch: EventBatch, row: Sequence[int], exists: Callable[[int], bool] | None = None
    ) -> bool | None: ...
