"""`/v1/kb`: the graphs of the knowledge base, with the verbs of the Graph Store Protocol."""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from spaseq.live.addresses import redacted
from spaseq.rdf.bounded import parse_document
from spaseq.rdf.formats import SYNTAXES, RdfSyntax, syntax_of_media_type
from spaseq.rdf.syntax import LimitError, parser_failure
from spaseq.server import context
from spaseq.server.context import Context
from spaseq.server.kb_graphs import KbGraph
from spaseq.server.problems import Problem, not_found

N_TRIPLES = "application/n-triples"


async def put(request: Request) -> Response:
    """Set the content of a graph; later events are matched against it."""
    server = context.allow(request, "manage")
    iri = _iri(request)
    syntax = syntax_of_media_type(request.headers.get("content-type", ""))
    if syntax is None:
        known = [name for each in SYNTAXES.values() for name in each.media_types]
        raise Problem(415, "the media type names no RDF syntax", "media-type", known=known)
    data = await context.body_of(request, server.limits.body)
    file = f"{uuid.uuid4().hex}.nt"
    path = server.engine.kb_folder / file

    def enter() -> tuple[KbGraph, bool]:
        before = server.engine.machine.kb.graphs.get(iri)
        context.check_match(request, None if before is None else _etag(before))
        return server.engine.put_kb(iri, file, triples), before is None

    server.engine.kb_arriving.add(file)
    try:
        triples = await asyncio.to_thread(_store, path, data, syntax)
        graph, created = await server.do(enter)
    except Exception:
        path.unlink(missing_ok=True)
        raise
    finally:
        server.engine.kb_arriving.discard(file)
    status = 201 if created else 200
    context.audit(request, status, _etag(graph))
    return JSONResponse(_describe(iri, graph), status, {"ETag": _etag(graph)})


async def delete(request: Request) -> Response:
    """Remove a graph that no query names."""
    server = context.allow(request, "manage")
    iri = _iri(request)

    def remove() -> None:
        before = server.engine.machine.kb.graphs.get(iri)
        context.check_match(request, None if before is None else _etag(before))
        server.engine.remove_kb(iri)

    await server.do(remove)
    context.audit(request, 204)
    return context.no_content()


async def get(request: Request) -> Response:
    """A graph: its triples as N-Triples, or its description as JSON."""
    server = context.allow(request, "read")
    iri = _iri(request)
    graph = _graph(server, iri)
    wanted = context.accepted(request, ("application/json", N_TRIPLES))
    headers = {"ETag": _etag(graph)}
    if wanted == N_TRIPLES:
        if not graph.file:
            raise Problem(406, "its triples are not in the state of the server", "media-type")
        path = server.engine.kb_folder / graph.file
        return FileResponse(path, 200, headers, N_TRIPLES)
    return JSONResponse(_describe(iri, graph), 200, headers)


async def listed(request: Request) -> Response:
    """All graphs."""
    server = context.allow(request, "read")
    graphs = dict(server.engine.machine.kb.graphs)
    return context.page(request, [_describe(iri, graphs[iri]) for iri in sorted(graphs)])


def _iri(request: Request) -> str:
    iri = str(request.path_params["iri"])
    try:
        return ox.NamedNode(iri).value
    except ValueError as error:
        raise Problem(422, f"the name of a KB graph is an absolute IRI: {error}", "iri") from error


def _graph(server: Context, iri: str) -> KbGraph:
    graph = server.engine.machine.kb.graphs.get(iri)
    if graph is None:
        raise not_found(f"there is no KB graph <{iri}>")
    return graph


def _etag(graph: KbGraph) -> str:
    return f'"{graph.version}"'


def _describe(iri: str, graph: KbGraph) -> dict[str, Any]:
    shown: dict[str, Any] = {"iri": iri, "version": graph.version, "etag": _etag(graph)}
    if graph.file:
        shown["triples"] = graph.triples
    elif graph.url.partition(":")[0] in ("http", "https"):
        shown["url"] = redacted(graph.url)
    return shown


def _store(path: Path, data: bytes, syntax: RdfSyntax) -> int:
    """Check a graph and store it as N-Triples. Returns the number of triples.

    Raises:
        Problem: 400 with the line if it is malformed; 503 if the file cannot be written.
    """
    try:
        quads = parse_document(data, syntax)
        triples = [ox.Triple(quad.subject, quad.predicate, quad.object) for quad in quads]
    except SyntaxError as error:
        place: dict[str, Any] = {} if error.lineno is None else {"line": error.lineno}
        raise Problem(400, str(error.msg or error), "input", **place) from error
    except (LimitError, ValueError, OSError) as error:
        raise Problem(400, str(error), "input") from error
    except BaseException as error:
        failure = parser_failure(error)
        if failure is None:
            raise
        raise Problem(400, failure, "input") from error
    text = ox.serialize(triples, format=ox.RdfFormat.N_TRIPLES) or b""
    try:
        with open(path, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise Problem(
            503, f"the graph cannot be stored: {error}", "storage", {"Retry-After": "10"}
        ) from error
    return len(triples)


ROUTES = [
    Route("/v1/kb", listed, methods=["GET"]),
    Route("/v1/kb/{iri:path}", get, methods=["GET"]),
    Route("/v1/kb/{iri:path}", put, methods=["PUT"]),
    Route("/v1/kb/{iri:path}", delete, methods=["DELETE"]),
]
