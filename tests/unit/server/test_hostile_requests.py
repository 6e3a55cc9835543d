"""What a client can send costs at most a line of the log, and never a traceback."""

from __future__ import annotations

import io
import logging
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served, served

from spaseq.server.serve import _LogFormat

LOGGERS = ("spaseq.server", "uvicorn", "asyncio")
UPGRADE = (
    "GET /v1/queries/rise/matches HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n"
)


def frame(kind: int, payload: bytes, last: bool = True) -> bytes:
    """A frame of a WebSocket, with a mask of zeros."""
    return bytes([0x80 * last | kind, 0x80 | len(payload), 0, 0, 0, 0]) + payload


FRAMES = {
    "not UTF-8": frame(1, b"\xff\xfe"),
    "fragments that are not UTF-8": frame(1, b"\xff", False) + frame(0, b"\xff"),
    "a reason that is not UTF-8": frame(8, b"\x03\xe8\xff\xff"),
    "half a code": frame(8, b"\x03"),
    "no code": frame(8, b"\x00\x01"),
    "reserved bits": bytes([0xF1, 0x80, 0, 0, 0, 0]),
    "no mask": b"\x81\x02ab",
    "a continuation of nothing": frame(0, b"x"),
    "an unknown kind": frame(3, b"x"),
    "a frame of 9 exabytes": bytes([0x82, 0xFF]) + b"\x7f" * 8,
    "text": frame(1, b"hello"),
    "bytes": frame(2, b"\xff"),
}
HEAD = "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{rest}"
REQUESTS = {
    "a body cut off": ("POST", "/v1/check", "Content-Length: 9\r\n\r\nx"),
    "a graph cut off": (
        "PUT", "/v1/kb/http:%2F%2Fe.org%2Fg",
        "Content-Type: text/turtle\r\nContent-Length: 99\r\n\r\n<a:",
    ),
    "no size of a chunk": ("POST", "/v1/check", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "a chunk cut off": ("POST", "/v1/check", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"),
    "a path with NUL": ("GET", "/\x00", "\r\n"),
    "a name that is not UTF-8": ("GET", "/v1/queries/%ff", "Authorization: \xff\r\n\r\n"),
    "parameters that are not UTF-8": ("GET", "/v1/queries?limit=%ff&offset=%00", "\r\n"),
    "an IRI that is not UTF-8": ("GET", "/v1/kb/%00%ff", "\r\n"),
    "a wrong Accept": ("GET", "/v1/queries/rise/explain", "Accept: ;;q=,\xff;q=nan\r\n\r\n"),
    "a wrong key": (
        "POST", "/v1/streams/trades/events", "Idempotency-Key: \xff\xfe\r\n"
        "Content-Type: application/n-quads\r\nContent-Length: 1\r\n\r\n\n",
    ),
    "another upgrade": (
        "POST", "/v1/check", "Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n",
    ),
    "no such method": ("BREW", "/v1/queries", "\r\n"),
}  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        running.put("rise")
        yield running


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What the server logs as `spaseq serve` does."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(_LogFormat(False))
    handler.setLevel(logging.WARNING)
    for name in LOGGERS:
        logging.getLogger(name).addHandler(handler)
    yield text
    for name in LOGGERS:
        logging.getLogger(name).removeHandler(handler)


def send(server: Served, *parts: bytes) -> bytes:
    """What the server answers to some bytes, after which the client leaves."""
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    answer = b""
    with socket.create_connection((host, int(port)), 10) as connection:
        for part in parts:
            connection.sendall(part)
            connection.settimeout(0.3)
            try:
                answer += connection.recv(1 << 16)
            except TimeoutError:
                pass
            except ConnectionError:
                break
    return answer


def check(server: Served, logged: io.StringIO) -> None:
    assert server.http.get("/healthz").text == "ok\n"
    text = logged.getvalue()
    assert "Traceback" not in text, text
    assert text.count("\n") <= 1, text
    logged.seek(0)
    logged.truncate()


def test_frames(server: Served, logged: io.StringIO) -> None:
    head = UPGRADE.format(host=server.url.removeprefix("http://")).encode()
    for data in FRAMES.values():
        assert send(server, head, data).startswith(b"HTTP/1.1 101 ")
        check(server, logged)


def test_requests(server: Served, logged: io.StringIO) -> None:
    host = server.url.removeprefix("http://")
    for method, path, rest in REQUESTS.values():
        text = HEAD.format(method=method, path=path, host=host, rest=rest)
        answer = send(server, text.encode("latin-1"))
        assert b" 500 " not in answer
        check(server, logged)


def test_damaged_requests(server: Served, logged: io.StringIO) -> None:
    """Requests and frames with some bytes changed, cut out or repeated."""
    host = server.url.removeprefix("http://")
    wholes = [
        (HEAD.format(method=m, path=p, host=host, rest=r).encode("latin-1"),)
        for m, p, r in REQUESTS.values()
    ]
    head = UPGRADE.format(host=host).encode()
    wholes += [(head, data) for data in FRAMES.values()]
    draw = random.Random(49)
    for _ in range(40):
        parts = [bytearray(part) for part in draw.choice(wholes)]
        damaged = draw.choice(parts)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(damaged) + 1)
            match draw.randrange(3):
                case 0:
                    damaged[at : at + 1] = bytes([draw.randrange(256)])
                case 1:
                    del damaged[at : at + draw.randint(1, 8)]
                case _:
                    damaged[at:at] = damaged[at : at + 8]
        answer = send(server, *map(bytes, parts))
        assert b" 500 " not in answer
        check(server, logged)
