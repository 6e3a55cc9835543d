"""The requests of the clients: method, path and options of each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias
from urllib.parse import quote
from uuid import uuid4

from spaseq.errors import ArgumentError, SpaseqError, kind_of
from spaseq.records import dataclass

Json: TypeAlias = dict[str, Any]
State: TypeAlias = Literal["fresh", "keep", "drain"]
Entail: TypeAlias = Literal["none", "rdfs", "owl-ql"]
Start: TypeAlias = Literal["now", "oldest"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request, as both clients send it."""

    method: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


def query_path(name: str, rest: str = "") -> str:
    return f"/v1/queries/{quote(name, safe='')}{rest}"


def put_query_request(
    name: str,
    text: str,
    state: State,
    bind: Mapping[str, Any] | None,
    kb: Mapping[str, str] | None,
    paused: bool,
    sinks: Sequence[str],
    entail: Entail | None,
    limits: Mapping[str, Any] | None,
) -> Request:
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
    return Request("PUT", query_path(name), {"json": body})


def remove_query_request(name: str, drain: str | None) -> Request:
    options = {} if drain is None else {"params": {"drain": drain}}
    return Request("DELETE", query_path(name), options)


def push_request(stream: str, data: bytes | str, media_type: str, skip: bool) -> Request:
    """A request that can be sent again without effect."""
    return Request(
        "POST",
        f"/v1/streams/{quote(stream, safe='')}/events",
        {
            "content": data,
            "headers": {"Content-Type": media_type, "Idempotency-Key": uuid4().hex},
            "params": {"on-error": "skip"} if skip else {},
        },
    )


def watermark_request(stream: str, moment: float | str) -> Request:
    path = f"/v1/streams/{quote(stream, safe='')}/watermark"
    return Request("POST", path, {"json": {"time": moment}})


def put_kb_request(iri: str, data: bytes | str, media_type: str) -> Request:
    return Request("PUT", kb_path(iri), {"content": data, "headers": {"Content-Type": media_type}})


def kb_path(iri: str) -> str:
    return f"/v1/kb/{quote(iri, safe='')}"


def why_request(query: str) -> Request:
    return Request("GET", query_path(query, "/why"))


def why_event_request(
    query: str, graph: str, at: float | str | None, stream: str | None
) -> Request:
    event = {"graph": graph, "at": at} | ({} if stream is None else {"stream": stream})
    return Request("POST", query_path(query, "/why"), {"json": event})


def base(url: str) -> str:
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
