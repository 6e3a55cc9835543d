"""Decoded values and their operators against pyoxigraph, on all pairs of many terms."""

from __future__ import annotations

import pickle
import random
import struct

import pyoxigraph as ox
import pytest

from spaseq.rdf import conversion
from spaseq.rdf.native import _values as values
from spaseq.rdf.native._values import Value, decode
from spaseq.sparql.builtins import CASTS as CAST_NAMES
from tests.unit.rdf import exact
from tests.unit.rdf.literals import TERMS, TYPED, XSD, literal

HOME = ox.NamedNode("urn:home")


@pytest.fixture(scope="module")
def store() -> ox.Store:
    """A store with every term as an object, its number in the predicate."""
    found = ox.Store()
    for number, term in enumerate(TERMS):
        found.add(ox.Quad(HOME, ox.NamedNode(f"urn:{number}"), term))
    return found


def _number(link: ox.NamedNode) -> int:
    return int(link.value.removeprefix("urn:"))


def _term(found):
    if found is None or isinstance(found, bool):
        return None if found is None else values.boolean(found).term
    return found.term if isinstance(found, Value) else found


def _plain(term):
    """A computed term, or the canonical form of one that came through unchanged."""
    if not isinstance(term, ox.Literal):
        return term
    value = decode(term)
    if value.kind in (values.OTHER, values.STRING, values.LANG):
        return term
    name = "integer" if value.kind == values.INTEGER else term.datatype.value.removeprefix(XSD)
    return literal(values.canonical(value), name)


# ------------------------------------------------------------------ reading and writing


def test_canonical_forms(store):
    """But for numbers that pyoxigraph has no room for."""
    for number, term in enumerate(TERMS):
        (quad,) = store.quads_for_pattern(HOME, ox.NamedNode(f"urn:{number}"), None)
        expected = quad.object
        value = decode(term)
        assert value.term == term
        if value.kind in (values.OTHER, values.IRI, values.BLANK):
            assert expected == term or _beyond(term)
        elif not _beyond(term):
            assert values.canonical(value) == expected.value, term


def test_what_is_written_is_what_str_gives():
    for term in TYPED:
        assert values.lexical(decode(term)) == term.value
        assert values.datatype(decode(term)) == term.datatype


@pytest.mark.parametrize("name", ["double", "float"])
def test_texts_of_floating_point_numbers(name):
    chance = random.Random(7)
    form = "d" if name == "double" else "f"
    size = struct.calcsize(form)
    numbers = [struct.unpack(form, chance.randbytes(size))[0] for _ in range(1500)]
    numbers += [chance.randint(0, 10**17) / 4 for _ in range(500)]
    numbers += [chance.uniform(-1000, 1000) for _ in range(500)]
    rows = " ".join(f'({i} "{n!r}"^^<{XSD}{name}>)' for i, n in enumerate(numbers))
    make = values.double if name == "double" else values.float_
    for solution in ox.Store().query(f"SELECT ?i ?x {{ VALUES (?i ?x) {{ {rows} }} }}"):
        assert make(numbers[int(solution["i"].value)]).term == solution["x"]


def test_very_long_times_have_no_value():
    for name in ("dateTime", "duration"):
        assert decode(literal("9" * 5000, name)).kind == values.OTHER


@pytest.mark.parametrize("name", ["integer", "decimal"])
def test_numbers_have_any_length(name):
    """More digits than Python turns into an int."""
    value = decode(literal("9" * 50_000, name))
    assert value.kind == values.WIDE
    assert values.canonical(values.add(value, decode(literal("1", name)))) == "1" + "0" * 50_000
    assert decode(literal("9" * 5000, "double")).real == float("inf")


def test_canonical_forms_of_wide_numbers():
    for text, form in (
        ("0009223372036854775808", "9223372036854775808"),
        ("+9223372036854775808", "9223372036854775808"),
        ("-9223372036854775809", "-9223372036854775809"),
    ):
        assert values.canonical(decode(literal(text, "integer"))) == form
    for text, form in (
        ("0.0000000000000000001000", "0.0000000000000000001"),
        ("170141183460469231731687303715884105728.", "170141183460469231731687303715884105728"),
        ("0.0000000000000000000", "0"),
    ):
        assert values.canonical(decode(literal(text, "decimal"))) == form


def test_the_cache_is_bounded():
    for number in range(values.CACHE_LIMIT + 100):
        decode(ox.Literal(number))
    assert decode(ox.Literal(5)).number == 5


def test_values_are_equal_hashable_and_picklable():
    for term in TERMS:
        value = decode(term)
        copy = pickle.loads(pickle.dumps(value))
        assert copy == value
        assert hash(copy) == hash(value)
        assert copy.term == term
    assert decode(literal("1.0", "decimal")) == decode(literal("1", "decimal"))
    assert decode(literal("1", "integer")) != decode(literal("1", "decimal"))
    assert decode(literal("1", "integer")) != 1


# ------------------------------------------------------------------ binary operators

BINARY = {
    "=": values.equals,
    "<": values.less,
    "<=": values.less_equal,
    ">": lambda a, b: values.less(b, a),
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
}


def _defined_elsewhere(operator: str, left: Value, right: Value) -> bool:
    """Whether SPARQL or XPath give a value where pyoxigraph gives an error."""
    kinds = {left.kind, right.kind}
    if operator in ("*", "/"):
        return kinds <= {values.INTEGER, values.DECIMAL}
    if operator == "+":
        return values.SPAN in kinds
    return kinds == {values.BOOLEAN}


