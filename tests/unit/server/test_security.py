"""Each line of the model of SECURITY.md about the server, attacked."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from served import RISE, SPARQL, TRIG, Served, served, trade, trades
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from spaseq.errors import SpaseqError
from spaseq.server import http as limits
from spaseq.server.auth import read_tokens
from spaseq.server.context import RequestLimits
from spaseq.server.problems import Problem
from spaseq.server.serve import Options, access_of
from spaseq.server.urls import AllowedUrls

READ, INGEST, MANAGE = "r" * 20, "i" * 20, "m" * 20
SERVICE = """\
PREFIX : <http://example.org/>
SELECT ?s WITHIN 10 SECONDS FROM STREAM trades <http://example.org/trades>
WHERE {{ SEQ(A) DEFINE GPM A ON trades {{ ?s :price ?p . SERVICE <{}> {{ ?s :name ?n }} }} }}
"""


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    path = tmp_path / "tokens"
    path.write_text(
        f"# who may what\nwall read {READ}\nsensor ingest {INGEST}\nchief manage {MANAGE}\n"
    )
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def guarded(tmp_path: Path, tokens: str) -> Iterator[Served]:
    with served(tmp_path / "state", tokens=tokens) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# ------------------------------------------------------------------ who may do what

CALLS: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("GET", "/v1/queries", {}, {READ, MANAGE}),
    ("GET", "/metrics", {}, {READ, MANAGE}),
    ("GET", "/v1/openapi.json", {}, {READ, MANAGE}),
    ("POST", "/v1/check", {"content": RISE}, {READ, MANAGE}),
    ("POST", "/v1/streams/trades/events", {"content": trade(1, 1), "headers": TRIG},
     {INGEST, MANAGE}),
    ("POST", "/v1/streams/trades/watermark", {"json": {"time": 1}}, {INGEST, MANAGE}),
    ("PUT", "/v1/queries/rise", {"content": RISE, "headers": SPARQL}, {MANAGE}),
    ("PATCH", "/v1/queries/rise", {"json": {"paused": False}}, {MANAGE}),
    ("PUT", "/v1/kb/http://e.org/g",
     {"content": "<http://a> a <http://b> .", "headers": {"Content-Type": "text/turtle"}},
     {MANAGE}),
    ("DELETE", "/v1/kb/http://e.org/g", {}, {MANAGE}),
    ("POST", "/v1/checkpoints", {}, {MANAGE}),
    ("GET", "/v1/queries/rise/matches?follow=false", {}, {READ, MANAGE}),
    ("DELETE", "/v1/queries/rise", {}, {MANAGE}),
]  # fmt: skip


def test_a_token_does_what_its_roles_allow_and_nothing_else(guarded: Served) -> None:
    chief = bearer(MANAGE)
    assert guarded.put("rise", headers={**SPARQL, **chief}).status_code == 201
    for method, path, options, roles in CALLS:
        headers = options.get("headers", {})
        rest = {name: value for name, value in options.items() if name != "headers"}
        for token in ("", "x" * 20, READ, INGEST, MANAGE):
            sent = headers | (bearer(token) if token else {})
            answer = guarded.http.request(method, path, headers=sent, **rest)
            expected = 401 if token in ("", "x" * 20) else 403
            if token in roles:
                assert answer.status_code < 300, (method, path, answer.text)
            else:
                assert answer.status_code == expected, (method, path, token)
        if method == "DELETE" and "queries" in path:
            assert guarded.put("rise", headers={**SPARQL, **chief}).status_code == 201
    assert guarded.http.get("/healthz").status_code == 200


def test_web_sockets_need_the_role_too(guarded: Served) -> None:
    guarded.put("rise", headers={**SPARQL, **bearer(MANAGE)})
    url = guarded.url.replace("http", "ws") + "/v1/queries/rise/matches"

    async def opened(token: str) -> int:
        try:
            async with connect(url, subprotocols=[f"spaseq-bearer.{token}"]):  # type: ignore[list-item]
                return 101
        except InvalidStatus as error:
            return error.response.status_code

    assert [asyncio.run(opened(token)) for token in (READ, INGEST, "x" * 20)] == [101, 403, 401]


def test_without_manage_nobody_changes_queries(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.put("rise")
    with served(tmp_path) as server:
        server.context.access = access_of(Options())
        for method, path, options, roles in CALLS:
            if roles == {MANAGE}:
                answer = server.http.request(method, path, **options)
                assert answer.status_code == 403
                assert "--manage" in answer.json()["detail"]
        assert server.push((1, 10)).status_code == 202


def test_beyond_loopback_needs_a_token_and_encryption(
    tokens: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in (
        Options(host="0.0.0.0"),
        Options(host="0.0.0.0", is_insecure=True),
        Options(host="0.0.0.0", tokens=tokens),
        Options(host="::", tokens=tokens),
        Options(host="example.org", tokens=tokens),
    ):
        with pytest.raises(SpaseqError, match="beyond loopback"):
            access_of(options)
    assert access_of(Options(host="0.0.0.0", tokens=tokens, is_insecure=True)).tokens
    monkeypatch.setenv("SPASEQ_TOKENS", f"a read {READ};b manage {MANAGE}")
    assert [token.name for token in read_tokens(None)] == ["a", "b"]


def test_tokens_are_private_long_and_well_formed(tokens: str, tmp_path: Path) -> None:
    os.chmod(tokens, 0o644)
    with pytest.raises(SpaseqError, match="chmod 600"):
        read_tokens(tokens)
    for text, message in (
        ("a read short", "less than 16"),
        (f"a admin {READ}", "a role is"),
        (f"a {READ}", "NAME ROLE"),
    ):
        with pytest.raises(SpaseqError, match=message):
            read_tokens(None, {"SPASEQ_TOKENS": text})


def test_credentials_of_systemd_are_private(tokens: str) -> None:
    os.chmod(tokens, 0o440)  # what an access control list for the service looks like
    with pytest.raises(SpaseqError, match="chmod 600"):
        read_tokens(tokens, {})
    credentials = {"CREDENTIALS_DIRECTORY": os.path.dirname(tokens)}
    assert read_tokens(tokens, credentials)
    os.chmod(tokens, 0o444)
    with pytest.raises(SpaseqError, match="chmod 600"):
        read_tokens(tokens, credentials)


def test_tokens_are_compared_in_constant_time(tokens: str) -> None:
    """All tokens are compared by their digests, wherever the first difference is."""
    access = access_of(Options(tokens=tokens))
    assert all(len(token.digest) == 32 for token in access.tokens)
    assert READ not in repr(access)
    with pytest.raises(Problem, match="bearer token"):
        access.check("read", {"authorization": f"Bearer {READ[:-1]}"})
    with pytest.raises(Problem, match="bearer token"):
        access.check("read", {"authorization": "Bearer \udcff"})


# ------------------------------------------------------------------ pages of other sites


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example:8642"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://localhost:1", "Host": "localhost:1"}, 200),
    ],
)
def test_pages_of_other_sites_are_refused(
    server: Served, headers: dict[str, str], status: int
) -> None:
    assert server.http.get("/v1/queries", headers=headers).status_code == status
    pushed = server.http.post("/v1/streams/x/watermark", json={"time": 1}, headers=headers)
    assert (pushed.status_code == 403) == (status == 403)


def test_other_origins_only_if_asked(tmp_path: Path) -> None:
    with served(tmp_path, origins=("https://wall.example",)) as server:
        wall = {"Origin": "https://wall.example"}
        assert (
            server.http.get("/v1/queries", headers=wall).headers["Access-Control-Allow-Origin"]
            == "https://wall.example"
        )
        asked = server.http.options("/v1/queries/a", headers=wall)
        assert "PUT" in asked.headers["Access-Control-Allow-Methods"]
        other = server.http.get("/v1/queries", headers={"Origin": "https://other.example"})
        assert "Access-Control-Allow-Origin" not in other.headers


def test_every_answer_has_the_headers(server: Served) -> None:
    for path in ("/v1/queries", "/healthz", "/nowhere", "/v1/queries/none"):
        headers = server.http.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"
        assert "Server" not in headers
        assert "Access-Control-Allow-Origin" not in headers


# ------------------------------------------------------------------ URLs and paths

ALLOWED = AllowedUrls(("https://data.example/sparql", "http://10.1.2.3:3030/"))


@pytest.mark.parametrize(
    "url",
    [
        "https://data.example/sparql", "https://data.example/sparql/a?query=b",
        "http://10.1.2.3:3030/ds",
    ],
)  # fmt: skip
def test_urls_of_the_allow_list(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("8.8.8.8", 0))])
    ALLOWED.check(url)
    with pytest.raises(Problem, match="allow-list"):
        AllowedUrls(("https://other.example/",)).check(url)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "/etc/passwd", "ftp://data.example/sparql",
        "http://data.example/sparql", "https://data.example:8443/sparql",
        "https://data.example/sparqling", "https://data.example/", "https://data.example.evil.org/",
        "https://data.example@evil.org/sparql", "https://user:pw@data.example/sparql",
        "https://data.example/sparql/../admin", "https://data.example/sparql/%2e%2e/admin",
        "https://data.example\\@evil.org/sparql", "https://data.example/sparql\n",
        "http://169.254.169.254/latest/meta-data", "http://[::1]/", "http://localhost/",
        "http://0x7f000001/", "http://2130706433/", "gopher://10.1.2.3:3030/",
    ],
)  # fmt: skip
def test_urls_outside_the_allow_list(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("8.8.8.8", 0))])
    with pytest.raises(Problem, match="allow-list"):
        ALLOWED.check(url)


@pytest.mark.parametrize("found", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fc00::1"])
def test_names_that_resolve_to_private_addresses(
    found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [(0, 0, 0, "", ("8.8.8.8", 0)), (0, 0, 0, "", (found, 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
    with pytest.raises(Problem, match="private"):
        ALLOWED.check("https://data.example/sparql")
    AllowedUrls(ALLOWED.entries, True).check("https://data.example/sparql")


KB_QUERY = """\
PREFIX : <http://example.org/>
SELECT ?s WITHIN 10 SECONDS FROM STREAM trades <http://example.org/trades>
FROM <http://e.org/kb>
WHERE { SEQ(A) DEFINE GPM A ON trades { ?s :price ?p . GRAPH <http://e.org/kb> { ?s :name ?n } } }
"""


def test_a_name_that_resolves_to_a_private_address_later_is_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the name is public when the query comes, and private when it is asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.2)
    origin = f"http://data.example:{listening.getsockname()[1]}"
    original = socket.getaddrinfo
    places: list[str] = []

    def asked(host: Any, *given: Any, **more: Any) -> Any:
        if host == "data.example":
            host = places.pop(0) if places else "127.0.0.1"
        return original(host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    with served(tmp_path / "state", allowed_urls=[origin]) as server:
        for body in (
            {"text": SERVICE.format(f"{origin}/sparql")},
            {"text": SERVICE.format(f"{origin}/sparql?a=b")},
            {"text": KB_QUERY, "kb": {"http://e.org/kb": f"{origin}/sparql"}},
        ):
            places.append("8.8.8.8")
            answer = server.http.put("/v1/queries/late", json=body)
            assert answer.status_code in (201, 422)
            if answer.status_code == 201:  # it asks for each event, and leaves the events out
                server.push((1, 1))
            else:
                assert "data.example has no address, or a private one" in answer.text
            assert not places
        taken = server.http.put(
            "/v1/kb/" + quote(f"{origin}/sparql", safe=""),
            content=b"",
            headers={"Content-Type": "text/turtle"},
        )
        assert taken.status_code == 409  # its requests would not be restricted any more
    with pytest.raises(TimeoutError):
        listening.accept()
    listening.close()


def test_queries_name_no_url_outside_the_allow_list(server: Served) -> None:
    for url in ("http://127.0.0.1:1/sparql", "file:///etc/passwd"):
        for answer in (
            server.put("s", SERVICE.format(url)),
            server.http.put("/v1/queries/s", json={"text": RISE, "kb": {"http://e.org/g": url}}),
            server.http.put("/v1/queries/s", json={"text": RISE, "sinks": [url]}),
        ):
            assert answer.status_code == 422, answer.text
    variable = SERVICE.format("x").replace("<x>", "?s")
    assert server.put("s", variable).status_code == 422
    assert server.http.get("/v1/queries").json()["total"] == 0


def test_bodies_fetch_and_open_nothing(server: Served, tmp_path: Path) -> None:
    server.put("rise")
    asked: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.3)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/context"
    context = json.dumps({"@context": url, "@id": "http://e.org/a", "http://e.org/p": 1})
    entity = (
        f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><rdf:RDF xmlns:rdf="http://www.w3.org/'
        f'1999/02/22-rdf-syntax-ns#" xmlns:e="{url}"><rdf:Description rdf:about="http://e.org/a">'
        "<e:p>&e;</e:p></rdf:Description></rdf:RDF>"
    )
    for media_type, text in (("application/ld+json", context), ("application/rdf+xml", entity)):
        for path in ("/v1/streams/trades/events", "/v1/kb/http://e.org/g"):
            method = "PUT" if "kb" in path else "POST"
            answer = server.http.request(
                method, path, content=text, headers={"Content-Type": media_type}
            )
            assert answer.status_code == 400, (media_type, path, answer.text)
            assert "root:" not in answer.text
    with pytest.raises(TimeoutError):
        asked.append(str(listening.accept()))
    listening.close()


def test_paths_stay_inside_the_state(server: Served, tmp_path: Path) -> None:
    for name in ("..", "..%2F..%2Fetc", "a%2Fb", "a%00b", "%2e%2e"):
        answer = server.http.put(f"/v1/queries/{name}", content=RISE, headers=SPARQL)
        assert answer.status_code in (404, 405, 422), name
    graph = server.http.put(
        "/v1/kb/http://e.org/../../../etc/x", content="<http://a> a <http://b> .",
        headers={"Content-Type": "text/turtle"},
    )  # fmt: skip
    assert graph.status_code in (201, 422)
    assert not (tmp_path / "etc").exists()
    assert server.http.get("/v1/kb/file:///etc/passwd").status_code == 404


# ------------------------------------------------------------------ limits


def test_large_bodies_and_queries_are_cut_off(tmp_path: Path) -> None:
    with served(tmp_path, limits=RequestLimits(body=1000, query=500)) as server:
        server.put("rise")
        large = server.http.post("/v1/streams/trades/events", content=b" " * 1001, headers=TRIG)
        assert (large.status_code, large.json()["limit"]) == (413, 1000)

        def endless() -> Iterator[bytes]:
            while True:
                yield b"# nothing\n" * 100

        with httpx.Client(base_url=server.url) as client:
            try:
                answer = client.post("/v1/streams/trades/events", content=endless(), headers=TRIG)
                assert answer.status_code == 413
            except httpx.WriteError:
                pass  # the server closed the connection while we were writing
        assert server.put("long", RISE + "#" * 500).status_code == 413
        bomb = server.http.post(
            "/v1/streams/trades/events",
            content=b"\x1f\x8b",
            headers={**TRIG, "Content-Encoding": "gzip"},
        )
        assert bomb.status_code == 415
        assert server.push((1, 10)).status_code == 202


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_can_read_why_its_body_is_refused(tmp_path: Path, chunked: bool) -> None:
    """The server reads the body before it closes, so that the connection is not reset."""
    size = 200_000
    with served(tmp_path, limits=RequestLimits(body=1000)) as server:
        server.put("rise")
        host, port = server.url.removeprefix("http://").split(":")
        framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % size
        head = b"POST /v1/streams/trades/events HTTP/1.1\r\nHost: localhost\r\n"
        head += b"Content-Type: application/trig\r\n" + framing + b"\r\n\r\n"
        body = b" " * size
        with socket.create_connection((host, int(port)), 5) as client:
            client.sendall(head)
            client.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (size, body) if chunked else body)
            said = b""
            while part := client.recv(4096):
                said += part
        assert b" 413 " in said
        assert b"send it in parts" in said


def test_a_body_that_is_not_sent_is_not_waited_for(tmp_path: Path) -> None:
    with served(tmp_path, limits=RequestLimits(body=1000)) as server:
        server.put("rise")
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 5) as client:
            client.sendall(
                b"POST /v1/streams/trades/events HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/trig\r\nContent-Length: 2000\r\n"
                b"Expect: 100-continue\r\n\r\n"
            )
            assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_slow_bodies_and_heads_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.3)
    with served(tmp_path, limits=RequestLimits(seconds=0.3)) as server:
        server.put("rise")
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 5) as slow:
            slow.sendall(
                b"POST /v1/streams/trades/events HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/trig\r\nContent-Length: 100\r\n\r\nx"
            )
            assert b" 408 " in slow.recv(4096)
        with socket.create_connection((host, int(port)), 5) as slow:
            slow.sendall(b"GET /v1/que")
            assert slow.recv(4096) == b""
        with socket.create_connection((host, int(port)), 5) as silent:
            assert silent.recv(4096) == b""
        assert server.push((1, 10)).status_code == 202


def test_many_connections_leave_the_server_usable(tmp_path: Path) -> None:
    with served(tmp_path, connections=20) as server:
        server.put("rise")
        host, port = server.url.removeprefix("http://").split(":")
        idle = [socket.create_connection((host, int(port)), 5) for _ in range(40)]
        deadline = time.monotonic() + 5
        while httpx.get(f"{server.url}/healthz").status_code != 503:
            assert time.monotonic() < deadline
        for one in idle:
            one.close()
        while httpx.get(f"{server.url}/healthz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert server.push((1, 10)).status_code == 202


def test_the_queue_of_events_is_bounded(server: Served) -> None:
    server.put("rise")
    engine = server.context.engine
    free, waits = threading.Event(), threading.Event()

    def hold() -> None:
        waits.set()
        free.wait(10)

    engine.call(hold)
    waits.wait(10)
    object.__setattr__(engine._settings, "queued_bytes", 500)
    answers: list[httpx.Response] = []
    body = trades((1, 10), (2, 11), (3, 12))

    def push() -> None:
        answers.append(
            httpx.post(f"{server.url}/v1/streams/trades/events", content=body, headers=TRIG)
        )

    threads = [threading.Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 10
    while len(answers) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert {(a.status_code, a.headers["Retry-After"]) for a in answers} == {(429, "1")}
    free.set()
    for thread in threads:
        thread.join()
    assert sorted(a.status_code for a in answers) == [202, 429, 429, 429]


def test_the_numbers_of_subscribers_and_queries_are_bounded(tmp_path: Path) -> None:
    with served(tmp_path, limits=RequestLimits(subscribers=1, queries=1)) as server:
        server.put("rise")
        assert server.put("more").status_code == 403
        url = "/v1/queries/rise/matches"
        with server.http.stream("GET", url) as first:
            lines = first.iter_lines()
            assert next(lines) == ": spaseq"
            assert server.http.get(url, timeout=5).status_code == 503
        deadline = time.monotonic() + 5
        while server.http.get(f"{url}?follow=false").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_a_slow_subscriber_is_cut_off_and_slows_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spaseq.server.match_routes.SLOW_SECONDS", 0.5)
    with served(tmp_path, replay=100_000) as server:
        server.put("rise", RISE.replace("SEQ(A : B)", "SEQ(A)").replace(" . FILTER(?p2 > ?p1)", "")
                   .replace("SELECT ?company ?p1 ?p2", "SELECT ?company ?p1")
                   .replace("  DEFINE GPM B ON trades { ?company :price ?p2 }\n", ""))  # fmt: skip
        host, port = server.url.removeprefix("http://").split(":")
        slow = socket.create_connection((host, int(port)), 5)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /v1/queries/rise/matches HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.recv(10)
        hub = server.context.hub
        assert hub is not None
        deadline, moment = time.monotonic() + 30, 0
        while hub.count:
            moment += 500
            pairs = [(moment + number, 1) for number in range(500)]
            begun = time.monotonic()
            assert server.push(*pairs).status_code == 202
            assert time.monotonic() - begun < 5
            assert time.monotonic() < deadline
        slow.close()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000, b'{"text": ' + b'{"a":' * 50_000, b"\xff\xfe", b'{"text": NaN}', b"null",
        b'{"text": "\\ud800"}', b'{"text": "SELECT", "bind": {"\\udfff": 1}}',
        b'{"text": 1}', b'{"text": "", "x": 1}', b'{"text": "", "bind": {"a b": 1}}',
        b'{"text": "", "limits": {"a": 1}}', b'{"text": "SELECT", "paused": 1}',
    ],
)  # fmt: skip
def test_hostile_json_is_refused_in_order(server: Served, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = server.http.put("/v1/queries/rise", content=body, headers=headers)
    assert answer.status_code in (400, 413, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("text", ["(" * 20_000, "{" * 20_000, "SELECT " * 20_000, "\x00", "!" * 9])
def test_hostile_queries_are_refused_in_order(server: Served, text: str) -> None:
    assert server.put("rise", text).status_code in (400, 422)
    nested = RISE.replace("?p2 > ?p1", "(" * 3000 + "?p2 > ?p1" + ")" * 3000)
    assert server.put("rise", nested).status_code in (201, 422)


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/trig", b"@prefix : <" + b"a" * 100_000),
        ("application/trig", b"<a> <b> (" * 20_000),
        ("text/turtle", b"<a> <b> [" * 20_000),
        ("application/n-quads", b"\x00" * 1000),
        ("application/ld+json", b'{"@id":' * 20_000),
        ("application/x-jelly-rdf", b"\xff" * 1000),
        ("application/rdf+xml", b"<a>" * 20_000),
        ("application/rdf+xml", b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "' + b"&a;" * 1000
         + b'">]><a>&b;</a>'),
        ("application/rdf+xml", b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
            b'<!ENTITY %b "%b">' % (b"b" * n, (b"&" + (b"b" * (n - 1) or b"a") + b";") * 9)
            for n in range(1, 11)) + b"]><a>&bbbbbbbbbb;</a>"),
        ("application/ld+json", b'{"@context":' + b'{"a":{"@id":"u:a","@context":' * 3000
         + b"{}" + b"}}" * 3000 + b"}"),
        ("application/json", b'[{"id":"u:a","type":"T","a":' + b"[" * 100_000),
        ("application/x-ndjson", b'{"@list":[' * 20_000),
    ],
)  # fmt: skip
def test_malformed_rdf_is_refused_in_order(server: Served, media_type: str, body: bytes) -> None:
    server.put("rise")
    for path, method in (("/v1/streams/trades/events", "POST"), ("/v1/kb/http://e.org/g", "PUT")):
        answer = server.http.request(
            method, path, content=body, headers={"Content-Type": media_type}
        )
        assert answer.status_code in (400, 415), (path, answer.text)
    assert server.push((1, 10)).status_code == 202


# ------------------------------------------------------------------ what comes out


def test_no_stack_trace_and_no_path_comes_out(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("spaseq.server.query_routes.describe", fail)
    server.put("rise")
    answer = server.http.get("/v1/queries/rise")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "secret detail" in caplog.text
    broken = server.http.put(
        "/v1/kb/http://e.org/g", content="<", headers={"Content-Type": "text/turtle"}
    )
    assert str(server.folder) not in broken.text


def test_changes_and_refusals_are_in_the_audit_log(
    guarded: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "spaseq.server.audit")
    guarded.put("rise", headers={**SPARQL, **bearer(MANAGE)})
    guarded.http.delete("/v1/queries/rise", headers=bearer(READ))
    guarded.http.delete("/v1/queries/rise", headers=bearer(MANAGE))
    lines = [json.loads(record.message) for record in caplog.records]
    assert [(one.get("user"), one["method"], one["status"]) for one in lines] == [
        ("chief", "PUT", 201), (None, "DELETE", 403), ("chief", "DELETE", 204),
    ]  # fmt: skip
    assert not any(token in caplog.text for token in (READ, MANAGE))


def test_encrypted_connections(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        capture_output=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with served(tmp_path / "state", certificate=str(certificate), key=str(key)) as server:
        assert server.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{server.url}/healthz", verify=trusted).text == "ok\n"


def test_the_command_refuses_what_is_not_protected() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "spaseq", "serve", "--listen", "0.0.0.0:0"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "beyond loopback, a token is needed" in done.stderr
