"""Groups of results: exact sums, sliding aggregates against whole ones, and what a run stores."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.engine.result_aggregates import accumulator
from spaseq.gpm.python.aggregates import aggregate
from spaseq.plan.logical import ResultAggregate
from spaseq.rdf.event import Term
from spaseq.rdf.native._values import decode, double

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, kind: str) -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


def made(function: str, distinct: bool = False) -> ResultAggregate:
    return ResultAggregate(function, function, 0, distinct, None)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("name", ["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"])
def test_a_sliding_aggregate_is_that_of_the_values_it_holds(name: str, distinct: bool) -> None:
    chance = random.Random(f"{name}{distinct}")
    values: list[Term | None] = [
        None, ox.Literal("text"), ox.NamedNode("http://example.org/a"), literal("1", "integer"),
        literal("1.0", "decimal"), literal("2.5", "decimal"), literal("2.5E0", "double"),
        literal("-3", "integer"), literal("0.25", "float"),
        literal("2026-01-01T00:00:00Z", "dateTime"),
    ]  # fmt: skip
    numbers = [value for value in values if value is not None and _is_number(value)]
    wide = [literal("9" * 20, "integer"), literal("-0.1", "decimal"), literal("2", "integer")]
    for options in (values, numbers, wide):
        sliding, held = accumulator(made(name, distinct)), []
        for _ in range(300):
            if held and chance.random() < 0.45:
                sliding.remove(held.pop(0))
            else:
                held.append(chance.choice(options))
                sliding.add(held[-1])
            bound = [value for value in held if value is not None]
            wanted = aggregate(name, bound, None, distinct)
            if len(bound) < len(held) and name in ("SUM", "AVG", "MIN", "MAX"):
                wanted = None
            assert sliding.value() == wanted, (name, held)


def _is_number(term: Term) -> bool:
    kind = term.datatype.value.removeprefix(XSD) if isinstance(term, ox.Literal) else ""
    return kind in ("integer", "decimal", "float", "double")


def test_a_sum_of_doubles_is_rounded_once_and_leaves_no_error_behind() -> None:
    chance = random.Random(7)
    sliding, held = accumulator(made("SUM")), []
    for _ in range(400):
        real = math.ldexp(chance.uniform(-1, 1), chance.randint(-300, 300))
        held.append(real)
        sliding.add(double(real).term)
        if len(held) > 20:
            sliding.remove(double(held.pop(0)).term)
        found = sliding.value()
        assert found is not None
        assert decode(found).real == float(sum(map(Fraction, held)))


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["INF", "1"], math.inf),
        (["-INF", "1"], -math.inf),
        (["1e308", "1e308"], math.inf),
        (["-1e308", "-1e308"], -math.inf),
    ],
)
def test_sums_beyond_the_doubles(texts: list[str], wanted: float) -> None:
    sliding = accumulator(made("SUM"))
    for text in texts:
        sliding.add(literal(text, "double"))
    found = sliding.value()
    assert found is not None
    assert decode(found).real == wanted
    sliding.remove(literal(texts[0], "double"))
    found = sliding.value()
    assert found is not None
    assert decode(found).real == float(texts[1])


def test_opposite_infinities_have_no_sum() -> None:
    sliding = accumulator(made("SUM"))
    sliding.add(literal("INF", "double"))
    sliding.add(literal("-INF", "double"))
    found = sliding.value()
    assert found is not None
    assert math.isnan(decode(found).real)
    sliding.remove(literal("INF", "double"))
    assert sliding.value() == literal("-INF", "double")


def test_a_sum_of_floats_is_rounded_once_to_a_float() -> None:
    sliding = accumulator(made("SUM"))
    # Rounded to a double first, the sum would be halfway between two floats.
    for text in ("16777216", "1", "1e-40"):
        sliding.add(literal(text, "float"))
    found = sliding.value()
    assert found is not None
    assert decode(found).real == 16777218.0


QUERY = """PREFIX : <http://example.org/>
SELECT ?k (AVG(?v) AS ?mean) WITHIN 1 SECOND FROM STREAM S :S
WHERE { SEQ(A) DEFINE GPM A ON S { ?k :v ?v } }
GROUP BY ?k OVER %s"""


@pytest.mark.parametrize("over", ["100 SECONDS", "TUMBLING 100 SECONDS"])
def test_a_run_stores_the_results_inside_over(over: str) -> None:
    run = spaseq.compile(QUERY % over, names=["q"]).start()
    most = 0
    for second in range(1000):
        key = ox.NamedNode(f"http://example.org/k{second}")
        triple = ox.Triple(key, ox.NamedNode("http://example.org/v"), ox.Literal(second))
        run.push("http://example.org/S", second, [triple])
        counted = run.stats["queries"]["q"]
        assert counted["result_groups"] == counted["grouped_results"]  # each key has one result
        most = max(most, counted["grouped_results"])
    assert most == 100


def test_time_alone_expires_results() -> None:
    run = spaseq.compile(QUERY % "100 SECONDS", names=["q"]).start()
    triple = ox.Triple(
        ox.NamedNode("http://example.org/k"),
        ox.NamedNode("http://example.org/v"),
        ox.Literal(1),
    )
    run.push("http://example.org/S", 0, [triple])
    run.advance(99)
    assert run.stats["queries"]["q"]["grouped_results"] == 1
    run.advance(100)
    assert run.stats["queries"]["q"]["grouped_results"] == 0


def test_a_tumbling_group_comes_out_with_the_time() -> None:
    run = spaseq.compile(QUERY % "TUMBLING 10 SECONDS", names=["q"]).start()
    triple = ox.Triple(
        ox.NamedNode("http://example.org/k"),
        ox.NamedNode("http://example.org/v"),
        ox.Literal(1),
    )
    assert run.push("http://example.org/S", 3, [triple]) == []
    assert run.advance(9) == []
    (match,) = run.advance(10)
    assert (match.start.micros, match.end.micros, match.results) == (3_000_000, 10_000_000, 1)
