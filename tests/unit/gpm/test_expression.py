"""Expressions: what random comparison with pyoxigraph does not cover."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from spaseq.gpm.python.entry import Scope, compile_expression, compile_filter
from spaseq.parser import ast, parse_expression
from spaseq.rdf.event import NUMBER, Event, Timestamp
from tests.unit.gpm.expression_strategies import literal

EX = "http://example.org/"
PREFIXES = {"": EX, "xsd": "http://www.w3.org/2001/XMLSchema#"}


def value(text: str, scope: Scope | None = None, **bindings):
    slots = {name: column for column, name in enumerate(bindings)}
    evaluate = compile_expression(parse_expression(text, PREFIXES), slots)
    return evaluate(tuple(bindings.values()), scope or Scope())


# ------------------------------------------------------------------ literals as written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("STR(?x)", ox.Literal("14.0")),
        ("?x", literal("14.0", "double")),
        ("IF(true, ?x, 1)", literal("14.0", "double")),
        ("COALESCE(?x, 1)", literal("14.0", "double")),
        ("?x + 0", literal("14", "double")),
        ("sameTerm(?x, 14e0)", literal("false", "boolean")),
        ("?x = 14", literal("true", "boolean")),
        ('CONCAT(STR(?x), "!")', ox.Literal("14.0!")),
    ],
)
def test_literals_keep_their_form(text, expected):
    assert value(text, x=literal("14.0", "double")) == expected


def test_a_derived_integer_is_a_number_and_keeps_its_datatype():
    small = literal("7", "byte")
    assert value("DATATYPE(?x)", x=small) == ox.NamedNode(PREFIXES["xsd"] + "byte")
    assert value("?x + 1", x=small) == literal("8", "integer")


# ------------------------------------------------------------------ more than pyoxigraph


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 / 0.5", literal("0", "decimal")),
        ("0.0000000001 * 0.0000000001", literal("0.00000000000000000001", "decimal")),
        ("0.123456789012 * 0.1", literal("0.0123456789012", "decimal")),
        ("false < true", literal("true", "boolean")),
        ('"2020-01-31"^^xsd:date + "P1M"^^xsd:yearMonthDuration', literal("2020-02-29", "date")),
        (
            '"PT1H"^^xsd:dayTimeDuration + "2020-01-01T23:30:00Z"^^xsd:dateTime',
            literal("2020-01-02T00:30:00Z", "dateTime"),
        ),
        ("xsd:integer(123456789012e0)", literal("123456789012", "integer")),
        ("xsd:decimal(1234567e0)", literal("1234567", "decimal")),
        ("1 NOT IN ()", literal("true", "boolean")),
    ],
)
def test_what_the_standards_define(text, expected):
    assert value(text) == expected


# ------------------------------------------------------------------ variables


def test_a_name_without_a_slot_is_unbound():
    assert value("?nowhere") is None
    assert value("BOUND(?nowhere)") == literal("false", "boolean")
    assert value("COALESCE(?nowhere, 3)") == literal("3", "integer")


def test_names_may_hold_any_character():
    expr = ast.Binary("+", ast.Var("SUM(?x) over B"), ast.Var("previous ?y"))
    evaluate = compile_expression(expr, {"SUM(?x) over B": 0, "previous ?y": 1})
    assert evaluate((ox.Literal(1), ox.Literal(2)), Scope()) == ox.Literal(3)


def test_names_may_hold_any_character_in_what_pyoxigraph_computes():
    last = ox.Literal("b")
    arguments = (ast.Var("a b"), ast.Literal("a"), ast.Literal("b"))
    found = compile_expression(ast.Call("REPLACE", arguments), {"a b": 0})((last,), Scope())
    assert found == last


def test_an_error_is_false_in_a_filter():
    test = compile_filter(parse_expression("?x > 1 || ?y > 1", {}), {"x": 0, "y": 1})
    assert test((None, ox.Literal(2)), Scope()) is True
    assert test((None, ox.Literal(0)), Scope()) is False


# ------------------------------------------------------------------ functions of their own


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "expected"),
    [
        ("^abc$", "", "abc\n", False),
        ("a.c", "", "a\nc", False),
        ("a.c", "s", "a\nc", True),
        ("straße", "i", "STRASSE", False),
        ("É", "i", "é", True),
        ("a{2}", "", "caab", True),
        ("\\p{Lu}", "", "aB", True),
        ("(", "", "a", None),
        ("(?=a)", "", "a", None),
        ("b", "q", "a.b", True),
        ("^b", "m", "a\nb", True),
        ("[a-c]+\\.d?", "", "xab.", True),
        ("a\\$", "", "a$\n", True),
        ("\\\\$", "", "\\\n", False),
        ("(a|b)c*d?$", "", "xbccd", True),
        ("(x+x+)+y", "", "x" * 40, False),
        ("x*x*x*x*x*x*y", "", "x" * 60, False),
        ("a**", "", "a", True),
        (")", "", "a", None),
        ("[z-a]", "", "a", None),
    ],
)
def test_regular_expressions_are_those_of_the_reference(pattern, flags, text, expected):
    arguments = (ast.Var("x"), ast.Literal(pattern), ast.Literal(flags))
    found = compile_expression(ast.Call("REGEX", arguments), {"x": 0})((ox.Literal(text),), Scope())
    assert found == (None if expected is None else ox.Literal(expected))
    slots = "?x ?p ?f"
    rows = f"{ox.Literal(text)} {ox.Literal(pattern)} {ox.Literal(flags)}"
    query = f"SELECT (REGEX(?x, ?p, ?f) AS ?r) {{ VALUES ({slots}) {{ ({rows}) }} }}"
    (solution,) = ox.Store().query(query)
    assert found == solution["r"]


def test_bnode_is_one_node_for_each_string_and_solution():
    first = value("BNODE(?x)", x=ox.Literal("a"), y=ox.Literal(1))
    assert first == value("BNODE(?x)", x=ox.Literal("a"), y=ox.Literal(1))
    assert first != value("BNODE(?x)", x=ox.Literal("a"), y=ox.Literal(2))
    assert first != value("BNODE(?x)", x=ox.Literal("b"), y=ox.Literal(1))
    event = Event("urn:s", Timestamp(1, NUMBER, ox.Literal(1)), 0, ())
    assert first != value("BNODE(?x)", Scope(event), x=ox.Literal("a"), y=ox.Literal(1))
    assert value("BNODE()") != value("BNODE()")


def test_now_is_one_time_in_one_scope():
    scope = Scope()
    assert value("NOW()", scope) == value("NOW()", scope)
    assert value("YEAR(NOW()) > 2020") == literal("true", "boolean")


def test_chance():
    assert value("RAND()") != value("RAND()")
    assert value("STRLEN(STRUUID())") == literal("36", "integer")
    assert value('STRSTARTS(STR(UUID()), "urn:uuid:")') == literal("true", "boolean")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('xsd:gYear("2020-05-01"^^xsd:date)', literal("2020", "gYear")),
        (
            'TIMEZONE("2020-01-01T00:00:00-02:30"^^xsd:dateTime)',
            literal("-PT2H30M", "dayTimeDuration"),
        ),
        ('IRI("http://a/")', ox.NamedNode("http://a/")),
        ('IRI("no iri")', None),
        (
            'SHA256("a")',
            ox.Literal("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
        ),
    ],
)
def test_functions_beyond_the_common_ones(text, expected):
    assert value(text) == expected
