"""The types of graphs that `push` accepts, and the scope of blank nodes."""

from __future__ import annotations

import pickle

import pyoxigraph as ox
import pytest
import rdflib
from engine_runs import EX, S, program, triples

import spaseq
from spaseq.engine.python_graphs import facts_of
from spaseq.errors import EventError

ONE = (ox.NamedNode(EX + "k"), ox.NamedNode(EX + "a"), ox.Literal(1))


def test_pyoxigraph_triples_quads_and_tuples() -> None:
    quad = ox.Quad(*ONE, ox.NamedNode(EX + "g"))
    for graph in ([ox.Triple(*ONE)], [quad], [ONE], iter([ONE, ONE])):
        assert facts_of(graph, "e0") == (ONE,)


def test_n_triples_bytes_and_text() -> None:
    line = f'<{EX}k> <{EX}a> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    assert facts_of(line.encode(), "e0") == (ONE,)
    assert facts_of(line, "e0") == (ONE,)
    with pytest.raises(EventError, match="neither N-Triples nor N-Quads"):
        facts_of(b"<k> is no triple", "e0")


def test_rdflib_graphs() -> None:
    graph = rdflib.Graph()
    subject, predicate = rdflib.URIRef(EX + "k"), rdflib.URIRef(EX + "a")
    for value in (rdflib.Literal(1), rdflib.Literal("x", lang="en"), rdflib.Literal("y")):
        graph.add((subject, predicate, value))
    expected = {ox.Literal(1), ox.Literal("x", language="en"), ox.Literal("y")}
    assert {fact[2] for fact in facts_of(graph, "e0")} == expected
    run = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x }").start()
    assert len(run.push(S, 1, graph)) == 3


def test_literals_keep_the_form_they_were_written_in() -> None:
    literal = rdflib.Literal("01.50", datatype=rdflib.XSD.decimal, normalize=False)
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef(EX + "k"), rdflib.URIRef(EX + "a"), literal))
    ((_, _, value),) = facts_of(graph, "e0")
    assert value.value == "01.50"


@pytest.mark.parametrize(
    "graph",
    [[1], ["abc"], [("a", "b", "c")], [ONE[:2]], [None]],
    ids=["number", "text", "texts", "pair", "nothing"],
)
def test_what_is_no_graph_is_refused(graph: object) -> None:
    run = program().start()
    with pytest.raises(EventError, match=r"is not a triple|is not an RDF term"):
        run.push(S, 1, graph)
    assert run.clock.events == 0


def test_something_that_cannot_be_walked_is_refused() -> None:
    run = program().start()
    for graph in (None, 7, object()):
        with pytest.raises(EventError):
            run.push(S, 1, graph)


# ------------------------------------------------------------------ blank nodes

SAME = "DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k :b ?y }"


def blank(label: str, predicate: str) -> list[ox.Triple]:
    return [ox.Triple(ox.BlankNode(label), ox.NamedNode(EX + predicate), ox.Literal(1))]


def test_blank_nodes_are_those_of_their_event() -> None:
    run = program(gpms=SAME).start()
    run.push(S, 1, blank("x", "a"))
    assert run.push(S, 2, blank("x", "b")) == []


def test_so_are_those_of_rdflib_and_of_text() -> None:
    run = program(gpms=SAME).start()
    node = rdflib.BNode()
    for time, predicate in ((1, "a"), (2, "b")):
        graph = rdflib.Graph()
        graph.add((node, rdflib.URIRef(EX + predicate), rdflib.Literal(1)))
        assert run.push(S, time, graph) == []
        line = f'_:x <{EX}{predicate}> "1" .'
        assert run.push(S, time + 0.5, line.encode()) == []


def test_inside_one_event_a_blank_node_joins() -> None:
    run = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x . ?k :b ?y }").start()
    assert len(run.push(S, 1, blank("x", "a") + blank("x", "b"))) == 1
    assert run.push(S, 2, blank("x", "a") + blank("y", "b")) == []


def test_the_name_of_an_event_comes_out_again() -> None:
    run = program(seq="SEQ(A)", gpms="DEFINE GPM A ON s { ?k :a ?x }").start()
    (match,) = run.push(S, 1, triples("k a 1"), EX + "graph/1")
    assert match.events[0].graph == ox.NamedNode(EX + "graph/1")
    (match,) = run.push(S, 2, triples("k a 1"), ox.NamedNode(EX + "graph/2"))
    assert match.events[0].graph == ox.NamedNode(EX + "graph/2")
    (match,) = run.push(S, 3, triples("k a 1"))
    assert match.events[0].graph is None
    with pytest.raises(EventError, match="is not an IRI"):
        run.push(S, 4, triples("k a 1"), "not an IRI")
    assert run.stats["events"] == 3


def test_a_construct_gives_triples() -> None:
    text = """
    PREFIX : <http://example.org/>
    CONSTRUCT { ?s :seen ?x } WITHIN 10 SECONDS FROM STREAM S :S
    WHERE { SEQ(A) DEFINE GPM A ON S { ?s :a ?x } }"""
    event = b'<urn:s> <http://example.org/a> "1" .'
    (match,) = spaseq.run(text, streams={"S": [(1, event)]})
    seen = ox.NamedNode("http://example.org/seen")
    assert match.graph == (ox.Triple(ox.NamedNode("urn:s"), seen, ox.Literal("1")),)
    assert pickle.loads(pickle.dumps(match)) == match


def test_a_graph_of_the_kb_that_is_not_given_is_warned_of() -> None:
    of = spaseq.compile("""
    PREFIX : <http://example.org/>
    SELECT ?s WITHIN 10 SECONDS FROM STREAM S :S
    WHERE { SEQ(A) DEFINE GPM A ON S { ?s :a ?x GRAPH :kb { ?x :b ?y } } }""")
    with pytest.warns(spaseq.QueryWarning, match="<http://example.org/kb> is read, but not given"):
        run = of.start()
    run.kb.load({"http://example.org/kb": [ONE]})
    of.start(kb={"http://example.org/kb": [ONE]})
