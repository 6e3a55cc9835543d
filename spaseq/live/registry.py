"""The sources and sinks of each URL scheme.

A package adds a scheme by an entry point in the group `spaseq_sources` or `spaseq_sinks`. Its name
is the scheme, and its value is a function:

* of a source: from (URL, function that logs a text) to a `Source`;
* of a sink: from (URL, whether there will be checkpoints) to a `Sink`.

Entry points are looked up, and modules imported, when a URL with their scheme is opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from spaseq.errors import SpaseqError
from spaseq.io.remote_files import is_remote_file
from spaseq.live.addresses import redacted
from spaseq.live.protocols import Sink, Source

SOURCES: Mapping[str, str] = {
    "http": "spaseq.live.sse_source:SseSource",
    "https": "spaseq.live.sse_source:SseSource",
    "kafka": "spaseq.live.kafka_source:KafkaSource",
    "ldes+http": "spaseq.live.ldes_source:LdesSource",
    "ldes+https": "spaseq.live.ldes_source:LdesSource",
    "mqtt": "spaseq.live.mqtt_source:MqttSource",
    "mqtts": "spaseq.live.mqtt_source:MqttSource",
    "nats": "spaseq.live.nats_source:NatsSource",
    "redis": "spaseq.live.redis_streams:RedisSource",
    "rediss": "spaseq.live.redis_streams:RedisSource",
    "ws": "spaseq.live.websocket_source:WebSocketSource",
    "wss": "spaseq.live.websocket_source:WebSocketSource",
}
"""Scheme → `module:function` of the sources in this package."""
SINKS: Mapping[str, str] = {
    "http": "spaseq.live.webhook_sink:WebhookSink",
    "https": "spaseq.live.webhook_sink:WebhookSink",
    "kafka": "spaseq.live.kafka_sink:KafkaSink",
    "mqtt": "spaseq.live.mqtt_sink:MqttSink",
    "mqtts": "spaseq.live.mqtt_sink:MqttSink",
    "postgresql": "spaseq.live.postgresql_sink:PostgresqlSink",
    "redis": "spaseq.live.redis_streams:RedisSink",
    "rediss": "spaseq.live.redis_streams:RedisSink",
    "sqlite": "spaseq.live.sqlite_sink:SqliteSink",
}
"""Scheme → `module:function` of the sinks in this package."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):", re.IGNORECASE)


def scheme_of(url: str) -> str | None:
    """The scheme of a URL in lower case; None for a path."""
    found = _SCHEME.match(url)
    return None if found is None else found[1].lower()


def is_url(text: str, group: str) -> bool:
    """Whether a text is a URL, not a path: its scheme is of the group `sources` or `sinks`, or `//`
    follows (then opening it raises an error that lists the known schemes). URLs of finished files
    are paths.
    """
    scheme = scheme_of(text)
    if scheme is None:
        return False
    if is_remote_file(text) and (group == "sources" or scheme not in SINKS):
        return False
    if text.startswith("//", len(scheme) + 1):
        return True
    built_in = SOURCES if group == "sources" else SINKS
    return scheme in built_in or any(entry_points(group=f"spaseq_{group}", name=scheme))


def open_source(url: str, log: Callable[[str], None]) -> Source:
    """The source of a URL.

    Raises:
        SpaseqError: for an unknown scheme, and if the source cannot be opened.
    """
    return cast(Source, _maker(url, "sources", SOURCES)(url, log))


def open_sink(url: str, keeps: bool) -> Sink:
    """The sink of a URL; `keeps`: whether there will be checkpoints.

    Raises:
        SpaseqError: for an unknown scheme, and if the sink cannot be opened.
    """
    return cast(Sink, _maker(url, "sinks", SINKS)(url, keeps))


def check_sink(url: str) -> None:
    """Refuse a URL that cannot be that of a sink.

    Raises:
        SpaseqError: for a path, and for an unknown scheme.
    """
    if not is_url(url, "sinks"):
        raise SpaseqError(f"{redacted(url)}: write a URL with one of {', '.join(sorted(SINKS))}")
    _maker(url, "sinks", SINKS)


def _maker(url: str, group: str, built_in: Mapping[str, str]) -> Callable[..., Any]:
    scheme = scheme_of(url) or ""
    if scheme in built_in:
        module, name = built_in[scheme].split(":")
        return cast(Callable[..., Any], getattr(import_module(module), name))
    found = list(entry_points(group=f"spaseq_{group}"))
    for entry in found:
        if entry.name == scheme:
            return cast(Callable[..., Any], entry.load())
    known = ", ".join(sorted({*built_in, *(entry.name for entry in found)})) or "none"
    raise SpaseqError(
        f"{redacted(url)}: there is no {group[:-1]} for {scheme}: (known are {known})"
    )
