"""Messages of a channel → encoded events.

A message is one event, the union of its graphs, or an RDF Messages log with several. Under
`--events graph` each named graph in it is an event. Its syntax is that of its media type, and
N-Quads without one. Its time is that of a predicate, as in files, or the one of the channel.

An error in a message names the channel, the number of the message and the line in it. Memory: one
message.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from spaseq.errors import InputError, SpaseqError
from spaseq.io.formats import STREAM_SYNTAXES, StreamSyntax, stream_syntax
from spaseq.io.lines import STDIN, Lines
from spaseq.io.read_options import Troubles
from spaseq.io.source import Reading, Source
from spaseq.rdf._batch import EventBatch
from spaseq.rdf._relevance import Relevance
from spaseq.rdf.formats import N_QUADS
from spaseq.rdf.native._minting import Minter

GENERIC_TYPES = ("", "application/octet-stream", "text/plain")
"""Media types that do not name a syntax."""


class PushedMessages:
    """The messages of one stream.

    Args:
        source: The options, the counters and the log of the stream.
        relevance: The triples that the queries can use.
        minter: Numbers the events; None if they are put in order later.
        channel: The channel, for messages about errors.

    Raises:
        SpaseqError: for a framing that messages do not have.
    """

    def __init__(self, source: Source, relevance: Relevance, minter: Minter | None, channel: str):
        options = source.options
        kind = options.framing.kind
        if kind not in ("auto", "graph", "message"):
            raise SpaseqError(f"--events {kind} is for files; {channel} has messages")
        self._kind = "message" if kind == "auto" else kind
        self._source = source
        self._minter = minter
        self._channel = channel
        self._troubles = Troubles(options.on_error, source.counters, source.log)
        self._reading = Reading(source, relevance, self._troubles, minter)
        self._default = stream_syntax(options.syntax or N_QUADS.name)
        self._by_type = _by_media_type()
        # The channel's time counts unless an option names another one.
        self._takes_times = options.time_predicate is None and not options.arrival_time
        self._timed_by_channel: bool | None = None
        self._count = 0
        self.failure: InputError | None = None
        """The error that ends the stream, after the events returned so far."""

    def feed(self, data: bytes, media_type: str | None, time: int | None) -> None:
        """Read a message; its events are in the next batch.

        Args:
            data: The message.
            media_type: Its media type, None if the channel does not say it.
            time: Its time in microseconds since 1970, None if the channel does not have it.
        """
        self._count += 1
        name = f"{self._channel}, message {self._count}"
        events = self._reading.events
        try:
            syntax = self._syntax(media_type, name)
            self._begin(name, time)
            lines = Lines(STDIN, io.BytesIO(data))
            lines.name, lines.options = name, self._source.options
            self._reading.questions.at(name, None)
            for _ in self._reading.steps(lines, syntax, self._kind):
                pass
            events.finish()
        except InputError as error:
            self.failure = self._reading.failed(error)

    def _begin(self, name: str, time: int | None) -> None:
        """Prepare the reader for the first message; set the time of this one."""
        by_channel = self._takes_times and time is not None
        if by_channel != self._timed_by_channel:
            self._timed_by_channel = by_channel
            self._reading.start_messages(self._channel, self._kind, timed=not by_channel)
        self._reading.questions.given = time if by_channel else None

    def _syntax(self, media_type: str | None, name: str) -> StreamSyntax:
        essence = (media_type or "").partition(";")[0].strip().lower()
        if essence in GENERIC_TYPES or self._source.options.syntax is not None:
            return self._default
        if essence not in self._by_type:
            raise InputError(f"the media type {essence} names no RDF syntax", name)
        return self._by_type[essence]

    def batch(self) -> EventBatch | None:
        """The events of the messages since the last call."""
        events = self._reading.events
        found = events.fresh() if len(events.batch) else None
        if self.failure is None:
            events.refresh()
        return found

    def open(self, point: Mapping[str, Any]) -> None:
        """Continue after the messages before a restart point."""
        self._reading.events.restore(*point["reader"])
        if self._minter is not None:
            self._minter.restore(*point["minter"])
        self._count = point["count"]

    def restart(self) -> dict[str, Any]:
        """What `open` needs to continue with the next message, as data."""
        return {
            "reader": self._reading.events.state(),
            "minter": None if self._minter is None else self._minter.state(),
            "count": self._count,
        }


def _by_media_type() -> dict[str, StreamSyntax]:
    """Media type → syntax; the first syntax of a media type counts."""
    found: dict[str, StreamSyntax] = {}
    for syntax in STREAM_SYNTAXES.values():
        for name in (syntax.syntax.media_type, *syntax.syntax.other_media_types):
            found.setdefault(name, syntax)
    found["application/ld+json"] = STREAM_SYNTAXES["jsonld"]
    return found
