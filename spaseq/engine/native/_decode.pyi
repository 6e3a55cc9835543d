from collections.abc import Sequence

from spaseq.nfa.native.table_types import CoreTables

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
