"""Small HTTP and WebSocket servers of the tests, on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from servers import PATIENCE, Certificates, needs


def _context(tls: Certificates) -> ssl.SSLContext:
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.load_cert_chain(tls.certificate, tls.key)
    return made


@contextmanager
def http_server(
    handle: Callable[[BaseHTTPRequestHandler], None], tls: Certificates | None = None
) -> Iterator[str]:
    """A server that passes each request to `handle`; its address is returned."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            handle(self)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        # The handshake is made by the thread of the connection, and may fail.
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = _context(tls).wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


def answer(request: BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str) -> None:
    """A whole response; `content_type` is the header `Content-Type`, and so on."""
    request.send_response(status)
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


class EventFeed:
    """A server of Server-Sent Events. It sends all its events to each new connection."""

    def __init__(self, ids: bool = True, headers: dict[str, str] | None = None):
        self.events: list[bytes] = []
        self.asked: list[str | None] = []
        """The header Last-Event-ID of each connection."""
        self.seen: list[dict[str, str]] = []
        self.cut_after: list[int] = []
        """After how many events to close the next connections."""
        self._ids = ids
        self._headers = headers or {}
        self._changed = threading.Condition()
        self.closed = False

    def add(self, texts: Sequence[bytes]) -> None:
        """Send events to those who listen."""
        with self._changed:
            self.events.extend(texts)
            self._changed.notify_all()

    def close(self) -> None:
        """End all connections."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        last = request.headers.get("Last-Event-ID")
        # Computed before `asked` shows the request, because tests add events as soon as it does.
        at = int(last) if last else 0 if self._ids else len(self.events)
        self.asked.append(last)
        self.seen.append(dict(request.headers))
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream; charset=utf-8")
        request.send_header("Connection", "close")
        for name, value in self._headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.close_connection = True
        cut = self.cut_after.pop(0) if self.cut_after else None
        try:
            request.wfile.write(b"retry: 10\n: hello\n\n")
            sent = 0
            while not self.closed:
                with self._changed:
                    if at >= len(self.events):
                        self._changed.wait(0.05)
                        continue
                    text = self.events[at]
                at += 1
                data = b"".join(b"data: " + line + b"\n" for line in text.rstrip().split(b"\n"))
                event = (b"id: %d\n" % at if self._ids else b"") + data + b"\n"
                if cut is not None and sent == cut:
                    request.wfile.write(event[: len(event) // 2])
                    return
                request.wfile.write(event)
                request.wfile.flush()
                sent += 1
        except OSError:
            pass


@contextmanager
def event_feed(feed: EventFeed, tls: Certificates | None = None) -> Iterator[str]:
    """A server of events; its URL is returned."""
    with http_server(feed.handle, tls) as address:
        try:
            yield f"{address}/events"
        finally:
            feed.close()


class Sockets:
    """A WebSocket server that sends what it is given to everyone who is connected."""

    def __init__(self) -> None:
        self.connections: list[Any] = []
        self.received: list[str] = []
        self.headers: list[dict[str, str]] = []

    def handle(self, connection: Any) -> None:
        self.headers.append(dict(connection.request.headers.raw_items()))
        self.connections.append(connection)
        try:
            for message in connection:
                self.received.append(message)
        except Exception:
            pass
        finally:
            if connection in self.connections:
                self.connections.remove(connection)

    def send(self, texts: Sequence[str | bytes]) -> None:
        """Send messages to everyone."""
        for connection in list(self.connections):
            for text in texts:
                connection.send(text)

    def wait_for_connection(self) -> None:
        """Wait until someone is connected."""
        until = time.monotonic() + PATIENCE
        while not self.connections:
            assert time.monotonic() < until
            time.sleep(0.01)

    def cut(self) -> None:
        """Break all connections."""
        for connection in list(self.connections):
            self.connections.remove(connection)
            connection.socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def websocket_server(sockets: Sockets, tls: Certificates | None = None) -> Iterator[str]:
    """A WebSocket server; its URL is returned."""
    needs("websockets")
    from websockets.sync.server import serve

    context, scheme = (None, "ws") if tls is None else (_context(tls), "wss")
    with serve(sockets.handle, "127.0.0.1", 0, ssl=context) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"{scheme}://127.0.0.1:{server.socket.getsockname()[1]}/feed"
        finally:
            server.shutdown()
            thread.join(PATIENCE)


class EventStream:
    """A Linked Data Event Stream of pages with `size` members; the last page may change."""

    def __init__(self, size: int = 3):
        self.members: list[tuple[int, str]] = []
        """(second, Turtle of a member without its subject)."""
        self.size = size
        self.asked: list[str] = []
        self.root = "/stream"
        self.more = ""
        """Further Turtle of the first page."""
        self.fail = 0
        """How many of the next requests fail."""

    def add(self, second: int, text: str) -> None:
        """Append a member."""
        self.members.append((second, text))

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if self.fail:
            self.fail -= 1
            answer(request, 503)
            return
        prefixes = (
            "@prefix tree: <https://w3id.org/tree#> . @prefix ldes: <https://w3id.org/ldes#> .\n"
            "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix : <http://example.org/> .\n"
            f"<{self.root}#all> a ldes:EventStream ; ldes:timestampPath :at .\n"
        )
        pages = range(0, max(len(self.members), 1), self.size)
        if request.path == self.root:
            text = f"<{self.root}#all> tree:view <{self.root}> .\n{self.more}\n"
            # The newest page first: only the bounds say the order.
            for number in reversed(pages):
                least = _time(self.members[number][0]) if self.members else _time(0)
                text += (
                    f"<{self.root}> tree:relation [ a tree:GreaterThanOrEqualToRelation ;\n"
                    f'  tree:path :at ; tree:value "{least}"^^xsd:dateTime ;\n'
                    f"  tree:node <{self.root}/{number}> ] .\n"
                )
                if number + self.size < len(self.members):
                    most = _time(self.members[number + self.size - 1][0])
                    text += (
                        f"<{self.root}> tree:relation [ a tree:LessThanOrEqualToRelation ;\n"
                        f'  tree:path :at ; tree:value "{most}"^^xsd:dateTime ;\n'
                        f"  tree:node <{self.root}/{number}> ] .\n"
                    )
            control = "max-age=0"
        else:
            first = int(request.path.rpartition("/")[2])
            text = ""
            for second, body in reversed(self.members[first : first + self.size]):
                name = f"<{self.root}/member/{second}>"
                text += f"<{self.root}#all> tree:member {name} .\n"
                text += f'{name} :at "{_time(second)}"^^xsd:dateTime ; {body} .\n'
            control = "immutable" if first + self.size < len(self.members) else "max-age=0"
        tag = f'"{hash(text)}"'
        if request.headers.get("If-None-Match") == tag:
            answer(request, 304, cache_control=control, etag=tag)
            return
        body_ = (prefixes + text).encode()
        answer(request, 200, body_, content_type="text/turtle", cache_control=control, etag=tag)


def _time(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
