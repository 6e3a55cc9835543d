"""The description of the API: OpenAPI 3.1, from a table of operations.

A test compares the table with the routes, so that neither has an entry that the other lacks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from spaseq import __version__
from spaseq.records import dataclass
from spaseq.server.auth import Role
from spaseq.server.bodies import media_types
from spaseq.server.problems import MEDIA_TYPE

_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")
_JSON = ("application/json",)
_MATCHES = ("text/event-stream", "application/x-ndjson", "application/n-quads")
_PAGES = {"limit": "the most items", "offset": "the number of the first item"}
_ETAG = {412: "The entity tag is another one"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb of one path.

    Args:
        summary: What it does.
        answers: Status → what it means.
        role: The role that it needs; None if it needs none.
        query: Parameter of the query string → what it means.
        headers: Request header → what it means.
        takes: The media types of the body.
        gives: The media types of a successful answer.
    """

    summary: str
    answers: Mapping[int, str]
    role: Role | None = "read"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    takes: Sequence[str] = ()
    gives: Sequence[str] = _JSON


_CONDITIONS = {
    "If-Match": "the entity tag that it has",
    "If-None-Match": "* : it does not exist yet",
}
OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/v1/queries"): Operation("List the queries", {200: "A page"}, query=_PAGES),
    ("GET", "/v1/queries/{name}"): Operation("Show a query", {200: "The query"}),
    ("PUT", "/v1/queries/{name}"): Operation(
        "Register or replace a query",
        {
            200: "Replaced, or the same as before",
            201: "Registered",
            409: "Its state cannot be kept, it cannot drain, or it does not fit the others",
            422: "It does not compile; with diagnostics",
            **_ETAG,
        },
        "manage",
        {"state": "fresh, keep or drain: what becomes of the partial matches"},
        _CONDITIONS,
        ("application/sparql-query", "application/json"),
    ),
    ("PATCH", "/v1/queries/{name}"): Operation(
        "Pause or continue a query, or change the values of its variables",
        {200: "Changed", 409: "Its state cannot be kept", 422: "A value is wrong", **_ETAG},
        "manage",
        headers=_CONDITIONS,
        takes=_JSON,
    ),
    ("DELETE", "/v1/queries/{name}"): Operation(
        "Remove a query",
        {
            202: "It drains, and is removed then",
            204: "Removed",
            409: "Another query reads it, or it cannot drain",
            422: "drain is not a duration",
            **_ETAG,
        },
        "manage",
        {"drain": "finish its partial matches first, for this duration at most; empty: all"},
        _CONDITIONS,
    ),
    ("POST", "/v1/check"): Operation(
        "Compile a query without registering it", {200: "Its diagnostics"},
        takes=("application/sparql-query",),
    ),
    ("GET", "/v1/queries/{name}/explain"): Operation(
        "Show the plan of a query, with live counts", {200: "The plan", 409: "It is not running"},
        gives=("text/plain", "application/json", "image/svg+xml"),
    ),
    ("GET", "/v1/queries/{name}/groups"): Operation(
        "List the groups of partial matches that wait",
        {200: "Some groups, and how many there are", 409: "The query is not running"},
        query={"place": "the number of a place", "key": "VARIABLE=VALUE of a register",
               "limit": "the most groups"},
    ),
    ("GET", "/v1/queries/{name}/why"): Operation(
        "Say how far a query got, and what stopped it",
        {200: "A report", 409: "The query is not running"}, gives=("text/plain",),
    ),
    ("POST", "/v1/queries/{name}/why"): Operation(
        "Say why one event advances a query or not; it is not pushed",
        {200: "For each pattern, what it found", 422: "It is not one event"}, takes=_JSON,
    ),
    ("GET", "/v1/queries/{name}/matches"): Operation(
        "Subscribe to matches",
        {
            200: "Matches and notices, without end",
            406: "RDF Messages of a query that constructs no graph",
            410: "The replay buffer does not have the match any more",
            503: "There are too many subscribers",
        },
        query={
            "from": "now, or oldest: the whole replay buffer",
            "after": "the id of the last match, as Last-Event-ID",
            "limit": "the number of matches after which the answer ends",
            "follow": "false: end with what there is",
        },
        headers={"Last-Event-ID": "the id of the last match"},
        gives=_MATCHES,
    ),
    ("GET", "/v1/streams"): Operation("List the streams", {200: "A page"}, query=_PAGES),
    ("GET", "/v1/streams/{name}"): Operation("Show a stream", {200: "The stream"}),
    ("GET", "/v1/streams/{name}/events"): Operation(
        "Show the triples of an event that a match names",
        {200: "The triples", 404: "The journal does not have the event, or it was not pushed"},
        query={"graph": "the IRI of its graph", "time": "its time, as in the match"},
        gives=("application/n-triples",),
    ),
    ("POST", "/v1/streams/{name}/events"): Operation(
        "Push events",
        {
            202: "Accepted; the token is the record of the journal that has them",
            400: "Malformed; nothing is accepted",
            408: "The body took too long",
            413: "The body is too large",
            415: "The media type names no RDF syntax",
            429: "The queue is full",
        },
        "ingest",
        {
            "events": "auto, graph or message: how the body is cut into events",
            "on-error": "skip: leave malformed statements out (N-Quads, N-Triples)",
        },
        takes=tuple(media_types()),
    ),
    ("POST", "/v1/streams/{name}/watermark"): Operation(
        "Say that no event of the stream comes before a time",
        {202: "Accepted", 422: "The time is wrong"}, "ingest", takes=_JSON,
    ),
    ("DELETE", "/v1/streams/{name}"): Operation(
        "Forget a stream that no query reads",
        {204: "Removed", 404: "There is none", 409: "A query or a source uses it"}, "manage",
        gives=(),
    ),
    ("GET", "/v1/language"): Operation(
        "Show the keywords and functions of queries", {200: "For editors"}
    ),
    ("GET", "/v1/kb"): Operation("List the KB graphs", {200: "A page"}, query=_PAGES),
    ("GET", "/v1/kb/{iri}"): Operation(
        "Show a KB graph", {200: "The graph"}, gives=("application/json", "application/n-triples")
    ),
    ("PUT", "/v1/kb/{iri}"): Operation(
        "Set the content of a KB graph",
        {200: "Replaced", 201: "Added", 400: "Malformed", 413: "Too large", **_ETAG}, "manage",
        headers=_CONDITIONS, takes=("text/turtle", "application/n-triples", "application/trig",
                                    "application/n-quads", "application/rdf+xml",
                                    "application/ld+json"),
    ),
    ("DELETE", "/v1/kb/{iri}"): Operation(
        "Remove a KB graph", {204: "Removed", 409: "A query names it", **_ETAG}, "manage",
        headers=_CONDITIONS, gives=(),
    ),
    ("POST", "/v1/checkpoints"): Operation(
        "Make a checkpoint", {201: "Its number", 507: "It cannot be written"}, "manage"
    ),
    ("GET", "/healthz"): Operation(
        "Whether the server lives", {200: "It does", 503: "Its engine has ended"}, None,
        gives=("text/plain",),
    ),
    ("GET", "/readyz"): Operation(
        "Whether the server does its work", {200: "It does", 503: "What is missing"}, None
    ),
    ("GET", "/metrics"): Operation(
        "The metrics of the server, for Prometheus", {200: "Metrics"}, gives=("text/plain",)
    ),
    ("GET", "/v1/openapi.json"): Operation("This description", {200: "OpenAPI 3.1"}),
}  # fmt: skip


