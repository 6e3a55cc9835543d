"""A client of `spaseq serve`: `Client` and `AsyncClient`.

    with Client("http://127.0.0.1:8642") as server:
        server.put_query("rise", text)
        server.push("trades", data, "application/trig")
        for match in server.matches("rise", start="oldest"):
            print(match.id, match.bindings["p1"]["value"])

A subscription whose connection breaks continues after the last match that arrived. No match is lost
or duplicated as long as the replay buffer contains it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import quote

import httpx

from spaseq.errors import ArgumentError, SpaseqError, kind_of
from spaseq.records import dataclass

Json: TypeAlias = dict[str, Any]
State: TypeAlias = Literal["fresh", "keep", "drain"]
Entail: TypeAlias = Literal["none", "rdfs", "owl-ql"]
Start: TypeAlias = Literal["now", "oldest"]

RETRY_SECONDS = 1.0
"""The pause before a broken subscription connects again."""
QUIET_SECONDS = 60.0
"""A subscription that receives nothing for so long, not even a heartbeat, is broken."""
_BUSY = (429, 503)


class ServerError(SpaseqError):
    """The server refused a request.

    `status` is the HTTP status, and `problem` the whole answer (RFC 9457). `diagnostics` has the
    findings about a query that does not compile.
    """

    def __init__(self, status: int, problem: Json):
        self.status = status
        self.problem = problem
        super().__init__(str(problem.get("text") or problem.get("detail") or f"status {status}"))

    @property
    def diagnostics(self) -> list[Json]:
        return list(self.problem.get("diagnostics", ()))


@dataclass(frozen=True, slots=True)
class Accepted:
    """The result of a push; `token` is the position of the body in the server's journal."""

    accepted: int
    late: int
    rejected: int
    token: int


