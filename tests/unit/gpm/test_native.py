"""Operators over many rows: hash joins, tables, and filters shared with Python."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyoxigraph as ox
import pytest

from spaseq.gpm.matchers import Matchers
from spaseq.gpm.pattern import compile_pattern
from spaseq.gpm.plan_text import plan_lines
from spaseq.gpm.program import compile_gpm
from spaseq.kb.snapshot import open_kb
from spaseq.parser import parse_pattern
from spaseq.rdf.event import NUMBER, Event, Fact, Timestamp
from tests.unit.gpm.encoded_events import EX, batch_of, encoded, matchers
from tests.unit.gpm.whole_pattern import reference_rows

PREDICATES = tuple(ox.NamedNode(EX + name) for name in "pqr")
MANY = 40
"""Nodes of an event: tables of so many rows are joined by hash."""


def node(number: int) -> ox.NamedNode:
    return ox.NamedNode(f"{EX}n{number}")


def event(seed: int, size: int = 150) -> list[Fact]:
    """Links between nodes, and numbers of them."""
    chance = random.Random(seed)
    facts: dict[Fact, None] = {}
    for _ in range(size):
        value = chance.choice((node(chance.randrange(MANY)), ox.Literal(chance.randrange(9))))
        facts[node(chance.randrange(MANY)), chance.choice(PREDICATES), value] = None
    return list(facts)


def values(names: str, count: int, unbound: int) -> str:
    """VALUES of `count` rows, every `unbound`th of which lacks its last cell."""
    rows = []
    for number in range(count):
        cells = [f":n{(number * 7 + place) % MANY}" for place in range(len(names.split()))]
        if unbound and number % unbound == 0:
            cells[-1] = "UNDEF"
        rows.append(f"({' '.join(cells)})")
    return f"VALUES ({names}) {{ {' '.join(rows)} }}"


KB = {
    EX + "k": [(node(n), PREDICATES[0], node((n * 3) % MANY)) for n in range(MANY)],
    EX + "l": [(node(n), PREDICATES[1], ox.Literal(n % 9)) for n in range(0, MANY, 2)],
}


def same_as_pyoxigraph(text: str) -> None:
    kb = {ox.NamedNode(name): tuple(facts) for name, facts in KB.items()}
    found = matchers(text, kb=open_kb(KB))
    program = found.patterns[0].program
    assert found.patterns[0].native is not None
    events = [event(seed, size) for seed, size in ((1, 150), (2, 4), (3, 60), (4, 300))]
    total = 0
    for facts, given in zip(events, encoded(found, events), strict=True):
        rows = found.rows(given, 0)[0]
        plain = Event("urn:s", Timestamp(1, NUMBER, ox.Literal(1)), 0, facts)
        assert len(rows) == len(set(rows))
        assert set(rows) == reference_rows(program, plain, kb)
        total = max(total, len(rows))
    assert total > 8


UNION = "{ { ?a :p ?b } UNION { ?b :q ?a } }"
PARTLY = "{ { ?a :p ?b } UNION { ?c :q ?b } UNION { ?a :r ?c } }"


@pytest.mark.parametrize(
    "text",
    [
        f"{{ {UNION} {{ ?b :r ?c }} UNION {{ ?c :p ?b }} }}",
        f"{{ {UNION} {{ ?a :p ?b }} UNION {{ ?a :q ?b }} }}",
        f"{{ {UNION} {PARTLY} }}",
        f"{{ {PARTLY} {{ ?a :p ?c }} UNION {{ ?a :q ?b }} }}",
        f"{{ {UNION} {{ ?c :q 1 }} UNION {{ ?c :q 2 }} }}",
        f"{{ ?b :q ?d . {UNION} ?a :r ?e }}",
    ],
)
def test_unions_joined(text: str) -> None:
    same_as_pyoxigraph(text)


@pytest.mark.parametrize(
    "text",
    [
        "{ ?a :p ?b MINUS { ?a :q ?c } }",
        "{ ?a :p ?b MINUS { ?a :p ?c . ?c :q ?b } }",
        "{ ?a :p ?b MINUS { { ?a :q ?b } UNION { ?b :r ?a } } }",
        f"{{ {PARTLY} MINUS {{ ?a :p ?b }} }}",
        "{ ?a :p ?b MINUS { { ?a :q ?b } UNION { ?c :q ?a } UNION { ?c :q ?d } } }",
        f"{{ ?a :p ?b MINUS {{ {values('?a', 20, 0)} }} }}",
        f"{{ ?a :p ?b MINUS {{ {values('?a ?b', 30, 3)} }} }}",
        "{ ?a :p ?b MINUS { GRAPH :l { ?a :q ?c } FILTER(?c > 3) } }",
    ],
)
def test_minus(text: str) -> None:
    same_as_pyoxigraph(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{{ ?a :p ?b OPTIONAL {UNION} }}",
        f"{{ ?a :p ?b OPTIONAL {{ {UNION} FILTER(?a != :n1) }} }}",
        f"{{ ?a :p ?c OPTIONAL {{ {UNION} FILTER(?c != ?b) }} }}",
        "{ ?a :p ?b OPTIONAL { { ?b :q ?c } OPTIONAL { ?c :r ?d } } }",
        "{ ?a :p ?b OPTIONAL { ?b :q ?c } OPTIONAL { { ?c :r ?d } } }",
        f"{{ {PARTLY} OPTIONAL {{ {{ ?a :p ?b }} }} }}",
        f"{{ ?a :p ?b OPTIONAL {{ {values('?a ?c', 30, 4)} }} }}",
        "{ ?a :p ?b OPTIONAL { GRAPH :k { ?a :p ?c } } }",
    ],
)
def test_optional_parts_that_are_tables(text: str) -> None:
    same_as_pyoxigraph(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{{ ?a :p ?b {values('?a', 30, 0)} }}",
        f"{{ ?a :p ?b {values('?a ?b', 40, 2)} }}",
        f"{{ {values('?a ?b', 40, 5)} ?a :p ?b }}",
        f"{{ {values('?a ?c', 30, 3)} {values('?b ?c', 30, 2)} ?a :p ?d }}",
        f"{{ {PARTLY} {values('?a ?c', 30, 7)} }}",
        "{ ?a :p ?b GRAPH :k { ?b :p ?c } }",
        "{ ?a :p ?b GRAPH ?g { ?b ?c ?d } }",
        "{ GRAPH :k { ?a :p ?b } GRAPH :l { ?b :q ?c } ?b :p ?d }",
        f"{{ {PARTLY} GRAPH :k {{ ?a :p ?c }} }}",
        "{ ?a :p ?b FILTER NOT EXISTS { GRAPH :l { ?a :q ?c } } }",
        f"{{ ?a :p ?b FILTER EXISTS {{ ?b :q ?c {values('?c', 9, 0)} }} }}",
    ],
)
def test_tables_that_no_event_changes(text: str) -> None:
    same_as_pyoxigraph(text)


@pytest.mark.parametrize(
    "text",
    [
        "{ ?a :p|:q ?b }",
        "{ ?a :p|^:q ?b . ?b :r ?c }",
        "{ ?a (:p|:q)/(:r|^:p) ?b }",
        "{ ?a ^(:p|(:q/:r)) ?b }",
        "{ ?a (:p/(:q|^:r))|:r ?b . ?b :p ?c }",
        "{ ?a :p ?b . ?c :q ?d . ?b (:p|:r)/:q ?c }",
        "{ ?a :p ?b OPTIONAL { ?b (:q|:r)/:p ?c } }",
        "{ ?a :p ?b OPTIONAL { ?b :q|:r ?c FILTER(?c != ?a) } }",
        "{ ?a :p ?b MINUS { ?b :q|^:r ?a } }",
        "{ ?a :p ?b FILTER NOT EXISTS { ?b (:q|:r)|^:q ?a } }",
        "{ { ?a :p|:q ?b } UNION { ?b :r ?a } ?b :p|:r ?c }",
        "{ ?a :p|:p ?b }",
        "{ ?a :p|^:p ?b . ?c :q|:r ?a }",
        "{ :n1 :p|:q|:r ?b . ?c ^:p|:r ?b }",
        f"{{ ?a :p|:q ?b {values('?a', 30, 0)} }}",
        "{ ?a :p|:q ?b GRAPH :k { ?b :p ?c } }",
    ],
)
def test_alternatives(text: str) -> None:
    same_as_pyoxigraph(text)


def test_alternatives_are_followed_from_the_rows_found_before() -> None:
    """In the order that joins them: triples that share nothing are not joined with each other."""
    program = compile_gpm(
        parse_pattern("{ ?a :p ?b . ?c :q ?d . ?b :r|^:r ?c }", {"": EX}), None, None
    )
    lines = plan_lines(compile_pattern(program))
    assert [line.split("  (")[0].replace(EX, "") for line in lines] == [
        "match ?a <p> ?b",
        "alternatives",
        "  alternative",
        "    match ?b <r> ?c",
        "  alternative",
        "    match ?c <r> ?b",
        "match ?c <q> ?d",
    ]


def test_paths_of_too_many_alternatives_are_searched() -> None:
    def operator(path: str) -> str:
        pattern = compile_gpm(parse_pattern(f"{{ ?a {path} ?b }}", {"": EX}), None, None)
        native = compile_pattern(pattern).native
        assert native is not None
        return type(native.root).__name__

    both = ["(:p|:q)"]
    assert operator(f"({'/'.join(both * 5)})|:r") == "Alternatives"
    assert operator(f"({'/'.join(both * 6)})|:r") == "Reach"
    assert operator("/".join(both * 20)) == "Alternatives"


def test_one_table_serves_joins_on_other_keys() -> None:
    """Two patterns with the same VALUES: each joins it by what its own rows bind."""
    table = values("?a ?b", 30, 0)
    found = matchers(f"{{ ?a :p ?x {table} }}", f"{{ ?x :q ?b {table} }}")
    for number, name in ((0, "p"), (1, "q")):
        facts = event(4, 300)
        (given,) = encoded(found, [facts])
        plain = Event("urn:s", Timestamp(1, NUMBER, ox.Literal(1)), 0, facts)
        rows = set(found.rows(given, number)[0])
        assert rows == reference_rows(found.patterns[number].program, plain, {})
        assert rows, name


# ------------------------------------------------------------------ local filters

CONDITIONS = {
    "?v > 2": lambda v: v > 2,
    "?v < 8": lambda v: v < 8,
    'REPLACE(STR(?v), "4|^$", "") != ""': lambda v: v != 4,
    "?v != 5": lambda v: v != 5,
}


def filtered(filters: Sequence[str], native: int) -> Matchers:
    found = matchers("{ ?x :p ?v }", filters=filters)
    pattern = found.patterns[0].native
    assert pattern is not None
    assert len(pattern.filters) == native
    return found


@pytest.mark.parametrize(
    ("order", "native"),
    [((0, 1, 3), 3), ((0, 1, 2, 3), 2), ((2, 0, 1), 0), ((0, 2), 1), ((), 0)],
)
def test_filters_are_native_up_to_the_first_that_is_not(order: Sequence[int], native: int) -> None:
    texts = [list(CONDITIONS)[place] for place in order]
    found = filtered(texts, native)
    facts = [(node(n), PREDICATES[0], ox.Literal(n)) for n in range(12)]
    untrue = [0] * len(texts)
    passed = []
    for n in range(12):
        failed = [i for i, text in enumerate(texts) if not CONDITIONS[text](n)]
        if failed:
            untrue[failed[0]] += 1
        else:
            passed.append((ox.Literal(n), node(n)))
    for times, given in enumerate(encoded(found, [facts, facts]), 1):
        rows, kept = found.rows(given, 0)
        assert len(rows) == 12
        assert kept == passed
        assert list(found.untrue(0)) == [times * count for count in untrue]
    observed = found.observed(0)
    assert (observed.events, observed.rows, observed.passed) == (2, 24, 2 * len(passed))


def test_a_filter_that_fails_is_not_true() -> None:
    found = matchers("{ ?x :p ?v }", filters=["?v + 1 > 2", "BOUND(?x)"])
    terms = [ox.Literal("a"), node(1), ox.Literal(5), ox.Literal(1)]
    (given,) = encoded(found, [[(node(0), PREDICATES[0], term) for term in terms]])
    assert found.rows(given, 0)[1] == [(ox.Literal(5), node(0))]
    assert list(found.untrue(0)) == [3, 0]


# ------------------------------------------------------------------ whole batches


def test_a_batch_is_counted_as_its_events_are_matched() -> None:
    texts = ("{ ?a :p ?b . ?b :q ?c }", f"{{ ?a :p ?b OPTIONAL {UNION} }}", "{ ?a ?b ?c }")
    events = [event(seed, seed * 3) for seed in range(30)]
    found, other = (matchers(*texts, filters=["?b != :n1"]) for _ in range(2))
    batch = batch_of(found, events)
    for number in range(len(texts)):
        kept = sum(len(other.rows(e, number)[1]) for e in encoded(other, events))
        assert found.count(batch, number) == kept > 0


def test_a_batch_may_be_counted_between_two_events() -> None:
    found = matchers("{ ?a :p ?b }")
    one, other = encoded(found, [event(1), event(2)])
    rows = found.rows(one, 0)[0]
    assert found.count(batch_of(found, [event(3)]), 0) != len(rows)
    assert found.rows(one, 0)[0] == rows
    assert found.rows(other, 0)[0] != rows


def test_python_patterns_are_not_counted() -> None:
    found = matchers("{ ?a :p ?b { SELECT ?c { ?c :p ?d } LIMIT 1 } }")
    with pytest.raises(ValueError, match="operators in Python"):
        found.count(batch_of(found, [event(1)]), 0)


def test_a_path_of_steps_is_the_triples_it_stands_for() -> None:
    """Each with a text of its own, the same predicate twice included."""
    program = compile_gpm(parse_pattern("{ ?x :p/:p/^:q ?y }", {"": "http://e/"}), None, None)
    pattern = compile_pattern(program)
    assert pattern.native is not None
    shown = [line.split("  ")[0] for line in plan_lines(pattern)]
    assert len(set(shown)) == 3
    assert sum("<http://e/p>" in line for line in shown) == 2
