"""The results of groups: aggregates over matches, and their rows."""

from collections.abc import Callable, Iterator, Sequence

from spaseq.engine.core_groups import CoreGroups
from spaseq.engine.native._matches import Gathering, MatchDecoder, MatchMaker
from spaseq.engine.output import OutputStage
from spaseq.gpm.native.bytecode import ExpressionCode
from spaseq.gpm.python.calls import Calls
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Term, Timestamp
from spaseq.rdf.native._terms import EventBatch
from spaseq.results import Match, Witness

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

class ResultReader:
    def __init__(
        self,
        groups: NativeGroups,
        maker: MatchMaker,
        replay: MatchDecoder,
        values: Sequence[int | ExpressionCode],
        registers: Sequence[int],
        cells: int,
        keys: Sequence[str],
        calls: Calls,
    ) -> None: ...
    @property
    def errors(self) -> list[ErrorCount | None]: ...
    @property
    def groups(self) -> NativeGroups: ...
    @property
    def refused(self) -> int: ...
    def feed(self, batch: EventBatch, first: int, stream: int, file: int, position: int) -> int: ...
    def read(self) -> None: ...
    def shown(
        self, number: int
    ) -> list[tuple[int, int, int, int, int, int, int, int, list[Term | None]]]: ...

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

class GroupGathering(Gathering):
    def solve_with(self, solutions: SolutionMaker) -> None: ...

class GatheredGroupMaker(MatchMaker): ...
