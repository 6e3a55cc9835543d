"""A remote knowledge base with many keys: one request per batch of events, and one per event.

Each event is a reading of another sensor, and the knowledge base has the sensor's room. A SPARQL
server (Oxigraph's) holds it and delays every answer, as a network does. There are three ways:

* batched: the events are read from a file in encoded batches, whose keys are requested together;
* one by one: each event is pushed alone;
* held: each event is pushed alone, but partial matches already wait for their sensors.

The number of matches must be the same.

    python benchmarks/kb/remote.py --keys 10000 --delay 5
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from threading import Thread

import httpx

import spaseq
from spaseq.io.source import Source

EX = "http://example.org/"
STREAM, KB = EX + "readings", EX + "kb"
QUERY = f"""
PREFIX : <{EX}>
SELECT ?sensor ?room ?value
WITHIN 1 MINUTE
FROM STREAM readings :readings
WHERE {{
  SEQ(Reading)
  DEFINE GPM Reading ON readings {{ ?sensor :value ?value GRAPH :kb {{ ?sensor :in ?room }} }}
}}
"""
HELD = QUERY.replace("SEQ(Reading)", "SEQ(Announced : Reading)").replace(
    "DEFINE", "DEFINE GPM Announced ON readings { ?sensor :announced ?when }\n  DEFINE"
)


class Delay(BaseHTTPRequestHandler):
    """Forwards a request, and delays the answer."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seconds = 0.0
    behind = httpx.Client(timeout=60.0)
    url = ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name: self.headers[name] for name in ("Accept", "Content-Type")}
        answer = self.behind.post(self.url, content=body, headers=headers)
        time.sleep(self.seconds)
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def endpoint(data: str, delay: float) -> Iterator[str]:
    """The URL of a server with the data, behind a proxy that delays its answers."""
    program = Path(sysconfig.get_path("scripts")) / "oxigraph"
    place = f"127.0.0.1:{free_port()}"
    quiet = subprocess.DEVNULL
    with subprocess.Popen([program, "serve", "--bind", place], stdout=quiet, stderr=quiet) as real:
        try:
            _fill(f"http://{place}/store?default", data)
            Delay.url, Delay.seconds = f"http://{place}/query", delay
            with ThreadingHTTPServer(("127.0.0.1", 0), Delay) as proxy:
                proxy.daemon_threads = True
                Thread(target=proxy.serve_forever, daemon=True).start()
                yield f"http://127.0.0.1:{proxy.server_address[1]}/query"
                proxy.shutdown()
        finally:
            real.kill()


def _fill(url: str, data: str) -> None:
    for _ in range(100):
        try:
            httpx.put(url, content=data.encode(), headers={"Content-Type": "text/turtle"})
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server did not start")


def readings(path: Path, keys: int) -> Path:
    """A file of events, each of another sensor."""
    at = "<http://www.w3.org/ns/prov#generatedAtTime>"
    number = "<http://www.w3.org/2001/XMLSchema#integer>"
    with path.open("w") as file:
        for n in range(keys):
            file.write(
                f'<{EX}e{n}> {at} "{n}"^^{number} .\n'
                f'<{EX}s{n}> <{EX}value> "{n}"^^{number} <{EX}e{n}> .\n'
            )
    return path


def batched(url: str, path: Path) -> tuple[int, int]:
    """Matches and requests of events that are read in batches."""
    run = spaseq.compile(QUERY).start(kb={KB: spaseq.Endpoint(url, join="bind")})
    source = Source(STREAM, [str(path)], relevance=run.relevance)
    found = sum(1 for batch in source.batches() for _ in run.push_batch(batch))
    return _ended(run, found)


def one_by_one(url: str, path: Path, events: int) -> tuple[int, int]:
    """Matches and requests of events that are pushed one by one."""
    run = spaseq.compile(QUERY).start(kb={KB: spaseq.Endpoint(url, join="bind")})
    found = 0
    for event in islice(Source(STREAM, [str(path)]), events):
        found += len(run.push(STREAM, event.time, event.facts))
    return _ended(run, found)


def held(url: str, events: int) -> tuple[int, int, float]:
    """Matches, requests and seconds for readings of sensors that partial matches wait for."""
    run = spaseq.compile(HELD).start(kb={KB: spaseq.Endpoint(url, join="bind")})
    for n in range(events):
        run.push(STREAM, n / 100, f"<{EX}s{n}> <{EX}announced> <{EX}s{n}> .".encode())
    found, last = 0, events / 100
    started = time.perf_counter()
    for n in range(events):
        reading = f"<{EX}s{n}> <{EX}value> <{EX}s{n}> ."
        found += len(run.push(STREAM, last + n / 100, reading.encode()))
    seconds = time.perf_counter() - started
    return (*_ended(run, found), seconds)


def _ended(run: spaseq.Run, found: int) -> tuple[int, int]:
    requests: int = run.stats["kb"]["sources"][KB]["requests"]
    run.finish()
    return found, requests


def main() -> None:
    parser = argparse.ArgumentParser(description="A remote KB, batched and one by one.")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--delay", type=float, default=5.0, help="milliseconds")
    parser.add_argument("--sample", type=int, default=500, help="events pushed one by one")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    data = "".join(f"<{EX}s{n}> <{EX}in> <{EX}r{n // 4}> .\n" for n in range(options.keys))
    sample = min(options.sample, options.keys)
    print(f"{options.keys:,} events of as many sensors, {options.delay:g} ms in front of answers")
    print(
        f"{'':18}{'events/s':>10}{'min–max':>18}{'x one by one':>14}{'requests':>10}{'matches':>9}"
    )
    with tempfile.TemporaryDirectory() as folder, endpoint(data, options.delay / 1000) as url:
        path = readings(Path(folder) / "readings.nq", options.keys)
        slow, fast, ahead = list[float](), list[float](), list[float]()
        for _ in range(options.repeat):
            started = time.perf_counter()
            few = one_by_one(url, path, sample)
            slow.append(sample / (time.perf_counter() - started))
            started = time.perf_counter()
            all_of_them = batched(url, path)
            fast.append(options.keys / (time.perf_counter() - started))
            *waiting, seconds = held(url, sample)
            ahead.append(sample / seconds)
    yardstick = statistics.median(slow)
    for name, rates, (found, requests) in (
        ("one by one", slow, few),
        ("batched", fast, all_of_them),
        ("held", ahead, waiting),
    ):
        middle = statistics.median(rates)
        spread = f"{min(rates):,.0f}–{max(rates):,.0f}"
        ratio = f"{middle / yardstick:,.0f}"
        print(f"{name:18}{middle:>10,.0f}{spread:>18}{ratio:>14}{requests:>10,}{found:>9,}")


if __name__ == "__main__":
    main()
