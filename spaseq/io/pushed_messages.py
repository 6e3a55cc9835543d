"""Messages of a channel → encoded events.

A message is one event, the union of its graphs, or an RDF Messages log with several events. Under
`--events graph`, each named graph in it is an event. The media type determines the syntax; without
one it is N-Quads. The time comes from a predicate, as in files, or from the channel. An empty
message is an event with an empty graph if the channel gives its time.

An error in a message names the channel, the number of the message and the line in it. Memory: one
message.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from spaseq.errors import InputError, SpaseqError
from spaseq.io.formats import STREAM_SYNTAXES, StreamSyntax, stream_syntax
from spaseq.io.lines import STDIN, Lines
from spaseq.io.read_options import Troubles
from spaseq.io.recognition import content_syntax
from spaseq.io.source import Reading, Source
from spaseq.rdf.formats import N_QUADS
from spaseq.rdf.native._framing import Minter
from spaseq.rdf.native._terms import EventBatch, Relevance

Message: TypeAlias = tuple[bytes, str | None, int | None]
"""(text, media type, time in microseconds since 1970)."""
_BEGINNINGS = frozenset((b"<", b"_"))
"""The first byte of a message in N-Quads that certainly has a statement."""
_ENDS = (b".", b".\n")
"""The end of a message in N-Quads without an unfinished statement."""
GENERIC_TYPES = ("", "application/octet-stream", "text/plain")
"""Media types that do not name a syntax."""
_NO_N_QUADS = f"not {N_QUADS.title}"
"""The beginning of an error of the grammar."""


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
        # Under "skip", a message may lose its only statement, and then uses no time.
        self._joins = (
            self._kind == "message"
            and self._default.syntax is N_QUADS
            and options.on_error == "stop"
        )
        self._by_type = _by_media_type()
        # The channel's time applies unless an option names another one.
        self._takes_times = options.time_predicate is None and not options.arrival_time
        self._timed_by_channel: bool | None = None
        self._count = 0
        self._batches: list[EventBatch] = []
        self._untimed = 0
        self.failure: InputError | None = None
        """The error that ends the stream, after the events returned so far."""

    def feed_all(self, messages: Sequence[Message]) -> None:
        """Read several messages, like `feed` for each.

        Successive messages in N-Quads that are plain are read as one RDF Messages log, because
        preparing the reader takes far longer than reading a short message.
        """
        if len(messages) > 1:
            text = self._joined(messages)
            if text is not None:
                self._feed_log(messages, text)
                return
        at, count = 0, len(messages)
        while at < count and self.failure is None:
            end = at
            while end < count and self._is_plain(messages[end], messages[at]):
                end += 1
            if end - at > 1:
                some = messages[at:end]
                ended = [data if data.endswith(b"\n") else data + b"\n" for data, _, _ in some]
                self._feed_log(some, b"MESSAGE\n".join(ended))
                at = end
            else:
                self.feed(*messages[at])
                at += 1

    def _joined(self, messages: Sequence[Message]) -> bytes | None:
        """The log of all messages; None if one of them is not plain, as `_is_plain` says.

        Checks all of them together, which takes a fifth of the time.
        """
        _, media_type, time = messages[0]
        if not self._joins or self.failure is not None or not self._is_default(media_type):
            return None
        parts = [data for data, _, _ in messages]
        text = b"MESSAGE\n".join(parts)
        more = len(parts) - 1
        times = [one for _, _, one in messages]
        is_plain = (
            {data[:1] for data in parts} <= _BEGINNINGS
            and text.count(b"MESSAGE") == more
            and text.count(b".\nMESSAGE\n") == more
            and text.endswith(b".\n")
            and {kind for _, kind, _ in messages} == {media_type}
            and times.count(None) == (len(times) if time is None else 0)
        )
        return text if is_plain else None

    def _is_plain(self, message: Message, first: Message) -> bool:
        """Whether a message can follow another one in a log: it is one event, whose syntax and kind
        of time are those of the first.
        """
        data, media_type, time = message
        return (
            self._joins
            and data[:1] in _BEGINNINGS
            and data.endswith(_ENDS)
            and media_type == first[1]
            and (time is None) == (first[2] is None)
            and b"MESSAGE" not in data
            and self._is_default(media_type)
        )

    def _is_default(self, media_type: str | None) -> bool:
        if _is_generic(media_type):
            return True
        return self._by_type.get(_essence(media_type or "")) is self._default

    def _feed_log(self, messages: Sequence[Message], text: bytes) -> None:
        """Read plain messages joined to a log; an error names the message and the line in it."""
        by_channel = self._begin(messages[0][2])
        questions = self._reading.questions
        questions.times = iter([t or 0 for _, _, t in messages]) if by_channel else None
        try:
            self._read(text, self._channel, self._default)
        except InputError as error:
            self.failure = self._reading.failed(self._placed(error, messages))
        finally:
            questions.times = None
        self._count += len(messages)

    def _placed(self, error: InputError, messages: Sequence[Message]) -> InputError:
        """An error in a log, with the number of the message and the line in it."""
        line, number = error.line or 1, self._count + 1
        data = b""
        for data, _, _ in messages:
            count = data.count(b"\n") + (not data.endswith(b"\n")) + 1
            if line < count:
                break
            line, number = line - count, number + 1
        name = f"{self._channel}, message {number}"
        placed = InputError(error.message, name, line, error.unit)
        return self._with_hint(placed, data, messages[0][1])  # messages of a log have one type

    def _with_hint(self, error: InputError, data: bytes, media_type: str | None) -> InputError:
        """An error in a message; if nothing named its syntax, the error shows how to name it."""
        is_named = self._source.options.syntax is not None
        if is_named or not _is_generic(media_type) or not error.message.startswith(_NO_N_QUADS):
            return error
        likely = content_syntax(data)
        option = f"--input-format={likely.syntax.name}" if likely else "--input-format"
        if not media_type and "://" in self._channel:
            # The query of a web address belongs to its server, see spaseq/live/addresses.py.
            sign = "#" if self._channel.startswith(("http", "ws")) else "?"
            value = likely.syntax.media_type if likely else "MEDIA/TYPE"
            option = f"{sign}type={value} in the URL of the source, or {option}"
        reason = f"the media type {media_type} names no syntax" if media_type else "no media type"
        looks = f", and looks like {likely.syntax.title}" if likely else ""
        message = (
            f"{error.message}; the message is read as N-Quads ({reason}){looks}: "
            f"name its syntax with {option}"
        )
        return InputError(message, error.file, error.line, error.unit)

    def feed(self, data: bytes, media_type: str | None, time: int | None) -> None:
        """Read a message; its events are in the next batch.

        Args:
            data: The message.
            media_type: Its media type, None if the channel does not say it.
            time: Its time in microseconds since 1970, None if the channel does not have it.
        """
        self._count += 1
        name = f"{self._channel}, message {self._count}"
        try:
            syntax = self._syntax(media_type, name)
            by_channel = self._begin(time)
            self._reading.questions.given = time if by_channel else None
            self._read(data, name, syntax)
            events = self._reading.events
            if self._kind == "message" and not data.strip():
                events.heartbeat()
            self._source.counters.empty += events.untimed - self._untimed
            self._untimed = events.untimed
        except InputError as error:
            self.failure = self._reading.failed(self._with_hint(error, data, media_type))

    def _read(self, data: bytes, name: str, syntax: StreamSyntax) -> None:
        """Read a document."""
        lines = Lines(STDIN, io.BytesIO(data))
        lines.name, lines.options = name, self._source.options
        self._reading.questions.at(name, None)
        for _ in self._reading.steps(lines, syntax, self._kind):
            pass
        self._reading.events.finish()

    def _begin(self, time: int | None) -> bool:
        """Prepare the reader, unless it is ready; returns whether the channel gives the times."""
        by_channel = self._takes_times and time is not None
        if by_channel != self._timed_by_channel:
            self._timed_by_channel = by_channel
            self._complete()
            self._untimed = 0
            self._reading.start_messages(self._channel, self._kind, timed=not by_channel)
        return by_channel

    def _syntax(self, media_type: str | None, name: str) -> StreamSyntax:
        if _is_generic(media_type) or self._source.options.syntax is not None:
            return self._default
        essence = _essence(media_type or "")
        if essence not in self._by_type:
            raise InputError(
                f"the media type {essence} names no RDF syntax; --input-format overrules it", name
            )
        return self._by_type[essence]

    def batches(self) -> Sequence[EventBatch]:
        """The events of the messages since the last call."""
        self._complete()
        if self.failure is None:
            self._reading.events.refresh()
        found, self._batches = self._batches, []
        return found

    def _complete(self) -> None:
        """Set aside the events read so far."""
        events = self._reading.events
        if len(events.batch):
            self._batches.append(events.fresh())

    def open(self, point: Mapping[str, Any]) -> None:
        """Continue after the messages before a restart point."""
        self._reading.events.restore(*point["reader"])
        if self._minter is not None:
            self._minter.restore(*point["minter"])
        self._count = point["count"]

    def restart(self) -> dict[str, Any]:
        """The data that `open` needs to continue with the next message."""
        return {
            "reader": self._reading.events.state(),
            "minter": None if self._minter is None else self._minter.state(),
            "count": self._count,
        }


def _is_generic(media_type: str | None) -> bool:
    return media_type is None or _essence(media_type) in GENERIC_TYPES


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _by_media_type() -> dict[str, StreamSyntax]:
    """Media type → syntax; if several syntaxes have a media type, the first one."""
    found: dict[str, StreamSyntax] = {}
    for syntax in STREAM_SYNTAXES.values():
        for name in (syntax.syntax.media_type, *syntax.syntax.other_media_types):
            found.setdefault(name, syntax)
    found["application/ld+json"] = STREAM_SYNTAXES["jsonld"]
    return found
