"""The operators that the native matcher runs, as frozen data.

Every variable and blank node of a graph pattern has a slot; a row is one number per slot,
0 where nothing is bound. Rows of all operators have all slots, so joining two rows is
the union of their bindings. A tree of these nodes holds no state and no stream: it is
picklable, and a run links it to its terms when it starts.

Functions over trees name every operator, and raise for an unknown one.
Source: SPARQL 1.1 section 18.5; `lower` makes the trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

from spaseq.gpm.native.order import End, Step
from spaseq.gpm.native.path_automaton import PathAutomaton
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class Seed:
    """One row: that of the enclosing EXISTS or OPTIONAL, otherwise a row without bindings."""


@dataclass(frozen=True, slots=True)
class Basic:
    """The rows of `left`, each extended by all ways to match the triples."""

    left: Node
    steps: tuple[Step, ...]
    bound: frozenset[int]
    """The slots that rows of `left` usually bind; they determine the order of the steps."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The rows of `left`, each extended by all ways to match the triples of any chain.

    The meaning of a path of alternatives: a `Union` of basic patterns that start from `left`.
    """

    left: Node
    chains: tuple[tuple[Step, ...], ...]
    bound: frozenset[int]
    """As in `Basic`."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The rows of `left`, each extended by all pairs of nodes that a property path connects.

    Pairs are distinct: a path that connects two nodes in several ways gives one row.
    """

    left: Node
    subject: End
    object: End
    ahead: PathAutomaton
    """The path from the subject; `back` is the same path from the object."""
    back: PathAutomaton
    nodes: Step | None
    """The triples whose ends are all nodes of the event, if the path may have length zero."""
    text: str
    """For `explain`."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of all views that it reads."""
        nodes = () if self.nodes is None else (self.nodes,)
        return (*(link.step for link in self.ahead.links), *nodes)

    @property
    def slots(self) -> frozenset[int]:
        """The slots that it binds."""
        return frozenset(end for end in (self.subject, self.object) if isinstance(end, int))


