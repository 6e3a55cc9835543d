"""Which triples of an event a pattern can use: what readers need not keep is the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.program import constant
from spaseq.parser import ast
from spaseq.rdf.event import Term

Use: TypeAlias = tuple[ox.NamedNode, ox.NamedNode | ox.Literal | None]
"""A predicate, and the object where the pattern names it."""
Uses: TypeAlias = "frozenset[tuple[Term, Term | None]] | None"
"""Predicates, and objects where these decide; None: any triple."""


def uses(nodes: Iterable[ast.Node]) -> frozenset[Use] | None:
    """The uses of all triple patterns in some patterns and expressions; None: any triple.

    A variable for predicate may be anything. So may the triples that a path of length zero
    or a negated one looks at: they see every node of the graph.
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
    """Some use that is not among others; (None, None) where it is any triple."""
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
    if isinstance(predicate, ast.Var):
        return None
    if isinstance(predicate, ast.Iri):
        named = constant(value) if isinstance(value, ast.Iri | ast.Literal) else None
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
