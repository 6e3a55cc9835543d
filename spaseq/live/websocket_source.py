"""A WebSocket → messages: each message of the server is one.

A broken connection is re-established. WebSockets do not repeat messages, so those that were sent in
the meantime are missing, which is reported.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from spaseq.errors import InputError
from spaseq.live.addresses import client
from spaseq.live.protocols import Chunk, Position
from spaseq.live.receiving import Pauses, together
from spaseq.live.tls import untrusted
from spaseq.live.web import web_address

AT_ONCE = 1000
CONNECT_SECONDS = 10.0
MAX_SIZE = 1 << 24


class WebSocketSource:
    """Reads one WebSocket.

    Args:
        url: `ws:` or `wss:`, with the options `type` (the media type of messages), `send` (a text
            that is sent first, such as a subscription), `max-size` (bytes of a message, 16 MiB),
            `token-env` and `ca` in the fragment.
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL, or without the client.
    """

    messages = True
    replays = False

    def __init__(self, url: str, log: Callable[[str], None]):
        self._address = web_address(url, ("type", "send", "max-size"))
        options = self._address.parts.options
        self._type = options.get("type")
        self._first = options.get("send")
        self._max_size = int(self._address.parts.number("max-size", MAX_SIZE, 1))
        self._websockets = client("websockets.sync.client", "websockets", "websocket", "ws")
        self._exceptions = client("websockets.exceptions", "websockets", "websocket", "ws")
        self._log = log
        self._open = contextlib.ExitStack()
        """Closes the connection."""
        self._socket: Any = None
        self._count = 0
        self._pauses = Pauses()
        self._next = 0.0
        self._is_down = False

    def open(self, position: Position | None) -> None:
        self._count = 0 if position is None else position["count"]

    def _connect(self) -> None:
        """Connect; a failure is reported once, and the attempt is repeated later."""
        shown, parts = self._address.shown, urlsplit(self._address.url)
        port = parts.port or (443 if parts.scheme == "wss" else 80)
        try:
            # With a socket that is passed in, the client follows no redirections.
            plain = socket.create_connection((parts.hostname or "", port), CONNECT_SECONDS)
            try:
                connected = self._websockets.connect(
                    self._address.url,
                    sock=plain,
                    proxy=None,
                    ssl=self._address.trusted,
                    additional_headers=dict(self._address.headers),
                    user_agent_header="spaseq",
                    open_timeout=CONNECT_SECONDS,
                    max_size=self._max_size,
                )
                self._socket = self._open.enter_context(connected)
            except BaseException:
                plain.close()
                raise
            if self._first is not None:
                self._socket.send(self._first)
        except self._exceptions.InvalidStatus as error:
            status = error.response.status_code
            if status < 500 and status not in (408, 425, 429):
                raise InputError(
                    f"it answered {status} {error.response.reason_phrase}", shown
                ) from error
            self._lost(f"it answered {status}")
        except OSError as error:  # before ValueError, which is also a base of the error for an
            # untrusted certificate
            refused = untrusted(error)
            if refused is not None:
                raise InputError(refused, shown) from error
            self._lost(str(error) or type(error).__name__)
        except (
            self._exceptions.InvalidURI,
            self._exceptions.SecurityError,
            ValueError,
        ) as error:
            raise InputError(f"it redirects, which is not followed: {error}", shown) from error
        except self._exceptions.WebSocketException as error:
            self._lost(str(error) or type(error).__name__)
        else:
            self._pauses.reset()
            if self._is_down:
                self._is_down = False
                self._log(f"{shown}: connected again")

    def _lost(self, said: str) -> None:
        self.close()
        self._next = time.monotonic() + self._pauses.following()
        if not self._is_down:
            self._is_down = True
            self._log(f"{self._address.shown}: no connection ({said}); messages sent meanwhile "
                      "are missing; connecting again")  # fmt: skip

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, or None."""
        return "there is no connection" if self._is_down else None

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        if self._socket is None:
            left = self._next - time.monotonic()
            if left > 0:
                time.sleep(min(left, timeout))
                return ()
            self._connect()
            return ()
        found: list[Chunk] = []
        try:
            while len(found) < AT_ONCE:
                data = self._socket.recv(timeout=0 if found else timeout)
                self._count += 1
                text = data.encode() if isinstance(data, str) else data
                found.append(Chunk(text, {"count": self._count}, media_type=self._type))
        except TimeoutError:
            pass
        except self._exceptions.ConnectionClosed as error:
            if error.sent is not None and error.sent.code == 1009:
                raise InputError(
                    f"a message of more than {self._max_size} bytes (#max-size=)",
                    self._address.shown,
                ) from error
            self._lost(str(error))
        return together(found)

    def acknowledge(self, position: Position) -> None:
        """Do nothing, since a WebSocket keeps nothing."""

    def close(self) -> None:
        with contextlib.suppress(OSError, self._exceptions.WebSocketException):
            self._open.close()
        self._socket = None
