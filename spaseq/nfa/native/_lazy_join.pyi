from spaseq.nfa.native._transitions import Transitions
from spaseq.nfa.native.table_types import CoreTables
from spaseq.rdf._dictionary import Dictionary

class LazyJoin:
    switches: int
    searched: int
    sampled: int
    min_rows: float
    def __init__(
        self, rows: CoreTables, transitions: Transitions, dictionary: Dictionary
    ) -> None: ...
    @property
    def lazy(self) -> bool: ...
    def join(self, lazily: bool | None) -> None: ...
