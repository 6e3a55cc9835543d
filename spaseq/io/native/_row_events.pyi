from spaseq.io.rows.columns import Buffers
from spaseq.io.rows.plan import RowPlan
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.event import Term
from spaseq.rdf.native._framing import EventReader

def is_of_use(relevance: Relevance, predicate: Term, value: Term | None) -> bool: ...

class RowReader:
    def __init__(
        self, events: EventReader, relevance: Relevance, plan: RowPlan, questions: object
    ) -> None: ...
    def start(self, columns: list[Buffers], first: int) -> None: ...
    def read(self, start: int, stop: int) -> int: ...
