"""Queries with limits and entailment of their own, beside those with the server's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from served import RISE, TRIG, Served, served

from spaseq.cli.remote_command import remote
from spaseq.cli.serve_command import _options, serve
from spaseq.client import Client
from spaseq.errors import KbError
from spaseq.server.kb_graphs import KbGraph, KbGraphs

SCHEMA = """\
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:SolarPanel rdfs:subClassOf :RenewableSource .
"""
TURBINES = "@prefix : <http://example.org/> . :Turbine rdfs:subClassOf :RenewableSource ."
KB = "/v1/kb/http%3A%2F%2Fexample.org%2Fkb"
RENEWABLE = """\
PREFIX : <http://example.org/>
SELECT ?x WITHIN 10 SECONDS FROM STREAM plants <http://example.org/plants>
WHERE { SEQ(A) DEFINE GPM A ON plants { ?x a :RenewableSource } }
"""
WRITER = RISE.replace("SELECT", "REGISTER STREAM <http://example.org/rises> AS\nCONSTRUCT").replace(
    "?company ?p1 ?p2\n", "{ ?company :rises ?p2 }\n"
)
READER = """\
PREFIX : <http://example.org/>
SELECT ?p FROM STREAM rises <http://example.org/rises> WITHIN 10 SECONDS
WHERE { SEQ(A) DEFINE GPM A ON rises { ?c :rises ?p } }
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running


def _put(server: Served, name: str, text: str = RISE, **members: Any) -> httpx.Response:
    return server.http.put(f"/v1/queries/{name}", json={"text": text, **members})


def _plant(server: Served, time: int, kind: str) -> None:
    data = (
        "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
        f":e{time} prov:generatedAtTime {time} . :e{time} {{ :p{time} a :{kind} }}\n"
    )
    answer = server.http.post("/v1/streams/plants/events", content=data, headers=TRIG)
    assert answer.status_code == 202, answer.text


def _plants(server: Served, name: str) -> list[str]:
    return [
        one["bindings"]["x"]["value"].removeprefix("http://example.org/")
        for one in server.lines(name)
        if "bindings" in one
    ]


def _status(server: Served) -> dict[str, str]:
    return {one["name"]: one["status"] for one in server.http.get("/v1/queries").json()["items"]}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_limits_of_a_query_stop_it_alone(tmp_path: Path, checkpoint: bool) -> None:
    with served(tmp_path / "state") as server:
        shown = _put(server, "bounded", limits={"max_groups": 3}).json()
        assert (shown["limits"], shown["entail"]) == ({"max_groups": 3}, None)
        _put(server, "short", RISE.replace("10 S", "2 S"), limits={"max_groups": 3})
        server.put("free")
        server.push((1, 11), (2, 12))
        if checkpoint:
            assert server.http.post("/v1/checkpoints").status_code == 201
        server.push((3, 13))
        assert server.http.patch("/v1/queries/short", json={"bind": {}}).status_code == 200
        for time in range(4, 8):
            assert server.push((time, 10 + time)).status_code == 202
        assert _status(server) == {"bounded": "failed", "short": "running", "free": "running"}
        assert "max-groups" in server.http.get("/v1/queries/bounded").json()["failure"]
        shutil.copytree(tmp_path / "state", tmp_path / "crashed")
    expected = [(a, b) for b in range(12, 18) for a in range(11, b)]
    short = [(a, b) for a, b in expected if b - a <= 2]
    for folder in ("state", "crashed"):
        with served(tmp_path / folder) as server:
            assert _status(server) == {"bounded": "failed", "short": "running", "free": "running"}
            assert sorted(server.found("free")) == sorted(expected)
            assert sorted(server.found("short")) == sorted(short)
            server.push((8, 18))
            assert sorted(server.found("short")) == sorted([*short, (16, 18), (17, 18)])
            assert len(server.found("free")) == len(expected) + 7
            assert server.http.get("/v1/queries/short").json()["limits"] == {"max_groups": 3}


