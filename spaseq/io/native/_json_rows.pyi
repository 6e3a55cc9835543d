from collections.abc import Sequence

from spaseq.io.rows.columns import Buffers

MAX_FIELDS: int

class JsonBlock:
    first: int
    num_rows: int
    lines: int
    problem: str
    line: int
    taken: int
    misfits: list[tuple[tuple[str, ...], tuple[str, ...], int, int, str]]

    def buffers(self, column: int) -> Buffers: ...
    def values(self, column: int) -> list[str | None]: ...

class JsonRows:
    line: int
    def __init__(self, names: Sequence[str] | None) -> None: ...
    def read(self, data: bytes, start: int, stop: int) -> JsonBlock: ...
    def fields(self) -> list[tuple[tuple[str, ...], frozenset[str]]]: ...
