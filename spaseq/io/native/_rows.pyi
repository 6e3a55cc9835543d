from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spaseq.engine.native._matches import MatchMaker
from spaseq.io.arrow_columns import Columns
from spaseq.io.native._building import Numbers, Strings
from spaseq.io.native._native_values import NativeValues
from spaseq.results import Witness

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
