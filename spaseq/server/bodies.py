"""Bodies of requests → encoded events.

A body is a whole document. In N-Quads and TriG each named graph is an event. A body that announces
RDF Messages, or in Jelly, NDJSON-LD or NGSI-LD, is cut into messages. A body in any other syntax is
one event. Events keep the order of the body; the stream sorts them by time.

Bodies may be hostile: no content can name a file or an address, JSON-LD contexts are not fetched,
and the readers bound nesting.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spaseq.errors import InputError
from spaseq.io.formats import STREAM_SYNTAXES, StreamSyntax
from spaseq.io.lines import STDIN, Lines, announces_messages
from spaseq.io.read_options import Counters, Framing, ReadOptions, TimeDomain, Troubles
from spaseq.io.source import Reading, Source
from spaseq.rdf.native._terms import EventBatch, Relevance
from spaseq.records import dataclass
from spaseq.server.problems import Problem

MAX_NAMED_ERRORS = 20
"""The most errors of skipped statements that an answer lists."""
_GRAPHS = ("nq", "trig")
_GENERIC = ("", "application/octet-stream", "application/x-www-form-urlencoded")
_OTHER_TYPES = {
    "application/json": "ngsild",
    "application/ngsi-ld+json": "ngsild",
    "application/ld+json": "jsonld",
    "text/plain": "nt",
}
"""Media types of syntaxes besides those of `STREAM_SYNTAXES`."""


def _by_media_type() -> dict[str, StreamSyntax]:
    found: dict[str, StreamSyntax] = {}
    for syntax in STREAM_SYNTAXES.values():
        for name in (syntax.syntax.media_type, *syntax.syntax.other_media_types):
            found.setdefault(name, syntax)
    found |= {name: STREAM_SYNTAXES[syntax] for name, syntax in _OTHER_TYPES.items()}
    return found


_BY_TYPE = _by_media_type()


def media_types() -> list[str]:
    """The media types of bodies."""
    return sorted(_BY_TYPE)


def check_media_type(media_type: str) -> None:
    """Refuse a body whose media type does not say its syntax.

    Raises:
        Problem: 415, with an example.
    """
    essence = media_type.partition(";")[0].strip().lower()
    if essence in _GENERIC:
        raise Problem(
            415, f"{f'{essence} does' if essence else 'the request does'} not say the syntax of "
            "the events: send a header such as Content-Type: application/n-quads",
            "media-type", known=media_types(),
        )  # fmt: skip
    syntax_of(media_type)


def syntax_of(media_type: str) -> StreamSyntax:
    """The syntax of a body; N-Quads in older journals, for a media type that says none.

    Raises:
        Problem: 415 for a media type that names none.
    """
    essence = media_type.partition(";")[0].strip().lower()
    if essence in _GENERIC:
        return STREAM_SYNTAXES["nq"]
    if essence not in _BY_TYPE:
        raise Problem(
            415, f"{essence} is not a media type of events", "media-type", known=media_types()
        )
    return _BY_TYPE[essence]


@dataclass(frozen=True, slots=True)
class Body:
    """A body of events.

    Args:
        data: Its bytes.
        media_type: Its media type.
        framing: `auto`, `graph` or `message`: how it is cut into events.
        skips: Whether malformed statements are skipped (N-Quads and N-Triples).
        arrived: When it arrived, in microseconds since 1970.
        key: What the client calls it, so that it can send it again; empty: nothing.
    """

    data: bytes
    media_type: str
    framing: str
    skips: bool
    arrived: int
    key: str = ""

    def says(self) -> dict[str, Any]:
        """Everything except the data, as JSON for the journal."""
        said = {
            "type": self.media_type,
            "framing": self.framing,
            "skips": self.skips,
            "arrived": self.arrived,
        }
        return said | ({"key": self.key} if self.key else {})

    @staticmethod
    def of(says: Mapping[str, Any], data: bytes) -> Body:
        """A body of the journal."""
        return Body(
            data, says["type"], says["framing"], says["skips"], says["arrived"],
            says.get("key", ""),
        )  # fmt: skip


@dataclass(slots=True)
class ReadBody:
    """The events of a body, and the skipped statements."""

    batch: EventBatch | None
    rejected: int
    errors: list[str]


class BodyReader:
    """Reads the bodies of one stream.

    Args:
        stream: The stream.
        options: How events are read.
        domain: The kind of time of the stream.
    """

    def __init__(self, stream: str, options: ReadOptions, domain: TimeDomain):
        self._stream = stream
        self._options = replace(options, workers=1, lateness=options.lateness or 0)
        self._domain = domain

    def read(self, body: Body, relevance: Relevance) -> ReadBody:
        """The events of a body, in order.

        Raises:
            InputError: if it is malformed, or has an event without a time; nothing is accepted.
            Problem: for its media type.
        """
        syntax = syntax_of(body.media_type)
        lines = Lines(STDIN, io.BytesIO(body.data))
        kind = _kind(body.framing, lines, syntax, self._options.framing.kind)
        skips = body.skips and syntax.syntax.line_based
        errors: list[str] = []

        def log(text: str) -> None:
            if len(errors) < MAX_NAMED_ERRORS:
                errors.append(text.removeprefix("skipped: "))

        options = replace(
            self._options,
            framing=Framing(kind),  # type: ignore[arg-type]
            on_error="skip" if skips else "stop",
            clock=lambda: body.arrived,
            reuse_graph_names=kind == "graph",
        )
        counters = Counters()
        source = Source(self._stream, (), options, 0, self._domain, log, counters)
        kept = self._domain.kind, self._domain.origin
        reading = Reading(source, relevance, Troubles(options.on_error, counters, log), None)
        try:
            lines.name, lines.options = "body", options
            reading.start(lines, syntax, kind)
            reading.questions.at("body", None)
            for _ in reading.steps(lines, syntax, kind):
                pass
            reading.finish(lines, kind)
        except InputError:
            self._domain.kind, self._domain.origin = kept
            raise
        if self._domain.kind and not kept[0]:
            # The next body is of another client, who knows the stream and not this body.
            self._domain.origin = f"<{self._stream}>"
        events = reading.events
        batch = events.fresh() if len(events.batch) else None
        return ReadBody(batch, counters.skipped, errors)


def _kind(framing: str, lines: Lines, syntax: StreamSyntax, default: str) -> str:
    """How a body is cut into events."""
    wanted = framing if framing != "auto" else default
    if wanted in ("graph", "message"):
        return wanted
    is_graphs = syntax.syntax.name in _GRAPHS and not announces_messages(lines.head())
    return "graph" if is_graphs else "message"
