"""The operators of a graph pattern → the numbers that the native matcher runs on.

A `FlatPattern` belongs to one run: it has terms and view keys of that run's dictionary and summary
graph. Operators follow those that they read, so the last one is the root; their steps, slots,
expressions and tables are ranges of the lists beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from typing import TypeAlias, assert_never

from spaseq.gpm import algebra
from spaseq.gpm.native.lower import Existences
from spaseq.gpm.native.order import Step
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.records import dataclass

Rows: TypeAlias = Sequence[Sequence[Term | None]]


class Operator(IntEnum):
    """What a `FlatNode` does; see `spaseq.gpm.algebra`.

    The `cpdef enum` of the same name in `_matcher.pxd` is compared with this list on import.
    """

    SEED = 0
    BASIC = 1
    JOIN = 2
    LEFT_JOIN = 3
    UNION = 4
    MINUS = 5
    FILTER = 6
    EXTEND = 7
    TABLE = 8
    ALTERNATIVES = 9
    REACH = 10
    GROUP = 11


class AggregateKind(IntEnum):
    """What an aggregate computes.

    The `cpdef enum` of the same name in `_matcher.pxd` is compared with this list on import.
    """

    COUNT_ROWS = 0
    COUNT = 1
    SUM = 2
    AVG = 3
    MIN = 4
    MAX = 5
    SAMPLE = 6
    GROUP_CONCAT = 7


@dataclass(frozen=True, slots=True)
class FlatAggregate:
    """One aggregate of a GROUP; expressions by number, -1 for a missing one."""

    kind: AggregateKind
    slot: int
    distinct: bool
    argument_slot: int
    argument: int
    fold: int
    other: int
    final: int


@dataclass(frozen=True, slots=True)
class FlatGrouping:
    """The keys, aggregates and value slot of a GROUP."""

    keys: tuple[int, ...]
    columns: tuple[FlatAggregate, ...]
    value_slot: int


@dataclass(frozen=True, slots=True)
class FlatNode:
    """One operator; -1 for a missing part."""

    operator: Operator
    left: int = -1
    right: int = -1
    first: int = 0
    end: int = 0
    """The range of its steps (BASIC, REACH) or operands (keys, the parts of a UNION, or the bounds
    of the chains of ALTERNATIVES), or the number of its table."""
    test_first: int = 0
    test_end: int = 0
    """The range of its expressions."""
    slot: int = -1
    flag: bool = False
    """LEFT_JOIN: seeded; EXTEND: timed."""
    part: int = -1
    """REACH: the number of its path; GROUP: of its grouping."""


@dataclass(slots=True)
class FlatPattern:
    """A pattern as lists of numbers."""

    nodes: list[FlatNode] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    orders: list[tuple[int, tuple[Step, ...], frozenset[int]]] = field(default_factory=list)
    """The steps that may be reordered: the first index, the steps, the slots bound before."""
    operands: list[int] = field(default_factory=list)
    expressions: list[ast.Expr] = field(default_factory=list)
    exists: dict[ast.Exists, int] = field(default_factory=dict)
    """The operator of each EXISTS."""
    tables: list[tuple[tuple[int, ...], Rows]] = field(default_factory=list)
    """(slots, rows) of each table."""
    paths: list[algebra.Reach] = field(default_factory=list)
    groupings: list[FlatGrouping] = field(default_factory=list)
    kb_tables: list[tuple[int, algebra.KbTable]] = field(default_factory=list)
    """The operators whose rows the KB decides; the run fills them."""


def flatten(root: algebra.Node, exists: Existences) -> FlatPattern:
    """The operators as numbers."""
    flattening = _Flattening(FlatPattern())
    for node, answer in exists.items():
        flattening.flat.exists[node] = flattening.node(answer)
    flattening.node(root)
    return flattening.flat


@dataclass(slots=True)
class _Flattening:
    """Appends operators to a flat pattern."""

    flat: FlatPattern

    def node(self, node: algebra.Node) -> int:
        """Append an operator and the operators that it reads; returns its number."""
        flat = self._flat(node)
        self.flat.nodes.append(flat)
        number = len(self.flat.nodes) - 1
        if isinstance(node, algebra.KbTable):
            self.flat.kb_tables.append((number, node))
        return number

    def _flat(self, node: algebra.Node) -> FlatNode:
        match node:
            case algebra.Seed():
                return FlatNode(Operator.SEED)
            case algebra.Basic(left, steps, bound):
                below = self.node(left)
                first, end = self._steps(steps, bound)
                return FlatNode(Operator.BASIC, below, first=first, end=end)
            case algebra.Alternatives(left, chains, bound):
                below = self.node(left)
                ends = [len(self.flat.steps), *(self._steps(c, bound)[1] for c in chains)]
                first, end = self._operands(ends)
                return FlatNode(Operator.ALTERNATIVES, below, first=first, end=end)
            case algebra.Reach(left):
                below = self.node(left)
                first = len(self.flat.steps)
                self.flat.steps += node.steps
                self.flat.paths.append(node)
                part = len(self.flat.paths) - 1
                return FlatNode(
                    Operator.REACH, below, first=first, end=len(self.flat.steps), part=part
                )
            case algebra.Group(child, keys, columns, value):
                below = self.node(child)
                first, end = self._operands(keys)
                aggregates = tuple(map(self._aggregate, columns))
                self.flat.groupings.append(FlatGrouping(keys, aggregates, value))
                part = len(self.flat.groupings) - 1
                return FlatNode(Operator.GROUP, below, first=first, end=end, part=part)
            case algebra.Join(left, right, keys):
                return self._pair(Operator.JOIN, left, right, keys)
            case algebra.Minus(left, right, keys):
                return self._pair(Operator.MINUS, left, right, keys)
            case algebra.LeftJoin(left, right, keys, conditions, seeded):
                return self._pair(Operator.LEFT_JOIN, left, right, keys, conditions, seeded)
            case algebra.Union(parts):
                first, end = self._operands([self.node(part) for part in parts])
                return FlatNode(Operator.UNION, first=first, end=end)
            case algebra.Filter(child, condition):
                below = self.node(child)
                start, stop = self._tests((condition,))
                return FlatNode(Operator.FILTER, below, test_first=start, test_end=stop)
            case algebra.Extend(child, slot, expression, timed):
                below = self.node(child)
                start, stop = self._tests((expression,))
                return FlatNode(
                    Operator.EXTEND, below, test_first=start, test_end=stop, slot=slot, flag=timed
                )
            case algebra.Table(slots, rows):
                return self._table(slots, rows)
            case algebra.KbTable(slots):
                return self._table(slots, ())
            case _:
                assert_never(node)

    def _pair(
        self,
        operator: Operator,
        left: algebra.Node,
        right: algebra.Node,
        keys: Sequence[int],
        conditions: Sequence[ast.Expr] = (),
        seeded: bool = False,
    ) -> FlatNode:
        first_below, second_below = self.node(left), self.node(right)
        first, end = self._operands(keys)
        start, stop = self._tests(conditions)
        return FlatNode(operator, first_below, second_below, first, end, start, stop, flag=seeded)

    def _steps(self, steps: tuple[Step, ...], bound: frozenset[int]) -> tuple[int, int]:
        first = len(self.flat.steps)
        self.flat.orders.append((first, steps, bound))
        self.flat.steps += steps
        return first, len(self.flat.steps)

    def _operands(self, numbers: Sequence[int]) -> tuple[int, int]:
        first = len(self.flat.operands)
        self.flat.operands += numbers
        return first, len(self.flat.operands)

    def _tests(self, expressions: Sequence[ast.Expr]) -> tuple[int, int]:
        first = len(self.flat.expressions)
        self.flat.expressions += expressions
        return first, len(self.flat.expressions)

    def _aggregate(self, column: algebra.AggregateColumn) -> FlatAggregate:
        def number(expression: ast.Expr | None) -> int:
            return -1 if expression is None else self._tests((expression,))[0]

        rows = column.argument is None and column.argument_slot < 0
        return FlatAggregate(
            AggregateKind["COUNT_ROWS" if rows else column.name],
            column.slot,
            column.distinct,
            column.argument_slot,
            *map(number, (column.argument, column.fold, column.other, column.final)),
        )

    def _table(self, slots: tuple[int, ...], rows: Rows) -> FlatNode:
        self.flat.tables.append((slots, rows))
        return FlatNode(Operator.TABLE, first=len(self.flat.tables) - 1)
