"""Random graph patterns, graphs and knowledge bases, small enough to meet each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pyoxigraph as ox
from hypothesis import strategies as st

from spaseq.parser import ast

EX = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

NAMES = ("a", "b", "c", "d")
NODES = tuple(EX + name for name in ("m", "n", "o"))
PREDICATES = tuple(EX + name for name in ("p", "q", "r"))
GRAPHS = tuple(EX + name for name in ("g", "h"))

_Z = ox.NamedNode(EX + "z")
EVERY_NODE = tuple(
    (ox.NamedNode(NODES[0]), _Z, node)
    for node in (*map(ox.NamedNode, NODES), *map(ox.Literal, range(3)))
)
"""Every constant is a node of every graph: an empty path from one that is not has a solution
in SPARQL (section 18.4) and in W3C's tests, but not in pyoxigraph."""


def facts() -> st.SearchStrategy[tuple[Any, ...]]:
    subject = st.sampled_from(NODES).map(ox.NamedNode)
    object = subject | st.integers(0, 2).map(ox.Literal)
    fact = st.tuples(subject, st.sampled_from(PREDICATES).map(ox.NamedNode), object)
    return st.lists(fact, max_size=8, unique=True).map(lambda found: (*found, *EVERY_NODE))


knowledge = st.fixed_dictionaries({ox.NamedNode(name): facts() for name in GRAPHS})
"""Both graphs exist: `GRAPH <absent> {}` has a solution in pyoxigraph, but none in SPARQL."""


