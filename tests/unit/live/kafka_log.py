"""The committed records of a partition, from its log.

The broker of the tests keeps transactions open and closes them, but does not name the aborted ones
in its answers, so clients cannot leave them out. Its log has the control records of Kafka's
protocol (KIP-98), which say the same: a transactional record counts if the next control record of
its producer is a commit.
"""

from __future__ import annotations

import socket
import struct

PATIENCE = 10.0


def committed(address: str, topic: str, partition: int = 0) -> tuple[list[bytes], int]:
    """The values of the committed records, and the number of aborted ones."""
    found: list[bytes] = []
    open_: dict[int, list[bytes]] = {}
    aborted, offset = 0, 0
    while batches := _fetched(address, topic, partition, offset):
        at = 0
        while at + 61 <= len(batches):
            base, length = struct.unpack_from(">qi", batches, at)
            attributes, last = struct.unpack_from(">hi", batches, at + 21)
            (producer,) = struct.unpack_from(">q", batches, at + 43)
            (count,) = struct.unpack_from(">i", batches, at + 57)
            assert attributes & 7 == 0, "the test does not read compressed records"
            records = _records(batches[at + 61 : at + 12 + length], count)
            if attributes & 0x20:
                (kind,) = struct.unpack_from(">h", records[0][0], 2)
                done = open_.pop(producer, [])
                if kind == 1:
                    found += done
                else:
                    aborted += len(done)
            elif attributes & 0x10:
                open_.setdefault(producer, []).extend(value for _, value in records)
            else:
                found += [value for _, value in records]
            at += 12 + length
            offset = base + last + 1
    return found, aborted


def _records(data: bytes, count: int) -> list[tuple[bytes, bytes]]:
    """(key, value) of the records of a batch."""
    found, at = [], 0
    for _ in range(count):
        length, at = _varint(data, at)
        end = at + length
        at += 1
        _, at = _varint(data, at)
        _, at = _varint(data, at)
        parts = []
        for _ in range(2):
            size, at = _varint(data, at)
            parts.append(data[at : at + max(size, 0)])
            at += max(size, 0)
        found.append((parts[0], parts[1]))
        at = end
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _fetched(address: str, topic: str, partition: int, offset: int) -> bytes:
    """The record batches from an offset on, by version 4 of the request Fetch."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, 100, 1, 1 << 26, 0)
    body += struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiqi", 1, partition, offset, 1 << 26)
    head = struct.pack(">hhih4s", 1, 4, 7, 4, b"test")
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as broker:
        broker.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (size,) = struct.unpack(">i", _exactly(broker, 4))
        answer = _exactly(broker, size)
    at = 4 + 4 + 4  # correlation, throttle time, count of topics
    (length,) = struct.unpack_from(">h", answer, at)
    at += 2 + length + 4
    _, error, _, _, aborted = struct.unpack_from(">ihqqi", answer, at)
    assert error == 0, f"the broker answers with error {error}"
    at += 26 + 16 * max(aborted, 0)
    (size,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + max(size, 0)]


def _exactly(broker: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = broker.recv(size - len(data))
        assert part, "the broker closed the connection"
        data += part
    return data