@dataclass(frozen=True, slots=True)
class ServedMatch:
    """A match: its id, which is always the same, and its JSON (docs/formats.md)."""

    id: str
    data: Mapping[str, Any] = field(repr=False)

    @property
    def query(self) -> str:
        return str(self.data["query"])

    @property
    def start(self) -> str | int | float | None:
        return cast("str | int | float | None", self.data.get("start"))

    @property
    def end(self) -> str | int | float:
        return cast("str | int | float", self.data["end"])

    @property
    def bindings(self) -> Mapping[str, Json]:
        """Variable → term, as in SPARQL JSON results."""
        return cast("Mapping[str, Json]", self.data.get("bindings", {}))

    @property
    def events(self) -> list[Json]:
        return list(self.data.get("events", ()))


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of a subscription that is not a match: `progress`, `late` or `error`."""

    kind: Literal["progress", "late", "error"]
    data: Mapping[str, Any]


Item: TypeAlias = ServedMatch | Notice


@dataclass(frozen=True, slots=True)
class _Request:
    """A request, as both clients send it."""

    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


def _query_path(name: str, rest: str = "") -> str:
    return f"/v1/queries/{quote(name, safe='')}{rest}"


def _put_query(
    name: str,
    text: str,
    state: State,
    bind: Mapping[str, Any] | None,
    kb: Mapping[str, str] | None,
    paused: bool,
    sinks: Sequence[str],
    entail: Entail | None,
    limits: Mapping[str, Any] | None,
) -> _Request:
    body = {
        "text": text,
        "state": state,
        "bind": dict(bind or {}),
        "kb": dict(kb or {}),
        "paused": paused,
        "sinks": list(sinks),
        "entail": entail,
        "limits": dict(limits or {}),
    }
    return _Request("PUT", _query_path(name), {"json": body})


def _remove_query(name: str, drain: str | None) -> _Request:
    options = {} if drain is None else {"params": {"drain": drain}}
    return _Request("DELETE", _query_path(name), options)


def _push(stream: str, data: bytes | str, media_type: str, skip: bool) -> _Request:
    return _Request(
        "POST",
        f"/v1/streams/{quote(stream, safe='')}/events",
        {
            "content": data,
            "headers": {"Content-Type": media_type},
            "params": {"on-error": "skip"} if skip else {},
        },
    )


def _watermark(stream: str, moment: float | str) -> _Request:
    path = f"/v1/streams/{quote(stream, safe='')}/watermark"
    return _Request("POST", path, {"json": {"time": moment}})


def _put_kb(iri: str, data: bytes | str, media_type: str) -> _Request:
    return _Request(
        "PUT", _kb_path(iri), {"content": data, "headers": {"Content-Type": media_type}}
    )


def _kb_path(iri: str) -> str:
    return f"/v1/kb/{quote(iri, safe='')}"


def _why(query: str) -> _Request:
    return _Request("GET", _query_path(query, "/why"))


def _why_event(query: str, graph: str, at: float | str | None, stream: str | None) -> _Request:
    event = {"graph": graph, "at": at} | ({} if stream is None else {"stream": stream})
    return _Request("POST", _query_path(query, "/why"), {"json": event})


def _error(answer: httpx.Response) -> ServerError:
    try:
        problem = answer.json()
    except ValueError:
        problem = {"detail": answer.text[:500]}
    return ServerError(answer.status_code, problem if isinstance(problem, dict) else {})


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.status_code >= 400:
        raise _error(answer)
    return answer


def _base(url: str) -> str:
    """The URL of a server without its last slash.

    Raises:
        ArgumentError: for a URL that is not text.
        SpaseqError: for a URL that does not begin with `http://` or `https://`.
    """
    if not isinstance(url, str):
        raise ArgumentError(f"url: the URL of a server is needed, not {kind_of(url)}")
    if not url.lower().startswith(("http://", "https://")):
        example = "" if "://" in url else f", such as http://{url or 'localhost:8642'}"
        raise SpaseqError(f"{url or 'url'}: an http: or https: URL is needed{example}")
    return url.rstrip("/")


class _Events:
    """The lines of an SSE answer → items."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def take(self, line: str) -> Item | None:
        """The item that a line completes."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        kind = fields.get("event")
        if kind == "match":
            return ServedMatch(fields["id"], json.loads(fields["data"]))
        if kind == "problem":
            return Notice("error", json.loads(fields["data"]))
        if kind in ("progress", "late"):
            return Notice(kind, json.loads(fields["data"]))  # type: ignore[arg-type]
        return None


class _Subscription:
    """The position of a subscription, across all of its connections.

    Args:
        query: The query.
        start: `now` or `oldest`.
        after: The id of the last match received.
        limit: The number of matches after which it ends.
    """

    def __init__(self, query: str, start: Start, after: str, limit: int | None):
        self._query, self._start = query, start
        self._last, self._left = after, limit
        self._events = _Events()
        self.has_ended = False

    def request(self) -> _Request:
        """The request that continues it."""
        self._events = _Events()
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        parameters: dict[str, str] = {"from": self._start}
        if self._left is not None:
            parameters["limit"] = str(self._left)
        timeout = httpx.Timeout(10, read=QUIET_SECONDS)
        options = {"headers": headers, "params": parameters, "timeout": timeout}
        return _Request("GET", _query_path(self._query, "/matches"), options)

    @property
    def removed(self) -> Notice:
        """What the status 204 says."""
        return Notice("error", {"removed": self._query})

    def take(self, line: str) -> Item | None:
        """The item that a line completes."""
        item = self._events.take(line)
        if isinstance(item, ServedMatch):
            self._last = item.id
            if self._left is not None:
                self._left -= 1
        elif item is not None and item.kind == "error" and "removed" in item.data:
            self.has_ended = True
        self.has_ended = self.has_ended or self._left == 0
        return item

    def can_continue(self, error: ServerError | httpx.TransportError) -> bool:
        """Whether another connection can continue after an error without losing a match."""
        if isinstance(error, ServerError):
            return error.status in _BUSY
        return bool(self._last) or self._start != "now"


def _headers(token: str | None) -> dict[str, str]:
    found = {"User-Agent": "spaseq"}
    return found if token is None else found | {"Authorization": f"Bearer {token}"}


class Client:
    """A client that waits for each answer.

    Args:
        url: Where the server listens.
        token: A bearer token.
        verify: As for httpx: whether the certificate of the server is verified, or by which
            authorities.

    All methods raise `ServerError` if the server refuses a request, and the errors of httpx if the
    connection fails.
    """

    def __init__(self, url: str, token: str | None = None, verify: Any = True):
        self._http = httpx.Client(
            base_url=_base(url), headers=_headers(token), verify=verify, timeout=30
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _ask(self, request: _Request) -> httpx.Response:
        return _checked(self._http.request(request.method, request.path, **request.options))

    def _json(self, request: _Request) -> Json:
        return cast(Json, self._ask(request).json())

    def queries(self) -> list[Json]:
        """All queries."""
        return _items(self._json(_Request("GET", "/v1/queries", {"params": {"limit": 10_000}})))

    def query(self, name: str) -> Json:
        """One query."""
        return self._json(_Request("GET", _query_path(name)))

    def put_query(
        self,
        name: str,
        text: str,
        state: State = "fresh",
        bind: Mapping[str, Any] | None = None,
        kb: Mapping[str, str] | None = None,
        paused: bool = False,
        sinks: Sequence[str] = (),
        entail: Entail | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> Json:
        """Register a query, or replace the query of this name.

        Args:
            name: Its name.
            text: The query.
            state: What happens to the partial matches of the previous version.
            bind: Values of its variables.
            kb: IRI of a KB graph → URL of an endpoint.
            paused: Whether it waits until `change` resumes it.
            sinks: The names of the sinks that receive its matches.
            entail: Its entailment regime, or `none`; None: the regime of the server.
            limits: Its limits, lower than those of the server: `max_groups`, `max_steps`,
                `max_memory`, `on_limit`.
        """
        return self._json(_put_query(name, text, state, bind, kb, paused, sinks, entail, limits))

    def change(self, name: str, **changes: Any) -> Json:
        """Pause or resume a query (`paused=`), or bind its variables (`bind=`)."""
        return self._json(_Request("PATCH", _query_path(name), {"json": changes}))

    def remove_query(self, name: str, drain: str | None = None) -> None:
        """Remove a query.

        Args:
            name: Its name.
            drain: First finish its partial matches, for at most this duration (`30s`). An empty
                text sets no limit. None: remove the query at once.
        """
        self._ask(_remove_query(name, drain))

    def push(
        self,
        stream: str,
        data: bytes | str,
        media_type: str = "application/n-quads",
        skip: bool = False,
    ) -> Accepted:
        """Push events.

        Args:
            stream: The name or the IRI of the stream.
            data: The events in an RDF syntax.
            media_type: The syntax.
            skip: Whether malformed statements are skipped (N-Quads, N-Triples).

        Returns:
            The numbers of accepted, late and rejected events. The accepted events are durable.
            While the server is busy, the call waits.
        """
        while True:
            try:
                return _accepted(self._json(_push(stream, data, media_type, skip)))
            except ServerError as error:
                if error.status not in _BUSY:
                    raise
            time.sleep(RETRY_SECONDS)

    def watermark(self, stream: str, moment: float | str) -> None:
        """Declare that a stream has no further events before a time, in seconds or as a date."""
        self._ask(_watermark(stream, moment))

    def streams(self) -> list[Json]:
        """All streams."""
        return _items(self._json(_Request("GET", "/v1/streams", {"params": {"limit": 10_000}})))

    def put_kb(self, iri: str, data: bytes | str, media_type: str = "text/turtle") -> Json:
        """Set the content of a KB graph."""
        return self._json(_put_kb(iri, data, media_type))

    def remove_kb(self, iri: str) -> None:
        """Remove a KB graph."""
        self._ask(_Request("DELETE", _kb_path(iri)))

    def checkpoint(self) -> int:
        """Make a checkpoint. Returns its number."""
        return int(self._json(_Request("POST", "/v1/checkpoints"))["number"])

    def explain(self, query: str) -> str:
        """The plan of a query."""
        request = _Request(
            "GET", _query_path(query, "/explain"), {"headers": {"Accept": "text/plain"}}
        )
        return self._ask(request).text

    def why(self, query: str) -> str:
        """A report of how far the pattern of a query got, and what stopped it."""
        return self._ask(_why(query)).text

    def why_event(
        self, query: str, graph: str, at: float | str | None = None, stream: str | None = None
    ) -> Json:
        """Why one event advances a query or not; it is not pushed.

        Args:
            query: The query.
            graph: The event in Turtle.
            at: Its time, if the graph has no timestamp.
            stream: The name or the IRI of its stream, if the query reads several.
        """
        return self._json(_why_event(query, graph, at, stream))

    def subscribe(
        self, query: str, start: Start = "now", after: str = "", limit: int | None = None
    ) -> Iterator[Item]:
        """Yield matches and notices, without end.

        Args:
            query: The query.
            start: `now`, or `oldest`: begin with the matches in the replay buffer.
            after: The id of the last match received.
            limit: The number of matches after which it ends.
        """
        subscription = _Subscription(query, start, after, limit)
        while True:
            request = subscription.request()
            try:
                with self._http.stream(request.method, request.path, **request.options) as answer:
                    if answer.status_code >= 400:
                        answer.read()
                        raise _error(answer)
                    if answer.status_code == 204:
                        yield subscription.removed
                        return
                    for line in answer.iter_lines():
                        item = subscription.take(line)
                        if item is not None:
                            yield item
                        if subscription.has_ended:
                            return
            except (ServerError, httpx.TransportError) as error:
                if not subscription.can_continue(error):
                    raise
            time.sleep(RETRY_SECONDS)

    def matches(
        self, query: str, start: Start = "now", after: str = "", limit: int | None = None
    ) -> Iterator[ServedMatch]:
        """The matches of `subscribe`."""
        for item in self.subscribe(query, start, after, limit):
            if isinstance(item, ServedMatch):
                yield item


class AsyncClient:
    """A client for asyncio; the arguments and the methods are those of `Client`."""

    def __init__(self, url: str, token: str | None = None, verify: Any = True):
        self._http = httpx.AsyncClient(
            base_url=_base(url), headers=_headers(token), verify=verify, timeout=30
        )

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _ask(self, request: _Request) -> httpx.Response:
        return _checked(await self._http.request(request.method, request.path, **request.options))

    async def _json(self, request: _Request) -> Json:
        return cast(Json, (await self._ask(request)).json())

    async def queries(self) -> list[Json]:
        """As `Client.queries`."""
        request = _Request("GET", "/v1/queries", {"params": {"limit": 10_000}})
        return _items(await self._json(request))

    async def query(self, name: str) -> Json:
        """As `Client.query`."""
        return await self._json(_Request("GET", _query_path(name)))

    async def put_query(
        self,
        name: str,
        text: str,
        state: State = "fresh",
        bind: Mapping[str, Any] | None = None,
        kb: Mapping[str, str] | None = None,
        paused: bool = False,
        sinks: Sequence[str] = (),
        entail: Entail | None = None,
        limits: Mapping[str, Any] | None = None,
    ) -> Json:
        """As `Client.put_query`."""
        return await self._json(
            _put_query(name, text, state, bind, kb, paused, sinks, entail, limits)
        )

    async def change(self, name: str, **changes: Any) -> Json:
        """As `Client.change`."""
        return await self._json(_Request("PATCH", _query_path(name), {"json": changes}))

    async def remove_query(self, name: str, drain: str | None = None) -> None:
        """As `Client.remove_query`."""
        await self._ask(_remove_query(name, drain))

    async def push(
        self,
        stream: str,
        data: bytes | str,
        media_type: str = "application/n-quads",
        skip: bool = False,
    ) -> Accepted:
        """As `Client.push`."""
        while True:
            try:
                return _accepted(await self._json(_push(stream, data, media_type, skip)))
            except ServerError as error:
                if error.status not in _BUSY:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def watermark(self, stream: str, moment: float | str) -> None:
        """As `Client.watermark`."""
        await self._ask(_watermark(stream, moment))

    async def streams(self) -> list[Json]:
        """As `Client.streams`."""
        request = _Request("GET", "/v1/streams", {"params": {"limit": 10_000}})
        return _items(await self._json(request))

    async def put_kb(self, iri: str, data: bytes | str, media_type: str = "text/turtle") -> Json:
        """As `Client.put_kb`."""
        return await self._json(_put_kb(iri, data, media_type))

    async def remove_kb(self, iri: str) -> None:
        """As `Client.remove_kb`."""
        await self._ask(_Request("DELETE", _kb_path(iri)))

    async def checkpoint(self) -> int:
        """As `Client.checkpoint`."""
        return int((await self._json(_Request("POST", "/v1/checkpoints")))["number"])

    async def explain(self, query: str) -> str:
        """As `Client.explain`."""
        request = _Request(
            "GET", _query_path(query, "/explain"), {"headers": {"Accept": "text/plain"}}
        )
        return (await self._ask(request)).text

    async def why(self, query: str) -> str:
        """As `Client.why`."""
        return (await self._ask(_why(query))).text

    async def why_event(
        self, query: str, graph: str, at: float | str | None = None, stream: str | None = None
    ) -> Json:
        """As `Client.why_event`."""
        return await self._json(_why_event(query, graph, at, stream))

    async def subscribe(
        self, query: str, start: Start = "now", after: str = "", limit: int | None = None
    ) -> AsyncIterator[Item]:
        """As `Client.subscribe`."""
        subscription = _Subscription(query, start, after, limit)
        while True:
            request = subscription.request()
            try:
                async with self._http.stream(
                    request.method, request.path, **request.options
                ) as answer:
                    if answer.status_code >= 400:
                        await answer.aread()
                        raise _error(answer)
                    if answer.status_code == 204:
                        yield subscription.removed
                        return
                    async for line in answer.aiter_lines():
                        item = subscription.take(line)
                        if item is not None:
                            yield item
                        if subscription.has_ended:
                            return
            except (ServerError, httpx.TransportError) as error:
                if not subscription.can_continue(error):
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def matches(
        self, query: str, start: Start = "now", after: str = "", limit: int | None = None
    ) -> AsyncIterator[ServedMatch]:
        """As `Client.matches`."""
        async for item in self.subscribe(query, start, after, limit):
            if isinstance(item, ServedMatch):
                yield item


def _items(page: Json) -> list[Json]:
    return list(page["items"])


def _accepted(data: Json) -> Accepted:
    return Accepted(data["accepted"], data["late"], data["rejected"], data["token"])
