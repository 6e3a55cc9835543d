"""Other engines as processes that answer queries: the protocol of peers/README.md."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Self

FOLDER = Path(__file__).parent / "peers" / "drivers"
INSTALLED = Path(__file__).parents[2] / "build" / "peers"
LIMIT = 600
"""Seconds after which a driver that does not answer is ended."""


@dataclass(frozen=True, slots=True)
class Peer:
    """An engine: how its driver is started, and how much it is asked.

    Args:
        most: So many events at most, by question; those that are not named get all.
    """

    name: str
    command: Sequence[str]
    most: Mapping[str, int] = field(default_factory=dict)


def _python(name: str) -> list[str]:
    return [sys.executable, str(FOLDER / f"{name}_driver.py")]


def _node(name: str) -> list[str]:
    script = FOLDER / f"{name.replace('-', '_')}_driver.mjs"
    return ["node", str(script), str(INSTALLED / name)]


KNOWN = {
    peer.name: peer
    for peer in (
        Peer("polars", _python("polars")),
        Peer("duckdb", _python("duckdb")),
        Peer(
            "siddhi",
            [*_python("java"), "siddhi"],
            {"next": 100_000, "key": 10_000, "never": 20_000},
        ),
        Peer(
            "flink",
            [*_python("java"), "flink"],
            {"next": 20_000, "all": 5_000, "key": 20_000, "never": 2_000},
        ),
        Peer(
            "pyoxigraph",
            _python("pyoxigraph"),
            {"next": 1_000, "all": 5_000, "key": 2_000, "never": 20_000},
        ),
        Peer("comunica", _node("comunica"), {"next": 60, "all": 200, "key": 200, "never": 2_000}),
        Peer("rsp-js", _node("rsp-js"), {"next": 60, "all": 60}),
    )
}
"""The engines that have a driver here. The numbers of events take each some seconds."""


def chosen(names: Sequence[str]) -> list[Peer]:
    """The peers of a command line: known names, or `NAME=COMMAND`; all known ones if empty.

    Raises:
        SystemExit: for a name that is not known.
    """
    peers = []
    for text in names or KNOWN:
        name, given, command = text.partition("=")
        if not given and name not in KNOWN:
            raise SystemExit(f"{name}: no such peer; known are {', '.join(KNOWN)}, or NAME=COMMAND")
        peers.append(Peer(name, command.split()) if given else KNOWN[name])
    return peers


class Unable(Exception):
    """A driver cannot run here, or its engine cannot ask the question; says why."""


class Driver:
    """A running driver; a context manager that ends it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        try:
            self._process = subprocess.Popen(
                self.peer.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._errors, text=True,
            )  # fmt: skip
        except OSError as error:
            self._errors.close()
            raise Unable(f"{self.peer.command[0]}: {error.strerror}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def ask(self, name: str, window: int, kinds: Sequence[str], events: Sequence[str]) -> None:
        """Pose a question over events, each as `TIME,KIND,KEY`.

        Raises:
            Unable: if there is no way to ask it.
        """
        answer = self._answer(f"question {name} {window} {' '.join(kinds)}\n")
        if answer != "ready":
            raise Unable(answer.removeprefix("cannot: "))
        self._send("".join(f"{event}\n" for event in events))

    def run(self) -> tuple[int, float]:
        """The number of matches, and the seconds of the processor that counting them took."""
        found, seconds = self._answer("run\n").split()
        return int(found), float(seconds)

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unable(self._reason()) from None

    def _answer(self, text: str) -> str:
        assert self._process.stdout is not None
        self._send(text)
        limit = Timer(LIMIT, self._process.kill)
        limit.start()
        answer = self._process.stdout.readline().strip()
        limit.cancel()
        if not answer:
            raise Unable(self._reason())
        return answer

    def _reason(self) -> str:
        """The last line of standard error."""
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines() or [f"no answer within {LIMIT} s"]
        return lines[-1].removeprefix("cannot: ")
