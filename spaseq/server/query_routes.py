"""`/v1/queries`: standing queries are added, changed, paused and removed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spaseq.engine.changes import StatePolicy
from spaseq.errors import EventError, SpaseqError
from spaseq.explain.cost import doubling_note
from spaseq.program import Program
from spaseq.rdf.time import duration_micros
from spaseq.server import context
from spaseq.server.context import Context
from spaseq.server.problems import Problem, diagnostic, problem_of
from spaseq.server.standing import (
    Definition,
    Standing,
    bindings_of,
    check_name,
    checked_services,
    definition_of,
)

SPARQL = "application/sparql-query"
POLICIES = ("fresh", "keep", "drain")


async def put(request: Request) -> Response:
    """Register a query, or replace the one of this name."""
    server = context.allow(request, "manage")
    name = check_name(request.path_params["name"])
    data = await context.body_of(request, server.limits.query)
    essence = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    state: Any = None
    if essence == "application/json":
        parsed = context.parsed_json(data)
        definition = definition_of(
            name, parsed, server.urls, server.engine.run_settings, server.engine.sink_names
        )
        state = parsed.get("state")
    elif essence in (SPARQL, "", "text/plain", "application/x-www-form-urlencoded"):
        definition = Definition(name, context.text_of(data))
    else:
        raise Problem(415, f"{SPARQL} or application/json", "media-type")
    state = _policy(state or request.query_params.get("state", "fresh"))
    standing, created = await _register(request, server, definition, state)
    context.audit(request, 201 if created else 200, standing.etag)
    return _shown(server, standing, 201 if created else 200)


async def patch(request: Request) -> Response:
    """Pause or continue a query, or change the values of its variables."""
    server = context.allow(request, "manage")
    name = request.path_params["name"]
    data = await context.json_of(request, server.limits.query)
    if not isinstance(data, dict) or data.keys() - {"paused", "bind"}:
        raise Problem(422, "an object with the members paused and bind", "definition")
    definition = server.engine.machine.query(name).definition
    if "paused" in data:
        if not isinstance(data["paused"], bool):
            raise Problem(422, "paused: true or false", "definition")
        definition = replace(definition, paused=data["paused"])
    state: StatePolicy = "fresh"
    if "bind" in data:
        state = "keep"
        definition = replace(definition, bind={**definition.bind, **bindings_of(data["bind"])})
    only_pauses = data == {"paused": True}
    standing, _ = await _register(request, server, definition, state, only_pauses)
    context.audit(request, 200, standing.etag)
    return _shown(server, standing, 200)


async def delete(request: Request) -> Response:
    """Remove a query with its replay buffer, immediately or when its partial matches have ended."""
    server = context.allow(request, "manage")
    name = request.path_params["name"]
    drain = "drain" in request.query_params
    seconds = _seconds(request.query_params["drain"]) if drain else None

    def remove() -> Standing | None:
        machine = server.engine.machine
        context.check_match(request, machine.latest(name).etag)
        server.engine.remove_query(name, drain, seconds)
        return machine.listed.get(name)

    def remove_now() -> Standing | None:
        context.check_match(request, server.engine.machine.latest(name).etag)
        server.engine.remove_now(name)
        return None

    left = await server.do(remove, meanwhile=None if drain else remove_now)
    if left is None:
        context.audit(request, 204)
        return context.no_content()
    context.audit(request, 202)
    return _shown(server, left, 202)


def _seconds(text: str) -> float | None:
    """The longest time for which a query drains; None, for an empty text: until it has drained.

    Raises:
        Problem: for any other text.
    """
    if not text:
        return None
    try:
        micros = duration_micros(text)
    except EventError as error:
        raise Problem(422, f"drain: {error}", "drain") from error
    if micros <= 0:
        raise Problem(422, "drain: the duration must be positive", "drain")
    return micros / 1e6


async def get(request: Request) -> Response:
    """One query."""
    server = context.allow(request, "read")
    return _shown(server, server.engine.machine.latest(request.path_params["name"]), 200)


async def listed(request: Request) -> Response:
    """All queries, by name."""
    server = context.allow(request, "read")
    queries = server.engine.machine.listed
    return context.page(request, [describe(server, queries[name]) for name in sorted(queries)])


async def check(request: Request) -> Response:
    """Compile a query without registering it: its diagnostics, for editors."""
    server = context.allow(request, "read")
    text = context.text_of(await context.body_of(request, server.limits.query))
    definition = Definition("query", text)
    try:
        program = await asyncio.to_thread(definition.compile)
    except SpaseqError as error:
        problem = problem_of(error)
        if problem.kind != "query":
            raise problem from error
        return JSONResponse({"ok": False, "diagnostics": problem.members["diagnostics"]})
    found = [*program.warnings, *filter(None, map(doubling_note, program.queries))]
    shown = [diagnostic(each) for each in found]
    return JSONResponse({"ok": True, "diagnostics": shown, "streams": dict(program.stream_names)})


def _policy(state: Any) -> StatePolicy:
    if state not in POLICIES:
        raise Problem(422, f"state: one of {', '.join(POLICIES)}", "definition")
    return cast(StatePolicy, state)


async def _register(
    request: Request,
    server: Context,
    definition: Definition,
    state: StatePolicy,
    only_pauses: bool = False,
) -> tuple[Standing, bool]:
    """Compile a definition outside the engine and register it; returns it, and if it is new."""
    program = await asyncio.to_thread(_compiled, server, definition)

    def enter() -> tuple[Standing, bool]:
        machine = server.engine.machine
        before = machine.queries.get(definition.name)
        context.check_match(request, None if before is None else before.etag)
        count = len(machine.queries) + len(machine.draining)
        if (before is None or state == "drain") and count >= server.limits.queries:
            raise Problem(403, f"the server has {count} queries already", "limit")
        if before is not None and before.definition == definition and not before.failure:
            return before, False
        return server.engine.put_query(definition, program, state), before is None

    def pause_now() -> tuple[Standing, bool]:
        context.check_match(request, server.engine.machine.query(definition.name).etag)
        return server.engine.pause_now(definition.name), False

    return await server.do(enter, meanwhile=pause_now if only_pauses else None)


def _compiled(server: Context, definition: Definition) -> Program:
    try:
        program = definition.compile()
    except (SpaseqError, ValueError) as error:
        raise problem_of(error) from error
    checked_services(program, server.urls)
    return program


def _shown(server: Context, standing: Standing, status: int) -> JSONResponse:
    headers = {"ETag": standing.etag}
    if status == 201:
        headers["Location"] = f"/v1/queries/{standing.definition.name}"
    return JSONResponse(describe(server, standing), status, headers)


def describe(server: Context, standing: Standing) -> dict[str, Any]:
    """A query as JSON."""
    definition = standing.definition
    channel = server.engine.board.channels.get(definition.name)
    shown: dict[str, Any] = {
        "name": definition.name,
        "status": standing.status,
        "text": definition.text,
        "bind": definition.bind,
        "kb": definition.kb,
        "sinks": list(definition.sinks),
        "entail": definition.entail,
        "limits": definition.limits,
        "paused": definition.paused,
        "revision": standing.revision,
        "etag": standing.etag,
        "matches": 0 if channel is None else channel.topic.end,
    }
    if standing.draining:
        shown["until"] = _instant(standing)
    versions = server.engine.machine.draining.of(definition.name)
    if versions and not standing.draining:
        shown["draining"] = [{"revision": one.revision, "until": _instant(one)} for one in versions]
    deliveries = server.engine.deliveries.of(definition.name)
    if deliveries:
        shown["deliveries"] = [one.to_dict() for one in deliveries]
    if standing.failure:
        shown["failure"] = standing.failure
    if definition.folder:
        shown["folder"] = True
    return shown


def _instant(standing: Standing) -> str | None:
    """The latest time at which a draining query ends, if it is known."""
    if standing.until is None:
        return None
    return datetime.fromtimestamp(standing.until, UTC).isoformat(timespec="milliseconds")


ROUTES = [
    Route("/v1/queries", listed, methods=["GET"]),
    Route("/v1/check", check, methods=["POST"]),
    Route("/v1/queries/{name}", get, methods=["GET"]),
    Route("/v1/queries/{name}", put, methods=["PUT"]),
    Route("/v1/queries/{name}", patch, methods=["PATCH"]),
    Route("/v1/queries/{name}", delete, methods=["DELETE"]),
]
