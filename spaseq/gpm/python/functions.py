"""SPARQL's built-in functions over decoded values.

`FUNCTIONS` and `KIND_TESTS` map the names of `spaseq.sparql.builtins` to the implementations that
the entries name: functions of this module, of `strings`, `maths`, `geometry` and of
`spaseq.rdf.conversion`. A function
takes values and returns a value, or None for an error. No function reads a row; the forms that do
(`BOUND`, `IF`, `COALESCE`, `EXISTS`, `BNODE(x)`) are part of `expression`.

Behaviour is that of pyoxigraph, except that literals keep their written form: `STR` of
`"01"^^xsd:integer` is `"01"`. Source: SPARQL 1.1 section 17.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyoxigraph as ox

from spaseq.gpm.python import geometry, maths, strings
from spaseq.parser import ast
from spaseq.rdf import calendar, conversion
from spaseq.rdf.event import depth_of
from spaseq.rdf.native._values import (
    BLANK,
    INTEGER,
    IRI,
    LANG,
    POINT,
    STRING,
    TRIPLE,
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
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES
from spaseq.rdf.tagged import direction_of, language_of
from spaseq.sparql.builtins import BUILTINS, Builtin, functions_by_name

Function: TypeAlias = Callable[..., Value | None]

_NUMBERS = range(INTEGER, POINT)


# ------------------------------------------------------------------ terms


def lexical_form(value: Value) -> Value | None:
    """STR: an IRI, or the lexical form of a literal as written."""
    text = lexical(value)
    return None if text is None else string(text)


def language_tag(value: Value) -> Value | None:
    """LANG."""
    if value.kind <= BLANK:
        return None
    return string(language_of(value.form) if value.kind == LANG else "")


def datatype_iri(value: Value) -> Value | None:
    """DATATYPE."""
    name = datatype(value)
    return None if name is None else decode(name)


def iri(value: Value) -> Value | None:
    """IRI: an IRI, or the IRI with this text."""
    if value.kind == IRI:
        return value
    if value.kind != STRING:
        return None
    try:
        return decode(ox.NamedNode(value.text))
    except ValueError:
        return None


def typed_literal(text: Value, name: Value) -> Value | None:
    """STRDT."""
    if text.kind != STRING or name.kind != IRI:
        return None
    return decode(ox.Literal(text.text, datatype=ox.NamedNode(name.text)))


def tagged_literal(text: Value, language: Value) -> Value | None:
    """STRLANG."""
    if text.kind != STRING or language.kind != STRING:
        return None
    try:
        return decode(ox.Literal(text.text, language=language.text))
    except ValueError:
        return None


def directed_literal(text: Value, language: Value, direction: Value) -> Value | None:
    """STRLANGDIR."""
    if {text.kind, language.kind, direction.kind} != {STRING}:
        return None
    if direction.text not in ("ltr", "rtl"):
        return None
    towards = ox.BaseDirection(direction.text)
    try:
        return decode(ox.Literal(text.text, language=language.text, direction=towards))
    except ValueError:
        return None


def language_direction(value: Value) -> Value | None:
    """LANGDIR."""
    if value.kind <= BLANK:
        return None
    return string(direction_of(value.form) if value.kind == LANG else "")


def has_language(value: Value) -> Value:
    """hasLANG."""
    return boolean(value.kind == LANG)


def has_direction(value: Value) -> Value:
    """hasLANGDIR."""
    return boolean(value.kind == LANG and direction_of(value.form) != "")


def language_matches(tag: Value, wanted: Value) -> Value | None:
    """LANGMATCHES: basic filtering of RFC 4647."""
    if tag.kind != STRING or wanted.kind != STRING:
        return None
    have, want = tag.text.lower(), wanted.text.lower()
    if want == "*":
        return boolean(have != "")
    return boolean(have == want or have.startswith(want + "-"))


# ------------------------------------------------------------------ triple terms


def triple(subject: Value, predicate: Value, value: Value) -> Value | None:
    """TRIPLE; an error beyond `MAX_NESTED_TRIPLES` levels."""
    if subject.kind not in (IRI, BLANK) or predicate.kind != IRI:
        return None
    if depth_of(value.term) >= MAX_NESTED_TRIPLES:
        return None
    parts: Any = (subject.term, predicate.term, value.term)
    return decode(ox.Triple(*parts))


def triple_subject(value: Value) -> Value | None:
    """SUBJECT."""
    term = value.term
    return decode(term.subject) if isinstance(term, ox.Triple) else None


def triple_predicate(value: Value) -> Value | None:
    """PREDICATE."""
    term = value.term
    return decode(term.predicate) if isinstance(term, ox.Triple) else None


def triple_object(value: Value) -> Value | None:
    """OBJECT."""
    term = value.term
    return decode(term.object) if isinstance(term, ox.Triple) else None


# ------------------------------------------------------------------ dates and times


def _field(index: int, forms: frozenset[str]) -> Function:
    """The function that reads one field of `calendar.fields` from points of these datatypes."""

    def get(value: Value) -> Value | None:
        if value.kind != POINT or value.form not in forms:
            return None
        return integer(calendar.fields((value.number, value.extra))[index])

    return get


_DATE_TIME = frozenset(("dateTime",))
_CLOCK = _DATE_TIME | {"time"}

year = _field(0, _DATE_TIME | {"date", "gYear", "gYearMonth"})
month = _field(1, _DATE_TIME | {"date", "gYearMonth", "gMonth", "gMonthDay"})
day = _field(2, _DATE_TIME | {"date", "gMonthDay", "gDay"})
hours = _field(3, _CLOCK)
minutes = _field(4, _CLOCK)


def seconds(value: Value) -> Value | None:
    """SECONDS, with the fraction."""
    if value.kind != POINT or value.form not in _CLOCK:
        return None
    return decimal(calendar.fields((value.number, value.extra))[5])


def zone_text(value: Value) -> Value | None:
    """TZ: empty for a point without a time zone."""
    return string(calendar.format_zone(value.extra)) if value.kind == POINT else None


def zone_duration(value: Value) -> Value | None:
    """TIMEZONE: an error for a point without a time zone."""
    if value.kind != POINT or value.extra is None:
        return None
    return span("dayTimeDuration", 0, value.extra * calendar.MINUTE)


# ------------------------------------------------------------------ hashes, chance


def _digest(algorithm: str) -> Function:
    def digest(value: Value) -> Value | None:
        if value.kind != STRING:
            return None
        # Imported here as in the next functions: few queries need it, and it loads OpenSSL.
        import hashlib

        return string(hashlib.new(algorithm, value.text.encode()).hexdigest())

    return digest


md5 = _digest("md5")
sha1 = _digest("sha1")
sha256 = _digest("sha256")
sha384 = _digest("sha384")
sha512 = _digest("sha512")


def random_number() -> Value:
    """RAND."""
    from random import random

    return double(random())


def uuid_iri() -> Value:
    """UUID."""
    from uuid import uuid4

    return decode(ox.NamedNode(f"urn:uuid:{uuid4()}"))


def uuid_text() -> Value:
    """STRUUID."""
    from uuid import uuid4

    return string(str(uuid4()))


# ------------------------------------------------------------------ tests


def is_iri(value: Value) -> bool:
    """isIRI."""
    return value.kind == IRI


def is_blank(value: Value) -> bool:
    """isBLANK."""
    return value.kind == BLANK


def is_literal(value: Value) -> bool:
    """isLITERAL."""
    return value.kind > BLANK


def is_triple(value: Value) -> bool:
    """isTRIPLE."""
    return value.kind == TRIPLE


def is_numeric(value: Value) -> bool:
    """isNUMERIC: whether it is a number with a valid lexical form."""
    return value.kind in _NUMBERS


# ------------------------------------------------------------------ the table

_MODULES: Mapping[str, Mapping[str, Any]] = {
    "functions": globals(),
    "strings": vars(strings),
    "maths": vars(maths),
    "geometry": vars(geometry),
    "conversion": vars(conversion),
}


def _implementation(entry: Builtin) -> Callable[..., Any]:
    """The Python function that an entry names.

    Raises:
        ImportError: if there is no such function.
    """
    module, _, name = entry.python.partition(".")
    found = _MODULES.get(module, {}).get(name)
    if not callable(found):
        raise ImportError(f"{entry.name} names {entry.python!r}, which is not a function")
    return found  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Function] = {
    name: _implementation(entry) for name, entry in functions_by_name().items()
}
"""The implementations of the functions, by keyword or IRI."""

KIND_TESTS: dict[str, Callable[[Value], bool]] = {
    entry.name: _implementation(entry) for entry in BUILTINS.values() if entry.kind == "test"
}
"""The implementations of the tests, by name."""


def volatile(node: ast.Node) -> bool:
    """Whether evaluating this twice may give two results."""
    return any(
        isinstance(part, ast.Call) and BUILTINS[part.name].volatile for part in ast.walk(node)
    )
