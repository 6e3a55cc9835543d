from collections.abc import Callable

from spaseq.nfa.match_path import Step
from spaseq.nfa.native._automaton import AutomatonCore

Steps = tuple[Step, ...]
StepOf = Callable[[tuple[int, ...]], Step]

def take(core: AutomatonCore, step_of: StepOf, one: bool) -> list[tuple[int, Steps, int]]: ...
def due(
    core: AutomatonCore, before: int | None, step_of: StepOf
) -> list[tuple[int, list[tuple[int, Steps, int]]]]: ...
