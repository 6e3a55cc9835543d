"""How many events a second a server accepts over loopback, from one connection.

The bodies are N-Quads, with an event for each named graph, or NDJSON-LD, with an event per line.
The server matches them against a query, writes them to its journal and syncs before each answer.
The script prints the rate per second of the server's processor time and of elapsed time, and for
comparison the rate of a run over the same bytes in this process, without a server.

    python benchmarks/server/ingest.py --events 200000 --body 5000
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
from start import started

import spaseq

QUERY = """\
PREFIX : <http://example.org/>
SELECT ?s ?low ?high WITHIN 10 SECONDS FROM STREAM r <http://example.org/r>
WHERE { SEQ(A : B)
  DEFINE GPM A ON r { ?s :value ?low . FILTER(?low < 20) }
  DEFINE GPM B ON r { ?s :value ?high . FILTER(?high > 980) } }
"""
EXAMPLE, INTEGER = "http://example.org/", "http://www.w3.org/2001/XMLSchema#integer"
PROV = "http://www.w3.org/ns/prov#generatedAtTime"
TYPES = {"nquads": "application/n-quads", "ndjson": "application/x-ndjson"}


def event(number: int, syntax: str, drawn: random.Random) -> str:
    value, sensor = drawn.randrange(1000), drawn.randrange(100)
    if syntax == "nquads":
        return (
            f'<{EXAMPLE}e/{number}> <{PROV}> "{number // 100}"^^<{INTEGER}> .\n'
            f'<{EXAMPLE}s/{sensor}> <{EXAMPLE}value> "{value}"^^<{INTEGER}> '
            f"<{EXAMPLE}e/{number}> .\n"
        )
    return (
        f'{{"@context": {{"@vocab": "{EXAMPLE}"}}, "@id": "{EXAMPLE}s/{sensor}", '
        f'"value": {value}, "{PROV}": {number // 100}}}\n'
    )


def bodies(count: int, size: int, syntax: str) -> Iterator[bytes]:
    drawn = random.Random(1)
    for first in range(0, count, size):
        texts = [event(number, syntax, drawn) for number in range(first, min(first + size, count))]
        yield "".join(texts).encode()


def alone(path: Path) -> tuple[float, int]:
    """The processor time of a run over a file, and its matches; everything is imported before."""
    list(spaseq.run(QUERY, {"r": []}, workers=1))
    begun = time.process_time()
    matches = sum(1 for _ in spaseq.run(QUERY, {"r": str(path)}, workers=1))
    return time.process_time() - begun, matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--body", type=int, default=5000, help="events in a body")
    parser.add_argument("--syntax", choices=TYPES, default="nquads")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = list(bodies(given.events, given.body, given.syntax))
        process, url = started("--manage", "--state", str(Path(name) / "state"))
        with httpx.Client(base_url=url, timeout=120) as client:
            assert client.put("/v1/queries/q", content=QUERY).status_code == 201
            watched = psutil.Process(process.pid)
            begun, before = time.monotonic(), watched.cpu_times()
            for body in data:
                answer = client.post(
                    "/v1/streams/r/events", content=body,
                    headers={"Content-Type": TYPES[given.syntax]},
                )  # fmt: skip
                if answer.json().get("accepted") is None:
                    raise SystemExit(answer.text)
            elapsed, after = time.monotonic() - begun, watched.cpu_times()
            matches = client.get("/v1/queries/q").json()["matches"]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        used = after.user + after.system - before.user - before.system
        print(
            f"{given.syntax}, {given.body} events in a body, {sum(map(len, data)) / 1e6:.0f} MB: "
            f"{given.events / elapsed:,.0f} events/s elapsed, {given.events / used:,.0f} a second "
            f"of the server's processor time; {matches} matches"
        )
        if given.syntax == "nquads":
            path = Path(name) / "all.nq"
            path.write_bytes(b"".join(data))
            engine, expected = alone(path)
            if expected != matches:
                raise SystemExit(f"the run finds {expected} matches")
            print(
                f"the engine alone: {given.events / engine:,.0f} a second; the server takes "
                f"{used / engine:.1f} times its processor time"
            )


if __name__ == "__main__":
    main()
