"""Complete matches, decoded and listed: from the automaton to objects and text."""

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import Any, ClassVar, Protocol

from spaseq.engine.formatting import Block
from spaseq.engine.native._driver import MultiDriver, NativeStep
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.ended_starts import EndedStarts
from spaseq.nfa.match_path import Row
from spaseq.nfa.native._automaton import AutomatonCore
from spaseq.nfa.native._selection import Selection
from spaseq.nfa.native.table_types import CoreTables
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.native._terms import Dictionary, EventBatch, EventSequence
from spaseq.results import Match

class MatchDecoder:
    def __init__(
        self,
        query: str,
        rows: CoreTables,
        columns: Sequence[tuple[str, int]],
        steps: Sequence[Sequence[tuple[int, str, tuple[str | None, ...]]]],
        streams: Sequence[str],
        like: MatchDecoder | None = None,
    ) -> None: ...

class _Stage(Protocol):
    @property
    def sorts(self) -> bool: ...
    @property
    def retains(self) -> bool: ...
    @property
    def compares(self) -> bool: ...
    @property
    def computes(self) -> bool: ...
    @property
    def constructs(self) -> bool: ...
    @property
    def asks(self) -> bool: ...
    any_will_do: bool
    chooses: bool
    repeats: bool
    def once(
        self, found: Sequence[tuple[int, tuple[Term | None, ...], Sequence[Hashable]]], /
    ) -> list[int]: ...
    def chosen(
        self, found: Sequence[tuple[int, object, Sequence[tuple[int, int]]]], /
    ) -> list[int]: ...
    def computed(
        self, events: Sequence[tuple[int, int, int, Row]], /
    ) -> tuple[Term | None, ...]: ...
    def retained(
        self,
        listed: Sequence[tuple[int, tuple[Term | None, ...], tuple[Term | None, ...]]],
        now: int,
        /,
    ) -> list[int]: ...
    def graph_of(self, solution: tuple[Term | None, ...], /) -> tuple[Fact, ...]: ...

class Gathering:
    def __init__(
        self,
        core: AutomatonCore,
        selection: Selection | None,
        solving: MatchDecoder,
        ordering: MatchDecoder,
    ) -> None: ...
    @property
    def selection(self) -> Selection | None: ...
    @property
    def count(self) -> int: ...
    @property
    def asks(self) -> bool: ...
    @property
    def one(self) -> bool: ...
    def arrange_with(self, stage: _Stage) -> None: ...

def copies(matches: list[Match], query: str) -> list[Match]: ...
def divided(
    matches: Iterable[Match],
    parts: Parts,
    readers: Mapping[bytes | int | None, Sequence[tuple[int, Any]]],
    by_edge: bool = False,
) -> list[tuple[int, list[Any]]]: ...
def divided_by_thresholds(
    matches: Iterable[Match],
    parts: Parts,
    readers: tuple[tuple[int, Any], ...],
    columns: int,
    reached: Mapping[tuple[Term, ...], tuple[int, int]],
) -> list[tuple[int, list[Any]]]: ...

class Parts:
    def __init__(
        self,
        matches: Iterable[Match],
        made: MutableMapping[int, int],
        as_picks: bool,
        silent: Collection[int],
        most: int,
    ) -> None: ...
    @property
    def refused(self) -> int: ...

class MatchMaker:
    forms: ClassVar[frozenset[str]]
    def __init__(
        self,
        step: NativeStep,
        dictionary: Dictionary,
        reading: MatchDecoder,
        selection: Selection | None,
        ordering: MatchDecoder,
        gathering: Gathering | None = None,
    ) -> None: ...
    @property
    def made(self) -> int: ...
    @property
    def closed_by_end(self) -> int: ...
    ended_at: int
    def end_starts(self, ended: EndedStarts) -> None: ...
    def take(self, skip: bool, kb_version: int) -> Matches: ...
    def take_due(self, before: int | None, kb_version: int, ending: bool) -> Matches: ...
    def run(
        self,
        batch: EventBatch,
        first: int,
        stream: int,
        file: int,
        position: int,
        skip: bool,
        kb: Knowledge,
    ) -> Matches: ...

class Matches(Iterator[Match]):
    @property
    def after(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    def invalidate(self) -> None: ...
    def __next__(self) -> Match: ...

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
