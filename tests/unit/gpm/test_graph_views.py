"""Joins over summary graphs of large events, against nested loops over the facts.

`SPASEQ_EXAMPLES` is the number of cases of each shape (default 3).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence

import pyoxigraph as ox
import pytest

from spaseq.gpm.program import constant
from spaseq.gpm.python.row_operators import Row
from spaseq.parser import ast
from spaseq.rdf.event import Fact, Term
from tests.unit.gpm.encoded_events import EX, encoded, matchers

PREDICATES = tuple(ox.NamedNode(EX + name) for name in "pqr")
NAMES = "abcd"
EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "3"))
MOST = 1_000
"""Rows the model may carry from one triple to the next: patterns with more are left out."""


# ------------------------------------------------------------------ graphs


def node(number: int) -> ox.NamedNode:
    return ox.NamedNode(f"{EX}n{number}")


def links(shape: str, size: int, chance: random.Random) -> Iterator[tuple[int, int]]:
    """`size` pairs of nodes; there may be fewer where all pairs are taken."""
    few, many = size // 8 + 2, size // 2 + 2
    for number in range(size):
        match shape:
            case "hub":
                yield (0, number) if number % 2 else (number, 1)
            case "path":
                yield number, number + 1
            case "cycle":
                yield number, (number + 1) % (few + 3)
            case "star":
                yield number % few, chance.randrange(many)
            case "loops":
                yield number % many, chance.choice((number % many, 0))
            case _:
                yield chance.randrange(many), chance.randrange(many)


def event(shape: str, size: int, chance: random.Random) -> list[Fact]:
    """A graph of one shape, some of its objects numbers and some of its nodes predicates."""
    facts: dict[Fact, None] = {}
    for subject, value in links(shape, size, chance):
        end: Term = node(value) if chance.random() < 0.8 else ox.Literal(value % 7)
        if chance.random() < 0.03:
            end = chance.choice(PREDICATES)
        facts[node(subject), chance.choice(PREDICATES), end] = None
    return list(facts)


# ------------------------------------------------------------------ patterns


def pattern(facts: Sequence[Fact], chance: random.Random) -> tuple[ast.Triple, ...]:
    """Up to four triples; constants are those of facts, so that they are met."""

    def end(term: Term, share: float) -> ast.Term:
        if chance.random() >= share:
            return ast.Var(chance.choice(NAMES))
        if isinstance(term, ox.Literal):
            return ast.Literal(term.value, term.datatype.value)
        return ast.Iri(term.value)

    some = chance.choices(facts, k=chance.choice((1, 2, 2, 3, 3, 4)))
    return tuple(ast.Triple(end(s, 0.1), end(p, 0.85), end(o, 0.15)) for s, p, o in some)


def joined(triples: Sequence[ast.Triple], facts: Sequence[Fact]) -> list[dict[str, Term]] | None:
    """The solutions by nested loops; None where they are too many to be made."""
    rows: list[dict[str, Term]] = [{}]
    for triple in triples:
        ends = (triple.subject, triple.predicate, triple.object)
        rows = [new for row in rows for fact in facts for new in extended(row, ends, fact)]
        if len(rows) > MOST:
            return None
    return rows


def extended(row: dict[str, Term], ends: tuple, fact: Fact) -> Iterator[dict[str, Term]]:
    new = dict(row)
    for end, term in zip(ends, fact, strict=True):
        expected = new.setdefault(end.name, term) if isinstance(end, ast.Var) else constant(end)
        if expected != term:
            return
    yield new


def solutions(rows: Sequence[dict[str, Term]], columns: Sequence[str]) -> set[Row]:
    return {tuple(row[name] for name in columns) for row in rows}


# ------------------------------------------------------------------ joins


@pytest.mark.parametrize("shape", ["hub", "path", "cycle", "star", "loops", "random"])
@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_joins_give_what_nested_loops_give(shape: str, seed: int) -> None:
    """All patterns share one summary graph, which several events fill one after the other."""
    chance = random.Random(f"{shape} {seed}")
    events = [event(shape, size, chance) for size in (50, 3, 300, 0, 120)]
    basics = [pattern(events[2], chance) for _ in range(16)]
    native = matchers(*(ast.GroupGraphPattern(triples) for triples in basics))
    compared = 0
    for facts, given in zip(events, encoded(native, events), strict=True):
        for number, triples in enumerate(basics):
            expected = joined(triples, facts)
            if expected is None:
                continue
            columns = native.patterns[number].program.variables
            found = native.rows(given, number)[0]
            assert len(found) == len(set(found))
            assert set(found) == solutions(expected, columns)
            compared += bool(expected)
    assert compared >= 4


def test_an_event_may_have_facts_twice() -> None:
    facts = event("random", 60, random.Random(1))
    native = matchers("{ ?a :p ?b . ?b :q ?c }", "{ ?a ?b ?c }")
    once, twice = encoded(native, [facts, [*facts, *facts]])
    for number in (0, 1):
        expected = native.rows(once, number)[0]
        found = native.rows(twice, number)[0]
        assert len(found) == len(expected) > 0
        assert set(found) == set(expected)


def test_an_event_larger_than_all_before_it() -> None:
    native = matchers("{ ?a :p ?b . ?b :p ?c }", "{ ?a ?b ?c }")
    sizes = [2, 50, 5_000, 1]
    events = [[(node(n), PREDICATES[0], node(n + 1)) for n in range(size)] for size in sizes]
    for size, given in zip(sizes, encoded(native, events), strict=True):
        assert len(native.rows(given, 0)[0]) == size - 1
        assert len(native.rows(given, 1)[0]) == size


def test_terms_whose_numbers_share_a_list_are_told_apart() -> None:
    """16 lists for 16 triples: some ends must meet in one list."""
    facts = [(node(n), PREDICATES[0], node(n + 100)) for n in range(16)]
    facts += [(node(n + 100), PREDICATES[1], ox.Literal(n)) for n in range(16)]
    native = matchers("{ ?a :p ?b . ?b :q ?c }", "{ ?b :q ?c . ?a :p ?b }")
    (given,) = encoded(native, [facts])
    expected = {(node(n), node(n + 100), ox.Literal(n)) for n in range(16)}
    assert set(native.rows(given, 0)[0]) == set(native.rows(given, 1)[0]) == expected


# ------------------------------------------------------------------ the order of steps


def skewed(number: int, chance: random.Random) -> list[Fact]:
    """Many :p, few :q and hardly any :r, which no guess made beforehand expects."""
    facts = [(node(chance.randrange(30)), PREDICATES[0], node(n)) for n in range(60)]
    facts += [(node(n), PREDICATES[1], node(chance.randrange(30))) for n in range(4)]
    if number % 3 == 0:
        facts.append((node(chance.randrange(30)), PREDICATES[2], node(chance.randrange(60))))
    return facts


@pytest.mark.parametrize("seed", range(3))
def test_an_order_that_follows_what_was_observed_changes_no_result(seed: int) -> None:
    chance = random.Random(seed)
    events = [skewed(number, chance) for number in range(700)]
    texts = (
        "{ ?a :p ?b . ?a :q ?c . ?d :r ?b }",
        "{ ?a :p ?b . ?b :p ?c . ?d :r ?b . ?a :q ?d }",
        "{ ?a :p ?b OPTIONAL { ?b :p ?c . ?d :r ?c FILTER(?d != ?a) } }",
        "{ ?a :q ?b FILTER EXISTS { ?a :p ?c . ?c :p ?d . ?e :r ?d } }",
    )
    native = matchers(*texts)
    first = [tuple(native.observed(number).steps) for number in range(len(texts))]
    for facts, given in zip(events, encoded(native, events), strict=True):
        fresh = matchers(*texts)
        (alone,) = encoded(fresh, [facts])
        for number in range(len(texts)):
            assert set(native.rows(given, number)[0]) == set(fresh.rows(alone, number)[0])
    last = [tuple(native.observed(number).steps) for number in range(len(texts))]
    assert [sorted(steps) for steps in last] == [sorted(steps) for steps in first]
    assert sum(one != other for one, other in zip(first, last, strict=True)) >= 2
