from spaseq.nfa.native._program import Tables
from spaseq.nfa.native._tecs import Tecs
from spaseq.nfa.native._window import Window
from spaseq.rdf._window_terms import WindowTerms

class CurrentEvent:
    def __init__(self, tables: Tables, window: Window, terms: WindowTerms) -> None: ...
    @property
    def tecs(self) -> Tecs: ...
    @property
    def transient(self) -> Tecs: ...
