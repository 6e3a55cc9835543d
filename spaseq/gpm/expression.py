"""SPARQL expressions → functions of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.graphs import NamedGraphs
from spaseq.gpm.sparql_text import Renderer
from spaseq.parser import ast
from spaseq.rdf.event import Event, Term


@dataclass(frozen=True, slots=True)
class Scope:
    """What `EXISTS` looks at: the event and the KB."""

    event: Event | None = None
    kb: NamedGraphs | None = None


Env: TypeAlias = Sequence[Term | None]
Evaluate: TypeAlias = Callable[[Env, Scope], Term | None]
Test: TypeAlias = Callable[[Env, Scope], bool]


def compile_expression(expr: ast.Expr, slots: Mapping[str, int]) -> Evaluate:
    text, names = _text(expr)

    def evaluate(env: Env, scope: Scope) -> Term | None:
        return _query(f"({text} AS ?r)", names, env, slots, scope)

    return evaluate


def compile_filter(expr: ast.Expr, slots: Mapping[str, int]) -> Test:
    text, names = _text(expr)

    def test(env: Env, scope: Scope) -> bool:
        value = _query(f"(IF({text}, true, false) AS ?r)", names, env, slots, scope)
        return isinstance(value, ox.Literal) and value.value == "true"

    return test


def _text(expr: ast.Expr) -> tuple[str, dict[str, str]]:
    r = Renderer()
    return r.expression(expr), r.names


def _query(
    select: str, names: dict[str, str], env: Env, slots: Mapping[str, int], scope: Scope
) -> Term | None:
    used = [(v, env[slots[n]]) for n, v in names.items() if n in slots]
    bound = [(v, t) for v, t in used if t is not None]
    store = ox.Store()
    if scope.event is not None:
        store.extend([ox.Quad(s, p, o) for s, p, o in scope.event.facts])
    if scope.kb is not None:
        for name in scope.kb.names:
            store.extend([ox.Quad(s, p, o, name) for s, p, o in scope.kb.triples(name)])
    home = ox.NamedNode("urn:spaseq:environment")
    triples = []
    for variable, value in bound:
        link = ox.NamedNode(f"urn:spaseq:{variable}")
        store.add(ox.Quad(home, link, value, home))
        triples.append(f"{home} {link} ?{variable} .")
    text = f"SELECT {select} {{ GRAPH {home} {{ {' '.join(triples)} }} }}"
    for solution in store.query(text):
        return solution["r"]
    return None
