"""SPARQL endpoints for tests: a real server, and a server with configurable faults.

The real ones are Oxigraph's, started once and filled with named graphs, where each graph is an
endpoint of its own by `default-graph-uri`; and rdflib's, which has all its graphs from the start.
The one that misbehaves passes requests on to a real one, or does not.
"""

from __future__ import annotations

import itertools
import random
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, quote

import httpx
import pyoxigraph as ox

from spaseq.rdf.event import Fact

_graphs = itertools.count()


def free_port() -> int:
    """A port for a server to come: below those that the system gives to whoever asks for any."""
    for port in random.SystemRandom().sample(range(10_000, 32_768), 100):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("of 100 ports none was free")


@contextmanager
def nobody() -> Iterator[str]:
    """A URL at which no server listens or can listen, since its port is in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


class RealServer:
    """Oxigraph's server, in memory."""

    def __init__(self, url: str):
        self.url = url

    def graph(self, facts: Iterable[Fact] | str) -> str:
        """The URL of an endpoint that has these triples (or this Turtle) for default graph."""
        name = f"http://example.org/graph/{next(_graphs)}"
        self.put(name, facts)
        return f"{self.url}/query?default-graph-uri={quote(name, safe='')}"

    def put(self, name: str, facts: Iterable[Fact] | str) -> None:
        """Give a named graph its triples."""
        if not isinstance(facts, str):
            triples = [ox.Triple(*fact) for fact in facts]  # type: ignore[arg-type]
            facts = ox.serialize(triples, format=ox.RdfFormat.TURTLE).decode()
        answer = httpx.put(
            f"{self.url}/store",
            params={"graph": name},
            content=facts.encode(),
            headers={"Content-Type": "text/turtle"},
        )
        assert answer.is_success, answer.text


@contextmanager
def real_server() -> Iterator[RealServer]:
    """The server of the `oxigraph` package, up and running."""
    program = Path(sysconfig.get_path("scripts")) / "oxigraph"
    place = f"127.0.0.1:{free_port()}"
    with subprocess.Popen(
        [program, "serve", "--bind", place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait(f"http://{place}/", process)
            yield RealServer(f"http://{place}")
        finally:
            process.kill()


class RdflibServer:
    """rdflib-endpoint over the N-Triples files of a folder; can be killed and started again."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Up and running."""
        program = Path(__file__).with_name("rdflib_server.py")
        self._process = subprocess.Popen(
            [sys.executable, program, str(self._port), str(self._folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _wait(f"http://127.0.0.1:{self._port}/", self._process)

    def kill(self) -> None:
        """Gone, whatever it was doing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def graph(self, name: str) -> str:
        """The URL of the endpoint over a file of the folder."""
        return f"http://127.0.0.1:{self._port}/{name}/"


@contextmanager
def rdflib_server(folder: Path) -> Iterator[RdflibServer]:
    """The server of the package `rdflib-endpoint`."""
    server = RdflibServer(folder)
    try:
        yield server
    finally:
        server.kill()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        assert process.poll() is None, "the server did not start"
        try:
            httpx.get(url)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server did not answer")


class Request(BaseHTTPRequestHandler):
    """One request to a `Misbehaving` server; see there."""

    server: Misbehaving

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.form = parse_qs(body.decode())
        self.server.queries.append(self.form["query"][0])
        self.server.seen.append(dict(self.headers.items()))
        todo = self.server.todo
        with suppress(ConnectionError):  # the client did not wait
            (todo.pop(0) if todo else self.server.otherwise)(self)

    def reply(self, body: bytes, kind: str, status: int = 200, **headers: str) -> None:
        """An answer as it should be."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def ask_real_one(self) -> httpx.Response:
        """What the real server answers."""
        assert self.server.behind is not None
        return httpx.post(
            self.server.behind, data=self.form, headers={"Accept": self.headers["Accept"]}
        )

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


Behaviour = Callable[[Request], None]


class Misbehaving(ThreadingHTTPServer):
    """Does what it is told for each request in turn (`todo`), then passes the rest on.

    `queries` and `seen` are the queries and the headers of the requests so far.
    """

    daemon_threads = True

    def __init__(self, behind: str | None = None):
        super().__init__(("127.0.0.1", 0), Request)
        self.behind = behind
        self.todo: list[Behaviour] = []
        self.otherwise: Behaviour = passed_on
        self.queries: list[str] = []
        self.seen: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/sparql"


@contextmanager
def misbehaving(behind: str | None = None) -> Iterator[Misbehaving]:
    """A misbehaving server in front of a real one."""
    with Misbehaving(behind) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


# ------------------------------------------------------------------ behaviours


def passed_on(request: Request) -> None:
    answer = request.ask_real_one()
    request.reply(answer.content, answer.headers["Content-Type"], answer.status_code)


def busy(request: Request) -> None:
    request.reply(b"too many of you", "text/plain", 503)


def truncated(request: Request) -> None:
    answer = request.ask_real_one()
    half = answer.content[: len(answer.content) // 2]
    length = str(len(answer.content))
    request.reply(half, answer.headers["Content-Type"], length=length)


def cut_short(request: Request) -> None:
    """Half the answer, as if it were all."""
    answer = request.ask_real_one()
    request.reply(answer.content[: len(answer.content) // 2], answer.headers["Content-Type"])


def rubbish(request: Request) -> None:
    request.reply(b"<html><h1>Welcome</h1></html>", "text/html")


def garbled(request: Request) -> None:
    request.reply(b'{"head": {"vars": ["x"]}, 5', "application/sparql-results+json")


def killed(request: Request) -> None:
    """The connection ends without a word."""
    request.connection.shutdown(socket.SHUT_RDWR)
    request.close_connection = True


def slow(seconds: float) -> Behaviour:
    def answer(request: Request) -> None:
        time.sleep(seconds)
        passed_on(request)

    return answer


def dripping(request: Request) -> None:
    """A byte now and then: each in time, the whole never."""
    answer = request.ask_real_one()
    request.send_response(200)
    request.send_header("Content-Type", answer.headers["Content-Type"])
    request.end_headers()
    for place in range(len(answer.content)):
        request.wfile.write(answer.content[place : place + 1])
        request.wfile.flush()
        time.sleep(0.05)


def as_virtuoso(request: Request) -> None:
    """JSON as before SPARQL 1.1: `typed-literal`, and labels that are none."""
    text = request.ask_real_one().text
    old = text.replace('"type":"literal","value"', '"type":"typed-literal","value"')
    old = old.replace('"type":"bnode","value":"', '"type":"bnode","value":"nodeID://')
    request.reply(old.encode(), "application/sparql-results+json")


def as_xml(request: Request) -> None:
    """XML, whatever was asked for."""
    assert request.server.behind is not None
    accept = {"Accept": "application/sparql-results+xml"}
    answer = httpx.post(request.server.behind, data=request.form, headers=accept)
    request.reply(answer.content, answer.headers["Content-Type"])


def refused(status: int, **headers: str) -> Behaviour:
    def answer(request: Request) -> None:
        request.reply(b"no", "text/plain", status, **headers)

    return answer
