"""The result of `spaseq.run`: matches one by one, and as tables with typed columns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest

import spaseq
from spaseq.errors import ArgumentError, InputError, SpaseqError
from spaseq.result import Result

PREFIX = "PREFIX : <http://example.org/>\n"
PAIRS = (
    PREFIX
    + """SELECT ?x ?y WITHIN 1 HOUR FROM STREAM s :s WHERE {
  SEQ(A ; B)
  DEFINE GPM A ON s { ?n :a ?x }
  DEFINE GPM B ON s { ?n :b ?y }
}"""
)
ONE = (
    PREFIX
    + """SELECT ?n ?v WITHIN 1 HOUR FROM STREAM s :s WHERE {
  SEQ(A) DEFINE GPM A ON s { ?n :v ?v }
}"""
)
XSD = "http://www.w3.org/2001/XMLSchema#"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def literal(text: str, datatype: str = "string") -> ox.Literal:
    return ox.Literal(text, datatype=ox.NamedNode(XSD + datatype))


def values(*terms: ox.NamedNode | ox.BlankNode | ox.Literal) -> list[tuple[datetime, Any]]:
    """An event for each term, a second apart."""
    node, of = ox.NamedNode("http://example.org/n"), ox.NamedNode("http://example.org/v")
    return [
        (NOON + timedelta(seconds=n), [ox.Triple(node, of, term)]) for n, term in enumerate(terms)
    ]


def written(tmp_path: Path, terms: list[Any]) -> str:
    """The same events as a file, which the compiled code reads."""
    lines = []
    for n, term in enumerate(terms):
        time = literal((NOON + timedelta(seconds=n)).isoformat(), "dateTime")
        lines.append(f"<urn:e{n}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n")
        lines.append(f"<http://example.org/n> <http://example.org/v> {term} <urn:e{n}> .\n")
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.nq"
    path.write_text("".join(lines))
    return str(path)


COLUMNS = [
    ([literal("7", "integer"), literal("-12", "int")], pa.int64(), [7, -12]),
    (
        [literal("7", "integer"), literal("1.250", "decimal")],
        pa.decimal128(38, 2),
        [Decimal("7.00"), Decimal("1.25")],
    ),
    (
        [literal("7", "integer"), literal("-0.1", "decimal"), literal("2.5E0", "double")],
        pa.float64(),
        [7.0, -0.1, 2.5],
    ),
    ([literal("INF", "double"), literal("0.5", "float")], pa.float64(), [float("inf"), 0.5]),
    ([literal("true", "boolean"), literal("0", "boolean")], pa.bool_(), [True, False]),
    (
        [
            literal("2026-01-05T12:00:00.5+02:00", "dateTime"),
            literal("1969-12-31T23:59:59Z", "dateTimeStamp"),
        ],
        pa.timestamp("us", "UTC"),
        [
            datetime(2026, 1, 5, 10, 0, 0, 500000, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        ],
    ),
    (
        [literal("2026-01-05T12:00:00", "dateTime")],
        pa.timestamp("us"),
        [datetime(2026, 1, 5, 12)],
    ),
    (
        [literal("2026-01-05", "date"), literal("1960-02-29", "date")],
        pa.date32(),
        [date(2026, 1, 5), date(1960, 2, 29)],
    ),
    (
        [literal("-PT1M0.5S", "dayTimeDuration"), literal("P1D", "dayTimeDuration")],
        pa.duration("us"),
        [timedelta(seconds=-60.5), timedelta(days=1)],
    ),
    ([ox.NamedNode("urn:a"), literal("b")], pa.string(), ["urn:a", "b"]),
    # Mixtures, and values that the native type cannot represent, are text.
    ([literal("7", "integer"), literal("b")], pa.string(), ["7", "b"]),
    ([literal("9223372036854775808", "integer")], pa.string(), ["9223372036854775808"]),
    ([literal("x", "integer"), literal("7", "integer")], pa.string(), ["x", "7"]),
    ([literal("2026-01-05Z", "date")], pa.string(), ["2026-01-05Z"]),
    (
        [
            literal("2026-01-05T12:00:00", "dateTime"),
            literal("2026-01-05T12:00:00Z", "dateTime"),
        ],
        pa.string(),
        ["2026-01-05T12:00:00", "2026-01-05T12:00:00Z"],
    ),
    ([literal("0.0000001S", "string")], pa.string(), ["0.0000001S"]),
    ([literal("PT0.0000001S", "dayTimeDuration")], pa.string(), ["PT0.0000001S"]),
    ([ox.Literal("chaud", language="fr")], pa.string(), ["chaud"]),
    (
        [literal("99999999999999999999.000000000000000001", "decimal")],
        pa.decimal128(38, 18),
        [Decimal("99999999999999999999.000000000000000001")],
    ),
    ([literal("1" + 20 * "0", "decimal")], pa.string(), ["1" + 20 * "0"]),
]


@pytest.mark.parametrize(("terms", "kind", "wanted"), COLUMNS)
def test_a_column_has_the_type_of_its_values(
    terms: list[Any], kind: pa.DataType, wanted: list[Any], tmp_path: Path
) -> None:
    """From objects and from compiled code alike."""
    tables = [
        spaseq.run(ONE, {"s": values(*terms)}).to_arrow(),
        spaseq.run(ONE, {"s": written(tmp_path, terms)}).to_arrow(),
    ]
    for table in tables:
        assert table.column_names == ["start", "end", "n", "v"]
        assert table.schema.field("v").type == kind
        assert table.column("v").to_pylist() == wanted
    assert tables[0].equals(tables[1])


def test_decimals_become_the_nearest_double() -> None:
    terms = [literal(f"0.{n:03}", "decimal") for n in range(1000)]
    found = spaseq.run(ONE, {"s": values(*terms, literal("1", "double"))}).to_arrow()
    assert found.column("v").to_pylist() == [*(float(f"0.{n:03}") for n in range(1000)), 1.0]


def test_the_rows_are_the_matches(tmp_path: Path) -> None:
    path = written(tmp_path, [literal(str(n), "integer") for n in range(2500)])
    matches = list(spaseq.run(ONE, {"s": path}))
    result = spaseq.run(ONE, {"s": path})
    table = result.to_arrow(columns=["id", "query", "start", "end", "v", "events", "bindings"])
    assert table.column("id").to_pylist() == [match.id for match in matches]
    assert table.column("v").to_pylist() == [match["v"] for match in matches]
    assert table.column("end").to_pylist() == [match.end.datetime for match in matches]
    assert set(table.column("query").to_pylist()) == {"query"}
    assert [dict(row) for row in table.column("bindings").to_pylist()] == [
        {name: str(term) for name, term in match.bindings.items()} for match in matches
    ]
    assert result.stats["events"] == 2500


def test_no_match_object_is_made_for_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spaseq.io.arrow_rows import Rows

    def refused(*_: object) -> None:
        raise AssertionError("a row from an object")

    path = written(tmp_path, [literal(str(n), "integer") for n in range(300)])
    monkeypatch.setattr(Rows, "add", refused)
    assert spaseq.run(ONE, {"s": path}).to_arrow().num_rows == 300


def test_unbound_variables_are_null_and_keep_the_type(tmp_path: Path) -> None:
    query = ONE.replace("?n :v ?v", "?n :v ?w OPTIONAL { ?n :v ?v FILTER(?v > 1) }")
    terms = [literal(str(n), "integer") for n in range(4)]
    for stream in (values(*terms), written(tmp_path, terms)):
        table = spaseq.run(query, {"s": stream}).to_arrow(columns=["v"])
        assert table.schema.field("v").type == pa.int64()
        assert table.column("v").to_pylist() == [None, None, 2, 3]


def test_empty_results_have_their_columns() -> None:
    table = spaseq.run(ONE, {"s": []}).to_arrow()
    assert table.schema == pa.schema(
        [
            ("start", pa.timestamp("us", "UTC")),
            ("end", pa.timestamp("us", "UTC")),
            ("n", pa.string()),
            ("v", pa.string()),
        ]
    )
    given = spaseq.run(ONE, {"s": []}).to_reader(types={"v": pa.int64()})
    assert given.schema.field("v").type == pa.int64()
    assert given.read_all().num_rows == 0


def test_numbers_as_times() -> None:
    events = [(n, graph) for n, (_, graph) in enumerate(values(literal("1"), literal("2")))]
    table = spaseq.run(ONE, {"s": events}).to_arrow(columns=["end"])
    assert table.column("end").to_pylist() == [Decimal(0), Decimal(1)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_batches(size: int, compiled: bool, tmp_path: Path) -> None:
    terms = [literal(str(n), "integer") for n in range(2000 if size > 1 else 50)]
    stream: Any = written(tmp_path, terms) if compiled else values(*terms)
    batches = list(spaseq.run(ONE, {"s": stream}).to_batches(size))
    sizes = [batch.num_rows for batch in batches]
    assert sizes[:-1] == [size] * (len(sizes) - 1)
    assert 0 < sizes[-1] <= size
    assert [v for batch in batches for v in batch.column("v").to_pylist()] == list(
        range(len(terms))
    )


def test_batches_come_while_events_do() -> None:
    read: list[int] = []

    def events() -> Iterator[Any]:
        for n, event in enumerate(values(*[literal(str(n), "integer") for n in range(10)])):
            read.append(n)
            yield event

    batches = spaseq.run(ONE, {"s": events()}).to_batches(2)
    assert next(batches).column("v").to_pylist() == [0, 1]
    assert len(read) <= 3


def test_a_batch_that_does_not_fit_the_first_one() -> None:
    terms = [literal("1", "integer"), literal("2", "integer"), literal("2.5", "decimal")]
    batches = spaseq.run(ONE, {"s": values(*terms)}).to_batches(2)
    assert next(batches).column("v").to_pylist() == [1, 2]
    with pytest.raises(SpaseqError, match="the column v has values that are not int64"):
        next(batches)
    decimal = pa.decimal128(38, 3)
    given = spaseq.run(ONE, {"s": values(*terms)}).to_batches(2, types={"v": decimal})
    assert [batch.schema.field("v").type for batch in given] == [decimal, decimal]


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (pa.string(), ["1", "2"]),
        (pa.float64(), [1.0, 2.0]),
        (pa.int8(), [1, 2]),
        (pa.decimal128(10, 2), [Decimal("1.00"), Decimal("2.00")]),
    ],
)
def test_types_that_are_given(kind: pa.DataType, wanted: list[Any]) -> None:
    terms = [literal("1", "integer"), literal("2", "integer")]
    table = spaseq.run(ONE, {"s": values(*terms)}).to_arrow(columns=["v"], types={"v": kind})
    assert table.schema.field("v").type == kind
    assert table.column("v").to_pylist() == wanted


def test_text_is_never_taken_for_a_number() -> None:
    with pytest.raises(SpaseqError, match="the column v has values that are not int64"):
        spaseq.run(ONE, {"s": values(literal("7"))}).to_arrow(types={"v": pa.int64()})


def test_frames_of_polars_and_pandas() -> None:
    pl = pytest.importorskip("polars")
    pd = pytest.importorskip("pandas")
    terms = [literal("1", "integer"), literal("2", "integer")]
    frame = spaseq.run(ONE, {"s": values(*terms)}).to_polars()
    assert frame.schema["v"] == pl.Int64
    assert frame["v"].sum() == 3
    assert frame["end"][0] == NOON
    pandas = spaseq.run(ONE, {"s": values(*terms)}).to_pandas()
    assert isinstance(pandas["v"].dtype, pd.Int64Dtype)
    assert pandas["v"].sum() == 3
    assert pandas["end"][0] == pd.Timestamp(NOON)


def test_a_result_is_an_arrow_stream() -> None:
    pl = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    terms = [literal("1", "integer"), literal("2", "integer")]
    assert pl.DataFrame(spaseq.run(ONE, {"s": values(*terms)}))["v"].to_list() == [1, 2]
    relation = duckdb.from_arrow(spaseq.run(ONE, {"s": values(*terms)}).to_reader())
    assert relation.sum("v").fetchall() == [(3,)]


def test_construct_ask_groups_and_several_queries() -> None:
    events = values(literal("1", "integer"), literal("2", "integer"))
    build = ONE.replace("SELECT ?n ?v", "CONSTRUCT { ?n :was ?v }")
    table = spaseq.run(build, {"s": events}).to_arrow()
    assert table.column_names == ["start", "end", "graph"]
    assert '"1"' in table.column("graph")[0].as_py()
    ask = ONE.replace("SELECT ?n ?v", "ASK")
    asked = spaseq.run(ask, {"s": events}).to_arrow()
    assert asked.column_names == ["start", "end", "boolean"]
    assert asked.column("boolean").to_pylist() == [True, True]
    both = spaseq.run([ONE, ONE.replace("?n ?v", "?v")], {"s": events}).to_arrow()
    assert both.column_names == ["query", "start", "end", "n", "v"]
    assert both.num_rows == 4
    assert both.column("n").null_count == 2


def test_expressions_have_types_too() -> None:
    query = ONE.replace("?n ?v", "(?v * 2 AS ?double) (?v / 2 AS ?half)")
    events = values(literal("1", "integer"), literal("2", "integer"))
    table = spaseq.run(query, {"s": events}).to_arrow(columns=["double", "half"])
    assert table.to_pylist() == [
        {"double": 2, "half": Decimal("0.5")},
        {"double": 4, "half": Decimal("1.0")},
    ]


def test_iteration_and_tables_share_the_matches() -> None:
    result = spaseq.run(ONE, {"s": values(*[literal(str(n), "integer") for n in range(5)])})
    assert next(result)["v"] == 0
    assert next(iter(result))["v"] == 1
    assert result.to_arrow().column("v").to_pylist() == [2, 3, 4]
    assert repr(result).endswith("; 5 matches read, finished>")
    assert "5 matches read, none left" in result._repr_html_()
    with pytest.raises(SpaseqError, match="have been read"):
        result.to_polars()
    with pytest.raises(SpaseqError, match="have been read"):
        list(result)


def test_the_rows_of_tables_are_counted_as_read() -> None:
    result = spaseq.run(ONE, {"s": values(*[literal(str(n), "integer") for n in range(5)])})
    assert [batch.num_rows for batch in result.to_batches(2)] == [2, 2, 1]
    assert repr(result).endswith("; 5 matches read, finished>")


def test_a_match_is_a_dict_of_its_values() -> None:
    match = next(spaseq.run(ONE, {"s": values(literal("1", "integer"))}))
    assert dict(match) == {**match} == match.values
    assert list(match.keys()) == list(match) == list(match.values)


def test_what_to_write_instead_of_other_attributes_of_a_match() -> None:
    match = next(spaseq.run(ONE, {"s": values(literal("1", "integer"))}))
    assert not hasattr(match, "nothing")
    for name, message in (
        ("get", r"^a Match has no attribute 'get'; write match.values.get\(…\)$"),
        ("v", r"""^a Match has no attribute 'v'; the value of \?v is match\["v"\]$"""),
        ("nothing", "^a Match has no attribute 'nothing'$"),
    ):
        with pytest.raises(AttributeError, match=message):
            getattr(match, name)


def test_iterating_to_the_end_again_yields_nothing() -> None:
    result = spaseq.run(ONE, {"s": values(literal("1", "integer"))})
    assert len(list(result)) == 1
    assert list(result) == []


def test_what_a_notebook_shows_remains_to_be_read() -> None:
    terms = [literal(str(n), "integer") for n in range(15)]
    result = spaseq.run(ONE, {"s": values(*terms)})
    assert repr(result).endswith("not read yet>")
    html = result._repr_html_()
    assert html.count("<tr>") == 11
    assert "the next 10 matches; there are more" in html
    assert result._repr_html_() == html
    assert [match["v"] for match in result] == list(range(15))
    assert repr(result).endswith("15 matches read, finished>")
    again = spaseq.run(ONE, {"s": values(literal("<b>", "string"))})
    assert "&lt;b&gt;" in again._repr_html_()
    assert again.to_arrow().num_rows == 1


def test_a_result_is_drawn_to_its_end() -> None:
    terms = [literal(str(n), "integer") for n in range(4)]
    result = spaseq.run(ONE, {"s": values(*terms)})
    next(result)
    picture = result.plot(most=2)
    assert str(picture) == picture._repr_svg_()
    assert str(picture).count('class="match"') == 2
    assert "1 more matches are not shown" in str(picture)
    assert list(result) == []
    assert "no matches" in str(result.plot())


def test_closing_stops_the_sources() -> None:
    ended: list[bool] = []

    def events() -> Iterator[Any]:
        try:
            yield from values(*[literal(str(n), "integer") for n in range(100)])
        finally:
            ended.append(True)

    source = events()
    with spaseq.run(ONE, {"s": source}) as result:
        assert next(result)["v"] == 0
        assert not ended
    assert list(result) == []
    assert "1 match read, finished" in repr(result)
    source.close()
    assert ended


def test_errors_come_after_the_rows_before_them(tmp_path: Path) -> None:
    path = Path(written(tmp_path, [literal(str(n), "integer") for n in range(3)]))
    path.write_text(path.read_text() + "broken\n")
    batches = spaseq.run(ONE, {"s": str(path)}).to_batches()
    assert next(batches).column("v").to_pylist() == [0, 1, 2]
    with pytest.raises(InputError, match="7"):
        next(batches)
    with pytest.raises(InputError):
        spaseq.run(ONE, {"s": str(path)}).to_arrow()


def test_columns_and_arguments_that_do_not_exist() -> None:
    def result() -> Result:
        return spaseq.run(ONE, {"s": []})

    with pytest.raises(SpaseqError, match="there is no column w; there are id, query, start"):
        result().to_arrow(columns=["w"])
    with pytest.raises(ArgumentError, match=r"columns: a sequence of names, as in \['v'\]"):
        result().to_arrow(columns="v")
    with pytest.raises(SpaseqError, match="types names w, but the columns are start, end, n, v"):
        result().to_arrow(types={"w": pa.int64()})
    for size in (0, -1, True, "10"):
        with pytest.raises(ArgumentError, match="size: a batch has a positive number of rows"):
            result().to_batches(size)  # type: ignore[arg-type]


def test_an_open_end_can_be_saved() -> None:
    events = values(literal("1", "integer"))
    result = spaseq.run(ONE, {"s": events}, at_end="open")
    assert len(list(result)) == 1
    assert spaseq.compile(ONE).resume(result.run.save()).stats["events"] == 1


def test_why_not_of_a_result() -> None:
    result = spaseq.run(PAIRS, {"s": values(literal("1"))})
    assert list(result) == []
    assert "A" in result.why_not()


def test_identifiers_agree_with_those_of_rows() -> None:
    terms: list[Any] = [ox.BlankNode("x"), literal("1", "integer"), ox.BlankNode("x")]
    matches = list(spaseq.run(ONE, {"s": values(*terms)}))
    table = spaseq.run(ONE, {"s": values(*terms)}).to_arrow(columns=["id"])
    assert [match.id for match in matches] == table.column("id").to_pylist()
    assert len({match.id for match in matches}) == 3


# ------------------------------------------------------------------ asyncio


async def slowly(events: list[Any]) -> AsyncIterator[Any]:
    for event in events:
        await asyncio.sleep(0)
        yield event


def test_tables_for_asyncio() -> None:
    events = values(*[literal(str(n), "integer") for n in range(5)])

    async def main() -> None:
        table = await spaseq.arun(ONE, {"s": slowly(events)}).to_arrow(columns=["v"])
        assert table.column("v").to_pylist() == [0, 1, 2, 3, 4]
        sizes = [
            batch.num_rows async for batch in spaseq.arun(ONE, {"s": slowly(events)}).to_batches(2)
        ]
        assert sizes == [2, 2, 1]
        async with spaseq.arun(ONE, {"s": slowly(events)}) as result:
            assert "not read yet" in repr(result)
            async for match in result:
                assert match["v"] == 0
                break
            with pytest.raises(SpaseqError, match="being read already"):
                await result.to_arrow()
        await result.aclose()
        never = spaseq.arun(ONE, {"s": slowly(events)})
        await never.aclose()
        assert [match async for match in never] == []

    asyncio.run(main())


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(ArgumentError, match=r"no argument latenes \(did you mean `lateness`\?\)"):
        spaseq.arun(ONE, {"s": []}, latenes="10s")


DRAWN = {
    "integer": lambda draw: str(draw.randint(-(2**64), 2**64) >> draw.randint(0, 64)),
    "decimal": lambda draw: f"{draw.randint(-(10**20), 10**20)}.{draw.randint(0, 10**9)}",
    "double": lambda draw: repr(draw.uniform(-1e9, 1e9) * 10.0 ** draw.randint(-20, 20)),
    "float": lambda draw: repr(draw.uniform(-10, 10)),
    "boolean": lambda draw: draw.choice(["true", "false", "1", "0"]),
    "dateTime": lambda draw: (
        f"{draw.randint(1, 9999):04}-0{draw.randint(1, 9)}-{draw.randint(10, 28)}"
        f"T1{draw.randint(0, 9)}:00:00.{draw.randint(0, 10**7)}{draw.choice(['Z', '+01:30', ''])}"
    ),
    "date": lambda draw: f"{draw.randint(1, 9999):04}-0{draw.randint(1, 9)}-01",
    "dayTimeDuration": lambda draw: f"P{draw.randint(0, 10**4)}DT{draw.randint(0, 10**6)}.5S",
    "string": lambda draw: draw.choice(["", "7", "2026-01-05", "é"]),
    "byte": lambda draw: str(draw.randint(-200, 200)),
}


@pytest.mark.parametrize("seed", range(30))
def test_drawn_columns_have_the_values_of_matches(seed: int, tmp_path: Path) -> None:
    """A column is as it would be from `match.values`, or the texts of the terms."""
    draw = Random(seed)
    names = draw.sample(sorted(DRAWN), draw.choice([1, 1, 2, 3]))
    kinds = [draw.choice(names) for _ in range(draw.randint(1, 12))]
    terms = [literal(DRAWN[kind](draw), kind) for kind in kinds]
    matches = list(spaseq.run(ONE, {"s": values(*terms)}))
    made = [match["v"] for match in matches]
    for stream in (values(*terms), written(tmp_path, terms)):
        column = spaseq.run(ONE, {"s": stream}).to_arrow().column("v")
        if column.type == pa.string():
            assert column.to_pylist() == [term.value for term in terms]
        elif column.type == pa.float64():
            assert column.to_pylist() == [float(value) for value in made]
        else:
            assert column.to_pylist() == made
