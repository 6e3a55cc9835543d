"""An indexed set of triples, for the graph of an event and for graphs of the KB.

A graph that was read from a file by the compiled readers is a `StoredGraph`; any other is a `Graph`
of terms.

Each access path is built on first use, so an event pays only for the look-ups of its patterns.
Invariant: the triples are distinct and never change; every look-up returns them in their
original order. Cost: building an access path is linear; a look-up is linear in its result,
except that predicates with few triples are scanned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from spaseq.rdf.event import Event, Fact, Term
from spaseq.rdf.native._terms import TripleTable

Pair: TypeAlias = tuple[Term, Term]

SCAN_MAX_TRIPLES = 6
"""Up to this many triples of a predicate are scanned, which is cheaper than hashing."""

_NO_PAIRS: tuple[Pair, ...] = ()
_NO_TERMS: tuple[Term, ...] = ()


class Graph:
    """An immutable set of triples."""

    __slots__ = ("_by_object", "_by_subject", "_nodes", "_objects", "_pairs", "_subjects", "facts")

    def __init__(self, facts: Sequence[Fact]):
        self.facts = facts
        self._pairs: dict[Term, list[Pair]] | None = None
        self._objects: dict[Term, dict[Term, list[Term]]] = {}
        self._subjects: dict[Term, dict[Term, list[Term]]] = {}
        self._by_subject: dict[Term, list[Fact]] | None = None
        self._by_object: dict[Term, list[Fact]] | None = None
        self._nodes: dict[Term, None] | None = None

    @property
    def predicates(self) -> dict[Term, list[Pair]]:
        """Every predicate with its (subject, object) pairs."""
        pairs = self._pairs
        if pairs is None:
            pairs = {}
            for subject, predicate, object in self.facts:
                if predicate in pairs:
                    pairs[predicate].append((subject, object))
                else:
                    pairs[predicate] = [(subject, object)]
            self._pairs = pairs
        return pairs

    @property
    def nodes(self) -> dict[Term, None]:
        """The subjects and objects, as the keys of a dict."""
        if self._nodes is None:
            self._nodes = {
                term: None for subject, _, object in self.facts for term in (subject, object)
            }
        return self._nodes

    def pairs(self, predicate: Term) -> Sequence[Pair]:
        """The (subject, object) pairs of a predicate."""
        return self.predicates.get(predicate, _NO_PAIRS)

    def objects(self, subject: Term | None, predicate: Term) -> Sequence[Term]:
        pairs = self.predicates.get(predicate, _NO_PAIRS)
        if len(pairs) <= SCAN_MAX_TRIPLES:
            return [object for other, object in pairs if other == subject]
        index = self._objects.get(predicate)
        if index is None:
            index = {}
            for other, object in pairs:
                index.setdefault(other, []).append(object)
            self._objects[predicate] = index
        return _NO_TERMS if subject is None else index.get(subject, _NO_TERMS)

    def subjects(self, predicate: Term, object: Term | None) -> Sequence[Term]:
        pairs = self.predicates.get(predicate, _NO_PAIRS)
        if len(pairs) <= SCAN_MAX_TRIPLES:
            return [subject for subject, other in pairs if other == object]
        index = self._subjects.get(predicate)
        if index is None:
            index = {}
            for subject, other in pairs:
                index.setdefault(other, []).append(subject)
            self._subjects[predicate] = index
        return _NO_TERMS if object is None else index.get(object, _NO_TERMS)

    def contains(self, subject: Term | None, predicate: Term, object: Term | None) -> bool:
        return object in self.objects(subject, predicate)

    def match(
        self, subject: Term | None, predicate: Term | None, object: Term | None
    ) -> Iterable[Fact]:
        """The triples that have the given terms (None: any)."""
        if predicate is not None:
            return self._of_predicate(subject, predicate, object)
        if subject is not None:
            if self._by_subject is None:
                self._by_subject = self._grouped(0)
            facts: Iterable[Fact] = self._by_subject.get(subject, ())
            return facts if object is None else [fact for fact in facts if fact[2] == object]
        if object is not None:
            if self._by_object is None:
                self._by_object = self._grouped(2)
            return self._by_object.get(object, ())
        return self.facts

    def _grouped(self, part: int) -> dict[Term, list[Fact]]:
        # Callers store only the complete index: threads that share a KB at worst build it twice.
        index: dict[Term, list[Fact]] = {}
        for fact in self.facts:
            index.setdefault(fact[part], []).append(fact)
        return index

    def _of_predicate(
        self, subject: Term | None, predicate: Term, object: Term | None
    ) -> Iterable[Fact]:
        if subject is not None:
            objects = self.objects(subject, predicate)
            return [(subject, predicate, o) for o in objects if object is None or o == object]
        if object is not None:
            return [(s, predicate, object) for s in self.subjects(predicate, object)]
        return [(s, predicate, o) for s, o in self.pairs(predicate)]


class StoredGraph(Graph):
    """A graph whose triples are a table of numbers; a look-up makes the terms that it returns."""

    __slots__ = ("table",)

    def __init__(self, table: TripleTable):
        super().__init__(table)
        self.table = table

    def __reduce__(self) -> tuple[type[StoredGraph], tuple[TripleTable]]:
        return StoredGraph, (self.table,)

    @property
    def predicates(self) -> dict[Term, list[Pair]]:
        """Every predicate with its (subject, object) pairs."""
        return {predicate: self.table.pairs(predicate) for predicate in self.table.predicates()}

    def pairs(self, predicate: Term) -> Sequence[Pair]:
        """The (subject, object) pairs of a predicate."""
        return self.table.pairs(predicate)

    def objects(self, subject: Term | None, predicate: Term) -> Sequence[Term]:
        return self.table.ends(predicate, True, subject)

    def subjects(self, predicate: Term, object: Term | None) -> Sequence[Term]:
        return self.table.ends(predicate, False, object)

    def contains(self, subject: Term | None, predicate: Term, object: Term | None) -> bool:
        if subject is None or object is None:
            return False
        return bool(self.table.match(subject, predicate, object))

    def match(
        self, subject: Term | None, predicate: Term | None, object: Term | None
    ) -> Iterable[Fact]:
        """The triples that have the given terms (None: any)."""
        return self.table.match(subject, predicate, object)


EMPTY = Graph(())

# The index of the last event: the matchers of an event run one after another and share it.
# The tuple is replaced as a whole, so threads at worst build an index twice.
_last: tuple[Sequence[Fact], Graph] = (EMPTY.facts, EMPTY)


def graph_of(event: Event) -> Graph:
    """The index of an event's facts."""
    global _last
    facts, graph = _last
    if facts is event.facts:
        return graph
    graph = Graph(event.facts)
    _last = (event.facts, graph)
    return graph
