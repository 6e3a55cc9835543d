"""The server without HTTP: calls as the routes make them, and matches read from the board."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from spaseq.io.read_options import ReadOptions
from spaseq.server.board import Board
from spaseq.server.bodies import Body
from spaseq.server.engine import Engine
from spaseq.server.inputs import Accepted
from spaseq.server.kept_state import EngineSettings
from spaseq.server.run_options import RunSettings
from spaseq.server.standing import Definition

N_QUADS = "application/n-quads"
IDLE_SECONDS = 1e6
PATIENCE_SECONDS = 60.0
_T = TypeVar("_T")


class DrivenServer:
    """An engine with its state folder; `close` it.

    Args:
        folder: Where the state is; one folder after each crash.
        lateness: That of the streams, in microseconds.
        durable: Whether the journal is written before each answer.
    """

    def __init__(self, folder: Path, *, lateness: int = 0, durable: bool = False):
        self._root = folder
        self._durable = durable
        self._run = RunSettings(ReadOptions(lateness=lateness), None, {}, {})
        self._number = 0
        self._open()

    def _open(self) -> None:
        folder = self._root / f"server{self._number}"
        settings = EngineSettings(folder, checkpoint=1e6, idle=IDLE_SECONDS, durable=self._durable)
        folder.mkdir(parents=True, exist_ok=True)
        self.engine = Engine(settings, self._run, Board(folder / "matches", 10**6, 1 << 30))
        until = time.monotonic() + PATIENCE_SECONDS
        while not self.engine.has_replayed:
            assert time.monotonic() < until, self.engine.trouble
            time.sleep(0.001)
        self.engine.start()
        self.do(lambda: None)  # what was found again is published before

    def do(self, function: Callable[[], _T]) -> _T:
        """Call a function in the thread of the engine."""
        return self.engine.call(function).result(PATIENCE_SECONDS)

    # ------------------------------------------------------------ the routes

    def put_query(self, name: str, text: str, entail: str | None = None) -> None:
        definition = Definition(name, text, entail=entail)
        program = definition.compile()
        self.do(lambda: self.engine.put_query(definition, program, "fresh"))

    def put_kb(self, iri: str, triples: bytes) -> None:
        """Set a graph of the knowledge base, in N-Triples."""
        file = f"graph{self.engine._journal.next}.nt"
        (self.engine.kb_folder / file).write_bytes(triples)
        self.do(lambda: self.engine.put_kb(iri, file, triples.count(b"\n")))

    def push(self, stream: str, text: bytes) -> Accepted:
        """Push a body of N-Quads."""
        body = Body(text, N_QUADS, "auto", False, 0)
        return self.do(lambda: self.engine.events(stream, body))[0]

    def watermark(self, stream: str, time: float | str) -> None:
        """Push a watermark."""
        self.do(lambda: self.engine.watermark(stream, time))

    def idle(self, stream: str) -> None:
        """Let a stream be silent for so long that the others do not wait for it."""

        def silence() -> None:
            self.engine.machine.streams[stream].heard -= 2 * IDLE_SECONDS

        self.do(silence)  # the turn of this call notices the silence

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The matches of a query in the replay buffer."""
        topic = self.engine.board.channel(name).topic
        data, cursor = b"", topic.first
        while cursor < topic.end:
            block, cursor = topic.read(cursor, topic.end)
            data += block
        records = [line.split(b" ", 1)[1] for line in data.splitlines()]
        return [json.loads(record, parse_float=Decimal) for record in records]

    def count(self, name: str) -> int:
        """The number of matches of a query."""
        return self.engine.board.channel(name).topic.end

    # ------------------------------------------------------------ the process

    def checkpoint(self) -> None:
        """Make a checkpoint."""
        self.engine.call(self.engine.checkpoints.make_last).result(PATIENCE_SECONDS)

    def restart(self) -> None:
        """Stop and start again."""
        self.engine.stop()
        self._open()

    def crash(self) -> None:
        """Continue from what is on disk now."""
        assert self._durable, "without a durable journal nothing would be left"
        before, self._number = self._root / f"server{self._number}", self._number + 1
        shutil.copytree(before, self._root / f"server{self._number}")
        self.engine.stop()
        self._open()

    def close(self) -> None:
        self.engine.stop()
