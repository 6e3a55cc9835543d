"""Late events → JSON lines."""

from __future__ import annotations

import json
from typing import TextIO

from spaseq.errors import SpaseqError
from spaseq.live.streams import LateEvent
from spaseq.rdf.time import from_micros, json_value


class LateLines:
    """Writes one object per late event.

    Its keys are `stream`, `time`, `reason` (`lateness`: behind the watermark of its stream; `idle`:
    behind the time that the run reached while its stream was idle; `clock`: behind the clock),
    `watermark`, `lateness` in seconds behind the watermark, `graph` (the name, if there is one),
    `triples` (the triples that the queries use, as N-Triples), `file` and `line`.

    Raises:
        SpaseqError: if the file cannot be opened.
    """

    def __init__(self, path: str, appends: bool):
        self._path = path
        try:
            self._file: TextIO = open(  # noqa: SIM115 (closed by `close`)
                path, "a" if appends else "w", encoding="utf-8"
            )
        except OSError as error:
            raise SpaseqError(f"{path}: cannot be written: {error.strerror or error}") from error

    def write(self, late: LateEvent) -> None:
        """Append one event."""
        batch, index, reason, watermark = late
        stamp, name = batch.time(index), batch.name(index)
        shown = {
            "stream": batch.stream,
            "time": json_value(stamp),
            "reason": reason,
            "watermark": json_value(from_micros(watermark, stamp.domain)),
            "lateness": (watermark - stamp.micros) / 1e6,
            "graph": None if name is None else getattr(name, "value", str(name)),
            "triples": batch.n_triples(index).decode(),
            "file": batch.file,
            "line": batch.line(index),
        }
        found = {key: value for key, value in shown.items() if value is not None}
        self._file.write(json.dumps(found, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
