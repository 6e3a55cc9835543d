from collections.abc import Iterator, Sequence

from spaseq.engine.native._matches import MatchMaker
from spaseq.engine.native._result_groups import NativeGroups
from spaseq.kb.knowledge import Knowledge
from spaseq.plan.logical import ResultAggregate
from spaseq.rdf._batch import EventBatch
from spaseq.results import Match

class GroupMatch(Match): ...

class GroupColumns:
    def __init__(
        self,
        query: str,
        names: Sequence[str],
        columns: Sequence[tuple[str, int | None, Sequence[int]]],
        aggregates: Sequence[ResultAggregate],
    ) -> None: ...
    @property
    def query(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def columns(self) -> tuple[tuple[str, int | None, Sequence[int]], ...]: ...
    @property
    def aggregates(self) -> tuple[ResultAggregate, ...]: ...

class GroupedMatches(Iterator[Match]):
    def __init__(
        self,
        groups: NativeGroups,
        maker: MatchMaker,
        columns: GroupColumns,
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
