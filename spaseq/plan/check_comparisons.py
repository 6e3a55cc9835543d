"""The comparisons of a query → warnings about those whose result is known before the first event.

A comparison of a string with a number errs or is false, whatever the values, and a filter with it
silently finds nothing. `NOW()` is the time of the clock, and not that of events. Source: SPARQL 1.1
section 17.3. Cost: linear in the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.plan.wording import quoted
from spaseq.sparql.builtins import BUILTINS, XSD, Sort

_ORDER = frozenset(("<", "<=", ">", ">="))
_NUMBERS = frozenset(
    XSD + name for name in ("integer", "decimal", "double", "float", "int", "long", "short", "byte")
)
_TIMES = frozenset(XSD + name for name in ("dateTime", "date", "time", "dayTimeDuration"))
NOTHING_KNOWN: Mapping[str, Sort] = MappingProxyType({})
_PHRASES: dict[Sort, str] = {
    "boolean": "a boolean",
    "number": "a number",
    "text": "a string",
    "time": "a date, time or duration",
}


def check_comparisons(query: ast.Query | ast.Mapping) -> Iterator[Diagnostic]:
    """The warnings about comparisons of different sorts and about NOW()."""
    known = _bound_sorts(query)
    for part in ast.walk(query):
        if not (isinstance(part, ast.Binary) and part.operator in (*_ORDER, "=")):
            continue
        left, right = sort_of(part.left, known), sort_of(part.right, known)
        if "any" not in (left, right) and left != right:
            result = "always errs" if part.operator in _ORDER else "is never true"
            yield Diagnostic(
                f"the comparison of {_PHRASES[left]} with {_PHRASES[right]} {result}",
                part.span,
                _hint(part, known),
                severity="warning",
            )
        elif any(isinstance(node, ast.Call) and node.name == "NOW" for node in ast.walk(part)):
            yield Diagnostic(
                f"{quoted('NOW()')} is the time of the clock when an event is processed, not the "
                "time of the event",
                part.span,
                "`DEFINE GPM … AT ?t` binds ?t to the time of the event",
                severity="warning",
            )


def sort_of(expression: ast.Expr, known: Mapping[str, Sort] = NOTHING_KNOWN) -> Sort:
    """The sort of an expression's value, if it has one; `any`: it depends on the event.

    `known` has the sorts of variables.
    """
    match expression:
        case ast.Literal(datatype=datatype, language=None):
            return _sort_of_datatype(datatype)
        case ast.Literal():
            return "text"
        case ast.Call(name):
            return BUILTINS[name].result if name in BUILTINS else "any"
        case ast.FunctionCall(function):
            return _sort_of_datatype(function.value)
        case ast.Binary(operator="*" | "/"):
            # A sum may be one of a time and a duration; a product is one of numbers.
            return "number"
        case ast.Binary(operator="&&" | "||" | "=" | "!=" | "<" | "<=" | ">" | ">="):
            return "boolean"
        case ast.Unary(operator="!"):
            return "boolean"
        case ast.Unary():
            return "number"
        case ast.Aggregate(name="COUNT" | "SUM" | "AVG"):
            return "number"
        case ast.Aggregate(name="GROUP_CONCAT"):
            return "text"
        case ast.Var(name):
            return known.get(name, "any")
    return "any"


def _bound_sorts(query: ast.Query | ast.Mapping) -> dict[str, Sort]:
    """The variables that only BINDs bind, with the sort that the values of all of them have."""
    sorts: dict[str, set[Sort]] = {}
    for node in ast.walk(query):
        match node:
            case ast.Bind(expression, variable):
                sorts.setdefault(variable.name, set()).add(sort_of(expression))
            case ast.Triple(subject, predicate, object):
                for term in (subject, predicate, object):
                    if isinstance(term, ast.Var):
                        sorts.setdefault(term.name, set()).add("any")
            case ast.Values(variables):
                for each in variables:
                    sorts.setdefault(each.name, set()).add("any")
            case ast.Projection(alias=ast.Var(name)) | ast.Graph(ast.Var(name)):
                sorts.setdefault(name, set()).add("any")
    return {name: next(iter(found)) for name, found in sorts.items() if len(found) == 1}


def _sort_of_datatype(iri: str) -> Sort:
    """The sort of a datatype's values, which is that of a cast to it, too."""
    if iri == XSD + "string":
        return "text"
    if iri == XSD + "boolean":
        return "boolean"
    if iri in _NUMBERS:
        return "number"
    return "time" if iri in _TIMES else "any"


def _hint(comparison: ast.Binary, known: Mapping[str, Sort]) -> str:
    for side in (comparison.left, comparison.right):
        other = comparison.right if side is comparison.left else comparison.left
        if not (isinstance(side, ast.Literal) and sort_of(side) == "text"):
            continue
        if sort_of(other, known) == "number" and _is_number(side.lexical):
            return f"write {side.lexical} without quotes"
    sorts = {sort_of(comparison.left, known), sort_of(comparison.right, known)}
    if sorts == {"text", "number"}:
        return "`xsd:decimal(…)` makes a number of a string"
    return "compare values of one kind"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