def test_a_query_can_shed_where_the_others_stop(server: Served) -> None:
    _put(server, "shedding", limits={"max_groups": 8, "on_limit": "shed"})
    _put(server, "stopping", limits={"max_groups": 8})
    server.push(*[(time / 4, 10 + time) for time in range(30)])
    assert _status(server) == {"shedding": "running", "stopping": "failed"}
    assert 'spaseq_shed_groups_total{query="shedding"}' in server.http.get("/metrics").text


@pytest.mark.parametrize("ending", ["none", "stop", "crash"])
def test_two_queries_have_different_entailment(tmp_path: Path, ending: str) -> None:
    turtle = {"Content-Type": "text/turtle"}
    with served(tmp_path / "state") as server:
        assert server.http.put(KB, content=SCHEMA, headers=turtle).status_code == 201
        _put(server, "plain", RENEWABLE)
        assert _put(server, "wide", RENEWABLE, entail="rdfs").json()["entail"] == "rdfs"
        _plant(server, 1, "SolarPanel")
        _plant(server, 2, "RenewableSource")
        _plant(server, 3, "Turbine")
        schema = SCHEMA + TURBINES
        assert server.http.put(KB, content=schema, headers=turtle).status_code == 200
        _plant(server, 4, "Turbine")
        shutil.copytree(tmp_path / "state", tmp_path / "crash")
        plan = server.http.get("/v1/queries/wide/explain").text
        assert plan.startswith("query wide")
        if ending == "none":
            assert (_plants(server, "plain"), _plants(server, "wide")) == (
                ["p2"],
                ["p1", "p2", "p4"],
            )
    if ending != "none":
        with served(tmp_path / {"stop": "state"}.get(ending, ending)) as server:
            _plant(server, 5, "Turbine")
            assert _plants(server, "plain") == ["p2"]
            assert _plants(server, "wide") == ["p1", "p2", "p4", "p5"]
            assert server.http.delete("/v1/queries/plain").status_code == 204
            _plant(server, 6, "SolarPanel")
            _put(server, "plain", RENEWABLE)
            _plant(server, 6, "RenewableSource")
            assert _plants(server, "plain") == ["p6"]
            assert _plants(server, "wide") == ["p1", "p2", "p4", "p5", "p6", "p6"]


class _Kb:
    """The knowledge base of a run that refuses some versions of a graph."""

    def __init__(self, refused: tuple[str, ...] = ()):
        self.graphs: dict[str, Any] = {}
        self.refused = refused

    def load(self, changed: dict[str, Any]) -> None:
        for source in changed.values():
            if Path(source).name in self.refused:
                raise KbError("it cannot be closed")
        self.graphs |= changed

    replace = load
    latest = SimpleNamespace(contents={})

    def unload(self, iri: str) -> None:
        del self.graphs[iri]


def test_a_graph_that_one_run_refuses_changes_none(tmp_path: Path) -> None:
    graphs = KbGraphs(tmp_path, {})
    runs: Any = [SimpleNamespace(kb=_Kb()), SimpleNamespace(kb=_Kb(("b", "c")))]
    with pytest.raises(KbError):
        graphs.put("urn:kb", KbGraph(1, "b"), runs)
    assert graphs.graphs == {}
    assert [run.kb.graphs for run in runs] == [{}, {}]
    graphs.put("urn:kb", KbGraph(2, "a"), runs)
    with pytest.raises(KbError):
        graphs.put("urn:kb", KbGraph(3, "c"), runs)
    assert graphs.graphs["urn:kb"].version == 2
    assert [run.kb.graphs for run in runs] == [{"urn:kb": tmp_path / "a"}] * 2


