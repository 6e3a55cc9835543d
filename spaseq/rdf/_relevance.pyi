from collections.abc import Iterable

from spaseq.rdf._dictionary import Dictionary
from spaseq.rdf.event import Term

class Relevance:
    def __init__(
        self, dictionary: Dictionary, uses: Iterable[tuple[Term, Term | None]] | None = None
    ) -> None: ...
    @property
    def dictionary(self) -> Dictionary: ...
    @property
    def everything(self) -> bool: ...
