"""`--check-config`: connect to everything that a run would use, and report the results.

Nothing is read except the knowledge base, and no output or state is changed. For sources that would
consume messages, and for webhooks, only the connection is tested. A check that takes longer than
`PATIENCE` seconds has failed.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from spaseq.cli import arguments, reports
from spaseq.cli.config import hidden
from spaseq.errors import SpaseqError

if TYPE_CHECKING:
    from spaseq.program import Program

PATIENCE = 20.0
CONNECT_SECONDS = 5.0
PORTS = {
    "http": 80, "https": 443, "kafka": 9092, "mqtt": 1883, "mqtts": 8883, "nats": 4222,
    "postgresql": 5432, "redis": 6379, "rediss": 6379, "ws": 80, "wss": 443,
}  # fmt: skip
"""Scheme → the port of URLs without one."""
FAILED = 2
"""The exit status if something is missing."""


def check_all(
    program: Program,
    kb: Mapping[str, str],
    files: Mapping[str, Sequence[str]],
    follow: bool,
    output: str | None,
    state: str | None,
    late: str | None,
    secrets: Mapping[str, str],
) -> int:
    """Check everything and print a line each, without `secrets`; returns the exit status."""
    checks: list[tuple[str, Callable[[], str]]] = [
        (f"query {name}", lambda query=query: _query(query))  # type: ignore[misc]
        for name, query in zip(program.names, program.queries, strict=True)
    ]
    for iri, urls in files.items():
        checks += [
            (f"stream <{iri}>", lambda url=url: _source(url, follow))  # type: ignore[misc]
            for url in urls
        ]
    checks += [(f"kb <{iri}>", lambda iri=iri: _graph(iri, kb[iri])) for iri in kb]  # type: ignore[misc]
    checks.append(("output", lambda: _sink(output)))
    if state is not None:
        checks.append(("state", lambda: _state(state)))
    if late is not None:
        checks.append(("late", lambda: _writable(late)))
    failures = 0
    for name, check in checks:
        is_right, text = _tried(check)
        failures += not is_right
        reports.output(
            f"{'ok    ' if is_right else 'failed'}  {hidden(f'{name}: {text}', secrets)}"
        )
    if failures:
        reports.log(f"error: {failures} of {len(checks)} checks failed")
    return FAILED if failures else 0


def _tried(check: Callable[[], str]) -> tuple[bool, str]:
    """Whether a check succeeds, and its text."""
    found: list[tuple[bool, str]] = []

    def run() -> None:
        try:
            found.append((True, check()))
        except OSError as error:
            found.append((False, str(error.strerror or error)))
        except Exception as error:
            kind = "" if isinstance(error, SpaseqError) else f"{type(error).__name__}: "
            found.append((False, f"{kind}{error}"))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return found[0] if found else (False, f"no answer within {PATIENCE:.0f} s")


def _query(query: Any) -> str:
    return f"reads {', '.join(f'<{iri}>' for iri in query.plan.streams)}"


def _source(url: str, follow: bool) -> str:
    from spaseq.io.remote_files import is_remote_file, open_remote
    from spaseq.live import registry
    from spaseq.live.addresses import redacted

    if registry.is_url(url, "sources"):
        source = registry.open_source(url, lambda text: None)
        is_reached = _reach(url)
        if is_reached and registry.scheme_of(url) != "kafka":
            # Opening it would consume messages of a session, a group or a work queue.
            return f"{redacted(url)}: the server accepts connections"
        try:
            source.open(None)
        finally:
            source.close()
        return f"{redacted(url)}: connected"
    if url == arguments.STDIN:
        return "standard input"
    if is_remote_file(url):
        open_remote(url).close()
        return f"{redacted(url)}: can be read"
    if os.path.isdir(url):
        count = sum(not name.startswith(".") for name in os.listdir(url))
        return f"{url}: a folder of {count:,} files"
    if not os.path.exists(url):
        if follow:
            return f"{url}: does not exist yet"
        raise FileNotFoundError(2, f"{url}: there is no such file")
    with open(url, "rb"):
        return f"{url}: {os.path.getsize(url):,} bytes"


def _graph(iri: str, place: str) -> str:
    from spaseq.kb.snapshot import open_kb

    kb = open_kb({iri: place})
    try:
        name = kb.names[0]
        if not kb.is_remote(name):
            return f"{place}: {len(kb.graph(name).facts):,} triples"
        kb.sources[iri].rows("SELECT ?x WHERE { VALUES ?x { 1 } }", ("x",), 1)
        return f"{place}: answers"
    finally:
        kb.close()


def _sink(output: str | None) -> str:
    from spaseq.io.remote_files import is_remote_file
    from spaseq.live import registry
    from spaseq.live.addresses import redacted
    from spaseq.live.webhook_sink import WebhookSink

    if output is None:
        return "standard output"
    if registry.is_url(output, "sinks"):
        sink = registry.open_sink(output, False)
        is_reached = _reach(output)
        try:
            if isinstance(sink, WebhookSink) and sink.dead_letters is not None:
                _writable(sink.dead_letters)
            if is_reached and registry.scheme_of(output) in ("http", "https"):
                return f"{redacted(output)}: the server accepts connections"
            sink.resume("", {})
        finally:
            sink.close()
        return f"{redacted(output)}: connected"
    if is_remote_file(output):
        return f"{redacted(output)}: not tried, since that would write the file"
    return _writable(output)


def _reach(url: str) -> bool:
    """Whether a URL names a server, which accepts a connection; nothing is sent to it.

    Raises:
        SpaseqError: if it accepts none.
    """
    from spaseq.live.addresses import redacted

    parts = urlsplit(url.removeprefix("ldes+"))
    port = PORTS.get(parts.scheme.lower())
    hosts = parts.netloc.rpartition("@")[2]
    if port is None or not hosts:
        return False
    problem = ""
    for host in hosts.split(","):
        try:
            one = urlsplit(f"//{host}")
            socket.create_connection((one.hostname, one.port or port), CONNECT_SECONDS).close()
            return True
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or str(error)
    raise SpaseqError(f"{redacted(url)}: {problem}")


def _writable(path: str) -> str:
    """Whether a file can be written; does not change it."""
    if os.path.exists(path):
        with open(path, "r+b"):
            return f"{path}: {os.path.getsize(path):,} bytes, can be written"
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise OSError(2, f"{path}: the folder {folder} does not exist or cannot be written")
    return f"{path}: does not exist yet"


def _state(path: str) -> str:
    from spaseq.live.state import StateFolder

    if not os.path.isdir(path):
        _writable(path)
        return f"{path}: does not exist yet"
    problems: list[str] = []
    folder = StateFolder(path, problems.append)
    try:
        found = folder.checkpoints()
    finally:
        folder.close()
    if problems:
        raise SpaseqError("; ".join(problems))
    if not found:
        return f"{path}: no checkpoint"
    return f"{path}: checkpoint {found[0].number}, {len(found[0].run):,} bytes"
