"""Which of the complete matches of an instant are results: EMIT and selection strategies."""

from collections.abc import Callable

from spaseq.nfa.match_path import Step
from spaseq.nfa.native._automaton import AutomatonCore

Steps = tuple[Step, ...]
StepOf = Callable[[tuple[int, ...]], Step]

def pop_complete(
    core: AutomatonCore, step_of: StepOf, one: bool
) -> list[tuple[int, Steps, int]]: ...

class Closing:
    def __init__(self, core: AutomatonCore, before: int | None) -> None: ...
    @property
    def micros(self) -> int: ...
    @property
    def is_deadline(self) -> bool: ...
    def advance(self) -> bool: ...
    def pop_waiting(self, step_of: StepOf) -> list[tuple[int, Steps, int]]: ...

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
