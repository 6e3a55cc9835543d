"""Kafka: code that the source and the sink share, and the options of their URLs.

`kafka://[user:password@]host:port[,host:port]/topic`. The client is librdkafka, which reconnects
automatically.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.live.addresses import Address, address, client
from spaseq.live.tls import AUTHORITY, trusted

CONNECT_SECONDS = 30.0
"""Seconds that a broker may take to answer at the start."""
_FIRST_WAIT = 0.5
"""Seconds for the first attempt to reach a broker; each later attempt may take twice as long."""
SHARED_OPTIONS = ("security", "mechanism", "ca")


def kafka_address(url: str, options: tuple[str, ...]) -> Address:
    """The parts of a URL of a topic.

    Raises:
        SpaseqError: if it names no topic, has an unknown option, or its `ca` cannot be used.
    """
    found = address(url, (*SHARED_OPTIONS, *options))
    if not found.path or "/" in found.path:
        raise SpaseqError(f"{found.shown}: write kafka://HOST:PORT/TOPIC")
    security = _security(found)
    if "ca" in found.options and not security.endswith("SSL"):
        raise SpaseqError(f"{found.shown}: ca is for connections with TLS, not for {security}")
    trusted(found)  # librdkafka reads the file itself
    return found


def _security(found: Address) -> str:
    """The protocol of the connection, as librdkafka calls it."""
    if found.user is not None:
        default = "SASL_SSL"
    else:
        default = "SSL" if "ca" in found.options else "PLAINTEXT"
    return found.options.get("security", default).upper()


def kafka_client() -> Any:
    """The module `confluent_kafka`.

    Raises:
        SpaseqError: if it is not installed.
    """
    return client("confluent_kafka", "confluent-kafka", "kafka", "kafka")


def configuration(found: Address, trouble: Callable[[Any], None]) -> dict[str, Any]:
    """The configuration of a client; `trouble` is called with errors of the connection."""
    made: dict[str, Any] = {
        "bootstrap.servers": found.hosts,
        "client.id": "spaseq",
        "security.protocol": _security(found),
        "error_cb": trouble,
        "log_level": 0,
        "allow.auto.create.topics": False,
        "socket.timeout.ms": 30_000,
        "reconnect.backoff.max.ms": 2_000,
        # Rebootstrapping forgets unreachable brokers. In librdkafka 2.16, the coordinator of a
        # group may be among them, and then the next transaction never ends.
        "metadata.recovery.strategy": "none",
    }
    if found.user is not None:
        made["sasl.mechanism"] = found.options.get("mechanism", "SCRAM-SHA-256")
        made["sasl.username"] = found.user
        made["sasl.password"] = found.password or ""
    if "ca" in found.options:
        made["ssl.ca.location"] = found.options["ca"]
    return made


def final(error: Any) -> str | None:
    """The message for an error after which a retry is useless; None for other errors."""
    codes = kafka_client().KafkaError
    if error.code() == codes._SSL and "certificate verify failed" in error.str():
        return f"the certificate of the server is not trusted ({AUTHORITY})"
    refused = error.code() in (codes._AUTHENTICATION, codes.TOPIC_AUTHORIZATION_FAILED)
    return str(error.str()) if refused or error.fatal() else None


def wait_for_broker(made: Any, has_failed: Callable[[], bool]) -> None:
    """Wait until a broker answers a client that has not been used yet.

    Args:
        made: A consumer or a producer.
        has_failed: Whether the client has reported an error that is `final`. It does so only within
            `poll`, so this function asks the broker several times.

    Raises:
        KafkaException: if none answers within `CONNECT_SECONDS`, or after a final error.
    """
    until, wait = time.monotonic() + CONNECT_SECONDS, _FIRST_WAIT
    while True:
        try:
            made.list_topics(timeout=wait)
            return
        except kafka_client().KafkaException:
            made.poll(0)
            if has_failed() or time.monotonic() > until:
                raise
        wait = max(_FIRST_WAIT, min(2 * wait, until - time.monotonic()))
