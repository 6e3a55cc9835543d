"""Health, checkpoints and the description of the API."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from spaseq.server import context
from spaseq.server.context import BUSY_SECONDS, Context
from spaseq.server.engine import Engine
from spaseq.server.metrics import MEDIA_TYPE, exposition

OVERDUE_INTERVALS = 3
STUCK_SECONDS = 120.0
"""Seconds without a look at the calls that have arrived after which the engine is not healthy."""
HELD_BACK_SECONDS = 1.0
"""Seconds without an event after which a stream that holds back others is reported."""


async def healthz(request: Request) -> Response:
    """Whether the engine works; a process that is not healthy has to be restarted."""
    engine = context.context_of(request).engine
    if is_healthy(engine):
        return PlainTextResponse("ok\n")
    reason = f"the engine is stuck for {engine.stuck_seconds:.0f} s"
    return PlainTextResponse(f"{reason if engine.is_alive else 'the engine has ended'}\n", 503)


def is_healthy(engine: Engine) -> bool:
    """Whether the engine is alive and attends to calls."""
    return engine.is_alive and engine.stuck_seconds < STUCK_SECONDS


async def readyz(request: Request) -> Response:
    """Whether the server is ready, and if not, why."""
    server = context.context_of(request)
    missing = obstacles(server)
    shown = {"ready": not missing, "not_ready": missing}
    return JSONResponse(shown, 503 if missing else 200)


def obstacles(server: Context) -> list[str]:
    """The reasons why the server is not ready, as texts."""
    engine = server.engine
    if not engine.is_alive:
        return ["engine: it has ended"]
    found = []
    busy = engine.busy_seconds
    if not engine.has_replayed:
        found.append(f"replaying: {engine.progress} of the journal")
    elif busy > BUSY_SECONDS:
        found.append(f"engine: {engine.trouble}")
    if engine.storage:
        found.append(f"storage: changes are refused: {engine.storage}")
    checkpoints = engine.checkpoints
    age = time.monotonic() - (checkpoints.made_at or engine.started)
    if age > OVERDUE_INTERVALS * checkpoints.interval + 1.0:
        found.append(f"checkpoint: the last one is {age:.0f} s old")
    for name, standing in list(engine.machine.queries.items()):
        if standing.failure:
            found.append(f"query {name}: failed")
    for holding in engine.holding:
        silent = time.monotonic() - holding.heard
        if silent >= HELD_BACK_SECONDS:
            others = ", ".join(f"<{iri}>" for iri in holding.others)
            found.append(
                f"stream <{holding.stream}>: quiet for {silent:.0f} s, holds back {others}"
            )
    for reader in engine.sources:
        if reader.problem:
            found.append(f"source of {reader.name}: {reader.problem}")
    return found + engine.deliveries.problems()


async def metrics(request: Request) -> Response:
    """The metrics, for Prometheus."""
    server = context.allow(request, "read")
    is_ready = not obstacles(server)
    text = await server.ask(lambda: exposition(server, is_ready))
    return Response(text, 200, media_type=MEDIA_TYPE)


async def checkpoint(request: Request) -> Response:
    """Make a checkpoint, and wait for it."""
    server = context.allow(request, "manage")
    number = await context.finished(await server.do(server.engine.checkpoint))
    context.audit(request, 201)
    return JSONResponse({"number": number}, 201)


async def openapi(request: Request) -> Response:
    """The description of this API."""
    from spaseq.server.openapi import document

    context.allow(request, "read")
    return JSONResponse(document())


ROUTES = [
    Route("/healthz", healthz, methods=["GET"]),
    Route("/readyz", readyz, methods=["GET"]),
    Route("/metrics", metrics, methods=["GET"]),
    Route("/v1/checkpoints", checkpoint, methods=["POST"]),
    Route("/v1/openapi.json", openapi, methods=["GET"]),
]
