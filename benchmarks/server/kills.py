"""A server under kills: SIGKILL amid registration, replacement and ingest, and nothing is missing.

Clients register, replace, pause and remove queries and push events, while the server is killed at
random moments and started again. They repeat a request that was not answered. At the end

* every query is as the last acknowledged change made it (or the one that was not answered);
* every event with a 202 has its match, in the query that was there all the time;
* every two successive events have theirs, so no partial match was lost at a restart;
* a subscriber that always continued with `Last-Event-ID` has seen each of these matches, once.

    python benchmarks/server/kills.py --kills 100
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

STREAM = "http://example.org/readings"
HEAD = f"PREFIX : <http://example.org/> SELECT {{}} WITHIN 1000000 SECONDS FROM STREAM r <{STREAM}>"
EACH = HEAD.format("?n") + " WHERE { SEQ(A) DEFINE GPM A ON r { ?s :number ?n } }"
PAIRS = (
    HEAD.format("?n ?m")
    + " WHERE { SEQ(A , B) DEFINE GPM A ON r { ?s :number ?n } "
    + "DEFINE GPM B ON r { ?t :number ?m } }"
)
VARIANTS = [EACH.replace("?n }", f"?n . FILTER(?n > {bound}) }}") for bound in range(1, 5)]
PATIENCE = 60.0


class Server:
    """A server process that can be killed."""

    def __init__(self, folder: Path, checkpoint: str):
        self._folder = folder
        self._checkpoint = checkpoint
        self._process: subprocess.Popen[str] | None = None
        self.url = ""
        self.log: list[str] = []

    def start(self) -> None:
        command = [
            sys.executable, "-m", "spaseq", "serve", "--listen", ":0", "--manage",
            "--state", str(self._folder), "--checkpoint-every", self._checkpoint,
            "--replay", "1000000",
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            if "listening at " in line:
                self.url = line.rpartition("listening at ")[2].strip()
                break
        else:
            raise SystemExit("the server does not start:\n" + "".join(self.log[-20:]))
        threading.Thread(target=self._drain, args=(self._process,), daemon=True).start()

    def _drain(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self.log += process.stderr

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)


class Client:
    """Repeats a request until it is answered."""

    def __init__(self, server: Server):
        self._server = server
        self._http = httpx.Client(timeout=10)

    def ask(self, method: str, path: str, **options: Any) -> tuple[httpx.Response, int]:
        """The answer, and how often there was none before it."""
        unanswered, deadline = 0, time.monotonic() + PATIENCE
        while True:
            try:
                answer = self._http.request(method, self._server.url + path, **options)
                if answer.status_code < 500 and answer.status_code != 429:
                    return answer, unanswered
            except httpx.HTTPError:
                unanswered += 1
            if time.monotonic() > deadline:
                raise SystemExit(f"{method} {path}: no answer")
            time.sleep(0.02)


def body(number: int) -> str:
    graph = f"<http://example.org/e/{number}>"
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    return (
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{number}"^^<{integer}> .\n'
        f'<http://example.org/s> <http://example.org/number> "{number}"^^<{integer}> {graph} .\n'
    )


def push(client: Client, stop: threading.Event, pushed: list[int]) -> None:
    """Push events one after the other."""
    number = 0
    while not stop.is_set():
        number += 1
        answer, _ = client.ask(
            "POST", "/v1/streams/r/events", content=body(number),
            headers={"Content-Type": "application/n-quads"},
        )  # fmt: skip
        assert answer.status_code == 202, answer.text
        pushed.append(number)


def change(
    client: Client,
    stop: threading.Event,
    drawn: random.Random,
    known: dict[str, str | None],
    count: int,
) -> None:
    """Register, replace, pause and remove `count` queries; `known` has what each was changed to."""
    while not stop.is_set():
        name = f"q{drawn.randrange(count)}"
        text = known.get(name)
        if text is not None and drawn.random() < 0.25:
            answer, unanswered = client.ask("DELETE", f"/v1/queries/{name}")
            # A removal that was done before the kill is not found when it is repeated.
            assert answer.status_code == 204 or (unanswered and answer.status_code == 404)
            known[name] = None
            continue
        text = drawn.choice(VARIANTS)
        answer, _ = client.ask(
            "PUT", f"/v1/queries/{name}", json={"text": text, "paused": drawn.random() < 0.2}
        )
        assert answer.status_code in (200, 201), answer.text
        known[name] = text


def subscribe(server: Server, stop: threading.Event, seen: Counter[int]) -> None:
    """Follow the matches of `each` over all restarts."""
    last = ""
    while not stop.is_set():
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        url = f"{server.url}/v1/queries/each/matches" + ("" if last else "?from=oldest")
        try:
            with httpx.stream("GET", url, headers=headers, timeout=2) as answer:
                identifier = ""
                for line in answer.iter_lines():
                    if line.startswith("id: "):
                        identifier = line[4:]
                    elif line.startswith("data: ") and identifier:
                        match = json.loads(line[6:])
                        seen[int(match["bindings"]["n"]["value"])] += 1
                        last, identifier = identifier, ""
                    if stop.is_set():
                        return
        except httpx.HTTPError:
            time.sleep(0.02)


def found(client: Client, name: str) -> list[tuple[int, ...]]:
    """The numbers of all matches of a query."""
    answer, _ = client.ask(
        "GET", f"/v1/queries/{name}/matches?from=oldest&follow=false",
        headers={"Accept": "application/x-ndjson"},
    )  # fmt: skip
    lines = [json.loads(line) for line in answer.text.splitlines() if line]
    return [
        tuple(int(value["value"]) for value in one["bindings"].values())
        for one in lines
        if "bindings" in one
    ]


def run(
    kills: int,
    seed: int,
    least: float,
    most: float,
    checkpoint: str,
    folder: Path,
    queries: int = 6,
) -> str:
    """Kill a server and say what was checked; raises `SystemExit` if something is missing."""
    drawn = random.Random(seed)
    server = Server(folder, checkpoint)
    server.start()
    client = Client(server)
    for name, text in (("each", EACH), ("pairs", PAIRS)):
        answer, _ = client.ask("PUT", f"/v1/queries/{name}", content=text)
        assert answer.status_code == 201, answer.text
    stop, pushed, known, seen = threading.Event(), list[int](), dict[str, str | None](), Counter()
    tasks: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
        (push, (Client(server), stop, pushed)),
        (change, (Client(server), stop, random.Random(seed + 1), known, queries)),
        (subscribe, (server, stop, seen)),
    ]
    threads = [threading.Thread(target=task, args=given, daemon=True) for task, given in tasks]
    for thread in threads:
        thread.start()
    for _ in range(kills):
        time.sleep(drawn.uniform(least, most))
        server.kill()
        server.start()
    time.sleep(most)
    stop.set()
    for thread in threads[:2]:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    threads[2].join(5)
    check(client, pushed, known, seen)
    assert server.kill(signal.SIGTERM) == 0
    return (
        f"{kills} kills: {len(pushed)} events, {len(known)} queries, "
        f"{sum(seen.values())} matches followed; all there"
    )


def check(
    client: Client, pushed: list[int], known: dict[str, str | None], seen: Counter[int]
) -> None:
    each = Counter(number for (number,) in found(client, "each"))
    missing = [number for number in pushed if not each[number]]
    pairs = set(found(client, "pairs"))
    unpaired = [n for n in pushed[:-1] if not any((n, m) in pairs for m in (n, n + 1))]
    queries, _ = client.ask("GET", "/v1/queries")
    there = {one["name"]: one["text"] for one in queries.json()["items"]}
    wrong = [name for name, text in known.items() if there.get(name) != text]
    unseen = [number for number in list(seen)[:-1] if number not in each]
    gaps = [number for number in pushed[: max(seen, default=1) - 1] if not seen[number]]
    doubled = [number for number in seen if seen[number] > each[number]]
    for what, some in (
        ("events without a match", missing), ("events without their successor", unpaired),
        ("queries that are not as they were left", wrong), ("matches taken back", unseen),
        ("matches a subscriber missed", gaps), ("matches it saw twice", doubled),
    ):  # fmt: skip
        if some:
            raise SystemExit(f"{what}: {some[:10]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=float, default=0.05, help="seconds between two kills")
    parser.add_argument("--most", type=float, default=0.8)
    parser.add_argument("--checkpoint-every", default="300ms")
    parser.add_argument("--queries", type=int, default=6, help="from 20 on, many are one template")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(
            run(
                given.kills, given.seed, given.least, given.most, given.checkpoint_every,
                Path(folder), given.queries,
            )
        )  # fmt: skip


if __name__ == "__main__":
    main()
