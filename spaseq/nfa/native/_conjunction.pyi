from spaseq.nfa.native._event import CurrentEvent
from spaseq.nfa.native._program import Tables
from spaseq.nfa.native._window import Window
from spaseq.nfa.native.table_types import CoreTables

class Conjunction:
    def __init__(
        self, rows: CoreTables, tables: Tables, window: Window, event: CurrentEvent
    ) -> None: ...
    @property
    def looked(self) -> int: ...
