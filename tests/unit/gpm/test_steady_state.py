"""Matching asks the system for no memory once it has seen the greatest event."""

from __future__ import annotations

import random

import pyoxigraph as ox
import pytest

from spaseq.kb.snapshot import open_kb
from spaseq.rdf.encoded import encoded_events
from spaseq.rdf.event import Fact
from spaseq.rdf.native._terms import EventBatch, requests
from tests.unit.gpm.encoded_events import EX, batch_of, matchers

PREDICATES = tuple(ox.NamedNode(EX + name) for name in "pqrs")
EVENTS = 600
"""A number of events after which the next revision of the join order is far away."""

KB = {EX + "k": [(ox.NamedNode(f"{EX}n{n}"), PREDICATES[0], ox.Literal(n)) for n in range(40)]}
TABLE = "VALUES ?a { " + " ".join(f":n{n}" for n in range(20)) + " }"
PATTERNS = {
    "a star": "{ ?a :p ?b ; :q ?c ; :r ?d }",
    "a path": "{ ?a :p ?b . ?b :q ?c . ?c :p ?d }",
    "a cycle": "{ ?a :p ?b . ?b :q ?c . ?c :r ?a }",
    "alternatives": "{ ?a :p|:q ?b . ?b (:q|^:r)/:p ?c }",
    "any predicate": "{ ?a ?b ?c . ?c :p ?d }",
    "optional": "{ ?a :p ?b OPTIONAL { ?b :q ?c OPTIONAL { ?c :r ?d } FILTER(?c != ?a) } }",
    "optional table": "{ ?a :p ?b OPTIONAL { { ?b :q ?c } UNION { ?c :r ?b } } }",
    "union": "{ { ?a :p ?b } UNION { ?b :q ?a } { ?a :r ?c } UNION { ?c :p ?a } }",
    "minus": "{ ?a :p ?b MINUS { ?b :q ?c . ?c :r ?d } }",
    "filters": "{ ?a :s ?b . ?c :s ?d FILTER(?b + 1 < ?d * 2 && (?b > 3 || ?d != 2)) }",
    "texts": '{ ?a :s ?b FILTER(CONTAINS(STR(?a), "1") && STRLEN(STR(?b)) = 1) }',
    "built texts": '{ ?a :s ?b FILTER(CONCAT(UCASE(STR(?a)), "x") != SUBSTR(STR(?b), 1)) }',
    "exists": "{ ?a :p ?b FILTER NOT EXISTS { ?b :q ?c . ?c :r ?a } }",
    "values": f"{{ ?a :p ?b . {TABLE} }}",
    "kb": "{ ?a :p ?b GRAPH :k { ?b :p ?c } }",
}
BINDS = {
    "a value of the query": "{ ?a :s ?b BIND(IF(?b > 4, :high, :low) AS ?c) }",
    "a term of the event": "{ ?a :s ?b BIND(COALESCE(?b, ?a) AS ?c) }",
    "a new number": "{ ?a :s ?b BIND(?b * 10 + 1000 AS ?c) }",
    "a new text": '{ ?a :s ?b BIND(CONCAT("value ", STR(?b)) AS ?c) }',
}


def event(chance: random.Random) -> list[Fact]:
    """A graph of 1 to 60 triples, some of them hubs."""

    def node() -> ox.NamedNode:
        return ox.NamedNode(f"{EX}n{chance.randrange(chance.choice((3, 40)))}")

    facts = []
    for _ in range(chance.randrange(1, 60)):
        predicate = chance.choice(PREDICATES)
        numeric = predicate == PREDICATES[3]
        facts.append((node(), predicate, ox.Literal(chance.randrange(9)) if numeric else node()))
    return facts


def second_pass(text: str, filters: tuple[str, ...] = ()) -> tuple[int, int, int]:
    """(requests for memory, rows, terms new to the batch) when all events come again."""
    chance = random.Random(7)
    found = matchers(text, kb=open_kb(KB), filters=filters)
    batch = batch_of(found, [event(chance) for _ in range(EVENTS)])
    rows = found.count(batch, 0)
    asked, terms = requests(), batch.terms
    assert found.count(batch, 0) == rows
    return requests() - asked, rows, batch.terms - terms


@pytest.mark.parametrize("name", PATTERNS)
def test_matching_asks_for_no_memory(name: str) -> None:
    asked, rows, _ = second_pass(PATTERNS[name])
    assert rows > 0
    assert asked == 0


def test_local_filters_ask_for_no_memory() -> None:
    asked, rows, _ = second_pass("{ ?a :s ?b . ?c :s ?d }", ("?b < ?d", "?b + ?d != 7", "?a != ?c"))
    assert rows > 0
    assert asked == 0


def test_local_filters_that_join_ask_for_no_memory() -> None:
    """Where the pattern itself is but a triple, of which there is one."""
    ways = "{ { ?a :p ?c } UNION { ?c :r ?a } { ?c :q ?d } UNION { ?d :r ?c } }"
    found = matchers("{ ?a :s ?b }", filters=(f"EXISTS {ways}",))
    nodes = [ox.NamedNode(f"{EX}n{number}") for number in range(40)]
    facts: list[Fact] = [(nodes[0], PREDICATES[3], ox.Literal(1))]
    for node in nodes:
        facts += [(nodes[0], PREDICATES[0], node), (node, PREDICATES[1], node)]
    batch = batch_of(found, [facts] * EVENTS)
    assert found.count(batch, 0) == EVENTS
    asked = requests()
    assert found.count(batch, 0) == EVENTS
    assert requests() == asked


@pytest.mark.parametrize("name", BINDS)
def test_binding_asks_for_memory_only_where_it_makes_terms(name: str) -> None:
    """A term that BIND makes is interned in the batch, like those read; the second time it is
    there already."""
    assert second_pass(BINDS[name])[0] == 0


def test_a_batch_that_is_filled_again_and_again_asks_for_no_memory() -> None:
    """Encoding too: as a run does with events that come as terms."""
    chance = random.Random(3)
    events = [event(chance) for _ in range(EVENTS)]
    found = matchers(PATTERNS["a star"], PATTERNS["optional"], PATTERNS["union"])
    batch = EventBatch(found.dictionary)

    def once() -> int:
        rows = 0
        for facts in events:
            batch.clear()
            batch.add(facts)
            (given,) = encoded_events(batch)
            rows += sum(len(found.rows(given, number)[0]) for number in range(3))
        return rows

    before = requests()
    rows = once()
    asked = requests()
    assert asked > before
    assert once() == rows > 0
    assert requests() == asked
