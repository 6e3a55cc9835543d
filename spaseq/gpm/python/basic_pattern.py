"""Basic graph patterns: rows → rows that also match triples of the active graph.

A pattern is a chain of steps, one for each triple, in an order chosen at compile time (`order`):
never a cross product while a connected triple remains. Each step looks its triples up by the bound
ends (an index nested-loop join), so a chain can start from the empty row or from the rows of the
operator before it.

The blank nodes of the pattern are variables with a scope of the pattern; their columns are named
`_:label`. Cost: one look-up for each row and step, plus the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.native import order
from spaseq.gpm.program import constant, triple_text
from spaseq.gpm.python.property_path import Count, compile_path, nullable
from spaseq.gpm.python.row_operators import Node, Row, Rows, picker
from spaseq.gpm.python.scope import Scope
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.graph import Graph
from spaseq.records import dataclass

Step: TypeAlias = Callable[[Graph, Rows], Iterable[Row]]
_LINK = ox.NamedNode("urn:spaseq:any-constant-predicate")
FREE_PATH = 1000.0
"""The expected pairs of a path neither end of which is bound."""

End: TypeAlias = "Term | int | str"
"""A term, the column of a bound variable, or the name of a variable bound here."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """The step of a path, whose searches count."""

    extended: Callable[[Graph, Rows, Count], Iterable[Row]]


def column_name(term: ast.Var | ast.BlankNode) -> str:
    """The name of the column of a variable or blank node."""
    return term.name if isinstance(term, ast.Var) else "_:" + term.label


def _unknowns(triple: ast.Triple) -> list[str]:
    terms = (triple.subject, triple.predicate, triple.object, triple.of)
    return [column_name(term) for term in terms if isinstance(term, ast.Var | ast.BlankNode)]


def ordered(triples: Sequence[ast.Triple], bound: frozenset[str]) -> list[ast.Triple]:
    """The triples in the order of `order`; a path with two free ends is last."""
    slots: dict[str, int] = {}
    for name in (*bound, *(name for triple in triples for name in _unknowns(triple))):
        slots.setdefault(name, len(slots))

    def end(term: ast.Term) -> order.End:
        if isinstance(term, ast.Var | ast.BlankNode):
            return slots[column_name(term)]
        return constant(term)

    steps: list[order.Step] = []
    sizes: list[float] = []
    for triple in triples:
        plain = isinstance(triple.predicate, ast.Var | ast.Iri)
        link = slots[triple.predicate.name] if isinstance(triple.predicate, ast.Var) else _LINK
        whole = None if triple.of is None else slots[column_name(triple.of)]
        step = order.Step(end(triple.subject), link, end(triple.object), "", whole=whole)
        steps.append(step)
        sizes.append(order.guessed(steps[-1]) if plain else FREE_PATH)
    known = frozenset(slots[name] for name in bound)
    return [triples[place] for place in order.positions(steps, known, sizes)]


class BasicPattern:
    """A chain of steps over rows of `schema`; the scope's `outer` binds `parameters`."""

    def __init__(
        self,
        triples: Sequence[ast.Triple],
        schema: tuple[str, ...],
        parameters: frozenset[str],
    ):
        names = [name for triple in triples for name in _unknowns(triple)]
        self._seeds = tuple(dict.fromkeys(name for name in names if name in parameters))
        columns = list(schema + self._seeds)
        self._steps: list[Step | PathStep] = []
        lines = []
        for triple in ordered(triples, frozenset(columns)):
            lines.append(_describe(triple, columns))
            self._steps.append(_step(triple, columns))
        self.lines = tuple(lines)
        kept = [i for i, name in enumerate(columns) if name not in self._seeds]
        self.schema = tuple(columns[i] for i in kept)
        self._keep = picker(kept) if self._seeds else None

    def extend(self, scope: Scope, rows: Rows) -> Rows:
        """The rows, extended in all ways that match the triples."""
        graph = scope.graph
        if self._seeds:
            seeds = tuple(scope.outer[name] for name in self._seeds)
            rows = [row + seeds for row in rows]
        for step in self._steps:
            if isinstance(step, PathStep):
                rows = scope.collect(step.extended(graph, rows, scope.take))
            else:
                rows = scope.collect(step(graph, rows))
            if not rows:
                return rows
        keep = self._keep
        return rows if keep is None else [keep(row) for row in rows]


