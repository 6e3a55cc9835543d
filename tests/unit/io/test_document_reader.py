"""Turtle and TriG by the compiled reader: W3C suites, cuts, pruning, errors, unusual statements."""

from __future__ import annotations

import io
import os
import random
import re
import sys
from pathlib import Path

import pyoxigraph as ox
import pytest
from outcome import Outcome, assert_same
from reading import Reading, options

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))

from documents import HEAD, IRIS, LITERALS, WAYS, Drawn, check

from spaseq.io import documents
from spaseq.io.lines import Lines
from spaseq.io.source import Source
from spaseq.io.statements import Document
from spaseq.rdf.native._terms import Dictionary, Relevance

DATA = os.environ.get("SPASEQ_DATA")
W3C = Path(DATA or ".") / "w3c" / "rdf"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with each text that is passed to pyoxigraph: its first line."""
    lines: list[int] = []

    class Counted(Document):
        def __init__(self, *given: object):
            lines.append(given[0].number + 1)  # type: ignore[attr-defined]
            super().__init__(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(documents, "Document", Counted)
    return lines


@pytest.mark.skipif(DATA is None, reason="SPASEQ_DATA does not name the data sets")
@pytest.mark.parametrize("folder", ["rdf11/rdf-turtle", "rdf11/rdf-trig", "rdf12"])
def test_the_suites_of_the_w3c(tmp_path: Path, folder: str) -> None:
    count = 0
    for path in sorted((W3C / folder).rglob("*.t*")):
        if path.suffix not in (".ttl", ".trig"):
            continue
        for way, block in ((0, 0), (0, 1), (1, 0), (4, 1), (6, 0)):
            check(tmp_path, "s" + path.suffix, path.read_bytes(), WAYS[way], block)
        count += 1
    assert count > 50


@pytest.mark.skipif(DATA is None, reason="SPASEQ_DATA does not name the data sets")
def test_what_the_suites_accept_is_read_natively(tmp_path: Path, parsed: list[int]) -> None:
    """Files of RDF 1.1 have no statement for pyoxigraph."""
    count = 0
    for path in sorted((W3C / "rdf11").rglob("*.t*")):
        if path.suffix in (".ttl", ".trig") and path.stem != "manifest":
            try:
                list(ox.parse(path=path, base_iri="http://example.org/"))
            except SyntaxError:
                continue
            before = len(parsed)
            Reading(tmp_path, path.read_bytes(), "s" + path.suffix, "graph", arrival_time=True)
            assert len(parsed) == before, path
            count += 1
    assert count > 400


def document(draw: random.Random, named_graphs: bool, messages: bool = False) -> bytes:
    return Drawn(draw, 0).document(named_graphs, messages).encode()


def test_drawn_documents_are_read_natively(tmp_path: Path, parsed: list[int]) -> None:
    draw = random.Random(1)
    events = 0
    for _ in range(200):
        data = document(draw, True)
        before = len(parsed)
        read = Reading(tmp_path, data, "s.trig", "graph", arrival_time=True, on_error="skip")
        if not any("not TriG" in line for line in read.log):
            assert len(parsed) == before, data
            events += len(read.events)
    assert events > 200


@pytest.mark.parametrize("term", [*IRIS, *LITERALS, "[]", "()", "_:x", "[ :p :a ]", "( 1 :a )"])
def test_each_form_of_a_term_is_read_natively(tmp_path: Path, parsed: list[int], term: str) -> None:
    text = f"{HEAD}:s :p {term} , {term}\n.:s :p {term};:q\t{term} ."
    read = Reading(tmp_path, text, "s.ttl", "triples:1")
    base = Path(read.path).as_uri()
    expected = [
        _nameless(" ".join(map(str, quad.triple)))
        for quad in ox.parse(text.encode(), format=ox.RdfFormat.TURTLE, base_iri=base)
    ]
    shown = [_nameless(" ".join(map(str, fact))) for event in read.events for fact in event.facts]
    assert shown == expected
    assert (read.error, parsed) == ("", [])


def _nameless(text: str) -> str:
    return re.sub(r"_:\w+", "_:", text)


@pytest.mark.parametrize("name", ["s.trig", "s.ttl"])
def test_cuts_at_every_byte(tmp_path: Path, name: str) -> None:
    """Pieces are whole lines, so a block that ends at any byte may hold back a line."""
    draw = random.Random(name)
    data = document(draw, name == "s.trig")
    way: dict[str, object] = {"events": "graph" if name == "s.trig" else "triples:1"}
    way["arrival_time"] = True
    for size in range(1, len(data) + 1):
        check(tmp_path, name, data, way, size)


class Pipe(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(17)


def test_an_event_is_yielded_when_its_graph_is_complete() -> None:
    graphs = [
        f':g{n} prov:generatedAtTime {n} .\n:g{n} {{\n :s :p {n} ;\n  :q "a"\n}}\n'
        for n in range(5)
    ]
    file = Pipe((HEAD + "".join(graphs)).encode())
    source = Source(
        "urn:s", ["s.trig"], options(workers=1), open_lines=lambda path: Lines(path, file)
    )
    places = []
    for event in source:
        assert len(event.facts) == 2
        places.append(file.tell())
    assert len(places) == 5
    assert places == sorted(set(places))


# ------------------------------------------------------------------ pruning

USES = [
    (ox.NamedNode("http://e/p"), None),
    (ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), ox.NamedNode("http://e/a")),
    (ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#rest"), None),
]


def test_pruning_leaves_out_what_no_pattern_has(tmp_path: Path) -> None:
    draw = random.Random(3)
    uses = {(str(p), None if o is None else str(o)) for p, o in USES}
    kept = 0
    for number in range(300):
        named = number % 2 == 0
        path = tmp_path / ("s.trig" if named else "s.ttl")
        path.write_bytes(document(draw, named))
        way: dict[str, object] = {"events": "graph" if named else "message", "on_error": "skip"}
        way["arrival_time"] = True
        model = Outcome(path, True, **way)
        read = Outcome(path, False, Relevance(Dictionary(), USES), **way)
        # Blank nodes are numbered among what is kept.
        expected = [
            [_nameless(" ".join(f)) for f in event[6] if {(f[1], None), (f[1], f[2])} & uses]
            for event in model.shown
        ]
        facts = [[_nameless(" ".join(f)) for f in event[6]] for event in read.shown]
        assert facts == expected, path.read_bytes()
        assert (read.log, read.counters) == (model.log, model.counters)
        kept += sum(map(len, facts))
    assert kept > 300


# ------------------------------------------------------------------ statements for pyoxigraph


@pytest.mark.parametrize(
    "odd",
    [
        ":a :b <<( :a :b :c )>> .",
        "<< :a :b :c >> :d 1.5 .",
        ':a :b :c {| :d "x.y" |} .',
        ":a :b :c ~ :r .",
        ":a :b '''\n''' , <<(\n:a :b 1.5\n)>> .",
    ],
)
@pytest.mark.parametrize("block", [0, 1])
def test_one_statement_is_passed_to_pyoxigraph(
    tmp_path: Path, parsed: list[int], odd: str, block: int
) -> None:
    graphs = [f":g{n} prov:generatedAtTime {n} . :g{n} {{ :s :p {n} }}\n" for n in range(4)]
    text = HEAD + graphs[0] + graphs[1] + "{}" + graphs[2] + graphs[3]
    check(tmp_path, "s.trig", text.replace("{}", odd + "\n").encode(), {}, block)
    assert parsed in ([6], [7])
    # In the block of a graph.
    text = text.replace("{}", "").replace(":s :p 2 }", f":s :p 1 . {odd} :s :p 2 }}")
    model = check(tmp_path, "s.trig", text.encode(), {"on_error": "skip"}, block)
    assert len(model.events) == 4
    assert len(parsed) == 2


def test_prefixes_and_the_base_survive_such_a_statement(tmp_path: Path, parsed: list[int]) -> None:
    text = (
        "@prefix : <http://e/> .\nPREFIX q: <http://q/> BASE <http://b/> << :a :b :c >> :d 1 .\n"
        "q:a q:b <x> .\n"
    )
    path = tmp_path / "s.ttl"
    path.write_text(text)
    read = Outcome(path, False, events="triples:1", on_error="skip")
    assert_same(read, Outcome(path, True, events="triples:1", on_error="skip"), b"")
    assert read.shown[-1][6] == [("<http://q/a>", "<http://q/b>", "<http://b/x>")]
    assert parsed == [2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (":a :b\n\n 1 2 .", ":8: not TriG, column 4: 2 is not a valid"),
        (":a :b 'é' , é .", ":6: not TriG, column 13: "),
        (":a :b x:y .", ":6: not TriG, column 7: the prefix x: has not been declared"),
        (":g {\n :a :b :c .\n :a :b }\n", ":8: not TriG, column 8: } is not a valid RDF object"),
        (":g {\n :a :b :c .\n\n", ":9: not TriG, column 1: unexpected end"),
        (":g { :a :b :c", ":6: not TriG, column 14: unexpected end"),
        (":a :b <x y> .", ":6: not TriG, column 7: invalid IRI code point ' '"),
        (':a :b "x .\n\n', ":6: not TriG, column "),
        (':a :b :c .\n:a :b """x .\n\n', ":7: not TriG, column 7: unexpected end of file"),
        ("MESSAGE", ":6: not TriG, column 1: MESSAGE is not a valid"),
    ],
)
def test_positions_of_errors(tmp_path: Path, text: str, said: str) -> None:
    for block in (0, 1):
        data = (HEAD + ":g1 prov:generatedAtTime 1 .\n" + text).encode()
        check(tmp_path, "s.trig", data, {}, block)
        assert said in Outcome(tmp_path / "s.trig", False).error


