"""A finished file by URL in a live run: read once, and from its position after a restart.

In a run without `--follow` and `--state`, the readers of finished files, which support all syntaxes
and compressions, read it (`spaseq.io.remote_files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from spaseq.errors import InputError
from spaseq.io.remote_files import open_remote
from spaseq.live.addresses import redacted
from spaseq.live.protocols import Chunk, Position

_AT_ONCE = 1 << 18


class RemoteFile:
    """A source of one document; see `open_remote`."""

    messages = False
    replays = True

    def __init__(self, url: str):
        self._url = url
        self._file: IO[bytes] | None = None
        self._read = 0
        self._begun = False

    def open(self, position: Position | None) -> None:
        self._file = open_remote(self._url)
        if position is not None:
            self._begun = True
            # Not every file system can start reading in the middle of a file.
            while self._read < position["offset"]:
                wanted = min(_AT_ONCE, position["offset"] - self._read)
                if not self._next(wanted):
                    raise InputError("it is shorter than it was", redacted(self._url))

    def _next(self, most: int) -> bytes:
        assert self._file is not None
        try:
            data = self._file.read(most)
        except OSError as error:
            raise InputError(
                f"cannot be read: {error.strerror or error}", redacted(self._url)
            ) from error
        self._read += len(data)
        return data

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        data = self._next(_AT_ONCE)
        if not data:
            return None
        document = None if self._begun else redacted(self._url)
        self._begun = True
        path = self._url.partition("?")[0]
        return [Chunk(data, {"offset": self._read}, document, path)]

    def acknowledge(self, position: Position) -> None:
        """Do nothing, since the file remains."""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
