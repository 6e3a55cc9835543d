"""Bound query variables (`bind=`, `--bind`) → constants in the tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, cast

import pyoxigraph as ox

from spaseq.errors import ArgumentError, kind_of
from spaseq.parser import ast
from spaseq.rdf.accepted import Bindable
from spaseq.rdf.event import Parameter, Term, nodes_of
from spaseq.rdf.native._values import integer
from spaseq.rdf.plain import LangString, value_of

DECIMAL = ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")


def bind_parameters(
    queries: Sequence[ast.Query], values: Mapping[str, Bindable]
) -> tuple[ast.Query, ...]:
    """The queries with each named variable replaced by its value.

    Values are pyoxigraph or rdflib terms (without blank nodes), or Python numbers, strings,
    `LangString`s, booleans, dates, times and durations. A variable that a query
    assigns cannot be bound.

    Raises:
        ValueError: for a name that no query uses, or that a query assigns.
    """
    constants = {name: _constant(value) for name, value in parameter_terms(values).items()}
    used = variables_of(queries)
    for name in constants:
        if name not in used:
            known = ", ".join(f"?{other}" for other in sorted(used)) or "none"
            raise ValueError(f"no query uses the variable ?{name}; their variables are {known}")
    for query in queries:
        for name in _assigned(query) & constants.keys():
            raise ValueError(f"the query itself assigns ?{name}: it cannot be fixed from outside")
    return tuple(_replaced(query, constants) for query in queries)


def variables_of(queries: Iterable[ast.Query]) -> set[str]:
    """The names of the variables of some queries."""
    return {node.name for node in ast.walk(tuple(queries)) if isinstance(node, ast.Var)}


def parameter_terms(values: Mapping[str, Bindable]) -> dict[str, Parameter]:
    """The values as terms, under the variables' bare names.

    Raises:
        ArgumentError: for anything but a mapping.
        ValueError: for a value that is not an IRI, literal, number, string, boolean, date, time or
            duration.
    """
    if not isinstance(values, Mapping):
        raise ArgumentError(
            f'bind: a dict is needed, as in bind={{"threshold": 20}}, not {kind_of(values)}'
        )
    return {name.lstrip("?$"): _term(value) for name, value in values.items()}


def _constant(term: Term) -> ast.Constant:
    if isinstance(term, ox.NamedNode):
        return ast.Iri(term.value)
    if isinstance(term, ox.Triple):
        parts: Any = map(_constant, term)
        return ast.TripleTerm(*parts)
    assert isinstance(term, ox.Literal)
    direction = None if term.direction is None else term.direction.value
    return ast.Literal(term.value, term.datatype.value, term.language, direction)


def _term(value: object) -> Parameter:
    if isinstance(value, ox.NamedNode | ox.Literal):
        return value
    if isinstance(value, ox.Triple) and not any(nodes_of(value)):
        return value
    if isinstance(value, bool | float):
        return ox.Literal(value)
    if isinstance(value, int):
        return cast(ox.Literal, integer(value).term)
    if isinstance(value, Decimal):
        return ox.Literal(format(value, "f"), datatype=DECIMAL)
    if isinstance(value, LangString | date | timedelta):
        return cast(ox.Literal, value_of(value).term)
    n3 = getattr(value, "n3", None)
    if n3 is not None:
        return _term(_parsed(n3()))
    if isinstance(value, str):
        return ox.Literal(value)
    raise ValueError(f"{value!r} is not a term that a variable can be bound to")


def _parsed(text: str) -> object:
    for quad in ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.TURTLE):
        return quad.object
    raise ValueError(f"{text} is not an RDF term")


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


def _replaced(query: ast.Query, constants: Mapping[str, ast.Constant]) -> ast.Query:
    def change(node: Any) -> Any:
        if isinstance(node, ast.Projection) and isinstance(node.expression, ast.Var):
            constant = constants.get(node.expression.name)
            if constant is not None:
                return replace(node, expression=constant, alias=node.expression)
        if isinstance(node, ast.Var):
            constant = constants.get(node.name)
            return node if constant is None else replace(constant, span=node.span)
        return None

    bound: ast.Query = ast.rebuilt(query, change)
    return bound
