"""Events pushed one by one: the push batch of the core has the results of any other feed.

`SPASEQ_EXAMPLES` is the number of cases of each sort (default 300).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib
from core_runs import knowledge
from engine_runs import EX, R, S, program, push, triples
from strategies import Case, plain_case, random_case

import spaseq
from spaseq.errors import EventError, LimitExceeded, QueryError, RunFailed
from spaseq.rdf.event import Event
from spaseq.results import Match

EXAMPLES = int(os.environ.get("SPASEQ_EXAMPLES", "300"))


class Straight:
    """How many events of a run go straight to the core, from now on: its `len`."""

    def __init__(self, run: spaseq.Run):
        self._run = run
        self._long = 0
        self._before = run.stats["events"]
        self._process = run._process
        run._process = self._counted  # type: ignore[method-assign]

    def _counted(self, event: Event, found: list[Match]) -> None:
        self._long += 1
        self._process(event, found)

    def __len__(self) -> int:
        return self._run.stats["events"] - self._before - self._long


def the_long_way(run: spaseq.Run) -> spaseq.Run:
    """The run, none of whose events goes straight to the core."""
    run._open_push_batch = lambda stream: None  # type: ignore[method-assign]
    return run


def compared(compiled: spaseq.Program, case: Case, seed: int) -> int:
    """Push a case's events in both ways, with looks at the state; how many went straight."""
    chance, kb = random.Random(seed), knowledge(case)
    ours, theirs = compiled.start(kb=kb), the_long_way(compiled.start(kb=kb))
    taken, before = Straight(ours), 0
    for event in case.merged:
        graph = [ox.Triple(*fact) for fact in event.facts]
        given = event.stream, event.time, graph, event.name
        assert texts(ours.push(*given)) == texts(theirs.push(*given)), case.query
        look = chance.random()
        if look < 0.1:
            assert ours.stats == theirs.stats, case.query
        elif look < 0.2:  # both, for the counters of places begin anew then
            before += len(taken)
            ours = compiled.resume(ours.save(), kb=kb)
            theirs = the_long_way(compiled.resume(theirs.save(), kb=kb))
            taken = Straight(ours)
        elif look < 0.3:
            assert texts(ours.advance(event.time)) == texts(theirs.advance(event.time))
    assert texts(ours.finish()) == texts(theirs.finish()), case.query
    assert ours.why_not() == theirs.why_not()
    return before + len(taken)


def texts(matches: list[Match]) -> list[str]:
    return [match.to_json() for match in matches]


EXAMPLE = "http://example.org/"
LINES = (
    "<{k}> <{a}> <{b}> .",
    '<{k}> <{a}> "x\\n\\u00e9"@EN .',
    '<{k}> <{a}> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    '<{k}> <{a}> "01.0"^^<http://www.w3.org/2001/XMLSchema#decimal> .',
    '<{k}> <{a}> "s"^^<http://www.w3.org/2001/XMLSchema#string> .',
    '<{k}> <{a}> "\\"^^<x>\\"é😀" .',
    "<{k}> <{b}> <{a}> .",
    "_:x <{b}> _:y .",
    "_:y <{a}> _:x .",
    "<{k}> <{a}> _:z .",
    "<{k}> <{a}> <urn:é> . # a comment",
    "",
)


@pytest.mark.parametrize("form", ["triples", "N-Triples", "text", "N-Quads", "CRLF", "rdflib"])
def test_every_form_of_a_graph_has_the_same_matches(form: str) -> None:
    chance = random.Random(form)
    compiled = program(
        seq="SEQ(A ; B)",
        gpms="DEFINE GPM A ON s { ?k :a ?x } DEFINE GPM B ON s { ?k ?p ?x . ?x :a ?y }",
    )
    ours, theirs = compiled.start(), the_long_way(compiled.start())
    taken = Straight(ours)
    for time in range(300):
        lines = chance.sample(LINES, chance.randrange(len(LINES)))
        text = "".join(
            line.format(k=EXAMPLE + "k", a=EX + "a", b=EX + "b") + "\n" for line in lines
        )
        graph = form_of(text, form)
        expected = texts(theirs.push(S, time, graph))
        assert texts(ours.push(S, time, graph)) == expected
    assert texts(ours.finish()) == texts(theirs.finish())
    assert ours.stats == theirs.stats
    assert len(taken) > 280


