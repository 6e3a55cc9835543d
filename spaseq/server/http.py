"""The HTTP protocol with features that uvicorn lacks: limits on slow request heads, on dead peers,
and on connections (new connections are refused, not requests on existing ones), and outlets, which
write endless responses without a task.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""Seconds within which the head of a request must arrive."""
DEAD_SECONDS = 60
"""Seconds after which a peer that acknowledges nothing is disconnected."""


FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 0\r\n\r\n"
)
"""The response to a connection beyond the limit."""


OUTLET = "spaseq.outlet"
"""The extension of the ASGI scope that has the outlet of a connection."""


class ConnectionOutlet:
    """A connection whose response has begun and is chunked (RFC 9112, section 7.1).

    Its chunks are written between those of ASGI messages, so the task of the response must not be
    writing one.
    """

    def __init__(self, protocol: H11Protocol):
        self._transport, self._flow = protocol.transport, protocol.flow

    @property
    def takes_more(self) -> bool:
        return not self._flow.write_paused and not self._transport.is_closing()

    def frame(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data)

    def write(self, framed: bytes) -> None:
        self._transport.write(framed)


def outlet_of(scope: Mapping[str, Any]) -> ConnectionOutlet | None:
    """The outlet of a request; None if its response is not chunked, or has no body."""
    is_chunked = scope["http_version"] == "1.1" and scope["method"] != "HEAD"
    outlet: ConnectionOutlet | None = scope.get("extensions", {}).get(OUTLET)
    return outlet if is_chunked else None


class LimitedProtocol(H11Protocol):
    """A connection whose requests must begin in time."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        # With one more, uvicorn would refuse the requests of all connections.
        most = self.limit_concurrency
        self._is_refused = most is not None and len(self.connections) >= most - 1
        if self._is_refused:
            transport.write(FULL)
            transport.close()
            return
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_SECONDS * 1000)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._head_timer is None:
            self._await_head()

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not None and "extensions" not in self.scope:
            # The task of the request has not begun yet.
            extensions: dict[str, Any] = {OUTLET: ConnectionOutlet(self)}
            self.scope["extensions"] = extensions

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_refused:
            return
        self._stop_timer()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        """Close the connection, since the head of a request did not arrive in time."""
        self._head_timer = None
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.abort()
