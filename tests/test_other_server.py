"""A second SPARQL server, unlike the first: rdflib's.

It is slower, writes XML where TSV is asked for, tells strings with a datatype from those without,
and keeps other forms of literals. What an endpoint's own tests do to Oxigraph is done to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cases import Case, load
from endpoints import (
    Behaviour,
    RdflibServer,
    as_xml,
    busy,
    cut_short,
    garbled,
    killed,
    misbehaving,
    rdflib_server,
    rubbish,
    slow,
    truncated,
)
from test_remote_kb import check, started
from test_suite import _position

import spaseq
from spaseq.errors import EndpointError, KbError
from spaseq.results import triples_text

pytest.importorskip(
    "rdflib_endpoint", reason="rdflib-endpoint is not installed: pip install .[dev]"
)

# rdflib 7 refuses to read literals with a base direction, and triple terms.
CASES = [
    case
    for case in load()
    if case.kb
    and case.error is None
    and case.entail is None
    and not any(new in triples_text(facts) for facts in case.kb.values() for new in ("--", "<<("))
]
ROOMS = "".join(f"<http://e/s{n}> <http://e/in> <http://e/r{n % 3}> .\n" for n in range(10))
STRINGS = '<http://e/a> <http://e/code> "x" .\n<http://e/b> <http://e/code> "y"^^<{}string> .\n'
QUERY = """PREFIX : <http://e/> SELECT ?s ?r WITHIN 1 HOUR FROM STREAM s :s WHERE { SEQ(A)
  DEFINE GPM A ON s { ?s :seen ?code GRAPH :kb { PATTERN } } }"""


def name_of(case: Case, iri: str) -> str:
    return re.sub(r"\W", "_", f"{case.name} {iri}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RdflibServer]:
    folder: Path = tmp_path_factory.mktemp("graphs")
    for case in CASES:
        for iri, facts in case.kb.items():
            (folder / f"{name_of(case, iri)}.nt").write_text(triples_text(facts))
    (folder / "rooms.nt").write_text(ROOMS)
    (folder / "strings.nt").write_text(STRINGS.format("http://www.w3.org/2001/XMLSchema#"))
    with rdflib_server(folder) as running:
        yield running


def rooms(run: spaseq.Run, first: int, behind: int) -> list[str]:
    found = []
    for number in range(first, behind):
        fact = f"<http://e/s{number}> <http://e/seen> <http://e/c> .".encode()
        found += [m.bindings["r"].value for m in run.push("http://e/s", number, fact)]
    return found


def start(endpoint: spaseq.Endpoint, pattern: str = "?s :in ?r") -> spaseq.Run:
    return spaseq.compile(QUERY.replace("PATTERN", pattern)).start(kb={"http://e/kb": endpoint})


WANTED = [f"http://e/r{n % 3}" for n in range(10)]


@pytest.mark.parametrize("join", ["materialise", "bind"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_cases_of_the_suite(case: Case, join: str, server: RdflibServer) -> None:
    kb = {iri: spaseq.Endpoint(server.graph(name_of(case, iri)), join=join) for iri in case.kb}
    run = started(case, kb, join)
    if run is None:
        return
    events = [case.streams[a.stream][_position(case, a)] for a in case.merged]
    check(case, [*run.push_batch(events), *run.finish()])


@pytest.mark.parametrize("join", ["materialise", "bind"])
@pytest.mark.parametrize(
    "accept",
    [
        "application/sparql-results+xml",
        "text/tab-separated-values",
        "application/json",
        "*/*",
    ],
)
def test_whatever_it_answers_in(accept: str, join: str, server: RdflibServer) -> None:
    endpoint = spaseq.Endpoint(server.graph("rooms"), join=join, headers={"Accept": accept})
    assert rooms(start(endpoint), 0, 10) == WANTED


@pytest.mark.parametrize("join", ["materialise", "bind"])
def test_strings_with_and_without_a_datatype(join: str, server: RdflibServer) -> None:
    run = start(spaseq.Endpoint(server.graph("strings"), join=join), "?r :code ?code")
    found = [
        match.bindings["r"].value
        for number, code in enumerate("xyz")
        for match in run.push("http://e/s", number, f'<http://e/s> <http://e/seen> "{code}" .')
    ]
    assert found == ["http://e/a", "http://e/b"]


@pytest.mark.parametrize(
    "behaviour",
    [busy, truncated, cut_short, rubbish, garbled, killed, as_xml, slow(6.0)],
    ids=["busy", "truncated", "cut short", "rubbish", "garbled", "killed", "xml", "slow"],
)
def test_trouble_passes(behaviour: Behaviour, server: RdflibServer) -> None:
    with misbehaving(server.graph("rooms")) as between:
        endpoint = spaseq.Endpoint(between.url, join="bind", backoff=0.01, timeout=4.0)
        run = start(endpoint)
        assert rooms(run, 0, 3) == WANTED[:3]
        between.todo.append(behaviour)
        assert rooms(run, 3, 10) == WANTED[3:]
        between.otherwise = rubbish
        with pytest.raises(KbError, match="text/html"):
            rooms(start(endpoint), 0, 1)


def test_a_server_that_dies_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "rooms.nt").write_text(ROOMS)
    with rdflib_server(tmp_path) as server:
        run = start(spaseq.Endpoint(server.graph("rooms"), join="bind", attempts=2, backoff=0.01))
        assert rooms(run, 0, 4) == WANTED[:4]
        server.kill()
        with pytest.raises(EndpointError, match="cannot be reached"):
            rooms(run, 4, 5)
        server.start()
        # The run is as it was before the event, which comes again.
        assert rooms(run, 4, 10) == WANTED[4:]