def test_none_switches_the_entailment_of_the_server_off(tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(SCHEMA)
    kb = {"http://example.org/kb": str(tmp_path / "kb.ttl")}
    with served(tmp_path / "state", entail="rdfs", kb=kb) as server:
        _put(server, "wide", RENEWABLE)
        _put(server, "same", RENEWABLE, entail="rdfs")
        _put(server, "plain", RENEWABLE, entail="none")
        _plant(server, 1, "SolarPanel")
        assert [_plants(server, name) for name in ("wide", "same", "plain")] == [["p1"], ["p1"], []]
        assert len(server.context.engine.machine.runs) == 2


def test_a_replacement_with_other_limits_begins_anew(server: Served) -> None:
    server.put("rise")
    server.put("other")
    server.push((1, 10))
    limits = {"max_groups": 100}
    answer = _put(server, "rise", limits=limits, state="keep")
    assert answer.status_code == 409
    assert "limits" in answer.json()["detail"]
    server.push((2, 11))
    assert _put(server, "rise", limits=limits).status_code == 200
    server.push((3, 12), (4, 13))
    assert server.found() == [(10, 11), (12, 13)]
    etag = server.http.get("/v1/queries/rise").headers["ETag"]
    assert server.put("rise").headers["ETag"] != etag


@pytest.mark.parametrize("restart", [False, True])
def test_a_replacement_with_other_limits_drains(tmp_path: Path, restart: bool) -> None:
    with served(tmp_path) as server:
        server.put("rise")
        server.push((1, 10))
        changed = _put(server, "rise", limits={"max_steps": 1000}, state="drain")
        assert [one["revision"] for one in changed.json()["draining"]] == [0]
        server.push((2, 11))
        if not restart:
            server.push((3, 12))
            assert sorted(server.found()) == [(10, 11), (10, 12), (11, 12)]
    if restart:
        with served(tmp_path) as server:
            server.push((3, 12))
            assert sorted(server.found()) == [(10, 11), (10, 12), (11, 12)]
            server.push((30, 1), (31, 0))
            _put(server, "rise", RISE.replace("?p2 > ?p1", "?p2 < ?p1"))
            assert server.http.delete("/v1/queries/rise").status_code == 204
            assert not server.context.engine.machine.runs


@pytest.mark.parametrize(
    "members",
    [
        {"limits": 3},
        {"limits": []},
        {"limits": {"max_groups": 0}},
        {"limits": {"max_groups": True}},
        {"limits": {"max_groups": 1.5}},
        {"limits": {"max_groups": 10**30}},
        {"limits": {"max_groups": "9"}},
        {"limits": {"most_groups": 9}},
        {"limits": {"on_limit": "ignore"}},
        {"limits": {"on_limit": ["stop"]}},
        {"limits": {"max_steps": 2000}},
        {"entail": "owl-full"},
        {"entail": ["rdfs"]},
        {"entail": {}},
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, members: dict[str, Any]) -> None:
    with served(tmp_path, run_limits={"max_steps": 1000}) as server:
        answer = _put(server, "rise", **members)
        assert answer.status_code == 422, answer.text
        assert next(iter(members)) in answer.json()["detail"]
        assert server.http.get("/v1/queries/rise").status_code == 404


def test_the_limits_of_the_server_hold_after_they_were_lowered(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        _put(server, "rise", limits={"max_groups": 100})
    with served(tmp_path, run_limits={"max_groups": 2}) as server:
        server.push(*[(time, 10 + time) for time in range(5)])
        assert _status(server) == {"rise": "failed"}


def test_the_number_of_runs_is_bounded(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.server.run_set.MAX_RUNS", 3)
    for number in range(3):
        assert _put(server, f"q{number}", limits={"max_groups": number + 1}).status_code == 201
    assert _put(server, "more", limits={"max_groups": 1000}).status_code == 403
    assert _put(server, "more", limits={"max_groups": 1}).status_code == 201
    assert server.http.delete("/v1/queries/q2").status_code == 204
    assert _put(server, "other", limits={"max_groups": 1000}).status_code == 201


@pytest.mark.parametrize(("first", "together"), [("writer", 201), ("reader", 409)])
def test_a_registered_stream_stays_within_equal_options(
    server: Served, first: str, together: int
) -> None:
    texts = {"writer": WRITER, "reader": READER}
    second = "reader" if first == "writer" else "writer"
    assert _put(server, first, texts[first]).status_code == 201
    answer = _put(server, second, texts[second], limits={"max_groups": 9})
    assert answer.status_code == 409
    assert f"the query {first}, which has other limits" in answer.json()["detail"]
    # A stream that a query reads already cannot be registered, whatever the options.
    assert _put(server, second, texts[second]).status_code == together


def test_blank_nodes_have_the_same_labels_in_all_runs(server: Served) -> None:
    text = RISE.replace("?company", "[]").replace("[] ?p1 ?p2", "?n ?p1 ?p2")
    text = text.replace("[] :price ?p1", "?n :price ?p1").replace("[] :price", "?m :price")
    _put(server, "one", text)
    _put(server, "two", text, limits={"max_groups": 100})
    for time in (1, 2):
        data = f"<urn:e{time}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
        data += f"<urn:e{time}> {{ _:n <http://example.org/price> {time} . }}\n"
        answer = server.http.post("/v1/streams/trades/events", content=data, headers=TRIG)
        assert answer.status_code == 202, answer.text
    (one,), (two,) = ([m for m in server.lines(n) if "bindings" in m] for n in ("one", "two"))
    assert one["bindings"] == two["bindings"]
    assert one["bindings"]["n"]["type"] == "bnode"


def test_the_client_and_the_shell_pass_options_on(server: Served, tmp_path: Path) -> None:
    with Client(server.url) as client:
        shown = client.put_query("rise", RISE, entail="rdfs", limits={"max_steps": 99})
        assert (shown["entail"], shown["limits"]) == ("rdfs", {"max_steps": 99})
    file = tmp_path / "other.rq"
    file.write_text(RISE)
    arguments = ["add", str(file), "--server", server.url, "--entail", "owl-ql"]
    arguments += ["--max-groups", "50", "--on-limit", "shed"]
    done = CliRunner().invoke(remote, arguments)
    assert done.exit_code == 0, done.output
    shown = server.http.get("/v1/queries/other").json()
    assert shown["entail"] == "owl-ql"
    assert shown["limits"] == {"max_groups": 50, "on_limit": "shed"}


QUIET = """\
PREFIX : <http://example.org/>
SELECT ?x WITHIN 1 HOUR FROM STREAM plants <http://example.org/plants>
WHERE { SEQ(A : C) DEFINE GPM A ON plants { ?x a :First } DEFINE GPM C ON plants { ?z a :Last } }
"""
MANY = """\
PREFIX : <http://example.org/>
SELECT ?x WITHIN 1 HOUR FROM STREAM plants <http://example.org/plants>
WHERE { SEQ(A : B+ : C) DEFINE GPM A ON plants { ?x a :First }
  DEFINE GPM B ON plants { ?y a :Next } DEFINE GPM C ON plants { ?z a :Last } }
"""


def test_a_query_with_endless_matches_stops_alone(tmp_path: Path) -> None:
    arguments = ["--max-memory", "100M"]
    given = serve.make_context("serve", arguments).params
    limits: dict[str, Any] = dict(_options(given).run_limits)
    assert (limits["max_matches"], limits["max_memory"]) == (100_000, 100 << 20)
    limits = {"max_matches": 2000}
    with served(tmp_path / "state", run_limits=limits) as server:
        lower = _put(server, "lower", MANY, limits={"max_matches": 100})
        assert lower.status_code == 201
        _put(server, "many", MANY)
        _put(server, "quiet", QUIET)
        for time in range(41):
            _plant(server, time, "First" if time == 0 else "Next")
        _plant(server, 41, "Last")
        _plant(server, 42, "Other")
        assert _status(server) == {"lower": "failed", "many": "failed", "quiet": "running"}
        for name, most in (("many", "2,000"), ("lower", "100")):
            failure = server.http.get(f"/v1/queries/{name}").json()["failure"]
            assert f"more than {most} matches are complete at 41 (--max-matches)" in failure
        assert len(_plants(server, "quiet")) == 1
