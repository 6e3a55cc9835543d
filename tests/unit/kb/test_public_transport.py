"""Requests to the address that was checked."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from spaseq import Endpoint
from spaseq.errors import EndpointError
from spaseq.kb import public_transport
from spaseq.kb.client import Client

ANSWER = b'{"head": {"vars": ["s"]}, "results": {"bindings": []}}'


def test_the_connection_goes_to_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    heads: list[bytes] = []

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            heads.append(connection.recv(1 << 16))
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/sparql-results+json\r\n"
                b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(ANSWER), ANSWER)
            )

    thread = threading.Thread(target=serve)
    thread.start()
    # Only the check knows the name, so a second look-up would fail.
    monkeypatch.setattr(public_transport, "public_address", lambda host: "127.0.0.1")
    port = listening.getsockname()[1]
    client = Client(Endpoint(f"http://data.invalid:{port}/sparql", public=True, attempts=1))
    assert client.rows("SELECT ?s {}", ["s"], 10) == []
    client.close()
    thread.join()
    listening.close()
    assert b"Host: data.invalid:%d\r\n" % port in heads[0]


@pytest.mark.parametrize("place", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1"])
def test_private_addresses_are_not_reached(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*given: Any, **more: Any) -> Any:
        return [(0, 0, 0, "", ("8.8.8.8", 0)), (0, 0, 0, "", (place, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    client = Client(Endpoint("http://data.invalid/sparql", public=True, attempts=1))
    with pytest.raises(EndpointError, match="no address, or a private one"):
        client.rows("SELECT ?s {}", ["s"], 10)
    client.close()
