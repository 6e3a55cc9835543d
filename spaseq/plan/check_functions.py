"""The calls of a query → unknown functions, wrong arities, patterns and casts that always fail.

The parser has checked the functions called by keyword; this module checks those called by IRI.
`spaseq.sparql.builtins` lists the functions that the evaluators implement, so a call that passes
this check compiles. Cost: linear in the query.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyoxigraph as ox

from spaseq.errors import Diagnostic
from spaseq.parser import ast
from spaseq.parser.iri import is_stand_in
from spaseq.plan.wording import listing, quoted
from spaseq.rdf.native._values import parse
from spaseq.sparql.builtins import BUILTINS, GEOF, MATH, NAMED_BY_IRI, XSD, Builtin, shown
from spaseq.sparql.registry import named_function, registered_names
from spaseq.sparql.units import METRES

_XSD_STRING = XSD + "string"
_WITH_UNIT = frozenset((GEOF + "distance", GEOF + "buffer"))
"""The functions whose last argument is a unit of length."""


def check_functions(query: ast.Query | ast.Mapping) -> Iterator[Diagnostic]:
    """The findings about all calls."""
    for part in ast.walk(query):
        if isinstance(part, ast.Call) and part.name in ("REGEX", "REPLACE"):
            if not _is_pattern(part):
                yield Diagnostic(
                    "this is not a supported regular expression, so the call always errs",
                    part.arguments[1].span,
                    "use XPath's syntax and the flags s, m, i, x and q; back-references and "
                    "look-around are not supported",
                    severity="warning",
                )
            continue
        if not isinstance(part, ast.FunctionCall):
            continue
        known = named_function(part.function.value)
        if known is None and not is_stand_in(part.function.value):
            yield _unknown(part.function)
        elif known is not None and not known.accepts(len(part.arguments)):
            yield Diagnostic(
                f"{quoted(shown(known.name))} takes {known.arity}, but has {len(part.arguments)}",
                part.span,
                f"write `{known.call}`",
            )
        elif known is not None and known.arguments and (unit := _unknown_unit(part)) is not None:
            yield Diagnostic(
                f"the unit {quoted(shown(unit.value))} is not known, so the call always errs",
                unit.span,
                f"the units are {listing(f'<{name}>' for name in METRES)}",
                severity="warning",
            )
        elif known is not None and known.kind == "cast" and _never_casts(known, part.arguments[0]):
            yield Diagnostic(
                f"this value is not a valid {quoted(shown(known.name))}, so the cast always errs",
                part.span,
                "correct the value, or remove the cast",
                severity="warning",
            )


def _unknown_unit(call: ast.FunctionCall) -> ast.Iri | None:
    """The unit of a distance or buffer, if it is a constant that is not a known unit."""
    unit = call.arguments[-1]
    if call.function.value not in _WITH_UNIT or not isinstance(unit, ast.Iri):
        return None
    return None if unit.value in METRES else unit


def _is_pattern(call: ast.Call) -> bool:
    """Whether a call's pattern may be valid: true unless pattern and flags are constants."""
    given = [call.arguments[1], *call.arguments[2 if call.name == "REGEX" else 3 :]]
    constants = [ox.Literal(part.lexical) for part in given if isinstance(part, ast.Literal)]
    if len(constants) < len(given):
        return True
    more = "" if call.name == "REGEX" else ', ""'
    arguments = f"{constants[0]}{more}"
    arguments += "".join(f", {flags}" for flags in constants[1:])
    solutions = ox.Store().query(f'SELECT ({call.name}("-", {arguments}) AS ?r) {{}}')
    assert isinstance(solutions, ox.QuerySolutions)
    return any(solution["r"] is not None for solution in solutions)


def _unknown(function: ast.Iri) -> Diagnostic:
    near = [quoted(name) for name in nearest(function.value)]
    if near:
        hint = f"did you mean {listing(near, 'or')}?"
    elif (family := _family(function.value)) is not None:
        kind, namespace = family
        names = listing(shown(name) for name in NAMED_BY_IRI if name.startswith(namespace))
        hint = f"the {kind} are {names}"
    else:
        hint = (
            "register your own function with spaseq.function (on the command line: "
            "--functions MODULE.py), or use a built-in function"
        )
    return Diagnostic(
        f"the function {quoted(shown(function.value))} is not known",
        function.span,
        hint,
    )


def _family(iri: str) -> tuple[str, str] | None:
    """The kind of the known functions in an IRI's namespace, and the namespace."""
    for namespace, kind in ((XSD, "casts"), (MATH, "functions"), (GEOF, "functions")):
        if iri.startswith(namespace):
            return kind, namespace
    return None


def _local(iri: str) -> str:
    """The last part of an IRI or of a name."""
    return iri.strip("<>").rstrip("/#").replace("#", "/").replace(":", "/").rpartition("/")[2]


def nearest(iri: str) -> list[str]:
    """Up to three known functions with names similar to the last part of an IRI, nearest first."""
    from difflib import get_close_matches  # imported here to keep valid queries fast

    last = _local(iri)
    folded = last.replace("-", "").replace("_", "").casefold()
    candidates: dict[str, list[str]] = {}
    for name in (*registered_names(), *NAMED_BY_IRI, *BUILTINS):
        local = _local(shown(name)).casefold()
        candidates.setdefault(local, []).append(shown(name))
    same = [folded] if folded in candidates else []
    close = same or get_close_matches(folded, candidates, n=3, cutoff=0.7)
    return [name for local in close for name in candidates[local]][:3]


def _never_casts(cast: Builtin, argument: ast.Expr) -> bool:
    """Whether the argument is a constant string that the cast's datatype cannot represent."""
    return (
        not cast.by_reference
        and cast.name != _XSD_STRING
        and isinstance(argument, ast.Literal)
        and argument.datatype == _XSD_STRING
        and parse(cast.name.removeprefix(XSD), argument.lexical) is None
    )
