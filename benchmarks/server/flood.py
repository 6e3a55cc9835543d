"""Many connections and slow bodies: refused in order, while another client is served.

Connections beyond the limit of the server are opened and stay open. Some of them send the head of a
request, others a body, at a few bytes per second. Meanwhile one client pushes events and reads
their matches. The figures are the number of connections that were answered, the answers, and the
time of the pushes before and during the flood.

    python benchmarks/server/flood.py --connections 10000
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import signal
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psutil
from start import started
from subscribers import QUERY, body

SLOW_HEAD = b"POST /v1/streams/r/events HTTP/1.1\r\nHost: localhost\r\n"
SLOW_BODY = SLOW_HEAD + b"Content-Type: application/n-quads\r\nContent-Length: 1000000\r\n\r\n"
KINDS = {"silent": b"", "slow head": SLOW_HEAD, "slow body": SLOW_BODY}


async def attack(host: str, port: int, kind: str, until: float) -> str:
    """Open a connection, and send a byte a second. Returns how it ended."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return f"{kind}: not accepted"
    try:
        writer.write(KINDS[kind])
        while time.monotonic() < until:
            if kind != "silent":
                writer.write(b"x")
            try:
                answer = await asyncio.wait_for(reader.read(4096), 1.0)
            except TimeoutError:
                continue
            status = answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP") else "cut off"
            return f"{kind}: {status}"
        return f"{kind}: still open"
    except OSError:
        return f"{kind}: cut off"
    finally:
        writer.close()


async def attacks(host: str, port: int, count: int, seconds: float) -> Counter[str]:
    """Attack with many connections. Returns how they ended."""
    until = time.monotonic() + seconds
    kinds = [list(KINDS)[number % len(KINDS)] for number in range(count)]
    return Counter(await asyncio.gather(*(attack(host, port, kind, until) for kind in kinds)))


def attack_in_process(host: str, port: int, count: int, seconds: float, ends: Any) -> None:
    """Attack in a process of its own, which does not delay the other client."""
    ends.put(asyncio.run(attacks(host, port, count, seconds)))


def push(client: httpx.Client, first: int, seconds: float) -> tuple[list[float], int]:
    """Push events for a while; how long each push took, and the number of the next event."""
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        answer = client.post(
            "/v1/streams/r/events", content=body(first, 10),
            headers={"Content-Type": "application/n-quads"},
        )  # fmt: skip
        assert answer.status_code == 202, answer.text
        took.append(time.monotonic() - begun)
        first += 10
        time.sleep(0.02)
    return took, first


def run(given: argparse.Namespace, url: str, pid: int) -> None:
    host, port = url.removeprefix("http://").split(":")
    watched = psutil.Process(pid)
    memory = watched.memory_info().rss
    with httpx.Client(base_url=url, timeout=60) as client:
        calm, number = push(client, 0, 2.0)
        queue: Any = multiprocessing.Queue()
        attacker = multiprocessing.Process(
            target=attack_in_process,
            args=(host, int(port), given.connections, given.seconds, queue),
        )
        attacker.start()
        stormy, number = push(client, number, given.seconds)
        most = watched.memory_info().rss
        ends = queue.get(timeout=60)
        attacker.join()
        found = client.get("/v1/queries/each").json()["matches"]
    if found != number:
        raise SystemExit(f"{number} events were accepted, and {found} have a match")
    print(
        f"{given.connections} connections for {given.seconds:g} s: "
        + ", ".join(f"{end} {count}" for end, count in sorted(ends.items()))
    )
    print(
        f"a push: median {statistics.median(calm) * 1e3:.1f} ms before, "
        f"{statistics.median(stormy) * 1e3:.1f} ms during the flood, at most "
        f"{max(stormy) * 1e3:.0f} ms; {number} events, each with its match; memory "
        f"{memory / 1e6:.0f} MB before, {most / 1e6:.0f} MB during the flood"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        process, url = started("--manage", "--state", str(Path(name) / "state"))
        httpx.put(f"{url}/v1/queries/each", content=QUERY).raise_for_status()
        try:
            run(given, url, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
