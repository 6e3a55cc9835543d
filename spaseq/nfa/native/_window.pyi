from spaseq.nfa.native.table_types import CoreTables

class Window:
    now: int
    bound: int
    timestamp_start: int
    skipped: int
    last_start: int
    micros: int
    shed_matches: int
    def __init__(self, rows: CoreTables) -> None: ...
    @property
    def reach(self) -> int: ...
    @property
    def counted(self) -> bool: ...
