from collections.abc import Mapping, Sequence

from spaseq.gpm.native._summary_graph import SummaryGraph
from spaseq.gpm.native.bytecode import Compiled
from spaseq.gpm.native.flatten import FlatPattern
from spaseq.gpm.python.calls import Calls
from spaseq.gpm.python.scope import Errors
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.entailment import View
from spaseq.rdf.error_count import ErrorCount
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
        pattern: int = ...,
        steps: int = ...,
        memory: int = ...,
        calls: Calls | None = None,
    ) -> None: ...
    @property
    def graph(self) -> SummaryGraph: ...
    @property
    def single_step(self) -> bool: ...
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
    def fill(
        self, number: int, rows: Sequence[Sequence[Term | None]], batch: EventBatch | None = None
    ) -> None: ...
    def bindings(
        self, batch: EventBatch, first: int, end: int, slots: Sequence[int]
    ) -> dict[tuple[int, ...], None]: ...
    @property
    def untrue_counts(self) -> list[int]: ...
    @property
    def has_erred(self) -> bool: ...
    @property
    def errors(self) -> tuple[Errors, list[ErrorCount]]: ...
    @property
    def observed(self) -> list[tuple[str, int, int]]: ...
