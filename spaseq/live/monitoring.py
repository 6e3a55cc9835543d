"""HTTP for monitors: `/metrics` (Prometheus), `/healthz` and `/readyz` of one live run.

A thread answers from the last `Status`, so a request never waits for the run. `/readyz` has status
200 or 503, and JSON: `ready`, `not_ready` (the reasons, as texts), `idle` (the streams that no
longer hold back others) and `age` (of the answer, in seconds).

The client library is imported when the first `Monitor` is made.
"""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.live.status import Status, StreamStatus

LOOPBACK = "127.0.0.1"
STALE_SECONDS = 30.0
"""Seconds without a status after which the run counts as hanging in one batch, and is not ready."""
_TIMEOUT = 5.0


def parse_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[IPV6]:PORT`, `:PORT` or `PORT`; without a host, the loopback address.

    Raises:
        ValueError: for any other text.
    """
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r} is not HOST:PORT: write [{host}]:{port}")
    return host or LOOPBACK, int(port)


def is_loopback(host: str) -> bool:
    """Whether a listening address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Monitor:
    """Serves the status of one run.

    Args:
        host: The address to listen on.
        port: The port; 0: any free one, see `url`.

    Raises:
        SpaseqError: if the client library is missing, or the address cannot be used.
    """

    def __init__(self, host: str, port: int):
        try:
            from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
        except ImportError as error:
            raise SpaseqError("--metrics needs prometheus-client: pip install spaseq[metrics]"
                              ) from error  # fmt: skip
        self._status: Status | None = None
        self._registry = CollectorRegistry()
        self._registry.register(_Families(self))
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        monitor = self

        class Handler(_Handler):
            owner = monitor

        kind = type("Server", (_Server,), {"address_family": _family(host)})
        try:
            self._server = kind((host, port), Handler)
        except OSError as error:
            raise SpaseqError(
                f"--metrics {host}:{port}: cannot listen: {error.strerror or error}"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL that monitors request."""
        host, port = self._server.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http://{shown}:{port}"

    @property
    def status(self) -> Status | None:
        """The last status; None: the run is starting."""
        return self._status

    def show(self, status: Status) -> None:
        """Use this status for answers from now on."""
        self._status = status

    def ready(self) -> dict[str, Any]:
        """The answer of `/readyz`."""
        status = self._status
        if status is None:
            return {"ready": False, "not_ready": ["run: it is starting"], "idle": []}
        age = time.monotonic() - status.taken
        missing = status.obstacles()
        if age > STALE_SECONDS:
            missing.append(f"run: it has been busy with one batch for {age:.0f} s")
        idle = [stream.iri for stream in status.streams if stream.is_idle]
        return {
            "ready": not missing, "not_ready": missing, "idle": idle, "age": round(age, 3)
        }  # fmt: skip

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """The answer of `/metrics`, and its media type."""
        from prometheus_client.exposition import choose_encoder

        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2.0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def _family(host: str) -> int:
    import socket

    return socket.AF_INET6 if ":" in host else socket.AF_INET


class _Handler(BaseHTTPRequestHandler):
    owner: Monitor
    timeout = _TIMEOUT
    server_version = "spaseq"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/healthz":
            self._answer(200, b"ok\n", "text/plain; charset=utf-8")
        elif path == "/readyz":
            found = self.owner.ready()
            body = json.dumps(found).encode() + b"\n"
            self._answer(200 if found["ready"] else 503, body, "application/json")
        elif path == "/metrics":
            self._answer(200, *self.owner.metrics(self.headers.get("Accept") or ""))
        else:
            self._answer(404, b"there are /metrics, /healthz and /readyz\n", "text/plain")

    do_HEAD = do_GET

    def _answer(self, status: int, body: bytes, media_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Do not log the requests of monitors."""


class _Families:
    """The metrics of the last status, in the form of the client library."""

    def __init__(self, monitor: Monitor):
        self._monitor = monitor

    def describe(self) -> list[Any]:
        """No metrics are known before the run starts."""
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        status = self._monitor.status
        ready = self._monitor.ready()["ready"]
        yield GaugeMetricFamily("spaseq_ready", "Whether /readyz is 200.", value=float(ready))
        if status is None:
            return
        counts = {"events", "late_events", "rejected_events", "matches", "shed_groups"}
        counts |= {"kb_requests", "kb_failures", "kb_asked", "kb_cache_hits"}
        for name, help_text, label, values in _labelled(status):
            make = CounterMetricFamily if name in counts else GaugeMetricFamily
            family = make(f"spaseq_{name}", help_text, labels=label)
            for labels, value in values:
                family.add_metric(labels, value)
            yield family
        yield CounterMetricFamily(
            "spaseq_matches_written", "Matches written by this process.", value=status.written
        )
        made = status.checkpoint
        if made is None:
            return
        gauges = (
            ("number", "The number of the last checkpoint.", made.number),
            ("age_seconds", "The age of the last checkpoint.", made.age),
            ("size_bytes", "The size of the last checkpoint.", made.size),
            ("pause_seconds", "For how long the last checkpoint stopped the run.", made.pause),
        )
        for name, help_text, value in gauges:
            yield GaugeMetricFamily(f"spaseq_checkpoint_{name}", help_text, value=value)
        yield CounterMetricFamily(
            "spaseq_checkpoint_failures", "Checkpoints that were not written.", value=made.failed
        )


_Values = list[tuple[list[str], float]]


def _labelled(status: Status) -> Iterator[tuple[str, str, list[str], _Values]]:
    """(name, help, names of the labels, values) of each metric with labels."""
    streams, queries = status.streams, status.queries
    measures: tuple[tuple[str, str, Callable[[StreamStatus], float | None]], ...] = (
        ("events", "Events read.", lambda s: s.events),
        ("late_events", "Events that were too late.", lambda s: s.late),
        ("rejected_events", "Errors that were skipped.", lambda s: s.rejected),
        ("watermark_seconds", "The time before which no event comes.", lambda s: s.watermark),
        ("watermark_lag_seconds", "The watermark behind the clock.", lambda s: s.lag),
        ("waiting_events", "Events waiting for other streams or late ones.", lambda s: s.waiting),
        ("queue_bytes", "Bytes read and not yet decoded.", lambda s: s.queued),
        ("idle", "Whether a stream no longer holds others back.", lambda s: s.is_idle),
        ("holds_back", "Whether other streams wait for this one.", lambda s: s.holds_back),
    )
    for name, help_text, take in measures:
        known = [([s.iri], float(value)) for s in streams if (value := take(s)) is not None]
        yield name, help_text, ["stream"], known
    yield "matches", "Matches found.", ["query"], [([q.name], q.matches) for q in queries]
    yield "shed_groups", "Groups that a limit dropped.", ["query"], [
        ([q.name], q.shed) for q in queries
    ]  # fmt: skip
    yield "groups", "Groups of partial matches.", ["query", "place"], [
        ([q.name, place], count) for q in queries for place, count in q.groups.items()
    ]  # fmt: skip
    for name, help_text, key in (
        ("kb_requests", "Requests to a source of the knowledge base.", "requests"),
        ("kb_failures", "Requests that failed.", "failures"),
        ("kb_asked", "Values that events needed.", "asked"),
        ("kb_cache_hits", "Those of kb_asked that the cache held.", "known"),
    ):
        values = [([iri], float(counters[key])) for iri, counters in status.kb.items()]
        if values:
            yield name, help_text, ["source"], values
