"""Functions called by IRI: registration, values, failures, vectorized calls, geometry."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyoxigraph as ox
import pytest
from oracle_functions import vincenty

import spaseq
from spaseq.errors import ArgumentError, SpaseqError
from spaseq.gpm.python import geometry
from spaseq.gpm.python.calls import Calls
from spaseq.rdf.native._values import decode, double
from spaseq.rdf.plain import XSD_DECIMAL, LangString, plain, value_of
from spaseq.sparql.registry import registered, registry_restored
from spaseq.sparql.units import METRES

XSD = "http://www.w3.org/2001/XMLSchema#"
S = "http://example.org/s"
F = "http://example.org/test#f"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    with registry_restored():
        yield


def query(condition: str, select: str = "?v") -> str:
    return f"""PREFIX : <http://example.org/> PREFIX t: <http://example.org/test#>
    SELECT {select} WITHIN 10 SECONDS FROM STREAM s :s
    WHERE {{ SEQ(A) DEFINE GPM A ON s {{ ?x :p ?v FILTER({condition}) }} }}"""


def pushed(text: str, values: list[str]) -> tuple[list[spaseq.Match], spaseq.Run]:
    run = spaseq.compile(text).start()
    found = []
    for time, value in enumerate(values):
        found += run.push(
            S, time, f"<http://example.org/x> <http://example.org/p> {value} .".encode()
        )
    return found, run


def integers(*numbers: int) -> list[str]:
    return [f'"{number}"^^<{XSD}integer>' for number in numbers]


# ------------------------------------------------------------------ registration


@pytest.mark.parametrize("iri", ["", "f", "urn:a b", "urn:<f>", "http://e/\n"])
def test_an_iri_must_be_absolute(iri: str) -> None:
    with pytest.raises(ValueError, match="needs an absolute IRI"):
        spaseq.function(iri)


def test_a_decorator_without_an_iri_is_an_error() -> None:
    with pytest.raises(ArgumentError, match=r"^iri: .* as in @spaseq.function\("):
        spaseq.function(len)  # type: ignore[arg-type]


def test_a_built_in_function_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match="built-in"):
        spaseq.function(XSD + "integer")


def test_a_required_keyword_is_refused() -> None:
    def keyed(a: Any, *, b: Any) -> Any:
        return a, b

    with pytest.raises(ValueError, match="'b'"):
        spaseq.function(F)(keyed)


def test_arity_follows_from_the_signature() -> None:
    @spaseq.function(F)
    def f(a: Any, b: Any = 0, *rest: Any) -> Any:
        return a + b + sum(rest)

    assert f(1) == 1
    found = registered(F)
    assert found is not None
    assert (found.entry.least, found.entry.most) == (1, None)
    with pytest.raises(spaseq.QueryError, match="takes at least 1 argument, but has 0"):
        spaseq.compile(query("t:f()"))
    assert len(pushed(query("t:f(?v, 1, 2) = 5"), integers(1, 2, 3))[0]) == 1


def test_the_callable_of_a_run_is_that_at_its_start() -> None:
    spaseq.function(F)(lambda v: v > 1)
    run = spaseq.compile(query("t:f(?v)")).start()
    spaseq.function(F)(lambda v: v < 1)
    graph = f"<http://example.org/x> <http://example.org/p> {integers(2)[0]} .".encode()
    assert len(run.push(S, 0, graph)) == 1


def test_a_program_is_pickled_without_its_functions() -> None:
    spaseq.function(F)(lambda v: v > 1)
    blob = pickle.dumps(spaseq.compile(query("t:f(?v)")))
    assert pickle.loads(blob).start()
    with registry_restored():
        from spaseq.sparql import registry

        registry._REGISTERED.clear()
        with pytest.raises(SpaseqError, match="not registered in this process"):
            pickle.loads(blob).start()


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (ox.Literal(7), 7),
        (ox.Literal("7.50", datatype=ox.NamedNode(XSD + "decimal")), Decimal("7.5")),
        (ox.Literal("-100.0", datatype=ox.NamedNode(XSD + "decimal")), Decimal("-100")),
        (
            ox.Literal("123456789012345678901234567890.10", datatype=XSD_DECIMAL),
            Decimal("123456789012345678901234567890.1"),
        ),
        (
            ox.Literal("12345678901234567890.123456789012345678", datatype=XSD_DECIMAL),
            Decimal("12345678901234567890.123456789012345678"),
        ),
        (ox.Literal(str(10**30), datatype=ox.NamedNode(XSD + "integer")), 10**30),
        (ox.Literal(2.5), 2.5),
        (ox.Literal(True), True),
        (ox.Literal("text"), "text"),
        (ox.Literal("Text", language="en"), LangString("Text", "en")),
        (
            ox.Literal("Text", language="ar", direction=ox.BaseDirection("rtl")),
            LangString("Text", "ar", "rtl"),
        ),
        (
            ox.Literal("2026-01-02T03:04:05.5Z", datatype=ox.NamedNode(XSD + "dateTime")),
            datetime(2026, 1, 2, 3, 4, 5, 500000, UTC),
        ),
        (ox.Literal("2026-01-02", datatype=ox.NamedNode(XSD + "date")), date(2026, 1, 2)),
        (
            ox.Literal("-P1DT0.25S", datatype=ox.NamedNode(XSD + "dayTimeDuration")),
            -timedelta(days=1, microseconds=250000),
        ),
    ],
)
def test_plain_values_and_back(term: ox.Literal, value: object) -> None:
    found = plain(decode(term))
    assert found == value
    assert type(found) is type(value)
    again = plain(value_of(found))
    assert again == value
    assert type(again) is type(value)
    # A LangString equals its text, so its language shows in the repr alone.
    assert repr(found) == repr(again) == repr(value)


def test_a_term_without_a_plain_value_stays_a_term() -> None:
    for text, kind in (("a", "urn:t"), ("x", XSD + "integer"), ("--02", XSD + "gMonth")):
        term = ox.Literal(text, datatype=ox.NamedNode(kind))
        assert plain(decode(term)) == term
        assert value_of(term).term == term
    assert plain(decode(ox.NamedNode("urn:a"))) == "urn:a"
    assert isinstance(plain(decode(ox.BlankNode("b"))), ox.BlankNode)


def test_results_may_be_terms_of_rdflib_and_scalars_of_numpy() -> None:
    numpy, rdflib = pytest.importorskip("numpy"), pytest.importorskip("rdflib")
    assert value_of(rdflib.URIRef("urn:a")).term == ox.NamedNode("urn:a")
    assert value_of(numpy.float64(2.5)).real == 2.5
    with pytest.raises(TypeError, match="is not an RDF term"):
        value_of([1])


# ------------------------------------------------------------------ failures


def test_failures_are_errors_and_counted() -> None:
    @spaseq.function(F)
    def f(v: int) -> Any:
        if v == 2:
            raise LookupError("no two")
        return None if v == 3 else object() if v == 4 else v

    found, run = pushed(query("t:f(?v) || ?v = 2"), integers(1, 2, 3, 4, 4))
    assert [match.bindings["v"].value for match in found] == ["1", "2"]
    assert run.stats["function_errors"] == {F: {"errors": 3, "first": "LookupError: no two"}}


@pytest.mark.parametrize("select", ["?v", "(t:f(?v) AS ?r)"])
def test_failures_are_counted_wherever_the_call_stands(select: str) -> None:
    calls = 0

    @spaseq.function(F)
    def f(v: int) -> Any:
        nonlocal calls
        calls += 1
        return 1 // 0

    text = query("COALESCE(t:f(?v), RAND() >= 0)", select)  # RAND runs in Python
    found, run = pushed(text, integers(1, 2))
    assert len(found) == 2
    made = calls  # the statistics evaluate the first error again, for its reason
    assert run.stats["function_errors"][F]["errors"] == made


# ------------------------------------------------------------------ vectorized


def test_a_batch_is_one_call(tmp_path: Path) -> None:
    lengths = []

    @spaseq.function(F, vectorized=True)
    def f(v: Any) -> Any:
        lengths.append(len(v))
        return [2 * each for each in v.to_pylist()]

    path = tmp_path / "s.nq"
    path.write_text(
        "".join(
            f"<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> {integers(n)[0]} .\n"
            f"<urn:x> <http://example.org/p> {integers(n % 50)[0]} <urn:g{n}> .\n"
            for n in range(200)
        )
    )
    found = list(spaseq.run(query("t:f(?v) > 20"), streams={S: str(path)}))
    assert len(found) == 4 * 39
    # A reader gives the events in a few batches; each leads to one call with distinct arguments.
    assert len(lengths) <= 4
    assert max(lengths) == 50


def test_a_failing_batch_fails_each_call() -> None:
    @spaseq.function(F, vectorized=True)
    def f(v: Any) -> Any:
        return v.to_pylist() * 2

    _, run = pushed(query("t:f(?v) > 20"), integers(1, 2, 1))
    assert run.stats["function_errors"][F] == {
        "errors": 3,
        "first": "ValueError: it returned 2 results for 1 calls",
    }


def test_nested_vectorized_functions_are_collected_in_rounds() -> None:
    calls: list[int] = []
    spaseq.function(F, vectorized=True)(lambda v: calls.append(len(v)) or v.to_pylist())
    spaseq.function(F + "2", vectorized=True)(lambda v: calls.append(-len(v)) or v.to_pylist())
    run = Calls()
    first, second = run.function(F), run.function(F + "2")

    def match() -> None:
        for number in range(5):
            inner = second(value_of(number))
            if inner is not None:
                first(inner)

    run.collect(match)
    assert calls == [-5, 5]
    match()
    assert calls == [-5, 5]


# ------------------------------------------------------------------ geometry


def point(longitude: float, latitude: float) -> ox.Literal:
    return ox.Literal(f"POINT({longitude!r} {latitude!r})", datatype=ox.NamedNode(WKT))


UNIT = decode(ox.NamedNode("http://qudt.org/vocab/unit/M"))


def test_distances_of_points_are_geodesics() -> None:
    chance = Random(7)
    for _ in range(300):
        first = chance.uniform(-170, 170), chance.uniform(-85, 85)
        second = first[0] + chance.uniform(-10, 10), max(-89, first[1] - chance.uniform(0, 20))
        found = geometry.distance(decode(point(*first)), decode(point(*second)), UNIT)
        assert found is not None
        assert found.real == pytest.approx(vincenty(first, second), abs=1e-3)


def test_distances_of_areas() -> None:
    area = ox.Literal("POLYGON((1 50, 2 50, 2 51, 1 51, 1 50))", datatype=ox.NamedNode(WKT))
    for where, least in (((0.0, 50.5), 70000), ((1.5, 50.5), 0), ((3.0, 52.0), 0)):
        found = geometry.distance(decode(point(*where)), decode(area), UNIT)
        assert found is not None
        # No point of the border is nearer.
        border = [
            vincenty(where, (x, y))
            for n in range(201)
            for x, y in ((1, 50 + n / 200), (2, 50 + n / 200), (1 + n / 200, 50), (1 + n / 200, 51))
        ]
        wanted = 0.0 if where == (1.5, 50.5) else min(border)
        assert found.real == pytest.approx(wanted, rel=1e-4)
        assert found.real >= least


@pytest.mark.parametrize("unit", METRES)
def test_every_unit(unit: str) -> None:
    a, b = decode(point(0, 0)), decode(point(1, 1))
    found = geometry.distance(a, b, decode(ox.NamedNode(unit)))
    assert found is not None
    assert found.real * METRES[unit] == pytest.approx(156899.5683, abs=0.01)


def test_geojson_and_reference_systems() -> None:
    json = '{"type": "Point", "coordinates": [0, 0]}'
    geo = ox.Literal(json, datatype=geometry.GEO_JSON)
    far = decode(point(1, 1))
    found = geometry.distance(decode(geo), far, UNIT)
    assert found is not None
    assert found.real == pytest.approx(156899.5683, abs=0.01)
    for system, known in (("OGC/1.3/CRS84", True), ("EPSG/0/3857", False)):
        text = f"<http://www.opengis.net/def/crs/{system}> POINT(0 0)"
        located = decode(ox.Literal(text, datatype=geometry.WKT))
        assert (geometry.distance(located, far, UNIT) is not None) == known


@pytest.mark.parametrize("text", ["POINT", "POINT EMPTY", "POINT(200 0)", "POINT(0 91)", ""])
def test_invalid_geometries_are_errors(text: str) -> None:
    wrong = decode(ox.Literal(text, datatype=geometry.WKT))
    assert geometry.distance(wrong, decode(point(0, 0)), UNIT) is None
    assert geometry.buffer(wrong, double(1.0), UNIT) is None


def test_a_buffer_has_the_radius() -> None:
    centre = decode(point(5.0, 52.0))
    wide = geometry.buffer(centre, double(1000.0), UNIT)
    assert wide is not None
    for longitude, inside in ((5.0, True), (5.014, True), (5.016, False)):
        found = geometry.sf_within(decode(point(longitude, 52.0)), wide)
        assert found is not None
        assert bool(found.number) == inside


# ------------------------------------------------------------------ the command line

MODULE = """
import spaseq

