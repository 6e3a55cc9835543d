"""The client, sync and async, and the same from the shell."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import RISE, Served, served, trade, trades

from spaseq import client as clients
from spaseq.cli import main
from spaseq.cli.remote_command import _bodies
from spaseq.client import AsyncClient, Client, Notice, ServedMatch, ServerError
from spaseq.errors import ArgumentError, SpaseqError

TRIG = "application/trig"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running


def test_a_client_does_what_the_server_does(server: Served) -> None:
    with Client(server.url) as client:
        shown = client.put_query("rise", RISE.replace("?p1)", "?p1 + ?d)"), bind={"d": 1})
        assert (shown["status"], shown["bind"]) == ("running", {"d": 1})
        accepted = client.push("trades", trades((1, 10), (2, 12)), TRIG)
        assert (accepted.accepted, accepted.late) == (2, 0)
        (match,) = client.matches("rise", "oldest", limit=1)
        assert match.query == "rise"
        assert (match.start, match.end) == (1, 2)
        assert match.bindings["p2"]["value"] == "12"
        assert [event["gpm"] for event in match.events] == ["A", "B"]
        assert client.change("rise", paused=True)["paused"]
        assert client.change("rise", paused=False)["status"] == "running"
        assert "A : B" in client.explain("rise")
        assert "query rise" in client.why("rise")
        why = client.why_event("rise", "<http://example.org/a> <http://example.org/b> 1 .", 3)
        assert [pattern["matches"] for pattern in why["patterns"]] == [False, False]
        client.watermark("trades", 9)
        (stream,) = client.streams()
        assert stream["watermark"] == 9
        assert client.put_kb("http://e.org/kb", "<http://a> a <http://b> .")["triples"] == 1
        client.remove_kb("http://e.org/kb")
        assert client.checkpoint() >= 1
        client.remove_query("rise")
        assert client.queries() == []
        with pytest.raises(ServerError, match="no query rise") as refused:
            client.query("rise")
        assert refused.value.status == 404
        with pytest.raises(ServerError) as mistaken:
            client.put_query("rise", "SELECT ?x")
        assert mistaken.value.diagnostics[0]["line"] == 1
        assert "^" in str(mistaken.value)


def test_a_subscription_continues_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "RETRY_SECONDS", 0.05)
    found: list[ServedMatch] = []
    with served(tmp_path) as server:
        server.put("rise")
        port = int(server.url.rpartition(":")[2])
        url = server.url
        seen = threading.Event()

        def follow() -> None:
            with Client(url) as client:
                for match in client.matches("rise", "oldest", limit=3):
                    found.append(match)
                    seen.set()

        thread = threading.Thread(target=follow)
        thread.start()
        server.push((1, 10), (2, 12))
        assert seen.wait(20)
    from dataclasses import replace

    from served import Options

    options = replace(Options(), port=port, state=str(tmp_path), manages=True)
    again = Served(tmp_path, options)
    again.push((3, 11))
    again.push((4, 5), (5, 6))
    thread.join(30)
    again.stop()
    prices = [(m.bindings["p1"]["value"], m.bindings["p2"]["value"]) for m in found]
    assert prices == [("10", "12"), ("10", "11"), ("5", "6")]
    assert len({match.id for match in found}) == 3


def test_the_asynchronous_client(server: Served) -> None:
    async def use() -> list[clients.Item]:
        async with AsyncClient(server.url) as client:
            await client.put_query("rise", RISE)
            await client.push("trades", trades((1, 10), (2, 12)), TRIG)
            items = [item async for item in client.subscribe("rise", "oldest", limit=1)]
            assert [q["name"] for q in await client.queries()] == ["rise"]
            assert (await client.query("rise"))["matches"] == 1
            assert "A : B" in await client.explain("rise")
            await client.watermark("trades", 9)
            await client.remove_query("rise")
            with pytest.raises(ServerError):
                await client.why("rise")
        return items

    (match,) = [item for item in asyncio.run(use()) if isinstance(item, ServedMatch)]
    assert match.bindings["p1"]["value"] == "10"


def test_notices(server: Served) -> None:
    with Client(server.url) as client:
        client.put_query("rise", RISE)
        items = client.subscribe("rise", "oldest")
        client.push("trades", trade(5, 10), TRIG)
        assert next(items) == Notice("progress", {"watermark": 5})
        client.push("trades", trade(1, 10), TRIG)
        late = next(items)
        assert isinstance(late, Notice)
        assert late.kind == "late"
        client.remove_query("rise")
        assert list(items) == [Notice("error", {"removed": "rise"})]


def test_from_the_shell(server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rise.rq").write_text(RISE)
    (tmp_path / "wrong.rq").write_text(RISE + "}")
    (tmp_path / "trades.trig").write_bytes(trades((1, 10), (2, 12)))
    (tmp_path / "event.ttl").write_text("<http://example.org/eBay> <http://example.org/price> 9 .")
    at = ["--server", server.url]

    def remote(*arguments: str) -> str:
        assert main(["remote", *arguments, *at]) == 0
        return capsys.readouterr().out

    assert remote("add", str(tmp_path / "rise.rq")) == "rise\n"
    assert main(["remote", "add", str(tmp_path / "wrong.rq"), *at]) == 2
    assert "wrong:10:1: error" in capsys.readouterr().err
    pushed = remote("push", "trades", str(tmp_path / "trades.trig"))
    assert pushed == "accepted 2, late 0, rejected 0\n"
    assert remote("list").split() == ["rise", "running", "1"]
    assert main(["remote", *at, "list"]) == 0
    assert capsys.readouterr().out.split() == ["rise", "running", "1"]
    match = json.loads(remote("watch", "rise", "--from", "oldest", "--limit", "1"))
    assert match["bindings"]["p2"]["value"] == "12"
    assert "query rise: 1 match" in remote("why", "rise")
    why = remote("why", "rise", "--event", str(tmp_path / "event.ttl"), "--at", "3")
    assert "fits 0 of 2 groups" in why
    assert "FILTER" in why
    event = ["--event", str(tmp_path / "event.ttl"), "--at", "3", "--stream"]
    assert remote("why", "rise", *event, "trades") == why
    assert main(["remote", "why", "rise", *event, "none", *at]) == 2
    (tmp_path / "wrong.trig").write_text("# trades\n:t3 { :eBay :price }")
    assert main(["remote", "push", "trades", str(tmp_path / "wrong.trig"), *at]) == 2
    assert f"{tmp_path / 'wrong.trig'}:2: " in capsys.readouterr().err
    assert remote("rm", "rise") == ""
    assert main(["remote", "rm", "rise", *at]) == 2
    assert main(["remote", "list", "--server", "http://127.0.0.1:1"]) == 2


@pytest.mark.parametrize("client", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("url", "error", "said"),
    [
        ("localhost:8642", SpaseqError, "URL is needed, such as http://localhost:8642"),
        ("ftp://localhost", SpaseqError, "an http: or https: URL is needed$"),
        (None, ArgumentError, "url: the URL of a server is needed, not None"),
    ],
)
def test_the_url_of_a_server_is_checked(
    client: type[Any], url: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        client(url)


def test_no_server_from_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["remote", "list", "--server", "http://127.0.0.1:1"]) == 2
    assert "http://127.0.0.1:1: no server answers there" in capsys.readouterr().err
    elsewhere = ["--server", "http://127.0.0.1:2"]
    assert main(["remote", *elsewhere, "list"]) == 2
    assert "http://127.0.0.1:2: no server answers there" in capsys.readouterr().err
    assert main(["remote", *elsewhere, "list", "--server", "http://127.0.0.1:1"]) == 2
    assert "http://127.0.0.1:1: no server answers there" in capsys.readouterr().err
    assert main(["remote"]) == 0
    assert "Commands:" in capsys.readouterr().out


def test_large_files_are_cut_between_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.cli.remote_command.CHUNK_BYTES", 300)
    prov = b"<http://www.w3.org/ns/prov#generatedAtTime>"
    data = b"".join(
        b'<http://e.org/%d> %b "%d" .\n<http://e.org/s> <http://e.org/p> "x" <http://e.org/%d> .\n'
        % (n, prov, n, n)
        for n in range(20)
    )
    bodies = list(_bodies(data, "application/n-quads"))
    assert len(bodies) > 3
    assert b"".join(bodies) == data
    assert all(prov in body.splitlines()[0] for body in bodies)


def test_a_subscription_without_a_server_fails_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Only a connection that existed is made again."""
    url = "http://127.0.0.1:9"
    with Client(url) as client, pytest.raises(httpx.ConnectError):
        next(client.subscribe("rise", "oldest"))
    assert main(["remote", "--server", url, "watch", "rise", "--from", "oldest"]) == 2
    assert "no server answers there" in capsys.readouterr().err


def test_another_server_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with page_server() as url:
        for command in (["list"], ["watch", "rise"]):
            assert main(["remote", "--server", url, *command]) == 2
            assert "is not that of spaseq serve" in capsys.readouterr().err


@contextmanager
def page_server() -> Iterator[str]:
    """A server that answers every request with a page."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"<p/>")

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_a_command_waits_no_longer_than_its_timeout(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert main(["remote", "--server", url, "--timeout", "0.2", "list"]) == 2
        assert "--timeout" in capsys.readouterr().err
