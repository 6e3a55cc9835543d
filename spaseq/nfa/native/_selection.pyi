from spaseq.nfa.native._automaton import AutomatonCore

class Selection:
    def __init__(
        self,
        core: AutomatonCore,
        mode: str,
        most: int = 1,
    ) -> None: ...
    @property
    def looked(self) -> int: ...
    @property
    def listed(self) -> int: ...
    def pop_selected(self) -> list[tuple[int, tuple[int, ...]]]: ...
