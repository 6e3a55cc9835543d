from collections.abc import Iterator, Sequence

from spaseq.rdf.event import Term, Timestamp

class NativeGroups:
    def __init__(
        self,
        size: int,
        tumbling: bool,
        keys: int,
        summed: Sequence[bool],
        distincts: Sequence[int],
        bests: Sequence[tuple[int | None, bool]],
        samples: Sequence[int | None],
        conditions: Sequence[tuple[str, int | None, str, float, bool]],
    ) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def tumbling(self) -> bool: ...
    @property
    def held(self) -> int: ...
    @property
    def work(self) -> int: ...
    @property
    def count(self) -> int: ...
    def add(
        self,
        key: Sequence[Term | None],
        arguments: Sequence[Term | None],
        start: Timestamp,
        end: int,
    ) -> bool: ...
    def expire(self, now: int) -> None: ...
    def clear(self) -> None: ...
    def number(self, key: Sequence[Term | None]) -> int: ...
    def numbers_in_order(self, newest: bool) -> Iterator[int]: ...
    def group(
        self, number: int
    ) -> tuple[
        tuple[Term | None, ...],
        int,
        Timestamp,
        list[tuple[int, int, Sequence[int], int, int, int]],
        list[Term | None],
    ]: ...
    def values_in_order(self, number: int, argument: int) -> Iterator[Term | None]: ...
    def results(
        self,
    ) -> Iterator[tuple[tuple[Term | None, ...], tuple[Term | None, ...], Timestamp, int]]: ...
