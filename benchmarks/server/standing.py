"""A server with many standing queries from one template, evaluated as one and separately.

The queries are registered one by one over HTTP. Then bodies of events are pushed, and finally ten
queries are removed while further events arrive. Times are the server's processor times. For the
comparison, the server runs with `SPASEQ_DISABLE=templates`. Both servers must find the same number
of matches.

    python benchmarks/server/standing.py --queries 1000 --events 50000
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import psutil
from ingest import EXAMPLE, INTEGER, PROV
from start import started

BODY = 5000
REMOVED = 10
HEAD = (
    f"PREFIX : <{EXAMPLE}> SELECT ?v ?w WITHIN 100 SECONDS FROM STREAM r :r WHERE {{ SEQ(A ; B) "
    "DEFINE GPM A ON r { ?x :value ?v . FILTER(%s) } "
    "DEFINE GPM B ON r { ?x :value ?w . FILTER(%s) } }"
)
KINDS: dict[str, Callable[[int], str]] = {
    "sensor": lambda n: HEAD % (f"?x = :s{n} && ?v > 500", f"?x = :s{n} && ?w > ?v"),
    "threshold": lambda n: HEAD % (f"?v > {99_000 + n}", "?w > ?v"),
}


def bodies(count: int, sensors: int) -> Iterator[bytes]:
    drawn = random.Random(1)
    for first in range(0, count, BODY):
        yield "".join(
            f'<{EXAMPLE}e/{number}> <{PROV}> "{number // 100}"^^<{INTEGER}> .\n'
            f"<{EXAMPLE}s{drawn.randrange(sensors)}> <{EXAMPLE}value> "
            f'"{drawn.randrange(100_000)}"^^<{INTEGER}> <{EXAMPLE}e/{number}> .\n'
            for number in range(first, min(first + BODY, count))
        ).encode()


def measure(queries: list[str], data: list[bytes]) -> tuple[list[float], int]:
    """The processor times of registering, of all but one body, and of removing; the matches."""
    with tempfile.TemporaryDirectory() as name:
        process, url = started(
            "--manage", "--state", str(Path(name) / "state"), "--checkpoint-every", "1h"
        )
        watched, times = psutil.Process(process.pid), []

        def mark() -> None:
            used = watched.cpu_times()
            times.append(used.user + used.system)

        with httpx.Client(base_url=url, timeout=600) as client:

            def push(body: bytes) -> None:
                headers = {"Content-Type": "application/n-quads"}
                answer = client.post("/v1/streams/r/events", content=body, headers=headers)
                assert answer.status_code == 202, answer.text

            mark()
            for number, text in enumerate(queries):
                answer = client.put(f"/v1/queries/q{number}", content=text)
                assert answer.status_code == 201, answer.text
            mark()
            for body in data[:-1]:
                push(body)
            mark()
            for number in range(REMOVED):
                assert client.delete(f"/v1/queries/q{number}").status_code == 204
            mark()
            push(data[-1])
            found, page = 0, "/v1/queries?limit=100"
            while page:
                listed = client.get(page)
                found += sum(one["matches"] for one in listed.json()["items"])
                page = listed.links.get("next", {}).get("url", "")
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        return [after - before for before, after in pairwise(times)], found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--only", choices=KINDS)
    given = parser.parse_args()
    data = list(bodies(given.events, given.queries))
    for kind in [given.only] if given.only else KINDS:
        texts = [KINDS[kind](number) for number in range(given.queries)]
        counts = set()
        for title, disabled in (("together", ""), ("apart", "templates")):
            os.environ["SPASEQ_DISABLE"] = disabled
            (put, pushed, removed), found = measure(texts, data)
            counts.add(found)
            rate = (given.events - BODY) / pushed
            print(
                f"{kind}, {given.queries} queries {title}: registered in {put:.2f} s, "
                f"{rate:,.0f} events a second of the server's processor time, {REMOVED} removed "
                f"in {removed:.2f} s; {found} matches"
            )
        if len(counts) > 1:
            raise SystemExit("the numbers of matches differ")


if __name__ == "__main__":
    main()
