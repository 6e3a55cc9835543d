"""A schema and the patterns of the queries → rules that derive the triples entailed by a triple.

A *target* is what a pattern asks for: a predicate, or `rdf:type` with a class, or any triple.
`Rules` map each predicate, and each predicate with a certain subject or object, to the entailed
triples of the targets. Making the rules composes all steps through subproperties, inverses,
domains, ranges and classes, so applying a rule is a look-up. The triple that a chain of two
properties derives from two triples goes through the rules again; one of the two may be a triple
of the knowledge base (the *background*), the other is from the graph.

Invariants: the derived triples are those with a derivation that uses a triple of the graph,
including the graph's triples themselves; no literal becomes a subject. Derivation terminates,
since it processes every pair of ends of a chain once. The same rules run natively
(`spaseq/gpm/native/matcher/entailed_views.pxi`). Cost: making the rules is linear in the
consequences of each property and each class, at most `MOST_RULES`; applying them is linear in the
derived triples, at most `MOST_DERIVED`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.errors import LimitExceeded
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.schema import SUBCLASS, SUBPROPERTY, TYPE, Schema
from spaseq.records import dataclass

MOST_RULES = 5_000_000
"""The maximum number of rules of a run; a class counts once for each target above it."""
MOST_DERIVED = 20_000_000
"""The maximum number of triples derived from one graph of the KB, or from one event."""


class Part(Enum):
    """A placeholder in a rule for a term of the triple that the rule is applied to."""

    SUBJECT = 0
    PREDICATE = 1
    OBJECT = 2


SUBJECT, OBJECT = Part.SUBJECT, Part.OBJECT

Symbol: TypeAlias = Term | Part
Symbolic: TypeAlias = tuple[Symbol, Term, Symbol]
Target: TypeAlias = tuple[Term | None, Term | None]
"""A predicate (None: any), and the object if the pattern has a constant one, else None."""
EVERYTHING: Target = (None, None)
Emission: TypeAlias = tuple[int, Symbol, Symbol, Symbol, bool]
"""(number, subject, predicate, object, named) of a derived triple.

