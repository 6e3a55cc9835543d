"""The text of a mapping → its tree, checked as far as that is possible without a table.

A mapping is `CONSTRUCT { template } WHERE { BIND … FILTER … }` over one solution per row, whose
variables are the columns of the table. `?_row` is the number of the row, from 1. `?_time` is the
time of the event and `?_graph` its name, if they are bound. On Spark, whose rows have no order,
`?_ordinal` orders the events of one time.

Source: SPARQL 1.1 sections 10.1 (BIND), 16.2 (CONSTRUCT); TARQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, TypeAlias

from spaseq.errors import (
    ArgumentError,
    Diagnostic,
    QuerySemanticError,
    SpaseqError,
    kind_of,
    render,
)
from spaseq.parser import ast, parse_mapping
from spaseq.plan.check_functions import check_functions
from spaseq.records import dataclass

ROW, TIME, GRAPH, ORDINAL = "_row", "_time", "_graph", "_ordinal"

_NO_GRAPH = "a mapping computes an event from the columns of a row: use BIND and FILTER"

MappingLike: TypeAlias = "RowMapping | str | PathLike[str]"
"""A mapping, its text (which has a brace), or the path of its file."""


@dataclass(frozen=True, slots=True)
class RowMapping:
    """A parsed and checked mapping. `name` is the prefix of positions in its messages."""

    tree: ast.Mapping
    name: str
    warnings: tuple[Diagnostic, ...] = ()

    def shown_warnings(self) -> list[str]:
        """The warnings as texts, each with its position."""
        return [render([each], self.tree.text, self.name) for each in self.warnings]

    def fail(self, findings: list[Diagnostic]) -> QuerySemanticError:
        """The error with these findings."""
        return QuerySemanticError(findings, self.tree.text, self.name)


def read_mapping(given: MappingLike) -> RowMapping:
    """The mapping of a text or of a file.

    Raises:
        ArgumentError: for a mapping that is neither text nor path.
        QueryError: for a text that is not a mapping.
        SpaseqError: for a file that cannot be read.
    """
    if isinstance(given, RowMapping):
        return given
    if isinstance(given, str) and "{" in given:
        return parsed(given)
    if not isinstance(given, str | PathLike):
        raise ArgumentError(f"map: a mapping is a text or the path of a file, not {kind_of(given)}")
    path = fspath(given)
    try:
        with open(path, encoding="utf-8-sig") as file:
            return parsed(file.read(), path)
    except OSError as error:
        raise SpaseqError(
            f"the mapping {path} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise SpaseqError(f"the mapping {path} is not UTF-8: {error.reason}") from error


def parsed(text: str, name: str = "mapping") -> RowMapping:
    """The mapping of a text.

    Raises:
        QueryError: for a text that is not a mapping.
    """
    tree = _with_terms(parse_mapping(text, name))
    findings = sorted(_findings(tree), key=lambda each: each.span.start)
    warnings = tuple(each for each in findings if each.severity == "warning")
    mapping = RowMapping(tree, name, warnings)
    if len(warnings) < len(findings):
        raise mapping.fail([each for each in findings if each.severity == "error"])
    return mapping


def _with_terms(tree: ast.Mapping) -> ast.Mapping:
    """The mapping with a BIND of TRIPLE in place of each triple term of the template."""
    wholes = {triple.of.label: triple for triple in tree.template if triple.of is not None}
    if not wholes:
        return tree

    def change(node: Any) -> Any:
        if isinstance(node, ast.BlankNode) and node.label in wholes:
            return ast.Var(node.label, node.span)  # a name with a space, as no column has
        return None

    binds = []
    for triple in wholes.values():
        assert triple.of is not None
        parts = ast.rebuilt((triple.subject, triple.predicate, triple.object), change)
        call = ast.Call("TRIPLE", parts, triple.span)
        binds.append(ast.Bind(call, ast.Var(triple.of.label, triple.of.span), triple.span))
    template = tuple(triple for triple in tree.template if triple.of is None)
    where = replace(tree.where, elements=(*tree.where.elements, *binds))
    return replace(tree, template=ast.rebuilt(template, change), where=where)


def _findings(tree: ast.Mapping) -> Iterator[Diagnostic]:
    yield from check_functions(tree)
    yield from _template(tree)
    bound: dict[str, ast.Var] = {}
    binds = {each.variable.name: each for each in tree.where.elements if isinstance(each, ast.Bind)}
    for element in tree.where.elements:
        match element:
            case ast.Bind(expression, variable):
                yield from _expression(expression)
                for part in variables(expression):
                    if part.name in binds and part.name not in bound:
                        yield Diagnostic(
                            f"?{part.name} is used before the BIND that assigns it",
                            part.span,
                            "move that BIND before this one",
                            binds[part.name].variable.span,
                            "assigned here",
                        )
                bound[variable.name] = variable
                if variable.name == ROW:
                    yield Diagnostic(
                        f"BIND assigns ?{ROW}, which is the number of the row",
                        variable.span,
                        "use another name after AS",
                    )
            case ast.Filter(condition):
                yield from _expression(condition)
            case _:
                yield Diagnostic("a mapping has no graph to match", element.span, _NO_GRAPH)


def _template(tree: ast.Mapping) -> Iterator[Diagnostic]:
    for triple in tree.template:
        if isinstance(triple.subject, ast.Literal):
            yield Diagnostic(
                "a literal as the subject of a triple",
                triple.subject.span,
                "a subject is an IRI, a blank node or a variable",
            )


def _expression(expression: ast.Expr) -> Iterator[Diagnostic]:
    for part in ast.walk(expression):
        match part:
            case ast.BlankNode():
                yield Diagnostic(
                    "a blank node in a triple term of a mapping",
                    part.span,
                    "write an IRI or a variable; BIND(BNODE() AS ?node) makes a node for a row",
                )
            case ast.Exists():
                yield Diagnostic("EXISTS in a mapping of rows", part.span, _NO_GRAPH)
            case ast.Aggregate() | ast.Prev():
                name = part.name if isinstance(part, ast.Aggregate) else "PREV"
                yield Diagnostic(
                    f"{name} in a mapping of rows",
                    part.span,
                    "a mapping sees one row at a time; aggregate in the query over the events",
                )


def variables(node: ast.Node) -> Iterator[ast.Var]:
    """The occurrences of variables in a part of a mapping, in text order."""
    return (part for part in ast.walk(node) if isinstance(part, ast.Var))


def column_variables(tree: ast.Mapping) -> tuple[frozenset[str], frozenset[str]]:
    """The variables that are columns: those that a table must have, and those it may lack."""
    assigned = {each.variable.name for each in tree.where.elements if isinstance(each, ast.Bind)}
    read = {part.name for part in variables(tree)} - assigned - {ROW}
    may_be_absent = ({TIME, GRAPH} - assigned) | (read & optional_variables(tree))
    return frozenset(read - may_be_absent), frozenset(may_be_absent)


def optional_variables(tree: ast.Mapping) -> frozenset[str]:
    """The variables that the mapping tests by BOUND or COALESCE: their columns may be absent."""
    return frozenset(
        argument.name
        for part in ast.walk(tree)
        if isinstance(part, ast.Call) and part.name in ("BOUND", "COALESCE")
        for argument in part.arguments
        if isinstance(argument, ast.Var)
    )
