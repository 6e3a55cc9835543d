from spaseq.nfa.native._joins import StepJoin

class Transitions:
    waited: int
    def __init__(self, joins: StepJoin) -> None: ...
