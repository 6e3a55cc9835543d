"""The comparisons of a query → warnings about those whose result is known before the first event.

A comparison of a string with a number errs or is false, whatever the values, and the filter that
holds it finds nothing, in silence. `NOW()` is the time of the clock; events have their own.
Source: SPARQL 1.1 section 17.3. Cost: linear in the query.
"""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.plan.wording import quoted
from spaseq.sparql.builtins import BUILTINS, XSD, Sort

_ORDER = frozenset(("<", "<=", ">", ">="))
_NUMBERS = frozenset(
    XSD + name for name in ("integer", "decimal", "double", "float", "int", "long", "short", "byte")
)
_TIMES = frozenset(XSD + name for name in ("dateTime", "date", "time", "dayTimeDuration"))
_PHRASES: dict[Sort, str] = {
    "boolean": "a boolean",
    "number": "a number",
    "text": "a string",
    "time": "a date, time or duration",
}


def check_comparisons(query: ast.Query | ast.Mapping) -> Iterator[Diagnostic]:
    """The warnings about comparisons of different sorts and about NOW()."""
    for part in ast.walk(query):
        if not (isinstance(part, ast.Binary) and part.operator in (*_ORDER, "=")):
            continue
        left, right = sort_of(part.left), sort_of(part.right)
        if "any" not in (left, right) and left != right:
            result = "always errs" if part.operator in _ORDER else "is never true"
            yield Diagnostic(
                f"the comparison of {_PHRASES[left]} with {_PHRASES[right]} {result}",
                part.span,
                _hint(part),
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


def sort_of(expression: ast.Expr) -> Sort:
    """What the value of an expression is if it has one; `any`: that depends on the event."""
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
    return "any"


def _sort_of_datatype(iri: str) -> Sort:
    """The sort of a datatype's values, which is that of a cast to it, too."""
    if iri == XSD + "string":
        return "text"
    if iri == XSD + "boolean":
        return "boolean"
    if iri in _NUMBERS:
        return "number"
    return "time" if iri in _TIMES else "any"


def _hint(comparison: ast.Binary) -> str:
    for side in (comparison.left, comparison.right):
        other = comparison.right if side is comparison.left else comparison.left
        if not (isinstance(side, ast.Literal) and sort_of(side) == "text"):
            continue
        if sort_of(other) == "number" and _is_number(side.lexical):
            return f"write {side.lexical} without quotes"
    if {sort_of(comparison.left), sort_of(comparison.right)} == {"text", "number"}:
        return "`xsd:decimal(…)` makes a number of a string"
    return "compare values of one kind"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
