"""Strategies of small schemas, events and patterns over the same few names."""

from __future__ import annotations

import re
from itertools import count

import pyoxigraph as ox
from hypothesis import strategies as st

from spaseq.rdf.event import Fact

EXAMPLE = "http://example.org/"
PREFIXES = (
    f"PREFIX : <{EXAMPLE}> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
    "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    "PREFIX owl: <http://www.w3.org/2002/07/owl#> "
)
CLASSES = [f":C{n}" for n in range(3)]
PROPERTIES = [f":p{n}" for n in range(3)]
THINGS = [f":x{n}" for n in range(3)]
LITERALS = ["1", '"a"']


def facts_of_turtle(text: str) -> list[Fact]:
    quads = ox.parse(f"{PREFIXES}\n{text} ." if text else "", format=ox.RdfFormat.TURTLE)
    return list(dict.fromkeys((q.subject, q.predicate, q.object) for q in quads))


def some(*names: str) -> st.SearchStrategy[str]:
    return st.sampled_from(names)


def _triple(subject: str, predicate: str, object: str) -> str:
    return f"{subject} {predicate} {object}"


rare = st.integers(0, 9).map(lambda n: n == 0)
classes = st.sampled_from(CLASSES)
properties = st.sampled_from(PROPERTIES)
# Sometimes the vocabulary talks of itself.
odd_properties = rare.flatmap(
    lambda odd: some("a", "rdfs:subClassOf", "owl:sameAs") if odd else properties
)
as_object = odd_properties.map(lambda name: "rdf:type" if name == "a" else name)

axioms = st.one_of(
    st.builds(_triple, classes, st.just("rdfs:subClassOf"), classes),
    st.builds(_triple, as_object, st.just("rdfs:subPropertyOf"), as_object),
    st.builds(_triple, as_object, some("rdfs:domain", "rdfs:range"), classes),
    st.builds(_triple, as_object, st.just("owl:inverseOf"), as_object),
    st.builds(_triple, properties, st.just("owl:equivalentProperty"), properties),
    st.builds(_triple, classes, st.just("owl:equivalentClass"), classes),
    st.builds(
        _triple, properties, st.just("a"), some("owl:SymmetricProperty", "owl:TransitiveProperty")
    ),
    st.builds(
        lambda result, first, second: f"{result} owl:propertyChainAxiom ({first} {second})",
        *(properties, as_object, properties),
    ),
    st.builds(lambda p, q: f"{p} rdfs:subPropertyOf [ owl:inverseOf {q} ]", properties, properties),
    st.builds(_triple, st.sampled_from(THINGS), st.just("owl:sameAs"), st.sampled_from(THINGS)),
)
data = st.one_of(
    st.builds(_triple, st.sampled_from(THINGS), st.just("a"), classes),
    st.builds(_triple, st.sampled_from(THINGS), properties, st.sampled_from(THINGS + LITERALS)),
    st.builds(_triple, st.sampled_from(THINGS), odd_properties, st.sampled_from(THINGS + CLASSES)),
)


@st.composite
def kbs(draw: st.DrawFn) -> list[list[Fact]]:
    """Two graphs."""
    graphs = []
    for least, most in ((3, 7), (0, 2)):
        text = draw(st.lists(axioms, min_size=least, max_size=most))
        text += draw(st.lists(data, max_size=3))
        graphs.append(facts_of_turtle(" . ".join(text)))
    return [_apart(graph, f"g{number}") for number, graph in enumerate(graphs)]


def _apart(facts: list[Fact], prefix: str) -> list[Fact]:
    labels: dict[ox.BlankNode, ox.BlankNode] = {}

    def one(term: object) -> object:
        if isinstance(term, ox.BlankNode):
            return labels.setdefault(term, ox.BlankNode(f"{prefix}b{len(labels)}"))
        return term

    return [tuple(map(one, fact)) for fact in facts]  # type: ignore[misc]


def some_events() -> st.SearchStrategy[list[list[Fact]]]:
    event = st.lists(data, min_size=3, max_size=6).map(
        lambda some: facts_of_turtle(" . ".join(some))
    )
    return st.lists(event, min_size=1, max_size=3)


places = some("?x", "?x", "?y", "?y", "?z", ":x0", "_:b")
links = st.one_of(properties, properties, some("?p", "^:p0", ":p1/:p0", "rdfs:subClassOf"))
paths = some(":p0|:p1", ":p0+", "^:p1|a", ":p2*", "!:p0", ":p1?")
triples = st.one_of(
    st.builds(_triple, places, links, places),
    st.builds(_triple, places, st.just("a"), st.one_of(classes, some("?c", "?x"))),
)
elements = st.one_of(
    triples,
    triples,
    triples,
    st.builds(_triple, places, paths, places),
    triples.map(lambda inner: f"OPTIONAL {{ {inner} }}"),
    triples.map(lambda inner: f"MINUS {{ {inner} }}"),
    triples.map(lambda inner: f"GRAPH :kb {{ {inner} }}"),
    triples.map(lambda inner: f"GRAPH ?g {{ {inner} }}"),
    st.builds(lambda a, b: f"{{ {a} }} UNION {{ {b} }}", triples, triples),
)


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """A few elements, the first of them a triple; each blank node occurs once."""
    text = " . ".join([draw(triples), *draw(st.lists(elements, max_size=1))])
    if draw(rare):
        text += f" FILTER NOT EXISTS {{ {draw(triples)} }}"
    numbers = count()
    return re.sub("_:b", lambda found: f"{found[0]}{next(numbers)}", text)