def test_a_string_of_many_lines_is_read_once() -> None:
    """The same in one piece and in a hundred thousand."""
    body = "a line\n" * 100_000
    text = f"{HEAD}:a :b \"\"\"{body}\"\"\" , '''{body}'''@en .\n"
    for size in (None, 16):

        def opened(path: str, size: int | None = size) -> Lines:
            return Lines(path, io.BytesIO(text.encode()), size)

        (event,) = Source("urn:s", ["s.ttl"], options("triples:2"), open_lines=opened)
        assert [term.value == body for _, _, term in event.facts] == [True, True]


def test_nameless_nodes_are_no_other_nodes(tmp_path: Path) -> None:
    text = f"{HEAD}[] :p [] . [] {{ [] :p ( [] ) , _:x , _:x }}"
    (event,) = Reading(tmp_path, text, "s.trig", "message", arrival_time=True).events
    nodes = {str(term) for s, _, o in event.facts for term in (s, o)}
    assert sum(node.startswith("_:") for node in nodes) == 6


@pytest.mark.parametrize(
    "text",
    [
        ":a :b :c.\\\n:d :e :f .",
        ":a :b :c\\._:d :e :f .",
        "@base <s/p> <x> .\n{ <a> <b> <c> }",
        ":a :b 'x' .2",
        ":g {| :a :b |} :c :d .",
        ":a :b :c .\n{",
        "GRAPH\n(\n:a ) .",
        ":g { :a :b :c . } \n:g1 { :d :e :f }\xff",
        ":a :b ( :c )>> .",
        ":a :b 1.:c :d :e .",
        "_:x:y :z _:x:y .",
        ":a :b :c . :d {| :e :f |} .",
    ],
)
def test_damaged_documents(tmp_path: Path, text: str) -> None:
    data = HEAD.encode() + text.encode("latin-1")
    for name in ("s.trig", "s.ttl"):
        for way in WAYS:
            for block in (0, 1):
                check(tmp_path, name, data, way, block)
