"""The operators of SPARQL's algebra on lists of rows.

A row is a tuple over the `schema` of its node; None is an unbound variable. Lists are bags, as in
SPARQL: duplicates count until `SELECT DISTINCT` or the evaluator removes them. Columns in `certain`
are never None, which allows hash joins; other shared columns are compared row by row. Invariant:
`run` never changes a list of another node, and a `static` node returns the same list each time.

Cost: joins are linear in their inputs and output, but quadratic if no shared column is certain.
Source: SPARQL 1.1 section 18.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

from spaseq.gpm.program import constant
from spaseq.gpm.python.expression import TruthOf
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.records import dataclass

Row: TypeAlias = tuple[Term | None, ...]
Rows: TypeAlias = Sequence[Row]
Key: TypeAlias = Callable[[Row], object]


@dataclass(frozen=True, slots=True)
class Node:
    """One operator with the operators that it reads; `lines` describes them for `explain`."""

    schema: tuple[str, ...]
    certain: frozenset[str]
    run: Callable[[Scope], Rows]
    lines: tuple[str, ...] = ()
    static: bool = False
    distinct: bool = False


_UNIT_ROWS: Rows = [()]
UNIT = Node((), frozenset(), lambda scope: _UNIT_ROWS, static=True, distinct=True)
"""The empty pattern: one solution that binds nothing."""


def indent(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines, indented by two columns."""
    return tuple("  " + line for line in lines)


def picker(columns: Sequence[int]) -> Callable[[Row], Row]:
    """The function that selects some columns of a row."""
    if not columns:
        return lambda row: ()
    if len(columns) == 1:
        (only,) = columns
        return lambda row: (row[only],)
    pick: Callable[[Row], Row] = itemgetter(*columns)
    return pick


# ------------------------------------------------------------------ shared columns of two nodes


@dataclass(frozen=True, slots=True)
class _Shared:
    """Shared columns of two nodes: `hard` ones are certain in both, `soft` ones are not."""

    schema: tuple[str, ...]
    certain: frozenset[str]
    left_key: Key
    right_key: Key
    soft: tuple[tuple[int, int], ...]
    rest: Callable[[Row], Row]
    hard: tuple[tuple[int, int], ...]

    @property
    def disjoint(self) -> bool:
        return not self.hard and not self.soft


def _shared_columns(left: Node, right: Node) -> _Shared:
    place = {name: column for column, name in enumerate(left.schema)}
    both = left.certain & right.certain
    shared = [
        (place[name], column, name) for column, name in enumerate(right.schema) if name in place
    ]
    hard = tuple((i, j) for i, j, name in shared if name in both)
    soft = tuple((i, j) for i, j, name in shared if name not in both)
    rest = [column for column, name in enumerate(right.schema) if name not in place]
    return _Shared(
        left.schema + tuple(right.schema[column] for column in rest),
        left.certain | right.certain,
        _key([i for i, _ in hard]),
        _key([j for _, j in hard]),
        soft,
        picker(rest),
        hard,
    )


def _key(columns: Sequence[int]) -> Key:
    if not columns:
        return lambda row: None
    return itemgetter(*columns)


def _merge(shared: _Shared) -> Callable[[Row, Row], Row | None]:
    """The function that unites two rows with equal hard columns; None for incompatible rows."""
    rest, soft = shared.rest, shared.soft
    if not soft:
        return lambda left, right: left + rest(right)

    def merge(left: Row, right: Row) -> Row | None:
        merged = None
        for i, j in soft:
            mine, its = left[i], right[j]
            if its is None or mine == its:
                continue
            if mine is not None:
                return None
            if merged is None:
                merged = list(left)
            merged[i] = its
        return (left if merged is None else tuple(merged)) + rest(right)

    return merge


