from collections.abc import Callable, Iterator, Mapping, Sequence

from spaseq.engine.formatting import Block
from spaseq.engine.native._matches import MatchMaker
from spaseq.engine.native._multi_driver import MultiDriver
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf._sequence import EventSequence
from spaseq.results import Match

class MultiMatches:
    def __init__(
        self,
        driver: MultiDriver,
        collect: Callable[[int, bool, int | None, EventSequence, int], list[Match]],
        makers: Sequence[MatchMaker | None],
        skips: Sequence[bool],
        events: EventSequence,
        first: int,
        end: int,
        position: int,
        files: Sequence[int],
        kb: Knowledge,
        equal: Mapping[int, Sequence[tuple[int, str, MatchMaker | None]]],
        places: Sequence[int],
        shares: Mapping[int, Callable[[list[Match]], list[tuple[int, list[Match]]]]],
        holds: bool,
        block: Block | None,
    ) -> None: ...
    def __iter__(self) -> Iterator[Match]: ...
    def __next__(self) -> Match: ...
    @property
    def after(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    @property
    def failing(self) -> int: ...
    def invalidate(self) -> None: ...
