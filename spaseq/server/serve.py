"""The process: options → an engine, an application, and a server that listens."""

from __future__ import annotations

import gc
import json
import logging
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spaseq.errors import SpaseqError
from spaseq.io.read_options import ReadOptions
from spaseq.live.monitoring import is_loopback
from spaseq.live.posix import require_posix
from spaseq.live.registry import check_sink
from spaseq.records import dataclass
from spaseq.server.auth import LOOPBACK_NAMES, Access, read_tokens
from spaseq.server.board import Board
from spaseq.server.context import Context, RequestLimits
from spaseq.server.engine import Engine
from spaseq.server.kept_state import EngineSettings
from spaseq.server.run_options import RunSettings
from spaseq.server.urls import AllowedUrls


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `spaseq serve`; its help describes each."""

    host: str = "127.0.0.1"
    port: int = 8642
    state: str | None = None
    queries: str | None = None
    manages: bool = False
    kb: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    folder_sinks: Sequence[str] = ()
    reading: ReadOptions = field(default_factory=ReadOptions)
    entail: str | None = None
    run_limits: Mapping[str, Any] = field(default_factory=dict)
    idle: float | None = 10.0
    max_ahead: int | None = None
    checkpoint: float = 10.0
    replay: int = 10_000
    replay_bytes: int = 1 << 26
    limits: RequestLimits = field(default_factory=RequestLimits)
    connections: int = 8192
    tokens: str | None = None
    certificate: str | None = None
    key: str | None = None
    is_insecure: bool = False
    allowed_urls: Sequence[str] = ()
    allow_private: bool = False
    origins: Sequence[str] = ()
    logs_json: bool = False
    paused: bool = False


def access_of(options: Options) -> Access:
    """The authorization rules.

    Raises:
        SpaseqError: if the server would listen beyond loopback without protection.
    """
    tokens = read_tokens(options.tokens)
    loopback = is_loopback(options.host)
    if not loopback:
        if not tokens:
            raise SpaseqError(
                f"--listen {options.host}: beyond loopback, a token is needed (--tokens, or the "
                "environment variable SPASEQ_TOKENS)"
            )
        if options.certificate is None and not options.is_insecure:
            raise SpaseqError(
                f"--listen {options.host}: beyond loopback, TLS is needed (--tls-cert, --tls-key); "
                "--insecure says that something else encrypts the connections"
            )
    hosts = LOOPBACK_NAMES if loopback and not tokens else None
    return Access(tokens, options.manages, frozenset(options.origins), hosts)


def context_for(options: Options, folder: Path, log: Callable[[str], None]) -> Context:
    """The context of a server whose state is in a folder.

    Raises:
        SpaseqError: if it cannot be used.
    """
    try:
        urls = AllowedUrls(tuple(options.allowed_urls), options.allow_private)
    except ValueError as error:
        raise SpaseqError(f"--allow-url {error}") from error
    for name, url in options.sinks.items():
        try:
            check_sink(url)
        except SpaseqError as error:
            raise SpaseqError(f"--sink {name}: {error}") from error
    access = access_of(options)
    settings = EngineSettings(
        folder,
        options.checkpoint,
        options.idle,
        durable=options.state is not None,
        paused=options.paused,
        sources=options.sources,
        sinks=options.sinks,
    )
    run = RunSettings(
        options.reading, options.entail, options.run_limits, options.kb, options.allow_private,
        options.max_ahead,
    )  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        board = Board(folder / "matches", options.replay, options.replay_bytes)
        engine = Engine(settings, run, board, log)
    except OSError as error:
        raise SpaseqError(f"--state {folder}: {error.strerror or error}") from error
    return Context(engine, access, urls, options.limits)


def serve(options: Options) -> None:
    """Run the server until a signal ends it.

    Raises:
        SpaseqError: if the options do not fit, or the operating system is Windows.
    """
    require_posix("the server")
    from spaseq.server.listener import Listener

    log = _log_to_stderr(options.logs_json)
    access_of(options)  # before the state is touched
    listening = listen(options.host, options.port)
    folder = Path(options.state) if options.state else Path(tempfile.mkdtemp(prefix="spaseq-"))
    try:
        gc.disable()  # until it listens: a tenth of the time of a start with 1,000 queries
        if options.state is None:
            log("without --state, queries and matches end with the server")
        context = context_for(options, folder, log)
        try:
            Listener(context, options, log).run(sockets=[listening])
        finally:
            context.engine.close()
        if context.engine.failure is not None:
            raise SpaseqError(f"the engine has ended: {context.engine.failure}")
    finally:
        gc.enable()
        listening.close()
        if options.state is None:
            shutil.rmtree(folder, ignore_errors=True)


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address but does not listen yet.

    Raises:
        SpaseqError: if the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only for this protocol number, asyncio sets TCP_NODELAY on the connections. Without it, the
    # body of an answer waits until the client has acknowledged the head, for 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise SpaseqError(f"--listen {host}:{port}: {error.strerror or error}") from error
    return made


def _log_to_stderr(as_json: bool) -> Callable[[str], None]:
    """Write what happens, the audit log and unexpected errors to standard error.

    Returns:
        Logs one message.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogFormat(as_json))
    for name in ("spaseq.server", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO if name == "spaseq.server" else logging.WARNING)
        logger.propagate = False
        logger.handlers = [handler]
    return logging.getLogger("spaseq.server").info


class _LogFormat(logging.Formatter):
    """A line for each record: time, level and message; or the same as a JSON object."""

    def __init__(self, as_json: bool):
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        stamp, level = stamp.replace("+00:00", "Z"), record.levelname.lower()
        topic, message = record.name.rpartition(".")[2], record.getMessage()
        is_audit = topic == "audit"
        if not self._as_json:
            shown = f"{stamp} {level} {'audit ' if is_audit else ''}{message}"
            return f"{shown}{self._cause(record)}"
        says: dict[str, Any] = {"time": stamp, "level": level}
        says |= {"audit": json.loads(message)} if is_audit else {"message": message}
        cause = self._cause(record)
        return json.dumps(says | ({"cause": cause.strip()} if cause else {}), ensure_ascii=False)

    def _cause(self, record: logging.LogRecord) -> str:
        """The error of a record: with a traceback only if it is one of this program."""
        if not record.exc_info:
            return ""
        error = record.exc_info[1]
        if record.name.startswith("uvicorn") and isinstance(error, ValueError):
            return f" ({error})"  # a client sends what is not text
        return f"\n{self.formatException(record.exc_info)}"
