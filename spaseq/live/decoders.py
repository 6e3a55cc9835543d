"""Chunks of a source → encoded events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spaseq.errors import InputError
from spaseq.io.pushed import PushedDocuments
from spaseq.io.pushed_messages import PushedMessages
from spaseq.io.source import Source
from spaseq.live.protocols import Chunk, Position
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import EventBatch, Relevance


class DocumentDecoder:
    """Documents that arrive in chunks."""

    def __init__(self, source: Source, relevance: Relevance, minter: Minter | None, keeps: bool):
        self._pushed = PushedDocuments(source, relevance, minter, keeps)
        self._position: Position = {}
        self._document = ("", "-")

    @property
    def failure(self) -> InputError | None:
        return self._pushed.failure

    def begin(self, chunk: Chunk) -> None:
        """Begin the document of a chunk."""
        assert chunk.document is not None
        self._document = (chunk.document, chunk.path)
        self._position = chunk.position
        self._pushed.open(*self._document)

    def take(self, chunk: Chunk) -> Iterator[EventBatch]:
        """The events that are complete after a chunk."""
        self._position = chunk.position
        batch = self._pushed.feed(chunk.data) if chunk.data else None
        if batch is not None:
            yield batch
        if chunk.ends:
            batch = self._pushed.end()
            if batch is not None:
                yield batch

    def end(self) -> EventBatch | None:
        """Handle the end of the source."""
        return self._pushed.end()

    def quiet(self) -> EventBatch | None:
        """The open event of a quiet source, if it is complete."""
        return self._pushed.quiet()

    def open(self, point: Mapping[str, Any]) -> None:
        """Continue at a restart point."""
        self._document = (point["document"], point["path"])
        self._position = point["source"]
        self._pushed.open(*self._document, point["reader"])

    def restart(self) -> dict[str, Any] | None:
        """The restart point, with the position of the source; None if there is none here."""
        reader = self._pushed.restart()
        if reader is None:
            return None
        return {
            "document": self._document[0],
            "path": self._document[1],
            "reader": reader,
            "source": {**self._position, "offset": reader["offset"]},
        }


class MessageDecoder:
    """Messages; the events of a chunk are a batch, or more if the source has several at once."""

    def __init__(self, source: Source, relevance: Relevance, minter: Minter | None, channel: str):
        self._pushed = PushedMessages(source, relevance, minter, channel)
        self._position: Position | None = None

    @property
    def failure(self) -> InputError | None:
        return self._pushed.failure

    def begin(self, chunk: Chunk) -> None:
        """Messages are not documents."""

    def take(self, chunk: Chunk) -> Iterator[EventBatch]:
        """The events of a message."""
        if chunk.mark:
            self._position = chunk.position
            return
        if chunk.together:
            self._pushed.feed_all(chunk.together)
        else:
            self._pushed.feed(chunk.data, chunk.media_type, chunk.time)
        self._position = chunk.position
        yield from self._pushed.batches()

    def end(self) -> EventBatch | None:
        """Each message has ended already."""
        return None

    def quiet(self) -> EventBatch | None:
        """Each message has ended already."""
        return None

    def open(self, point: Mapping[str, Any]) -> None:
        """Continue at a restart point."""
        self._position = point["source"]
        self._pushed.open(point["reader"])

    def restart(self) -> dict[str, Any] | None:
        """The restart point, with the position of the source."""
        if self._position is None:
            return None
        return {"reader": self._pushed.restart(), "source": dict(self._position)}
