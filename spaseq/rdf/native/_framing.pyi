import pyoxigraph as ox

from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.event import Term

class Minter:
    def __init__(self, number: int) -> None: ...
    def copy(self, source: EventBatch, index: int, target: EventBatch) -> None: ...

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
    def finish(self) -> None: ...
    def whole(self) -> Term | None: ...
    def statement(self, quad: ox.Quad | None, line: int) -> None: ...
