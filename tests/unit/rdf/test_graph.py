"""The index of a graph against plain search."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.event import NUMBER, Event, Timestamp
from spaseq.rdf.graph import Graph, graph_of

NODES = tuple(ox.NamedNode(f"urn:{name}") for name in "abcd")
TERMS = (*NODES, ox.Literal(1), ox.BlankNode("b"))
LINKS = tuple(ox.NamedNode(f"urn:{name}") for name in "pq")

facts = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(LINKS), st.sampled_from(TERMS)),
    max_size=30,
    unique=True,
)


@given(
    facts,
    st.none() | st.sampled_from(TERMS),
    st.none() | st.sampled_from((*LINKS, NODES[0])),
    st.none() | st.sampled_from(TERMS),
)
def test_look_ups_are_search(triples, subject, predicate, object):
    wanted = (subject, predicate, object)
    expected = [
        fact
        for fact in triples
        if all(term is None or term == part for term, part in zip(wanted, fact, strict=True))
    ]
    graph = Graph(triples)
    assert sorted(graph.match(*wanted), key=str) == sorted(expected, key=str)
    assert set(graph.nodes) == {term for s, _, o in triples for term in (s, o)}
    if predicate is not None:
        assert list(graph.objects(subject, predicate)) == [
            o for s, p, o in triples if s == subject and p == predicate
        ]
        assert list(graph.subjects(predicate, object)) == [
            s for s, p, o in triples if o == object and p == predicate
        ]
        assert graph.contains(subject, predicate, object) is (wanted in triples)


def test_the_matchers_of_an_event_share_its_index():
    time = Timestamp(0, NUMBER, ox.Literal(0))
    event = Event("urn:s", time, 0, ((NODES[0], LINKS[0], NODES[1]),))
    other = Event("urn:s", time, 1, ((NODES[0], LINKS[0], NODES[1]),))
    assert graph_of(event) is graph_of(event)
    assert graph_of(event) is not graph_of(other)
