from collections.abc import Callable, Sequence

from spaseq.engine.native._decode import MatchDecoder
from spaseq.engine.native._matches import MatchMaker
from spaseq.rdf._batch import EventBatch
from spaseq.results import Match

class ConstructedMatch(Match): ...

class ConstructMaker(MatchMaker):
    def set_template(
        self,
        values: MatchDecoder,
        triples: Sequence[Sequence[bytes | str | int]],
        instantiate: Callable[..., object],
    ) -> None: ...
    def take_all(self, skip: bool, kb_version: int, made: int) -> list[Match]: ...
    def add_events(self, matches: list[Match], batch: EventBatch, ordinal: int) -> None: ...
