"""Ctrl-C, SIGTERM and SIGHUP: the first ends the command in order, the second immediately.

SIGHUP comes when a terminal or a connection of ssh closes; under nohup, the parent ignores it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STATUS = 128
"""Shells report this exit status, plus the signal's number, for a command ended by a signal."""


SIGNALS = [signal.SIGINT, signal.SIGTERM]
"""The signals that end a command in order."""
if hasattr(signal, "SIGHUP"):
    SIGNALS.append(signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """A signal asked the command to end; `status` is the exit status for it."""

    def __init__(self, number: int):
        self.status = STATUS + number
        super().__init__("interrupted" if number == signal.SIGINT else "terminated")


@contextmanager
def stoppable() -> Iterator[None]:
    """The first of `SIGNALS` raises `Stopped`; a second one takes its default action.

    A signal that the parent process ignores stays ignored. Only the main thread handles signals;
    in other threads this context does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    default = (signal.default_int_handler, signal.SIG_DFL)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number, handler in before.items() if handler in default]

    def stop(number: int, frame: FrameType | None) -> None:
        for other in handled:
            signal.signal(other, signal.SIG_DFL)
        raise Stopped(number)

    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


@contextmanager
def ending(stop: Callable[[], None]) -> Iterator[None]:
    """Within `stoppable`, the first signal calls `stop` instead; a second one ends the process.

    Only the main thread handles signals; in other threads this context does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number, handler in before.items() if handler != signal.SIG_IGN]

    def end(number: int, frame: FrameType | None) -> None:
        for other in handled:
            signal.signal(other, signal.SIG_DFL)
        stop()

    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
