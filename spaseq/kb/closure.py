"""Named graphs → the same closed under entailment, with the schema they tell together.

The schema is the union of the schema triples of all the graphs; each graph is closed by it on
its own, so that `GRAPH` finds in a graph what follows from the graph's triples and the
schema. Terms that `owl:sameAs` makes one (`owl-ql` only, in whatever graph it stands) stand
for each other in every place of a triple.

Invariant: a fixpoint; schema triples that follow from others are schema too. Cost: linear in
the triples of the result for each round, two rounds as a rule; at most `MOST_DERIVED` triples
a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain, product

import pyoxigraph as ox

from spaseq.errors import LimitExceeded
from spaseq.kb.snapshot import Kb
from spaseq.rdf.entailment import EVERYTHING, MOST_DERIVED, Pairs, pairs_of, rules_of
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.graph import Graph
from spaseq.rdf.schema import Schema, schema_of


@dataclass(frozen=True, slots=True)
class ClosedKb:
    """Closed graphs, their schema, and the pairs that chains join events with."""

    kb: Kb
    schema: Schema
    background: Pairs


def closed(graphs: Mapping[ox.NamedNode, Graph], regime: str) -> ClosedKb:
    """The closure of some graphs under a regime.

    Raises:
        KbError: for a schema that the regime does not know what to do with.
        LimitExceeded: where the closure is too large.
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
        found = schema_of(chain.from_iterable(grown.values()), regime)
        done = _tables(found) == _tables(schema)
        if schema.same:
            done &= sum(map(len, grown.values())) == sum(map(len, facts.values()))
        facts, schema = grown, found
        if done:
            break
    linked = {name for joined in schema.chains for name in joined[:2]}
    return ClosedKb(
        Kb({name: Graph(some) for name, some in facts.items()}),
        schema,
        pairs_of(dict.fromkeys(chain.from_iterable(facts.values())), linked.__contains__),
    )


def _tables(schema: Schema) -> list[object]:
    """The schema without the order of its tables."""
    found: list[object] = []
    for part in fields(schema):
        table = getattr(schema, part.name)
        if isinstance(table, Mapping):
            found.append({key: frozenset(values) for key, values in table.items()})
        elif part.name == "same":
            found.append({frozenset(terms) for terms in table})
        else:
            found.append(frozenset(table))
    return found


def _equalled(facts: Iterable[Fact], same: Iterable[tuple[Term, ...]]) -> tuple[Fact, ...]:
    """The triples with every term replaced by all that are the same."""
    equals = {term: terms for terms in same for term in terms}
    found: dict[Fact, None] = {}
    for fact in facts:
        if equals.keys().isdisjoint(fact):
            found[fact] = None
            continue
        found |= dict.fromkeys(_replaced(fact, equals))
        if len(found) > MOST_DERIVED:
            raise LimitExceeded(
                f"more than {MOST_DERIVED:,} triples follow from one graph (MOST_DERIVED): "
                "owl:sameAs makes very many terms one"
            )
    return tuple(found)


def _replaced(fact: Fact, equals: Mapping[Term, tuple[Term, ...]]) -> Iterator[Fact]:
    for subject, predicate, object in product(*(equals.get(term, (term,)) for term in fact)):
        if not isinstance(subject, ox.Literal) and isinstance(predicate, ox.NamedNode):
            yield subject, predicate, object
