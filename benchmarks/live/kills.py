"""Exactly once under kills: a followed file, SIGKILL at random moments, the same matches.

Every run of `spaseq run --follow --state` is killed at a random moment and started again, while
another part of the stream is written; the last one is allowed to finish. Some are killed before
they have read anything, some within a checkpoint. Then the output must have exactly the matches of
one undisturbed run, in their order: a file, and a table of SQLite.

    python benchmarks/live/kills.py --events 100000 --kills 200
    python benchmarks/live/kills.py --events 20000 --kills 10 --refuse 10    # a locked table
    python benchmarks/live/kills.py --events 20000 --kills 10 --full DIR     # DIR: a small disk

`--full` needs a folder on a file system of a few megabytes, of which it fills the rest for a while
(`mount -t tmpfs -o size=8m none DIR`); runs that end with an error then are started again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

STREAM = "http://example.org/readings"
QUERY = f"""
PREFIX : <http://example.org/>
SELECT ?s ?low ?high WITHIN 30 SECONDS FROM STREAM readings <{STREAM}>
WHERE {{ SEQ(A : B)
  DEFINE GPM A ON readings {{ ?s :value ?low . FILTER(?low < 10) }}
  DEFINE GPM B ON readings {{ ?s :value ?high . FILTER(?high > 90) }} }}
"""
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
PATIENCE = 300.0


def events(count: int, seed: int) -> Iterator[str]:
    """Events in N-Quads, ten a second of event time, over twenty sensors."""
    drawn = random.Random(seed)
    for number in range(count):
        graph, example = f"<http://example.org/e/{number}>", "http://example.org/"
        stamp = f"2026-01-01T{number // 36000 % 24:02}:{number // 600 % 60:02}:"
        stamp += f"{number // 10 % 60:02}.{number % 10}Z"
        yield (
            f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{stamp}"'
            "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
            f"<{example}s/{drawn.randrange(20)}> <{example}value> "
            f'"{drawn.randrange(100)}"^^<{INTEGER}> {graph} .\n'
        )


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "spaseq", "run", str(folder / "query.rq"), *more]


def started(folder: Path, output: str, place: Path) -> subprocess.Popen[bytes]:
    """A run that follows the stream."""
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            command(
                folder, "--stream", f"readings={folder / 'stream.nq'}", "--follow",
                "--output", output, "--state", str(place / "state"), "--checkpoint-every", "200ms",
            ),
            stderr=log,
        )  # fmt: skip


def found_in(output: str) -> list[str]:
    """The matches in the output, as JSON lines."""
    path = output.removeprefix("sqlite:")
    if not os.path.exists(path):
        return []
    if output == path:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db:
        try:
            return [row for (row,) in db.execute("SELECT match FROM matches ORDER BY rowid")]
        except sqlite3.OperationalError:
            return []


def locked(path: str, seconds: float) -> None:
    """Refuse all writes to a database for a while."""
    with contextlib.closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        db.execute("ROLLBACK")


def filled(folder: Path, seconds: float) -> None:
    """Fill the disk of a folder for a while."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    time.sleep(seconds)
    filler.unlink()


def campaign(
    folder: Path, output: str, place: Path, pieces: list[str], kills: int, seed: int,
    refuse: float, is_small: bool,
) -> Counter[str]:  # fmt: skip
    """Kill and start again until all is read; returns what happened."""
    drawn, happened = random.Random(seed), Counter[str]()
    trouble: list[threading.Thread] = []
    at = 0
    with open(folder / "stream.nq", "wb", buffering=0) as stream:
        process = started(folder, output, place)
        for number in range(kills + 1):
            share = (number + 1) * len(pieces) // (kills + 1)
            if drawn.random() < 0.8:
                owner = place / "state" / "lock"
                until = time.monotonic() + PATIENCE
                while process.poll() is None and time.monotonic() < until and (
                    not owner.exists() or owner.read_text().strip() != str(process.pid)
                ):  # fmt: skip
                    time.sleep(0.01)
            if number == kills // 2 and refuse and output.startswith("sqlite:"):
                path = output.removeprefix("sqlite:")
                trouble.append(threading.Thread(target=locked, args=(path, refuse)))
                trouble[-1].start()
            if number == kills // 2 and is_small:
                trouble.append(threading.Thread(target=filled, args=(place, 5.0)))
                trouble[-1].start()
            while at < share:
                after = min(at + drawn.randrange(1, 400), share)
                data = "".join(pieces[at:after]).encode()
                cut = drawn.randrange(len(data))
                stream.write(data[:cut])
                stream.write(data[cut:])
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
            process = started(folder, output, place)
        for thread in trouble:
            thread.join()
        process = _finished(process, folder, output, place, happened)
    process.send_signal(signal.SIGTERM)
    status = process.wait(PATIENCE)
    happened[f"ended with status {status}"] += 1
    return happened


def _finished(
    process: subprocess.Popen[bytes], folder: Path, output: str, place: Path,
    happened: Counter[str],
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Wait until the output has not grown for three seconds."""
    before, since, until = -1, time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            happened[f"ended with status {process.returncode}"] += 1
            process = started(folder, output, place)
        count = len(found_in(output))
        if count != before:
            before, since = count, time.monotonic()
        elif time.monotonic() - since > 3.0 and count:
            break
        time.sleep(0.1)
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description="Exactly once under kills.")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=200, help="in all, half for each output")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--refuse", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--full", metavar="DIR", help="a folder on a small file system")
    options = parser.parse_args()
    pieces = list(events(options.events, options.seed))
    wrong = 0
    for name in ("file", "table"):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            place = folder if options.full is None else Path(options.full) / name
            place.mkdir(exist_ok=True)
            (folder / "query.rq").write_text(QUERY, "utf-8")
            (folder / "whole.nq").write_text("".join(pieces), "utf-8")
            whole = subprocess.run(
                command(folder, "--stream", f"readings={folder / 'whole.nq'}", "--at-end", "open"),
                capture_output=True, text=True, check=True,
            ).stdout.splitlines()  # fmt: skip
            output = str(place / "out.jsonl") if name == "file" else f"sqlite:{place / 'out.db'}"
            happened = campaign(
                folder, output, place, pieces, options.kills // 2, options.seed,
                options.refuse, options.full is not None,
            )  # fmt: skip
            found = found_in(output)
            same = found == whole
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
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
