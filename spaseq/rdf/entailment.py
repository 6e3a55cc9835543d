"""A schema and what is asked for → rules: the triples that one triple stands for.

A *target* is a predicate, or `rdf:type` with a class, or any triple at all. `Rules` say for
each predicate, and for each predicate with a certain subject or object, which triples of the
targets follow: all steps through subproperties, inverses, domains, ranges and classes are
composed when the rules are made, so applying one is a look-up. What a chain of two properties
makes of two triples goes through the rules again; one of the two may be in the background,
the other is the graph's own.

Invariants: what follows is what has a derivation with a triple of the graph in it, the
triples themselves included; no literal becomes a subject. Applying rules ends, since every
pair of a chain's ends is looked at once. The same rules run natively
(`spaseq/gpm/native/_entailed_views.pyx`). Cost: making them is linear in the consequences of each
property and each class, at most `MOST_RULES`; applying them in what follows, at most
`MOST_DERIVED`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import pyoxigraph as ox

from spaseq.errors import LimitExceeded
from spaseq.rdf.event import Fact, Term
from spaseq.rdf.schema import SUBCLASS, SUBPROPERTY, TYPE, Schema

MOST_RULES = 5_000_000
"""What the rules of a run may hold: a class counts once for each target above it."""
MOST_DERIVED = 20_000_000
"""Triples that may follow from one graph of the KB, or from one event."""


class Part(Enum):
    """A place in a rule for a term of the triple it is applied to."""

    SUBJECT = 0
    PREDICATE = 1
    OBJECT = 2


SUBJECT, OBJECT = Part.SUBJECT, Part.OBJECT

Symbol: TypeAlias = Term | Part
Symbolic: TypeAlias = tuple[Symbol, Term, Symbol]
Target: TypeAlias = tuple[Term | None, Term | None]
"""A predicate (None: any), and an object where only one is asked for."""
EVERYTHING: Target = (None, None)
Emission: TypeAlias = tuple[int, Symbol, Symbol, Symbol, bool]
"""The number of a target, or beyond these of a property in a chain, and a triple for it.

Last, whether there is one only where the object is no literal: it is a subject on the way.
"""
Ends: TypeAlias = Mapping[Term, Sequence[Term]]
Pairs: TypeAlias = Mapping[Term, tuple[Ends, Ends]]
"""By predicate: from subjects to objects, and from objects to subjects."""


@dataclass(frozen=True, slots=True)
class View:
    """The triples of a target as some rules have them; rules are told apart by identity."""

    rules: Rules
    target: Target


@dataclass(frozen=True, slots=True)
class Join:
    """A chain: numbers of its two properties among the `linked`, and what follows."""

    left: int
    right: int
    result: Term


@dataclass(frozen=True, eq=False, slots=True)
class Rules:
    """What follows from a triple: by its predicate, and by that with an end of it."""

    targets: tuple[Target, ...]
    linked: tuple[Term, ...]
    """The properties in chains."""
    plain: Mapping[Term, tuple[Emission, ...]]
    by_subject: Mapping[tuple[Term, Term], tuple[Emission, ...]]
    by_object: Mapping[tuple[Term, Term], tuple[Emission, ...]]
    otherwise: tuple[Emission, ...]
    """For predicates that `plain` does not know."""
    joins: tuple[Join, ...]
    background: Pairs
    """The triples of linked properties that triples of the graph may be joined with."""

    @property
    def widened(self) -> frozenset[Target]:
        """The targets of which there are more triples than those that say so themselves."""
        results = {join.result for join in self.joins}
        found = {EVERYTHING}
        for where, end, (number, *symbols, _) in self.emissions():
            if number < len(self.targets):
                predicate, object = self.targets[number]
                itself = [SUBJECT, predicate, OBJECT if object is None else object]
                if (where, end) != (predicate, object) or symbols != itself or where in results:
                    found.add(self.targets[number])
        return frozenset(found.intersection(self.targets))

    def inputs(self) -> frozenset[tuple[Term, Term | None]] | None:
        """The triples anything follows from, with the object where that decides; None: any."""
        if self.otherwise:
            return None
        found: set[tuple[Term, Term | None]] = {(predicate, None) for predicate in self.plain}
        found |= {(predicate, None) for predicate, _ in self.by_subject}
        found |= {(p, o) for p, o in self.by_object if (p, None) not in found}
        return frozenset(found)

    def emissions(self) -> Iterator[tuple[Term, Term | None, Emission]]:
        """Each with the predicate, and the subject or object, that it takes."""
        for predicate, emissions in self.plain.items():
            for emission in emissions:
                yield predicate, None, emission
        for keyed in (self.by_subject, self.by_object):
            for (predicate, end), emissions in keyed.items():
                for emission in emissions:
                    yield predicate, end, emission

    def of(self, fact: Fact) -> Iterator[Emission]:
        """The emissions of a triple, still with its parts to be put in."""
        subject, predicate, object = fact
        yield from self.plain.get(predicate, self.otherwise)
        yield from self.by_subject.get((predicate, subject), ())
        yield from self.by_object.get((predicate, object), ())

    def derive(self, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """The triples of the targets that follow from a graph.

        Raises:
            LimitExceeded: where they are more than `MOST_DERIVED`.
        """
        return _Deriving(self).derive(facts)


class _Deriving:
    """One graph on its way through the rules."""

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
        for fact in self._waiting:  # it grows meanwhile
            literal = isinstance(fact[2], ox.Literal)
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
        """A triple of a linked property: what chains make of it and those before it."""
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

    `background` has the pairs of every property in a chain, but those above each other,
    which the schema knows.

    Raises:
        LimitExceeded: where they are more than `MOST_RULES`.
    """
    return _Making(schema, tuple(dict.fromkeys(targets))).rules(background)


