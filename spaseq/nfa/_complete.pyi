from collections.abc import Callable

from spaseq.nfa._core import AutomatonCore
from spaseq.nfa.tecs import Step

Steps = tuple[Step, ...]

def take(
    core: AutomatonCore, step_of: Callable[[int], Step], one: bool
) -> list[tuple[int, Steps, int]]: ...
def due(
    core: AutomatonCore, before: int | None, step_of: Callable[[int], Step]
) -> list[tuple[int, list[tuple[int, Steps, int]]]]: ...
def tally(core: AutomatonCore) -> int: ...
