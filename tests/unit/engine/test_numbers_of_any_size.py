"""Filters, joins, aggregates and negations over numbers beyond 64 and 128 bits, by fractions.

Runs of generated events through the public interface; `tests/unit/rdf/exact.py` is the reference.
"""

from __future__ import annotations

import os
import random
from fractions import Fraction
from functools import cache

import pyoxigraph as ox
import pytest
from core_runs import in_python
from number_draws import drawn, holds, is_nan, whole

import spaseq
from spaseq.runs import Run
from tests.unit.rdf import exact
from tests.unit.rdf.literals import XSD, literal

SCALE = int(os.environ.get("SPASEQ_EXAMPLES", "500"))
SEED = int(os.environ.get("SPASEQ_SEED", "1"))
STREAM = "http://example.org/S"
HEAD = "PREFIX : <http://example.org/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@cache
def program(where: str, select: str = "*", within: str = "1000 SECONDS") -> spaseq.Program:
    return spaseq.compile(
        f"{HEAD} SELECT {select} WITHIN {within} FROM STREAM S <{STREAM}> WHERE {{ {where} }}"
    )


def graph(name: str, **values: ox.Literal) -> bytes:
    """The N-Triples of one subject."""
    return "".join(
        f"<http://example.org/{name}> <http://example.org/{key}> {value} .\n"
        for key, value in values.items()
    ).encode()


def solutions(where: str, graphs: list[bytes], **more: str) -> list[dict[str, str]]:
    """What the compiled core finds, and for short streams the automaton in Python as well."""
    compiled = program(where, **more)
    found = pushed(compiled.start(), graphs)
    if len(graphs) < 50:
        plain = pushed(in_python(compiled), graphs)
        assert sorted(map(repr, plain)) == sorted(map(repr, found))
    return found


def pushed(run: Run, graphs: list[bytes]) -> list[dict[str, str]]:
    found = []
    for number, text in enumerate(graphs):
        found += run.push(STREAM, number, text)
    found += run.finish()
    return [
        {name: term.value.rpartition("/")[2] for name, term in match.bindings.items()}
        for match in found
    ]


def comparable(a: ox.Literal, b: ox.Literal) -> bool:
    """Two NaNs of one datatype are as pyoxigraph has them: `<=` is true of them."""
    return not (is_nan(a) and is_nan(b))


# ------------------------------------------------------------------ comparisons


@pytest.mark.parametrize("operator", OPERATORS)
def test_filters_of_one_event(operator):
    chance = random.Random(f"{SEED} local {operator}")
    pairs = [(drawn(chance), drawn(chance)) for _ in range(SCALE)]
    pairs = [(a, b) for a, b in pairs if comparable(a, b)]
    where = f"SEQ(A) DEFINE GPM A ON S {{ ?s :x ?x ; :y ?y FILTER(?x {operator} ?y) }}"
    graphs = [graph(f"e{n}", x=a, y=b) for n, (a, b) in enumerate(pairs)]
    found = {row["s"] for row in solutions(where, graphs)}
    for number, (a, b) in enumerate(pairs):
        assert (f"e{number}" in found) == holds(operator, a, b), (a, operator, b)


