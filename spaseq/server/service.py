"""What the server tells systemd (`Type=notify`, `WatchdogSec=`): datagrams to a socket.

Without systemd the environment names no socket, and nothing is sent.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Tell systemd a state, such as `READY=1`; a failure has no effect (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(state.encode(), address)


def watchdog_seconds() -> float | None:
    """The time between two `WATCHDOG=1`, half of what systemd waits; None: it does not watch."""
    micros, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not micros.isdigit() or process not in ("", str(os.getpid())):
        return None
    return int(micros) / 2e6
