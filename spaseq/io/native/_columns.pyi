"""Matches as columns of Arrow, and terms as their values."""

from collections.abc import Callable, Mapping, Sequence
from enum import IntFlag
from typing import Any

import pyarrow as pa

from spaseq.engine.native._matches import MatchMaker
from spaseq.io.arrow_columns import Columns
from spaseq.rdf.event import Term
from spaseq.results import Witness

class Strings:
    count: int
    def buffers(self) -> tuple[bytes, bytes]: ...
    def array(self) -> pa.StringArray: ...

class Numbers:
    count: int
    def array(self) -> pa.Int64Array: ...

class Native(IntFlag):
    TEXT = 1
    BOOLEAN = 2
    INTEGER = 4
    DECIMAL = 8
    DOUBLE = 16
    INSTANT = 32
    LOCAL = 64
    DATE = 128
    DURATION = 256

class NativeValues:
    count: int
    def add_term(self, term: Term | None) -> None: ...
    def take(self, texts: pa.StringArray) -> NativeColumn: ...

class NativeColumn:
    texts: pa.StringArray
    seen: int
    scale: int
    def __init__(self, texts: pa.StringArray, kinds: bytes, contents: bytes) -> None: ...
    def __len__(self) -> int: ...
    def array(self, native: int, scale: int = 0) -> pa.Array: ...

class RowMaker(MatchMaker):
    ids: Strings
    queries: Strings
    keys: Strings
    items: Strings
    gpms: Strings
    streams: Strings
    names: Strings
    event_keys: Strings
    event_items: Strings
    starts: Numbers
    ends: Numbers
    begins: Numbers
    event_begins: Numbers
    times: Numbers
    ordinals: Numbers
    event_key_begins: Numbers
    values: list[Strings]
    natives: list[NativeValues] | None
    @property
    def full(self) -> bool: ...
    def begin(
        self,
        decode: Callable[[Witness], tuple[Any, str, Mapping[str, str], Mapping[str, str]]],
        most: int,
        columns: Columns,
    ) -> None: ...
    def restrict(
        self, first: int, behind: int, variables: Sequence[str], part: int, parts: int
    ) -> None: ...
    def whole(self) -> None: ...
    def close(self) -> None: ...
