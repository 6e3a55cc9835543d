from collections.abc import Mapping, Sequence

from spaseq.gpm._graph import SummaryGraph
from spaseq.gpm.bytecode import Compiled
from spaseq.gpm.flatten import FlatPattern
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.entailment import View
from spaseq.rdf.event import Term

class NativeMatcher:
    def __init__(
        self,
        graph: SummaryGraph,
        views: Mapping[Term | View, int],
        flat: FlatPattern,
        codes: Sequence[Compiled],
        local: int,
        slots: int,
        columns: int,
        at: int,
    ) -> None: ...
    @property
    def graph(self) -> SummaryGraph: ...
    @property
    def columns(self) -> int: ...
    @property
    def tried(self) -> int: ...
    @property
    def found(self) -> int: ...
    def match(self, batch: EventBatch, event: int) -> int: ...
    def row(self, i: int) -> list[int]: ...
    def passed_filters(self, i: int) -> bool: ...
    def count(self, batch: EventBatch) -> int: ...
    @property
    def untrue_counts(self) -> list[int]: ...
    @property
    def observed(self) -> list[tuple[str, int, int]]: ...
