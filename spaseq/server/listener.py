"""The HTTP server: uvicorn with the limits of the options, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from spaseq.server.app import make_app
from spaseq.server.context import Context
from spaseq.server.folder import QueryFolder
from spaseq.server.http import LimitedProtocol
from spaseq.server.operation_routes import is_healthy
from spaseq.server.service import notify, watchdog_seconds

if TYPE_CHECKING:
    from spaseq.server.serve import Options

GRACE_SECONDS = 10
"""Seconds within which requests end after a signal."""
KEEP_ALIVE_SECONDS = 15
MAX_HEAD_BYTES = 1 << 14
MAX_FRAME_BYTES = 1 << 16
"""The largest message of a client over a WebSocket; the server ignores them."""


class Listener(uvicorn.Server):
    """Serves one context; `run` returns after a signal, or when `should_exit` is set.

    Args:
        context: The server's parts.
        options: The options of `spaseq serve`.
        log: Reports where it listens.
    """

    def __init__(self, context: Context, options: Options, log: Callable[[str], None]):
        folder = None
        if options.queries is not None:
            folder = QueryFolder(
                Path(options.queries), context, log, options.folder_sinks, options.paused
            )
        super().__init__(
            uvicorn.Config(
                make_app(context, folder),
                http=LimitedProtocol,
                ws="websockets-sansio",
                ws_max_size=MAX_FRAME_BYTES,
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=options.connections,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
                ssl_certfile=options.certificate,
                ssl_keyfile=options.key,
            )
        )
        self._context = context
        # An engine that has ended cannot continue; a service manager restarts the server.
        context.engine.ended = self._end
        self._options = options
        self._log = log
        self.url = ""
        """The URL at which it listens, once it does."""

    def _end(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if threading.current_thread() is threading.main_thread():
            # `serve` has disabled collections, which need not visit the objects of the first
            # queries, neither now nor later.
            gc.freeze()
            gc.enable()
        if not sockets or self.should_exit:
            return
        scheme = "http" if self._options.certificate is None else "https"
        host, port = sockets[0].getsockname()[:2]
        self.url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        self._log(f"listening at {self.url}")
        notify("READY=1")
        self._watching = asyncio.create_task(self._report_health())

    async def _report_health(self) -> None:
        """Tell the service manager that the engine works, as long as it does."""
        seconds = watchdog_seconds()
        while seconds is not None:
            if is_healthy(self._context.engine):
                notify("WATCHDOG=1")
            await asyncio.sleep(seconds)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        notify("STOPPING=1")
        self._context.engine.hurry()
        # Subscriptions do not end by themselves, and uvicorn waits for all responses.
        if self._context.hub is not None:
            self._context.hub.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down in order at a signal, which is not raised again: the exit status is 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