def template(path: str) -> str:
    """The path of a route as OpenAPI writes it."""
    return _PARAMETER.sub(r"{\1}", path)


def document() -> dict[str, Any]:
    """The description."""
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(path, operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "spaseq",
            "version": __version__,
            "summary": "Patterns in time over streams of RDF graphs",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM},
        },
    }


_PROBLEM = {
    "type": "object",
    "description": "RFC 9457",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["severity", "message", "line", "column"],
                "properties": {
                    "severity": {"enum": ["error", "warning"]},
                    "message": {"type": "string"},
                    "line": {"type": "integer"},
                    "column": {"type": "integer"},
                    "end_line": {"type": "integer"},
                    "end_column": {"type": "integer"},
                    "hint": {"type": "string"},
                },
            },
        },
    },
}


def _operation(path: str, operation: Operation) -> dict[str, Any]:
    text = {"type": "string"}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _PARAMETER.findall(path)
    ]
    for place, given in (("query", operation.query), ("header", operation.headers)):
        parameters += [
            {"name": name, "in": place, "description": meaning, "schema": text}
            for name, meaning in given.items()
        ]
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answers: dict[int, str] = dict(operation.answers)
    if operation.role is not None:
        answers |= {401: "No token", 403: "Not allowed"}
    if "{" in path:
        answers[404] = "There is no such thing"
    shown: dict[str, Any] = {
        "summary": operation.summary,
        "responses": {
            str(status): {
                "description": meaning,
                **(
                    {"content": problem}
                    if status >= 400 and operation.role is not None
                    else {"content": {media: {} for media in operation.gives}}
                    if operation.gives
                    else {}
                ),
            }
            for status, meaning in sorted(answers.items())
        },
    }
    if parameters:
        shown["parameters"] = parameters
    if operation.takes:
        shown["requestBody"] = {
            "required": True,
            "content": {media: {} for media in operation.takes},
        }
    if operation.role is not None:
        shown["security"] = [{"bearer": []}, {}]
        shown["x-spaseq-role"] = operation.role
    return shown
