from collections.abc import Iterator, Sequence

from spaseq.nfa._core import AutomatonCore
from spaseq.nfa._parts import CoreParts
from spaseq.rdf.event import Timestamp
from spaseq.results import Match

class MatchMaker:
    def __init__(
        self,
        core: AutomatonCore,
        parts: CoreParts,
        query: str,
        columns: Sequence[tuple[str, int]],
        steps: Sequence[tuple[str, tuple[str, ...]]],
        streams: Sequence[str],
    ) -> None: ...
    def take(self, end: Timestamp, skip: bool, kb_version: int) -> Iterator[Match]: ...
