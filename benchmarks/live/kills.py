"""Exactly once under kills: SIGKILL at random moments, the same matches.

Every run of `spaseq run --follow --state` is killed at a random moment and started again, while
another part of the stream is written; the last one is allowed to finish. Some are killed before
they have read anything, some within a checkpoint. Then the output must have exactly the matches of
one undisturbed run, in their order: a followed file to a file and to a table of SQLite, and a Kafka
topic to another one, of which the committed records count.

    python benchmarks/live/kills.py --events 100000 --kills 300
    python benchmarks/live/kills.py --only topic --kills 200
    python benchmarks/live/kills.py --only table topic --kills 20 --refuse 10
    python benchmarks/live/kills.py --only topic --kills 20 --restart 10
    python benchmarks/live/kills.py --only file table --kills 10 --full DIR

`--refuse` lets the output refuse everything for so many seconds: the table is locked, and the
broker is stopped (SIGSTOP), so that it accepts connections and answers nothing. `--restart` cuts
all connections to the broker and refuses new ones for so long, as a broker that is started again.
`--full` needs a folder on a file system of a few megabytes, of which it fills the rest for a while
(`mount -t tmpfs -o size=8m none DIR`). Runs that end with an error meanwhile are started again.

The broker is Tansu, which keeps its topics in memory and returns aborted records, too; so the
control records in its log say which count (`tests/unit/live/kafka_log.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "unit" / "live"))

from followed import QUERY, events, finished_run, lines, rows  # noqa: E402
from kafka_log import committed  # noqa: E402
from servers import Relay, Server, tansu_server  # noqa: E402

PATIENCE = 300.0


class Followed:
    """A followed file, and a file or a table of SQLite."""

    def __init__(self, folder: Path, place: Path, table: bool):
        self._path = folder / "stream.nq"
        self._stream = open(self._path, "wb", buffering=0)  # noqa: SIM115 (of this process)
        self._output = place / ("out.db" if table else "out.jsonl")
        self._table = table

    @property
    def arguments(self) -> list[str]:
        output = f"sqlite:{self._output}" if self._table else str(self._output)
        return ["--stream", f"readings={self._path}", "--output", output]

    def write(self, pieces: Sequence[str], drawn: random.Random) -> None:
        """Append events, cut somewhere."""
        data = "".join(pieces).encode()
        cut = drawn.randrange(len(data))
        self._stream.write(data[:cut])
        self._stream.write(data[cut:])

    def found(self) -> list[str]:
        """The matches in the output, as JSON lines."""
        return (rows if self._table else lines)(self._output)

    @staticmethod
    def plain(matches: Sequence[str]) -> list[Any]:
        """What is compared: all."""
        return list(matches)

    def refuse(self, seconds: float) -> None:
        """Lock the database for a while."""
        if not self._table:
            return
        with contextlib.closing(
            sqlite3.connect(self._output, timeout=60, isolation_level=None)
        ) as db:
            db.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            db.execute("ROLLBACK")

    def restart(self, seconds: float) -> None:
        """There is no server."""


class Topics:
    """A topic of Kafka, and another one."""

    def __init__(self, server: Server, address: str, relay: Relay):
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        self._server, self._address, self._relay = server, address, relay
        admin = AdminClient({"bootstrap.servers": address})
        for made in admin.create_topics([NewTopic("in", 1, 1), NewTopic("out", 1, 1)]).values():
            made.result(30)
        self._producer: Any = Producer({"bootstrap.servers": relay.address, "log_level": 0})

    @property
    def arguments(self) -> list[str]:
        broker = f"kafka://{self._relay.address}"
        return ["--stream", f"readings={broker}/in", "--output", f"{broker}/out",
                "--time-predicate", "http://www.w3.org/ns/prov#generatedAtTime"]  # fmt: skip

    def write(self, pieces: Sequence[str], drawn: random.Random) -> None:
        """Write a record for each event."""
        for piece in pieces:
            self._producer.produce("in", piece.encode())
        self._producer.poll(0)

    def found(self) -> list[str]:
        """The matches of committed records."""
        try:
            return [value.decode() for value in committed(self._address, "out")[0]]
        except OSError:
            return []  # it is stopped

    @staticmethod
    def plain(matches: Sequence[str]) -> list[Any]:
        """What is compared: the times and bindings, since the events have no lines of a file."""
        read = map(json.loads, matches)
        return [(one["start"], one["end"], one["bindings"]) for one in read]

    def refuse(self, seconds: float) -> None:
        """Let the broker accept connections and answer nothing for a while."""
        self._server.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._server.signal(signal.SIGCONT)

    def restart(self, seconds: float) -> None:
        """Cut all connections, and refuse new ones for a while."""
        self._relay.cut()
        time.sleep(seconds)
        self._relay.restore()


Medium = Followed | Topics


@contextlib.contextmanager
def opened(name: str, folder: Path, place: Path) -> Iterator[Medium]:
    """The input and the output of a campaign."""
    if name != "topic":
        yield Followed(folder, place, name == "table")
        return
    with tansu_server(folder / "broker", relayed=True) as (server, address, relay):
        assert relay is not None
        yield Topics(server, address, relay)


def started(folder: Path, medium: Medium, place: Path) -> subprocess.Popen[bytes]:
    """A run that follows the stream."""
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "spaseq", "run", str(folder / "query.rq"), *medium.arguments,
             "--follow", "--state", str(place / "state"), "--checkpoint-every", "200ms"],
            stderr=log,
        )  # fmt: skip


def filled(folder: Path, seconds: float) -> None:
    """Fill the disk of a folder for a while."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    time.sleep(seconds)
    filler.unlink()