def consequences(schema: Schema, start: Symbolic) -> dict[Symbolic, bool]:
    """What follows from one triple by rules of one premise, itself included.

    With each, whether the object must be no literal for it: on every way to it (so that one
    that was found so may be found again), that is a subject somewhere.
    """
    found: dict[Symbolic, bool] = {}
    waiting: list[Symbolic] = []

    def add(triple: Symbolic, named: bool, further: bool = True) -> None:
        named |= triple[0] is OBJECT
        if found.get(triple, True) > named or triple not in found:
            found[triple] = named
            if further:
                waiting.append(triple)

    add(start, False)
    while waiting:
        triple = waiting.pop()
        subject, predicate, object = triple
        named = found[triple]
        for above in schema.superproperties.get(predicate, ()):
            add((subject, above, object), named)
        for inverse in schema.inverses.get(predicate, ()):
            add((object, inverse, subject), named)
        for kind in schema.domains.get(predicate, ()):
            add((subject, TYPE, kind), named)
        for kind in schema.ranges.get(predicate, ()):
            add((object, TYPE, kind), named)
        if predicate == TYPE and not isinstance(object, Part):
            # A class has all classes above it: only what types themselves entail goes on.
            typed = TYPE in schema.superproperties or TYPE in schema.inverses
            typed |= TYPE in schema.domains or TYPE in schema.ranges
            for above in schema.superclasses.get(object, ()):
                add((subject, TYPE, above), named, typed)
    return found


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
        # A predicate that nothing is known of stands for itself.
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
        """All predicates of which something is known, or asked."""
        schema = self._schema
        asked = (name for name, _ in self._targets if name is not None)
        results = (chain[2] for chain in schema.chains)
        tables = (schema.superproperties, schema.inverses, schema.domains, schema.ranges)
        known = (name for table in tables for name in table)
        return dict.fromkeys((TYPE, *asked, *linked, *results, *known))

    def _emissions(self, symbols: Mapping[Symbolic, bool]) -> tuple[Emission, ...]:
        numbers = self._numbers
        every = numbers[EVERYTHING]
        found = [
            (number, subject, predicate, object, named)
            for (subject, predicate, object), named in symbols.items()
            for keys in (
                # A property without a name leads on to others, but is in no triple.
                every if isinstance(predicate, ox.NamedNode) else (),
                numbers.get((predicate, None), ()),
                () if isinstance(object, Part) else numbers.get((predicate, object), ()),
            )
            for number in keys
        ]
        self._held += len(found)
        if self._held > MOST_RULES:
            raise LimitExceeded(
                f"the schema makes more than {MOST_RULES:,} rules for the patterns of the queries "
                "(MOST_RULES): name the classes and predicates that patterns ask for, or give "
                "the run the part of the schema that the queries need"
            )
        return tuple(found)

    def _by_class(
        self,
        predicate: Term,
        typed: Part,
        known: tuple[Emission, ...],
        keyed: dict[tuple[Term, Term], tuple[Emission, ...]],
    ) -> None:
        """The rules of a predicate that gives one end the other end as a class."""
        named = (kind for name, kind in self._targets if name == TYPE and kind is not None)
        end = OBJECT if typed is SUBJECT else SUBJECT
        for kind in dict.fromkeys((*self._schema.superclasses, *named)):
            symbols = consequences(self._schema, (typed, TYPE, kind))
            # The class stands where the triple has it: what is known without it is left out.
            said = {(n, *(kind if s is end else s for s in symbols)) for n, *symbols, _ in known}
            emissions = tuple(e for e in self._emissions(symbols) if e[:4] not in said)
            if emissions:
                keyed[predicate, kind] = emissions

    def _chains(self) -> tuple[tuple[Term, ...], tuple[tuple[Term, Term, Term], ...]]:
        """The chains whose results a target, or another of them, can use; their properties."""
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
    """The pairs of some predicates, both ways."""
    found: dict[Term, tuple[dict[Term, list[Term]], dict[Term, list[Term]]]] = {}
    for subject, predicate, object in facts:
        if wanted(predicate):
            ahead, back = found.setdefault(predicate, ({}, {}))
            ahead.setdefault(subject, []).append(object)
            back.setdefault(object, []).append(subject)
    return found
