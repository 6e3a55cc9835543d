"""Random graph patterns, graphs and knowledge bases, small enough to meet each other."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import strategies as st

from spaseq.parser import ast

EX = "http://example.org/"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

NAMES = ("a", "b", "c", "d")
NODES = tuple(EX + name for name in ("m", "n", "o"))
PREDICATES = tuple(EX + name for name in ("p", "q", "r"))
GRAPHS = tuple(EX + name for name in ("g", "h"))

variables = st.sampled_from(NAMES).map(ast.Var)
nodes = st.sampled_from(NODES).map(ast.Iri)
numbers = st.integers(0, 2).map(lambda number: ast.Literal(str(number), INTEGER))
constants = nodes | numbers
predicates = st.sampled_from(PREDICATES).map(ast.Iri)
blanks = st.sampled_from(("x", "y")).map(ast.BlankNode)


def facts() -> st.SearchStrategy[tuple[tuple[ox.NamedNode, ox.NamedNode, object], ...]]:
    subject = st.sampled_from(NODES).map(ox.NamedNode)
    object = subject | st.integers(0, 2).map(ox.Literal)
    fact = st.tuples(subject, st.sampled_from(PREDICATES).map(ox.NamedNode), object)
    return st.lists(fact, min_size=1, max_size=8, unique=True).map(tuple)


knowledge = st.dictionaries(st.sampled_from(GRAPHS).map(ox.NamedNode), facts(), max_size=2)

# ------------------------------------------------------------------ paths and triples

paths = st.recursive(
    predicates
    | st.builds(ast.InversePath, predicates)
    | st.builds(
        ast.NegatedPath,
        st.lists(predicates, max_size=1).map(tuple),
        st.lists(predicates, min_size=1, max_size=1).map(tuple),
    )
    | st.builds(ast.NegatedPath, st.tuples(predicates), st.just(())),
    lambda inner: (
        st.builds(ast.SequencePath, st.tuples(inner, inner))
        | st.builds(ast.AlternativePath, st.tuples(inner, inner))
        | st.builds(ast.InversePath, inner)
        | st.builds(ast.RepeatPath, inner, st.sampled_from("*+?"))
    ),
    max_leaves=3,
)

triples = st.builds(
    ast.Triple,
    variables | variables | nodes,
    predicates | predicates | predicates | st.sampled_from(("a", "d", "e")).map(ast.Var),
    variables | variables | constants,
)
path_triples = st.builds(ast.Triple, variables | constants, paths, variables | constants)

# ------------------------------------------------------------------ expressions

_operands = variables | constants
_comparisons = st.builds(
    ast.Binary, st.sampled_from(("=", "!=", "<", ">=")), _operands, _operands
)
_tests = _comparisons | st.builds(lambda v: ast.Call("BOUND", (v,)), variables)


def conditions(groups: st.SearchStrategy[ast.GroupGraphPattern]) -> st.SearchStrategy[ast.Expr]:
    exists = st.builds(ast.Exists, groups, st.booleans())
    return st.recursive(
        _tests | _tests | exists,
        lambda inner: (
            st.builds(ast.Binary, st.sampled_from(("&&", "||")), inner, inner)
            | st.builds(ast.Unary, st.just("!"), inner)
        ),
        max_leaves=2,
    )


values_blocks = st.one_of(
    st.builds(
        ast.Values,
        variables.map(lambda v: (v,)),
        st.lists(st.tuples(st.none() | constants), min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        ast.Values,
        st.just((ast.Var("a"), ast.Var("b"))),
        st.lists(
            st.tuples(st.none() | constants, st.none() | constants), min_size=1, max_size=2
        ).map(tuple),
    ),
)


# ------------------------------------------------------------------ groups


def _group(elements: list[ast.Element]) -> ast.GroupGraphPattern:
    return ast.GroupGraphPattern(tuple(elements))


def elements(
    groups: st.SearchStrategy[ast.GroupGraphPattern], exists: bool
) -> st.SearchStrategy[ast.Element]:
    names = st.sampled_from(GRAPHS).map(ast.Iri) | st.sampled_from(("g", "a")).map(ast.Var)
    tests = conditions(groups) if exists else _tests
    return st.one_of(
        triples,
        triples,
        st.builds(ast.Optional, groups),
        st.builds(ast.Union, st.tuples(groups, groups)),
        st.builds(ast.Minus, groups),
        st.builds(ast.SubGroup, groups),
        st.builds(ast.Filter, tests),
        st.builds(ast.Graph, names, groups),
        values_blocks,
        path_triples,
    )


_basic = st.lists(triples | path_triples, min_size=1, max_size=2).map(_group)


def patterns(exists: bool) -> st.SearchStrategy[ast.GroupGraphPattern]:
    return st.recursive(
        _basic,
        lambda groups: st.lists(elements(groups, exists), min_size=1, max_size=3).map(_group),
        max_leaves=5,
    )
