"""A client of paho-mqtt that reads many packets with one system call.

paho-mqtt reads the first byte of a packet, its length and the rest with separate calls, and waits
with `select` before each packet. Each of these calls releases the interpreter's lock, so at 10,000
messages/s the client falls behind while the run decodes and matches. `BufferedSocket` reads all
available bytes at once, and serves the packets from its buffer.

Nagle's algorithm holds small packets back until the peer has acknowledged earlier ones, and Linux
delays acknowledgements by up to 40 ms. Mosquitto uses Nagle's algorithm by default. The socket
therefore acknowledges immediately after each read, and turns the algorithm off for its own packets.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

from spaseq.live.tls import untrusted

READ_BYTES = 1 << 16
MAX_PACKETS = 1000
"""Packets handled before the client writes and checks its timers."""
_QUICK_ACKNOWLEDGEMENT: int | None = getattr(socket, "TCP_QUICKACK", None)


class BufferedSocket:
    """A socket that reads ahead.

    Args:
        plain: The socket of a connection, which may use TLS. All other methods are those of this
        socket.
    """

    def __init__(self, plain: Any):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._plain = plain
        self._read = b""
        self._at = 0

    def recv(self, size: int) -> bytes:
        """At most `size` bytes; none at the end of the connection."""
        at = self._at
        if at == len(self._read):
            self._read, self._at, at = self._plain.recv(READ_BYTES), 0, 0
            if _QUICK_ACKNOWLEDGEMENT is not None:
                # Linux resets this option. A connection that has just ended may refuse it.
                with suppress(OSError):
                    self._plain.setsockopt(socket.IPPROTO_TCP, _QUICK_ACKNOWLEDGEMENT, 1)
        self._at = min(at + size, len(self._read))
        return self._read[at : self._at]

    def pending(self) -> int:
        """The bytes that `recv` returns without waiting; the client does not wait for others."""
        decrypted = getattr(self._plain, "pending", None)
        return len(self._read) - self._at + (0 if decrypted is None else decrypted())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def buffered_client(mqtt: Any) -> Any:
    """The class of clients of the module `paho.mqtt.client`, with buffered sockets."""

    class BufferedClient(mqtt.Client):  # type: ignore[misc]
        refused: str | None = None
        """The message for a certificate that is not trusted."""

        def _create_socket(self) -> BufferedSocket:
            try:
                return BufferedSocket(super()._create_socket())
            except OSError as error:  # `on_connect_fail` does not get it
                self.refused = untrusted(error)
                raise

        def loop_read(self, max_packets: int = 1) -> Any:
            for _ in range(MAX_PACKETS):
                result = super().loop_read(max_packets)
                connection = self.socket()
                if result or connection is None or not connection.pending():
                    break
            return result

    return BufferedClient
