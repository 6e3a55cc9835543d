"""Queries that drain: they finish their partial matches, over restarts and crashes, and then go."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from served import RISE, Served, served

from spaseq.cli.remote_command import remote
from spaseq.client import Client

FALL = RISE.replace("?p2 > ?p1", "?p2 < ?p1")
NAMED = RISE.replace("SELECT", "REGISTER QUERY rise AS\nSELECT")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


def _listed(server: Served) -> dict[str, str]:
    return {one["name"]: one["status"] for one in server.http.get("/v1/queries").json()["items"]}


def _drain(server: Served, name: str = "rise", limit: str = "") -> Any:
    return server.http.delete(f"/v1/queries/{name}", params={"drain": limit})


def _eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _crashed(server: Served, copy: Path) -> Path:
    """The state as a crash would leave it now."""
    shutil.copytree(server.folder, copy)
    return copy


@pytest.mark.parametrize("text", [RISE, NAMED])
@pytest.mark.parametrize("ending", ["none", "stop", "crash", "crash after checkpoint"])
def test_the_version_before_finishes_its_partial_matches(
    tmp_path: Path, text: str, ending: str
) -> None:
    new = text.replace("?p2 > ?p1", "?p2 < ?p1")

    def begin(server: Served) -> None:
        assert server.put("rise", text).status_code == 201
        server.push((1, 10))
        assert server.put("rise", new, params={"state": "drain"}).status_code == 200
        server.put("other", FALL)  # behind the one that drains, in the order of the run
        server.push((2, 20))

    def finish(server: Served) -> None:
        shown = server.http.get("/v1/queries/rise").json()
        assert (shown["status"], shown["text"]) == ("running", new)
        assert shown["draining"] == [{"revision": 0, "until": None}]
        assert _listed(server) == {"rise": "running", "other": "running"}
        server.push((3, 15))
        assert sorted(server.found("rise")) == [(10, 15), (10, 20), (20, 15)]
        assert server.found("other") == [(20, 15)]
        server.push((20, 1), (21, 2), (22, 3))
        _eventually(lambda: "draining" not in server.http.get("/v1/queries/rise").json())
        assert sorted(server.found("rise")) == [(10, 15), (10, 20), (20, 15)]

    with served(tmp_path / "state") as server:
        begin(server)
        if ending == "none":
            finish(server)
            return
        if ending == "crash after checkpoint":
            assert server.http.post("/v1/checkpoints").status_code == 201
        crashed = _crashed(server, tmp_path / "crashed")
    with served(tmp_path / "state" if ending == "stop" else crashed) as server:
        finish(server)


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("ending", ["none", "stop", "crash"])
def test_a_removed_query_drains_and_goes(tmp_path: Path, others: bool, ending: str) -> None:
    rest = {"fall": "running"} if others else {}

    def finish(server: Served) -> None:
        assert _listed(server) == {"rise": "draining", **rest}
        assert server.http.get("/v1/queries/rise").json()["until"] is None
        assert _drain(server).status_code == 409
        answer = server.http.get("/v1/queries/rise/groups")
        assert answer.status_code == 200, answer.text
        assert server.push((4, 30)).status_code == 202
        assert server.found("rise") == [(10, 30)]
        assert server.push((12, 40), (13, 50), (14, 60)).status_code == 202
        _eventually(lambda: _listed(server) == rest)
        assert server.http.get("/v1/queries/rise/matches").status_code == 404
        # Without any query, time begins anew.
        server.put("rise")
        assert server.push((1, 1)).json()["late"] == int(others)

    with served(tmp_path / "state") as server:
        server.put("rise")
        if others:
            server.put("fall", FALL)
        server.push((1, 10))
        answer = _drain(server)
        assert (answer.status_code, answer.json()["status"]) == (202, "draining")
        if ending == "none":
            finish(server)
            return
        crashed = _crashed(server, tmp_path / "crashed")
    with served(tmp_path / "state" if ending == "stop" else crashed) as server:
        finish(server)


def test_a_query_drains_for_so_long_at_most(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.put("rise")
        server.put("fall", FALL)
        server.push((1, 10))
        assert _drain(server, "rise", "1h").json()["until"].endswith("+00:00")
        assert _drain(server, "fall", "200ms").status_code == 202
        _eventually(lambda: _listed(server) == {"rise": "draining"})
        server.push((2, 5))
        server.put("fall", FALL)
    with served(tmp_path) as server:
        assert _listed(server) == {"rise": "draining", "fall": "running"}
        assert server.found("fall") == []
        server.push((3, 20))
        assert server.found("rise") == [(10, 20)]


def test_the_client_and_the_command_drain(server: Served) -> None:
    with Client(server.url) as client:
        client.put_query("rise", RISE)
        client.put_query("fall", FALL)
        server.push((1, 10))
        client.put_query("rise", FALL, "drain")
        client.remove_query("fall", "1h")
        assert client.query("fall")["until"]
        server.push((2, 20))
    command = ["rm", "--server", server.url, "rise", "--drain=2h"]
    result = CliRunner().invoke(remote, command)
    assert result.exit_code == 0, result.output
    assert _listed(server) == {"fall": "draining", "rise": "draining"}
    assert server.found() == [(10, 20)]


def test_removing_at_once_ends_all_versions(server: Served) -> None:
    server.put("rise")
    server.push((1, 10))
    server.put("rise", FALL, params={"state": "drain"})
    server.push((2, 11))
    assert _drain(server).status_code == 202
    assert len(server.context.engine.machine.draining) == 2
    assert server.put("rise", RISE).status_code == 201  # its name is free
    server.push((3, 5))
    # The first version has waited since 1, the second since 2, and the third begins with 3.
    assert server.found() == [(10, 11), (11, 5)]
    assert server.http.delete("/v1/queries/rise").status_code == 204
    assert _listed(server) == {}
    server.put("rise")
    server.push((4, 100))
    assert server.found() == []


def test_what_has_no_partial_matches_goes_at_once(server: Served) -> None:
    server.put("rise")
    assert _drain(server).status_code == 204
    server.put("rise")
    server.push((1, 10))
    server.http.patch("/v1/queries/rise", json={"paused": True})
    assert _drain(server).status_code == 204
    assert _listed(server) == {}
    assert _drain(server).status_code == 404


@pytest.mark.parametrize("limit", ["soon", "0s", "-1s"])
def test_the_limit_is_a_positive_duration(server: Served, limit: str) -> None:
    server.put("rise")
    answer = _drain(server, limit=limit)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:spaseq:problem:drain")
    assert _listed(server) == {"rise": "running"}


def test_subscribers_see_the_last_match_before_the_end(server: Served) -> None:
    server.put("rise")
    server.push((1, 10))
    lines: list[str] = []
    begun = threading.Event()

    def read() -> None:
        headers = {"Accept": "application/x-ndjson"}
        with server.http.stream("GET", "/v1/queries/rise/matches", headers=headers) as answer:
            begun.set()
            lines.extend(answer.iter_lines())

    reader = threading.Thread(target=read)
    reader.start()
    assert begun.wait(20)
    _drain(server)
    rises = [(round(2 + n / 1000, 3), 20 + n) for n in range(500)]
    assert server.push(*rises, (30, 1), (31, 1), (32, 1)).status_code == 202
    reader.join(20)
    assert not reader.is_alive()
    assert sum('"bindings"' in line for line in lines) == 500
    assert any('{"error": {"removed": "rise"}}' in line for line in lines)


def test_versions_that_drain_count_as_queries(tmp_path: Path) -> None:
    from spaseq.server.context import RequestLimits

    with served(tmp_path, limits=RequestLimits(queries=2)) as server:
        server.put("rise")
        server.push((1, 10))
        assert server.put("rise", FALL, params={"state": "drain"}).status_code == 200
        server.push((2, 10))
        assert server.put("rise", RISE, params={"state": "drain"}).status_code == 403
        assert server.put("rise", RISE, params={"state": "fresh"}).status_code == 200
        assert server.put("other").status_code == 403


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_version_that_stops_the_run_is_taken_out(tmp_path: Path, checkpoint: bool) -> None:
    """The new version of the query goes on, and finds all of its matches."""
    pairs = RISE.replace("SEQ(A : B)", "SEQ(A : B : B)")
    with served(tmp_path, run_limits={"max_groups": 4}) as server:
        server.put("rise", pairs)
        server.push((1, 10), (2, 11), (3, 12))
        answer = server.put("rise", FALL, params={"state": "drain"})
        assert answer.status_code == 200, answer.text
        if checkpoint:
            assert server.http.post("/v1/checkpoints").status_code == 201
        for at in range(4, 9):
            assert server.push((at, 9 + at)).status_code == 202
            server.push((at + 0.5, 1))
            server.put("rise", FALL)
        machine = server.context.engine.machine
        assert len(machine.draining) == 0
        assert machine.queries["rise"].status == "running"
