"""Latency from an event that is written to its match on standard output.

    python benchmarks/live/latency.py [--events 3000] [--rate 1000]
    python benchmarks/live/latency.py --events 30000 --rate 10000 --every 100

Writes events to a followed file (RDF Messages in N-Quads), an MQTT topic (Mosquitto, QoS 0) and a
WebSocket, at a steady rate, while a process runs a query that finds each of them, or each N-th one
(`--every`): at high rates this script could not read all matches in time. Beside it, the transport
alone: a thread that receives the same events. Prints medians and 99th percentiles.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "unit" / "live"))

from servers import mosquitto  # noqa: E402
from session_runs import EACH  # noqa: E402
from web_servers import Sockets, websocket_server  # noqa: E402

Send = Callable[[str], None]
WARM_UP = 100
"""The first events, which are not counted."""


def text_of(number: int, every: int = 1) -> str:
    """An event that has its number; the query finds each N-th one."""
    subject = f"<http://example.org/e/{number}>"
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    predicate = "other" if number % every else "value"
    return (
        f'{subject} <http://example.org/{predicate}> "{number}"^^{integer} .\n'
        f'{subject} <http://www.w3.org/ns/prov#generatedAtTime> "{number}"^^{integer} .\n'
    )


@contextmanager
def file(folder: Path, heard: dict[int, float]) -> Iterator[tuple[str, Sequence[str], Send]]:
    path = folder / "stream.nq"
    path.touch()
    stop = threading.Event()

    def watch() -> None:
        with open(path, encoding="utf-8") as reading:
            while not stop.is_set():
                line = reading.readline()
                if "value" in line:
                    heard.setdefault(int(line.split('"')[1]), time.perf_counter())
                elif not line:
                    time.sleep(0.002)

    thread = threading.Thread(target=watch)
    thread.start()
    with open(path, "ab", buffering=0) as writing:
        more = ("--follow", "--events", "message", "--graph-quiet", "never")
        yield str(path), more, lambda text: void(writing.write(f"{text}MESSAGE\n".encode()))
    stop.set()
    thread.join()


def void(_: object) -> None:
    """The result is not needed."""


@contextmanager
def mqtt(folder: Path, heard: dict[int, float]) -> Iterator[tuple[str, Sequence[str], Send]]:
    with mosquitto(folder / "mosquitto") as server:
        reading, writing = mqtt_connection(server.port), mqtt_connection(server.port)
        reading.sendall(mqtt_packet(0x82, b"\0\1\0\0\1t\0"))  # subscribe to the topic t, QoS 0

        def watch() -> None:
            tail = b""
            while data := reading.recv(1 << 16):
                at = time.perf_counter()
                acknowledge_at_once(reading)
                tail += data
                for number in re.findall(rb'/value> "(\d+)"', tail):
                    heard.setdefault(int(number), at)
                tail = tail[-40:]

        thread = threading.Thread(target=watch)
        thread.start()
        url = f"mqtt://127.0.0.1:{server.port}/t?qos=0"
        publish = b"\0\1t\0"  # to the topic t, without properties
        yield url, (), lambda text: writing.sendall(mqtt_packet(0x30, publish + text.encode()))
        reading.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in (reading, writing):
            connection.close()


def mqtt_packet(kind: int, body: bytes) -> bytes:
    """A packet of MQTT: clients in Python are too slow for a measure of the transport."""
    length, left = bytearray(), len(body)
    while True:
        left, digit = divmod(left, 128)
        length.append(digit | (128 if left else 0))
        if not left:
            return bytes([kind]) + length + body


def mqtt_connection(port: int) -> socket.socket:
    """A connection of a client without a name, which wants no pings."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(mqtt_packet(0x10, b"\0\4MQTT\5\2\0\0\0\0\0"))
    answer = made.recv(1 << 10)
    assert answer[0] == 0x20, "the broker refuses"
    return made


def acknowledge_at_once(connection: socket.socket) -> None:
    """Mosquitto sends no small packet before the one before is acknowledged (Nagle)."""
    if hasattr(socket, "TCP_QUICKACK"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


@contextmanager
def websocket(folder: Path, heard: dict[int, float]) -> Iterator[tuple[str, Sequence[str], Send]]:
    from websockets.sync.client import connect

    sockets = Sockets()
    with websocket_server(sockets) as url, connect(url) as plain:

        def watch() -> None:
            for message in plain:
                if "value" in str(message):
                    number = int(str(message).split('"')[1])
                    heard.setdefault(number, time.perf_counter())

        thread = threading.Thread(target=watch)
        thread.start()
        yield url, (), lambda text: sockets.send([text])
        plain.close()
        thread.join()


def measure(
    channel: Callable[..., Any], count: int, rate: float, every: int
) -> tuple[list[float], list[float]]:
    """Seconds to the match and to the plain receiver, for each event."""
    sent: dict[int, float] = {}
    heard: dict[int, float] = {}
    matched: dict[int, float] = {}
    with (
        tempfile.TemporaryDirectory() as name,
        channel(Path(name), heard) as (source, more, send),
    ):
        folder = Path(name)
        (folder / "query.rq").write_text(EACH, "utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "spaseq", "run", "query.rq", "--stream", f"readings={source}",
             "--format", "jsonl", "--time-predicate", "http://www.w3.org/ns/prov#generatedAtTime",
             *more],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        assert process.stdout is not None
        output = process.stdout

        def watch() -> None:
            for line in output:
                at = time.perf_counter()
                value = json.loads(line)["bindings"]["value"]["value"]
                matched[int(value)] = at

        thread = threading.Thread(target=watch)
        thread.start()
        until = time.perf_counter() + 60
        while not matched and time.perf_counter() < until:
            # Some channels drop what is sent before the process has subscribed.
            send(text_of(0))
            time.sleep(0.1)
        matched.clear()
        heard.clear()
        begun = time.perf_counter()
        for number in range(1, count + WARM_UP + 1):
            wait = begun + number / rate - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            if number % every == 0:
                sent[number] = time.perf_counter()
            send(text_of(number, every))
        until = time.perf_counter() + 20
        while not matched.keys() >= sent.keys() and time.perf_counter() < until:
            time.sleep(0.01)
        process.terminate()
        process.wait()
        thread.join()
    missing = len(sent.keys() - matched.keys())
    assert not missing, f"{missing} of {len(sent)} events have no match"
    counted = [number for number in sent if number > WARM_UP]
    # A broker may drop messages of the slower receiver, which is this process.
    alone = [heard[n] - sent[n] for n in counted if n in heard]
    return [matched[n] - sent[n] for n in counted], alone


def shown(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    worst = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"median {statistics.median(ordered) * 1000:6.2f} ms, p99 {worst * 1000:7.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--every", type=int, default=1, help="which events the query finds")
    wanted = parser.parse_args()
    for name, channel in (("file", file), ("MQTT", mqtt), ("WebSocket", websocket)):
        found, alone = measure(channel, wanted.events, wanted.rate, wanted.every)
        print(f"{name:10} match {shown(found)}   transport alone {shown(alone)}", flush=True)


if __name__ == "__main__":
    main()
