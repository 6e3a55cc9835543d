"""Opening a knowledge base: sources, formats, blank nodes, errors."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pyoxigraph as ox
import pytest
import rdflib

from spaseq.errors import KbError
from spaseq.kb import open_kb

EX = "http://example.org/"
A, P = ox.NamedNode(EX + "a"), ox.NamedNode(EX + "p")
NAME = ox.NamedNode(EX + "k")
TURTLE = f'<{EX}a> <{EX}p> 14.0, "x"@en, [ <{EX}p> 1 ] .'

FORMATS = {
    "k.ttl": TURTLE,
    "k.nt": f'<{EX}a> <{EX}p> "14.0"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n',
    "k.nq": f"<{EX}a> <{EX}p> <{EX}b> <{EX}some-graph> .\n",
    "k.trig": f"<{EX}some-graph> {{ <{EX}a> <{EX}p> 1 }}",
    "k.rdf": (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:e="{EX}"><rdf:Description rdf:about="{EX}a"><e:p>1</e:p></rdf:Description>'
        "</rdf:RDF>"
    ),
    "k.jsonld": f'{{"@id": "{EX}a", "{EX}p": 1}}',
    "k.n3": TURTLE,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_formats(tmp_path, name, packed):
    path = tmp_path / (name + ".gz" if packed else name)
    text = FORMATS[name].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    kb = open_kb({EX + "k": str(path)})
    assert kb.graphs == (EX + "k",)
    assert kb.names == (NAME,)
    assert list(kb.triples(NAME, A, P))
    assert open_kb({EX + "k": path.as_uri()}).graphs == kb.graphs


def test_terms_stay_as_written(tmp_path):
    (tmp_path / "k.ttl").write_text(TURTLE)
    kb = open_kb({EX + "k": tmp_path / "k.ttl"})
    decimal = ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
    assert ox.Literal("14.0", datatype=decimal) in [o for _, _, o in kb.triples(NAME, A, P)]


def test_relative_iris_are_resolved_against_the_file(tmp_path):
    (tmp_path / "k.ttl").write_text(f"<#a> <{EX}p> 1 .")
    kb = open_kb({EX + "k": tmp_path / "k.ttl"})
    ((subject, _, _),) = kb.triples(NAME)
    assert subject == ox.NamedNode((tmp_path / "k.ttl").as_uri() + "#a")


def test_objects_in_memory():
    blank = ox.BlankNode("x")
    store = ox.Store()
    store.extend([ox.Quad(A, P, blank), ox.Quad(A, P, blank, ox.NamedNode(EX + "g"))])
    graph = rdflib.Graph()
    graph.parse(data=TURTLE, format="turtle")
    triples = [(A, P, blank), ox.Triple(A, P, blank), ox.Quad(A, P, blank)]
    sources = {EX + "store": store, EX + "rdflib": graph, EX + "triples": triples}
    kb = open_kb(sources)
    sizes = [len(kb.graph(name).facts) for name in kb.names]
    assert sizes == [1, 4, 1]
    assert len(kb) == 6


def test_rdflib_literals_keep_form_datatype_and_language():
    graph = rdflib.Graph()
    graph.parse(data=f'<{EX}a> <{EX}p> "01"^^<urn:t>, "x"@en, "y" .', format="turtle")
    objects = {o for _, _, o in open_kb({EX + "k": graph}).triples(NAME)}
    assert objects == {
        ox.Literal("01", datatype=ox.NamedNode("urn:t")),
        ox.Literal("x", language="en"),
        ox.Literal("y"),
    }


def test_blank_nodes_are_their_graphs_own_and_always_the_same():
    blank = ox.BlankNode("x")
    sources = {EX + "k": [(blank, P, blank)], EX + "l": [(blank, P, blank)]}
    kb, again = open_kb(sources), open_kb(sources)
    ((first, _, same),) = kb.triples(NAME)
    ((second, _, _),) = kb.triples(ox.NamedNode(EX + "l"))
    assert first == same
    assert len({first, second, blank}) == 3
    assert list(again.triples(NAME)) == list(kb.triples(NAME))


@pytest.mark.parametrize(
    ("subject", "predicate", "object", "count"),
    [
        (None, None, None, 3),
        (A, None, None, 2),
        (None, P, None, 3),
        (None, None, A, 1),
        (A, P, None, 2),
        (A, P, A, 1),
        (None, P, A, 1),
        (NAME, P, A, 0),
    ],
)
def test_look_ups(subject, predicate, object, count):
    kb = open_kb({EX + "k": [(A, P, A), (A, P, NAME), (NAME, P, NAME)]})
    assert len(list(kb.triples(NAME, subject, predicate, object))) == count
    assert list(kb.triples(A, subject, predicate, object)) == []


# ------------------------------------------------------------------ errors

RDF_XML = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"


def test_a_malformed_file_names_its_line(tmp_path):
    path = tmp_path / "k.ttl"
    path.write_text(f"<{EX}a> <{EX}p> 1 .\n<{EX}a> oops .\n")
    with pytest.raises(KbError, match=r"k\.ttl:2: not Turtle, column \d+: oops is not a valid"):
        open_kb({EX + "k": path})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("k.nt", "<e:a> <e:p> .", r"k\.nt:1: not N-Triples, column 13: "),
        ("k.jsonld", '{\n"a": ,}', r"k\.jsonld:2: not JSON-LD, column 6: unexpected comma"),
        ("k.jsonld", '{"@context": "http://e/", "a": 1}', r"its @context is remote"),
        ("k.rdf", f"{RDF_XML}\n<rdf:Description>\n</rdf:D>\n", r"k\.rdf:3: not RDF/XML: ill"),
        ("k.rdf", f"{RDF_XML}\n\n<x:a rdf:about='e:a'/>\n\n", r"k\.rdf:3: not RDF/XML: unknown"),
    ],
)  # fmt: skip
def test_errors_name_the_syntax_and_the_place(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(KbError, match=message) as raised:
        open_kb({EX + "k": path})
    assert "Parser error" not in str(raised.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("absent.ttl", "absent.ttl: cannot be read: No such file"),
        ("data.xyz", "no RDF format has the extension 'xyz'"),
        ("ftp://example.org/data", "use a file, the folder of a pyoxigraph store, or the http"),
        ("http://me:secret@example.org/", "at example.org contains credentials"),
        ([1], "contains 1, which is not a triple"),
        ([(A, P, "text")], "contains the term 'text'"),
    ],
)
def test_what_cannot_be_read_is_said(source, message):
    with pytest.raises(KbError, match=message):
        open_kb({EX + "k": source})


def test_a_damaged_archive_is_said(tmp_path):
    (tmp_path / "k.ttl.gz").write_bytes(b"no gzip")
    with pytest.raises(KbError, match=r"k\.ttl\.gz: cannot be read"):
        open_kb({EX + "k": tmp_path / "k.ttl.gz"})
    (tmp_path / "l.nt.gz").write_bytes(gzip.compress(FORMATS["k.nt"].encode() * 500)[:40])
    with pytest.raises(KbError, match=r"l\.nt\.gz"):
        open_kb({EX + "k": tmp_path / "l.nt.gz"})


def test_a_graph_needs_an_absolute_iri():
    with pytest.raises(KbError, match="'k' is not"):
        open_kb({"k": []})


def test_a_copy_elsewhere_has_the_same_graphs_and_asks_the_same_places(tmp_path: Path) -> None:
    store = ox.Store(str(tmp_path / "store"))
    store.add(ox.Quad(ox.NamedNode(EX + "a"), ox.NamedNode(EX + "p"), ox.NamedNode(EX + "b")))
    store.flush()
    del store
    triple = (ox.NamedNode(EX + "a"), ox.NamedNode(EX + "p"), ox.NamedNode(EX + "c"))
    kb = open_kb(
        {
            EX + "held": [triple],
            EX + "store": tmp_path / "store",
            EX + "far": "http://127.0.0.1:9/sparql",
        }
    )
    copy = pickle.loads(pickle.dumps(kb))
    assert copy.names == kb.names
    assert list(copy.triples(ox.NamedNode(EX + "held"))) == [triple]
    assert [s.name for s in copy.sources.values()] == [s.name for s in kb.sources.values()]


@pytest.mark.parametrize("packed", [False, True])
def test_rdf_xml_that_is_cut_off_is_an_error(tmp_path: Path, packed: bool) -> None:
    """The parser takes the end of the file for the end of the document."""
    whole = FORMATS["k.rdf"].encode()
    path = tmp_path / ("k.rdf.gz" if packed else "k.rdf")

    def write(content: bytes) -> None:
        path.write_bytes(gzip.compress(content) if packed else content)

    write(b"\n" + whole + b"\n<!-- end -->\n")
    assert len(open_kb({NAME.value: str(path)}).graph(NAME).pairs(P)) == 1
    for end in (whole.rindex(b"</rdf:RDF>"), whole.index(b"<e:p>")):
        write(b"\n" + whole[:end])
        with pytest.raises(KbError, match=r"k\.rdf(\.gz)?:2: not RDF/XML: the file ends before"):
            open_kb({NAME.value: str(path)})
