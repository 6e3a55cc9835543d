"""The triples of an event that a pattern can use; readers drop all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.rdf.event import Parameter, Term

Use: TypeAlias = tuple[ox.NamedNode, Parameter | None]
"""A predicate, and the object if the pattern names it."""
Uses: TypeAlias = "frozenset[tuple[Term, Term | None]] | None"
"""Predicates, each with an object or with None for all objects; None: any triple."""


def uses(nodes: Iterable[ast.Node]) -> frozenset[Use] | None:
    """The uses of all triple patterns in some patterns and expressions; None: any triple.

    A variable as predicate uses any triple. So does a path that is negated or that may have length
    zero, since it sees every node of the graph.
    """
    found: set[Use] = set()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Triple):
                named = _of_triple(part)
                if named is None:
                    return None
                found |= named
    return frozenset(found)


def outside(wanted: Uses, known: Uses) -> tuple[Term | None, Term | None] | None:
    """A use of `wanted` that is not in `known`, (None, None) for any triple; None if none is."""
    if known is None:
        return None
    if wanted is None:
        return None, None
    return next(
        (
            (predicate, value)
            for predicate, value in sorted(wanted, key=str)
            if (predicate, value) not in known and (predicate, None) not in known
        ),
        None,
    )


def _of_triple(triple: ast.Triple) -> set[Use] | None:
    predicate, value = triple.predicate, triple.object
    if triple.of is not None:
        return set()
    if isinstance(predicate, ast.Var):
        return None
    if isinstance(predicate, ast.Iri):
        named = constant(value) if isinstance(value, ast.Constant) else None
        return {(ox.NamedNode(predicate.value), named)}
    found: set[Use] = set()
    for part in ast.walk(predicate):
        if isinstance(part, ast.NegatedPath):
            return None
        if isinstance(part, ast.RepeatPath) and part.modifier != "+":
            return None
        if isinstance(part, ast.Iri):
            found.add((ox.NamedNode(part.value), None))
    return found
