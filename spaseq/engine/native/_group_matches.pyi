from collections.abc import Callable, Iterator, Sequence

from spaseq.engine.core_groups import CoreGroups
from spaseq.engine.native._decode import MatchDecoder
from spaseq.engine.native._group_results import ResultReader
from spaseq.engine.native._result_groups import NativeGroups
from spaseq.engine.output import OutputStage
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import Term, Timestamp
from spaseq.results import Match, Witness

class GroupMatch(Match): ...

class GroupColumns:
    def __init__(
        self,
        query: str,
        names: Sequence[str],
        columns: Sequence[tuple[bool, int]] | None,
        values: Callable[..., list[Term | None]],
    ) -> None: ...
    @property
    def query(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def columns(self) -> tuple[tuple[bool, int], ...] | None: ...
    @property
    def values(self) -> Callable[..., list[Term | None]]: ...

class SolutionMaker:
    def __init__(
        self,
        groups: NativeGroups | None,
        reading: MatchDecoder,
        columns: GroupColumns,
        stage: OutputStage,
    ) -> None: ...

class GroupMaker:
    def __init__(self, reader: ResultReader, columns: GroupColumns, stage: OutputStage) -> None: ...
    def made_now(self, version: int) -> list[Match]: ...
    def made_at(
        self,
        end: Timestamp,
        witnesses: Callable[[int], tuple[Witness, ...]],
        version: int,
    ) -> list[Match]: ...

class GroupedMatches(Iterator[Match]):
    def __init__(
        self,
        maker: GroupMaker,
        windows: CoreGroups | None,
        closed: Callable[[int], list[Match]],
        batch: EventBatch,
        first: int,
        stream: int,
        file: int,
        position: int,
        kb: Knowledge,
    ) -> None: ...
    @property
    def after(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    @property
    def made(self) -> int: ...
    def invalidate(self) -> None: ...
    def __next__(self) -> Match: ...
