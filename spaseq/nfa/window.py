"""Opening and closing times of the window of a match."""

from __future__ import annotations

from spaseq.plan.logical import Window

LAST_MOMENT = 2**63 - 1
"""The greatest timestamp, in microseconds: windows that reach beyond it close then."""


class WindowTimes:
    """Times of a window of microseconds. Meaningless for a window that counts events."""

    def __init__(self, window: Window):
        self.window = window

    def opening(self, micros: int) -> int:
        """The earliest start, in microseconds, of a match that ends at `micros`."""
        size = self.window.size
        return micros - size if self.window.kind == "span" else micros // size * size

    def closing(self, micros: int) -> int:
        """The closing time, in microseconds, of the window of a match that starts at `micros`."""
        size = self.window.size
        closing = micros + size if self.window.kind == "span" else (micros // size + 1) * size
        return min(closing, LAST_MOMENT)
