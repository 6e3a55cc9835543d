"""A graph pattern of the plan → the data that a matcher is made from, and terms of the query.

A `GpmProgram` is compile-time data: frozen, picklable, without reference to a stream or a KB.
Source: docs/language.md, section 3.
"""

from __future__ import annotations

import pyoxigraph as ox

from spaseq.gpm.python import regular
from spaseq.parser import ast
from spaseq.parser.format import element_line
from spaseq.plan.scope import certain_variables, possible_variables
from spaseq.rdf.event import Parameter
from spaseq.records import dataclass
from spaseq.sparql.builtins import BUILTINS, NAMED_BY_IRI

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


@dataclass(frozen=True, slots=True)
class GpmProgram:
    """One graph pattern without its top-level filters and stateful BINDs.

    variables   the columns of a row: every variable that the pattern can bind, sorted, the `AT`
                variable last
    certain     the variables that every row binds
    at          the `AT` variable; every row binds it to the time of the event, and it joins (as a
                term) with the pattern's own bindings of it
    kb_graphs   the KB graphs that `GRAPH` ranges over; None: all of them
    """

    pattern: ast.GroupGraphPattern
    variables: tuple[str, ...]
    certain: frozenset[str]
    at: str | None
    kb_graphs: tuple[str, ...] | None

    @property
    def left_to_pyoxigraph(self) -> tuple[str, ...]:
        """The names of the functions that pyoxigraph computes for the pattern."""
        found = (by_reference(node) for node in ast.walk(self.pattern))
        return tuple(dict.fromkeys(name for name in found if name is not None))


def compile_gpm(
    pattern: ast.GroupGraphPattern, at: str | None, kb_graphs: tuple[str, ...] | None
) -> GpmProgram:
    """The program of a pattern from which the planner has taken filters and stateful BINDs."""
    pattern = _relabelled(pattern)
    names = possible_variables(pattern) - {at}
    always = certain_variables(pattern)
    variables = tuple(sorted(names))
    if at is not None:
        variables += (at,)
        always |= {at}
    return GpmProgram(pattern, variables, always, at, kb_graphs)


def _relabelled(pattern: ast.GroupGraphPattern) -> ast.GroupGraphPattern:
    """Number the blank nodes from 0, so that patterns that differ in labels only are equal."""
    labels = dict.fromkeys(n.label for n in ast.walk(pattern) if isinstance(n, ast.BlankNode))
    numbers = {label: f"b{number}" for number, label in enumerate(labels)}

    def change(node: object) -> object:
        if isinstance(node, ast.BlankNode):
            return ast.BlankNode(numbers[node.label], node.span)
        return None

    same: ast.GroupGraphPattern = ast.rebuilt(pattern, change)
    return same


# ------------------------------------------------------------------ terms and texts of the query


def constant(node: ast.Constant) -> Parameter:
    """The RDF term of a constant of the query."""
    if isinstance(node, ast.Iri):
        return ox.NamedNode(node.value)
    if isinstance(node, ast.TripleTerm):
        return ox.Triple(
            ox.NamedNode(node.subject.value),
            ox.NamedNode(node.predicate.value),
            constant(node.object),
        )
    if node.language is not None:
        direction = None if node.direction is None else ox.BaseDirection(node.direction)
        return ox.Literal(node.lexical, language=node.language, direction=direction)
    if node.datatype == XSD_STRING:
        return ox.Literal(node.lexical)
    return ox.Literal(node.lexical, datatype=ox.NamedNode(node.datatype))


def triple_text(triple: ast.Triple) -> str:
    """A triple pattern on one line, without its dot."""
    return element_line(triple)


def by_reference(node: ast.Node) -> str | None:
    """The name of the function if pyoxigraph computes this call, else None.

    A REGEX is computed by pyoxigraph if `regular` does not compile its pattern.
    """
    match node:
        case ast.Call("REGEX", (_, ast.Literal(pattern), *rest)):
            flags = rest[0].lexical if rest and isinstance(rest[0], ast.Literal) else ""
            given = regular.pattern_and_flags(pattern, flags)
            known = given is None or regular.compiled(*given) is not None
            return None if known else f'REGEX with "{pattern}"'
        case ast.Call("REPLACE", (_, ast.Literal(pattern), ast.Literal(replacement), *rest)) if all(
            isinstance(flags, ast.Literal) for flags in rest
        ):
            flags = "".join(flags.lexical for flags in rest if isinstance(flags, ast.Literal))
            if regular.replacer(pattern, flags, replacement) is None:
                return f'REPLACE with "{pattern}"'
            return None
        case ast.Call("REPLACE"):
            return "REPLACE with computed arguments (some patterns)"
        case ast.Call("REGEX"):
            return "REGEX with a computed pattern (some patterns)"
        case ast.Call(name) if BUILTINS[name].by_reference:
            return name
        case ast.FunctionCall(ast.Iri(name)) if name in NAMED_BY_IRI and (
            NAMED_BY_IRI[name].by_reference
        ):
            return f"<{name}>"
    return None
