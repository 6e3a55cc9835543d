from spaseq.nfa._tables import Tables
from spaseq.nfa._tecs import Tecs
from spaseq.nfa.native import CoreTables
from spaseq.rdf._window import WindowTerms

class AutomatonCore:
    now: int
    bound: int
    timestamp_start: int
    skipped: int
    micros: int
    forbidden: int
    waited: int
    def __init__(
        self, tables: CoreTables, window: WindowTerms, truth: int, falsehood: int
    ) -> None: ...
    @property
    def tecs(self) -> Tecs: ...
    @property
    def tables(self) -> Tables: ...
    @property
    def counted(self) -> bool: ...
    @property
    def complete(self) -> int: ...
    def open_instant(self, micros: int) -> None: ...
    def close_instant(self) -> None: ...
    def skip(self) -> None: ...
