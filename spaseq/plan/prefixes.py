"""Combines queries whose sequences begin alike into one query: a template that branches.

The sequences are arranged in a tree, in which common steps occur once. A node at which they diverge
becomes a disjunction whose operands have their own operators:

    SEQ(A ; B ; C)      query 0
    SEQ(A ; B : D)      query 1                 A ; B ( ; C | : D ; E | : D ; F )
    SEQ(A ; B : D ; E)  query 2

Each operand has its own place, so the `;` of one query does not wait for the events of another. The
last step of a query occurs in one branch only, and a match belongs to the queries in whose branch
it ends. (Query 0 takes part above, query 1 does not, since query 2 continues it.)

Steps are common if they are equal, with their graph patterns, and if the partial matches that wait
for them hold the same registers. Then the groups of partial matches are those of each single query.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from operator import eq

from spaseq.parser import ast
from spaseq.plan.places import is_iterating
from spaseq.plan.templates import Template
from spaseq.records import dataclass

LEAST = 16
"""The least number of different sequences that make a template."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that may share its first steps."""

    query: ast.Query
    columns: Sequence[str]
    """The variables that it selects."""
    traits: Hashable
    """The other properties that must be equal for a common step."""
    waiting: Sequence[Hashable]
    """Per step of its sequence: the properties that must be equal for the step to be common."""


@dataclass(slots=True)
class _Node:
    """The queries that agree in their first steps, up to one step."""

    step: ast.Step | None = None
    defines: tuple[ast.Define, ...] = ()
    """The graph patterns of the step."""
    queries: list[int] = field(default_factory=list)
    """The queries that end with the step."""
    children: dict[Hashable, _Node] = field(default_factory=dict)

    def leaves(self) -> Iterator[_Node]:
        """The nodes where queries end."""
        if not self.children:
            yield self
        for child in self.children.values():
            yield from child.leaves()


def prefixes(queries: Mapping[int, Candidate], least: int | None = None) -> list[Template]:
    """The templates of queries whose sequences begin alike.

    Args:
        queries: Candidates by position.
        least: The least number of different sequences in a template; by default `LEAST`.
    """
    least = LEAST if least is None else least
    roots: dict[Hashable, _Node] = {}
    for number, each in queries.items():
        _insert(roots.setdefault((_frame(each.query), each.traits), _Node()), number, each)
    found = []
    for root in roots.values():
        for node in root.children.values():
            count, _ = _prune(node)
            if count >= max(least, 2):
                found.append(_Writing(queries).template(node))
    return found


def alike(queries: Mapping[int, ast.Query], least: int | None = None) -> list[int]:
    """The positions of queries that may be in a template: enough others have their first step.

    Args:
        queries: Queries by position.
        least: As for `prefixes`.
    """
    first: dict[Hashable, list[int]] = {}
    for number, query in queries.items():
        first.setdefault((_frame(query), _key(query, query.sequence.steps[0])), []).append(number)
    least = max(LEAST if least is None else least, 2)
    return [number for some in first.values() if len(some) >= least for number in some]


def branching(
    queries: Mapping[int, Candidate], members: Sequence[Sequence[int]]
) -> Template | None:
    """The template with given members; None if the queries do not fit together.

    Args:
        queries: Candidates by position.
        members: The positions of the queries that end in each branch.
    """
    numbers = [number for some in members for number in some]
    if not all(number in queries for number in numbers):
        return None
    found = prefixes({number: queries[number] for number in numbers}, 2)
    wanted = tuple(map(tuple, members))
    return next((each for each in found if each.members == wanted), None)


def iterates(step: ast.Step) -> bool:
    """Whether a step must be common, because its iterations or bounds are numbered in the query."""
    return any(
        is_iterating(node.quantifier)
        or (node.bound is not None and not isinstance(node.unit, ast.GpmRef))
        for node in ast.walk(step)
        if isinstance(node, ast.Step)
    )


def continues(query: ast.Query, other: ast.Query) -> bool:
    """Whether a query has all steps of another one, and further ones."""
    steps, count = query.sequence.steps, len(other.sequence.steps)
    return (
        len(steps) > count
        and _frame(query) == _frame(other)
        and all(map(eq, _keys(query)[:count], _keys(other)))
    )


def _frame(query: ast.Query) -> ast.Query:
    """The properties that must be equal in the queries of a template, besides their first steps."""
    return replace(
        query,
        form=ast.Select(None),
        sequence=ast.Sequence(()),
        defines=(),
        prologue=ast.Prologue(),
        register=None,
        text="",
    )


