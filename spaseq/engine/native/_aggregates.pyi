from collections.abc import Sequence

from spaseq.plan.logical import Register
from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf._window_terms import WindowTerms

class NativeAggregates:
    def __init__(
        self, window: WindowTerms, dictionary: Dictionary, registers: Sequence[Register]
    ) -> None: ...
