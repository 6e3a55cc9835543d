from spaseq.nfa.native._instant import OpenInstant
from spaseq.nfa.native._negation import Negation

class StepJoin:
    def __init__(self, negation: Negation, instant: OpenInstant) -> None: ...