def _indexer(node: Node, key: Key) -> Callable[[Scope], dict[object, list[Row]]]:
    """The rows of a node by key; a static node is indexed once."""
    known: list[tuple[Rows, dict[object, list[Row]]]] = []

    def index(scope: Scope) -> dict[object, list[Row]]:
        rows = node.run(scope)
        if known and known[0][0] is rows:
            return known[0][1]
        found: dict[object, list[Row]] = {}
        for row in rows:
            found.setdefault(key(row), []).append(row)
        if node.static:
            known[:] = [(rows, found)]
        return found

    return index


# ------------------------------------------------------------------ joins


def join(left: Node, right: Node) -> Node:
    """SPARQL's Join: the unions of compatible rows."""
    if left is UNIT:
        return right
    shared = _shared_columns(left, right)
    merge, key = _merge(shared), shared.left_key
    index = _indexer(right, shared.right_key)

    def run(scope: Scope) -> Rows:
        rows = left.run(scope)
        if not rows:
            return rows
        table = index(scope)
        return scope.collect(
            merged
            for row in rows
            for other in table.get(key(row), ())
            if (merged := merge(row, other)) is not None
        )

    lines = (*left.lines, _title("join", shared), *indent(right.lines))
    static = left.static and right.static
    return Node(shared.schema, shared.certain, remembered(run) if static else run, lines, static)


def _title(name: str, shared: _Shared) -> str:
    names = (shared.schema[i] for i, _ in (*shared.hard, *shared.soft))
    on = " ".join(f"?{name}" for name in names)
    return f"{name} on {on}" if on else f"{name} (no shared variable)"


def remembered(run: Callable[[Scope], Rows]) -> Callable[[Scope], Rows]:
    """Evaluate a node that does not depend on events once per KB."""
    known: list[tuple[object, object, Rows]] = []

    def once(scope: Scope) -> Rows:
        if known and known[0][0] is scope.snapshot and known[0][1] == scope.kb_graphs:
            return known[0][2]
        rows = run(scope)
        known[:] = [(scope.snapshot, scope.kb_graphs, rows)]
        return rows

    return once


def left_join(
    left: Node,
    right: Node,
    condition: TruthOf | None,
    extend: Callable[[Scope, Rows], Rows] | None = None,
) -> Node:
    """SPARQL's LeftJoin; `extend`, if given, joins `right` to rows of `left` by look-ups."""
    shared = _shared_columns(left, right)
    merge, key = _merge(shared), shared.left_key
    index = _indexer(right, shared.right_key)
    padding = (None,) * (len(shared.schema) - len(left.schema))

    def partners(scope: Scope, rows: Rows) -> Callable[[Row], Rows]:
        if extend is not None:
            seeded = extend
            return lambda row: seeded(scope, [row])
        table = index(scope)
        return lambda row: scope.collect(
            merged for other in table.get(key(row), ()) if (merged := merge(row, other)) is not None
        )

    def run(scope: Scope) -> Rows:
        rows = left.run(scope)
        if not rows:
            return rows
        found = partners(scope, rows)

        def padded() -> Iterator[Row]:
            for row in rows:
                matches = found(row)
                if condition is not None:
                    matches = [match for match in matches if condition(match, scope)]
                yield from matches or (row + padding,)

        return scope.collect(padded())

    title = _title("optional" if condition is None else "optional, with a condition,", shared)
    return Node(
        shared.schema,
        left.certain,
        run,
        (*left.lines, title, *indent(right.lines)),
        distinct=left.distinct and right.distinct,
    )


def minus(left: Node, right: Node) -> Node:
    """SPARQL's Minus: drop the rows that a compatible row of `right` shares a variable with."""
    shared = _shared_columns(left, right)
    if shared.disjoint:
        return left
    key, soft = shared.left_key, shared.soft
    index = _indexer(right, shared.right_key)
    anchored = bool(shared.hard)

    def excludes(row: Row, other: Row) -> bool:
        common = anchored
        for i, j in soft:
            mine, its = row[i], other[j]
            if mine is not None and its is not None:
                if mine != its:
                    return False
                common = True
        return common

    def run(scope: Scope) -> Rows:
        rows = left.run(scope)
        if not rows:
            return rows
        table = index(scope)
        return [
            row
            for row in rows
            if not any(excludes(row, other) for other in table.get(key(row), ()))
        ]

    lines = (*left.lines, _title("minus", shared), *indent(right.lines))
    return Node(left.schema, left.certain, run, lines, distinct=left.distinct)


