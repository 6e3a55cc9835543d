"""Standing queries over HTTP: they come, change, pause and go while events flow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from served import RISE, SPARQL, Served, served

FALL = RISE.replace("?p2 > ?p1", "?p2 < ?p1")


@pytest.fixture
def server(tmp_path: Path) -> Served:
    with served(tmp_path) as running:
        yield running


def test_a_query_is_registered_once_and_finds_matches(server: Served) -> None:
    first = server.put("rise")
    assert first.status_code == 201
    assert first.headers["Location"] == "/v1/queries/rise"
    again = server.put("rise")
    assert (again.status_code, again.headers["ETag"]) == (200, first.headers["ETag"])
    assert server.push((1, 10), (2, 12)).json() == {
        "accepted": 2, "late": 0, "rejected": 0, "token": 1,
    }  # fmt: skip
    assert server.put("rise").status_code == 200
    assert server.push((3, 11)).status_code == 202
    assert server.found() == [(10, 12), (10, 11)]
    assert server.http.get("/v1/queries/rise").json()["matches"] == 2


def test_a_query_with_a_mistake_changes_nothing(server: Served) -> None:
    server.put("rise")
    server.push((1, 10))
    answer = server.put("rise", RISE.replace("?p2 > ?p1", "?p2 > "))
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    (found, *_) = answer.json()["diagnostics"]
    assert (found["line"], found["severity"]) == (8, "error")
    server.push((2, 12))
    assert server.found() == [(10, 12)]


@pytest.mark.parametrize(("state", "expected"), [("keep", [(10, 12)]), ("fresh", [])])
def test_replacing_keeps_partial_matches_or_not(
    server: Served, state: str, expected: list[tuple[int, int]]
) -> None:
    server.put("rise")
    server.push((1, 10))
    text = RISE.replace("SELECT ?company", "SELECT")
    assert server.put("rise", text, params={"state": state}).status_code == 200
    server.push((2, 12))
    assert server.found() == expected


def test_keep_that_does_not_fit_is_a_conflict(server: Served) -> None:
    server.put("rise")
    answer = server.put("rise", RISE.replace("10 SECONDS", "20 SECONDS"), params={"state": "keep"})
    assert answer.status_code == 409
    assert "window" in answer.json()["detail"].lower() or "WITHIN" in answer.json()["detail"]
    server.push((1, 10), (12, 12))
    assert server.found() == []  # the old window holds


def test_preconditions(server: Served) -> None:
    etag = server.put("rise", headers={**SPARQL, "If-None-Match": "*"}).headers["ETag"]
    assert server.put("rise", FALL, headers={**SPARQL, "If-None-Match": "*"}).status_code == 412
    assert server.put("rise", FALL, headers={**SPARQL, "If-Match": '"x"'}).status_code == 412
    assert server.put("rise", FALL, headers={**SPARQL, "If-Match": etag}).status_code == 200
    gone = server.http.delete("/v1/queries/rise", headers={"If-Match": etag})
    assert gone.status_code == 412
    assert server.http.delete("/v1/queries/rise").status_code == 204
    assert server.http.delete("/v1/queries/rise").status_code == 404


def test_pausing_and_binding(server: Served) -> None:
    text = RISE.replace("?p2 > ?p1", "?p2 > ?p1 + ?least")
    body = {"text": text, "bind": {"least": 5}}
    assert server.http.put("/v1/queries/rise", json=body).status_code == 201
    server.push((1, 10))
    assert server.http.patch("/v1/queries/rise", json={"bind": {"least": 1}}).status_code == 200
    server.push((2, 12))
    assert server.found() == [(10, 12)]
    paused = server.http.patch("/v1/queries/rise", json={"paused": True}).json()
    assert paused["status"] == "paused"
    assert server.push((3, 20)).status_code == 202
    server.http.patch("/v1/queries/rise", json={"paused": False})
    server.push((4, 30), (5, 40))
    assert server.found() == [(10, 12), (30, 40)]
    assert server.http.patch("/v1/queries/rise", json={"bind": {"q": 1}}).status_code == 422


def test_lists_have_pages(server: Served) -> None:
    for name in "abc":
        assert server.put(name).status_code == 201
    first = server.http.get("/v1/queries", params={"limit": 2})
    assert [one["name"] for one in first.json()["items"]] == ["a", "b"]
    second = server.http.get(first.links["next"]["url"])
    assert [one["name"] for one in second.json()["items"]] == ["c"]
    assert "Link" not in second.headers


def test_the_check_of_editors(server: Served) -> None:
    fine = server.http.post("/v1/check", content=RISE).json()
    assert fine["ok"]
    assert fine["diagnostics"] == []
    assert fine["streams"] == {"trades": "http://example.org/trades"}
    wrong = server.http.post("/v1/check", content=RISE + "}").json()
    assert not wrong["ok"]
    assert wrong["diagnostics"][0]["line"] == 10
    doubles = RISE.replace("SEQ(A : B)", "SEQ(A : B+)").replace("FILTER(?p2 > ?p1)", "")
    (note,) = server.http.post("/v1/check", content=doubles).json()["diagnostics"]
    assert (note["severity"], note["line"]) == ("note", 6)
    assert "can double with each" in note["message"]


def test_queries_survive_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.put("rise")
        server.put("fall", FALL)
        server.http.patch("/v1/queries/fall", json={"paused": True})
        server.push((1, 10))
    with served(tmp_path) as server:
        status = {
            one["name"]: one["status"] for one in server.http.get("/v1/queries").json()["items"]
        }
        assert status == {"fall": "paused", "rise": "running"}
        server.push((2, 12))
        assert server.found() == [(10, 12)]


def test_a_query_that_reaches_a_limit_is_taken_out_and_the_others_go_on(tmp_path: Path) -> None:
    with served(tmp_path, run_limits={"max_groups": 3}) as server:
        server.put("rise")
        server.put("short", RISE.replace("10 SECONDS", "2 SECONDS"))
        assert server.http.post("/v1/checkpoints").status_code == 201
        for time in range(1, 8):
            assert server.push((time, 10 + time)).status_code == 202
        status = {one["name"]: one for one in server.http.get("/v1/queries").json()["items"]}
        assert status["rise"]["status"] == "failed"
        assert "max-groups" in status["rise"]["failure"]
        assert status["short"]["status"] == "running"
        assert server.http.get("/readyz").json()["not_ready"] == ["query rise: failed"]
        expected = [(a, b) for b in range(12, 18) for a in range(max(11, b - 2), b)]
        assert sorted(server.found("short")) == sorted(expected)
    with served(tmp_path, run_limits={"max_groups": 3}) as server:
        assert sorted(server.found("short")) == sorted(expected)
        assert server.http.get("/v1/queries/rise").json()["status"] == "failed"
        assert server.put("rise").status_code == 200  # begins again
        assert server.push((8, 20)).status_code == 202
        assert server.http.get("/v1/queries/rise").json()["status"] == "running"


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_removed_query_leaves_no_matches_to_one_of_its_name(
    tmp_path: Path, checkpoint: bool
) -> None:
    with served(tmp_path / "state") as server:
        server.put("rise")
        server.push((1, 10), (2, 12))
        if checkpoint:
            assert server.http.post("/v1/checkpoints").status_code == 201
        server.push((3, 13))
        assert server.http.delete("/v1/queries/rise").status_code == 204
        server.put("rise", FALL)
        server.push((4, 20), (5, 19))
        shutil.copytree(tmp_path / "state", tmp_path / "crashed")
    with served(tmp_path / "crashed") as server:
        assert server.found() == [(20, 19)]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("failing", [1, 3])
def test_a_query_of_a_removed_one_s_name_keeps_its_own_matches(
    tmp_path: Path, checkpoint: bool, failing: int
) -> None:
    """Another query is taken out, and the events behind the checkpoint are matched again."""
    short = RISE.replace("10 SECONDS", "2 SECONDS")
    expected = [(a, b) for b in range(15, 19) for a in range(max(14, b - 2), b)]
    with served(tmp_path / "state", run_limits={"max_groups": 3}) as server:
        server.put("short", short)
        server.push((1, 11), (2, 12))
        if checkpoint:
            assert server.http.post("/v1/checkpoints").status_code == 201
        server.push((3, 13))
        for number in range(failing):
            server.put(f"rise{number}")
        assert server.http.delete("/v1/queries/short").status_code == 204
        server.put("short", short)
        for time in range(4, 9):
            assert server.push((time, 10 + time)).status_code == 202
        items = server.http.get("/v1/queries").json()["items"]
        assert [one["status"] for one in items] == ["failed"] * failing + ["running"]
        assert sorted(server.found("short")) == expected
        server.push((9, 19))
        assert sorted(server.found("short")) == [*expected, (17, 19), (18, 19)]
        shutil.copytree(tmp_path / "state", tmp_path / "crashed")
    with served(tmp_path / "crashed", run_limits={"max_groups": 3}) as server:
        assert sorted(server.found("short")) == [*expected, (17, 19), (18, 19)]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_the_only_query_can_be_taken_out(tmp_path: Path, checkpoint: bool) -> None:
    with served(tmp_path, run_limits={"max_groups": 3}) as server:
        server.put("rise")
        if checkpoint:
            assert server.http.post("/v1/checkpoints").status_code == 201
        for time in range(1, 8):
            assert server.push((time, 10 + time)).status_code == 202
        assert server.http.get("/v1/queries/rise").json()["status"] == "failed"
        assert server.put("rise", FALL).status_code == 200
    with served(tmp_path, run_limits={"max_groups": 3}) as server:
        server.push((8, 10), (9, 9))
        assert server.found() == [(11, 12), (11, 13), (12, 13), (10, 9)]
