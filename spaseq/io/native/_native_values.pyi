from enum import IntFlag

import pyarrow as pa

from spaseq.rdf.event import Term

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