def _insert(root: _Node, number: int, candidate: Candidate) -> None:
    node = root
    for each, waiting in zip(_keys(candidate.query), candidate.waiting, strict=True):
        known = node.children.get((each, waiting))
        if known is None:
            known = node.children[each, waiting] = _Node(*each)
        node = known
    node.queries.append(number)


def _keys(query: ast.Query) -> list[tuple[ast.Step, tuple[ast.Define, ...]]]:
    """The steps of a query, with their graph patterns."""
    return [_key(query, step) for step in query.sequence.steps]


def _key(query: ast.Query, step: ast.Step) -> tuple[ast.Step, tuple[ast.Define, ...]]:
    names = {one.name for one in _references(step)}
    return step, tuple([define for define in query.defines if define.name in names])


def _references(step: ast.Step) -> list[ast.GpmRef]:
    return [node for node in ast.walk(step) if isinstance(node, ast.GpmRef)]


def _prune(node: _Node) -> tuple[int, bool]:
    """Remove the queries that cannot take part.

    Returns:
        The number of remaining branches, and whether the step or one after it `iterates`.
    """
    assert node.step is not None
    found = {key: _prune(child) for key, child in node.children.items()}
    found = {key: (count, iterating) for key, (count, iterating) in found.items() if count}
    if len(found) > 1 and any(iterating for _, iterating in found.values()):
        # Iterations must be in common steps: keep the children without any, or a single child.
        others = {key: one for key, one in found.items() if not one[1]}
        best = max(found, key=lambda key: found[key][0])
        several = sum(count for count, _ in others.values()) >= found[best][0]
        found = others if several else {best: found[best]}
    node.children = {key: node.children[key] for key in found}
    if node.children:
        node.queries = []  # others continue them
    left = sum(count for count, _ in found.values()) or int(bool(node.queries))
    own = iterates(node.step)
    return 0 if left == 1 and own else left, own or any(more for _, more in found.values())


class _Writing:
    """Writes the query of one template."""

    def __init__(self, queries: Mapping[int, Candidate]):
        self._queries = queries
        self._defines: list[ast.Define] = []
        self._names: dict[ast.Define, str] = {}
        """The names of the graph patterns of the steps that all branches have."""
        self._nodes = self._occurrences = 0
        self._members: list[tuple[int, ...]] = []
        self._branches: list[tuple[int, ...]] = []

    def template(self, node: _Node) -> Template:
        """The template of the queries at a node."""
        steps = self._steps(node, (), is_common=True)
        first = self._queries[self._members[0][0]].query
        columns = dict.fromkeys(
            name for some in self._members for n in some for name in self._queries[n].columns
        )
        query = replace(
            _frame(first),
            form=ast.Select(tuple(ast.Projection(ast.Var(name)) for name in columns)),
            sequence=ast.Sequence(steps),
            defines=tuple(self._defines),
        )
        return Template(query, tuple(self._members), False, branches=tuple(self._branches))

    def _steps(
        self, node: _Node, before: tuple[int, ...], *, is_common: bool
    ) -> tuple[ast.Step, ...]:
        """The steps from a node on; `before` are the occurrences of the steps before it."""
        steps: list[ast.Step] = []
        while True:
            steps.append(self._step(node, is_common=is_common))
            count = len(_references(steps[-1]))
            before += tuple(range(self._occurrences, self._occurrences + count))
            self._occurrences += count
            if len(node.children) != 1:
                break
            (node,) = node.children.values()
        if not node.children:
            self._members.append(tuple(node.queries))
            self._branches.append(before)
            return tuple(steps)
        operands = tuple(
            ast.Sequence(self._steps(child, before, is_common=False))
            for child in node.children.values()
        )
        return (*steps, ast.Step(None, ast.Disjunction(operands)))

    def _step(self, node: _Node, *, is_common: bool) -> ast.Step:
        """The step of a node, and its graph patterns under names of the template."""
        assert node.step is not None
        self._nodes += 1
        names: dict[str, str] = {}
        for define in node.defines:
            known = self._names.get(define) if is_common else None
            if known is None:
                known = define.name if is_common else f".{self._nodes}.{define.name}"
                self._defines.append(replace(define, name=known))
                if is_common:
                    self._names[define] = known
            names[define.name] = known

        def renamed(part: object) -> object:
            return replace(part, name=names[part.name]) if isinstance(part, ast.GpmRef) else None

        step: ast.Step = ast.rebuilt(node.step, renamed)
        return step
