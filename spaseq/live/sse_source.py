"""Server-Sent Events → messages.

When the connection ends, the source reconnects after the pause that the server asks for, with the
header `Last-Event-ID`, so that the server sends the missing events. The position is the id of the
last event. A server that gives no ids cannot repeat events, which is reported once.

Source: WHATWG HTML, section 9.2, Server-sent events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from spaseq.errors import InputError
from spaseq.live.protocols import Chunk, Position
from spaseq.live.receiving import Background, Pauses
from spaseq.live.tls import untrusted
from spaseq.live.web import http_client, opened, refusal, web_address

SILENCE_SECONDS = 120.0
"""Seconds without a byte after which the connection counts as broken."""
MAX_EVENT_BYTES = 1 << 24


@dataclass(slots=True)
class EventParser:
    """Bytes of an event stream → (type, data, id of the last event)."""

    last_id: str = ""
    retry: float | None = None
    """Seconds between connections, as the server requests."""
    _rest: bytes = b""
    _begun: bool = False
    _after_cr: bool = False
    _kind: str = ""
    _id: str = ""
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0

    def restart(self) -> None:
        """Begin a new connection, and drop any incomplete event."""
        self._rest, self._begun, self._after_cr = b"", False, False
        self._kind, self._id, self._data, self._size = "", self.last_id, [], 0

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes, str]]:
        """The events that are complete after some bytes.

        Raises:
            ValueError: for an event that is too large.
        """
        if not data:
            return
        if self._after_cr:
            # The line feed of a CRLF that was split.
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise ValueError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        data = self._rest + data
        self._after_cr = data.endswith(b"\r")
        *lines, self._rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            if not self._begun:
                self._begun = True
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line:
                self._field(line)
                continue
            self.last_id = self._id
            if self._data:
                yield self._kind or "message", b"\n".join(self._data), self.last_id
            self._kind, self._data, self._size = "", [], 0

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            if self._size > MAX_EVENT_BYTES:
                raise ValueError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id":
            if b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self.retry = min(int(value[:9]) / 1000, 3600.0)


class SseSource:
    """Reads one event stream.

    Args:
        url: `http:` or `https:`, with the options `event` (the types of events to read, with
            commas; all by default), `type` (the media type of their data), `token-env` and `ca` in
            the fragment.
        log: Reports what happens to the connection.

    Raises:
        SpaseqError: for a wrong URL.
    """

    messages = True
    replays = True

    def __init__(self, url: str, log: Callable[[str], None]):
        self._address = web_address(url, ("event", "type"))
        named = self._address.parts.options.get("event")
        self._kinds = None if named is None else frozenset(named.split(","))
        self._type = self._address.parts.options.get("type")
        self._log = log
        self._parser = EventParser()
        self._background: Background | None = None
        self._warned = False
        self._is_down = False

    def open(self, position: Position | None) -> None:
        if position is not None:
            self._parser.last_id = position["id"]
        self._parser.restart()
        self._background = Background(self._receive, "sse")

    def _receive(self, background: Background) -> None:
        """Connect, and reconnect whenever the connection ends."""
        import httpx

        pauses, shown = Pauses(), self._address.shown
        with http_client(self._address, read=SILENCE_SECONDS) as http:
            while not background.stopped.is_set():
                headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
                if self._parser.last_id:
                    headers["Last-Event-ID"] = self._parser.last_id
                self._parser.restart()
                said = "the connection ended"
                try:
                    authorization = self._address.headers
                    with opened(http, self._address.url, headers, authorization) as (response, _):
                        if response.status_code == 204:
                            return  # the server says that there will be no more events
                        error = refusal(response, shown)
                        if error is not None:
                            raise error
                        if response.status_code == 200:
                            media_type = self._checked(response.headers)
                            if self._is_down:
                                self._is_down = False
                                self._log(f"{shown}: connected again")
                            for data in response.iter_bytes():
                                pauses.reset()
                                self._pass_on(background, data, media_type)
                                if background.stopped.is_set():
                                    return
                        else:
                            said = f"it answered {response.status_code} {response.reason_phrase}"
                except httpx.HTTPError as error:
                    refused = untrusted(error)
                    if refused is not None:
                        raise InputError(refused, shown) from error
                    said = str(error) or type(error).__name__
                except ValueError as error:
                    raise InputError(str(error), shown) from error
                if not self._is_down:
                    self._is_down = True
                    self._log(f"{shown}: {said}; connecting again")
                if self._parser.retry is not None:
                    pauses.least = max(self._parser.retry, 0.01)
                background.pause(pauses.following())

    def _checked(self, headers: object) -> str | None:
        """The media type of the data, of a response that is an event stream."""
        get = headers.get  # type: ignore[attr-defined]
        kind = str(get("content-type", "")).partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise InputError(
                f"it is {kind or 'of no media type'}, not an event stream: a finished file has to "
                "be downloaded first",
                self._address.shown,
            )
        found = self._type or get("rdf-message-content-type")
        return None if found is None else str(found)

    def _pass_on(self, background: Background, data: bytes, media_type: str | None) -> None:
        for kind, text, last_id in self._parser.feed(data):
            if not last_id and not self._warned:
                self._warned = True
                self._log(
                    f"{self._address.shown}: the events have no ids: those that are sent while the "
                    "connection is broken are missing"
                )
            if self._kinds is None or kind in self._kinds:
                background.emit(Chunk(text, {"id": last_id}, media_type=media_type))

    @property
    def problem(self) -> str | None:
        """The problem that prevents reading, or None."""
        return "there is no connection" if self._is_down else None

    def poll(self, timeout: float) -> Sequence[Chunk] | None:
        assert self._background is not None
        return self._background.take(timeout)

    def acknowledge(self, position: Position) -> None:
        """Do nothing, since the server decides which events it keeps."""

    def close(self) -> None:
        if self._background is not None:
            self._background.stop(0.5)
