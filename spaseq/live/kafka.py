"""Kafka: what the source and the sink share, and the options of their URLs.

`kafka://[user:password@]host:port[,host:port]/topic`. The client is librdkafka, which connects
again by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.live.addresses import Address, address, client

CONNECT_SECONDS = 30.0
"""How long a broker may take to answer at the start."""
SHARED_OPTIONS = ("security", "mechanism", "ca")


def kafka_address(url: str, options: tuple[str, ...]) -> Address:
    """The parts of a URL of a topic.

    Raises:
        SpaseqError: if it names no topic, or has an unknown option.
    """
    found = address(url, (*SHARED_OPTIONS, *options))
    if not found.path or "/" in found.path:
        raise SpaseqError(f"{found.shown}: write kafka://HOST:PORT/TOPIC")
    return found


def kafka_client() -> Any:
    """The module `confluent_kafka`.

    Raises:
        SpaseqError: if it is not installed.
    """
    return client("confluent_kafka", "confluent-kafka", "kafka", "kafka")


def configuration(found: Address, trouble: Callable[[Any], None]) -> dict[str, Any]:
    """The configuration of a client; `trouble` is called with errors of the connection."""
    default = "PLAINTEXT" if found.user is None else "SASL_SSL"
    made: dict[str, Any] = {
        "bootstrap.servers": found.hosts,
        "client.id": "spaseq",
        "security.protocol": found.options.get("security", default),
        "error_cb": trouble,
        "log_level": 0,
        "allow.auto.create.topics": False,
        "socket.timeout.ms": 30_000,
        "reconnect.backoff.max.ms": 2_000,
    }
    if found.user is not None:
        made["sasl.mechanism"] = found.options.get("mechanism", "SCRAM-SHA-256")
        made["sasl.username"] = found.user
        made["sasl.password"] = found.password or ""
    if "ca" in found.options:
        made["ssl.ca.location"] = found.options["ca"]
    return made
