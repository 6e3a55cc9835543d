from collections.abc import Mapping, Sequence

from spaseq.engine.native._aggregates import NativeAggregates
from spaseq.engine.residual_filters import ResidualTest, Valuation
from spaseq.gpm.matchers import Matchers
from spaseq.nfa.native._automaton import AutomatonCore
from spaseq.nfa.native._selection import Selection
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._window_terms import WindowTerms
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Event

class NativeStep:
    def __init__(
        self,
        core: AutomatonCore,
        patterns: Matchers,
        tasks: Sequence[int],
        filters: Sequence[Sequence[ResidualTest]],
        assigned: Sequence[Sequence[Valuation]],
        views: Sequence[Sequence[tuple[int, int, str]]],
        aggregates: NativeAggregates,
        readers: Sequence[Sequence[int]],
        recalled: Sequence[bool],
        window: WindowTerms,
    ) -> None: ...
    @property
    def window(self) -> WindowTerms: ...
    @property
    def recalls(self) -> Mapping[tuple[int, int], Event]: ...
    def forget_encoded(self) -> None: ...
    def recall(self, instant: int, stream: int, event: Event) -> None: ...
    @property
    def reached(self) -> int: ...
    tumbles: bool
    gaps: bool
    @property
    def deadline(self) -> int: ...
    def wake_at(self, micros: int) -> None: ...
    @property
    def core(self) -> AutomatonCore: ...
    @property
    def evaluations(self) -> int: ...
    def untrue_counts(self, occurrence: int) -> list[int]: ...
    def untrue_on(self, occurrence: int, counts: Sequence[int]) -> None: ...
    def errors(self, occurrence: int) -> list[ErrorCount]: ...
    def errors_on(self, occurrence: int, counts: Sequence[ErrorCount]) -> None: ...
    def check_exclusive(self) -> None: ...
    def feed(self, batch: EventBatch, index: int, stream: int, file: int) -> None: ...
    def run(self, batch: EventBatch, first: int, stream: int, file: int, position: int) -> int: ...
    def tally(
        self,
        batch: EventBatch,
        first: int,
        stream: int,
        file: int,
        position: int,
        skip: bool,
        selection: Selection | None,
        most: int,
    ) -> tuple[int, int, int]: ...