def form_of(text: str, form: str) -> Any:
    if form == "triples":
        return list(ox.parse(text, format=ox.RdfFormat.N_TRIPLES))
    if form == "rdflib":
        graph = rdflib.Graph()
        for quad in ox.parse(text, format=ox.RdfFormat.N_TRIPLES):
            graph.add(tuple(map(rdflib_term, quad.triple)))
        return graph
    if form == "N-Quads":
        text = text.replace("> .", f"> <{EX}g> .")
    if form == "CRLF":
        text = text.replace("\n", "\r\n")
    return text if form == "text" else text.encode()


def rdflib_term(term: Any) -> Any:
    if isinstance(term, ox.NamedNode):
        return rdflib.URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return rdflib.BNode(term.value)
    if term.language:
        return rdflib.Literal(term.value, lang=term.language)
    datatype = rdflib.URIRef(term.datatype.value)
    return rdflib.Literal(term.value, datatype=datatype, normalize=False)


@pytest.mark.parametrize(
    "graph",
    [
        b"<k> <a> <b> .",
        b"<urn:a> <urn:p> <urn:b>",
        b"MESSAGE\n",
        b'<urn:a> <urn:p> "\xff" .',
        "<urn:a> <urn:p> '\ud800' .",
        [(rdflib.Literal("s"), rdflib.RDF.type, rdflib.RDF.type)],
        [(rdflib.URIRef("not an IRI"), rdflib.RDF.type, rdflib.RDF.type)],
        [(rdflib.RDF.type, rdflib.RDF.type, rdflib.Literal("x", datatype=rdflib.URIRef("a b")))],
        [(rdflib.RDF.type, rdflib.BNode(), rdflib.RDF.type)],
    ],
)
def test_what_is_refused_of_other_forms(graph: Any) -> None:
    if isinstance(graph, list):
        given, graph = graph, rdflib.Graph()
        for triple in given:
            graph.store.add(triple, graph)
    ours, theirs = program().start(), the_long_way(program().start())
    for run in (ours, theirs):
        push(run, 1, "k a 1")
    with pytest.raises(EventError) as expected:
        theirs.push(S, 2, graph)
    with pytest.raises(EventError) as found:
        ours.push(S, 2, graph)
    assert str(found.value) == str(expected.value)
    assert push(ours, 3, "k b 2") == push(theirs, 3, "k b 2") == ["A@1 B@3"]


@pytest.mark.parametrize("first", range(0, EXAMPLES, 150))
@pytest.mark.parametrize("draw", [plain_case, random_case])
def test_both_ways_are_the_same(draw: Callable[[int], Case], first: int) -> None:
    went = 0
    for seed in range(first, first + 150):
        case = draw(seed)
        try:
            compiled = spaseq.compile(case.query)
        except QueryError:
            continue
        native = compiled.start(kb=knowledge(case)).queries[0].native
        if len(compiled.streams) == 1 and native is not None and native.matches is not None:
            went += compared(compiled, case, seed)
    assert went > 10


def test_many_events_and_their_matches() -> None:
    run = program().start()
    taken = Straight(run)
    found = [match for n in range(2000) for match in push(run, n, f"k {'ab'[n % 2]} {n}")]
    assert found == [f"A@{n} B@{n + 1}" for n in range(0, 2000, 2)]
    assert len(taken) > 1980
    assert (run.stats["events"], run.stats["triples"], run.stats["matches"]) == (2000, 2000, 1000)


def test_what_is_refused_has_changed_nothing() -> None:
    run = program().start()
    taken = Straight(run)
    for time in range(5):
        push(run, time, "k a 1")
    refused: list[tuple[Any, ...]] = [
        (S, 3, []),
        (R, 9, []),
        (S, "later", []),
        (S, datetime(2026, 1, 1, tzinfo=UTC), []),
        (S, 2**70, []),
        (S, 9, 7),
        (S, 9, [*triples("k b 1"), "no triple"]),
        (S, 9, b"<no n-triples"),
        (S, 9, triples("k b 1"), "no IRI"),
    ]
    for event in refused:
        with pytest.raises(EventError):
            run.push(*event)
    assert run.stats["events"] == 5
    assert push(run, 9, "k b 1") == [f"A@{time} B@9" for time in range(5)]
    assert len(taken) >= 4
    assert run.stats["triples"] == 6


def test_one_timestamp_has_many_instants() -> None:
    run = program("SEQ(A , B)").start()
    taken = Straight(run)
    assert [push(run, 1, f"k {letter} 1") for letter in "xaabb"] == [[], [], [], ["A@1 B@1"], []]
    assert len(taken) == 4
    (match,) = [m for letter in "ab" for m in run.push(S, 2, triples(f"k {letter} 1"))]
    assert [event.ordinal for event in match.events] == [0, 1]


