from collections.abc import Sequence

from spaseq.engine.native._decode import MatchDecoder
from spaseq.engine.native._matches import MatchMaker
from spaseq.engine.native._result_groups import NativeGroups
from spaseq.gpm.native.bytecode import ExpressionCode
from spaseq.gpm.python.calls import Calls
from spaseq.rdf._batch import EventBatch
from spaseq.rdf.error_count import ErrorCount
from spaseq.rdf.event import Term

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
