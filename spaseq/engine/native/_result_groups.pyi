from collections.abc import Iterator, Sequence

from spaseq.engine.native._driver import NativeStep
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.event import Term, Timestamp

class NativeGroups:
    inserted: bool
    def __init__(
        self,
        size: int,
        keys: int,
        arguments: int,
        columns: Sequence[Sequence[int]],
        bests: Sequence[tuple[int, bool]],
        conditions: Sequence[tuple[str, int | None, str, float, bool]],
    ) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def held(self) -> int: ...
    @property
    def count(self) -> int: ...
    def feed(
        self,
        step: NativeStep,
        batch: EventBatch,
        first: int,
        stream: int,
        file: int,
        position: int,
    ) -> int: ...
    def add(
        self,
        key: Sequence[Term | None],
        arguments: Sequence[Term | None],
        start: Timestamp,
        end: int,
    ) -> bool: ...
    def expire(self, now: int) -> None: ...
    def group(
        self, key: Sequence[Term | None]
    ) -> tuple[
        int,
        Timestamp,
        list[tuple[int, int, list[int], int, int, int]],
        list[Term | None],
    ]: ...
    def results(
        self,
    ) -> Iterator[tuple[tuple[Term | None, ...], tuple[Term | None, ...], Timestamp, int]]: ...
