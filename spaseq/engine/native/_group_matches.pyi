from collections.abc import Callable, Iterator, Sequence

from spaseq.engine.native._group_results import ResultReader
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import Term
from spaseq.results import Match

class GroupMatch(Match): ...

class GroupColumns:
    def __init__(
        self,
        query: str,
        names: Sequence[str],
        columns: Sequence[tuple[str, bool, int]],
        values: Callable[..., list[Term | None]],
    ) -> None: ...
    @property
    def query(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def columns(self) -> tuple[tuple[str, bool, int], ...]: ...
    @property
    def values(self) -> Callable[..., list[Term | None]]: ...

class GroupedMatches(Iterator[Match]):
    def __init__(
        self,
        reader: ResultReader,
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
