"""Named graphs → their closure under entailment, with their common schema.

The schema is the union of the schema triples of all graphs. Each graph is closed by it separately,
so that `GRAPH` finds the triples that follow from the graph and the schema. Terms that some
graph's `owl:sameAs` makes equal (`owl-ql` only) replace each other in every position of a triple.

Invariant: the result is a fixpoint, and the schema includes derived schema triples. Cost: linear in
the triples of the result for each round, usually two rounds; at most `MOST_DERIVED` triples per
graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import chain, product

import pyoxigraph as ox

from spaseq.errors import LimitExceeded
from spaseq.kb.snapshot import Kb
from spaseq.rdf.entailment import EVERYTHING, MOST_DERIVED, Pairs, pairs_of, rules_of
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.graph import Graph
from spaseq.rdf.schema import Schema, schema_of
from spaseq.records import dataclass


@dataclass(frozen=True, slots=True)
class ClosedKb:
    """Closed graphs, their schema, and the pairs that property chains join with events."""

    kb: Kb
    schema: Schema
    background: Pairs


def closed(graphs: Mapping[ox.NamedNode, Graph], regime: str) -> ClosedKb:
    """The closure of some graphs under a regime.

    Raises:
        KbError: if the schema has an axiom that the regime does not support.
        LimitExceeded: if the closure is too large.
    """
    facts: dict[ox.NamedNode, tuple[Fact, ...]] = {
        name: tuple(graph.facts) for name, graph in graphs.items()
    }
    schema = schema_of(chain.from_iterable(facts.values()), regime)
    while True:
        rules = rules_of(schema, (EVERYTHING,), {})
        grown = {name: rules.derive(some) for name, some in facts.items()}
        if schema.same:
            grown = {name: _equalled(some, schema.same) for name, some in grown.items()}
        derived = schema_of(chain.from_iterable(grown.values()), regime)
        done = _tables(derived) == _tables(schema)
        if schema.same:
            done &= sum(map(len, grown.values())) == sum(map(len, facts.values()))
        facts, schema = grown, derived
        if done:
            break
    linked = {name for joined in schema.chains for name in joined[:2]}
    return ClosedKb(
        Kb({name: Graph(some) for name, some in facts.items()}),
        schema,
        pairs_of(dict.fromkeys(chain.from_iterable(facts.values())), linked.__contains__),
    )


def _tables(schema: Schema) -> list[object]:
    """The tables of the schema as sets, for comparison."""
    tables: list[object] = []
    for part in fields(schema):
        table = getattr(schema, part.name)
        if isinstance(table, Mapping):
            tables.append({key: frozenset(values) for key, values in table.items()})
        elif part.name == "same":
            tables.append({frozenset(terms) for terms in table})
        else:
            tables.append(frozenset(table))
    return tables


def _equalled(facts: Iterable[Fact], same: Iterable[tuple[Term, ...]]) -> tuple[Fact, ...]:
    """The triples with every term replaced by each of its equal terms."""
    equals = {term: terms for terms in same for term in terms}
    triples: dict[Fact, None] = {}
    for fact in facts:
        if equals.keys().isdisjoint(fact):
            triples[fact] = None
            continue
        triples |= dict.fromkeys(_replaced(fact, equals))
        if len(triples) > MOST_DERIVED:
            raise LimitExceeded(
                f"more than {MOST_DERIVED:,} triples follow from one graph (MOST_DERIVED): "
                "owl:sameAs equates too many terms"
            )
    return tuple(triples)


def _replaced(fact: Fact, equals: Mapping[Term, tuple[Term, ...]]) -> Iterator[Fact]:
    for subject, predicate, object in product(*(equals.get(term, (term,)) for term in fact)):
        if isinstance(subject, ox.NamedNode | ox.BlankNode) and isinstance(predicate, ox.NamedNode):
            yield subject, predicate, object
