"""Servers for tests: in this process, in a thread, at a free port of the loopback."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from spaseq.server.listener import Listener
from spaseq.server.serve import Options, context_for, listen

RISE = """\
PREFIX : <http://example.org/>
SELECT ?company ?p1 ?p2
WITHIN 10 SECONDS
FROM STREAM trades <http://example.org/trades>
WHERE {
  SEQ(A : B)
  DEFINE GPM A ON trades { ?company :price ?p1 }
  DEFINE GPM B ON trades { ?company :price ?p2 . FILTER(?p2 > ?p1) }
}
"""
TRIG = {"Content-Type": "application/trig"}
SPARQL = {"Content-Type": "application/sparql-query"}


def trade(time: float, price: int, name: str = "") -> bytes:
    """An event in TriG."""
    name = name or f"t{time}".replace(".", "_")
    return (
        "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> .\n"
        f":{name} prov:generatedAtTime {time} . :{name} {{ :eBay :price {price} }}\n"
    ).encode()


def trades(*pairs: tuple[float, int]) -> bytes:
    """Several events in TriG."""
    return b"".join(trade(*pair) for pair in pairs)


class Served:
    """A running server and a client of it."""

    def __init__(self, folder: Path, options: Options, waits: bool = True):
        self.folder = folder
        self.logged: list[str] = []
        log = self.logged.append
        self.context = context_for(options, folder, log)
        self._socket = listen(options.host, options.port)
        self._listener = Listener(self.context, options, log)
        self._thread = threading.Thread(
            target=self._listener.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._listener.url:
            assert self._thread.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.005)
        while waits and not self.context.engine.has_replayed:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        self.url = self._listener.url
        self.http = httpx.Client(base_url=self.url, timeout=30)

    @property
    def connections(self) -> list[Any]:
        """The open connections, as protocols of asyncio."""
        return list(self._listener.server_state.connections)

    def wait(self) -> None:
        """Wait until the server has ended by itself."""
        self._thread.join(30)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        self.http.close()
        self._listener.should_exit = True
        self._thread.join(30)
        self.context.engine.close()
        self._socket.close()
        assert not self._thread.is_alive()

    # ------------------------------------------------------------ calls

    def put(self, name: str, text: str = RISE, **options: Any) -> httpx.Response:
        return self.http.put(
            f"/v1/queries/{name}", content=text, headers=options.pop("headers", SPARQL), **options
        )

    def push(self, *pairs: tuple[float, int], stream: str = "trades") -> httpx.Response:
        return self.http.post(f"/v1/streams/{stream}/events", content=trades(*pairs), headers=TRIG)

    def lines(self, name: str, **parameters: Any) -> list[Any]:
        """What the replay buffer of a query has, as NDJSON."""
        import json

        answer = self.http.get(
            f"/v1/queries/{name}/matches",
            params={"follow": "false", "from": "oldest", **parameters},
            headers={"Accept": "application/x-ndjson"},
        )
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines() if line]

    def found(self, name: str = "rise") -> list[tuple[int, int]]:
        """The prices of the matches in the replay buffer."""
        return [
            (int(one["bindings"]["p1"]["value"]), int(one["bindings"]["p2"]["value"]))
            for one in self.lines(name)
            if "bindings" in one
        ]


@contextmanager
def served(
    folder: Path, options: Options | None = None, waits: bool = True, **changes: Any
) -> Iterator[Served]:
    """A server that keeps its state in a folder and lets clients change queries.

    Args:
        folder: The folder.
        options: The options of `spaseq serve`.
        waits: Whether to wait until it has read its journal.
        changes: Further options.
    """
    options = replace(options or Options(), port=0, state=str(folder), manages=True, **changes)
    server = Served(folder, options, waits)
    try:
        yield server
    finally:
        server.stop()
