"""Terms and patterns of the query: as run-time terms, and as text for people."""

from __future__ import annotations

import pyoxigraph as ox

from spaseq.parser import ast
from spaseq.parser.format import format_pattern

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


def constant(node: ast.Iri | ast.Literal) -> ox.NamedNode | ox.Literal:
    """The run-time term of an IRI or literal of the query."""
    if isinstance(node, ast.Iri):
        return ox.NamedNode(node.value)
    if node.language is not None:
        direction = None if node.direction is None else ox.BaseDirection(node.direction)
        return ox.Literal(node.lexical, language=node.language, direction=direction)
    if node.datatype == XSD_STRING:
        return ox.Literal(node.lexical)
    return ox.Literal(node.lexical, datatype=ox.NamedNode(node.datatype))


def triple_text(triple: ast.Triple) -> str:
    """A triple pattern on one line, without its dot."""
    text = format_pattern(ast.GroupGraphPattern((triple,)))
    return text.strip("{} \n").removesuffix(".").rstrip()
