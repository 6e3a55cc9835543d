from spaseq.nfa.native._program import Tables

class Clock(Tables):
    now: int
    bound: int
    timestamp_start: int
    skipped: int
    micros: int
    shed_matches: int
    @property
    def reach(self) -> int: ...
    @property
    def counted(self) -> bool: ...
    def shed(self) -> int: ...
