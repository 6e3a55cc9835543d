"""The suite's cases with a knowledge base, that base behind a real SPARQL server.

Remote equals local on the same data, whichever way the two are joined: fetched as a whole, or
asked by key.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest
from cases import Case, differences, load
from endpoints import RealServer, nobody
from test_suite import _n_triples, _position, _program, _results

import spaseq
from spaseq.cli import main
from spaseq.errors import KbError

NORMALISED = "knowledge-base-terms-join-as-terms"
"""The lexical form of a literal matters there, but this server stores values: 1 for 1.0."""
WITH_KB = [c for c in load() if c.kb and c.error is None and c.name != NORMALISED]
# Under entailment a graph that is asked cannot be closed: see test_entailing.py.
CASES = [case for case in WITH_KB if case.entail is None]
# What no event's values lead to has to be fetched as a whole.
WHOLE = r"would have to be fetched as a whole, for (an operator in Python|a query that reads|it)"


def remote(case: Case, server: RealServer, **options: object) -> dict[str, spaseq.Endpoint]:
    return {
        iri: spaseq.Endpoint(server.graph(facts), **options)  # type: ignore[arg-type]
        for iri, facts in case.kb.items()
    }


def started(case: Case, kb: dict[str, spaseq.Endpoint], join: str) -> spaseq.Run | None:
    """A run; None where the patterns cannot be asked by key, and say so."""
    refused = ""
    try:
        return _program(case).start(kb=kb)
    except KbError as error:
        refused = str(error)
    assert join == "bind"
    assert re.search(WHOLE, refused)
    return None


def check(case: Case, matches: list[spaseq.Match]) -> None:
    seen = _results(case, matches)
    found = [differences(wanted, seen) for wanted in case.alternatives]
    assert not all(found), f"{case}\n{found[0]}"


@pytest.mark.parametrize("join", ["materialise", "bind"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_in_one_batch(case: Case, join: str, sparql_server: RealServer) -> None:
    events = [case.streams[a.stream][_position(case, a)] for a in case.merged]
    run = started(case, remote(case, sparql_server, join=join), join)
    if run is None:
        return
    check(case, [*run.push_batch(events), *run.finish()])


@pytest.mark.parametrize("join", ["materialise", "bind"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_event_by_event(case: Case, join: str, sparql_server: RealServer) -> None:
    run = started(case, remote(case, sparql_server, join=join, batch=1, cache=1), join)
    if run is None:
        return
    seen = []
    for arrival in case.merged:
        seen += run.push(arrival.stream, arrival.python_time, _n_triples(arrival.facts))
    check(case, [*seen, *run.finish()])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_one_graph_here_and_one_there(case: Case, sparql_server: RealServer) -> None:
    (first, *others) = case.kb
    knowledge: dict[str, object] = dict(
        remote(replace(case, kb={first: case.kb[first]}), sparql_server)
    )
    for iri in others:
        knowledge[iri] = [ox.Triple(*fact) for fact in case.kb[iri]]  # type: ignore[arg-type]
    run = _program(case).start(kb=knowledge)
    events = [case.streams[a.stream][_position(case, a)] for a in case.merged]
    check(case, [*run.push_batch(events), *run.finish()])


@pytest.mark.parametrize("case", [c for c in WITH_KB if c.entail is not None], ids=str)
def test_entailment_needs_the_graphs_here(case: Case, sparql_server: RealServer) -> None:
    with pytest.raises(KbError, match="download it"):
        _program(case).start(kb=remote(case, sparql_server), entail=case.entail)


def test_on_the_command_line(
    sparql_server: RealServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ex = "http://example.org/"
    query, stream = tmp_path / "q.rq", tmp_path / "s.nt"
    query.write_text(
        f"PREFIX : <{ex}> SELECT ?r ?n WITHIN 1 MINUTE FROM STREAM s :s WHERE {{ SEQ(A) "
        "DEFINE GPM A ON s { ?s :v 1 GRAPH :kb { ?s :in ?r } GRAPH :names { ?r :name ?n } } }"
    )
    stream.write_text(f'<{ex}a> <{ex}v> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    store = ox.Store(str(tmp_path / "names"))
    store.add(ox.Quad(ox.NamedNode(ex + "r1"), ox.NamedNode(ex + "name"), ox.Literal("Hall")))
    store.flush()
    del store
    url = sparql_server.graph(f"<{ex}a> <{ex}in> <{ex}r1> .")
    given = ["--kb", f"{ex}kb={url}", "--kb", f"{ex}names={tmp_path / 'names'}"]
    arguments = ["run", str(query), "--stream", f"s={stream}", "--events", "triples:1", *given]
    assert main([*arguments, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["r,n", f"{ex}r1,Hall"]
    with nobody() as gone:
        assert main([*arguments[:-3], f"{ex}kb={gone}", *arguments[-2:]]) in (1, 2)
    shown = capsys.readouterr().err
    assert gone in shown
    assert "cannot be reached" in shown
