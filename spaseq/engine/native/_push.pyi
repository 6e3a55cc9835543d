"""Pushed events: graphs of Python objects, and the call that no other call may interrupt."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from spaseq.engine.native._matches import MatchMaker
from spaseq.kb.knowledge import Knowledge
from spaseq.rdf.native._terms import EventBatch, Relevance
from spaseq.results import Match

Method = TypeVar("Method", bound=Callable[..., object])
T = TypeVar("T")

class Alone:
    def enter(self) -> None: ...
    def leave(self) -> None: ...
    def taking(self, matches: Iterable[T]) -> Iterator[T]: ...

class Taking: ...

def alone(method: Method) -> Method: ...

class Pushing:
    def __init__(
        self,
        alone: Alone,
        maker: MatchMaker,
        batch: EventBatch,
        relevance: Relevance,
        kb: Knowledge,
        skip: bool,
        stream: int,
        file: int,
        events: int,
        dated: bool,
        micros: int,
        ordinal: int,
        closed: int,
        precision: str,
    ) -> None: ...
    @property
    def batch(self) -> EventBatch: ...
    @property
    def after(self) -> int: ...
    @property
    def failed(self) -> bool: ...
    def invalidate(self) -> None: ...
    def push(self, stream: str, timestamp: Any, graph: Any, name: Any) -> list[Match] | None: ...