@pytest.mark.parametrize(
    "times",
    [
        [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=n) for n in range(4)],
        [0, 1, 2, 3],
        [-(2**43), -1, 0, 9_223_372_036_854],
        [0.25, 0.5, 1.0, 1e3],
        [Decimal("0.1"), Decimal("0.10"), Decimal("2"), 3],
        [False + 1, 2.0, 3, ox.Literal("4", datatype=ox.NamedNode(ox.Literal(1).datatype.value))],
    ],
)
def test_times_are_bound_as_they_were_given(times: list[Any]) -> None:
    gpms = "DEFINE GPM A ON s AT ?t { ?k :a ?x }"
    runs = [program("SEQ(A)", gpms, clauses="WITHIN UNBOUNDED").start() for _ in range(2)]
    the_long_way(runs[1])
    taken = Straight(runs[0])
    for time in times:
        (ours,), (theirs,) = (run.push(S, time, triples("k a 1")) for run in runs)
        assert ours.to_json() == theirs.to_json()
        assert ours.events[0].time.term == theirs.events[0].time.term
    assert len(taken) >= 2


def test_statements_are_counted_once_each_and_those_of_no_use_too() -> None:
    run = program("SEQ(A)", "DEFINE GPM A ON s { }").start()
    taken = Straight(run)
    for time, facts in enumerate(["k z 1", "k z 1, k z 1, k y 2", "k z 3"]):
        assert push(run, time, facts) == [f"A@{time}"]
    assert run.push(S, 4, []) == []
    assert run.stats["triples"] == 4
    assert len(taken) == 3


def test_graphs_of_every_kind() -> None:
    node = ox.BlankNode("x")
    some: list[Any] = [
        triples("k a 1"),
        tuple(triples("k a 1")),
        [(t.subject, t.predicate, t.object) for t in triples("k a 1")],
        [ox.Quad(t.subject, t.predicate, t.object) for t in triples("k a 1")],
        b"<http://example.org/k> <http://example.org/a> 1 .".replace(b" 1 ", b' "1" '),
        iter(triples("k a 1")),
        [ox.Triple(node, ox.NamedNode(EX + "a"), node)],
    ]
    run = program("SEQ(A)", "DEFINE GPM A ON s { ?k :a ?x }").start()
    taken = Straight(run)
    for time, graph in enumerate([*some[:4], *some[4:]]):
        assert len(run.push(S, time, graph)) == 1
    assert len(taken) == len(some) - 1


def test_windows_that_close_in_between() -> None:
    run = program("SEQ(A : B)", clauses="WITHIN TUMBLING 3 SECONDS").start()
    taken = Straight(run)
    found = [push(run, time, f"k {'ab'[time % 2]} 1") for time in range(8)]
    assert found == [[], ["A@0 B@1"], [], [], [], ["A@4 B@5"], [], ["A@6 B@7"]]
    assert len(taken) == 7


def test_a_bound_that_is_reached_stops_the_run() -> None:
    run = program().start(max_groups=3)
    taken = Straight(run)
    for time in range(3):
        push(run, time, f"k{time} a 1")
    with pytest.raises(LimitExceeded, match="max_groups"):
        push(run, 3, "k3 a 1")
    assert (len(taken), run.stats["events"]) == (3, 4)
    with pytest.raises(RunFailed):
        push(run, 4, "k4 a 1")


def test_the_knowledge_base_changes_between_two_events() -> None:
    graph = EX + "kb"
    run = program(
        "SEQ(A)",
        "DEFINE GPM A ON s { ?k :a ?x GRAPH :kb { ?k :is :good } }",
        streams="FROM STREAM s :s FROM :kb",
    ).start(kb={graph: triples("k is good")})
    taken = Straight(run)
    assert [len(push(run, time, "k a 1, j a 1")) for time in range(3)] == [1, 1, 1]
    run.kb.replace({graph: triples("k is good, j is good")})
    found = run.push(S, 3, triples("k a 1, j a 1"))
    assert [match.kb_version for match in found] == [2, 2]
    assert len(push(run, 4, "k a 1, j a 1")) == 2
    assert len(taken) == 3


def test_batches_and_single_events_take_turns() -> None:
    run = program().start()
    for time in range(0, 40, 4):
        assert push(run, time, "k a 1") == []
        assert push(run, time + 1, "k c 1") == []
        blob = run.save()
        assert run.advance(time + 2) == []
        (match,) = run.push(S, time + 2, triples("k b 1"))
        run = program().resume(blob)
        (again,) = run.push(S, time + 2, triples("k b 1"))
        assert again.to_json() == match.to_json()
    assert run.stats["events"] == 30
