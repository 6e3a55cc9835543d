"""The buffered socket of the MQTT client."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from spaseq.live.mqtt_connection import BufferedSocket


class Counting:
    """A connected socket that counts its reads."""

    def __init__(self, plain: socket.socket):
        self._plain = plain
        self.reads = 0

    def recv(self, size: int) -> bytes:
        self.reads += 1
        return self._plain.recv(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Counting]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        writing = socket.create_connection(listener.getsockname())
        reading, _ = listener.accept()
    with writing, reading:
        yield writing, Counting(reading)


def test_one_read_serves_many_packets(ends: tuple[socket.socket, Counting]) -> None:
    writing, plain = ends
    buffered = BufferedSocket(plain)
    packets = [bytes([0x30, number % 100]) + b"x" * (number % 100) for number in range(1000)]
    writing.sendall(b"".join(packets))
    for packet in packets:
        assert buffered.recv(1) == packet[:1]
        found = buffered.recv(1)
        while len(found) < len(packet) - 1:
            found += buffered.recv(len(packet) - 1 - len(found))
        assert found == packet[1:]
    assert plain.reads < 100
    assert buffered.pending() == 0


def test_the_end_of_a_connection(ends: tuple[socket.socket, Counting]) -> None:
    writing, plain = ends
    buffered = BufferedSocket(plain)
    writing.sendall(b"abc")
    writing.close()
    assert buffered.recv(2) == b"ab"
    assert buffered.pending() == 1
    assert buffered.recv(5) == b"c"
    assert buffered.recv(1) == b""
    assert buffered.pending() == 0


def test_nothing_has_arrived(ends: tuple[socket.socket, Counting]) -> None:
    _, plain = ends
    buffered = BufferedSocket(plain)
    buffered.setblocking(False)
    with pytest.raises(BlockingIOError):
        buffered.recv(1)
