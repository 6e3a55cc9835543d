"""SPARQL's built-in functions over decoded values.

Each takes values and gives a value, or None for an error; none looks at a row, so forms
that do (`BOUND`, `IF`, `COALESCE`, `EXISTS`, `BNODE(x)`) are not here. Behaviour is that
of SPARQL 1.1 section 17.4, in detail that of pyoxigraph, but that literals keep the form
they were written in: `STR` of `"01"^^xsd:integer` is `"01"`.
"""

from __future__ import annotations

import hashlib
import random
import re
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import quote

import pyoxigraph as ox

from spaseq.gpm import reference
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
    lang_string,
    lexical,
    span,
    string,
)
from spaseq.rdf.conversion import absolute, ceiling, floored, rounded

Function: TypeAlias = Callable[..., Value | None]

_NUMBERS = range(INTEGER, POINT)


def _text_like(text: str, model: Value) -> Value:
    """A string with the language tag of `model`, if that has one."""
    return lang_string(text, model.form) if model.kind == LANG else string(text)


def _is_text(value: Value) -> bool:
    return value.kind in (STRING, LANG)


def _compatible(text: Value, other: Value) -> bool:
    """SPARQL's argument compatibility rules."""
    if not (_is_text(text) and _is_text(other)):
        return False
    return other.kind == STRING or (text.kind == LANG and text.form == other.form)


# ------------------------------------------------------------------ terms


def _str(value: Value) -> Value | None:
    text = lexical(value)
    return None if text is None else string(text)


def _lang(value: Value) -> Value | None:
    if value.kind <= BLANK:
        return None
    return string(value.form if value.kind == LANG else "")


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


# ------------------------------------------------------------------ strings


def _strlen(value: Value) -> Value | None:
    return integer(len(value.text)) if _is_text(value) else None


def _substr(value: Value, start: Value, length: Value | None = None) -> Value | None:
    if not _is_text(value) or start.kind != INTEGER:
        return None
    first = start.number - 1
    if length is None:
        return _text_like(value.text[max(first, 0) :], value)
    if length.kind != INTEGER:
        return None
    return _text_like(value.text[max(first, 0) : max(first + length.number, 0)], value)


def _ucase(value: Value) -> Value | None:
    return _text_like(value.text.upper(), value) if _is_text(value) else None


def _lcase(value: Value) -> Value | None:
    return _text_like(value.text.lower(), value) if _is_text(value) else None


def _contains(text: Value, part: Value) -> Value | None:
    return boolean(part.text in text.text) if _compatible(text, part) else None


def _strstarts(text: Value, part: Value) -> Value | None:
    return boolean(text.text.startswith(part.text)) if _compatible(text, part) else None


def _strends(text: Value, part: Value) -> Value | None:
    return boolean(text.text.endswith(part.text)) if _compatible(text, part) else None


def _strbefore(text: Value, part: Value) -> Value | None:
    if not _compatible(text, part):
        return None
    before, found, _ = text.text.partition(part.text) if part.text else ("", "yes", "")
    return _text_like(before, text) if found else string("")


def _strafter(text: Value, part: Value) -> Value | None:
    if not _compatible(text, part):
        return None
    _, found, after = text.text.partition(part.text) if part.text else ("", "yes", text.text)
    return _text_like(after, text) if found else string("")


def _concat(*values: Value) -> Value | None:
    if not all(map(_is_text, values)):
        return None
    text = "".join(value.text for value in values)
    languages = {value.form if value.kind == LANG else None for value in values}
    language = languages.pop() if len(languages) == 1 else None
    return string(text) if language is None else lang_string(text, language)


def _encode_for_uri(value: Value) -> Value | None:
    return string(quote(value.text, safe="-_.~")) if _is_text(value) else None


# Patterns that mean the same to Python and to the reference's engine: plain characters,
# ASCII classes, groups, alternatives, greedy repetition, anchors at the ends.
_PLAIN = r"[\w \-/:,;=@&%~'\"<>!]"
_PORTABLE = re.compile(
    rf"\^?(?:(?:{_PLAIN}|\\[.\\\-/+*?()\[\]{{}}|^$]|\.|\[\^?[\w \-:./@]+\]|\((?!\?)|\)|\|)"
    r"[*+?]?(?![*+?]))*\$?",
    re.ASCII,
)


@lru_cache(maxsize=1024)
def _portable(pattern: str, flags: str) -> re.Pattern[str] | None:
    """The pattern for Python's engine; None where only the reference knows its meaning."""
    if flags not in ("", "i", "s", "is", "si") or not _PORTABLE.fullmatch(pattern):
        return None
    if pattern.endswith("$") and not pattern.endswith("\\$"):
        pattern = pattern[:-1] + r"\Z"
    options = re.ASCII
    options |= re.IGNORECASE if "i" in flags else re.NOFLAG
    options |= re.DOTALL if "s" in flags else re.NOFLAG
    try:
        return re.compile(pattern, options)
    except re.error:
        return None


