from collections.abc import Mapping, Sequence

from spaseq.engine.native._driver import NativeStep
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._sequence import EventSequence
from spaseq.rdf._window_terms import WindowTerms

class MultiDriver:
    def __init__(
        self,
        streams: Sequence[str],
        queries: Sequence[tuple[NativeStep, Sequence[str], bool]],
        tasks: Sequence[Sequence[int]],
        keys: Sequence[Sequence[tuple[int, int, int | tuple[float, float]]] | None],
        window: WindowTerms,
        counted: bool,
    ) -> None: ...
    @property
    def loaded(self) -> bool: ...
    @property
    def micros(self) -> int: ...
    @property
    def begun(self) -> bool: ...
    @property
    def ordinals(self) -> dict[str, int]: ...
    @property
    def touches(self) -> int: ...
    def load(
        self,
        closed: int | None,
        domain: bool | None,
        times: Mapping[str, tuple[int, int]],
        opened: Sequence[int | None],
        gaps: bool,
    ) -> None: ...
    def unload(self) -> None: ...
    def settle(self) -> None: ...
    def is_open(self, query: int) -> bool: ...
    @property
    def holding(self) -> bool: ...
    @property
    def in_closing(self) -> bool: ...
    @property
    def closing_micros(self) -> int: ...
    def held_by(self, query: int) -> list[tuple[EventBatch, int]]: ...
    def run(
        self,
        events: EventSequence,
        first: int,
        end: int,
        position: int,
        files: Sequence[int],
        holds: bool,
    ) -> int: ...
