"""Many subscribers of one query: each gets every match, and the memory of the server is bounded.

All subscribers are in one process, which only counts bytes and events. Matches are produced at a
rate; the figures are the matches that each subscriber got, the delay until the last one has them,
and the memory of the server.

    python benchmarks/server/subscribers.py --subscribers 1000 --rate 1000 --seconds 10
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
import tempfile
import time
from pathlib import Path

import httpx
import psutil
from start import started

QUERY = """\
PREFIX : <http://example.org/>
SELECT ?n WITHIN 10 SECONDS FROM STREAM r <http://example.org/r>
WHERE { SEQ(A) DEFINE GPM A ON r { ?s :number ?n } }
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


MARK = b"event: match"


class Subscriber(asyncio.BufferedProtocol):
    """Counts the matches of one subscription; all share a buffer, which is read at once."""

    buffer = bytearray(1 << 18)

    def __init__(self, host: str):
        self._host = host
        self.count = 0
        self._tail = b""

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        request = f"GET /v1/queries/each/matches HTTP/1.1\r\nHost: {self._host}\r\n\r\n"
        transport.write(request.encode())  # type: ignore[attr-defined]

    def buffer_updated(self, nbytes: int) -> None:
        data, edge = self.buffer, len(MARK) - 1
        self.count += data.count(MARK, 0, nbytes)
        # One that two reads divide.
        self.count += (self._tail + data[: min(edge, nbytes)]).count(MARK)
        self._tail = (self._tail + data[max(nbytes - edge, 0) : nbytes])[-edge:]


def body(first: int, count: int) -> str:
    return "".join(
        f'<http://example.org/e/{n}> <http://www.w3.org/ns/prov#generatedAtTime> "{n}"^^<{INTEGER}>'
        f' .\n<http://example.org/s> <http://example.org/number> "{n}"^^<{INTEGER}> '
        f"<http://example.org/e/{n}> .\n"
        for n in range(first, first + count)
    )


async def run(given: argparse.Namespace, url: str, pid: int) -> None:
    host, port = url.removeprefix("http://").split(":")
    loop = asyncio.get_running_loop()
    subscribers = []
    for _ in range(given.subscribers):
        made = Subscriber(f"{host}:{port}")
        await loop.create_connection(lambda made=made: made, host, int(port))  # type: ignore[misc]
        subscribers.append(made)
    await asyncio.sleep(1)
    watched = psutil.Process(pid)
    before, cpu, own = watched.memory_info().rss, watched.cpu_times(), time.process_time()
    pushed, begun, part = 0, time.monotonic(), max(given.rate // 10, 1)
    most = before
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        while pushed < given.rate * given.seconds:
            answer = await client.post(
                "/v1/streams/r/events", content=body(pushed, part),
                headers={"Content-Type": "application/n-quads"},
            )  # fmt: skip
            assert answer.status_code == 202, answer.text
            pushed += part
            most = max(most, watched.memory_info().rss)
            await asyncio.sleep(max(0.0, begun + pushed / given.rate - time.monotonic()))
    sent = time.monotonic()
    while min(one.count for one in subscribers) < pushed:
        await asyncio.sleep(0.05)
        most = max(most, watched.memory_info().rss)
        if time.monotonic() - sent > given.patience:
            break
    counts = [one.count for one in subscribers]
    after = watched.cpu_times()
    used = after.user + after.system - cpu.user - cpu.system
    own = time.process_time() - own
    print(
        f"{given.subscribers} subscribers, {pushed} matches in {sent - begun:.1f} s: each got "
        f"{min(counts)} to {max(counts)}, the last one {time.monotonic() - sent:.1f} s later; "
        f"{used:.1f} s of the server's processor time and {own:.1f} s of this process, memory "
        f"{before / 1e6:.0f} MB before, {most / 1e6:.0f} MB at most"
    )
    if min(counts) < pushed:
        raise SystemExit("a subscriber has missed matches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=1000, help="matches a second")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--patience", type=float, default=60.0)
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as name:
        arguments = ("--manage", "--state", str(Path(name) / "state"), "--replay", "1000000")
        process, url = started(*arguments)
        httpx.put(f"{url}/v1/queries/each", content=QUERY).raise_for_status()
        try:
            asyncio.run(run(given, url, process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
