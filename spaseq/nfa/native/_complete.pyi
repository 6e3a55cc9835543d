from collections.abc import Callable

from spaseq.nfa.match_path import Step
from spaseq.nfa.native._automaton import AutomatonCore

Steps = tuple[Step, ...]
StepOf = Callable[[tuple[int, ...]], Step]

def pop_complete(
    core: AutomatonCore, step_of: StepOf, one: bool
) -> list[tuple[int, Steps, int]]: ...
def pop_closed(
    core: AutomatonCore, before: int | None, step_of: StepOf
) -> list[tuple[int, list[tuple[int, Steps, int]]]]: ...
