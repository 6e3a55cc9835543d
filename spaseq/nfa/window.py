"""When the window of a match opens and closes."""

from __future__ import annotations

from spaseq.plan.logical import Window

LAST_MOMENT = 2**63 - 1
"""The greatest timestamp there is: windows that reach beyond it close then."""


class WindowTimes:
    """The times of a window of microseconds; of one that counts events they say nothing."""

    def __init__(self, window: Window):
        self.window = window

    def opening(self, micros: int) -> int:
        """The earliest time of a match that ends at `micros`."""
        size = self.window.size
        return micros - size if self.window.kind == "span" else micros // size * size

    def closing(self, micros: int) -> int:
        """When the window of a match that starts at `micros` closes."""
        size = self.window.size
        closing = micros + size if self.window.kind == "span" else (micros // size + 1) * size
        return min(closing, LAST_MOMENT)
