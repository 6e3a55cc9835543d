"""Property paths over one graph.

`compile_path` compiles a path to a function from a graph, its two ends (None: free) and what counts
steps, to the pairs that the path connects, as a bag: sequences and alternatives count every way,
`*`, `+` and `?` every pair once. A free end of a path that may be empty ranges over the nodes of
the graph; a given end need not be a node of the graph.

Cost: a closure visits each node that it reaches once; with two free ends it starts from every node.
Each node that it visits, and each pair that it finds there, is a step of the event.
Source: SPARQL 1.1 sections 9 and 18.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, assert_never

from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.rdf.event import Term
from spaseq.rdf.graph import Graph, Pair

Count: TypeAlias = Callable[[int], None]
PathOf: TypeAlias = Callable[[Graph, Term | None, Term | None, Count], Iterable[Pair]]


def compile_path(path: ast.Path) -> PathOf:
    """The function from a graph and two ends to the pairs that a path connects."""
    match path:
        case ast.Iri():
            return _link(constant(path))
        case ast.InversePath(inner):
            return _inverse(compile_path(inner))
        case ast.SequencePath(paths):
            found = compile_path(paths[0])
            for part in paths[1:]:
                found = _sequence(found, compile_path(part))
            return found
        case ast.AlternativePath(paths):
            return _alternative([compile_path(part) for part in paths])
        case ast.RepeatPath(inner, modifier):
            return _closure(
                compile_path(inner), least=0 if modifier != "+" else 1, once=modifier == "?"
            )
        case ast.NegatedPath(forward, inverse):
            return _negated(
                path, [constant(iri) for iri in forward], [constant(iri) for iri in inverse]
            )
        case _:
            assert_never(path)


def nullable(path: ast.Var | ast.Path) -> bool:
    """Whether the path may have length zero, and so connects every node with itself."""
    match path:
        case ast.InversePath(inner):
            return nullable(inner)
        case ast.SequencePath(paths):
            return all(map(nullable, paths))
        case ast.AlternativePath(paths):
            return any(map(nullable, paths))
        case ast.RepeatPath(inner, modifier):
            return modifier != "+" or nullable(inner)
        case ast.Var() | ast.Iri() | ast.NegatedPath():
            return False
        case _:
            assert_never(path)


def _link(predicate: Term) -> PathOf:
    def pairs(
        graph: Graph, subject: Term | None, object: Term | None, count: Count
    ) -> Iterable[Pair]:
        if subject is None and object is None:
            return graph.pairs(predicate)
        return [(s, o) for s, _, o in graph.match(subject, predicate, object)]

    return pairs


def _inverse(inner: PathOf) -> PathOf:
    def pairs(
        graph: Graph, subject: Term | None, object: Term | None, count: Count
    ) -> Iterable[Pair]:
        return [(s, o) for o, s in inner(graph, object, subject, count)]

    return pairs


def _sequence(first: PathOf, second: PathOf) -> PathOf:
    def pairs(
        graph: Graph, subject: Term | None, object: Term | None, count: Count
    ) -> Iterable[Pair]:
        # Start at the given end. The pairs of the first half then give the second its start.
        if subject is None and object is not None:
            return [
                (start, object)
                for middle, _ in second(graph, None, object, count)
                for start, _ in first(graph, None, middle, count)
            ]
        return [
            (start, end)
            for start, middle in first(graph, subject, None, count)
            for _, end in second(graph, middle, object, count)
        ]

    return pairs


def _alternative(choices: list[PathOf]) -> PathOf:
    def pairs(
        graph: Graph, subject: Term | None, object: Term | None, count: Count
    ) -> Iterable[Pair]:
        return [pair for choice in choices for pair in choice(graph, subject, object, count)]

    return pairs


def _closure(inner: PathOf, least: int, once: bool) -> PathOf:
    def reach(graph: Graph, start: Term, backwards: bool, count: Count) -> dict[Term, None]:
        seen: dict[Term, None] = {}
        frontier = [start]
        if least == 0:
            seen[start] = None
        while frontier:
            node = frontier.pop()
            if backwards:
                steps = [s for s, _ in inner(graph, None, node, count)]
            else:
                steps = [o for _, o in inner(graph, node, None, count)]
            count(1 + len(steps))
            for step in steps:
                if step not in seen:
                    seen[step] = None
                    if not once:
                        frontier.append(step)
        return seen

    def pairs(
        graph: Graph, subject: Term | None, object: Term | None, count: Count
    ) -> Iterable[Pair]:
        if subject is not None:
            reached = reach(graph, subject, backwards=False, count=count)
            if object is not None:
                return [(subject, object)] if object in reached else []
            return [(subject, end) for end in reached]
        if object is not None:
            return [(start, object) for start in reach(graph, object, backwards=True, count=count)]
        return (
            (start, end)
            for start in graph.nodes
            for end in reach(graph, start, backwards=False, count=count)
        )

    return pairs


def _negated(path: ast.NegatedPath, forward: list[Term], inverse: list[Term]) -> PathOf:
    # `!(^a)` alone looks only backwards; `!(a)` and `!()` only forwards.
    ahead = bool(path.forward) or not path.inverse
    back = bool(path.inverse)

    def pairs(
        graph: Graph, subject: Term | None, object: Term | None, count: Count
    ) -> Iterable[Pair]:
        found: list[Pair] = []
        if ahead:
            found += [(s, o) for s, p, o in graph.match(subject, None, object) if p not in forward]
        if back:
            found += [(s, o) for o, p, s in graph.match(object, None, subject) if p not in inverse]
        return found

    return pairs
