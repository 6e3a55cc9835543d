"""Query variables fixed from outside (`bind=`, `--bind`) → constants in the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from typing import Any

import pyoxigraph as ox

from spaseq.errors import Span
from spaseq.parser import ast


def bind_parameters(
    queries: Sequence[ast.Query], values: Mapping[str, object]
) -> tuple[ast.Query, ...]:
    """The queries with each named variable replaced by its value.

    Values are pyoxigraph or rdflib terms (no blank nodes), or Python numbers, strings and
    booleans. A variable that a query itself assigns cannot be fixed.

    Raises:
        ValueError: for a name no query uses, or one that a query assigns.
    """
    constants = {name.lstrip("?$"): _constant(value) for name, value in values.items()}
    used = {node.name for node in ast.walk(tuple(queries)) if isinstance(node, ast.Var)}
    for name in constants:
        if name not in used:
            known = ", ".join(f"?{other}" for other in sorted(used)) or "none"
            raise ValueError(f"no query uses the variable ?{name}; their variables are {known}")
    for query in queries:
        for name in _assigned(query) & constants.keys():
            raise ValueError(f"the query itself assigns ?{name}: it cannot be fixed from outside")
    return tuple(_replaced(query, constants) for query in queries)


def _constant(value: object) -> ast.Iri | ast.Literal:
    if isinstance(value, ox.NamedNode):
        return ast.Iri(value.value)
    if isinstance(value, ox.Literal):
        return ast.Literal(value.value, value.datatype.value, value.language)
    if isinstance(value, bool):
        return _python_literal("true" if value else "false", "boolean")
    if isinstance(value, int):
        return _python_literal(str(value), "integer")
    if isinstance(value, Decimal):
        return _python_literal(format(value, "f"), "decimal")
    if isinstance(value, float):
        return _python_literal(repr(value), "double")
    n3 = getattr(value, "n3", None)
    if n3 is not None:
        return _constant(_parse_term(n3()))
    if isinstance(value, str):
        return ast.Literal(value)
    raise ValueError(f"{value!r} is no term that a variable can be fixed to")


def _python_literal(lexical: str, datatype: str) -> ast.Literal:
    return ast.Literal(lexical, "http://www.w3.org/2001/XMLSchema#" + datatype)


def _parse_term(text: str) -> object:
    for quad in ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.TURTLE):
        return quad.object
    raise ValueError(f"{text} is no RDF term")


def _assigned(query: ast.Query) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(query):
        if isinstance(node, ast.Bind):
            names.add(node.variable.name)
        elif isinstance(node, ast.Define) and node.at is not None:
            names.add(node.at.name)
        elif isinstance(node, ast.Values | ast.PartitionBy):
            names.update(variable.name for variable in node.variables)
        elif isinstance(node, ast.Projection) and node.alias is not None:
            names.add(node.alias.name)
        elif isinstance(node, ast.Prev):
            names.add(node.variable.name)
        elif isinstance(node, ast.Aggregate) and isinstance(node.argument, ast.Var):
            names.add(node.argument.name)
        elif isinstance(node, ast.Call) and node.name == "BOUND":
            names.update(a.name for a in node.arguments if isinstance(a, ast.Var))
    return names


def _replaced(node: Any, constants: Mapping[str, ast.Iri | ast.Literal]) -> Any:
    if isinstance(node, ast.Var):
        constant = constants.get(node.name)
        return node if constant is None else replace(constant, span=node.span)
    if isinstance(node, ast.Projection) and isinstance(node.expression, ast.Var):
        constant = constants.get(node.expression.name)
        return (
            node if constant is None else replace(node, expression=constant, alias=node.expression)
        )
    if isinstance(node, tuple):
        return tuple(_replaced(item, constants) for item in node)
    if not is_dataclass(node) or isinstance(node, Span):
        return node
    return replace(
        node,  # type: ignore[type-var]
        **{part.name: _replaced(getattr(node, part.name), constants) for part in fields(node)},
    )
