"""The rules of entailment as arrays, one rule at a time: what an event entails for one pattern.

`test_entail.py` compares drawn schemas and events with materialisation.
"""

from __future__ import annotations

import pytest

from spaseq.gpm.native._matcher import Deriver
from spaseq.rdf.entailment import View
from spaseq.rdf.native._terms import Dictionary, EventBatch
from tests.unit.gpm.entailment_strategies import facts_of_turtle
from tests.unit.gpm.test_entail import KB, compiled, graphs_of

CHAIN = ":far owl:propertyChainAxiom (:near :next)"


@pytest.mark.parametrize(
    ("schema", "pattern", "event", "expected"),
    [
        (":c1 rdfs:subClassOf :c0", "?x a :c0", ":x a :c1 . :y a :c2", ":x a :c0"),
        (":p rdfs:subPropertyOf :q", "?x :q ?y", ":x :p :y, 1", ":x :q :y, 1"),
        (":p rdfs:domain :c0", "?x a :c0", ":x :p 1 . :x :p 2 . :y :q 1", ":x a :c0"),
        (":p rdfs:range :c0", "?x a :c0", ":x :p :y, 1, 'a', 2.5", ":y a :c0"),
        (":p owl:inverseOf :q", "?x :q ?y", ":x :p :y, 1", ":y :q :x"),
        (":p a owl:SymmetricProperty", "?x :p ?y", ":x :p :y", ":x :p :y . :y :p :x"),
        (CHAIN, "?x :far ?y", ":a :near :b . :b :next :c . :c :next :d", ":a :far :c"),
        (CHAIN, "?x :far ?y", ":b :next :c, 1 . :a :near :b", ":a :far :c, 1"),
        (f"{CHAIN} . :b :next :c, :d", "?x :far ?y", ":a :near :b, :x", ":a :far :c, :d"),
        (
            f"{CHAIN} . :a :near :b . :z :near :b",
            "?x :far ?y",
            ":b :next 7",
            ":a :far 7 . :z :far 7",
        ),
        (f"{CHAIN} . :far rdfs:domain :c0", "?x a :c0", ":a :near :b . :b :next :c", ":a a :c0"),
        (CHAIN, "?x :far ?y", ":b :near :c . :a :next :b", ""),
    ],
)
def test_one_rule(schema: str, pattern: str, event: str, expected: str) -> None:
    facts = facts_of_turtle(event)
    rules = graphs_of({KB: facts_of_turtle(schema)}, compiled(pattern), "owl-ql").rules
    dictionary = Dictionary()
    deriver = Deriver(dictionary, [rules], {View(rules, target): 1 for target in rules.targets})
    batch = EventBatch(dictionary)
    batch.add(facts)
    found = [tuple(map(batch.term, triple)) for _, *triple in deriver.derived(batch, 0)]
    assert sorted(found, key=str) == sorted(facts_of_turtle(expected), key=str)
