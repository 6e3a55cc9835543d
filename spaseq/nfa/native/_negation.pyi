from spaseq.nfa.native._conjunction import Conjunction
from spaseq.nfa.native._partitions import Partitions
from spaseq.nfa.native.table_types import CoreTables

class Negation:
    def __init__(
        self, rows: CoreTables, conjunction: Conjunction, partitions: Partitions | None
    ) -> None: ...