def _regex(text: Value, pattern: Value, flags: Value | None = None) -> Value | None:
    if not _is_text(text) or pattern.kind != STRING:
        return None
    if flags is not None and flags.kind != STRING:
        return None
    options = "" if flags is None else flags.text
    compiled = _portable(pattern.text, options)
    if compiled is not None and (options in ("", "s") or text.text.isascii()):
        return boolean(compiled.search(text.text) is not None)
    return _reference("REGEX", string(text.text), pattern, *(() if flags is None else (flags,)))


def _reference(function: str, *values: Value) -> Value | None:
    result = reference.call(function, tuple(value.term for value in values))
    return None if result is None else decode(result)


def _replace(*values: Value) -> Value | None:
    return _reference("REPLACE", *values)


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


_ANY_COUNT = 1 << 10

FUNCTIONS: dict[str, tuple[Function, int, int]] = {
    "STR": (_str, 1, 1),
    "LANG": (_lang, 1, 1),
    "LANGMATCHES": (_lang_matches, 2, 2),
    "DATATYPE": (_datatype, 1, 1),
    "IRI": (_iri, 1, 1),
    "URI": (_iri, 1, 1),
    "STRDT": (_strdt, 2, 2),
    "STRLANG": (_strlang, 2, 2),
    "STRLEN": (_strlen, 1, 1),
    "SUBSTR": (_substr, 2, 3),
    "UCASE": (_ucase, 1, 1),
    "LCASE": (_lcase, 1, 1),
    "CONTAINS": (_contains, 2, 2),
    "STRSTARTS": (_strstarts, 2, 2),
    "STRENDS": (_strends, 2, 2),
    "STRBEFORE": (_strbefore, 2, 2),
    "STRAFTER": (_strafter, 2, 2),
    "CONCAT": (_concat, 0, _ANY_COUNT),
    "ENCODE_FOR_URI": (_encode_for_uri, 1, 1),
    "REGEX": (_regex, 2, 3),
    "REPLACE": (_replace, 3, 4),
    "ABS": (absolute, 1, 1),
    "CEIL": (ceiling, 1, 1),
    "FLOOR": (floored, 1, 1),
    "ROUND": (rounded, 1, 1),
    "YEAR": (_field(0, _DATE_TIME | {"date", "gYear", "gYearMonth"}), 1, 1),
    "MONTH": (_field(1, _DATE_TIME | {"date", "gYearMonth", "gMonth", "gMonthDay"}), 1, 1),
    "DAY": (_field(2, _DATE_TIME | {"date", "gMonthDay", "gDay"}), 1, 1),
    "HOURS": (_field(3, _CLOCK), 1, 1),
    "MINUTES": (_field(4, _CLOCK), 1, 1),
    "SECONDS": (_seconds, 1, 1),
    "TZ": (_tz, 1, 1),
    "TIMEZONE": (_timezone, 1, 1),
    "MD5": (_digest("md5"), 1, 1),
    "SHA1": (_digest("sha1"), 1, 1),
    "SHA256": (_digest("sha256"), 1, 1),
    "SHA384": (_digest("sha384"), 1, 1),
    "SHA512": (_digest("sha512"), 1, 1),
    "RAND": (_rand, 0, 0),
    "UUID": (_uuid, 0, 0),
    "STRUUID": (_struuid, 0, 0),
}
"""Name → (function, fewest arguments, most arguments)."""


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
    "ISURI": _is_iri,
    "ISBLANK": _is_blank,
    "ISLITERAL": _is_literal,
    "ISNUMERIC": _is_numeric,
}

XSD = "http://www.w3.org/2001/XMLSchema#"
CASTS = frozenset(
    (
        "boolean", "string", "integer", "decimal", "float", "double", "dateTime", "date", "time",
        "duration", "yearMonthDuration", "dayTimeDuration",
    )
)
REFERENCE_CASTS = frozenset(("gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"))

_VOLATILE = frozenset(("RAND", "NOW", "UUID", "STRUUID", "BNODE"))


def volatile(node: ast.Node) -> bool:
    """Whether evaluating this twice may give two results."""
    return any(isinstance(part, ast.Call) and part.name in _VOLATILE for part in ast.walk(node))


def by_reference(node: ast.Node) -> str | None:
    """The function's name if this call is left to pyoxigraph; a REGEX may be, by its pattern."""
    match node:
        case ast.Call("REGEX", (_, ast.Literal(pattern), *rest)):
            flags = rest[0].lexical if rest and isinstance(rest[0], ast.Literal) else ""
            return None if _portable(pattern, flags) else f'REGEX with "{pattern}"'
        case ast.Call("REGEX"):
            return "REGEX with a computed pattern (some patterns)"
        case ast.Call("REPLACE"):
            return "REPLACE"
        case ast.FunctionCall(ast.Iri(name)) if name.removeprefix(XSD) in REFERENCE_CASTS:
            return f"<{name}>"
    return None
