"""A client of `spaseq serve`: `Client` and `AsyncClient`.

    with Client("http://127.0.0.1:8642") as server:
        server.put_query("rise", text)
        server.push("trades", data, "application/trig")
        for match in server.matches("rise", start="oldest"):
            print(match.id, match.bindings["p1"]["value"])

A subscription whose connection breaks continues after the last match that arrived. No match is lost
or duplicated as long as the replay buffer contains it. If no server answers the first request, the
error comes at once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import httpx

from spaseq.client.answers import (
    BUSY,
    Accepted,
    Item,
    Notice,
    ServedMatch,
    ServerError,
    checked,
    error_of,
    object_of,
)
from spaseq.client.requests import (
    Entail,
    Json,
    Request,
    Start,
    State,
    base,
    kb_path,
    push_request,
    put_kb_request,
    put_query_request,
    query_path,
    remove_query_request,
    watermark_request,
    why_event_request,
    why_request,
)
from spaseq.client.subscription import ANSWER_SECONDS, Subscription

__all__ = ["Accepted", "AsyncClient", "Client", "Item", "Notice", "ServedMatch", "ServerError"]

RETRY_SECONDS = 1.0
"""The pause before a broken subscription connects again."""


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
        timeout: How many seconds a request waits for its answer; a push also waits no longer for a
            busy server. None: 30 seconds for an answer, and without end for a busy server.

    All methods raise `ServerError` if the server refuses a request, and the errors of httpx if the
    connection fails.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        verify: Any = True,
        timeout: float | None = None,
    ):
        self._timeout = timeout
        self._http = httpx.Client(
            base_url=base(url),
            headers=_headers(token),
            verify=verify,
            timeout=timeout or ANSWER_SECONDS,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _ask(self, request: Request) -> httpx.Response:
        return checked(self._http.request(request.method, request.path, **request.options))

    def _json(self, request: Request, *keys: str) -> Json:
        return object_of(self._ask(request), *keys)

    def queries(self) -> list[Json]:
        """All queries."""
        return _items(
            self._json(Request("GET", "/v1/queries", {"params": {"limit": 10_000}}), "items")
        )

    def query(self, name: str) -> Json:
        """One query."""
        return self._json(Request("GET", query_path(name)))

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
                `max_matches`, `max_memory`, `on_limit`.
        """
        return self._json(
            put_query_request(name, text, state, bind, kb, paused, sinks, entail, limits)
        )

    def change(self, name: str, **changes: Any) -> Json:
        """Pause or resume a query (`paused=`), or bind its variables (`bind=`)."""
        return self._json(Request("PATCH", query_path(name), {"json": changes}))

    def remove_query(self, name: str, drain: str | None = None) -> None:
        """Remove a query.

        Args:
            name: Its name.
            drain: First finish its partial matches, for at most this duration (`30s`). An empty
                text sets no limit. None: remove the query at once.
        """
        self._ask(remove_query_request(name, drain))

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
        deadline = _deadline(self._timeout)
        request = push_request(stream, data, media_type, skip)
        while True:
            try:
                return _accepted(self._json(request, *_COUNTS))
            except ServerError as error:
                if error.status not in BUSY or time.monotonic() >= deadline:
                    raise
            time.sleep(RETRY_SECONDS)

    def watermark(self, stream: str, moment: float | str) -> None:
        """Declare that a stream has no further events before a time, in seconds or as a date."""
        self._ask(watermark_request(stream, moment))

    def streams(self) -> list[Json]:
        """All streams."""
        return _items(
            self._json(Request("GET", "/v1/streams", {"params": {"limit": 10_000}}), "items")
        )

    def put_kb(self, iri: str, data: bytes | str, media_type: str = "text/turtle") -> Json:
        """Set the content of a KB graph."""
        return self._json(put_kb_request(iri, data, media_type))

    def remove_kb(self, iri: str) -> None:
        """Remove a KB graph."""
        self._ask(Request("DELETE", kb_path(iri)))

    def checkpoint(self) -> int:
        """Make a checkpoint. Returns its number."""
        return int(self._json(Request("POST", "/v1/checkpoints"), "number")["number"])

    def explain(self, query: str) -> str:
        """The plan of a query."""
        request = Request(
            "GET", query_path(query, "/explain"), {"headers": {"Accept": "text/plain"}}
        )
        return self._ask(request).text

    def why(self, query: str) -> str:
        """A report of how far the pattern of a query got, and what stopped it."""
        return self._ask(why_request(query)).text

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
        return self._json(why_event_request(query, graph, at, stream), "patterns")

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
        subscription = Subscription(query, start, after, limit, self._timeout)
        while True:
            request = subscription.request()
            try:
                with self._http.stream(request.method, request.path, **request.options) as answer:
                    if answer.status_code >= 400:
                        answer.read()
                        raise error_of(answer)
                    if answer.status_code == 204:
                        yield subscription.removed
                        return
                    subscription.connected(answer)
                    for line in answer.iter_lines():
                        item = subscription.take(line)
                        if item is not None:
                            yield item
                        if subscription.has_ended:
                            return
            except (ServerError, httpx.TransportError) as error:
                if not subscription.can_continue(error):
                    raise
                notice = subscription.reconnecting(error)
                if notice is not None:
                    yield notice
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

    def __init__(
        self,
        url: str,
        token: str | None = None,
        verify: Any = True,
        timeout: float | None = None,
    ):
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            base_url=base(url),
            headers=_headers(token),
            verify=verify,
            timeout=timeout or ANSWER_SECONDS,
        )

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _ask(self, request: Request) -> httpx.Response:
        return checked(await self._http.request(request.method, request.path, **request.options))

    async def _json(self, request: Request, *keys: str) -> Json:
        return object_of(await self._ask(request), *keys)

    async def queries(self) -> list[Json]:
        """As `Client.queries`."""
        request = Request("GET", "/v1/queries", {"params": {"limit": 10_000}})
        return _items(await self._json(request, "items"))

    async def query(self, name: str) -> Json:
        """As `Client.query`."""
        return await self._json(Request("GET", query_path(name)))

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
            put_query_request(name, text, state, bind, kb, paused, sinks, entail, limits)
        )

    async def change(self, name: str, **changes: Any) -> Json:
        """As `Client.change`."""
        return await self._json(Request("PATCH", query_path(name), {"json": changes}))

    async def remove_query(self, name: str, drain: str | None = None) -> None:
        """As `Client.remove_query`."""
        await self._ask(remove_query_request(name, drain))

    async def push(
        self,
        stream: str,
        data: bytes | str,
        media_type: str = "application/n-quads",
        skip: bool = False,
    ) -> Accepted:
        """As `Client.push`."""
        deadline = _deadline(self._timeout)
        request = push_request(stream, data, media_type, skip)
        while True:
            try:
                return _accepted(await self._json(request, *_COUNTS))
            except ServerError as error:
                if error.status not in BUSY or time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def watermark(self, stream: str, moment: float | str) -> None:
        """As `Client.watermark`."""
        await self._ask(watermark_request(stream, moment))

    async def streams(self) -> list[Json]:
        """As `Client.streams`."""
        request = Request("GET", "/v1/streams", {"params": {"limit": 10_000}})
        return _items(await self._json(request, "items"))

    async def put_kb(self, iri: str, data: bytes | str, media_type: str = "text/turtle") -> Json:
        """As `Client.put_kb`."""
        return await self._json(put_kb_request(iri, data, media_type))

    async def remove_kb(self, iri: str) -> None:
        """As `Client.remove_kb`."""
        await self._ask(Request("DELETE", kb_path(iri)))

    async def checkpoint(self) -> int:
        """As `Client.checkpoint`."""
        return int((await self._json(Request("POST", "/v1/checkpoints"), "number"))["number"])

    async def explain(self, query: str) -> str:
        """As `Client.explain`."""
        request = Request(
            "GET", query_path(query, "/explain"), {"headers": {"Accept": "text/plain"}}
        )
        return (await self._ask(request)).text

    async def why(self, query: str) -> str:
        """As `Client.why`."""
        return (await self._ask(why_request(query))).text

    async def why_event(
        self, query: str, graph: str, at: float | str | None = None, stream: str | None = None
    ) -> Json:
        """As `Client.why_event`."""
        return await self._json(why_event_request(query, graph, at, stream), "patterns")

    async def subscribe(
        self, query: str, start: Start = "now", after: str = "", limit: int | None = None
    ) -> AsyncIterator[Item]:
        """As `Client.subscribe`."""
        subscription = Subscription(query, start, after, limit, self._timeout)
        while True:
            request = subscription.request()
            try:
                async with self._http.stream(
                    request.method, request.path, **request.options
                ) as answer:
                    if answer.status_code >= 400:
                        await answer.aread()
                        raise error_of(answer)
                    if answer.status_code == 204:
                        yield subscription.removed
                        return
                    subscription.connected(answer)
                    async for line in answer.aiter_lines():
                        item = subscription.take(line)
                        if item is not None:
                            yield item
                        if subscription.has_ended:
                            return
            except (ServerError, httpx.TransportError) as error:
                if not subscription.can_continue(error):
                    raise
                notice = subscription.reconnecting(error)
                if notice is not None:
                    yield notice
            await asyncio.sleep(RETRY_SECONDS)

    async def matches(
        self, query: str, start: Start = "now", after: str = "", limit: int | None = None
    ) -> AsyncIterator[ServedMatch]:
        """As `Client.matches`."""
        async for item in self.subscribe(query, start, after, limit):
            if isinstance(item, ServedMatch):
                yield item


def _deadline(timeout: float | None) -> float:
    """When a push gives up waiting for a busy server."""
    return math.inf if timeout is None else time.monotonic() + timeout


def _items(page: Json) -> list[Json]:
    return list(page["items"])


_COUNTS = ("accepted", "late", "rejected", "token")


def _accepted(data: Json) -> Accepted:
    return Accepted(
        data["accepted"], data["late"], data["rejected"], data["token"], data.get("ahead", 0)
    )
