"""`/v1/streams`: pushed events, watermarks, and the streams that hold back time."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spaseq.rdf.time import from_micros, json_value
from spaseq.server import context
from spaseq.server.bodies import Body, check_media_type
from spaseq.server.context import Context
from spaseq.server.feeds import Feed
from spaseq.server.inputs import InputStream
from spaseq.server.problems import Problem
from spaseq.server.repeats import MAX_KEY_BYTES
from spaseq.server.sources import SourceReader


async def events(request: Request) -> Response:
    """Accept events."""
    server = context.allow(request, "ingest")
    name = request.path_params["name"]
    media_type = request.headers.get("content-type", "")
    check_media_type(media_type)
    if server.engine.has_replayed:
        server.engine.machine.stream(name)
    key = _key_of(request)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise Problem(400, f"Idempotency-Key: at most {MAX_KEY_BYTES} bytes", "parameter")
    framing = context.choice_of(request, "events", ("auto", "graph", "message"))
    skips = context.choice_of(request, "on-error", ("stop", "skip")) == "skip"
    data = await context.body_of(request, server.limits.body)
    if not data:
        raise Problem(400, "the body is empty: it has no events", "input")
    body = Body(data, media_type, framing, skips, time.time_ns() // 1000, key)
    shown = await server.do(lambda: server.engine.answer(name, body), len(data) + 1)
    return JSONResponse(shown, 202)


def _key_of(request: Request) -> str:
    """What a client names a body by: its key, or the source and the id of a CloudEvent."""
    key, named = request.headers.get("idempotency-key", ""), request.headers.get("ce-id", "")
    if key or not named:
        return key
    return f"{request.headers.get('ce-source', '')} {named}"


async def event(request: Request) -> Response:
    """The triples of an event that a match names, while the journal has it."""
    server = context.allow(request, "read")
    stream = server.engine.machine.stream(request.path_params["name"]).iri
    graph, time = (request.query_params.get(key) for key in ("graph", "time"))
    if graph is None or time is None:
        raise Problem(400, "graph and time: those of the event, as in the match", "parameter")
    async with server.searching:
        try:
            found = await asyncio.to_thread(server.engine.find_event, stream, graph, time)
        except Problem as problem:
            feeds = list(server.engine.machine.feeds.values())
            if any(feed.settings.stream == stream for feed in feeds):
                detail = f"{problem.detail}, or it was not pushed: those of sources are not found"
                raise Problem(404, detail, "not-found") from None
            raise
    return Response(found, media_type="application/n-triples")


async def watermark(request: Request) -> Response:
    """Accept a watermark: no event of the stream comes before this time."""
    server = context.allow(request, "ingest")
    name = request.path_params["name"]
    data = await context.json_of(request, 4096)
    value = data.get("time") if isinstance(data, dict) else None
    record, reached = await server.do(lambda: server.engine.watermark(name, value), 1)
    return JSONResponse({"token": record, "watermark": reached}, 202)


async def listed(request: Request) -> Response:
    """All streams."""
    server = context.allow(request, "read")
    found = await server.ask(lambda: _all(server))
    return context.page(request, found)


async def get(request: Request) -> Response:
    """One stream."""
    server = context.allow(request, "read")
    name = request.path_params["name"]

    def find() -> dict[str, Any]:
        iri = server.engine.machine.stream(name).iri
        return next(one for one in _all(server) if one["iri"] == iri)

    return JSONResponse(await server.ask(find))


async def delete(request: Request) -> Response:
    """Forget a stream that no query reads."""
    server = context.allow(request, "manage")
    name = request.path_params["name"]
    await server.do(lambda: server.engine.remove_stream(name))
    context.audit(request, 204)
    return Response(status_code=204)


def _all(server: Context) -> list[dict[str, Any]]:
    machine = server.engine.machine
    names: dict[str, list[str]] = {}
    for name, iris in machine.names().items():
        for iri in iris:
            names.setdefault(iri, []).append(name)
    holders = machine.holders
    return [
        _describe(server, stream, names.get(stream.iri, []), holders.get(stream.iri))
        for stream in machine.streams.values()
    ]


def _describe(
    server: Context, stream: InputStream, names: list[str], holder: InputStream | None
) -> dict[str, Any]:
    machine = server.engine.machine
    frontier, kind, component = stream.frontier, stream.domain.kind, machine.component(stream)
    silent = time.monotonic() - stream.heard
    return {
        "iri": stream.iri,
        "names": names,
        "queries": machine.readers_of(stream.iri),
        "watermark": None
        if frontier is None or not kind
        else json_value(from_micros(frontier, kind)),
        "lateness": stream.lateness / 1e6,
        "events": stream.events,
        "late": stream.late_events,
        "ahead": stream.ahead_events,
        "rejected": stream.rejected,
        "waiting": stream.pending,
        "silent": round(silent, 3),
        "idle": stream.is_idle,
        "holds_back": holder is stream,
        "held_back_by": None if holder is None or holder is stream else holder.iri,
        "component": None if component is None else [one.iri for one in component.streams],
        "sources": [
            _source(reader, machine.feeds[reader.name])
            for reader in server.engine.sources
            if reader.stream == stream.iri
        ],
    }


def _source(reader: SourceReader, feed: Feed) -> dict[str, Any]:
    return reader.to_dict() | ({"errors": list(feed.errors)} if feed.errors else {})


ROUTES = [
    Route("/v1/streams", listed, methods=["GET"]),
    Route("/v1/streams/{name:path}/events", event, methods=["GET"]),
    Route("/v1/streams/{name:path}/events", events, methods=["POST"]),
    Route("/v1/streams/{name:path}/watermark", watermark, methods=["POST"]),
    Route("/v1/streams/{name:path}", get, methods=["GET"]),
    Route("/v1/streams/{name:path}", delete, methods=["DELETE"]),
]
