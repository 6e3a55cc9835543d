"""A folder of `.rq` files as standing queries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from served import RISE, Served, served

from spaseq.server import folder as folders

FALL = RISE.replace("?p2 > ?p1", "?p2 < ?p1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.server.app.POLL_SECONDS", 0.02)
    assert folders.POLL_SECONDS == 1.0


def write(path: Path, text: str) -> None:
    """Write a file as an editor does: at once, with a time of its own."""
    path.with_suffix(".new").write_text(text)
    os.replace(path.with_suffix(".new"), path)


def names(server: Served) -> dict[str, str]:
    listed = server.http.get("/v1/queries").json()["items"]
    return {one["name"]: one["status"] for one in listed}


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_come_change_and_go(tmp_path: Path) -> None:
    files = tmp_path / "queries"
    files.mkdir()
    write(files / "rise.rq", RISE)
    write(files / "broken.rq", "SELECT")
    (files / "notes.txt").write_text("no query")
    with served(tmp_path / "state", queries=str(files)) as server:
        assert names(server) == {"rise": "running"}
        server.push((1, 10))
        # The state fits, so the partial match goes on.
        write(files / "rise.rq", RISE.replace("SELECT ?company", "SELECT"))
        until(lambda: "company" not in server.http.get("/v1/queries/rise").json()["text"][:60])
        server.push((2, 12))
        assert server.found() == [(10, 12)]
        write(files / "broken.rq", FALL)
        until(lambda: "broken" in names(server))
        write(files / "rise.rq", RISE + "}")  # a mistake: the query goes on
        until(lambda: any("rise" in line and "}" in line for line in server.logged))
        server.push((3, 14))
        assert server.found() == [(10, 12), (10, 14), (12, 14)]
        (files / "rise.rq").unlink()
        until(lambda: names(server) == {"broken": "running"})


def test_queries_of_clients_are_not_touched(tmp_path: Path) -> None:
    files = tmp_path / "queries"
    files.mkdir()
    write(files / "one.rq", RISE)
    with served(tmp_path / "state", queries=str(files)) as server:
        server.put("mine", FALL)
        write(files / "mine.rq", RISE)
        until(lambda: any("a client has registered" in line for line in server.logged))
        assert server.http.get("/v1/queries/mine").json()["text"] == FALL
        (files / "mine.rq").unlink()
        time.sleep(0.1)
    (files / "one.rq").unlink()
    with served(tmp_path / "state", queries=str(files)) as server:
        until(lambda: names(server) == {"mine": "running"})


def test_a_folder_of_a_limited_run_loses_only_the_query_that_fails(tmp_path: Path) -> None:
    files = tmp_path / "queries"
    files.mkdir()
    write(files / "long.rq", RISE)
    write(files / "short.rq", RISE.replace("10 SECONDS", "2 SECONDS"))
    options = {"queries": str(files), "run_limits": {"max_groups": 3}}
    with served(tmp_path / "state", **options) as server:
        for moment in range(1, 8):
            server.push((moment, 10 + moment))
        assert names(server) == {"long": "failed", "short": "running"}
        found = server.found("short")
    with served(tmp_path / "state", **options) as server:
        assert names(server) == {"long": "failed", "short": "running"}
        assert server.found("short") == found
