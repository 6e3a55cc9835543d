from spaseq.nfa.native._transitions import Transitions
from spaseq.nfa.native.table_types import CoreTables
from spaseq.rdf._dictionary import Dictionary

class LazyJoin:
    switches: int
    min_rows: float
    def __init__(
        self, rows: CoreTables, transitions: Transitions, dictionary: Dictionary
    ) -> None: ...
    @property
    def lazy(self) -> bool: ...
    @property
    def searched(self) -> int: ...
    @property
    def sampled(self) -> int: ...
    def join(self, lazily: bool | None) -> None: ...