@spaseq.function("http://example.org/test#f")
def f(v):
    return v > 1 if v != 3 else 1 / 0
"""
STREAM = "".join(
    f"<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> {integers(n)[0]} .\n"
    f"<urn:x> <http://example.org/p> {integers(n)[0]} <urn:g{n}> .\n"
    for n in range(5)
)


def spaseq_command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from spaseq.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_functions_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(MODULE)
    (tmp_path / "q.rq").write_text(query("t:f(?v)"))
    (tmp_path / "s.nq").write_text(STREAM)
    own = ("--functions", "own.py")
    done = spaseq_command(tmp_path, "run", "q.rq", "--stream", "s=s.nq", "--format", "csv", *own)
    assert (done.returncode, done.stdout.split()) == (0, ["v", "2", "4"])
    assert "the function <http://example.org/test#f> failed once" in done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert spaseq_command(tmp_path, "check", "q.rq", *own).stdout == "ok\n"
    unknown = spaseq_command(tmp_path, "check", "q.rq")
    assert unknown.returncode == 2
    assert "q.rq:3:" in unknown.stderr
    assert "--functions MODULE.py" in unknown.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "registers no function"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import spaseq\nspaseq.function('f')", "needs an absolute IRI"),
        (None, "there is no such file"),
    ],
)
def test_modules_that_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "own.py").write_text(text)
    (tmp_path / "q.rq").write_text(query("?v > 1"))
    done = spaseq_command(tmp_path, "check", "q.rq", "--functions", "own.py")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
