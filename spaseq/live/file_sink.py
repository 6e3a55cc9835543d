"""Matches → a file or standard output.

A checkpoint records the length of the file and a digest of its last bytes. At the start, the file
is truncated to this length if these bytes are the same, so every match is in the file exactly once.
A file that was changed since is refused, unless a change farther ahead kept its length. Formats in
which a match depends on earlier matches cannot be continued. Standard output cannot be truncated,
so matches after the last checkpoint are written again.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from spaseq.errors import SpaseqError, StateError
from spaseq.io.formats import Shape, sink_format
from spaseq.io.sinks import Sink as Writing
from spaseq.io.sinks import open_sink
from spaseq.rdf.formats import one_of
from spaseq.results import Match
from spaseq.runs import Run

CONTINUED = ("jsonl", "csv", "tsv")
"""The formats of files that can be truncated and continued."""
COMPARED_BYTES = 1 << 16
"""The most bytes before the recorded length that must be the same."""


class FileSink:
    """Writes one file; without a path, standard output.

    Args:
        path: The file, or None.
        format: A name in `spaseq.io.formats.SINKS`.
        shapes: The results of the queries.
        keeps: Whether there will be checkpoints.
        most: The number of matches to write, or None.

    Raises:
        SpaseqError: for a format that cannot hold the results, or cannot be continued.
    """

    def __init__(
        self,
        path: str | None,
        format: str,
        shapes: Sequence[Shape],
        keeps: bool,
        most: int | None = None,
    ):
        self._path = path
        self._format = format
        self._shapes = shapes
        self._most = most
        self._keeps = keeps
        self._sink: Writing | None = None
        sink_format(format, shapes)
        if keeps and path is not None and format not in CONTINUED:
            raise SpaseqError(
                f"a file of the format {format} cannot be continued after a restart: with --state, "
                f"use --format {one_of(list(CONTINUED))}"
            )

    @property
    def written(self) -> int:
        return 0 if self._sink is None else self._sink.written

    def resume(self, state: str, tokens: Mapping[int, Any]) -> int:
        if self._path is None:
            self._sink = open_sink(self._format, self._shapes, None, live=True)
            return max(tokens, default=0)
        if not tokens:
            self._sink = open_sink(self._format, self._shapes, self._path, live=True)
            return 0
        size = os.path.getsize(self._path) if os.path.isfile(self._path) else 0
        for number in sorted(tokens, reverse=True):
            length = tokens[number]["length"]
            # States of earlier versions have no digest.
            if length <= size and tokens[number].get("end") in (None, _end(self._path, length)):
                self._open_at(length)
                return number
        if min(_lengths(tokens)) <= size:
            raise StateError(
                f"{self._path}: the output was changed since the saved state, at which it had "
                f"{max(_lengths(tokens))} bytes: restore it, or begin with another state folder"
            )
        raise StateError(
            f"{self._path}: the output has {size} bytes, but had {min(_lengths(tokens))} at the "
            "saved state: restore it, or begin with another state folder"
        )

    def _open_at(self, length: int) -> None:
        """Truncate the file and continue it, without a second header."""
        assert self._path is not None
        try:
            # `_Continued` must be a binary file for the text layer.
            file = open(self._path, "r+b")  # noqa: SIM115 (closed by the sink)
            file.truncate(length)
            file.seek(length)
        except OSError as error:
            raise SpaseqError(
                f"{self._path}: cannot be written: {error.strerror or error}"
            ) from error
        header = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
        out = _Redirected(header)
        writer = sink_format(self._format, self._shapes).open(out, self._shapes)
        out.target = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._sink = Writing(writer, out, file, True, self._path)  # type: ignore[arg-type]

    def attach(self, run: Run) -> None:
        assert self._sink is not None
        self._sink.format_natively(run.evaluation, self._most)

    def write(self, match: Match) -> None:
        assert self._sink is not None
        self._sink.write(match)

    def write_block(self) -> None:
        assert self._sink is not None
        self._sink.write_block()

    def prepare(self) -> Any:
        token = self.mark()
        self.sync()
        return token

    def mark(self) -> Any:
        self.write_block()
        if self._path is None or self._sink is None:
            return {}
        length = self._sink.flushed()
        return {"length": length, "end": _end(self._path, length)}

    def sync(self) -> None:
        if self._path is not None and self._sink is not None:
            self._sink.sync()

    def commit(self, number: int) -> None:
        """The length is part of the checkpoint."""

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()


class _Redirected:
    """A text file whose target changes after the header has been written."""

    def __init__(self, target: io.TextIOWrapper):
        self.target = target

    def write(self, text: str) -> int:
        return self.target.write(text)

    def flush(self) -> None:
        self.target.flush()

    def close(self) -> None:
        self.target.close()


def _end(path: str, length: int) -> str:
    """The digest of the last bytes of the first `length` of a file; empty if there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, length - COMPARED_BYTES))
            read = file.read(min(length, COMPARED_BYTES))
    except OSError:
        return ""
    return blake2b(read, digest_size=16).hexdigest()


def _lengths(tokens: Mapping[int, Any]) -> list[int]:
    return [token["length"] for token in tokens.values()]
