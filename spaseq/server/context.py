"""The context that all routes share (engine, rules and limits), and the reading of requests."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import field
from typing import Any, TypeVar, cast

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from spaseq.errors import ChangeError, SpaseqError
from spaseq.rdf.bounded import parse_json
from spaseq.records import dataclass
from spaseq.server.auth import Access, Role
from spaseq.server.engine import Engine
from spaseq.server.problems import Problem, problem_of
from spaseq.server.subscriptions import Hub
from spaseq.server.urls import AllowedUrls

_T = TypeVar("_T")
AUDIT = logging.getLogger("spaseq.server.audit")
"""One line of JSON for each call that changes something, and for each refused one."""
BUSY_SECONDS = 5.0
"""Seconds that a call waits for an event to end; then it is refused."""
DISCARDED_BYTES = 1 << 20
DISCARDING_SECONDS = 1.0
"""How much of a refused body is read, and for how long."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on what one client can make the server store.

    Args:
        body: Bytes of a body of events or of a KB graph.
        query: Bytes of a query with its JSON.
        subscribers: Subscribers at once.
        queries: Standing queries.
        seconds: Seconds for a body to arrive.
    """

    body: int = 1 << 24
    query: int = 1 << 18
    subscribers: int = 4096
    queries: int = 10_000
    seconds: float = 30.0


@dataclass(slots=True)
class Context:
    """The server as its routes see it."""

    engine: Engine
    access: Access
    urls: AllowedUrls
    limits: RequestLimits = field(default_factory=RequestLimits)
    hub: Hub | None = None
    searching: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the only search of the journal at a time, since each reads all of it."""

    async def replayed(self) -> None:
        """Wait until the engine has read its journal.

        Raises:
            Problem: 503 if that takes too long.
        """
        until = time.monotonic() + BUSY_SECONDS
        while not self.engine.has_replayed:
            if time.monotonic() >= until:
                raise Problem(503, self.engine.trouble, "replaying", {"Retry-After": "1"})
            await asyncio.sleep(0.05)

    async def ask(self, function: Callable[[], _T]) -> _T:
        """Call a function that reads what lies beside the runs, also in the midst of an event.

        Raises:
            Problem: if it is refused.
        """
        return await self.do(function, meanwhile=function)

    async def do(
        self,
        function: Callable[[], _T],
        size: int = 0,
        meanwhile: Callable[[], _T] | None = None,
    ) -> _T:
        """Call a function in the thread of the engine; see `Engine.call`.

        Raises:
            Problem: if it is refused; 503 if the engine is busy with something else.
        """
        try:
            return await self._waited(self.engine.call(function, size, meanwhile))
        except ChangeError as error:
            raise Problem(409, str(error), "conflict") from error
        except (SpaseqError, ValueError) as error:
            raise problem_of(error) from error

    async def _waited(self, future: Future[_T]) -> _T:
        answer = asyncio.wrap_future(future)
        while not (await asyncio.wait([answer], timeout=BUSY_SECONDS))[0]:
            if self.engine.busy_seconds > BUSY_SECONDS and future.cancel():
                raise Problem(503, self.engine.trouble, "busy", {"Retry-After": "5"})
        return answer.result()


def context_of(connection: HTTPConnection) -> Context:
    return cast(Context, connection.app.state.context)


def allow(connection: HTTPConnection, role: Role) -> Context:
    """Check the token of a request for a role.

    Raises:
        Problem: 401 or 403.
    """
    context = context_of(connection)
    try:
        connection.state.user = context.access.check(role, connection.headers)
    except Problem as problem:
        audit(connection, problem.status, problem.detail)
        raise
    return context