# ------------------------------------------------------------------ other operators


def union(parts: Sequence[Node]) -> Node:
    """The rows of all parts."""
    schema = tuple(dict.fromkeys(name for part in parts for name in part.schema))
    aligned = [align(part, schema) for part in parts]

    def run(scope: Scope) -> Rows:
        return [row for part in aligned for row in part.run(scope)]

    lines = ["union"]
    for part in parts:
        lines += ["  alternative", *indent(indent(part.lines))]
    certain = frozenset.intersection(*(part.certain for part in parts))
    static = all(part.static for part in parts)
    return Node(schema, certain, remembered(run) if static else run, tuple(lines), static)


def align(node: Node, schema: tuple[str, ...]) -> Node:
    """The same solutions over another list of columns; omitted columns are dropped."""
    if node.schema == schema:
        return node
    place = {name: column for column, name in enumerate(node.schema)}
    missing = len(node.schema)
    pick = picker([place.get(name, missing) for name in schema])
    inner = node.run
    padded = any(name not in place for name in schema)

    def run(scope: Scope) -> Rows:
        if padded:
            return [pick((*row, None)) for row in inner(scope)]
        return [pick(row) for row in inner(scope)]

    keeps_all = set(place) <= set(schema)
    return Node(
        schema,
        node.certain & frozenset(schema),
        remembered(run) if node.static else run,
        node.lines,
        node.static,
        node.distinct and keeps_all,
    )


def select(node: Node, condition: TruthOf, title: str) -> Node:
    """The rows for which the condition is true."""
    inner = node.run

    def run(scope: Scope) -> Rows:
        return [row for row in inner(scope) if condition(row, scope)]

    lines = (*node.lines, title)
    return Node(node.schema, node.certain, run, lines, distinct=node.distinct)


def extend(node: Node, name: str, term: Callable[[Row, Scope], Term | None], title: str) -> Node:
    """Add a column; a column of this name that exists must agree with the value."""
    inner = node.run
    if name in node.schema:
        column = node.schema.index(name)

        def agree(scope: Scope) -> Rows:
            out = []
            for row in inner(scope):
                value = term(row, scope)
                if value is None or row[column] == value:
                    out.append(row)
                elif row[column] is None:
                    out.append((*row[:column], value, *row[column + 1 :]))
            return out

        return Node(node.schema, node.certain, agree, (*node.lines, title))

    def run(scope: Scope) -> Rows:
        return [(*row, term(row, scope)) for row in inner(scope)]

    schema = (*node.schema, name)
    return Node(schema, node.certain, run, (*node.lines, title), distinct=node.distinct)


def without_parameters(node: Node, parameters: frozenset[str]) -> Node:
    """Drop the columns that `outer` binds, and the rows that differ from these bindings."""
    bound = [(c, name) for c, name in enumerate(node.schema) if name in parameters]
    if not bound:
        return node
    inner = node.run

    def run(scope: Scope) -> Rows:
        outer = scope.outer
        return [
            row
            for row in inner(scope)
            if all(row[column] is None or row[column] == outer[name] for column, name in bound)
        ]

    kept = tuple(name for name in node.schema if name not in parameters)
    return align(Node(node.schema, node.certain, run, node.lines), kept)


def values_node(values: ast.Values) -> Node:
    """`VALUES`: the rows of the block; a column is certain if no row leaves it `UNDEF`."""
    names = tuple(variable.name for variable in values.variables)
    rows: Rows = [
        tuple(None if cell is None else constant(cell) for cell in row) for row in values.rows
    ]
    certain = frozenset(
        name for column, name in enumerate(names) if all(row[column] is not None for row in rows)
    )
    title = f"values of {' '.join('?' + name for name in names)}"
    return Node(names, certain, lambda scope: rows, (title,), static=True)
