from spaseq.nfa._clock import Clock
from spaseq.nfa._partitions import Partitions
from spaseq.nfa._tecs import Tecs
from spaseq.nfa.native import CoreTables
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf._window import WindowTerms

class AutomatonCore(Clock):
    forbidden: int
    waited: int
    looked: int
    def __init__(
        self,
        tables: CoreTables,
        window: WindowTerms,
        dictionary: Dictionary,
        truth: int,
        falsehood: int,
    ) -> None: ...
    @property
    def partitions(self) -> Partitions | None: ...
    @property
    def tracked(self) -> bool: ...
    @property
    def tecs(self) -> Tecs: ...
    @property
    def complete(self) -> int: ...
    def open(self, micros: int) -> int: ...
    def close(self) -> int: ...
    def limit(self, groups: int, kept: int, steps: int, sheds: bool) -> None: ...
    def skip(self) -> None: ...
