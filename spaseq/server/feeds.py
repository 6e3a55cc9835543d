"""A source that feeds a stream, as a part of the machine: chunks in the journal → events.

A thread reads the source (`spaseq.server.sources`). Each chunk is written to the journal before it
is decoded, with the position of the source after it. After a crash, the source therefore continues
after the last record, and all earlier chunks are decoded again to the same events.

**Continuing at a checkpoint.** A document may be read to the middle of an event, and events of
earlier chunks may wait for other streams. A restart point of the decoder (`spaseq.live.decoders`)
and the bytes of the open event are all that is needed to continue. If no event waits, a checkpoint
stores the current ones. Otherwise it stores the newest ones that precede all waiting events; the
later records are decoded again, and only the events that waited are used.

The decoder is tied to the dictionary of a run. When the server has a new run, the feed makes a new
decoder, which reads the open event again.

Memory: the open event, and a restart point for each chunk since the last checkpoint.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from spaseq.io.read_options import ReadOptions, TimeDomain
from spaseq.io.source import Source as Reader
from spaseq.live.decoders import DocumentDecoder, MessageDecoder
from spaseq.live.protocols import Chunk, Position
from spaseq.rdf.native._terms import Dictionary, EventBatch, Relevance
from spaseq.records import dataclass
from spaseq.server.bodies import MAX_NAMED_ERRORS
from spaseq.server.inputs import InputStream

_Decoder: TypeAlias = DocumentDecoder | MessageDecoder


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """What a feed reads.

    Args:
        name: Its name: that of its stream in the queries, or the IRI.
        stream: The IRI of the stream.
        places: The paths or URLs, without passwords.
        messages: Whether a chunk is a whole message.
        replays: Whether the source can continue at a position.
    """

    name: str
    stream: str
    places: Sequence[str]
    messages: bool
    replays: bool


_Piece: TypeAlias = bytes | None
"""Bytes of the open event; None: a pause of the source, which ended an event."""


@dataclass(slots=True)
class _Point:
    """A restart point.

    Args:
        after: The record after which it was taken.
        saved: The decoder's data; None: it has read nothing.
        open: The bytes of the open event.
        needs: The next record of the feed; None: there is none.
    """

    after: int
    saved: Mapping[str, Any] | None
    open: Sequence[_Piece] = ()
    needs: int | None = None

    @property
    def offset(self) -> int:
        """Where the open event begins in its document."""
        return 0 if self.saved is None else int(self.saved["reader"]["offset"])


class Feed:
    """The chunks of one source.

    Args:
        settings: What it reads.
        options: How events are read.
        domain: The kind of time of the stream.
    """

    def __init__(self, settings: FeedSettings, options: ReadOptions, domain: TimeDomain):
        self.settings = settings
        # The stream sorts the events.
        options = replace(options, workers=1, lateness=options.lateness or 0)
        self.errors: deque[str] = deque(maxlen=MAX_NAMED_ERRORS)
        """The last malformed statements and messages that were skipped."""
        self._reader = Reader(
            settings.stream, settings.places, options, 0, domain, self.errors.append
        )
        self.position: Position | None = None
        """The position of the source after the last chunk."""
        self.has_ended = False
        self.again_from: int | None = None
        """The first record to read again after `restored`, by `take_again`; None: none."""
        self._decoder: _Decoder | None = None
        self._dictionary: Dictionary | None = None
        self._failure = ""
        self._points: deque[_Point] = deque()
        self._pieces: deque[_Piece] = deque()
        """The bytes since the last restart point."""
        self._begin = 0
        """The position of their beginning in the document."""
        self._last = -1
        """The last record."""

    @property
    def failure(self) -> str:
        """The error in the data that ends the feed; empty if there is none."""
        if self._decoder is not None and self._decoder.failure is not None:
            self._failure = str(self._decoder.failure)
        return self._failure

    @property
    def rejected(self) -> int:
        """The number of malformed statements and messages skipped since the start."""
        return self._reader.counters.skipped

    # ------------------------------------------------------------ reading

    def take(self, chunk: Chunk, record: int, relevance: Relevance) -> list[EventBatch]:
        """The events that a chunk completes. An error after them is in `failure`."""
        self.position, self.has_ended = chunk.position, False
        decoder = self._decoder_for(relevance)
        self._note(record)
        if chunk.document is not None:
            decoder.begin(chunk)
            self._pieces.clear()
            self._begin = 0
            self._keep(record - 1)
        elif not self._points:
            self._points.append(_Point(record - 1, None))
        self._note(record)
        found = list(decoder.take(chunk))
        if not self.settings.messages:
            self._pieces.append(chunk.data)
        self._keep(record)
        return found

    def take_again(self, chunk: Chunk, record: int, relevance: Relevance) -> list[EventBatch]:
        """Like `take`, for a record before the checkpoint at which the feed continues."""
        kept = self.position, self.has_ended
        found = self.take(chunk, record, relevance)
        self.position, self.has_ended = kept
        return found

    def quiet(self, relevance: Relevance) -> list[EventBatch]:
        """The open event, if it is complete, after nothing has arrived for a while.

        If there is one, `has_been_quiet` informs the feed of the record that says so.
        """
        decoder = self._decoder_for(relevance)
        batch = decoder.quiet()
        return [] if batch is None else [batch]

    def has_been_quiet(self, record: int) -> None:
        """Remember that the open event ended at a record."""
        self._note(record)
        self._pieces.append(None)
        self._keep(record)

    def end(self, record: int, relevance: Relevance) -> list[EventBatch]:
        """Handle the end of the source; returns its last events."""
        batch = self._decoder_for(relevance).end()
        self._note(record)
        self.has_ended = True
        self._pieces.clear()
        if self._points:
            self._points.append(_Point(record, self._points[-1].saved))
        return [] if batch is None else [batch]

    def _note(self, record: int) -> None:
        """Note a record of this feed."""
        self._last = record
        if self._points and self._points[-1].needs is None:
            self._points[-1].needs = record

    def _keep(self, record: int) -> None:
        """Remember the restart point after a record."""
        saved = None if self.failure or self._decoder is None else self._decoder.restart()
        if saved is None:
            return
        pieces = self._pieces
        if not self.settings.messages:
            offset = saved["reader"]["offset"]
            while pieces and self._begin + len(pieces[0] or b"") <= offset:
                self._begin += len(pieces.popleft() or b"")
            if pieces and pieces[0]:
                pieces[0] = pieces[0][offset - self._begin :]
            self._begin = offset
        self._points.append(_Point(record, saved, tuple(pieces)))

    # ------------------------------------------------------------ decoders

    def _decoder_for(self, relevance: Relevance) -> _Decoder:
        """The decoder for a run; it has read the open event."""
        if self._decoder is not None and self._dictionary is relevance.dictionary:
            return self._decoder
        decoder: _Decoder
        if self.settings.messages:
            decoder = MessageDecoder(self._reader, relevance, None, self.settings.places[0])
        else:
            decoder = DocumentDecoder(self._reader, relevance, None, True)
        if self._points and (saved := self._points[-1].saved) is not None:
            decoder.open(saved)
            for piece in self._pieces:
                if piece is None:
                    decoder.quiet()
                    continue
                for _ in decoder.take(Chunk(piece, self.position or {})):
                    pass  # the previous run has had these events
        self._decoder, self._dictionary = decoder, relevance.dictionary
        return decoder

    # ------------------------------------------------------------ checkpoints

    def first_record(self, waiting: int | None) -> int | None:
        """The first record that a checkpoint made now needs; None: none.

        Args:
            waiting: The first record with an event of the stream that waits.
        """
        self._settle(waiting)
        return None if waiting is None or not self._points else self._points[0].needs

    def _settle(self, waiting: int | None) -> None:
        """Drop the points that no checkpoint needs any longer."""
        points = self._points
        while len(points) > 1 and (waiting is None or points[1].after < waiting):
            points.popleft()
        if waiting is None and points:
            points[0] = _Point(self._last, points[0].saved, tuple(self._pieces))

    def state(self, waiting: int | None) -> dict[str, Any]:
        """The feed as data, for `restored`; `waiting` as for `first_record`."""
        again = self.first_record(waiting)
        settings = self.settings
        point = self._points[0] if self._points else None
        return {
            "settings": [
                settings.name, settings.stream, list(settings.places), settings.messages,
                settings.replays,
            ],
            "position": self.position,
            "ended": self.has_ended,
            "failure": self.failure,
            "point": point and [
                point.after,
                point.saved,
                [None if one is None else b64encode(one).decode() for one in point.open],
            ],
            "again": again,
        }  # fmt: skip

    @staticmethod
    def restored(
        saved: Mapping[str, Any], options: ReadOptions, streams: Mapping[str, InputStream]
    ) -> Feed:
        """A feed at a checkpoint."""
        name, stream, places, messages, replays = saved["settings"]
        settings = FeedSettings(name, stream, places, messages, replays)
        feed = Feed(settings, options, streams[stream].domain)
        feed.position, feed.has_ended = saved["position"], saved["ended"]
        feed._failure, feed.again_from = saved["failure"], saved["again"]
        if saved["point"] is not None:
            after, restart, encoded = saved["point"]
            pieces = [None if one is None else b64decode(one) for one in encoded]
            point = _Point(after, restart, pieces)
            feed._points.append(point)
            feed._pieces.extend(pieces)
            feed._last = after
            if not messages:
                feed._begin = point.offset
        return feed


# ---------------------------------------------------------------- chunks in the journal


def chunk_record(name: str, chunk: Chunk) -> tuple[dict[str, Any], bytes]:
    """A chunk as a record of the journal: its mapping and its body."""
    says: dict[str, Any] = {"do": "chunk", "feed": name, "position": chunk.position}
    if chunk.together:
        says["sizes"] = [len(data) for data, _, _ in chunk.together]
        says["types"] = _single([kind for _, kind, _ in chunk.together])
        says["times"] = _single([time for _, _, time in chunk.together])
        return says, b"".join([data for data, _, _ in chunk.together])
    plain = {
        "document": chunk.document, "path": chunk.path, "ends": chunk.ends,
        "type": chunk.media_type, "time": chunk.time, "mark": chunk.mark,
    }  # fmt: skip
    return says | {key: value for key, value in plain.items() if value not in (None, False)}, (
        chunk.data
    )


def chunk_of(says: Mapping[str, Any], body: bytes) -> Chunk:
    """The chunk of a record."""
    sizes = says.get("sizes")
    if sizes is None:
        return Chunk(
            body, says["position"], says.get("document"), says["path"], says.get("ends", False),
            says.get("type"), says.get("time"), says.get("mark", False),
        )  # fmt: skip
    types, times = (_each(says[key], len(sizes)) for key in ("types", "times"))
    together, begin = [], 0
    for size, kind, time in zip(sizes, types, times, strict=True):
        together.append((body[begin : begin + size], kind, time))
        begin += size
    return Chunk(b"", says["position"], together=together)


def _single(values: list[Any]) -> list[Any]:
    """The values without duplicates."""
    return values[:1] if values.count(values[0]) == len(values) else values


def _each(values: list[Any], count: int) -> list[Any]:
    return values * count if len(values) == 1 else values
