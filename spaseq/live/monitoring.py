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
from spaseq.live.metrics import Sample, families
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
        samples: dict[str, list[Sample]] = {
            "spaseq_ready": [((), self._monitor.ready()["ready"])],
            **({} if status is None else _samples(status)),
        }
        for metric, values in families(samples):
            make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=metric.labels)
            for labels, value in values:
                family.add_metric(labels, float(value))
            yield family


def _samples(status: Status) -> dict[str, list[Sample]]:
    """The numbers of a status, by the names of the metrics."""
    queries, made = status.queries, status.checkpoint
    measures: tuple[tuple[str, Callable[[StreamStatus], float | None]], ...] = (
        ("spaseq_events_total", lambda s: s.events),
        ("spaseq_late_events_total", lambda s: s.late),
        ("spaseq_ahead_events_total", lambda s: s.ahead),
        ("spaseq_rejected_events_total", lambda s: s.rejected),
        ("spaseq_watermark_seconds", lambda s: s.watermark),
        ("spaseq_watermark_lag_seconds", lambda s: s.lag),
        ("spaseq_waiting_events", lambda s: s.waiting),
        ("spaseq_queue_bytes", lambda s: s.queued),
        ("spaseq_idle", lambda s: s.is_idle),
        ("spaseq_holds_back", lambda s: s.holds_back),
    )
    found: dict[str, list[Sample]] = {
        name: [((s.iri,), value) for s in status.streams if (value := take(s)) is not None]
        for name, take in measures
    }
    found["spaseq_matches_total"] = [((q.name,), q.matches) for q in queries]
    found["spaseq_shed_groups_total"] = [((q.name,), q.shed) for q in queries]
    found["spaseq_groups"] = [
        ((q.name, place), count) for q in queries for place, count in q.groups.items()
    ]
    found["spaseq_matches_written_total"] = [((), status.written)]
    for name, key in (
        ("spaseq_kb_requests_total", "requests"),
        ("spaseq_kb_failures_total", "failures"),
        ("spaseq_kb_asked_total", "asked"),
        ("spaseq_kb_cache_hits_total", "known"),
    ):
        if status.kb:
            found[name] = [((iri,), counters[key]) for iri, counters in status.kb.items()]
    if made is not None:
        found |= {
            "spaseq_checkpoint_number": [((), made.number)],
            "spaseq_checkpoint_age_seconds": [((), made.age)],
            "spaseq_checkpoint_size_bytes": [((), made.size)],
            "spaseq_checkpoint_pause_seconds": [((), made.pause)],
            "spaseq_checkpoint_failures_total": [((), made.failed)],
        }
    return found
