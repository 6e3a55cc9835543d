"""Live runs in processes of their own: a stream that is written while they run, and kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
STREAM = "http://example.org/readings"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?s ?low ?high
WITHIN 30 SECONDS
FROM STREAM readings <http://example.org/readings>
WHERE {
  SEQ(A : B)
  DEFINE GPM A ON readings { ?s :value ?low . FILTER(?low < 10) }
  DEFINE GPM B ON readings { ?s :value ?high . FILTER(?high > 90) }
}
"""
PATIENCE = 60.0
"""Seconds: far longer than anything here takes."""


def events(count: int, seed: int = 1, stream: str = "e") -> Iterator[str]:
    """Events in N-Quads, ten a second of event time."""
    drawn = random.Random(seed)
    for number in range(count):
        graph = f"<http://example.org/{stream}/{number}>"
        time = f'"{number / 10}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
        yield (
            f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n"
            f"<http://example.org/s{drawn.randrange(20)}> <http://example.org/value> "
            f'"{drawn.randrange(100)}"^^<http://www.w3.org/2001/XMLSchema#integer> {graph} .\n'
            f'_:n <http://example.org/unit> "C" {graph} .\n'
        )


class Live:
    """A process that runs `spaseq run`; `command` are its arguments."""

    def __init__(self, command: Sequence[str | Path], folder: Path, stdin: int | None = None):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self._log = open(folder / "log", "a+b")  # noqa: SIM115 (closed by `end`)
        self._begun = self._log.seek(0, 2)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spaseq", "run", *map(str, command)],
            cwd=folder,
            env=environment,
            stdin=stdin if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    @property
    def said(self) -> str:
        """What it has written to standard error."""
        self._log.seek(self._begun)
        return self._log.read().decode()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, while the process runs."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"it ended: {self.said}"
            assert time.monotonic() < until, f"it did not come to that: {self.said}"
            time.sleep(0.01)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; returns the exit status."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> int:
        """Wait for the end; returns the exit status."""
        try:
            status = self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self._log.close()
        return status


def lines(path: Path) -> list[str]:
    """The whole lines of a file."""
    return path.read_text("utf-8").splitlines() if path.exists() else []


def rows(path: Path) -> list[str]:
    """The matches in the table of a database, as JSON lines."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as db:
        try:
            return [row for (row,) in db.execute("SELECT match FROM matches ORDER BY rowid")]
        except sqlite3.OperationalError:
            return []


def finished_run(folder: Path, text: str, *more: str) -> list[str]:
    """The matches of one run over the whole stream, not finished, as JSON lines."""
    (folder / "whole.nq").write_text(text, "utf-8")
    command = [sys.executable, "-m", "spaseq", "run", "query.rq", "--stream", "readings=whole.nq"]
    done = subprocess.run(
        [*command, *more], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout.splitlines()


def killed_until_done(
    folder: Path, output: str, count: int, kills: int, seed: int
) -> tuple[list[str], list[str], int]:
    """Follow a file that grows, kill the run at random moments and start it again.

    Returns the matches in the output, those of an undisturbed run, and the number of kills.
    """
    drawn = random.Random(seed)
    (folder / "query.rq").write_text(QUERY, "utf-8")
    pieces = list(events(count, seed))
    expected = finished_run(folder, "".join(pieces))
    target = folder / output.removeprefix("sqlite:")
    read = rows if output.startswith("sqlite:") else lines
    command = [
        "query.rq", "--stream", "readings=stream.nq", "--follow", "--output", output,
        "--state", "state", "--checkpoint-every", "50ms",
    ]  # fmt: skip
    killed, at = 0, 0
    with open(folder / "stream.nq", "wb", buffering=0) as stream:
        for number in range(kills + 1):
            live = Live(command, folder)
            share = len(pieces) if number == kills else (number + 1) * len(pieces) // (kills + 1)
            lock = folder / "state" / "lock"
            # The rest of the time is spent on reading, not on the start.
            live.wait_for(lambda: lines(lock) == [str(live.process.pid)])  # noqa: B023
            until = time.monotonic() + drawn.uniform(0.0, 0.6)
            before = newest(folder)
            while at < share or (number < kills and time.monotonic() < until):
                after = min(at + 50, share)
                data = "".join(pieces[at:after]).encode()
                cut = drawn.randrange(len(data) + 1)
                stream.write(data[:cut] if data[cut - 1 : cut] != b"\n" else b"")
                stream.write(data[cut:] if data[cut - 1 : cut] != b"\n" else data)
                at = after
                time.sleep(0.01)
            if number < kills:
                if number % 2:
                    live.wait_for(lambda: newest(folder) > before)  # noqa: B023
                time.sleep(drawn.uniform(0.0, 0.5))
                killed += live.process.poll() is None
                live.end(signal.SIGKILL)
                continue
            deadline = time.monotonic() + PATIENCE
            while len(read(target)) < len(expected) and time.monotonic() < deadline:
                assert live.process.poll() is None, live.said
                time.sleep(0.05)
            assert live.end() == 0, live.said
    return read(target), expected, killed


def newest(folder: Path) -> int:
    """The number of the newest checkpoint of the folder `state`; 0 without any."""
    names = (path.name.partition("-")[2] for path in (folder / "state").glob("checkpoint-*"))
    return max((int(name) for name in names if name.isdigit()), default=0)


def last(path: Path) -> dict[str, object]:
    """The last JSON line of a file."""
    found: dict[str, object] = json.loads(lines(path)[-1])
    return found
