from collections.abc import Iterator, Sequence

import pyoxigraph as ox

from spaseq.nfa._core import AutomatonCore
from spaseq.nfa.tecs import Row
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.event import Term

Label = tuple[
    int,
    int,
    int,
    int,
    int,
    int,
    int,
    int,
    int,
    ox.NamedNode | ox.BlankNode | None,
    ox.Literal | None,
    Row,
]

class CoreParts:
    def __init__(self, core: AutomatonCore, dictionary: Dictionary) -> None: ...
    def term(self, number: int) -> Term | None: ...
    def label(self, address: int) -> Label: ...
    def clock(self) -> tuple[int, int, int, int, list[tuple[int, int]]]: ...
    def set_clock(
        self, now: int, bound: int, start: int, micros: int, inside: Sequence[Sequence[int]]
    ) -> None: ...
    def waiting(self) -> Iterator[tuple[int, list[int], int, bool]]: ...
    def pended(self) -> Iterator[tuple[int, list[int], int]]: ...
    def awaited(self) -> Iterator[tuple[int, list[int], int, list[int]] | None]: ...
    def awaited_count(self) -> int: ...
    def completed(self) -> list[int]: ...
    def node(self, address: int) -> tuple[int, int, int]: ...
    def members(self, address: int) -> list[int]: ...
    def put_label(
        self,
        place: int,
        position: int,
        instant: int,
        micros: int,
        domain: int,
        line: int,
        stream: int,
        file: int,
        ordinal: int,
        name: int,
        stamp: int,
        row: Sequence[int],
    ) -> int: ...
    def put_union(self, nodes: Sequence[int]) -> int: ...
    def put_node(self, label: int, before: int, latest: int) -> int: ...
    def put_waiting(
        self, place: int, values: Sequence[int], nodes: Sequence[int], taken: bool, pending: bool
    ) -> None: ...
    def put_complete(self, node: int) -> None: ...
