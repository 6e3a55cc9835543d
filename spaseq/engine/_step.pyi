from collections.abc import Sequence

from spaseq.engine._aggregates import NativeAggregates
from spaseq.gpm._graph import SummaryGraph
from spaseq.gpm._match import NativeMatcher
from spaseq.gpm.bytecode import ExpressionCode
from spaseq.nfa._core import AutomatonCore
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._window import WindowTerms

class NativeStep:
    def __init__(
        self,
        core: AutomatonCore,
        graph: SummaryGraph,
        window: WindowTerms,
        matchers: Sequence[NativeMatcher],
        filters: Sequence[Sequence[ExpressionCode]],
        assigned: Sequence[Sequence[ExpressionCode]],
        views: Sequence[Sequence[tuple[int, int, str]]],
        aggregates: NativeAggregates,
        readers: Sequence[Sequence[int]],
    ) -> None: ...
    @property
    def reached(self) -> int: ...
    @property
    def core(self) -> AutomatonCore: ...
    def untrue_counts(self, occurrence: int) -> list[int]: ...
    def untrue_on(self, occurrence: int, counts: Sequence[int]) -> None: ...
    def feed(self, batch: EventBatch, index: int, stream: int, file: int) -> None: ...
    def run(self, batch: EventBatch, first: int, stream: int, file: int, position: int) -> int: ...
    def tally(
        self, batch: EventBatch, first: int, stream: int, file: int, position: int, skip: bool
    ) -> tuple[int, int]: ...
