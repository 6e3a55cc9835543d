"""The ASGI application: routes, errors, headers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from spaseq.server import (
    console_routes,
    kb_routes,
    look_routes,
    match_routes,
    operation_routes,
    query_routes,
    stream_routes,
)
from spaseq.server.context import Context
from spaseq.server.folder import POLL_SECONDS, QueryFolder
from spaseq.server.problems import MEDIA_TYPE, Problem
from spaseq.server.subscriptions import Hub

LOG = logging.getLogger("spaseq.server")
ROUTES: list[BaseRoute] = [
    *match_routes.ROUTES,
    *look_routes.ROUTES,
    *query_routes.ROUTES,
    *stream_routes.ROUTES,
    *kb_routes.ROUTES,
    *operation_routes.ROUTES,
    *console_routes.ROUTES,
    *console_routes.PAGES,
]
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
API_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


def make_app(context: Context, folder: QueryFolder | None = None) -> Starlette:
    """The application over a context whose engine has not been started.

    Args:
        context: The server's parts.
        folder: Standing queries as files.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        context.hub = Hub(asyncio.get_running_loop())
        context.engine.board.wake = context.hub.wake
        if folder is not None and context.engine.has_replayed:
            await asyncio.to_thread(folder.begin)
        context.engine.start()
        watching = asyncio.create_task(_watch(folder)) if folder is not None else None
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
            context.hub.close()
            await asyncio.to_thread(context.engine.stop)

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={
            Problem: _problem,
            HTTPException: _http_problem,
        },
    )
    app.state.context = context
    app.add_middleware(_Edge, origins=context.access.origins)
    return app


async def _watch(folder: QueryFolder) -> None:
    """Register the changes in the folder."""
    while True:
        await asyncio.to_thread(folder.look)
        await asyncio.sleep(POLL_SECONDS)


class _Edge:
    """The outermost layer: security headers, headers for allowed origins, and the answer to
    unexpected errors.
    """

    def __init__(self, app: ASGIApp, origins: frozenset[str]):
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        origin = next((v for n, v in scope["headers"] if n == b"origin"), b"").decode("latin-1")
        allowed = origin in self._origins
        if allowed and scope["method"] == "OPTIONS":
            await _preflight(origin)(scope, receive, send)
            return

        has_begun = False

        async def with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = [*message.get("headers", ()), *HEADERS]
                if not any(name == API_POLICY[0] for name, _ in headers):
                    headers.append(API_POLICY)
                if allowed:
                    headers += [
                        (b"access-control-allow-origin", origin.encode("latin-1")),
                        (b"access-control-expose-headers", b"ETag, Location, Link, Retry-After"),
                        (b"vary", b"Origin"),
                    ]
                message["headers"] = headers
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except ClientDisconnect:
            LOG.info("%s %s: the client left within the body", scope["method"], scope["path"])
        except Exception as error:
            # The error is logged, but not shown to the client.
            LOG.error("%s %s: %r", scope["method"], scope["path"], error, exc_info=error)
            if has_begun:
                raise
            problem = Problem(500, "an error of the server; its log says more", "internal")
            await _answer(problem)(scope, receive, with_headers)


def _preflight(origin: str) -> Response:
    return Response(
        status_code=204,
        headers={
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": "GET, PUT, POST, PATCH, DELETE",
            "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, "
            "If-Match, If-None-Match, Last-Event-ID",
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        },
    )


def _answer(problem: Problem) -> JSONResponse:
    return JSONResponse(problem.to_dict(), problem.status, problem.headers, media_type=MEDIA_TYPE)


async def _problem(connection: HTTPConnection, error: Exception) -> Any:
    assert isinstance(error, Problem)
    if isinstance(connection, WebSocket):
        await connection.send_denial_response(_answer(error))
        return None
    return _answer(error)


async def _http_problem(connection: HTTPConnection, error: Exception) -> Any:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    problem = Problem(error.status_code, error.detail, "http", headers)
    return await _problem(connection, problem)
