"""RDF 1.2 beyond the suite: writers, readers, saved state, bindings, depth, rdflib, mappings."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow.ipc as ipc
import pyoxigraph as ox
import pytest
import rdflib

import spaseq
from spaseq.cli import main
from spaseq.errors import StateError
from spaseq.parser import ast, format_query, parse
from spaseq.rdf.codec import Reader, Writer
from spaseq.rdf.event import Term, n_triples
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance
from spaseq.rdf.syntax import MAX_NESTED_TRIPLES

E = "http://e/"
S = "http://e/S"
PREFIXES = f"PREFIX : <{E}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
GENERATED = "<http://www.w3.org/ns/prov#generatedAtTime>"
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
NODE = ox.NamedNode(E + "n")
ODD = '<<( <http://e/a> <http://e/b> "x,\\"\\n\\\\ \\u00e9 )>> <<( x"@ar--rtl )>>'
SELECT = f"""{PREFIXES} SELECT ?t WITHIN 10 SECONDS FROM STREAM S :S
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ :s :says ?t }} }}"""


def term(text: str) -> Term:
    (quad,) = ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.TURTLE)
    return quad.object


def facts(text: str) -> list[ox.Triple]:
    return [quad.triple for quad in ox.parse(PREFIXES + text, format=ox.RdfFormat.TURTLE)]


def nested(depth: int, inner: Term = NODE) -> Term:
    for _ in range(depth):
        inner = ox.Triple(NODE, NODE, inner)
    return inner


def drawn(draw: random.Random, depth: int = 0) -> Any:
    choice = draw.randrange(5 if depth < 4 else 4)
    if choice == 0:
        return ox.NamedNode(E + draw.choice("abc"))
    if choice == 1:
        return ox.BlankNode(draw.choice("xyz"))
    if choice == 2:
        text = "".join(draw.choice(' )><("\\\n\u00e9@^') for _ in range(draw.randrange(12)))
        return draw.choice(
            (ox.Literal(text), ox.Literal(text, language="en"), ox.Literal(text, datatype=NODE))
        )
    if choice == 3:
        return ox.Literal(draw.randrange(3))
    subject = draw.choice((ox.NamedNode(E + "s"), ox.BlankNode("x")))
    return ox.Triple(subject, ox.NamedNode(E + draw.choice("pq")), drawn(draw, depth + 1))


def test_terms_have_equal_numbers_if_and_only_if_they_are_equal() -> None:
    draw = random.Random(5)
    dictionary = Dictionary()
    batch = EventBatch(dictionary)
    for store, number_of in ((dictionary, dictionary.intern), (batch, batch.number)):
        numbers: dict[Term, int] = {}
        for _ in range(2000):
            one = drawn(draw)
            number = numbers.setdefault(one, number_of(one))
            assert number_of(one) == number
            assert store.term(number) == one
        assert len(set(numbers.values())) == len(numbers)


def test_saved_terms_are_read_back() -> None:
    draw = random.Random(6)
    terms = [*(drawn(draw) for _ in range(500)), nested(MAX_NESTED_TRIPLES)]
    writer = Writer()
    numbers = [writer.term(one) for one in terms]
    reader = Reader(json.loads(json.dumps(writer.tables())))
    assert [reader.term(number) for number in numbers] == terms


@pytest.mark.parametrize(
    "parts",
    [
        ["<"], ["<", "i"], ["<", "i", "urn:a", "urn:b"], ["<", "^", "a", "urn:b", "i", "urn:c"],
        ["<", "i", "urn:a", "not an IRI", "i", "urn:c"], ["<", "b", "a b", "urn:b", "i", "urn:c"],
        ["<", "i", "urn:a", "urn:b"] * (MAX_NESTED_TRIPLES + 1) + ["i", "urn:c"],
        ["<", "i", "urn:a", "urn:b"] * 100_000 + ["i", "urn:c"],
    ],
)  # fmt: skip
def test_damaged_terms_are_refused(parts: list[str]) -> None:
    with pytest.raises(StateError):
        Reader({"terms": [parts], "events": []})


def stream(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "s.nq"
    path.write_text(
        f'<urn:g> {GENERATED} "1"^^{INTEGER} .\n<http://e/s> <http://e/says> {text} <urn:g> .\n',
        encoding="utf-8",
    )
    return path


def written(tmp_path: Path, text: str, format: str, query: str = SELECT) -> bytes:
    (tmp_path / "q.rq").write_text(query)
    out = tmp_path / "out"
    arguments = ["run", str(tmp_path / "q.rq"), "--stream", f"S={stream(tmp_path, text)}"]
    assert main([*arguments, "--format", format, "--output", str(out)]) == 0
    return out.read_bytes()


@pytest.mark.parametrize("text", [ODD, f"<<( <urn:a> <urn:b> {ODD} )>>", "<<( _:b <urn:b> _:b )>>"])
def test_results_are_read_back(tmp_path: Path, text: str) -> None:
    wanted = term(text)
    for format, syntax in (
        ("srj", ox.QueryResultsFormat.JSON),
        ("srx", ox.QueryResultsFormat.XML),
        ("tsv", ox.QueryResultsFormat.TSV),
    ):
        found = ox.parse_query_results(io.BytesIO(written(tmp_path, text, format)), format=syntax)
        assert isinstance(found, ox.QuerySolutions)
        (row,) = found
        if "_:" in text:
            assert row["t"].subject == row["t"].object != wanted.subject  # type: ignore[union-attr]
        else:
            assert row["t"] == wanted
    if "_:" not in text:
        lines = written(tmp_path, text, "csv").decode()
        assert lines == f't\r\n"{n_triples(wanted).replace(chr(34), 2 * chr(34))}"\r\n'
    match = json.loads(written(tmp_path, text, "jsonl"))
    assert match["bindings"]["t"] == match["events"][0]["bindings"]["t"]
    assert match["bindings"]["t"]["type"] == "triple"


@pytest.mark.parametrize("format", ["nquads", "trig", "messages", "turtle", "jelly"])
def test_matches_as_rdf_hold_triple_terms(tmp_path: Path, format: str) -> None:
    query = SELECT.replace("SELECT ?t", "CONSTRUCT { :x :had <<( :s :said ?t )>> }")
    text = f"<<( <urn:a> <urn:b> {ODD.replace('--rtl', '')} )>>"
    data = written(tmp_path, text, format, query)
    path = tmp_path / ("m.jelly" if format == "jelly" else "m.ttl" if format == "turtle" else "m")
    path.write_bytes(data)
    wanted = ox.Triple(ox.NamedNode(E + "s"), ox.NamedNode(E + "said"), term(text))
    if format == "turtle":
        (triple,) = ox.parse(data, format=ox.RdfFormat.TURTLE)
        assert triple.object == wanted
        return
    query = f"{PREFIXES} SELECT ?t WITHIN 10 SECONDS FROM STREAM S :S WHERE {{ SEQ(A) " + (
        "DEFINE GPM A ON S { :x :had ?t } }"
    )
    (match,) = spaseq.run(query, streams={S: str(path)})
    assert match.bindings["t"] == wanted


def test_json_ld_has_no_form_for_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = SELECT.replace("SELECT ?t", "CONSTRUCT { :x :had ?t }")
    (tmp_path / "q.rq").write_text(query)
    arguments = ["run", str(tmp_path / "q.rq"), "--stream", f"S={stream(tmp_path, ODD)}"]
    assert main([*arguments, "--format", "jsonld"]) == 2
    assert "JSON-LD cannot express the triple term <<( <http://e/a>" in capsys.readouterr().err


def test_arrow_has_text(tmp_path: Path) -> None:
    (row,) = rows(written(tmp_path, ODD, "arrow"))
    assert row["t"] == n_triples(term(ODD))
    assert dict(row["bindings"])["t"] == n_triples(term(ODD))
    # Two blank nodes of an event have names that are derived from the event.
    (row,) = rows(written(tmp_path, "<<( _:b <urn:b> _:b )>>", "arrow"))
    one, two = row["t"].split()[1::2]
    assert one == two
    assert one.startswith("_:e")
    assert dict(row["events"][0]["bindings"])["t"] == row["t"]


def rows(data: bytes) -> list[dict[str, Any]]:
    return ipc.open_file(data).read_all().to_pylist()  # type: ignore[no-any-return]


def test_bound_variables_may_be_triple_terms() -> None:
    program = spaseq.compile(SELECT)
    run = program.start(bind={"t": term(ODD)})
    assert len(run.push(S, 1, [ox.Triple(ox.NamedNode(E + "s"), says(), term(ODD))])) == 1
    assert run.push(S, 2, [ox.Triple(ox.NamedNode(E + "s"), says(), NODE)]) == []
    again = program.resume(run.save())
    assert len(again.push(S, 3, [ox.Triple(ox.NamedNode(E + "s"), says(), term(ODD))])) == 1
    with pytest.raises(ValueError, match="not a term that a variable can be bound to"):
        program.start(bind={"t": ox.Triple(ox.BlankNode("b"), says(), NODE)})


def says() -> ox.NamedNode:
    return ox.NamedNode(E + "says")


def test_depth_is_bounded() -> None:
    query = f"""{PREFIXES} SELECT (TRIPLE(:a, :b, ?t) AS ?u) WITHIN 10 SECONDS FROM STREAM S :S
    WHERE {{ SEQ(A) DEFINE GPM A ON S {{ :s :says ?t }} }}"""
    run = spaseq.compile(query).start()
    subject = ox.NamedNode(E + "s")
    for depth, bound in ((MAX_NESTED_TRIPLES - 1, True), (MAX_NESTED_TRIPLES, False)):
        (match,) = run.push(S, depth, [ox.Triple(subject, says(), nested(depth))])
        assert ("u" in match.bindings) is bound


def test_rdflib_has_no_triple_terms() -> None:
    graph = rdflib.Graph()
    quoted = rdflib.graph.QuotedGraph("default", rdflib.URIRef("urn:q"))
    graph.add((rdflib.URIRef(E + "s"), rdflib.URIRef(E + "says"), quoted))
    with pytest.raises(spaseq.EventError, match="neither an IRI nor a blank node nor a literal"):
        spaseq.compile(SELECT).start().push(S, 1, graph)


@pytest.mark.parametrize(
    "pattern",
    [
        "{ ?s ?p <<( ?a :b <<( ?c ?d 1 )>> )>> }",
        "{ << ?a :b ?c ~ ?r >> :q ?x }",
        "{ ?a :b ?c ~ :r {| :q ?x ; :z << :a :b :c >> |} {| :q [] |} , 5 ~ }",
        "{ VALUES ?x { <<( :a a 1 )>> <<( :a :b <<( :a :b 'x'@ar--rtl )>> )>> UNDEF } }",
        "{ ?s :p ?o FILTER(?o = <<( ?s :p <<( :a :b :c )>> )>>) }",
        "{ OPTIONAL { << _:x :b [] >> :q ?x } FILTER EXISTS { ?s :p <<( :a :b ?c )>> } }",
    ],
)
def test_the_formatter_writes_what_the_parser_reads(pattern: str) -> None:
    text = f"""{PREFIXES} VERSION "1.2" SELECT * WITHIN 1 SECOND FROM STREAM S :S
    WHERE {{ SEQ(A) DEFINE GPM A ON S {pattern} }}"""
    query = parse(text)
    shown = format_query(query)
    assert shown.startswith('VERSION "1.2"')
    again = parse(shown)
    assert _unlabelled(again) == _unlabelled(query)
    assert format_query(again) == shown


def _unlabelled(query: ast.Query) -> Any:
    """The query with the labels of blank nodes numbered in their order."""
    labels: dict[str, str] = {}

    def change(node: Any) -> Any:
        if isinstance(node, ast.BlankNode):
            return ast.BlankNode(labels.setdefault(node.label, str(len(labels))))
        return None

    return ast.rebuilt(query, change)


def test_a_mapping_makes_triple_terms(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("time,sensor,value\n1,a,5\n2,b,7\n")
    (tmp_path / "rows.rq").write_text(
        f"{PREFIXES} CONSTRUCT {{ :s :says <<( ?node :v ?value )>> , <<( :a :b 1 )>> }} "
        "WHERE { BIND(IRI(CONCAT('http://e/', ?sensor)) AS ?node) "
        "BIND(xsd:integer(?time) AS ?_time) }"
    )
    found = spaseq.run(
        SELECT, streams={S: str(tmp_path / "rows.csv")}, map={S: str(tmp_path / "rows.rq")}
    )
    shown = [n_triples(match.bindings["t"]) for match in found]
    assert len(shown) == 4
    assert '<<( <http://e/b> <http://e/v> "7" )>>' in shown


def test_spark_reads_graphs_with_them() -> None:
    pytest.importorskip("pyspark")
    import numpy as np

    from spaseq.spark.encoding import EventColumns, GraphEncoder

    def read(text: bytes) -> EventBatch:
        encoder = GraphEncoder(Relevance(Dictionary()), S, 3)
        zero = np.array([0])
        columns = EventColumns(
            zero, zero, zero.astype(np.int16), zero.astype(np.uint8), None, None, None, text,
            np.array([0, len(text)], np.int32),
        )  # fmt: skip
        return encoder.batch(columns, zero)

    ((node, _, found),) = read(b'_:b <urn:p> <<( _:b <urn:q> "x" )>> .\n').facts(0)
    assert found == ox.Triple(node, ox.NamedNode("urn:q"), ox.Literal("x"))  # type: ignore[arg-type]
    deep = b"<<( <urn:a> <urn:b> " * 10_000 + b"<urn:c>" + b" )>>" * 10_000
    with pytest.raises(spaseq.EventError, match="nested more than 100 deep"):
        read(b"<urn:a> <urn:p> " + deep + b" .\n")
