from collections.abc import Iterator, Mapping
from typing import Any

import pyoxigraph as ox

from spaseq.rdf.event import Term, Timestamp
from spaseq.results.witness import Witness

class Match:
    __match_args__ = (
        "query",
        "start",
        "end",
        "bindings",
        "events",
        "variables",
        "graph",
        "boolean",
        "kb_version",
        "results",
        "closed_by_end",
    )
    def __init__(
        self,
        query: str,
        start: Timestamp,
        end: Timestamp,
        bindings: Mapping[str, Term],
        events: tuple[Witness, ...],
        variables: tuple[str, ...] = (),
        graph: tuple[ox.Triple, ...] | None = None,
        boolean: bool | None = None,
        kb_version: int = 1,
        results: int | None = None,
        closed_by_end: bool = False,
    ) -> None: ...
    @property
    def query(self) -> str: ...
    @property
    def start(self) -> Timestamp: ...
    @property
    def end(self) -> Timestamp: ...
    @property
    def bindings(self) -> Mapping[str, Term]: ...
    @property
    def values(self) -> dict[str, Any]: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    @property
    def events(self) -> tuple[Witness, ...]: ...
    @property
    def variables(self) -> tuple[str, ...]: ...
    @property
    def graph(self) -> tuple[ox.Triple, ...] | None: ...
    @property
    def boolean(self) -> bool | None: ...
    @property
    def kb_version(self) -> int: ...
    @property
    def results(self) -> int | None: ...
    @property
    def closed_by_end(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __replace__(self, **changes: Any) -> Match: ...