def audit(connection: HTTPConnection, status: int, what: str = "") -> None:
    """Record a call that changes something, or that was refused."""
    says = {
        "user": getattr(connection.state, "user", None),
        "client": connection.client.host if connection.client else None,
        "method": connection.scope.get("method", "WEBSOCKET"),
        "path": connection.scope["path"],
        "status": status,
        "what": what,
    }
    AUDIT.info(json.dumps({key: value for key, value in says.items() if value}))


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        Problem: 413 if it is larger than `most` bytes, 408 if it takes too long.
    """
    stream = request.stream()
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        # A client that asks whether to send the body at all has not sent any of it.
        if "expect" not in request.headers:
            await _discard(stream)
        raise _too_large(most)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "compressed bodies are not accepted", "encoding")
    parts, size = [], 0
    try:
        async with asyncio.timeout(context_of(request).limits.seconds):
            async for part in stream:
                size += len(part)
                if size > most:
                    await _discard(stream)
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "the body took too long", "slow", {"Connection": "close"}) from None
    return b"".join(parts)


async def _discard(stream: AsyncIterator[bytes]) -> None:
    """Read on, up to a bound, so that the client can read why its body is refused.

    Closing a socket with unread bytes resets the connection, and the answer may be lost with it.
    """
    left = DISCARDED_BYTES
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(DISCARDING_SECONDS):
            async for part in stream:
                left -= len(part)
                if left < 0:
                    return


def _too_large(most: int) -> Problem:
    return Problem(
        413, f"the body has more than {most} bytes: send it in parts", "too-large",
        {"Connection": "close"}, limit=most,
    )  # fmt: skip


async def json_of(request: Request, most: int) -> Any:
    """The JSON body of a request.

    Raises:
        Problem: 400 if it is not JSON.
    """
    return parsed_json(await body_of(request, most))


def parsed_json(data: bytes) -> Any:
    """JSON of a client.

    Raises:
        Problem: 400 if it is none.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        found = parse_json(data, parse_constant=refuse)
        # Python's reader accepts half of a surrogate pair, which UTF-8 text cannot contain.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Problem(400, "the body has half of a surrogate pair", "json") from error
    except ValueError as error:
        raise Problem(400, f"the body is not JSON: {error}", "json") from error
    return found


def text_of(data: bytes) -> str:
    """UTF-8 text of a client.

    Raises:
        Problem: 400 if it is none.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "the body is not UTF-8", "encoding") from error


def number_of(request: HTTPConnection, name: str, default: int | None, most: int) -> int | None:
    """A number of the query string, from 1 to `most`.

    Raises:
        Problem: 400 for anything else.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= most:
        raise Problem(400, f"{name}: a number from 1 to {most}", "parameter")
    return int(text)


def choice_of(request: HTTPConnection, name: str, known: tuple[str, ...]) -> str:
    """A value of the query string; the first one is the default.

    Raises:
        Problem: 400 for another value.
    """
    value = request.query_params.get(name, known[0])
    if value not in known:
        raise Problem(400, f"{name}: {', '.join(known)}", "parameter")
    return value


def accepted(request: HTTPConnection, known: tuple[str, ...]) -> str:
    """The media type that the client prefers; the first one is the default.

    Raises:
        Problem: 406 if it wants none of them.
    """
    wanted = []
    for place, part in enumerate(request.headers.get("accept", "*/*").split(",")):
        media, *parameters = [each.strip() for each in part.lower().split(";")]
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        wanted.append((-quality, place, media))
    for quality, _, media in sorted(wanted):
        if quality == 0:
            continue
        for one in known:
            if media in (one, "*/*") or (media.endswith("/*") and one.startswith(media[:-1])):
                return one
    raise Problem(406, f"one of {', '.join(known)}", "media-type")


def check_match(request: Request, etag: str | None) -> None:
    """Check `If-Match` and `If-None-Match` of a change.

    Raises:
        Problem: 412 if the resource is not as the client thinks.
    """
    wanted, unwanted = request.headers.get("if-match"), request.headers.get("if-none-match")
    if wanted is not None and not _names(wanted, etag):
        raise Problem(412, "it has changed, or is not there", "etag")
    if unwanted is not None and _names(unwanted, etag):
        raise Problem(412, "it is there already", "etag")


def _names(tags: str, etag: str | None) -> bool:
    if etag is None:
        return False
    return tags.strip() == "*" or etag in [
        tag.strip().removeprefix("W/") for tag in tags.split(",")
    ]


def page(request: Request, items: list[Any]) -> JSONResponse:
    """A page of a list: `limit` and `offset` of the query string, and a link to the next one."""
    limit = number_of(request, "limit", 1000, 10_000) or 1000
    offset_text = request.query_params.get("offset", "0")
    if not offset_text.isascii() or not offset_text.isdigit() or len(offset_text) > 12:
        raise Problem(400, "offset: a number from 0", "parameter")
    offset = int(offset_text)
    shown: dict[str, Any] = {"items": items[offset : offset + limit], "total": len(items)}
    headers = {}
    if offset + limit < len(items):
        url = request.url.include_query_params(limit=limit, offset=offset + limit)
        shown["next"] = f"{url.path}?{url.query}"
        headers["Link"] = f'<{shown["next"]}>; rel="next"'
    return JSONResponse(shown, headers=headers)


def no_content() -> Response:
    return Response(status_code=204)


async def finished(future: Future[_T]) -> _T:
    return await asyncio.wrap_future(future)
