from collections.abc import Hashable, Sequence
from typing import Protocol

from spaseq.engine.native._decode import MatchDecoder
from spaseq.nfa.match_path import Row
from spaseq.nfa.native._automaton import AutomatonCore
from spaseq.nfa.native._selection import Selection
from spaseq.rdf.event import Fact, Term

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
