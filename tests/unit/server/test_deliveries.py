"""The sinks of queries: the operator declares them, and queries name them."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from served import RISE, Served, served

import spaseq
from spaseq.errors import SpaseqError
from spaseq.server.delivered import DeliveredMatch
from spaseq.server.deliveries import _Stored

JSON = {"Content-Type": "application/json"}


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _put(server: Served, name: str = "rise", **members: Any) -> Any:
    return server.put(name, json.dumps({"text": RISE, **members}), headers=JSON)


def _rows(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT id, match FROM matches ORDER BY rowid").fetchall()
    db.close()
    return rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "matches.db"


def test_matches_go_to_the_sinks_that_the_query_names(tmp_path: Path, table: Path) -> None:
    with served(tmp_path / "state", sinks={"table": f"sqlite:{table}"}) as server:
        assert _put(server, sinks=["table"]).json()["sinks"] == ["table"]
        server.put("other")
        server.push((1, 10), (2, 12), (3, 15))
        _until(lambda: len(_rows(table)) == 3)
        shown = [(one["id"], one) for one in server.lines("rise") if "id" in one]
        expected = [(i, {k: v for k, v in one.items() if k != "id"}) for i, one in shown]
        assert [(i, json.loads(text)) for i, text in _rows(table)] == expected
        [delivery] = server.http.get("/v1/queries/rise").json()["deliveries"]
        assert delivery == {"sink": "table", "delivered": 3, "waiting": 0}
        assert "deliveries" not in server.http.get("/v1/queries/other").json()


def test_what_was_committed_is_not_sent_again(tmp_path: Path, table: Path) -> None:
    sinks = {"table": f"sqlite:{table}"}
    for at in range(4):
        with served(tmp_path / "state", sinks=sinks) as server:
            if not at:
                _put(server, sinks=["table"])
            assert _put(server, sinks=["table"]).status_code == 200  # the same as before
            server.push((at, 10 + at))
            _until(lambda: len(_rows(table)) == at * (at + 1) // 2)  # noqa: B023
    assert len({identifier for identifier, _ in _rows(table)}) == 6


def test_a_commit_that_is_not_there_is_sent_again(tmp_path: Path, table: Path) -> None:
    """The checkpoint of a delivery is stored, and the process ends before the sink commits."""
    sinks = {"table": f"sqlite:{table}"}
    with served(tmp_path / "state", sinks=sinks) as server:
        _put(server, sinks=["table"])
        server.push((1, 10), (2, 12))
        _until(lambda: len(_rows(table)) == 1)
    [path] = (tmp_path / "state" / "deliveries").iterdir()
    stored = _Stored(path)
    (number,) = stored.known
    stored.add(number + 1, 5, {})  # as if four more had been written, and not committed
    with served(tmp_path / "state", sinks=sinks) as server:
        server.push((3, 15))
        _until(lambda: len(_rows(table)) == 3)


def test_a_query_of_the_same_name_begins_a_delivery_of_its_own(tmp_path: Path, table: Path) -> None:
    sinks = {"table": f"sqlite:{table}"}
    with served(tmp_path / "state", sinks=sinks) as server:
        _put(server, sinks=["table"])
        server.push((1, 10), (2, 12))
        _until(lambda: len(_rows(table)) == 1)
        assert server.http.delete("/v1/queries/rise").status_code == 204
        _put(server, sinks=["table"])
        server.push((3, 13), (4, 14))
        _until(lambda: len(_rows(table)) == 2)
    with served(tmp_path / "state", sinks=sinks) as server:
        server.push((5, 15))
        _until(lambda: len(_rows(table)) == 4)
        assert len(list((tmp_path / "state" / "deliveries").iterdir())) == 1


class _Hook(BaseHTTPRequestHandler):
    received: list[tuple[str, Any]]
    refuses: bool

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = type(self)
        if not kind.refuses:
            kind.received.append((self.headers["webhook-id"], json.loads(body)))
        self.send_response(503 if kind.refuses else 204)
        self.end_headers()

    def log_message(self, format: str, *values: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[tuple[type[_Hook], str]]:
    class Own(_Hook):
        refuses = False

    Own.received = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Own, f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_sink_that_refuses_delays_nothing_else(
    tmp_path: Path, table: Path, hook: tuple[type[_Hook], str]
) -> None:
    own, url = hook
    own.refuses = True
    sinks = {"table": f"sqlite:{table}", "hook": f"{url}#retries=0"}
    with served(tmp_path / "state", sinks=sinks) as server:
        _put(server, sinks=["hook", "table"])
        server.push((1, 10), (2, 12), (3, 15))
        _until(lambda: len(_rows(table)) == 3)
        _until(lambda: bool(server.http.get("/readyz").json()["not_ready"]))
        [missing] = server.http.get("/readyz").json()["not_ready"]
        assert missing.startswith("sink hook of query rise: ")
        assert "503" in missing
        own.refuses = False
        _until(lambda: len({identifier for identifier, _ in own.received}) == 3)
        assert {identifier for identifier, _ in own.received} == {i for i, _ in _rows(table)}
        _until(lambda: server.http.get("/readyz").status_code == 200)


def test_matches_that_the_buffer_lost_are_counted(
    tmp_path: Path, hook: tuple[type[_Hook], str]
) -> None:
    own, url = hook
    own.refuses = True
    options: dict[str, Any] = {"sinks": {"hook": f"{url}#retries=0"}, "replay": 4}
    with served(tmp_path / "state", **options) as server:
        _put(server, sinks=["hook"])
        for at in range(1, 8):
            server.push((at, at))
        _until(lambda: bool(server.http.get("/readyz").json()["not_ready"]))
        own.refuses = False
        _until(lambda: server.http.get("/v1/queries/rise").json()["deliveries"][0]["waiting"] == 0)
        [delivery] = server.http.get("/v1/queries/rise").json()["deliveries"]
        assert delivery["delivered"] == 21
        assert delivery["lost"] + len({identifier for identifier, _ in own.received}) == 21
        assert any("no longer in the replay buffer" in text for text in server.logged)


def test_the_queries_of_the_folder_have_sinks(tmp_path: Path, table: Path) -> None:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "rise.rq").write_text(RISE)
    options: dict[str, Any] = {
        "sinks": {"table": f"sqlite:{table}"},
        "queries": str(tmp_path / "queries"),
        "folder_sinks": ["table"],
    }
    with served(tmp_path / "state", **options) as server:
        server.push((1, 10), (2, 12))
        _until(lambda: len(_rows(table)) == 1)


@pytest.mark.parametrize("sinks", [["nothing"], "table", [1], ["sqlite:/etc/passwd"], {"a": 1}])
def test_clients_name_declared_sinks_only(tmp_path: Path, table: Path, sinks: Any) -> None:
    with served(tmp_path / "state", sinks={"table": f"sqlite:{table}"}) as server:
        answer = _put(server, sinks=sinks)
        assert answer.status_code == 422
        assert str(table) not in answer.text


@pytest.mark.parametrize("url", ["matches.jsonl", "/etc/passwd", "gopher://host/x"])
def test_a_sink_is_a_url_of_a_known_scheme(tmp_path: Path, url: str) -> None:
    with (
        pytest.raises(SpaseqError, match=r"--sink file: .*sqlite"),
        served(tmp_path / "state", sinks={"file": url}),
    ):
        pass


def test_a_match_of_the_buffer_has_what_sinks_use() -> None:
    text = """PREFIX : <http://e/> SELECT * WITHIN 9 SECONDS FROM STREAM s <http://e/s>
    WHERE { SEQ(A) DEFINE GPM A ON s { ?x :p ?y } }"""
    objects = [
        ox.NamedNode("http://e/o"),
        ox.Literal("a", language="en"),
        ox.Literal("1.5", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#decimal")),
        ox.Literal("b\nc"),
        ox.Triple(ox.NamedNode("http://e/s"), ox.NamedNode("http://e/p"), ox.Literal("o")),
    ]
    run = spaseq.compile(text).start()
    subject, predicate = ox.NamedNode("http://e/x"), ox.NamedNode("http://e/p")
    for at, value in enumerate(objects):
        [match] = run.push("http://e/s", at + 0.5, [ox.Triple(subject, predicate, value)])
        read = DeliveredMatch(f"{match.id} {match.to_json()}".encode())
        for name in ("id", "query", "start", "end"):
            assert getattr(read, name) == getattr(match, name)
        assert dict(read.bindings) == dict(match.bindings)
        assert read.to_json() == match.to_json()
    run.finish()