def campaign(
    folder: Path, medium: Medium, place: Path, pieces: list[str], kills: int, seed: int,
    trouble: Sequence[Callable[[], None]],
) -> Counter[str]:  # fmt: skip
    """Kill and start again until all is read; returns what happened."""
    drawn, happened = random.Random(seed), Counter[str]()
    threads = [threading.Thread(target=each) for each in trouble]
    at = 0
    process = started(folder, medium, place)
    for number in range(kills + 1):
        share = (number + 1) * len(pieces) // (kills + 1)
        if drawn.random() < 0.8:
            owner = place / "state" / "lock"
            until = time.monotonic() + PATIENCE
            while process.poll() is None and time.monotonic() < until and (
                not owner.exists() or owner.read_text().strip() != str(process.pid)
            ):  # fmt: skip
                time.sleep(0.01)
        if number == kills // 2:
            for thread in threads:
                thread.start()
        while at < share:
            after = min(at + drawn.randrange(1, 400), share)
            medium.write(pieces[at:after], drawn)
            at = after
            if drawn.random() < 0.1:
                time.sleep(drawn.uniform(0, 0.02))
        if number == kills:
            break
        time.sleep(drawn.uniform(0.0, 0.6))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            happened["killed"] += 1
        else:
            happened[f"ended with status {process.returncode}"] += 1
        process.wait()
        process = started(folder, medium, place)
    for thread in threads:
        thread.join()
    process = _finished(process, folder, medium, place, happened)
    process.send_signal(signal.SIGTERM)
    status = process.wait(PATIENCE)
    happened[f"ended with status {status}"] += 1
    return happened


def _finished(
    process: subprocess.Popen[bytes], folder: Path, medium: Medium, place: Path,
    happened: Counter[str],
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Wait until the output has not grown for three seconds."""
    before, since, until = -1, time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            happened[f"ended with status {process.returncode}"] += 1
            process = started(folder, medium, place)
        count = len(medium.found())
        if count != before:
            before, since = count, time.monotonic()
        elif time.monotonic() - since > 3.0 and count:
            break
        time.sleep(0.1)
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description="Exactly once under kills.")
    names = ("file", "table", "topic")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=200, help="in all, shared by the outputs")
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="the outputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--refuse", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--restart", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--full", metavar="DIR", help="a folder on a small file system")
    options = parser.parse_args()
    pieces = list(events(options.events, options.seed))
    wrong = 0
    for name in options.only:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            place = folder if options.full is None else Path(options.full) / name
            place.mkdir(exist_ok=True)
            (folder / "query.rq").write_text(QUERY, "utf-8")
            whole = finished_run(folder, "".join(pieces), "--at-end", "open")
            with opened(name, folder, place) as medium:
                trouble: list[Callable[[], None]] = []
                if options.refuse:
                    trouble.append(lambda medium=medium: medium.refuse(options.refuse))  # type: ignore[misc]
                if options.restart:
                    trouble.append(lambda medium=medium: medium.restart(options.restart))  # type: ignore[misc]
                if options.full is not None:
                    trouble.append(lambda place=place: filled(place, 5.0))  # type: ignore[misc]
                kills = options.kills // len(options.only)
                happened = campaign(folder, medium, place, pieces, kills, options.seed, trouble)
                found = medium.found()
            same = medium.plain(found) == medium.plain(whole)
            wrong += not same
            shown = ", ".join(f"{what}: {count}" for what, count in sorted(happened.items()))
            print(
                f"{name:6} {len(whole):,} matches of {options.events:,} events, "
                f"{'the same' if same else f'DIFFERENT: {len(found):,}'} ({shown})",
                flush=True,
            )
            if not same:
                log = (folder / "log").read_text("utf-8").splitlines()
                print("\n".join(log[-20:]), file=sys.stderr)
            for line in (folder / "log").read_text("utf-8").splitlines():
                if "error: " in line:
                    print(f"       {line}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
