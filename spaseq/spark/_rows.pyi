from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spaseq.engine._matches import MatchMaker
from spaseq.results import Witness
from spaseq.spark.rows import Rows

class RowMaker(MatchMaker):
    def into(
        self,
        rows: Rows,
        decode: Callable[[Witness], tuple[Any, str, Mapping[str, str], Mapping[str, str]]],
    ) -> None: ...
    def only(
        self, first: int, behind: int, variables: Sequence[str], part: int, parts: int
    ) -> None: ...
