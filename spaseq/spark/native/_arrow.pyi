from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from spaseq.gpm.native._matcher import NativeMatcher, SummaryGraph
from spaseq.rdf.event import Term
from spaseq.rdf.native._framing import EventReader
from spaseq.rdf.native._nquads import LineReader
from spaseq.rdf.native._terms import EventBatch
from spaseq.spark.chunks import Numbers

def part_of(terms: Iterable[Term], parts: int) -> int: ...
def instants(batch: EventBatch) -> bytes: ...

class ColumnReader:
    def __init__(
        self,
        events: EventReader,
        lines: LineReader,
        judge: Callable[[bytes], Iterable[ox.Quad]],
    ) -> None: ...
    def read(
        self,
        graphs: bytes,
        ends: NDArray[np.int32],
        places: Numbers,
        micros: Numbers,
        ordinals: Numbers,
        dated: NDArray[np.uint8],
        names: bytes | None,
        name_ends: NDArray[np.int32] | None,
        stamps: Sequence[ox.Literal | None] | None,
    ) -> EventBatch: ...

class PartFinder:
    def __init__(
        self,
        graph: SummaryGraph,
        matchers: Iterable[tuple[NativeMatcher, Sequence[int]]],
        unfiltered: bool,
        parts: int,
    ) -> None: ...
    def find(self, batch: EventBatch) -> bytes: ...

class GraphWriter:
    def add(
        self,
        batch: EventBatch,
        events: Numbers,
        places: Numbers,
        graphs: bytes,
        ends: NDArray[np.int32],
    ) -> None: ...
    def add_all(self, batch: EventBatch) -> None: ...
    def add_names(self, batch: EventBatch) -> None: ...
    def written(self) -> tuple[bytes, bytes]: ...
