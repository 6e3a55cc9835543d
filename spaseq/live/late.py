"""Late events → JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from spaseq.errors import SpaseqError
from spaseq.rdf.native._terms import EventBatch
from spaseq.rdf.reorder import AHEAD, Refusal
from spaseq.rdf.time import from_micros, json_value

if TYPE_CHECKING:
    from spaseq.live.streams import LateEvent


def late_event(stream: str, batch: EventBatch, index: int, refusal: Refusal) -> dict[str, Any]:
    """An event that is too late or too far ahead as JSON; see `LateLines` for the keys."""
    stamp, name = batch.time(index), batch.name(index)
    behind = (refusal.bound - stamp.micros) / 1e6
    bound = json_value(from_micros(refusal.bound, stamp.domain))
    if refusal.reason == AHEAD:
        measured = {"clock": bound, "ahead": -behind}
    else:
        measured = {"watermark": bound, "lateness": behind}
    shown = {
        "stream": stream,
        "time": json_value(stamp),
        "reason": refusal.reason,
        **measured,
        "graph": None if name is None else getattr(name, "value", str(name)),
        "triples": batch.n_triples(index).decode(),
    }
    return {key: value for key, value in shown.items() if value is not None}


class LateLines:
    """Writes one object per late event.

    Its keys are `stream`, `time`, `reason` (`lateness`: behind the watermark of its stream; `idle`:
    behind the time that the run reached while its stream was idle; `clock`: behind the clock;
    `ahead`: too far ahead of the clock), `watermark`, `lateness` in seconds behind the watermark,
    `graph` (the name, if there is one), `triples` (the triples that the queries use, as N-Triples),
    `file` and `line`. For `ahead` there are `clock` and `ahead`, the seconds ahead of it, in place
    of `watermark` and `lateness`.

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
        batch, index, refusal = late
        found = late_event(batch.stream, batch, index, refusal)
        found |= {"file": batch.file, "line": batch.line(index)}
        self._file.write(json.dumps(found, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
