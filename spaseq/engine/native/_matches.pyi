from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar

from spaseq.engine.native._decode import MatchDecoder
from spaseq.engine.native._driver import NativeStep
from spaseq.engine.native._gathered import Gathering
from spaseq.kb.knowledge import Knowledge
from spaseq.nfa.ended_starts import EndedStarts
from spaseq.nfa.native._selection import Selection
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.event import Term
from spaseq.results import Match

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
