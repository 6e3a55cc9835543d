"""What the engine's cost may grow with, by counters and never by the clock."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator

import pyoxigraph as ox
import pytest

import spaseq
from spaseq.nfa import tecs
from spaseq.nfa.automaton import Edge
from spaseq.nfa.tecs import Chain, Node, Step

EX = "http://example.org/"
S = EX + "s"
GPMS = {
    "A": "{ ?k :a ?x }",
    "B": "{ ?k :b ?y }",
    "C": "{ ?k :c ?z }",
    "N": "{ ?k :n [] }",
}
APART = {name: body.replace("?k", "[]") for name, body in GPMS.items()}


def query(seq: str, gpms: dict[str, str], window: str = "20 SECONDS", clauses: str = "") -> str:
    defines = " ".join(
        f"DEFINE GPM {name} ON s {gpms[name]}" for name in gpms if re.search(rf"\b{name}\b", seq)
    )
    return (
        f"PREFIX : <{EX}> ASK WITHIN {window} {clauses} FROM STREAM s :s "
        f"WHERE {{ SEQ({seq}) {defines} }}"
    )


def event(letter: str, key: int = 0, value: int = 0) -> list[ox.Triple]:
    subject = ox.NamedNode(f"{EX}k{key}")
    return [ox.Triple(subject, ox.NamedNode(EX + letter), ox.Literal(value))]


def fed(text: str | list[str], letters: str, keys: int = 1) -> spaseq.Run:
    """A run after one event a second, its subjects and values changing all the time."""
    run = spaseq.compile(text).start()
    for time, letter in enumerate(letters):
        run.push(S, time, event(letter, time % keys, time))
    return run


def visited(run: spaseq.Run) -> int:
    """Groups that rows were compared with."""
    return sum(state.visited for query in run.queries for state in query.snapshot().places)


def places(text: str) -> int:
    return len(spaseq.compile(text).queries[0].automaton.places)


# ------------------------------------------------------------------ groups


@pytest.mark.parametrize("seq", ["A : B : C", "A ; B+ : C", "A : (B | C)+ : N", "A : !N : C"])
def test_without_correlation_the_groups_do_not_grow_with_the_window(seq: str) -> None:
    groups = {
        window: fed(query(seq, APART, window), "ab" * 300).stats["groups"]
        for window in ("10 SECONDS", "100 SECONDS", "1 HOUR")
    }
    assert len(set(groups.values())) == 1
    assert groups["1 HOUR"] <= places(query(seq, APART))


def test_without_correlation_an_event_visits_one_group_per_place() -> None:
    text = query("A : B : C", APART, "1 HOUR")
    short, long = (visited(fed(text, "ab" * n)) / n for n in (50, 500))
    assert long <= short + 0.1 <= 3


def test_an_index_finds_one_group_among_many() -> None:
    text = query("A : B : C", GPMS, "1 HOUR")
    few, many = (fed(text, "aab" * 300, keys) for keys in (7, 301))
    assert many.stats["groups"] > 20 * few.stats["groups"] / 2
    assert visited(many) <= visited(few)


def test_a_comparison_across_steps_visits_the_groups_it_may_hit_as_explain_says() -> None:
    compared = {**APART, "B": "{ [] :b ?y FILTER(?y < ?x) }"}
    assert "logarithmic" in spaseq.compile(query("A : B", compared, "1 HOUR")).explain()
    run = fed(query("A : B", compared, "1 HOUR"), "a" * 100 + "b" * 10)
    assert visited(run) == 100 + 0


def test_a_filter_across_steps_visits_every_group_as_explain_says() -> None:
    compared = {**APART, "B": "{ [] :b ?y FILTER(?y < ?x + 0) }"}
    program = spaseq.compile(query("A : B", compared, "1 HOUR"))
    assert "linear in the groups that wait in place 2" in program.explain()
    run = fed(query("A : B", compared, "1 HOUR"), "a" * 100 + "b" * 10)
    assert visited(run) == 100 + 10 * 100


def test_bounded_iterations_cost_places_not_copies() -> None:
    assert places(query("A : B{2}", APART)) == places(query("A : B{1000,100000}", APART))


def test_the_automaton_is_linear_in_the_sequence() -> None:
    sizes = [places(query(" ; ".join("AB" * n), APART)) for n in (5, 10, 20)]
    assert sizes == [10, 20, 40]


# ------------------------------------------------------------------ evaluations


def test_a_graph_pattern_is_evaluated_once_an_event_whatever_waits_for_it() -> None:
    texts = [query(seq, GPMS) for seq in ("A : B", "A ; B", "B , A", "A ; B+ ; A")]
    run = fed(texts, "aabb" * 50)
    assert run.stats["evaluated_gpms"] == 200 * 2
    assert run.stats["groups"] > 0


# ------------------------------------------------------------------ memory

ENDLESS = [
    query("A : B : C", APART),
    query("A ; !N ; B", GPMS),
    query("A : B+", {**GPMS, "B": "{ ?k :b ?y FILTER(?y > PREV(?y, 0)) }"}, "5 SECONDS"),
    query("A AND B", GPMS),
    query("N? ; A ; C", GPMS),
    query("A , B", GPMS, "1 MINUTE", "PARTITION BY ?k"),
    query("A ; !B", GPMS),
    query("A : C", GPMS, "30 EVENTS"),
]


def test_what_is_kept_is_bounded_by_the_window() -> None:
    """20,000 events: what is kept after the first 2,500 is what is kept ever after."""
    run = spaseq.compile(ENDLESS).start()
    kept = []
    for time in range(20_000):
        run.push(S, time, event("abanca"[time % 6], time % 5, time))
        if time % 2_500 == 2_499:
            garbage = run.stats
            for query_run in run.queries:
                query_run.snapshot().sweep()
            stats = run.stats
            kept.append((stats["groups"], stats["nodes"], stats["buffered_rows"]))
            # Between two sweeps lie 1,024 instants at most.
            assert garbage["groups"] <= stats["groups"] + 300 * len(ENDLESS)
            assert garbage["buffered_rows"] <= stats["buffered_rows"] + 1100 * len(ENDLESS)
    for sizes in zip(*kept, strict=True):
        # The longest window holds 60 events.
        assert max(sizes) <= 60 * len(ENDLESS)
        assert max(sizes) - min(sizes) <= 3 * len(ENDLESS)
    for query_run in run.queries:
        automaton = query_run.snapshot()
        assert len(automaton.touched) <= 10
        assert len(automaton.waiting) <= 60
        assert sum(map(len, automaton.contiguity.instants.values())) <= 60
        assert not automaton.skipped


def test_strictly_waiting_partial_matches_are_those_of_the_last_instant() -> None:
    run = fed(query("A , B", APART, "1 DAY"), "a" * 2000)
    assert run.stats["nodes"] <= 2


# ------------------------------------------------------------------ enumeration


def ladder(depth: int, width: int) -> Node:
    """`width` to the power of `depth` matches in `depth` times `width` nodes."""
    before: Chain | None = None
    for level in range(depth):
        members = [Node(Step(Edge(n), ()), before, level, 0) for n in range(width)]
        before = None
        for node in members:
            before = Chain(node, before)
    return Node(Step(Edge(0), ()), before, depth, 0)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """The nodes that enumeration reads."""
    seen: list[Node] = []
    plain = tecs.nodes

    def counted(chain: Chain | None, bound: int) -> Iterator[Node]:
        for node in plain(chain, bound):
            seen.append(node)
            yield node

    monkeypatch.setattr(tecs, "nodes", counted)
    return seen


def test_enumeration_reads_no_more_than_it_gives(reads: list[Node]) -> None:
    for depth, width in ((3, 4), (6, 3), (12, 2)):
        reads.clear()
        found = list(tecs.paths(ladder(depth, width), 0))
        assert len(found) == width**depth
        assert len(reads) <= sum(len(steps) for _, steps in found)


def test_the_first_match_does_not_wait_for_the_others(reads: list[Node]) -> None:
    found = tecs.paths(ladder(40, 2), 0)
    _, steps = next(found)
    assert len(steps) == 41
    assert len(reads) <= 2 * 40


def test_what_has_left_the_window_is_not_read(reads: list[Node]) -> None:
    old = [Node(Step(Edge(0), ()), None, start, start) for start in range(1000)]
    chain: Chain | None = None
    for node in old:
        chain = Chain(node, chain)
    end = Node(Step(Edge(1), ()), chain, 1000, 999)
    assert {start for start, _ in tecs.paths(end, 998)} == {999, 998}
    assert len(reads) == 2


def test_strict_contiguity_reads_the_last_instant_of_a_partition_only(reads: list[Node]) -> None:
    run = fed(query("A , B", GPMS, "1 DAY", "PARTITION BY ?k"), "a" * 2000, keys=2)
    reads.clear()
    assert len(run.push(S, 2000, event("b", 0))) == 1
    assert len(reads) <= 6


def test_iterations_keep_no_more_than_the_window() -> None:
    """What a run holds under `B+` follows the window, not the stream."""
    run = spaseq.compile(
        "PREFIX : <http://example.org/> SELECT ?x WITHIN 10 SECONDS FROM STREAM s :s WHERE { "
        "SEQ(A ; B+) DEFINE GPM A ON s { [] :a ?x } DEFINE GPM B ON s { [] :b ?y } }"
    ).start()

    def alive() -> int:
        gc.collect()
        return sum(isinstance(thing, Node) for thing in gc.get_objects())

    sizes, before = [], alive()
    for time in range(6000):
        predicate = ox.NamedNode("http://example.org/" + "ab"[time % 2])
        fact = (ox.NamedNode("http://example.org/x"), predicate, ox.Literal(time))
        run.push("http://example.org/s", time, [fact])
        if time % 2000 == 1999:
            sizes.append(alive() - before)
    assert max(sizes) < 2 * 1024 + 100