@dataclass(frozen=True, slots=True)
class Join:
    """The unions of compatible rows; `keys` are bound in every row of both sides."""

    left: Node
    right: Node
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """Join, plus the rows of `left` that have no partner for which the conditions hold.

    If `seeded`, the right side is evaluated once for each row of the left, starting from it.
    """

    left: Node
    right: Node
    keys: tuple[int, ...]
    conditions: tuple[ast.Expr, ...]
    seeded: bool


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Minus:
    """The rows of `left` for which no compatible row of `right` binds a common slot."""

    left: Node
    right: Node
    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows for which the condition is true."""

    child: Node
    condition: ast.Expr


@dataclass(frozen=True, slots=True)
class Extend:
    """BIND: the rows with a slot bound to the value; a slot that is already bound must agree.

    `timed`: the expression sees the event's time in the slot of the `AT` variable.
    """

    child: Node
    slot: int
    expression: ast.Expr
    timed: bool


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """One aggregate of a GROUP, folded over the rows of a group.

    `fold` reads the value so far and the next one by the names of two slots: SUM and AVG add them,
    GROUP_CONCAT joins them, MIN and MAX test whether the next one replaces the value so far.
    """

    name: str
    distinct: bool
    slot: int
    """The slot of the value so far, and of the result."""
    text: str
    """For `explain`."""
    argument_slot: int = -1
    """The slot of an argument that is a variable; -1: the argument is an expression, or `*`."""
    argument: ast.Expr | None = None
    fold: ast.Expr | None = None
    other: ast.Expr | None = None
    """MIN, MAX: the opposite test. GROUP_CONCAT: the value of the first row."""
    final: ast.Expr | None = None
    """AVG: the result, from the sum and the number of values."""

    @property
    def expressions(self) -> tuple[ast.Expr, ...]:
        """The expressions that it evaluates."""
        some = (self.argument, self.fold, self.other, self.final)
        return tuple(expression for expression in some if expression is not None)


@dataclass(frozen=True, slots=True)
class Group:
    """GROUP BY: one row for each group of rows that agree in the slots of `keys`.

    It binds the keys and the slots of the aggregates. Without keys there is one group, which may be
    empty. `value` is the slot by which the aggregates read the next value.
    """

    child: Node
    keys: tuple[int, ...]
    columns: tuple[AggregateColumn, ...]
    value: int


@dataclass(frozen=True, slots=True)
class Table:
    """Rows known at compile time: `VALUES`."""

    slots: tuple[int, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True, slots=True)
class KbTable:
    """The rows of a pattern that only the KB decides: computed when a run starts, or requested.

    `certain` are the slots that every solution binds; a silent service that fails binds none.
    """

    slots: tuple[int, ...]
    variables: tuple[str, ...]
    pattern: ast.Graph | ast.Service
    certain: frozenset[int]


Node: TypeAlias = (
    Seed
    | Basic
    | Alternatives
    | Reach
    | Join
    | LeftJoin
    | Union
    | Minus
    | Filter
    | Extend
    | Group
    | Table
    | KbTable
)


def below(node: Node) -> tuple[Node, ...]:
    """The operators that a node reads."""
    match node:
        case Basic(left) | Alternatives(left) | Reach(left):
            return (left,)
        case Join(left, right) | LeftJoin(left, right) | Minus(left, right):
            return (left, right)
        case Union(parts):
            return parts
        case Filter(child) | Extend(child) | Group(child):
            return (child,)
        case Seed() | Table() | KbTable():
            return ()
        case _:
            assert_never(node)


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for child in below(node):
        yield from walk(child)


def steps_of(node: Node) -> tuple[Step, ...]:
    """The triples that an operator matches itself, without the steps that take a term apart."""
    match node:
        case Basic(_, steps):
            return tuple(step for step in steps if step.whole is None)
        case Alternatives(_, chains):
            return tuple(step for chain in chains for step in chain)
        case Reach():
            return node.steps
        case Seed() | Table() | KbTable() | Join() | LeftJoin() | Union() | Minus():
            return ()
        case Filter() | Extend() | Group():
            return ()
        case _:
            assert_never(node)


def certain(node: Node) -> frozenset[int]:
    """The slots that every row of an operator binds, unless a silent service has failed."""
    match node:
        case Basic(left, steps):
            return certain(left).union(*(step.slots for step in steps))
        case Alternatives(left, chains):
            return certain(left) | in_all(chains)
        case Reach(left):
            return certain(left) | node.slots
        case Join(left, right):
            return certain(left) | certain(right)
        case LeftJoin(left) | Minus(left):
            return certain(left)
        case Union(parts):
            return frozenset.intersection(*map(certain, parts))
        case Filter(child) | Extend(child):
            return certain(child)
        case Group(child, keys):
            return certain(child) & frozenset(keys)
        case Table(slots, rows):
            columns = enumerate(slots)
            return frozenset(s for c, s in columns if all(row[c] is not None for row in rows))
        case KbTable():
            return node.certain
        case Seed():
            return frozenset()
        case _:
            assert_never(node)


def in_all(chains: Sequence[Sequence[Step]]) -> frozenset[int]:
    """The slots that all chains bind."""
    found = (frozenset().union(*(step.slots for step in chain)) for chain in chains)
    return frozenset.intersection(*found)


def fed(node: Node, feeders: tuple[Node, ...] = ()) -> Iterator[tuple[KbTable, tuple[Node, ...]]]:
    """The KB tables below a node, in the order of evaluation, each with its feeders.

    A feeder is an operator whose rows the table is joined to, or subtracted from; the nearest is
    the first. A row of the table that agrees with no row of a feeder does not affect the result.
    """
    match node:
        case KbTable():
            yield node, feeders
        case Join(left, right) | LeftJoin(left, right) | Minus(left, right):
            yield from fed(left, feeders)
            yield from fed(right, (left, *feeders))
        case Basic(left) | Alternatives(left) | Reach(left):
            yield from fed(left, feeders)
        case _:
            for child in below(node):
                yield from fed(child, feeders)