def basic_node(left: Node, triples: Sequence[ast.Triple], parameters: frozenset[str]) -> Node:
    """`left` joined with the triples; their shared columns must be certain in `left`."""
    pattern = BasicPattern(triples, left.schema, parameters)
    rows_of, extend = left.run, pattern.extend

    def run(scope: Scope) -> Rows:
        return extend(scope, rows_of(scope))

    plain = all(isinstance(triple.predicate, ast.Var | ast.Iri) for triple in triples)
    return Node(
        pattern.schema,
        left.certain | frozenset(pattern.schema).difference(left.schema),
        run,
        left.lines + pattern.lines,
        distinct=left.distinct and plain and not any(n.startswith("_:") for n in pattern.schema),
    )


def _describe(triple: ast.Triple, columns: Sequence[str]) -> str:
    bound = [name for name in _unknowns(triple) if name in columns]
    by = "by " + " ".join(f"?{name}" for name in dict.fromkeys(bound)) if bound else "scan"
    return f"match {triple_text(triple)}  ({by})"


# ------------------------------------------------------------------ steps


def _step(triple: ast.Triple, columns: list[str]) -> Step | PathStep:
    """The step of a triple; appends the variables it binds to `columns`."""
    place = {name: column for column, name in enumerate(columns)}
    subject = _end(triple.subject, place)
    object = _end(triple.object, place)
    predicate = triple.predicate
    step: Step | PathStep
    if triple.of is not None:
        ends = (subject, _end(_named(predicate), place), object)
        step, new = _part_step(place[column_name(triple.of)], ends)
    elif isinstance(predicate, ast.Iri):
        step, new = _constant_step(subject, constant(predicate), object)
    elif isinstance(predicate, ast.Var):
        step, new = _open_step(subject, _end(predicate, place), object)
    else:
        step, new = _path_step(predicate, subject, object)
    columns.extend(new)
    return step


def _end(term: ast.Term, place: Mapping[str, int]) -> End:
    if isinstance(term, ast.Var | ast.BlankNode):
        name = column_name(term)
        return place.get(name, name)
    return constant(term)


def _named(predicate: ast.Var | ast.Path) -> ast.Var | ast.Iri:
    assert isinstance(predicate, ast.Var | ast.Iri), "a triple term has no paths"
    return predicate


def _part_step(whole: int, ends: tuple[End, End, End]) -> tuple[Step, list[str]]:
    """The step that takes the triple term in a column apart."""
    new = list(dict.fromkeys(end for end in ends if isinstance(end, str)))

    def step(graph: Graph, rows: Rows) -> Iterable[Row]:
        for row in rows:
            term = row[whole]
            if not isinstance(term, ox.Triple):
                continue
            found: dict[str, Term] = {}
            for end, part in zip(ends, term, strict=True):
                known: Term | None
                if isinstance(end, str):
                    known = found.setdefault(end, part)
                else:
                    known = row[end] if isinstance(end, int) else end
                if known != part:
                    break
            else:
                yield (*row, *(found[name] for name in new))

    return step, new


def _constant_step(subject: End, predicate: Term, object: End) -> tuple[Step, list[str]]:
    if isinstance(subject, str):
        if not isinstance(object, str):
            return _follow_back(predicate, object), [subject]
        if subject == object:
            return _loops(predicate), [subject]
        return _scan(predicate), [subject, object]
    if isinstance(object, str):
        return _follow(subject, predicate), [object]
    return _check(subject, predicate, object), []


