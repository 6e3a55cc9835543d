"""Registered matches that compiled code makes, against the same ones made in Python."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pyoxigraph as ox
import pytest
from engine_runs import EX, S

import spaseq
from spaseq.engine import instants
from spaseq.errors import LimitExceeded
from spaseq.results import Match

GPMS = "DEFINE GPM A ON s { ?k :a ?x OPTIONAL { ?k :m ?m } } DEFINE GPM B ON s { ?j ?p ?y }"
READ = f"""PREFIX : <{EX}>
SELECT * WITHIN 10 SECONDS FROM STREAM u :up WHERE {{
  SEQ(R) DEFINE GPM R ON u AT ?t {{ ?s ?p ?o }} }}"""
TRIPLES = """
@prefix : <http://example.org/> .
:k :a 1, 2, "chat"@fr, "1"^^<http://www.w3.org/2001/XMLSchema#byte> .
:l :a 1.50, :k, _:b ; :m "m" .
_:c :a true .
"""


def query(template: str, seq: str = "SEQ(A : B)", clauses: str = "") -> str:
    gpms = GPMS if "B" in seq else GPMS[: GPMS.index(" DEFINE GPM B")]
    return (
        f"PREFIX : <{EX}> REGISTER STREAM :up AS CONSTRUCT {{ {template} }} WITHIN 10 SECONDS "
        f"{clauses} FROM STREAM s :s WHERE {{ {seq} {gpms} }}"
    )


def results(text: str, times: Sequence[str | int]) -> tuple[list[object], bool, list[Match]]:
    """The matches of a writer and a reader, and whether compiled code makes those of the writer."""
    run = spaseq.compile([text, READ]).start()
    facts = [quad.triple for quad in ox.parse(TRIPLES, format=ox.RdfFormat.TURTLE)]
    found: list[Match] = []
    for number, time in enumerate(times):
        # The second event has facts of the first, too.
        found += run.push(S, time, facts[3 * number : 3 * number + 5])
    found += run.finish()
    rows = [(m.query, m.start, m.end, m.end.term, m.graph, m.bindings, m.events) for m in found]
    assert [m.to_json() for m in found] == [m.__replace__().to_json() for m in found]
    return rows, run.queries[0].constructs is not None, found


@pytest.mark.parametrize("times", [(1, 2), ("2026-01-05T13:00:00+01:00", "2026-01-05T12:00:01.0Z")])
@pytest.mark.parametrize(
    "text",
    [
        query("?k :is ?x"),
        query("?k :is ?y ; :was ?x . ?j :is ?y"),
        query("?x :of ?k"),
        query("?k ?p ?y . ?k ?y ?x"),
        query("?k :m ?m ; :is ?x"),
        query("[] :is ?x . _:one :next _:two . _:one :is ?y"),
        query(":c :is ?x . :c :is ?x . :c :is 1"),
        query("?k :is ?x", "SEQ(A)"),
        query("?k :is ?x", "SEQ(A ; B)", "AFTER MATCH SKIP PAST LAST EVENT"),
    ],
)
def test_compiled_code_makes_the_matches_that_python_makes(
    monkeypatch: pytest.MonkeyPatch, text: str, times: Sequence[str | int]
) -> None:
    rows, compiled, _ = results(text, times)
    assert compiled
    assert len(rows) > 8
    monkeypatch.setattr(instants, "construct_maker", lambda *_: None)
    expected, compiled, _ = results(text, times)
    assert not compiled
    assert rows == expected


@pytest.mark.parametrize(
    "text",
    [
        query("?k :is ?x", "SEQ(A & B)"),
        query("?k :is ?x", clauses="EMIT LAST"),
        query("?k :is ?x", "SEQ(A ; B?)"),
        query("?k :is ?x") + " LIMIT 1",
        query("<< ?k :is ?x >> :by :me"),
    ],
)
def test_python_makes_the_other_matches(text: str) -> None:
    assert not results(text, (1, 2))[1]


@pytest.mark.parametrize("compiled", [True, False])
def test_all_matches_of_an_instant_are_listed_within_the_limit_of_steps(
    monkeypatch: pytest.MonkeyPatch, compiled: bool
) -> None:
    if not compiled:
        monkeypatch.setattr(instants, "construct_maker", lambda *_: None)
    facts = [quad.triple for quad in ox.parse(TRIPLES, format=ox.RdfFormat.TURTLE)]
    run = spaseq.compile([query("?k :is ?x"), READ]).start(max_steps=60)
    run.push(S, 1, facts)
    with pytest.raises(LimitExceeded, match="more than 60 matches are complete"):
        run.push(S, 2, facts)


def test_a_match_outlives_its_run() -> None:
    rows, _, matches = results(query("?k :is ?x . [] :is ?y"), (1, 2))
    graphs = [row[4] for row in rows]  # type: ignore[index]
    assert [m.graph for m in pickle.loads(pickle.dumps(matches))] == graphs
    assert all(match.graph is match.graph for match in matches)


def test_numbers_of_blank_nodes_continue_in_a_resumed_run() -> None:
    program = spaseq.compile([query("[] :is ?x", "SEQ(A)"), READ])
    run = program.start()
    facts = [ox.Triple(ox.NamedNode(EX + "k"), ox.NamedNode(EX + "a"), ox.Literal(1))]
    found = run.push(S, 1, facts)
    run = program.resume(run.save())
    found += run.push(S, 2, facts)
    nodes = [m.graph[0].subject.value for m in found if m.graph]  # type: ignore[union-attr]
    assert nodes == ["m1n0", "m2n0"]
