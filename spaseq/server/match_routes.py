"""`/v1/queries/{name}/matches`: subscriptions by SSE, NDJSON, WebSocket and RDF Messages."""

from __future__ import annotations

import asyncio
import json

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from spaseq.server import context
from spaseq.server.auth import PROTOCOL
from spaseq.server.board import Channel
from spaseq.server.context import Context
from spaseq.server.following import Outlet
from spaseq.server.http import outlet_of
from spaseq.server.problems import Problem
from spaseq.server.subscriptions import (
    MESSAGES,
    NDJSON,
    SLOW_SECONDS,
    SSE,
    Format,
    Subscription,
    frames,
)
from spaseq.server.topics import Gone

FORMATS = {format.media_type: format for format in (SSE, NDJSON, MESSAGES)}
MAX_LIMIT = 10**9


class _Stream(StreamingResponse):
    """An endless response, which ends when the client leaves or does not read it."""

    def __init__(self, subscription: Subscription, format: Format, outlet: Outlet | None):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(subscription.chunks(format, outlet), 200, headers, format.media_type)
        self._subscription = subscription

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscription.close()

    async def stream_response(self, send: Send) -> None:
        headers = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(headers)
        async for chunk in self.body_iterator:
            async with asyncio.timeout(SLOW_SECONDS):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def matches(request: Request) -> Response:
    """The matches of a query from now on, or from a place in the replay buffer."""
    server = context.allow(request, "read")
    name = request.path_params["name"]
    wanted = context.accepted(request, tuple(FORMATS))
    await server.replayed()
    format = FORMATS[wanted]
    board = server.engine.board
    if name not in server.engine.machine.listed and board.has_removed(name) and _is_told(request):
        return context.no_content()
    _check_format(server, name, format)
    return _Stream(_subscription(request, server, name), format, outlet_of(request.scope))


def _is_told(request: Request) -> bool:
    """Whether the client takes the status 204 as the end: EventSource reconnects otherwise."""
    return SSE.media_type in request.headers.get("accept", "")


async def socket(websocket: WebSocket) -> None:
    """The same by WebSocket: a message of JSON for each match or notice."""
    protocol = next(
        (p for p in websocket.scope.get("subprotocols", ()) if p.startswith(PROTOCOL)), None
    )
    server = context.allow(websocket, "read")
    await server.replayed()
    subscription = _subscription(websocket, server, websocket.path_params["name"])
    try:
        await _converse(websocket, subscription, protocol)
    finally:
        subscription.close()


async def _converse(websocket: WebSocket, subscription: Subscription, protocol: str | None) -> None:
    """Send until the subscription ends, or the client leaves."""
    await websocket.accept(protocol)
    sender = asyncio.create_task(_send(websocket, subscription))
    listener = asyncio.create_task(_listen(websocket))
    done, left = await asyncio.wait((sender, listener), return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if sender in done and sender.exception() is None:
        await websocket.close(1000)


async def _send(websocket: WebSocket, subscription: Subscription) -> None:
    async for kind, says in subscription.items():
        if kind == "match":
            texts = frames(says[1])
        elif kind == "heartbeat":
            continue  # the protocol has its own pings
        else:
            texts = [json.dumps({"event": kind, "data": says}, ensure_ascii=False)]
        for text in texts:
            async with asyncio.timeout(SLOW_SECONDS):
                await websocket.send_text(text)


async def _listen(websocket: WebSocket) -> None:
    """Wait until the client leaves; its messages are ignored."""
    try:
        while True:
            await websocket.receive()
    except (WebSocketDisconnect, RuntimeError):
        return


def _check_format(server: Context, name: str, format: Format) -> None:
    """RDF Messages are for queries whose results are graphs."""
    if format is not MESSAGES:
        return
    run, number = server.engine.machine.running(name)
    if run.program.queries[number].plan.output.form != "construct":
        raise Problem(406, "RDF Messages are for CONSTRUCT queries", "media-type")


def _subscription(request: HTTPConnection, server: Context, name: str) -> Subscription:
    """The subscription that a request describes.

    Raises:
        Problem: 404, 410 if the matches after `Last-Event-ID` are gone, 503 for too many.
    """
    server.engine.machine.latest(name)
    channel = server.engine.board.channel(name)
    hub = server.hub
    assert hub is not None
    if hub.count >= server.limits.subscribers:
        raise Problem(503, "there are too many subscribers", "subscribers", {"Retry-After": "5"})
    limit = context.number_of(request, "limit", None, MAX_LIMIT)
    follow = context.choice_of(request, "follow", ("true", "false")) == "true"
    return Subscription(hub, channel, _cursor(request, channel), limit, follow)


def _cursor(request: HTTPConnection, channel: Channel) -> int:
    topic = channel.topic
    last = request.headers.get("last-event-id") or request.query_params.get("after")
    if last:
        try:
            return topic.after(last)
        except Gone:
            raise Problem(
                410, "the replay buffer does not have this match any more: begin with from=oldest, "
                "or from=now", "gone",
            ) from None  # fmt: skip
    place = context.choice_of(request, "from", ("now", "oldest"))
    return topic.end if place == "now" else topic.first


ROUTES = [
    Route("/v1/queries/{name}/matches", matches, methods=["GET"]),
    WebSocketRoute("/v1/queries/{name}/matches", socket),
]