def _scan(predicate: Term) -> Step:
    def scan(graph: Graph, rows: Rows) -> Iterable[Row]:
        pairs = graph.pairs(predicate)
        if len(rows) == 1 and not rows[0]:
            return pairs
        return (row + pair for row in rows for pair in pairs)

    return scan


def _loops(predicate: Term) -> Step:
    def loops(graph: Graph, rows: Rows) -> Iterable[Row]:
        found = [(s,) for s, o in graph.pairs(predicate) if s == o]
        return (row + one for row in rows for one in found)

    return loops


def _follow(subject: Term | int, predicate: Term) -> Step:
    if isinstance(subject, int):
        column = subject

        def follow(graph: Graph, rows: Rows) -> Iterable[Row]:
            objects = graph.objects
            return ((*row, found) for row in rows for found in objects(row[column], predicate))

        return follow

    start = subject

    def follow_constant(graph: Graph, rows: Rows) -> Iterable[Row]:
        found = graph.objects(start, predicate)
        return ((*row, one) for row in rows for one in found)

    return follow_constant


def _follow_back(predicate: Term, object: Term | int) -> Step:
    if isinstance(object, int):
        column = object

        def follow(graph: Graph, rows: Rows) -> Iterable[Row]:
            subjects = graph.subjects
            return ((*row, found) for row in rows for found in subjects(predicate, row[column]))

        return follow

    end = object

    def follow_constant(graph: Graph, rows: Rows) -> Iterable[Row]:
        found = graph.subjects(predicate, end)
        return ((*row, one) for row in rows for one in found)

    return follow_constant


def _getter(end: End) -> Callable[[Row], Term | None]:
    """The term at an end of a row; None for a free end."""
    if isinstance(end, int):
        column = end
        return lambda row: row[column]
    if isinstance(end, str):
        return lambda row: None
    return lambda row: end


def _check(subject: End, predicate: Term, object: End) -> Step:
    start, end = _getter(subject), _getter(object)

    def check(graph: Graph, rows: Rows) -> Iterable[Row]:
        return (row for row in rows if graph.contains(start(row), predicate, end(row)))

    return check


def _open_step(subject: End, predicate: End, object: End) -> tuple[Step, list[str]]:
    """The step of a triple whose predicate is a variable."""
    ends = (subject, predicate, object)
    new: list[str] = []
    taken: list[int] = []
    repeated: list[tuple[int, int]] = []
    for position, end in enumerate(ends):
        if isinstance(end, str):
            if end in new:
                repeated.append((taken[new.index(end)], position))
            else:
                new.append(end)
                taken.append(position)
    pick = picker(taken)
    start, link, stop = map(_getter, ends)

    def step(graph: Graph, rows: Rows) -> Iterable[Row]:
        return (
            row + pick(fact)
            for row in rows
            for fact in graph.match(start(row), link(row), stop(row))
            if all(fact[i] == fact[j] for i, j in repeated)
        )

    return step, new


def _path_step(path: ast.Path, subject: End, object: End) -> tuple[PathStep, list[str]]:
    pairs_of = compile_path(path)
    start, end = _getter(subject), _getter(object)
    new = list(dict.fromkeys(x for x in (subject, object) if isinstance(x, str)))
    loop = isinstance(subject, str) and subject == object
    taken = [] if not new else [0] if isinstance(subject, str) else [1]
    if len(new) == 2:
        taken = [0, 1]
    pick = picker(taken)
    # An empty path connects only nodes of the graph; the value of a variable need not be one.
    inside = [x for x in (subject, object) if isinstance(x, int)] if nullable(path) else []

    def extended(graph: Graph, rows: Rows, count: Count) -> Iterable[Row]:
        for row in rows:
            if inside and any(row[column] not in graph.nodes for column in inside):
                continue
            for pair in pairs_of(graph, start(row), end(row), count):
                if not loop or pair[0] == pair[1]:
                    yield row + pick(pair)

    return PathStep(extended), new
