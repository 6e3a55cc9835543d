"""A table of triples, compared with a graph of the same terms: every look-up, in order."""

from __future__ import annotations

import pickle

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.rdf.event import Fact
from spaseq.rdf.graph import Graph, StoredGraph
from spaseq.rdf.native._terms import Dictionary, EventBatch, TripleTable
from tests.unit.rdf.term_strategies import facts

A, B, P, Q = (ox.NamedNode(f"http://example.org/{name}") for name in "abpq")


def table_of(*batches: list[Fact]) -> TripleTable:
    """The table of the triples of several batches, whose blank nodes get the prefix `k.`."""
    table = TripleTable()
    for some in batches:
        batch = EventBatch(Dictionary())
        batch.add(some)
        table.add(batch, "k.")
    table.complete()
    return table


def relabelled(fact: Fact) -> Fact:
    subject, predicate, value = (
        ox.BlankNode(f"k.{term.value}") if isinstance(term, ox.BlankNode) else term for term in fact
    )
    return subject, predicate, value  # type: ignore[return-value]


def lookups(graph: Graph, terms: list[object]) -> list[object]:
    """The results of every look-up for some terms and for any."""
    found: list[object] = [list(graph.facts), set(graph.predicates), list(graph.nodes)]
    predicates = [term for term in terms if isinstance(term, ox.NamedNode)]
    for predicate in predicates:
        found.append(list(graph.pairs(predicate)))
        for one in terms:
            found.append(list(graph.objects(one, predicate)))
            found.append(list(graph.subjects(predicate, one)))
            found += [graph.contains(one, predicate, other) for other in terms]
    for predicate in (None, *predicates):
        for one in (None, *terms):
            for other in (None, *terms):
                found.append(list(graph.match(one, predicate, other)))
    return found


@given(st.lists(facts, max_size=3))
def test_lookups_find_what_a_graph_of_terms_finds(batches):
    distinct = dict.fromkeys(relabelled(fact) for some in batches for fact in some)
    graph = Graph(tuple(distinct))
    stored = StoredGraph(table_of(*batches))
    terms = [*list(dict.fromkeys(term for fact in distinct for term in fact))[:6], A]
    assert lookups(stored, terms) == lookups(graph, terms)
    assert lookups(pickle.loads(pickle.dumps(stored)), terms) == lookups(graph, terms)


def test_many_triples_grow_every_table():
    triples: list[Fact] = [
        (ox.NamedNode(f"http://example.org/{i % 999}"), (P, Q)[i % 2], ox.Literal(f"{i}"))
        for i in range(5000)
    ]
    table = table_of(triples[:3000], triples[1000:])
    assert list(table) == triples
    assert table.terms == 999 + 2 + 5000
    assert table.pairs(Q) == [(s, o) for s, p, o in triples if p == Q]
    assert table.ends(P, True, triples[0][0]) == [
        o for s, p, o in triples if p == P and s == triples[0][0]
    ]
    assert table[-1] == triples[-1]
    with pytest.raises(IndexError):
        table[5000]


def test_a_complete_table_takes_no_more():
    table = table_of([(A, P, B)])
    with pytest.raises(ValueError, match="complete"):
        table.add(EventBatch(Dictionary()), "k.")


def test_an_empty_table():
    table = table_of()
    assert (len(table), list(table), table.pairs(P), table.match(None, None, None)) == (
        0,
        [],
        [],
        [],
    )
    assert table.ends(P, True, A) == []


def test_a_damaged_pickle_is_refused():
    restored, (texts, triples) = table_of([(A, P, B)]).__reduce__()
    with pytest.raises(ValueError, match="no such term"):
        restored(texts[:2], triples)
