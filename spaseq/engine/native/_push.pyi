from typing import Any

from spaseq.engine._alone import Alone
from spaseq.engine.native._matches import MatchMaker
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.results import Match

class Pushing:
    def __init__(
        self,
        alone: Alone,
        maker: MatchMaker,
        batch: EventBatch,
        relevance: Relevance,
        kb: Knowledge,
        skip: bool,
        stream: int,
        file: int,
        events: int,
        dated: bool,
        micros: int,
        ordinal: int,
        closed: int,
        precision: str,
    ) -> None: ...
    @property
    def batch(self) -> EventBatch: ...
    @property
    def after(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    def invalidate(self) -> None: ...
    def push(self, stream: str, timestamp: Any, graph: Any, name: Any) -> list[Match] | None: ...
