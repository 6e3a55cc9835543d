"""Live sessions in a thread of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from followed import PATIENCE, STREAM, lines

from spaseq.io.read_options import ReadOptions
from spaseq.live.coordinator import Timing
from spaseq.live.session import LiveOptions, Session
from spaseq.program import compile_queries

TIMING = Timing(quiet=0.2, idle=None, checkpoint=0.05)
EACH = """
PREFIX : <http://example.org/>
SELECT ?value WITHIN 10 SECONDS FROM STREAM readings <http://example.org/readings>
WHERE { SEQ(A) DEFINE GPM A ON readings { ?s :value ?value } }
"""
"""Finds every event."""


class Running:
    """A session that runs; a context manager that stops it."""

    def __init__(
        self,
        folder: Path,
        source: str | Sequence[str] | Mapping[str, Sequence[str]],
        query: str = EACH,
        options: LiveOptions | None = None,
        reading: ReadOptions | None = None,
        timing: Timing = TIMING,
        output: str | None = None,
    ):
        if not isinstance(source, Mapping):
            source = {STREAM: [source] if isinstance(source, str) else list(source)}
        self.out = folder / "out.jsonl"
        self.said: list[str] = []
        options = options or LiveOptions(follow=True)
        options = replace(options, output=output or str(self.out), timing=timing)
        self.session = Session(
            compile_queries(query), source, reading or ReadOptions(), options, log=self.said.append
        )
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            try:
                self.session.go()
            finally:
                self.session.close()
        except BaseException as error:
            self.failure = error

    @property
    def found(self) -> list[str]:
        """The matches so far."""
        return lines(self.out)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        until = time.monotonic() + PATIENCE
        while not condition():
            assert self.failure is None, self.failure
            assert time.monotonic() < until, f"{self.found} {self.said}"
            time.sleep(0.005)

    def has_read(self, path: Path) -> bool:
        """Whether a file has been read to its end, and its last event is complete."""
        stream = self.session.coordinator.inputs[0].stream
        position: Mapping[str, object] = stream.decoder._position  # type: ignore[attr-defined]
        return stream.was_quiet and position.get("offset") == path.stat().st_size

    def wait_for_matches(self, count: int) -> None:
        """Wait until there are so many matches."""
        self.wait_for(lambda: len(self.found) >= count)
        assert len(self.found) == count

    def join(self) -> None:
        """Wait for the end; raises what the session raised."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.session.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if error is None and self.failure is not None:
            raise self.failure


def values(found: Sequence[str]) -> list[str]:
    """The value that each match binds."""
    import json

    return [json.loads(line)["bindings"]["value"]["value"] for line in found]