class PatternMaker:
    """Draws patterns; `kinds` are the elements that may occur besides triples."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any], kinds: Sequence[str]):
        self._draw = draw
        self._kinds = kinds
        self._fresh = count(1)

    def pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    # -------------------------------------------------------------- terms and paths

    def variable(self) -> ast.Var:
        return ast.Var(self.pick(*NAMES))

    def fresh(self) -> ast.Var:
        return ast.Var(f"x{next(self._fresh)}")

    def constant(self) -> ast.Iri | ast.Literal:
        value = self.pick(*NODES, 0, 1, 2)
        return ast.Iri(value) if isinstance(value, str) else ast.Literal(str(value), INTEGER)

    def operand(self) -> ast.Expr:
        return self.variable() if self.pick(True, True, False) else self.constant()

    def predicate(self) -> ast.Iri:
        return ast.Iri(self.pick(*PREDICATES))

    def path(self, depth: int, fixed: bool = False) -> ast.Path:
        """`fixed`: of sequences, alternatives and inverses only."""
        searched = () if fixed else ("!",) if depth == 0 else ("*+?", "!")
        match self.pick(*("iri", "^") if depth == 0 else ("/", "|", "^"), *searched):
            case "iri":
                return self.predicate()
            case "!":
                inverse = tuple(self.predicate() for _ in range(self.number(0, 1)))
                forward = tuple(self.predicate() for _ in range(self.number(1 - len(inverse), 1)))
                return ast.NegatedPath(forward, inverse)
            case "^":
                return ast.InversePath(self.path(depth - 1, fixed) if depth else self.predicate())
            case "/":
                return ast.SequencePath((self.path(depth - 1, fixed), self.path(depth - 1, fixed)))
            case "|":
                sides = (self.path(depth - 1, fixed), self.path(depth - 1, fixed))
                return ast.AlternativePath(sides)
        return ast.RepeatPath(self.path(depth - 1), self.pick("*", "+", "?"))

    def triple(self) -> ast.Triple:
        subject = self.variable() if self.pick(True, True, False) else ast.Iri(self.pick(*NODES))
        link = self.predicate() if self.number(0, 7) else ast.Var(self.pick("a", "d", "e"))
        return ast.Triple(subject, link, self.operand())

    # -------------------------------------------------------------- expressions

    def condition(self, depth: int) -> ast.Expr:
        kinds = ["=", "!=", "<", "bound", "and", "not"]
        if "exists" in self._kinds and depth > 0:
            kinds += ["exists"] * 4
        match self.pick(*kinds):
            case "bound":
                return ast.Call("BOUND", (self.variable(),))
            case "and":
                parts = [
                    ast.Binary("=", self.operand(), self.operand()),
                    ast.Call("BOUND", (self.variable(),)),
                ]
                return ast.Binary(self.pick("&&", "||"), *parts)
            case "not":
                return ast.Unary("!", ast.Binary("<", self.operand(), self.operand()))
            case "exists":
                # A substituted variable is no variable any more, so MINUS does not share it
                # (SPARQL 1.1 section 18.6); in pyoxigraph it does.
                inner = self._without(depth - 1, "minus", "bind")
                return ast.Exists(inner, self.pick(True, False))
            case operator:
                return ast.Binary(operator, self.operand(), self.operand())

    def _without(self, depth: int, *kinds: str) -> ast.GroupGraphPattern:
        kept = [kind for kind in self._kinds if kind not in kinds]
        inner = PatternMaker(self._draw, kept)
        inner._fresh = self._fresh
        return inner.group(depth)

    # -------------------------------------------------------------- groups

    def group(self, depth: int) -> ast.GroupGraphPattern:
        elements: list[ast.Element] = [self.element(depth) for _ in range(self.number(1, 3))]
        return ast.GroupGraphPattern(tuple(elements))

    def element(self, depth: int) -> ast.Element:
        kind = self.pick("triple", "triple", *self._kinds) if depth > 0 else "triple"
        match kind:
            case "optional":
                # pyoxigraph lets a BIND in here see the variables outside; SPARQL does not.
                return ast.Optional(self._without(depth - 1, "bind"))
            case "union":
                return ast.Union((self.group(depth - 1), self.group(depth - 1)))
            case "minus":
                return ast.Minus(self.group(depth - 1))
            case "group":
                return ast.SubGroup(self.group(depth - 1))
            case "filter" | "exists":
                return ast.Filter(self.condition(depth))
            case "bind":
                return ast.Bind(self.expression(), self.fresh())
            case "graph":
                # A group without a triple of its own, one that uses the graph's variable, or
                # MINUS under such a variable, is where pyoxigraph leaves SPARQL's definition.
                name = self.pick(*map(ast.Iri, GRAPHS), ast.Var("g"), ast.Var("g"))
                group = self._without(depth - 1, *("minus",) * isinstance(name, ast.Var))
                return ast.Graph(name, ast.GroupGraphPattern((self.triple(), *group.elements)))
            case "values":
                return self.values()
            case "path" | "fixed path":
                ends = (self.operand(), self.operand())
                path = self.path(self.number(0, 2), kind == "fixed path")
                return ast.Triple(ends[0], path, ends[1])
            case "select":
                return ast.SubGroup(ast.GroupGraphPattern((self.select(depth - 1),)))
        return self.triple()

    def expression(self) -> ast.Expr:
        return self.pick(
            self.operand(),
            ast.Binary("+", self.operand(), self.operand()),
            ast.Call("COALESCE", (self.variable(), self.constant())),
        )

    def values(self) -> ast.Values:
        names = self.pick(("a",), ("b",), ("a", "b"), ("c", "d"))
        rows = tuple(
            tuple(None if self.number(0, 3) == 0 else self.constant() for _ in names)
            for _ in range(self.number(1, 2))
        )
        return ast.Values(tuple(map(ast.Var, names)), rows)

    def select(self, depth: int) -> ast.SubSelect:
        where = self.group(depth)
        names = self.pick(("a",), ("b",), ("a", "b"))
        if self.pick(True, False):
            items = tuple(ast.Projection(ast.Var(name)) for name in names)
            return ast.SubSelect(self.pick(True, False), False, items, where)
        name = self.pick("COUNT", "MIN", "MAX", "SUM", "AVG")
        argument = None if name == "COUNT" and self.pick(True, False) else ast.Var("c")
        call = ast.Aggregate(name, argument, distinct=self.pick(True, False))
        keys = tuple(ast.Projection(ast.Var(name)) for name in names[: self.number(0, 2)])
        items = (*keys, ast.Projection(call, self.fresh()))
        return ast.SubSelect(False, False, items, where, group_by=keys)


@st.composite
def patterns(
    draw: Callable[[st.SearchStrategy[Any]], Any], kinds: Sequence[str], depth: int = 3
) -> ast.GroupGraphPattern:
    """Groups of up to `depth` levels."""
    return PatternMaker(draw, kinds).group(depth)
