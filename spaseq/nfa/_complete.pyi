from collections.abc import Callable

from spaseq.nfa._core import AutomatonCore
from spaseq.nfa.tecs import Step

Steps = tuple[Step, ...]

def take(
    core: AutomatonCore, step_of: Callable[[tuple[int, ...]], Step], one: bool
) -> list[tuple[int, Steps]]: ...
def due(
    core: AutomatonCore, before: int | None, step_of: Callable[[tuple[int, ...]], Step]
) -> list[tuple[int, list[tuple[int, Steps]]]]: ...
