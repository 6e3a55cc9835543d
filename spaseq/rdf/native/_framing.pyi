import pyoxigraph as ox

from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.event import Term
from spaseq.rdf.native._collector import Collector
from spaseq.rdf.native._minting import Minter

class EventReader:
    def __init__(
        self,
        relevance: Relevance,
        questions: object,
        stream: str,
        minter: Minter | None,
        factor: int,
    ) -> None: ...
    follower: object
    most_pending: int
    collector: Collector | None
    @property
    def batch(self) -> EventBatch: ...
    @property
    def unused(self) -> int: ...
    @property
    def filled(self) -> bool: ...
    def start_file(
        self,
        file: str,
        kind: str,
        size: int,
        predicates: tuple[str, ...],
        timed: bool,
        inside: bool,
        reuse: bool = False,
        metadata: bool = False,
        steps: tuple[tuple[str, bool], ...] = (),
    ) -> None: ...
    def fresh(self, file: str | None = None) -> EventBatch: ...
    def drain(self) -> EventBatch: ...
    def refresh(self) -> None: ...
    def finish(self, torn: bool = False) -> None: ...
    def events_of(self, collector: Collector) -> None: ...
    def whole(self) -> Term | None: ...
    def statement(self, quad: ox.Quad | None, line: int) -> None: ...
