from collections.abc import Callable

from spaseq.nfa.native._event import CurrentEvent
from spaseq.nfa.native.table_types import CoreTables
from spaseq.rdf._dictionary import Dictionary

class OpenInstant:
    def __init__(self, rows: CoreTables, event: CurrentEvent, dictionary: Dictionary) -> None: ...
    def trace(self, tracer: Callable[[int, int, list[int]], None] | None) -> None: ...
