"""Every output format: exact text, well-formedness, and streams that can be read again."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyoxigraph as ox
import pytest
from reading import options, shown

from spaseq.errors import SpaseqError
from spaseq.io.formats import Shape, sink_format
from spaseq.io.sinks import open_sink
from spaseq.io.source import Source
from spaseq.rdf.event import DATE_TIME, NUMBER
from spaseq.rdf.time import from_micros
from spaseq.results import Match, Witness

XSD = "http://www.w3.org/2001/XMLSchema#"
PRICE = ox.Literal("14.0", datatype=ox.NamedNode(XSD + "double"))
EBAY = ox.NamedNode("http://example/company#eBay")
SECOND = 10**6
EPOCH_2026 = 1_767_225_600 * SECOND


def match(**changes: object) -> Match:
    start, end = (from_micros(EPOCH_2026 + s * SECOND, DATE_TIME) for s in (0, 5))
    witness = Witness(
        "A", "http://example.org/main", start, 0, ox.NamedNode("http://example.org/e/17"),
        {"p1": PRICE},
    )  # fmt: skip
    base = Match(
        "q", start, end, {"company": EBAY, "p1": PRICE}, (witness,), ("company", "p1", "p2")
    )
    return base.__replace__(**changes)


def timed(start: float, end: float) -> dict[str, object]:
    return {
        "start": from_micros(int(start * SECOND), NUMBER),
        "end": from_micros(int(end * SECOND), NUMBER),
    }


def written(format: str, matches: Sequence[Match], form: str = "select") -> str:
    out = io.StringIO(newline="")
    shapes = [Shape("q", form, ("company", "p1", "p2"))]  # type: ignore[arg-type]
    opened = sink_format(format, shapes).open(out, shapes)
    for one in matches:
        opened.write(one)
    opened.close()
    return out.getvalue()


def test_json_lines_of_a_select() -> None:
    assert written("jsonl", [match()]) == (
        '{"query": "q", "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:05Z", '
        '"bindings": {"company": {"type": "uri", "value": "http://example/company#eBay"}, '
        '"p1": {"type": "literal", "value": "14.0", "datatype": '
        '"http://www.w3.org/2001/XMLSchema#double"}}, "events": [{"gpm": "A", "stream": '
        '"http://example.org/main", "time": "2026-01-01T00:00:00Z", "ordinal": 0, "graph": '
        '"http://example.org/e/17", "bindings": {"p1": {"type": "literal", "value": "14.0", '
        '"datatype": "http://www.w3.org/2001/XMLSchema#double"}}}]}\n'
    )


def test_json_of_numbers_asks_and_graphs() -> None:
    numbers = Match.to_dict(match(**timed(0.5, 5)))
    assert (numbers["start"], repr(numbers["end"])) == (0.5, "5")
    asked = match(boolean=True, bindings={}, **timed(0, 5))
    assert Match.to_json(asked) == '{"query": "q", "end": 5, "boolean": true}'
    graph = ((EBAY, ox.NamedNode("e:p"), ox.Literal("a\n")),)
    built = Match.to_dict(match(graph=graph, bindings={}))
    assert list(built) == ["query", "start", "end", "graph", "events"]
    assert built["graph"] == '<http://example/company#eBay> <e:p> "a\\n" .\n'


def test_json_terms() -> None:
    bindings = {
        "b": ox.BlankNode("x"),
        "l": ox.Literal("é", language="fr"),
        "r": ox.Literal("é", language="ar", direction=ox.BaseDirection.RTL),
        "s": ox.Literal("plain"),
    }
    line = Match.to_json(match(bindings=bindings))
    assert "é" in line
    assert json.loads(line)["bindings"] == {
        "b": {"type": "bnode", "value": "x"},
        "l": {"type": "literal", "value": "é", "xml:lang": "fr"},
        "r": {"type": "literal", "value": "é", "xml:lang": "ar", "its:dir": "rtl"},
        "s": {"type": "literal", "value": "plain"},
    }
    nameless = match().events[0]
    events = Match.to_dict(match(events=(replace(nameless, graph=None),)))["events"]
    assert "graph" not in events[0]


TRICKY = {"company": ox.Literal('a,"b"\r\n\tc'), "p2": ox.BlankNode("x")}
DIRECTED = {
    "company": ox.Literal("a", language="ar", direction=ox.BaseDirection.RTL),
    "p1": ox.Literal("--ltr", language="de-ch", direction=ox.BaseDirection.LTR),
}


def test_csv() -> None:
    assert written("csv", [match(), match(bindings=TRICKY)]) == (
        'company,p1,p2\r\nhttp://example/company#eBay,14.0,\r\n"a,""b""\r\n\tc",,_:x\r\n'
    )


def test_tsv() -> None:
    assert written("tsv", [match(), match(bindings=TRICKY)]) == (
        "?company\t?p1\t?p2\n"
        '<http://example/company#eBay>\t"14.0"^^<http://www.w3.org/2001/XMLSchema#double>\t\n'
        '"a,\\"b\\"\\r\\n\\tc"\t\t_:x\n'
    )


LEADING = [Shape("q", "select", ("p1",), leading=("start", "end", "query"))]


@pytest.mark.parametrize(
    ("format", "wanted"),
    [
        ("csv", "start,end,query,p1\r\n2026-01-01T00:00:00Z,2026-01-01T00:00:05Z,q,14.0\r\n"),
        (
            "tsv",
            f'?start\t?end\t?query\t?p1\n"2026-01-01T00:00:00Z"^^<{XSD}dateTime>\t'
            f'"2026-01-01T00:00:05Z"^^<{XSD}dateTime>\t"q"\t"14.0"^^<{XSD}double>\n',
        ),
    ],
)
def test_tables_begin_with_columns_of_the_match(format: str, wanted: str) -> None:
    out = io.StringIO(newline="")
    writer = sink_format(format, LEADING).open(out, LEADING)
    writer.write(match())
    writer.close()
    assert out.getvalue() == wanted
    assert getattr(writer, "maker", None) is None  # compiled code does not know the columns


def test_a_table_for_people_begins_with_columns_of_the_match() -> None:
    out = io.StringIO()
    writer = sink_format("table", LEADING).open(out, LEADING)
    writer.write(match(**timed(1, 2.5)))
    writer.close()
    header, _, row = out.getvalue().splitlines()
    assert (header.split(), row.split()) == (
        ["start", "end", "query", "p1"],
        ["1", "2.5", "q", "14.0"],
    )


def test_other_formats_have_no_columns_of_the_match() -> None:
    with pytest.raises(SpaseqError, match="--match-columns is for --format table, csv or tsv"):
        sink_format("srj", LEADING)


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
def test_results_json_and_tsv_are_read_by_others(rows: int) -> None:
    matches = [match(), match(bindings=TRICKY), match(bindings=DIRECTED)][:rows]
    for format, kind in (
        ("srj", ox.QueryResultsFormat.JSON),
        ("tsv", ox.QueryResultsFormat.TSV),
    ):
        solutions = ox.parse_query_results(written(format, matches), format=kind)  # type: ignore[arg-type]
        assert isinstance(solutions, ox.QuerySolutions)
        assert [v.value for v in solutions.variables] == ["company", "p1", "p2"]
        names = ("company", "p1", "p2")
        rows_read = [{n: row[n] for n in names if row[n] is not None} for row in solutions]
        assert rows_read == [dict(one.bindings) for one in matches]


def test_results_json_of_an_ask() -> None:
    assert json.loads(written("srj", [], "ask")) == {"head": {}, "boolean": False}
    assert json.loads(written("srj", [match(boolean=True)] * 2, "ask"))["boolean"] is True


GRAPH = (
    ox.Triple(ox.BlankNode("m1n0"), ox.NamedNode("e:p"), DIRECTED["company"]),
    ox.Triple(ox.BlankNode("m1n0"), ox.NamedNode("e:q"), PRICE),
    ox.Triple(EBAY, ox.NamedNode("e:p"), ox.BlankNode("m1n0")),
)


def test_results_xml_is_read_by_others() -> None:
    named = {"company": ox.NamedNode("urn:a&b"), "p1": ox.Literal('<\r\n>\t"')}
    matches = [match(), match(bindings=TRICKY), match(bindings=DIRECTED), match(bindings=named)]
    for some in ([], matches):
        solutions = ox.parse_query_results(written("srx", some), format=ox.QueryResultsFormat.XML)
        assert isinstance(solutions, ox.QuerySolutions)
        assert [v.value for v in solutions.variables] == ["company", "p1", "p2"]
        names = ("company", "p1", "p2")
        rows = [{n: row[n] for n in names if row[n] is not None} for row in solutions]
        assert rows == [dict(one.bindings) for one in some]
    for count in (0, 2):
        asked = written("srx", [match(boolean=True)] * count, "ask")
        answer = ox.parse_query_results(asked, format=ox.QueryResultsFormat.XML)
        assert bool(answer) == (count > 0)


@pytest.mark.parametrize("letter", ["\0", "\x1f", "\ufffe"])
def test_results_xml_refuses_what_xml_cannot_hold(letter: str) -> None:
    with pytest.raises(
        SpaseqError, match=f"srx cannot contain U\\+{ord(letter):04X}.*use --format srj"
    ):
        written("srx", [match(bindings={"p1": ox.Literal("a" + letter)})])


def described(format: ox.RdfFormat, text: str) -> set[str]:
    """The triples of a document as texts, blank nodes all alike."""
    return {
        " ".join("_:" if isinstance(term, ox.BlankNode) else str(term) for term in quad.triple)
        for quad in ox.parse(text, format=format)
    }


@pytest.mark.parametrize(
    ("format", "syntax"), [("turtle", ox.RdfFormat.TURTLE), ("jsonld", ox.RdfFormat.JSON_LD)]
)
@pytest.mark.parametrize("form", ["select", "construct", "ask"])
def test_other_syntaxes_say_the_same(format: str, syntax: ox.RdfFormat, form: str) -> None:
    type_as_value = {"p1": ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")}
    changes: dict[str, object] = {
        "select": {},
        "construct": {"graph": GRAPH, "bindings": {}},
        "ask": {"boolean": True, "bindings": {}},
    }[form]  # type: ignore[assignment]
    matches = [match(**changes), match(**{"bindings": type_as_value} | changes)]
    expected = described(ox.RdfFormat.N_QUADS, written("nquads", matches, form))
    if format == "turtle":
        expected = {line for line in expected if "generatedAtTime" not in line}
    assert described(syntax, written(format, matches, form)) == expected


@pytest.mark.parametrize(("format", "suffix"), [("messages", "nq"), ("jelly", "jelly")])
def test_messages_and_frames_are_a_stream_again(tmp_path: Path, format: str, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    graph = [triple for triple in GRAPH if triple.object != DIRECTED["company"]]
    one = match(graph=tuple(graph), bindings={})
    with open_sink(format, [Shape("q", "construct")], str(path)) as sink:
        for _ in range(2):
            sink.write(one)
    events = list(Source("urn:s", [str(path)], options()))
    # The time of a message is one of its triples.
    assert [len(event.facts) for event in events] == [3, 3]
    assert [event.time for event in events] == [one.end] * 2


def test_jelly_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    with (
        pytest.raises(SpaseqError, match="Jelly cannot express the base direction"),
        open_sink("jelly", [Shape("q", "select")], str(tmp_path / "a.jelly")) as sink,
    ):
        sink.write(match(bindings=DIRECTED))


@pytest.mark.parametrize(("format", "suffix"), [("trig", "trig"), ("nquads", "nq")])
@pytest.mark.parametrize("numeric", [False, True])
def test_constructed_graphs_are_a_stream_again(
    tmp_path: Path, format: str, suffix: str, numeric: bool
) -> None:
    changes = timed(0, 1.5) if numeric else {}
    one = match(graph=GRAPH, bindings={}, **changes)
    path = tmp_path / f"out.{suffix}"
    path.write_text(written(format, [one, one.__replace__(graph=()), one], "construct"))
    events = list(Source("urn:s", [str(path)], options()))
    assert [len(event.facts) for event in events] == [3, 0, 3]
    assert [str(event.name) for event in events] == [f"<urn:spaseq:q:{n}>" for n in (1, 2, 3)]
    assert events[0].time == one.end
    assert [event.ordinal for event in events] == [0, 1, 2]
    assert events[0].facts[0][2] == DIRECTED["company"]
    assert events[0].facts[1][2] == PRICE


@pytest.mark.parametrize(("format", "suffix"), [("trig", "trig"), ("nquads", "nq")])
def test_selected_matches_are_described(tmp_path: Path, format: str, suffix: str) -> None:
    path = tmp_path / f"out.{suffix}"
    again = match(query="found")
    path.write_text(written(format, [match(), again]))
    first, second = Source("urn:s", [str(path)], options())
    assert shown([first, second]) == ["s@1767225605.0", "s@1767225605.1"]
    assert str(second.name) == "<urn:spaseq:found:1>"
    store = ox.Store()
    store.extend(ox.Quad(s, p, o) for s, p, o in first.facts)  # type: ignore[arg-type]
    rows = store.query(
        "PREFIX s: <http://w3id.org/spaseq/ontology#> SELECT ?p ?g ?t ?v ?e WHERE { ?m a s:Match ; "
        's:query "q" ; s:start ?t ; s:binding [ s:variable "company" ; s:value ?v ] ; '
        's:hasEvent [ a s:EventMatch ; s:gpm "A" ; s:position 0 ; s:ordinal 0 ; s:time ?t ; '
        's:graph ?e ; s:stream ?g ; s:binding [ s:variable "p1" ; s:value ?p ] ] }'
    )
    assert [tuple(map(str, row)) for row in rows] == [  # type: ignore[union-attr,arg-type]
        # the store that answers here keeps doubles by value
        (f'"14"^^<{XSD}double>', "<http://example.org/main>",
         '"2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>', str(EBAY),
         "<http://example.org/e/17>")
    ]  # fmt: skip


def test_an_ask_is_described_too() -> None:
    assert 'spaseq:boolean "true"^^xsd:boolean' in written("trig", [match(boolean=True)], "ask")


@pytest.mark.parametrize(
    ("format", "shapes", "said"),
    [
        ("csv", [Shape("q", "construct")], "csv has no form for the results of CONSTRUCT"),
        ("tsv", [Shape("q", "ask")], "tsv has no form for the results of ASK"),
        ("srj", [Shape("q", "construct")], "srj has no form"),
        ("csv", [Shape("q", "select")] * 2, "the results of one query"),
    ],
)
def test_formats_that_do_not_fit(format: str, shapes: list[Shape], said: str) -> None:
    with pytest.raises(SpaseqError, match=said):
        open_sink(format, shapes)


def test_files_and_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = [Shape("q", "select", ("company",))]
    path = tmp_path / "out.csv"
    with open_sink("csv", shapes, str(path)) as sink:
        sink.write(match())
    assert path.read_bytes() == b"company\r\nhttp://example/company#eBay\r\n"
    with pytest.raises(SpaseqError, match="cannot be written"):
        open_sink("csv", shapes, str(tmp_path / "none" / "out.csv"))
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=buffer))
    with open_sink("tsv", shapes, live=True) as sink:
        assert buffer.getvalue() == b"?company\n"
        sink.write(match())
        assert buffer.getvalue().count(b"\n") == 2
        assert sink.written == 1
    assert not buffer.closed


def test_closed_standard_output_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(SpaseqError, match="standard output is closed"):
        open_sink("jsonl", [Shape("q", "select")])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("live", [False, True])
def test_a_full_disk_is_told_with_the_name_of_the_file(live: bool) -> None:
    sink = open_sink("jsonl", [Shape("q", "select")], "/dev/full", live)
    with pytest.raises(OSError, match="cannot be written: No space") as raised, sink:
        sink.write(match())
    assert raised.value.filename == "/dev/full"
