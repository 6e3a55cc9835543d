"""A graph pattern as the planner leaves it → what a `Matcher` runs.

`GpmProgram` is compile-time data only: frozen, picklable, free of streams and of the KB.
Source: LANGUAGE section 3 (docs/language.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from spaseq.gpm.python.functions import by_reference
from spaseq.parser import ast
from spaseq.plan.scope import certain_variables, possible_variables


@dataclass(frozen=True, slots=True)
class GpmProgram:
    """One GPM without its top-level filters and stateful BINDs.

    `variables` gives the slots of a row: every variable the pattern can bind, sorted, the
    `AT` variable last. Those in `certain` are bound in every row. `at` is bound to the
    event's time in every row, and joins (as a term) where the pattern binds it too.
    `kb_graphs` are the KB graphs that `GRAPH` sees; None: all of them.
    """

    pattern: ast.GroupGraphPattern
    variables: tuple[str, ...]
    certain: frozenset[str]
    at: str | None
    kb_graphs: tuple[str, ...] | None

    @property
    def left_to_pyoxigraph(self) -> tuple[str, ...]:
        """The functions of the pattern that pyoxigraph computes; all else is native."""
        found = (by_reference(node) for node in ast.walk(self.pattern))
        return tuple(dict.fromkeys(name for name in found if name is not None))

    @property
    def native(self) -> bool:
        """Whether nothing of the pattern is left to pyoxigraph."""
        return not self.left_to_pyoxigraph


def compile_gpm(
    pattern: ast.GroupGraphPattern, at: str | None, kb_graphs: tuple[str, ...] | None
) -> GpmProgram:
    """The program of a pattern that the planner has freed of filters and stateful BINDs."""
    pattern = _relabelled(pattern)
    names = possible_variables(pattern) - {at}
    always = certain_variables(pattern)
    variables = tuple(sorted(names))
    if at is not None:
        variables += (at,)
        always |= {at}
    return GpmProgram(pattern, variables, always, at, kb_graphs)


def _relabelled(pattern: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """Blank nodes numbered from 0, so that patterns that say the same are equal."""
    labels = dict.fromkeys(n.label for n in ast.walk(pattern) if isinstance(n, ast.BlankNode))
    numbers = {label: f"b{number}" for number, label in enumerate(labels)}

    def change(node: object) -> object:
        if isinstance(node, ast.BlankNode):
            return ast.BlankNode(numbers[node.label], node.span)
        return None

    same: ast.GroupGraphPattern = ast.rebuilt(pattern, change)
    return same
