"""SPARQL's built-in functions over decoded values.

Each takes values and gives a value, or None for an error; none looks at a row, so forms
that do (`BOUND`, `IF`, `COALESCE`, `EXISTS`, `BNODE(x)`) are not here. Behaviour is that
of SPARQL 1.1 section 17.4, in detail that of pyoxigraph, but that literals keep the form
they were written in: `STR` of `"01"^^xsd:integer` is `"01"`.
"""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.gpm.python import regular, strings
from spaseq.parser import ast
from spaseq.rdf import calendar
from spaseq.rdf._values import (
    BLANK,
    INTEGER,
    IRI,
    LANG,
    POINT,
    STRING,
    Value,
    boolean,
    datatype,
    decimal,
    decode,
    double,
    integer,
    lexical,
    span,
    string,
)
from spaseq.rdf.conversion import absolute, ceiling, floored, rounded
from spaseq.rdf.tagged import language_of
from spaseq.sparql.builtins import BUILTINS, NAMED_BY_IRI

Function: TypeAlias = Callable[..., Value | None]

_NUMBERS = range(INTEGER, POINT)


# ------------------------------------------------------------------ terms


def _str(value: Value) -> Value | None:
    text = lexical(value)
    return None if text is None else string(text)


def _lang(value: Value) -> Value | None:
    if value.kind <= BLANK:
        return None
    return string(language_of(value.form) if value.kind == LANG else "")


def _datatype(value: Value) -> Value | None:
    name = datatype(value)
    return None if name is None else decode(name)


def _iri(value: Value) -> Value | None:
    if value.kind == IRI:
        return value
    if value.kind != STRING:
        return None
    try:
        return decode(ox.NamedNode(value.text))
    except ValueError:
        return None


def _strdt(text: Value, name: Value) -> Value | None:
    if text.kind != STRING or name.kind != IRI:
        return None
    return decode(ox.Literal(text.text, datatype=ox.NamedNode(name.text)))


def _strlang(text: Value, language: Value) -> Value | None:
    if text.kind != STRING or language.kind != STRING:
        return None
    try:
        return decode(ox.Literal(text.text, language=language.text))
    except ValueError:
        return None


def _lang_matches(tag: Value, wanted: Value) -> Value | None:
    if tag.kind != STRING or wanted.kind != STRING:
        return None
    have, want = tag.text.lower(), wanted.text.lower()
    if want == "*":
        return boolean(have != "")
    return boolean(have == want or have.startswith(want + "-"))


# ------------------------------------------------------------------ dates and times


def _field(index: int, forms: frozenset[str]) -> Function:
    def get(value: Value) -> Value | None:
        if value.kind != POINT or value.form not in forms:
            return None
        return integer(calendar.fields((value.number, value.extra))[index])

    return get


_DATE_TIME = frozenset(("dateTime",))
_CLOCK = _DATE_TIME | {"time"}


def _seconds(value: Value) -> Value | None:
    if value.kind != POINT or value.form not in _CLOCK:
        return None
    return decimal(calendar.fields((value.number, value.extra))[5])


def _tz(value: Value) -> Value | None:
    return string(calendar.format_zone(value.extra)) if value.kind == POINT else None


def _timezone(value: Value) -> Value | None:
    if value.kind != POINT or value.extra is None:
        return None
    return span("dayTimeDuration", 0, value.extra * calendar.MINUTE)


# ------------------------------------------------------------------ hashes, chance


def _digest(algorithm: str) -> Function:
    def digest(value: Value) -> Value | None:
        if value.kind != STRING:
            return None
        return string(hashlib.new(algorithm, value.text.encode()).hexdigest())

    return digest


def _rand() -> Value:
    return double(random.random())


def _uuid() -> Value:
    return decode(ox.NamedNode(f"urn:uuid:{uuid.uuid4()}"))


def _struuid() -> Value:
    return string(str(uuid.uuid4()))


FUNCTIONS: dict[str, Function] = {
    "STR": _str,
    "LANG": _lang,
    "LANGMATCHES": _lang_matches,
    "DATATYPE": _datatype,
    "IRI": _iri,
    "STRDT": _strdt,
    "STRLANG": _strlang,
    "STRLEN": strings.strlen,
    "SUBSTR": strings.substr,
    "UCASE": strings.ucase,
    "LCASE": strings.lcase,
    "CONTAINS": strings.contains,
    "STRSTARTS": strings.strstarts,
    "STRENDS": strings.strends,
    "STRBEFORE": strings.strbefore,
    "STRAFTER": strings.strafter,
    "CONCAT": strings.concat,
    "ENCODE_FOR_URI": strings.encode_for_uri,
    "REGEX": strings.regex,
    "REPLACE": strings.replace,
    "ABS": absolute,
    "CEIL": ceiling,
    "FLOOR": floored,
    "ROUND": rounded,
    "YEAR": _field(0, _DATE_TIME | {"date", "gYear", "gYearMonth"}),
    "MONTH": _field(1, _DATE_TIME | {"date", "gYearMonth", "gMonth", "gMonthDay"}),
    "DAY": _field(2, _DATE_TIME | {"date", "gMonthDay", "gDay"}),
    "HOURS": _field(3, _CLOCK),
    "MINUTES": _field(4, _CLOCK),
    "SECONDS": _seconds,
    "TZ": _tz,
    "TIMEZONE": _timezone,
    "MD5": _digest("md5"),
    "SHA1": _digest("sha1"),
    "SHA256": _digest("sha256"),
    "SHA384": _digest("sha384"),
    "SHA512": _digest("sha512"),
    "RAND": _rand,
    "UUID": _uuid,
    "STRUUID": _struuid,
}
"""The implementations of `spaseq.sparql.builtins`, by name; that table has the arities."""


def _is_iri(value: Value) -> bool:
    return value.kind == IRI


def _is_blank(value: Value) -> bool:
    return value.kind == BLANK


def _is_literal(value: Value) -> bool:
    return value.kind > BLANK


def _is_numeric(value: Value) -> bool:
    return value.kind in _NUMBERS


KIND_TESTS: dict[str, Callable[[Value], bool]] = {
    "ISIRI": _is_iri,
    "ISBLANK": _is_blank,
    "ISLITERAL": _is_literal,
    "ISNUMERIC": _is_numeric,
}


def volatile(node: ast.Node) -> bool:
    """Whether evaluating this twice may give two results."""
    return any(
        isinstance(part, ast.Call) and BUILTINS[part.name].volatile for part in ast.walk(node)
    )


def by_reference(node: ast.Node) -> str | None:
    """The function's name if this call is left to pyoxigraph; a REGEX may be, by its pattern."""
    match node:
        case ast.Call("REGEX", (_, ast.Literal(pattern), *rest)):
            flags = rest[0].lexical if rest and isinstance(rest[0], ast.Literal) else ""
            given = regular.pattern_and_flags(pattern, flags)
            known = given is None or regular.compiled(*given) is not None
            return None if known else f'REGEX with "{pattern}"'
        case ast.Call("REGEX"):
            return "REGEX with a computed pattern (some patterns)"
        case ast.Call("REPLACE"):
            return "REPLACE"
        case ast.FunctionCall(ast.Iri(name)) if NAMED_BY_IRI[name].by_reference:
            return f"<{name}>"
    return None
