"""Schema triples → tables of superclasses, superproperties, domains, ranges and so on.

`schema_of` reads the axioms of a knowledge base under a regime: `rdfs` (rho-df: subclass,
subproperty, domain, range) or `owl-ql` (additionally equivalence, inverse, symmetric and
transitive properties, chains of two properties and, within the KB, `owl:sameAs`). A `Schema`
is immutable plain data, from which `spaseq.rdf.entailment` makes rules.

Invariant: superclasses and superproperties are transitively closed. Cost: linear in the pairs
(class, superclass) and (property, superproperty), of which there are at most `MOST_PAIRS`.
Source: Muñoz, Pérez and Gutierrez, Minimal deductive systems for RDF (2007), for rho-df;
OWL 2 RL's rules of the same names (OWL 2 Profiles, section 4.3) for the other axioms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.errors import KbError, LimitExceeded
from spaseq.rdf.event import Fact, Term
from spaseq.records import dataclass

RDFS = "rdfs"
OWL_QL = "owl-ql"
REGIMES = (RDFS, OWL_QL)
MOST_PAIRS = 10_000_000
"""The maximum number of (class, superclass) and (property, superproperty) pairs of a schema."""

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
TYPE = ox.NamedNode(_RDF + "type")
SUBCLASS = ox.NamedNode(_RDFS + "subClassOf")
SUBPROPERTY = ox.NamedNode(_RDFS + "subPropertyOf")
DOMAIN = ox.NamedNode(_RDFS + "domain")
RANGE = ox.NamedNode(_RDFS + "range")
SAME = ox.NamedNode(_OWL + "sameAs")
_FIRST = ox.NamedNode(_RDF + "first")
_REST = ox.NamedNode(_RDF + "rest")
_NIL = ox.NamedNode(_RDF + "nil")
_INVERSE = ox.NamedNode(_OWL + "inverseOf")
_SAME_CLASS = ox.NamedNode(_OWL + "equivalentClass")
_SAME_PROPERTY = ox.NamedNode(_OWL + "equivalentProperty")
_SYMMETRIC = ox.NamedNode(_OWL + "SymmetricProperty")
_TRANSITIVE = ox.NamedNode(_OWL + "TransitiveProperty")
_CHAIN = ox.NamedNode(_OWL + "propertyChainAxiom")

Above: TypeAlias = Mapping[Term, tuple[Term, ...]]
Chain: TypeAlias = tuple[Term, Term, Term]
"""`(p, q, r)`: `x p y` and `y q z` entail `x r z`."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The axioms of a knowledge base, by the predicate or class of the triple they apply to.

    `inverses` maps a property to its inverse properties; `same` are the sets of terms that
    `owl:sameAs` makes equal.
    """

    regime: str
    superclasses: Above
    superproperties: Above
    inverses: Above
    domains: Above
    ranges: Above
    chains: tuple[Chain, ...]
    same: tuple[tuple[Term, ...], ...]


def schema_of(facts: Iterable[Fact], regime: str) -> Schema:
    """The schema that the triples state, under a regime of `REGIMES`.

    Raises:
        KbError: for a property chain that is not of two properties.
        LimitExceeded: if there are more than `MOST_PAIRS` pairs.
    """
    if regime not in REGIMES:
        raise ValueError(f"there is no entailment {regime!r}; choose from {', '.join(REGIMES)}")
    return _Reading(regime == OWL_QL).read(facts).schema(regime)


class _Reading:
    """The axioms of some triples, by kind."""

    def __init__(self, owl: bool):
        self._owl = owl
        self._classes: dict[Term, dict[Term, None]] = {}
        self._properties: dict[Term, dict[Term, None]] = {}
        self._inverses: dict[Term, dict[Term, None]] = {}
        self._domains: dict[Term, dict[Term, None]] = {}
        self._ranges: dict[Term, dict[Term, None]] = {}
        self._same: dict[Term, dict[Term, None]] = {}
        self._chains: dict[Chain, None] = {
            (SUBCLASS, SUBCLASS, SUBCLASS): None,
            (SUBPROPERTY, SUBPROPERTY, SUBPROPERTY): None,
        }
        self._lists: list[tuple[Term, Term]] = []
        self._first: dict[Term, Term] = {}
        self._rest: dict[Term, Term] = {}
        if owl:
            for both_ways in (_SAME_CLASS, _SAME_PROPERTY, _INVERSE, SAME):
                _put(self._inverses, both_ways, both_ways)
            _put(self._properties, _SAME_CLASS, SUBCLASS)
            _put(self._properties, _SAME_PROPERTY, SUBPROPERTY)

    def read(self, facts: Iterable[Fact]) -> _Reading:
        tables: dict[Term, dict[Term, dict[Term, None]]] = {
            SUBCLASS: self._classes,
            SUBPROPERTY: self._properties,
            DOMAIN: self._domains,
            RANGE: self._ranges,
        }
        owl = frozenset(
            (_SAME_CLASS, _SAME_PROPERTY, _INVERSE, TYPE, _CHAIN, _FIRST, _REST, SAME)
            if self._owl
            else ()
        )
        for subject, predicate, object in facts:
            table = tables.get(predicate)
            if table is not None:
                if not isinstance(object, ox.Literal | ox.Triple):
                    _put(table, subject, object)
            elif predicate in owl:
                self._read_owl(subject, predicate, object)
        return self

    def _read_owl(self, subject: Term, predicate: Term, object: Term) -> None:
        if predicate == TYPE:
            if object == _SYMMETRIC:
                _put(self._inverses, subject, subject)
            elif object == _TRANSITIVE:
                self._chains[subject, subject, subject] = None
        elif predicate == _FIRST:
            self._first[subject] = object
        elif predicate == _REST:
            self._rest[subject] = object
        elif isinstance(object, ox.Literal | ox.Triple):
            return
        elif predicate == _CHAIN:
            self._lists.append((subject, object))
        else:
            tables: dict[Term, dict[Term, dict[Term, None]]] = {
                _SAME_CLASS: self._classes,
                _SAME_PROPERTY: self._properties,
                _INVERSE: self._inverses,
                SAME: self._same,
            }
            table = tables[predicate]
            _put(table, subject, object)
            _put(table, object, subject)

    def schema(self, regime: str) -> Schema:
        for result, start in self._lists:
            self._chains[(*self._two(result, start), result)] = None
        return Schema(
            regime,
            _closed(self._classes),
            _closed(self._properties),
            _frozen(self._inverses),
            _frozen(self._domains),
            _frozen(self._ranges),
            tuple(self._chains),
            tuple(_components(self._same)),
        )

    def _two(self, result: Term, start: Term) -> tuple[Term, Term]:
        links: list[Term] = []
        seen = set()
        node: Term | None = start
        while node is not None and node != _NIL and node not in seen:
            seen.add(node)
            if node in self._first:
                links.append(self._first[node])
            node = self._rest.get(node)
        if len(links) != 2 or node != _NIL:
            shown = " ".join(map(str, links)) or "nothing"
            raise KbError(
                f"the property chain of {result} is a list of {shown}, but only chains of two "
                "properties are supported; split a longer chain by defining a property for its "
                "first two"
            )
        return links[0], links[1]


def _put(table: dict[Term, dict[Term, None]], key: Term, value: Term) -> None:
    table.setdefault(key, {})[value] = None


def _frozen(table: Mapping[Term, Mapping[Term, None]]) -> Above:
    return {key: tuple(values) for key, values in table.items()}


def _closed(direct: Mapping[Term, Mapping[Term, None]]) -> Above:
    """The transitive closure; a term is above itself only on a cycle."""
    out: dict[Term, tuple[Term, ...]] = {}
    pairs = 0
    for start in direct:
        out[start] = _reached(direct, start)
        pairs += len(out[start])
        if pairs > MOST_PAIRS:
            raise LimitExceeded(
                f"the schema has more than {MOST_PAIRS:,} pairs of a class or property and one "
                "above it (MOST_PAIRS): look for a chain or clique of thousands of subclasses or "
                "equivalences"
            )
    return out


def _reached(direct: Mapping[Term, Mapping[Term, None]], start: Term) -> tuple[Term, ...]:
    reached = dict(direct[start])
    waiting = list(reached)
    while waiting:
        for above in direct.get(waiting.pop(), ()):
            if above not in reached:
                reached[above] = None
                waiting.append(above)
    return tuple(reached)


def _components(same: Mapping[Term, Mapping[Term, None]]) -> Iterator[tuple[Term, ...]]:
    done: set[Term] = set()
    for start in same:
        if start not in done:
            equal = tuple({start: None, **dict.fromkeys(_reached(same, start))})
            done.update(equal)
            if len(equal) > 1:
                yield equal