The number is that of a target or, counted after the targets, of a property in a chain. `named`
means that the rule does not apply to a literal object, which the derivation makes a subject.
"""
Ends: TypeAlias = Mapping[Term, Sequence[Term]]
Pairs: TypeAlias = Mapping[Term, tuple[Ends, Ends]]
"""By predicate: from subjects to objects, and from objects to subjects."""


@dataclass(frozen=True, slots=True)
class View:
    """The triples of a target under some rules; rules compare by identity."""

    rules: Rules
    target: Target


@dataclass(frozen=True, slots=True)
class Join:
    """A chain: the numbers of its two properties among the `linked`, and the derived property."""

    left: int
    right: int
    result: Term


@dataclass(frozen=True, eq=False, slots=True)
class Rules:
    """The triples that follow from a triple, by its predicate, or by predicate and one end."""

    targets: tuple[Target, ...]
    linked: tuple[Term, ...]
    """The properties that occur in chains."""
    plain: Mapping[Term, tuple[Emission, ...]]
    by_subject: Mapping[tuple[Term, Term], tuple[Emission, ...]]
    by_object: Mapping[tuple[Term, Term], tuple[Emission, ...]]
    otherwise: tuple[Emission, ...]
    """The emissions of predicates that are not in `plain`."""
    joins: tuple[Join, ...]
    background: Pairs
    """The triples of linked properties in the KB, which chains join with triples of the graph."""

    @property
    def widened(self) -> frozenset[Target]:
        """The targets for which other triples can be derived than those stated in the graph."""
        results = {join.result for join in self.joins}
        widened = {EVERYTHING}
        for where, end, (number, *symbols, _) in self.emissions():
            if number < len(self.targets):
                predicate, object = self.targets[number]
                itself = [SUBJECT, predicate, OBJECT if object is None else object]
                if (where, end) != (predicate, object) or symbols != itself or where in results:
                    widened.add(self.targets[number])
        return frozenset(widened.intersection(self.targets))

    def inputs(self) -> frozenset[tuple[Term, Term | None]] | None:
        """The predicates of triples that entail something, each with the object if it matters.

        None means that any triple does.
        """
        if self.otherwise:
            return None
        inputs: set[tuple[Term, Term | None]] = {(predicate, None) for predicate in self.plain}
        inputs |= {(predicate, None) for predicate, _ in self.by_subject}
        inputs |= {(p, o) for p, o in self.by_object if (p, None) not in inputs}
        return frozenset(inputs)

    def emissions(self) -> Iterator[tuple[Term, Term | None, Emission]]:
        """Each emission with the predicate, and the subject or object, that it applies to."""
        for predicate, emissions in self.plain.items():
            for emission in emissions:
                yield predicate, None, emission
        for keyed in (self.by_subject, self.by_object):
            for (predicate, end), emissions in keyed.items():
                for emission in emissions:
                    yield predicate, end, emission

    def of(self, fact: Fact) -> Iterator[Emission]:
        """The emissions that apply to a triple, with placeholders for its terms."""
        subject, predicate, object = fact
        yield from self.plain.get(predicate, self.otherwise)
        yield from self.by_subject.get((predicate, subject), ())
        yield from self.by_object.get((predicate, object), ())

    def derive(self, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """The triples of the targets that follow from a graph.

        Raises:
            LimitExceeded: if there are more than `MOST_DERIVED`.
        """
        return _Deriving(self).derive(facts)


class _Deriving:
    """The derivation from one graph: a work list of triples and the chain joins."""

    def __init__(self, rules: Rules):
        self._rules = rules
        self._waiting: list[Fact] = []
        self._entered: set[Fact] = set()
        self._linked: set[tuple[int, Term, Term]] = set()
        self._by_subject: dict[tuple[int, Term], list[Term]] = defaultdict(list)
        self._by_object: dict[tuple[int, Term], list[Term]] = defaultdict(list)

    def derive(self, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        rules, targets = self._rules, len(self._rules.targets)
        out: dict[Fact, None] = {}
        self._waiting += facts
        for fact in self._waiting:  # `_link` appends to it
            literal = isinstance(fact[2], ox.Literal | ox.Triple)  # no subject
            for number, *symbols, named in rules.of(fact):
                if named and literal:
                    continue
                start, link, end = (
                    fact[symbol.value] if isinstance(symbol, Part) else symbol for symbol in symbols
                )
                if number < targets:
                    out[start, link, end] = None
                else:
                    self._link(number - targets, start, end)
            if len(out) > MOST_DERIVED or len(self._waiting) > MOST_DERIVED:
                raise LimitExceeded(
                    f"more than {MOST_DERIVED:,} triples follow from one graph (MOST_DERIVED): "
                    "look for a transitive property, a chain or equalities that join nearly "
                    "everything"
                )
        return tuple(out)

    def _link(self, number: int, start: Term, end: Term) -> None:
        """Join a triple of a linked property with the earlier ones and with the background."""
        if (number, start, end) in self._linked:
            return
        self._linked.add((number, start, end))
        self._by_subject[number, start].append(end)
        self._by_object[number, end].append(start)
        rules = self._rules
        for join in rules.joins:
            if join.left == number:
                ahead = rules.background[rules.linked[join.right]][0].get(end, ())
                for beyond in (*ahead, *self._by_subject.get((join.right, end), ())):
                    self._enter((start, join.result, beyond))
            if join.right == number:
                back = rules.background[rules.linked[join.left]][1].get(start, ())
                for before in (*back, *self._by_object.get((join.left, start), ())):
                    self._enter((before, join.result, end))

    def _enter(self, fact: Fact) -> None:
        if fact not in self._entered:
            self._entered.add(fact)
            self._waiting.append(fact)


# ------------------------------------------------------------------ making rules


def rules_of(schema: Schema, targets: Iterable[Target], background: Pairs) -> Rules:
    """The rules for some targets.

    `background` holds the pairs of every property in a chain, except for subclasses and
    subproperties, which the schema holds.

    Raises:
        LimitExceeded: if there are more than `MOST_RULES`.
    """
    return _Making(schema, tuple(dict.fromkeys(targets))).rules(background)


def consequences(schema: Schema, start: Symbolic) -> dict[Symbolic, bool]:
    """The triples that follow from one triple by rules of one premise, itself included.

    The value is true if the object must not be a literal, because every derivation makes it a
    subject. A triple reached first by such a derivation may be reached again by another one.
    """
    reached: dict[Symbolic, bool] = {}
    waiting: list[Symbolic] = []

    def add(triple: Symbolic, named: bool, further: bool = True) -> None:
        named |= triple[0] is OBJECT
        if reached.get(triple, True) > named or triple not in reached:
            reached[triple] = named
            if further:
                waiting.append(triple)

    add(start, False)
    while waiting:
        triple = waiting.pop()
        subject, predicate, object = triple
        named = reached[triple]
        for above in schema.superproperties.get(predicate, ()):
            add((subject, above, object), named)
        for inverse in schema.inverses.get(predicate, ()):
            add((object, inverse, subject), named)
        for kind in schema.domains.get(predicate, ()):
            add((subject, TYPE, kind), named)
        for kind in schema.ranges.get(predicate, ()):
            add((object, TYPE, kind), named)
        if predicate == TYPE and not isinstance(object, Part):
            # `superclasses` is closed: the derivation continues only if rdf:type entails others.
            typed = TYPE in schema.superproperties or TYPE in schema.inverses
            typed |= TYPE in schema.domains or TYPE in schema.ranges
            for above in schema.superclasses.get(object, ()):
                add((subject, TYPE, above), named, typed)
    return reached


class _Making:
    def __init__(self, schema: Schema, targets: tuple[Target, ...]):
        self._schema = schema
        self._targets = targets
        self._numbers: dict[Target, list[int]] = defaultdict(list)
        for number, target in enumerate(targets):
            self._numbers[target].append(number)
        self._held = 0

    def rules(self, background: Pairs) -> Rules:
        schema = self._schema
        linked, chains = self._chains()
        for number, name in enumerate(linked, len(self._targets)):
            self._numbers[name, None].append(number)
        plain: dict[Term, tuple[Emission, ...]] = {}
        by_subject: dict[tuple[Term, Term], tuple[Emission, ...]] = {}
        by_object: dict[tuple[Term, Term], tuple[Emission, ...]] = {}
        for predicate in self._properties(linked):
            symbols = consequences(schema, (SUBJECT, predicate, OBJECT))
            emissions = self._emissions(symbols)
            if emissions:
                plain[predicate] = emissions
            for keyed, end, other in (
                (by_object, OBJECT, SUBJECT),
                (by_subject, SUBJECT, OBJECT),
            ):
                if (other, TYPE, end) in symbols:
                    self._by_class(predicate, other, emissions, keyed)
        # A triple whose predicate is not in the schema entails only itself.
        otherwise = tuple(
            (number, SUBJECT, Part.PREDICATE, OBJECT, False) for number in self._numbers[EVERYTHING]
        )
        joins = tuple(Join(linked.index(p), linked.index(q), result) for p, q, result in chains)
        return Rules(
            self._targets,
            linked,
            plain,
            by_subject,
            by_object,
            otherwise,
            joins,
            {name: self._pairs(name, background) for name in linked},
        )

    def _properties(self, linked: Iterable[Term]) -> dict[Term, None]:
        """All predicates that occur in the schema or in a target."""
        schema = self._schema
        asked = (name for name, _ in self._targets if name is not None)
        results = (chain[2] for chain in schema.chains)
        tables = (schema.superproperties, schema.inverses, schema.domains, schema.ranges)
        known = (name for table in tables for name in table)
        return dict.fromkeys((TYPE, *asked, *linked, *results, *known))

    def _emissions(self, symbols: Mapping[Symbolic, bool]) -> tuple[Emission, ...]:
        numbers = self._numbers
        every = numbers[EVERYTHING]
        emissions = [
            (number, subject, predicate, object, named)
            for (subject, predicate, object), named in symbols.items()
            for keys in (
                # A blank-node property may have superproperties, but occurs in no triple.
                every if isinstance(predicate, ox.NamedNode) else (),
                numbers.get((predicate, None), ()),
                () if isinstance(object, Part) else numbers.get((predicate, object), ()),
            )
            for number in keys
        ]
        self._held += len(emissions)
        if self._held > MOST_RULES:
            raise LimitExceeded(
                f"the schema makes more than {MOST_RULES:,} rules for the patterns of the queries "
                "(MOST_RULES): write constant classes and predicates in the patterns, or load "
                "only the part of the schema that the queries need"
            )
        return tuple(emissions)

    def _by_class(
        self,
        predicate: Term,
        typed: Part,
        known: tuple[Emission, ...],
        keyed: dict[tuple[Term, Term], tuple[Emission, ...]],
    ) -> None:
        """The rules of a predicate whose subject or object is the class of its other end."""
        named = (kind for name, kind in self._targets if name == TYPE and kind is not None)
        end = OBJECT if typed is SUBJECT else SUBJECT
        for kind in dict.fromkeys((*self._schema.superclasses, *named)):
            symbols = consequences(self._schema, (typed, TYPE, kind))
            # Skip the emissions that the predicate has for every class.
            general = {(n, *(kind if s is end else s for s in symbols)) for n, *symbols, _ in known}
            emissions = tuple(e for e in self._emissions(symbols) if e[:4] not in general)
            if emissions:
                keyed[predicate, kind] = emissions

    def _chains(self) -> tuple[tuple[Term, ...], tuple[tuple[Term, Term, Term], ...]]:
        """The properties of the useful chains, and the chains.

        A chain is useful if a target or another useful chain can use its result.
        """
        chosen: dict[tuple[Term, Term, Term], None] = {}
        linked: dict[Term, None] = {}
        grown = True
        while grown:
            grown = False
            for chain in self._schema.chains:
                if chain not in chosen and self._useful(chain[2], linked):
                    chosen[chain] = None
                    linked.update(dict.fromkeys(chain[:2]))
                    grown = True
        return tuple(linked), tuple(chosen)

    def _useful(self, result: Term, linked: Mapping[Term, None]) -> bool:
        wanted = self._numbers.keys() | {(name, None) for name in linked}
        kinds = any(name == TYPE for name, _ in wanted)
        return EVERYTHING in wanted or any(
            (name, None) in wanted or (name, end) in wanted or (kinds and name == TYPE)
            for _, name, end in consequences(self._schema, (SUBJECT, result, OBJECT))
        )

    def _pairs(self, name: Term, background: Pairs) -> tuple[Ends, Ends]:
        if name == SUBCLASS:
            return _both_ways(self._schema.superclasses)
        if name == SUBPROPERTY:
            return _both_ways(self._schema.superproperties)
        return background.get(name, ({}, {}))


def _both_ways(above: Ends) -> tuple[Ends, Ends]:
    below: dict[Term, list[Term]] = defaultdict(list)
    for term, terms in above.items():
        for other in terms:
            below[other].append(term)
    return above, below


def pairs_of(facts: Iterable[Fact], wanted: Callable[[Term], bool]) -> Pairs:
    """The pairs of the wanted predicates, in both directions."""
    pairs: dict[Term, tuple[dict[Term, list[Term]], dict[Term, list[Term]]]] = {}
    for subject, predicate, object in facts:
        if wanted(predicate):
            forward, backward = pairs.setdefault(predicate, ({}, {}))
            forward.setdefault(subject, []).append(object)
            backward.setdefault(object, []).append(subject)
    return pairs
