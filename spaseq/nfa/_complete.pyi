from collections.abc import Callable

from spaseq.nfa._core import AutomatonCore
from spaseq.nfa.path import Step

Steps = tuple[Step, ...]
StepOf = Callable[[tuple[int, ...]], Step]

def take(core: AutomatonCore, step_of: StepOf, one: bool) -> list[tuple[int, Steps, int]]: ...
def due(
    core: AutomatonCore, before: int | None, step_of: StepOf
) -> list[tuple[int, list[tuple[int, Steps, int]]]]: ...