@pytest.mark.parametrize("operator", OPERATORS)
def test_constants_and_lists(operator):
    chance = random.Random(f"{SEED} constant {operator}")
    for _ in range(12):
        constant = next(c for c in iter(lambda: drawn(chance), None) if not is_nan(c))
        values = [drawn(chance) for _ in range(SCALE // 12)]
        graphs = [graph(f"e{n}", x=x) for n, x in enumerate(values)]
        condition = f"?x {operator} {constant}"
        if operator == "=":
            condition = f"?x IN (0.5, {constant})"
        where = f"SEQ(A) DEFINE GPM A ON S {{ ?s :x ?x FILTER({condition}) }}"
        found = {row["s"] for row in solutions(where, graphs)}
        for number, x in enumerate(values):
            expected = holds(operator, x, constant) or (
                operator == "=" and holds("=", x, literal("0.5", "decimal"))
            )
            assert (f"e{number}" in found) == expected, (x, operator, constant)


@pytest.mark.parametrize("sequence", [":", ";"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_filters_over_two_steps(operator, sequence):
    """Groups lie in the order of their numbers; `:` joins the union of a range."""
    chance = random.Random(f"{SEED} steps {operator} {sequence}")
    where = (
        f"SEQ(A {sequence} B) DEFINE GPM A ON S {{ ?a :x ?x }} "
        f"DEFINE GPM B ON S {{ ?b :y ?y FILTER(?y {operator} ?x) }}"
    )
    for number in range(SCALE // 40):
        pool = [drawn(chance) for _ in range(chance.choice((4, 12, 60)))]
        if number % 3:
            pool = [term for term in pool if not term.datatype.value.endswith(("float", "double"))]
            pool += [literal("7", "integer")]
        events = [(chance.choice("xxy"), chance.choice(pool)) for _ in range(40)]
        graphs = [graph(f"e{n}", **{letter: term}) for n, (letter, term) in enumerate(events)]
        found = {(row["a"], row["b"]) for row in solutions(where, graphs)}
        expected = set()
        for i, (first, x) in enumerate(events):
            for j in range(i + 1, len(events)):
                letter, y = events[j]
                if first != "x" or letter != "y":
                    continue
                if holds(operator, y, x) if comparable(x, y) else operator in ("!=", "<=", ">="):
                    expected.add((f"e{i}", f"e{j}"))
                    if sequence == ";":
                        break
        unsure = {
            (f"e{i}", f"e{j}")
            for i, (_, x) in enumerate(events)
            for j, (_, y) in enumerate(events)
            if not comparable(x, y)
        }
        if unsure and sequence == ";":
            continue
        assert found - unsure == expected - unsure


@pytest.mark.parametrize("operator", ["<", "=", ">="])
def test_negations(operator):
    """What must not occur is found, however large its number is."""
    chance = random.Random(f"{SEED} negation {operator}")
    where = (
        "SEQ(A ; !N ; C) DEFINE GPM A ON S { ?a :x ?x } DEFINE GPM C ON S { ?c :z ?z } "
        f"DEFINE GPM N ON S {{ ?n :y ?y FILTER(?y {operator} ?x) }}"
    )
    for _ in range(SCALE // 10):
        x, y = drawn(chance), drawn(chance)
        if not comparable(x, y):
            continue
        graphs = [graph("a", x=x), graph("n", y=y), graph("c", z=x)]
        assert bool(solutions(where, graphs)) is not holds(operator, y, x), (y, operator, x)


def test_the_previous_iteration():
    chance = random.Random(f"{SEED} previous")
    where = "SEQ(B{2}) DEFINE GPM B ON S { ?b :x ?x FILTER(?x > PREV(?x, ?x - 1)) }"
    for _ in range(SCALE // 20):
        values = [literal(str(whole(chance)), "integer") for _ in range(12)]
        graphs = [graph(f"e{n}", x=x) for n, x in enumerate(values)]
        found = len(solutions(where, graphs, select="(FIRST(?b) AS ?f) (LAST(?b) AS ?l)"))
        expected = sum(any(holds(">", y, x) for y in values[i + 1 :]) for i, x in enumerate(values))
        assert found == expected, values


# ------------------------------------------------------------------ arithmetic


@pytest.mark.parametrize("operator", "+-*/")
def test_values_of_expressions(operator):
    chance = random.Random(f"{SEED} arithmetic {operator}")
    where = f"SEQ(A) DEFINE GPM A ON S {{ ?s :x ?x ; :y ?y BIND(?x {operator} ?y AS ?r) }}"
    pairs = [(drawn(chance), drawn(chance)) for _ in range(SCALE)]
    run = program(where).start()
    for number, (a, b) in enumerate(pairs):
        (match,) = run.push(STREAM, number, graph("s", x=a, y=b))
        one, other = exact.number_of(a), exact.number_of(b)
        found = match.bindings.get("r")
        assert exact.agrees(operator, one, other, found), (a, operator, b, found)


@pytest.mark.parametrize("operator", "+-*")
def test_exact_results_in_filters(operator):
    """The filter over two steps computes, and compares with the exact number or its neighbour."""
    chance = random.Random(f"{SEED} exact {operator}")
    where = (
        "SEQ(A : B) DEFINE GPM A ON S { ?a :x ?x } "
        f"DEFINE GPM B ON S {{ ?b :y ?y ; :z ?z FILTER(?x {operator} ?y {{}} ?z) }}"
    )
    for _ in range(SCALE // 4):
        x, y = drawn(chance), drawn(chance)
        one, other = exact.number_of(x), exact.number_of(y)
        if not all(isinstance(number[1], Fraction) for number in (one, other)):
            continue
        a, b = one[1], other[1]
        true = {"+": a + b, "-": a - b, "*": a * b}[operator]
        step = chance.choice((0, 0, Fraction(1, 10**140), -Fraction(1, 10**140)))
        z = literal(decimal_text(true + step), "decimal")
        for comparison in ("=", "<", ">="):
            found = solutions(
                where.replace("{}", comparison), [graph("a", x=x), graph("b", y=y, z=z)]
            )
            expected = {"=": step == 0, "<": step > 0, ">=": step <= 0}[comparison]
            assert bool(found) is expected, (x, operator, y, comparison, z)


def decimal_text(number: Fraction) -> str:
    """A number of at most 140 places."""
    scaled = number * 10**140
    assert scaled.denominator == 1
    sign, digits = "-" if scaled < 0 else "", str(abs(scaled.numerator)).zfill(141)
    return f"{sign}{digits[:-140]}.{digits[-140:]}"


# ------------------------------------------------------------------ aggregates


def exactly(terms: list[ox.Literal]) -> list[Fraction]:
    return [exact.number_of(term)[1] for term in terms]


def exact_terms(chance: random.Random, count: int) -> list[ox.Literal]:
    found: list[ox.Literal] = []
    while len(found) < count:
        term = drawn(chance)
        if not term.datatype.value.endswith(("float", "double")):
            found.append(term)
    return found


@pytest.mark.parametrize("distinct", ["", "DISTINCT "])
def test_aggregates_over_iterations(distinct):
    chance = random.Random(f"{SEED} aggregates {distinct}")
    where = "SEQ(A , B{5}) DEFINE GPM A ON S { ?a :x ?x } DEFINE GPM B ON S { ?b :y ?y }"
    names = ("SUM", "AVG", "MIN", "MAX", "COUNT")
    select = " ".join(f"({name}({distinct}?y) AS ?{name.lower()})" for name in names)
    for _ in range(SCALE // 5):
        terms = exact_terms(chance, 5)
        if distinct:
            terms[chance.randrange(5)] = terms[0]
        graphs = [graph("a", x=terms[0]), *(graph(f"b{n}", y=y) for n, y in enumerate(terms))]
        (found,) = solutions(where, graphs, select=select)
        numbers = exactly(list(dict.fromkeys(terms)) if distinct else terms)
        mean = sum(numbers, Fraction()) / len(numbers)
        assert Fraction(found["sum"]) == sum(numbers), terms
        assert Fraction(found["min"]) == min(numbers), terms
        assert Fraction(found["max"]) == max(numbers), terms
        assert int(found["count"]) == len(numbers)
        cut = abs(mean) - abs(Fraction(found["avg"]))
        assert 0 <= cut < Fraction(1, 10**18), terms


def test_running_aggregates():
    """A filter of the iteration reads the sum so far."""
    chance = random.Random(f"{SEED} running")
    for _ in range(SCALE // 20):
        terms = exact_terms(chance, 6)
        limit = literal(str(whole(chance)), "integer")
        where = (
            "SEQ(A , B+) DEFINE GPM A ON S { ?a :x ?x } "
            "DEFINE GPM B ON S { ?b :y ?y "
            "FILTER(SUM(?y) < ?x && MAX(?y) >= ?y && AVG(?y) <= MAX(?y)) }"
        )
        graphs = [graph("a", x=limit), *(graph(f"b{n}", y=y) for n, y in enumerate(terms))]
        found = solutions(where, graphs, select="(COUNT(B) AS ?n) (SUM(?y) AS ?sum)")
        sums, numbers = [], exactly(terms)
        for count in range(1, len(numbers) + 1):
            if sum(numbers[:count]) >= int(limit.value):
                break
            if max(numbers[:count]) < sum(numbers[:count], Fraction()) / count:
                break
            sums.append(sum(numbers[:count]))
        assert [Fraction(row["sum"]) for row in found] == sums, (terms, limit)


# ------------------------------------------------------------------ casts, functions, terms


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('xsd:integer("1e400"^^xsd:double)', None),
        ('xsd:integer("1e400")', None),
        ('xsd:decimal("1e400"^^xsd:double)', None),
        ('xsd:double("1e400")', literal("INF", "double")),
        (f"xsd:double({10**400})", literal("INF", "double")),
        (f"xsd:float(-{10**39})", literal("-INF", "float")),
        ("xsd:integer(1e30)", literal(str(int(1e30)), "integer")),
        ("xsd:decimal(-1e300)", literal(str(int(-1e300)), "decimal")),
        ('xsd:decimal("2e-30"^^xsd:double)', literal("0." + "0" * 29 + "2", "decimal")),
        (f'xsd:integer("{10**30}")', literal(str(10**30), "integer")),
        (f"xsd:integer({10**30}.9)", literal(str(10**30), "integer")),
        (f"xsd:integer(-{10**30}.9)", literal(str(-(10**30)), "integer")),
        (f"xsd:string(0{10**30}.50)", ox.Literal(f"{10**30}.5")),
        (f"STR(0{10**30}.50)", ox.Literal(f"0{10**30}.50")),
        (f"STR({10**30} * 10)", ox.Literal(str(10**31))),
        (f"DATATYPE({10**30} * 10)", ox.NamedNode(XSD + "integer")),
        (f"DATATYPE({2**63 - 1} / 1)", ox.NamedNode(XSD + "decimal")),
        (f"xsd:boolean({10**30})", literal("true", "boolean")),
        (f"ABS(-{10**30})", literal(str(10**30), "integer")),
        (f"ABS(-{2**63})", literal(str(2**63), "integer")),
        (f"-(-{2**63})", literal(str(2**63), "integer")),
        (f"ROUND({10**30}.5)", literal(str(10**30 + 1), "decimal")),
        (f"ROUND(-{10**30}.5)", literal(str(-(10**30)), "decimal")),
        (f"CEIL({10**30}.0000000000000000000000001)", literal(str(10**30 + 1), "decimal")),
        (f"FLOOR(-{10**30}.0000000000000000000000001)", literal(str(-(10**30) - 1), "decimal")),
        ("FLOOR(0.0000000000000000000000001)", literal("0", "decimal")),
        (f"ISNUMERIC({10**30})", literal("true", "boolean")),
        (f'SUBSTR("abc", -{10**30}, {10**30 + 3})', ox.Literal("ab")),
        (f'SUBSTR("abc", 2, {10**30})', ox.Literal("bc")),
        (f'SUBSTR("abc", {10**30})', ox.Literal("")),
        (f'IF({10**30}, "yes", "no")', ox.Literal("yes")),
        (f"{10**30} / 0", None),
        (f"{10**30} / 0.0", None),
        (f"{10**30} / 0e0", literal("INF", "double")),
        (f"{10**30} - {10**30} + 1", literal("1", "integer")),
        (f"{10**30} / {10**29}", literal("10", "decimal")),
        (f"1 / {3 * 10**29}", literal("0." + "0" * 29 + "3" * 18, "decimal")),
        ("1 / 3", literal("0." + "3" * 18, "decimal")),
        ("2 / 3.0", literal("0." + "6" * 18, "decimal")),
        ('"300"^^xsd:byte + 1', None),
        ('"18446744073709551615"^^xsd:unsignedLong + 1', literal(str(2**64), "integer")),
        ('"18446744073709551616"^^xsd:unsignedLong + 1', None),
        (f'"-{10**30}"^^xsd:nonPositiveInteger - 1', literal(str(-(10**30) - 1), "integer")),
        (f'"-{10**30}"^^xsd:nonNegativeInteger - 1', None),
    ],
)
def test_casts_and_functions(expression, expected):
    """Of constants and, over two steps, of the same numbers in the data."""
    where = f"SEQ(A) DEFINE GPM A ON S {{ ?s :x ?x BIND({expression} AS ?r) }}"
    (match,) = program(where).start().push(STREAM, 1, graph("s", x=literal("1", "integer")))
    assert match.bindings.get("r") == expected
    (chosen,) = solutions(
        "SEQ(A) DEFINE GPM A ON S { ?s :x ?x }",
        [graph("s", x=literal("1", "integer"))],
        select=f"({expression} AS ?r)",
    )
    assert chosen.get("r") == (None if expected is None else expected.value.rpartition("/")[2])


def test_a_number_of_a_million_digits():
    """More digits than Python reads as an int, in time that is about linear."""
    long = "7" * 1_000_000
    where = (
        "SEQ(A : B) DEFINE GPM A ON S { ?a :x ?x FILTER(?x > 1 && ?x - 1 < ?x) } "
        "DEFINE GPM B ON S { ?b :y ?y FILTER(?y > ?x && ?y = ?x + 1) }"
    )
    found = solutions(
        where,
        [
            graph("a", x=literal(long, "integer")),
            graph("b", y=literal(long[:-1] + "8.0", "decimal")),
            graph("c", y=literal("0." + long, "decimal")),
        ],
    )
    assert [(row["a"], row["b"]) for row in found] == [("a", "b")]


def test_large_numbers_from_python():
    """`bind` gives a filter numbers of any size."""
    text = (
        f"{HEAD} SELECT ?s WITHIN 1 SECONDS FROM STREAM S <{STREAM}> "
        "WHERE { SEQ(A) DEFINE GPM A ON S { ?s :x ?x FILTER(?x > ?limit) } }"
    )
    for limit in (10**30, 10**5000):
        run = spaseq.compile(text).start(bind={"limit": limit})
        assert not run.push(STREAM, 1, graph("a", x=literal("1" + "0" * 30, "integer")))
        assert run.push(STREAM, 2, graph("b", x=literal("1" + "0" * 5001, "integer")))