@pytest.mark.parametrize("operator", BINARY)
def test_binary_operators(store, operator):
    function = BINARY[operator]
    query = f"SELECT ?p ?q ((?a {operator} ?b) AS ?r) {{ ?s ?p ?a . ?s ?q ?b }}"
    for solution in store.query(query):
        left = decode(TERMS[_number(solution["p"])])
        right = decode(TERMS[_number(solution["q"])])
        found, expected = _term(function(left, right)), solution["r"]
        numbers = (
            exact.number_of(TERMS[_number(solution["p"])]),
            exact.number_of(TERMS[_number(solution["q"])]),
        )
        ordered = operator in "+-*/" or not any(n and n[1] != n[1] for n in numbers)
        if None not in numbers and ordered:
            assert exact.agrees(operator, *numbers, found), (left, operator, right, found)
        elif any(map(_beyond, (left.term, right.term))):
            assert found is None or operator == "=" or left == right, (left, operator, right)
        elif expected is not None or not _defined_elsewhere(operator, left, right):
            assert found == expected, (left, operator, right)


def test_order_is_antisymmetric():
    for left in map(decode, TERMS):
        for right in map(decode, TERMS):
            there, back = values.compare(left, right), values.compare(right, left)
            assert there == (None if back is None else -back)


# ------------------------------------------------------------------ functions of one value

CASTS = sorted(CAST_NAMES)
UNARY = {
    "-?a": conversion.negate,
    "+?a": conversion.plus,
    "!!?a": values.ebv,
    "ABS(?a)": conversion.absolute,
    "ROUND(?a)": conversion.rounded,
    "CEIL(?a)": conversion.ceiling,
    "FLOOR(?a)": conversion.floored,
}


@pytest.mark.parametrize("text", UNARY)
def test_functions_of_one_value(store, text):
    for solution in store.query(f"SELECT ?p (({text}) AS ?r) {{ ?s ?p ?a }}"):
        term = TERMS[_number(solution["p"])]
        if not _beyond(term):
            assert _plain(_term(UNARY[text](decode(term)))) == solution["r"], (text, term)


def _beyond(term: ox.Literal) -> bool:
    """Whether pyoxigraph reads the number otherwise, or has no room for what becomes of it.

    It has integers of 64 bits and decimals of 128, and takes numbers for valid that are out of the
    range of their datatype, such as a negative xsd:nonNegativeInteger.
    """
    value = decode(term)
    if value.kind == values.OTHER:
        return value.form.value in (XSD + "byte", XSD + "nonNegativeInteger")
    return value.kind == values.WIDE or (
        value.kind in (values.INTEGER, values.DECIMAL) and abs(value.number) >= 2**63 - 1
    )


@pytest.mark.parametrize(
    ("text", "results"),
    [
        # minus, ABS, ROUND, CEIL, FLOOR
        ("9223372036854775808.5", ("-{}", "{}", "{}9", "{}9", "{}8")),
        ("-9223372036854775808.5", ("{}", "{}", "-{}8", "-{}8", "-{}9")),
    ],
)
def test_signs_and_rounding_of_wide_decimals(text, results):
    text = text.replace("9223372036854775808", "9223372036854775808" * 3)
    value = decode(literal(text, "decimal"))
    size = text.lstrip("-")
    stem = size.removesuffix("8.5")
    functions = (
        conversion.negate,
        conversion.absolute,
        conversion.rounded,
        conversion.ceiling,
        conversion.floored,
    )
    for function, form in zip(functions, results, strict=True):
        whole = form[-1].isdigit()
        assert values.canonical(function(value)) == form.format(stem if whole else size)


def _cast_elsewhere(value: Value) -> bool:
    """Whole doubles become whole numbers here; pyoxigraph makes 99999 of 1e5, and 0 of 1e-45."""
    if value.kind not in (values.FLOAT, values.DOUBLE):
        return False
    return value.real.is_integer() or 0 < abs(value.real) < 1e-18


@pytest.mark.parametrize("name", CASTS)
def test_casts(store, name):
    for solution in store.query(f"SELECT ?p (<{XSD}{name}>(?a) AS ?r) {{ ?s ?p ?a }}"):
        term = TERMS[_number(solution["p"])]
        if (name in ("decimal", "integer") and _cast_elsewhere(decode(term))) or _beyond(term):
            continue
        found = _term(conversion.cast(name, decode(term)))
        if name == "string" and found is not None:
            assert found == solution["r"], (name, term)
        else:
            assert _plain(found) == solution["r"], (name, term)


@pytest.mark.parametrize(
    ("real", "decimal", "integer"),
    [
        (1234567.0, "1234567", "1234567"),
        (123456789012.0, "123456789012", "123456789012"),
        (-2.5, "-2.5", "-2"),
        (0.1, "0.1", "0"),
        (1e21, "1000000000000000000000", "1000000000000000000000"),
        (float("nan"), None, None),
        (float("inf"), None, None),
    ],
)
def test_doubles_become_exact_numbers(real, decimal, integer):
    for name, expected in (("decimal", decimal), ("integer", integer)):
        found = _term(conversion.cast(name, values.double(real)))
        assert found == (None if expected is None else literal(expected, name))
